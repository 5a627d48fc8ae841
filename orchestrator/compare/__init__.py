"""Comparisons of times: two workloads side by side, one with and without variants, or two records."""
