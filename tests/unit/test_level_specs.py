"""Levels as data: every pass of the standard pipeline keeps them, and each kind of fault is found."""

from __future__ import annotations

import pytest
from random_graphs import RandomGraph

from irkit.context import IrkitContext
from irkit.dialects.levels import LEVELS, fault
from irkit.driver.files.context import make_context
from irkit.driver.files.parsing import parse_module
from irkit.driver.instruments.timer import Timer
from irkit.driver.pipelines.runner import PipelineRunner
from irkit.driver.pipelines.specification import build_pipeline
from irkit.driver.pipelines.standard import STANDARD, standard_pipeline
from irkit.driver.registry import all_passes, makers_of, register_dialects
from irkit.passes import PASSES

FAULTS = [
    (
        "graph",
        "func.func @f(%x: tensor<4xf32>) { %0 = arith.addf %x, %x : tensor<4xf32>  func.return }",
        "arith.addf",
        "does not belong in 'func.func'",
    ),
    (
        "graph",
        "func.func @f(%x: index) { func.return }",
        "func.func",
        "has a value of type index",
    ),
    (
        "graph",
        "func.func @f(%x: tensor<*xf32>) { func.return }",
        "func.func",
        "has a value of type tensor<*xf32>",
    ),
    (
        "tensor",
        "func.func @f(%x: tensor<4xf32>) {"
        "%0 = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>  func.return }",
        "graph.relu",
        "does not belong in 'func.func'",
    ),
    (
        "partitioned",
        "task.roperator @r(%a : tensor<8xf32>) -> tensor<8xf32> {task.yield %a : tensor<8xf32>}",
        "task.roperator",
        "has no 'rkernel', nor 'alternatives' instead",
    ),
    (
        "planned",
        "task.program @s of @main attributes {device = @d, arena_bytes = 1 : i64, row_bytes = 0 : i64} {"
        '  %w = task.buffer {space = "constant", source = "w"} : tensor<4xf32>'
        '  %h = task.buffer {space = "arena"} : tensor<4xf32> }',
        "task.buffer",
        "has no 'offset'",
    ),
    (
        "scheduled",
        "func.func @f() { %e = arith.constant 1.0 : f32 %n = math.exp %e : f32 func.return }",
        "math.exp",
        "does not belong in 'func.func'",
    ),
]


def stated() -> list[type]:
    """The passes of the standard pipeline that state their levels, in order."""
    names = [name for level in STANDARD.values() for name in level]
    return [p for p in (PASSES[n]() for n in names if n in PASSES) if hasattr(p, "produces")]


def test_the_pipeline_goes_from_level_to_level():
    before = "graph"
    for module_pass in stated():
        assert before in module_pass.requires
        before = module_pass.produces
    assert before == "verified"


def test_every_level_has_one_maker_and_schedules_have_policies():
    assert [makers_of(level) for level in list(LEVELS)[1:]] == [
        ["functionalise"],
        ["convert-graph-to-tensor"],
        ["form-roperators"],
        ["partition-rtasks"],
        ["schedule-wavefront", "schedule-auto", "schedule-list", "schedule-memory"],
        ["plan-memory"],
        ["verify-schedule"],
    ]


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_keep_their_levels(seed: int):
    model = RandomGraph(seed, 12, batch=seed % 2 == 0).model()
    ctx = IrkitContext(weights=model.weights)
    register_dialects(ctx)
    passes = build_pipeline(standard_pipeline("graph", "schedule", "test4"), all_passes())
    # The runner checks both ends of every pass.
    PipelineRunner(ctx, Timer()).run(model.module, passes)
    assert fault(model.module, LEVELS["verified"]) is None
    assert fault(model.module, LEVELS["task"]) is not None


@pytest.mark.parametrize(("level", "text", "op", "why"), FAULTS)
def test_faults_are_named(level: str, text: str, op: str, why: str):
    found = fault(parse_module(make_context("-"), text, "m.mlir"), LEVELS[level])
    assert found is not None
    assert (found.op.name, found.text) == (op, why)
