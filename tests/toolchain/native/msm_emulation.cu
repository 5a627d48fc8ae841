// The MSM kernels of one group, for a CPU. MSM_SORT_SOURCE and MSM_GROUP_SOURCE name the .cu files.
#include "grid_emulator.h"
#include MSM_SORT_SOURCE
#include MSM_GROUP_SOURCE

EMULATED(msm_count_bins)
EMULATED(msm_scan_bins)
EMULATED(msm_partition)
EMULATED(msm_count_buckets)
EMULATED(msm_measure_bins)
EMULATED(msm_start_buckets)
EMULATED(msm_place)
EMULATED(msm_find_present)
EMULATED(msm_double_points)
EMULATED(msm_add_pairs)
EMULATED(msm_accumulate)
EMULATED(msm_add_partials)
EMULATED(msm_sum_lines)
EMULATED(msm_sum_short_lines)
EMULATED(msm_sum_weighted)
EMULATED(msm_combine)
