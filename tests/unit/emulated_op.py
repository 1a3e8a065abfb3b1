"""An rOperator of a GPU, by an rKernel of one's choice, run by the emulator of templates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cuda_emulator
import numpy as np
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, i64
from xdsl.ir import BlockArgument

import irkit
from irkit.context import IrkitContext
from irkit.dialects.task import LaunchOp, ROperatorOp
from irkit.dialects.types import int_array
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.lower.task_to_numba.walkers_cuda import shared_by_blocks
from irkit.rkernels import registry
from irkit.rkernels.bind import bind
from irkit.rkernels.families import find
from irkit.rkernels.legality import root_of
from irkit.rkernels.templates import placeholders, specialise, template_source


def roperator(text: str) -> tuple[ROperatorOp, list[int]]:
    """The one rOperator of a graph, and which of the graph's inputs its operands are."""
    ctx, module = IrkitContext(), irkit.parse(text)
    register_dialects(ctx)
    for level in ("graph", "tensor", "task"):
        run_level(ctx, module, level, "h200")
    (op,) = (o for o in module.ops if isinstance(o, ROperatorOp))
    (launch,) = (o for o in module.walk() if isinstance(o, LaunchOp))
    if op.alternatives is not None:
        op.choose(op.alternatives.data[0])
    inputs = [v for v in launch.operands if isinstance(v, BlockArgument)]
    assert len(inputs) == len(launch.operands)
    return op, [v.index for v in inputs]


def run_by(
    op: ROperatorOp, name: str, arrays: Sequence[Any], results: Sequence[Any], tasks: int = 2,
    blocks: int = 1, vector: bool = True, threads: int = 64, grid: Sequence[int] | None = None,
    **given: int,
) -> str:  # fmt: skip
    """Run all rTasks of rKernel `name`, each shared by so many `blocks`; returns what was run. `vector`: all
    operands are at multiples of 16 bytes."""
    rkernel, root = registry.find("cuda", name), root_of(op)
    literals = {**rkernel.literals(root), **given}
    op.parameters = DictionaryAttr({n: IntegerAttr(v, i64) for n, v in literals.items()})
    cut = rkernel.grid or find(rkernel.family).grid
    op.grid = int_array(list(grid) if grid is not None else cut(root, tasks))
    op.vector_bytes = IntegerAttr(16, i64) if vector else None
    binding = bind(op, root, rkernel, threads)
    names = dict(binding.names)
    if blocks > 1:
        assert rkernel.spreads is not None
        names |= shared_by_blocks(threads, "THREAD" in placeholders(rkernel))
    body = specialise(template_source(rkernel), rkernel.function, "kernel", names)
    text = "\n".join([*binding.functions, body])
    flat: list[Any] = [np.ascontiguousarray(a).reshape(-1) for a in arrays]
    flat += [r.reshape(-1) for r in results]
    flat = [a.view(np.uint8) if a.dtype == bool else a for a in flat]
    shared = max(rkernel.scratch(root, literals), 64)
    rows = results[0].size // results[0].shape[-1]
    cuda_emulator.run_text(text, "kernel", flat, op.tasks, rows, threads, shared, ranks=blocks)
    return text
