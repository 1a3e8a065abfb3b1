"""The standard pipeline, as one readable table."""

from __future__ import annotations

from irkit.driver.diagnostics.diagnostic import UserError

LEVELS = ("graph", "tensor", "task", "schedule")
WAVEFRONT = "wavefront"
"""The policy of the standard pipeline; any other is a pass `schedule-<policy>` too."""

STANDARD: dict[str, list[str]] = {
    "graph": [
        "canonicalize",
        "widen-half",
        "canonicalize",
        "fold-constants",
        "fold-batch-norm",
        "unroll-recurrence",
        # Before trees become products, which stay exact.
        "set-precision",
        "batch-to-front",
        "canonicalize",
        "cse",
        "dce",
        "hoist-input-products",
        "recognise-attention",
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
        "canonicalize",
        "cse",
        "dce",
        "compose-views",
        "fuse-elementwise",
        "sink-reshapes",
        "canonicalize",
        "propagate-fastmath",
    ],
    "task": ["form-roperators", "partition-rtasks"],
    "schedule": [
        "schedule-wavefront",
        "pin-residents",
        "plan-memory",
        "select-accesses",
        "verify-schedule",
    ],
}
"""What brings a module from the level before to each level; `graph` also cleans up a graph module."""


def level_pipeline(level: str, device: str | None = None, policy: str = WAVEFRONT) -> str:
    """The passes that bring a module from the level before to `level`; `device` is the vDevice that
    `partition-rtasks` plans for, `policy` what stands for `schedule-wavefront`."""
    names = [f"schedule-{policy}" if n == f"schedule-{WAVEFRONT}" else n for n in STANDARD[level]]
    if device is not None:
        names = [f'{n}{{device="{device}"}}' if n == "partition-rtasks" else n for n in names]
    return ",".join(names)


def standard_pipeline(start: str, end: str, device: str | None = None) -> str:
    """The pipeline that takes a module at level `start` to level `end`, planned for `device`.

    Raises UserError if `end` is behind.
    """
    first, last = LEVELS.index(start), LEVELS.index(end)
    if last < first:
        raise UserError(f"the module is at the {start} level: it cannot go back to the {end} level")
    levels = LEVELS[first if start == "graph" else first + 1 : last + 1]
    return ",".join(level_pipeline(level, device) for level in levels)
