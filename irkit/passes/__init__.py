"""Same-level rewrites and lowerings, by name. Each line imports its pass only when it is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.passes import ModulePass


def _lazy(module: str, attribute: str) -> Callable[[], type[ModulePass]]:
    return lambda: getattr(importlib.import_module(f"irkit.{module}"), attribute)


PASSES: dict[str, Callable[[], type[ModulePass]]] = {
    # any level
    "canonicalize": _lazy("passes.canonicalize", "Canonicalize"),
    "cse": _lazy("passes.cse", "CommonSubexpressionElimination"),
    "set-precision": _lazy("passes.set_precision", "SetPrecision"),
    # program level
    "choose-devices": _lazy("passes.placement.choose_devices", "ChooseDevices"),
    "form-regions": _lazy("passes.program.form_regions", "FormRegions"),
    "insert-transfers": _lazy("passes.program.insert_transfers", "InsertTransfers"),
    "functionalise": _lazy("passes.program.functionalise", "Functionalise"),
    "page": _lazy("passes.program.page", "Page"),
    # graph level
    "batch-to-front": _lazy("passes.graph.batch_to_front", "BatchToFront"),
    "checks-to-limits": _lazy("passes.graph.checks_to_limits", "ChecksToLimits"),
    "cut-sums": _lazy("passes.graph.cut_sums", "CutSumsPass"),
    "differentiate": _lazy("passes.graph.differentiate", "Differentiate"),
    "fold-batch-norm": _lazy("passes.graph.fold_batch_norm", "FoldBatchNorm"),
    "fold-constants": _lazy("passes.graph.fold_constants", "FoldConstants"),
    "fold-into-products": _lazy("passes.graph.fold_into_products", "FoldIntoProducts"),
    "fold-into-thresholds": _lazy("passes.graph.fold_into_thresholds", "FoldIntoThresholds"),
    "group-heads": _lazy("passes.graph.group_heads", "GroupHeads"),
    "hoist-from-loops": _lazy("passes.graph.hoist_from_loops", "HoistFromLoops"),
    "hoist-input-products": _lazy("passes.graph.hoist_input_products", "HoistInputProducts"),
    "join-product-sums": _lazy("passes.graph.join_product_sums", "JoinProductSumsPass"),
    "halve-symmetric-products": _lazy(
        "passes.graph.halve_symmetric_products", "HalveSymmetricProducts"
    ),
    "join-products": _lazy("passes.graph.join_products", "JoinProducts"),
    "sum-bins": _lazy("passes.graph.sum_bins", "SumBinsPass"),
    "vectorise-loops": _lazy("passes.graph.vectorise_loops", "VectoriseLoops"),
    "narrow-loops": _lazy("passes.graph.narrow_loops", "NarrowLoops"),
    "unroll-elementwise-loops": _lazy(
        "passes.graph.unroll_elementwise_loops", "UnrollElementwiseLoops"
    ),
    "lead-with-moving-dims": _lazy("passes.graph.lead_with_moving_dims", "LeadWithMovingDims"),
    "outline-loops": _lazy("passes.graph.outline_loops", "OutlineLoops"),
    "pads-to-concat": _lazy("passes.graph.pads_to_concat", "PadsToConcat"),
    "quantise-products": _lazy("passes.graph.quantise_products", "QuantiseProducts"),
    "unpack-nibbles": _lazy("passes.graph.unpack_nibbles", "UnpackNibblesPass"),
    "read-as-it-lies": _lazy("passes.graph.read_as_it_lies", "ReadAsItLiesPass"),
    "recompute-parts": _lazy("passes.graph.recompute_parts", "RecomputeParts"),
    "write-out-attention": _lazy("passes.graph.write_out_attention", "WriteOutAttention"),
    "write-out-softmax": _lazy("passes.graph.write_out_softmax", "WriteOutSoftmax"),
    "recognise-attention": _lazy("passes.graph.recognise_attention", "RecogniseAttention"),
    "recognise-layer-norm": _lazy("passes.graph.recognise_layer_norm", "RecogniseLayerNorm"),
    "recognise-row-expressions": _lazy(
        "passes.graph.recognise_row_expressions", "RecogniseRowExpressions"
    ),
    "recognise-softmax": _lazy("passes.graph.recognise_softmax", "RecogniseSoftmax"),
    "rows-to-csr": _lazy("passes.graph.rows_to_csr", "RowsToCsr"),
    "select-first": _lazy("passes.graph.select_first", "SelectFirst"),
    "share-convolutions": _lazy("passes.graph.share_convolutions", "ShareConvolutions"),
    "gather-gates": _lazy("passes.graph.gather_gates", "GatherGatesPass"),
    "share-joined-factors": _lazy("passes.graph.share_joined_factors", "ShareJoinedFactors"),
    "share-products": _lazy("passes.graph.share_products", "ShareProducts"),
    "select-transposed-form": _lazy("passes.graph.select_transposed_form", "SelectTransposedForm"),
    "select-tree-strategy": _lazy("passes.graph.select_tree_strategy", "SelectTreeStrategy"),
    "split-attention": _lazy("passes.graph.split_attention", "SplitAttention"),
    "split-reductions": _lazy("passes.graph.split_reductions", "SplitReductions"),
    "slice-first": _lazy("passes.graph.slice_first", "SliceFirst"),
    "specialise-batch": _lazy("passes.graph.specialise_batch", "SpecialiseBatch"),
    "tree-to-gemm": _lazy("passes.graph.tree_to_gemm", "TreeToGemm"),
    "tree-to-perfect-traversal": _lazy(
        "passes.graph.tree_to_perfect_traversal", "TreeToPerfectTraversal"
    ),
    "tree-to-traversal": _lazy("passes.graph.tree_to_traversal", "TreeToTraversal"),
    "unroll-recurrence": _lazy("passes.graph.unroll_recurrence", "UnrollRecurrence"),
    "widen-half": _lazy("passes.graph.widen_half", "WidenHalf"),
    # graph level, of functions of a group
    "bucket-all-reduces": _lazy("passes.dist.bucket_all_reduces", "BucketAllReduces"),
    "place-in-group": _lazy("passes.dist.place_in_group", "PlaceInGroup"),
    "split-at-collectives": _lazy("passes.dist.split_at_collectives", "SplitAtCollectives"),
    # tensor level
    "repeat-elementwise": _lazy("passes.tensor.repeat_elementwise", "RepeatElementwise"),
    "put-channels-last": _lazy("passes.tensor.put_channels_last", "PutChannelsLast"),
    "compose-views": _lazy("passes.tensor.compose_views", "ComposeViews"),
    "fuse-elementwise": _lazy("passes.tensor.fuse_elementwise", "FuseElementwise"),
    "read-matrix-once": _lazy("passes.tensor.read_matrix_once", "ReadMatrixOnce"),
    "fuse-rows": _lazy("passes.tensor.fuse_rows", "FuseRows"),
    "group-products": _lazy("passes.tensor.group_products", "GroupProducts"),
    "join-epilogues": _lazy("passes.tensor.join_epilogues", "JoinEpilogues"),
    "join-siblings": _lazy("passes.tensor.join_siblings", "JoinSiblings"),
    "keep-operands": _lazy("passes.tensor.keep_operands", "KeepOperands"),
    "pack-forests": _lazy("passes.tensor.pack_forests", "PackForests"),
    "hoist-input-terms": _lazy("passes.tensor.hoist_input_terms", "HoistInputTerms"),
    "sink-light-reshapes": _lazy("passes.tensor.sink_reshapes", "SinkLightReshapes"),
    "sink-expansions": _lazy("passes.tensor.sink_expansions", "SinkExpansions"),
    "sink-reshapes": _lazy("passes.tensor.sink_reshapes", "SinkReshapes"),
    "propagate-fastmath": _lazy("passes.tensor.propagate_fastmath", "PropagateFastmath"),
    # task level
    "carry-values": _lazy("passes.task.carry_values", "CarryValues"),
    "form-roperators": _lazy("passes.task.form_roperators", "FormROperators"),
    "link-parts": _lazy("passes.task.link_parts", "LinkParts"),
    "measure-library-calls": _lazy("driver.measuring.measure_library_calls", "MeasureLibraryCalls"),
    "measure-rtasks": _lazy("driver.measuring.measure_rtasks", "MeasureRTasks"),
    "pack-filters": _lazy("passes.task.pack_filters", "PackFilters"),
    "pack-factors": _lazy("passes.task.pack_factors", "PackFactors"),
    "pack-products": _lazy("passes.task.pack_products", "PackProducts"),
    "partition-rtasks": _lazy("passes.task.partition_rtasks", "PartitionRTasks"),
    "pin-residents": _lazy("passes.task.pin_residents", "PinResidents"),
    "plan-memory": _lazy("passes.task.plan_memory", "PlanMemory"),
    # The usual policy first: it is named to who needs a schedule.
    "schedule-wavefront": _lazy("passes.task.schedule_wavefront", "ScheduleWavefront"),
    "schedule-auto": _lazy("passes.task.schedule_list", "ScheduleAuto"),
    "schedule-list": _lazy("passes.task.schedule_list", "ScheduleList"),
    "schedule-memory": _lazy("passes.task.schedule_memory", "ScheduleMemory"),
    "rematerialise": _lazy("passes.task.rematerialise", "Rematerialise"),
    "select-accesses": _lazy("passes.task.select_accesses", "SelectAccesses"),
    "split-cells": _lazy("passes.task.split_cells", "SplitCells"),
    "turn-factors": _lazy("passes.task.turn_factors", "TurnFactors"),
    "verify-schedule": _lazy("passes.task.verify_schedule", "VerifySchedule"),
    # DAGs of kernels
    "lower-to-host": _lazy("passes.host.lower_to_host", "LowerToHost"),
    "assign-streams": _lazy("passes.host.assign_streams", "AssignStreams"),
    "verify-streams": _lazy("passes.host.verify_streams", "VerifyStreams"),
    # between levels
    "convert-graph-to-tensor": _lazy("lower.graph_to_tensor.convert", "ConvertGraphToTensor"),
}
