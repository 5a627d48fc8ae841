"""Readers of files that hold CUDA code: pure functions over bytes."""
