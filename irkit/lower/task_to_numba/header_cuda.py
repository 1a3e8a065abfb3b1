"""What an emitted CUDA module begins with: its imports, and the decorator of its device functions."""

IMPORTS = """\
import math
from math import floor

from numba import cuda
from numba.cuda.types import (
    boolean,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

from irkit.runtime.intrinsics.cuda import (
    address_of,
    await_previous,
    begin_next,
    block_count,
    block_index,
    cp_async16,
    cp_async_wait,
    fetch_to_l2,
    divide,
    f32p,
    f64p,
    i8p,
    i16p,
    i32p,
    i64p,
    in_one_row,
    ipow,
    itemsize,
    ld_acquire,
    ld_relaxed64,
    red_release_add,
    rint,
    shared_base,
    shared_f32,
    shared_i32,
    shared_like,
    shared_of,
    st_relaxed64,
    thread_index,
    u8p,
    u16p,
    u32p,
    u64p,
)
from irkit.runtime.intrinsics.cuda_attention import score_sums, weighted_sums
from irkit.runtime.intrinsics.cuda_attention_gradient import (
    column_slopes,
    equal_rows,
    row_differences,
    row_slopes,
)
from irkit.runtime.intrinsics.cuda_attention_parts import cut_terms, part_scores, part_sums
from irkit.runtime.intrinsics.cuda_approximations import (
    acos_float64, asin_float64, atan2_float32, atan2_float64, atan_float32, atan_float64,
    cos_float32, cos_float64, cosh_float64, erf_float32, erf_float64, exp2_float64, exp_float32,
    exp_float64, expm1_float64, log10_float64, log1p_float32, log1p_float64, log2_float64,
    log_float32, log_float64, pow_float32, sin_float32, sin_float64, sinh_float64, tanh_float32,
    tanh_float64,
)
from irkit.runtime.intrinsics.cuda_boxes import copy_box, see_map, store_piece, store_piece_across
from irkit.runtime.intrinsics.cuda_bulk import (
    arrive,
    arrive_behind_copies,
    await_phase,
    close_barrier,
    copy_rows,
    expect,
    open_barrier,
    packed_magnitudes,
    publish_barriers,
    store_terms,
)
from irkit.runtime.intrinsics.cuda_bytes import (
    dot4,
    four_bytes,
    integer_zeros,
    mma_bytes,
    turn_words,
    words_at,
)
from irkit.runtime.intrinsics.cuda_clusters import add_ranks, meet_cluster
from irkit.runtime.intrinsics.cuda_copies import await_copies, commit_copies, copy_async
from irkit.runtime.intrinsics.cuda_fours import load_four, store4, store_four
from irkit.runtime.intrinsics.cuda_half import bf16p, f16p, round_bfloat16, round_float16
from irkit.runtime.intrinsics.cuda_lanes import (
    group_sums,
    lane_dots,
    lane_load,
    load4,
    node_load,
    node_store,
    heap_node,
    packed_node,
    row_starts,
    rows_store,
    zeros_like,
)
from irkit.runtime.intrinsics.cuda_libdevice import as_it_is, cbrt, exp2, fma, fmod, log2, quotient
from irkit.runtime.intrinsics.cuda_mma import (
    magnitudes,
    mma_store,
    mma_store_across,
    mma_sums,
)
from irkit.runtime.intrinsics.cuda_reductions import (
    any_unsure,
    block_largest,
    block_maximum,
    block_minimum,
    block_sum,
    lanes_maximum,
    lanes_minimum,
    lanes_sum,
    warp_largest,
    warp_maximum,
    warp_minimum,
    warp_sum,
)
from irkit.runtime.intrinsics.cuda_rows import (
    dealt_sums,
    held_rows_dots,
    rows_dots,
    rows_load,
    rows_to_shared,
)
from irkit.runtime.intrinsics.cuda_softmax import (
    lowest_rows,
    mma_load,
    online_softmax,
    power_of_two,
    row_store,
    row_totals,
    scaled_terms,
    scores_within,
)
from irkit.runtime.intrinsics.cuda_tiles import (
    add32,
    divide32,
    fixed,
    mad32,
    tile_scaled,
    tile_store,
    tile_sums,
    within32,
)
from irkit.runtime.intrinsics.cuda_wgmma import (
    await_products,
    group_added,
    group_added_low,
    group_products,
    publish_tiles,
    same_in_warp,
)
from irkit.runtime.intrinsics.cuda_wgmma_columns import (
    column_products,
    column_terms,
    cut_columns,
    first_products,
    other_products,
    taken_over,
)
from irkit.runtime.intrinsics.cuda_wgmma_parts import (
    cut_weights,
    further_apart,
    joined_products,
    least_scores,
    part_products,
    still_held,
    weighted_added,
    weighted_parts,
)
from irkit.runtime.intrinsics.cuda_wgmma_scaled import (
    columns_added,
    facts_of,
    scale_columns,
    scaled_products,
    sure_columns,
)
from irkit.runtime.intrinsics.cuda_wgmma_terms import (
    aligned_place,
    copy_chunk,
    feed_rows,
    pack_terms,
    read_terms,
    round_chunks,
)
from irkit.runtime.intrinsics.cuda_turns import await_turn, give_turn
from irkit.runtime.intrinsics.cuda_row_shares import column_load, row_load, row_scaled, row_shares
from irkit.runtime.intrinsics.cuda_scaled_rows import (
    lost_of,
    row_bound,
    row_header,
    row_scale,
    scaled_sums,
    sizes_seen,
    small_terms,
    store_header,
    store_scaled,
)
from irkit.runtime.intrinsics.cuda_weighted import packed_weights, settled, weighted_products
from irkit.runtime.intrinsics.cuda_wgmma_units import (
    anew,
    copy_units,
    cut_chunks,
    power_of,
    tell_largest,
    told_exponent,
)
from irkit.runtime.intrinsics.cuda_windows import window_sums

fused = cuda.jit(device=True)
"""
"""Imports of an emitted CUDA module, and the decorator of its device functions."""

POINTERS = {
    "bfloat16": "bf16p",
    "float16": "f16p",
    "float32": "f32p",
    "float64": "f64p",
    "int8": "i8p",
    "int16": "i16p",
    "int32": "i32p",
    "int64": "i64p",
    "uint8": "u8p",
    "uint16": "u16p",
    "uint32": "u32p",
    "uint64": "u64p",
}
"""Numba type of an operand's elements -> intrinsic that makes a pointer of an address."""
