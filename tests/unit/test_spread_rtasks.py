"""Elementwise rTasks that run alone on a GPU are shared by as many blocks as have something to do."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import irkit
from irkit.context import IrkitContext
from irkit.dialects.task import ROperatorOp
from irkit.driver.compiler.models import read_model
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.lower.task_to_numba.emit import print_roperator
from irkit.lower.task_to_numba.program import describe
from irkit.lower.task_to_numba.target_cuda import SPREAD
from irkit.runtime.artifact import LEVELS
from irkit.runtime.cuda.executor import CudaExecutor

TEXT = """
func.func @main(%x: tensor<{0}xf32>, %y: tensor<{0}xf32>) -> (tensor<{0}xf32>, tensor<{0}xf32>) {{
  %a = graph.add %x, %y : (tensor<{0}xf32>, tensor<{0}xf32>) -> tensor<{0}xf32>
  %b = graph.mul %a, %y : (tensor<{0}xf32>, tensor<{0}xf32>) -> tensor<{0}xf32>
  func.return %a, %b : tensor<{0}xf32>, tensor<{0}xf32>
}}
"""


def emitted(elements: int) -> tuple[Any, str, int]:
    """The one rOperator's binding, its text, and how many rTasks it has."""
    imported = read_model(irkit.parse(TEXT.format(elements)), "float32")
    ctx = IrkitContext(weights=imported.weights)
    register_dialects(ctx)
    for level in LEVELS:
        run_level(ctx, imported.module, level, "h200")
    (op,) = [o for o in imported.module.ops if isinstance(o, ROperatorOp)]
    program = describe(imported.module, imported.weights)
    binding, text = print_roperator(op, program, "cuda")
    return binding, text, op.tasks


@pytest.mark.parametrize("elements", [200_003, 600_000])
@pytest.mark.parametrize("blocks", [1, 2, 3, 5])
def test_blocks_write_each_element_once(elements: int, blocks: int) -> None:
    binding, text, tasks = emitted(elements)
    assert binding.spread == math.ceil(math.ceil(elements / tasks) / 256) > 1
    x, y = np.random.default_rng(blocks).random((2, elements), np.float32)
    written = np.zeros(elements, np.int64)

    class Counted:
        """A result that counts."""

        def __init__(self) -> None:
            self.values = np.zeros(elements, np.float32)

        def __setitem__(self, at: int, value: float) -> None:
            written[at] += 1
            self.values[at] = value

    sums, products = Counted(), Counted()
    place = SimpleNamespace(block=0, thread=0)
    names: dict[str, Any] = {
        "fused": lambda function: function,
        "divide": divmod,
        "in_one_row": lambda element, width: (0, element),
        "thread_index": lambda: place.thread,
        "block_index": lambda: place.block,
        "block_count": lambda: tasks * blocks,
        "float32": np.float32,
    }
    exec(compile(text, "<rKernel>", "exec"), names)
    # Of a few rTasks: all of their blocks, all threads.
    task = tasks // 2
    for place.block in range(task * blocks, (task + 1) * blocks):
        for place.thread in range(256):
            names[binding.symbol + SPREAD](place.block // blocks, tasks, 1, 0, x, y, sums, products)
    first, last = elements * task // tasks, elements * (task + 1) // tasks
    assert written.sum() == 2 * (last - first)
    assert (written[first:last] == 2).all()
    assert (sums.values[first:last] == (x + y)[first:last]).all()
    assert (products.values[first:last] == ((x + y) * y)[first:last]).all()


def test_rtasks_with_little_to_do_have_one_block() -> None:
    binding, text, _ = emitted(1000)
    assert binding.spread == 1
    assert SPREAD not in text


@pytest.mark.parametrize(
    ("most", "fit", "tasks", "wanted"),
    [(8, 2, 10, 20), (2, 8, 10, 20), (8, 3, 200, 200), (1, 8, 10, 10), (5, 3, 14, 28)],
)
def test_no_more_blocks_share_than_run_at_once(
    most: int, fit: int, tasks: int, wanted: int
) -> None:
    kernel = SimpleNamespace(blocks_per_multiprocessor=fit)
    executor: Any = SimpleNamespace(
        facts=SimpleNamespace(spread=(most,), batch=(False,), clusters=()),
        ops=[kernel],
        device=SimpleNamespace(multiprocessors=10),
    )
    assert CudaExecutor.blocks(executor, 0, tasks, 1) == wanted
