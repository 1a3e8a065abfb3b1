"""Pipelines other than the standard one that must compute the same, and grids other than the cheapest."""

from __future__ import annotations

import random

from xdsl.dialects.builtin import FloatAttr, ModuleOp, f64

from irkit.dialects.roots import find_root
from irkit.dialects.task import ROperatorOp
from irkit.dialects.types import int_array
from irkit.errors import UnsupportedError
from irkit.passes.task.partition_rtasks import grid_for
from irkit.rkernels import registry
from irkit.schedule.devices import device

CLEANING = ("canonicalize", "cse", "dce")
GRAPH = (*CLEANING, "fold-constants", "fold-batch-norm", "select-tree-strategy")
TREES = ("tree-to-gemm", "tree-to-traversal", "tree-to-perfect-traversal")
TENSOR = (*CLEANING, "fuse-elementwise", "fuse-elementwise")
DEVICES = ("test4", "test4", "cpu1", "cpu2", "cpu3", "cpu7", "h200")


def random_passes(rng: random.Random, name: str) -> list[tuple[str, str]]:
    """(level, pipeline) of each step down to a verified schedule on the vDevice `name`, in any legal
    order: what a level must have is there once at least, the rest as it comes."""

    def some(names: tuple[str, ...], most: int) -> list[str]:
        return rng.choices(names, k=rng.randint(0, most))

    # Recurrences are unrolled before, and strategies chosen before what they choose.
    graph = [*some(GRAPH, 4), "unroll-recurrence", *some(GRAPH, 3), "select-tree-strategy"]
    for step in TREES:
        graph += [step, *some(GRAPH, 1)]
    tensor = ["convert-graph-to-tensor", *some(TENSOR, 5)]
    task = ["form-roperators", f'partition-rtasks{{device="{name}"}}']
    residents = ["pin-residents"] * (rng.random() < 0.7)
    schedule = ["schedule-wavefront", *residents, "plan-memory", "verify-schedule"]
    return [
        (level, ",".join(names))
        for level, names in zip(
            ("graph", "tensor", "task", "schedule"), (graph, tensor, task, schedule), strict=True
        )
    ]


def standard_passes(name: str) -> list[tuple[str, str]]:
    """(level, pipeline) of each step of the standard pipeline."""
    from irkit.driver.pipelines.standard import STANDARD

    with_device = {"partition-rtasks": f'partition-rtasks{{device="{name}"}}'}
    return [
        (level, ",".join(with_device.get(n, n) for n in names)) for level, names in STANDARD.items()
    ]


def random_grids(rng: random.Random, module: ModuleOp, name: str) -> None:
    """Give some rOperators of a partitioned module another rKernel and grid that are legal too."""
    vdevice = device(name)
    target = "cuda" if vdevice.kind == "cuda" else "cpu"
    for op in module.ops:
        if not isinstance(op, ROperatorOp) or rng.random() < 0.4:
            continue
        root = find_root(op.body.block)
        tasks = rng.choice((1, 2, 3, 4, 5, 7, 16))
        known = registry.by_name(op.rkernel.data) if hasattr(registry, "by_name") else None
        fits = [k for k in registry.candidates(target, root) if k.name == op.rkernel.data]
        if not fits and known is None:
            raise UnsupportedError(f"no rKernel {op.rkernel}")
        op.grid = int_array(grid_for(root, tasks, fits[0]))
        op.cost = FloatAttr(rng.uniform(10.0, 1e5), f64)
