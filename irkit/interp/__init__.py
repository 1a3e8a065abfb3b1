"""The NumPy meaning of each level: `run_module` picks the interpreter that a module's ops need."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from irkit.dialects.levels import ASKED, NUMBERS, SLICES, TENSOR_DIALECTS, kind_of

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation

    from irkit.weights import Array

LEVELS = ("program", "graph", "tensor", "task", "schedule")
_INTERPRETERS = {level: f"irkit.interp.{level}" for level in LEVELS}


def level_of(module: ModuleOp) -> str:
    """The level of `module`: the lowest that any of its ops belongs to; "graph" if none says more.

    A module with a `task.program` is at the schedule level, one with arrays at the program level, whatever
    stands beside it."""
    level, slices, graph = "graph", False, False
    for op in module.walk():
        if _has_arrays(op):
            return "program"
        dialect, _, name = op.name.partition(".")
        if op.name == "task.program":
            return "schedule"
        if dialect == "task" and name != "vdevice":
            level = "task"
        elif op.name in SLICES | NUMBERS | ASKED:
            slices = True
        elif dialect in TENSOR_DIALECTS and level == "graph":
            level = "tensor"
        graph = graph or dialect == "graph"
    # Slices of arrays stand at the graph level too.
    return "tensor" if level == "graph" and slices and not graph else level


def _has_arrays(op: Operation) -> bool:
    values = [*op.results, *(a for r in op.regions for b in r.blocks for a in b.args)]
    return op.name.startswith("program.") or any(kind_of(v.type) == "array" for v in values)


def run_module(
    module: ModuleOp,
    weights: Mapping[str, Array],
    inputs: Sequence[Array],
    level: str | None = None,
    **options: Any,
) -> list[Array]:
    """The outputs of `@main` for `inputs`, by the interpreter of `level`, by default the module's.

    A scheduled module runs at the task level too: it keeps the function that its schedule computes. Arrays
    are as the caller of `@main` sees them, wherever `batch-to-front` has put their batch.
    `options` go to that interpreter (the schedule's takes `seed`, which picks an interleaving).
    """
    from irkit.interp.border import from_caller, to_caller

    level = level or level_of(module)
    interpreter = importlib.import_module(_INTERPRETERS[level])
    run = getattr(interpreter, f"run_{level}")
    outputs = run(module, weights, from_caller(module, inputs), **options)
    return to_caller(module, outputs)
