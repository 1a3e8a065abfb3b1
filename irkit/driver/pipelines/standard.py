"""The standard pipeline, as one readable table."""

from __future__ import annotations

from irkit.driver.diagnostics.diagnostic import UserError

LEVELS = ("graph", "tensor", "task", "schedule")
"""Levels of values. A program of arrays, above them, is made one of values by `functionalise`."""
WAVEFRONT = "wavefront"
"""The policy of the standard pipeline; any other is a pass `schedule-<policy>` too."""

STANDARD: dict[str, list[str]] = {
    "graph": [
        "sum-bins",
        "vectorise-loops",
        "hoist-from-loops",
        "read-as-it-lies",
        "narrow-loops",
        "lead-with-moving-dims",
        "unroll-elementwise-loops",
        # What follows is of functions without loops.
        "outline-loops",
        "write-out-attention",
        "write-out-softmax",
        "canonicalize",
        "widen-half",
        "canonicalize",
        "unpack-nibbles",
        # While weights are 8 bits.
        "quantise-products",
        "fold-constants",
        "fold-batch-norm",
        "checks-to-limits",
        "dce",
        # What is no longer computed is not selected from; and what selections leave is folded.
        "fold-into-thresholds",
        "fold-into-products",
        "select-first",
        "fold-into-products",
        "unroll-recurrence",
        # Before trees become products, which stay exact.
        "set-precision",
        "recompute-parts",
        "batch-to-front",
        "canonicalize",
        "cse",
        "dce",
        "hoist-input-products",
        "recognise-row-expressions",
        "join-product-sums",
        "split-reductions",
        "cut-sums",
        "halve-symmetric-products",
        "share-products",
        "share-convolutions",
        "select-transposed-form",
        # Behind what cuts the sums of statements: those of a recurrence's steps stay whole.
        "gather-gates",
        "share-joined-factors",
        # Behind what finds the parts of a joined gradient by their pads.
        "pads-to-concat",
        "slice-first",
        "recognise-softmax",
        "recognise-attention",
        "group-heads",
        "split-attention",
        "join-products",
        "recognise-layer-norm",
        "select-tree-strategy",
        "tree-to-gemm",
        "tree-to-traversal",
        "tree-to-perfect-traversal",
        "canonicalize",
        "cse",
        "dce",
    ],
    "tensor": [
        "convert-graph-to-tensor",
        "pack-forests",
        "canonicalize",
        "cse",
        "dce",
        "compose-views",
        "read-matrix-once",
        "hoist-input-terms",
        "sink-light-reshapes",
        "fuse-elementwise",
        "repeat-elementwise",
        "fuse-rows",
        "group-products",
        "sink-reshapes",
        "sink-expansions",
        "put-channels-last",
        "canonicalize",
        # Weights put side by side in every step of a recurrence are one constant.
        "cse",
        "join-epilogues",
        "join-siblings",
        # What siblings that became one computed twice.
        "cse",
        "keep-operands",
        "propagate-fastmath",
    ],
    "task": [
        "form-roperators",
        "split-cells",
        "turn-factors",
        "pack-factors",
        "pack-products",
        "pack-filters",
        "partition-rtasks",
    ],
    "schedule": [
        "schedule-wavefront",
        "carry-values",
        "pin-residents",
        "plan-memory",
        "link-parts",
        "select-accesses",
        "verify-schedule",
    ],
}
"""What brings a module from the level before to each level; `graph` also cleans up a graph module."""


CANDIDATES = 10
"""Alternatives of an rOperator that are measured at most."""


def level_pipeline(
    level: str,
    device: str | None = None,
    policy: str = WAVEFRONT,
    measure: bool = False,
    recompute: str = "",
) -> str:
    """The passes that bring a module from the level before to `level`; `device` is the vDevice that
    `read-as-it-lies`, `unpack-nibbles`, `recompute-parts`, `write-out-attention`, `write-out-softmax`,
    `join-product-sums`, `gather-gates`, `share-joined-factors`, `split-reductions`, `cut-sums`,
    `halve-symmetric-products`, `share-products`, `share-convolutions`, `select-transposed-form`,
    `recognise-softmax` (of rows, on a CPU alone), `split-attention`, `join-products`, `pack-forests`,
    `compose-views`, `read-matrix-once`, `hoist-input-terms`, `repeat-elementwise`, `fuse-rows`,
    `sink-light-reshapes`, `put-channels-last`, `join-epilogues`, `join-siblings`, `keep-operands`,
    `form-roperators`, `split-cells`, `turn-factors`, `pack-factors`, `pack-products`, `pack-filters` and
    `partition-rtasks` plan for, `policy` what stands for `schedule-wavefront`, and `recompute` the pass
    before it, if any. With `measure`, what `partition-rtasks` offers is measured on that device, which has to
    be at hand."""
    special = {
        **{
            name: _planned(name, device)
            for name in (
                "read-as-it-lies",
                "unpack-nibbles",
                "recompute-parts",
                "write-out-attention",
                "write-out-softmax",
                "join-product-sums",
                "gather-gates",
                "share-joined-factors",
                "split-reductions",
                "cut-sums",
                "halve-symmetric-products",
                "share-products",
                "share-convolutions",
                "select-transposed-form",
                "split-attention",
                "join-products",
                "pack-forests",
                "compose-views",
                "read-matrix-once",
                "hoist-input-terms",
                "repeat-elementwise",
                "fuse-rows",
                "sink-light-reshapes",
                "put-channels-last",
                "join-epilogues",
                "join-siblings",
                "keep-operands",
                "split-cells",
                "turn-factors",
                "pack-factors",
                "pack-products",
                "pack-filters",
            )
        },
        # A GPU's blocks go through rows of one another as they are written.
        "recognise-softmax": _planned("recognise-softmax", device, "rows=true"),
        "partition-rtasks": _partition(device, measure),
        # What is cheap can be computed again without the product that it would be fused with.
        "form-roperators": _planned(
            "form-roperators", device, *(["apart=true"] if "budget" in recompute else [])
        ),
        f"schedule-{WAVEFRONT}": ",".join(filter(None, (recompute, f"schedule-{policy}"))),
    }
    return ",".join(special.get(name, name) for name in STANDARD[level])


def _partition(device: str | None, measure: bool) -> str:
    if not measure:
        return _planned("partition-rtasks", device)
    offered = _planned("partition-rtasks", device, f"candidates={CANDIDATES}")
    return f"{offered},measure-rtasks,measure-library-calls"


def _planned(name: str, device: str | None, *options: str) -> str:
    """A pass with its options, one of which is the vDevice."""
    given = [*([] if device is None else [f'device="{device}"']), *options]
    return f"{name}{{{' '.join(given)}}}" if given else name


def standard_pipeline(
    start: str, end: str, device: str | None = None, measure: bool = False
) -> str:
    """The pipeline that takes a module at level `start` to level `end`, planned for `device`; with `measure`,
    by what is measured there.

    Raises UserError if `end` is behind.
    """
    if start == "program":
        made = standard_pipeline("graph", end, device, measure)
        return f"functionalise,{made}"
    first, last = LEVELS.index(start), LEVELS.index(end)
    if last < first:
        raise UserError(f"the module is at the {start} level: it cannot go back to the {end} level")
    levels = LEVELS[first if start == "graph" else first + 1 : last + 1]
    return ",".join(level_pipeline(level, device, measure=measure) for level in levels)
