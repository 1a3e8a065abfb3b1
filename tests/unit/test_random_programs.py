"""The generator of random programs: what it covers, that what it claims holds, and that faults are found."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from math import prod

import numpy as np
import pytest
from random_graphs import RandomGraph
from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType, f32

from irkit.batch_place import BatchPlace
from irkit.context import IrkitContext
from irkit.dialects import graph
from irkit.dialects.graph import Graph
from irkit.dialects.state import state_of
from irkit.dialects.symbols import symbols
from irkit.dialects.task import ROperatorOp
from irkit.dialects.types import DYNAMIC, tensor
from irkit.driver.execution.entry_point import entry_point_of
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.frontends.module import GraphBuilder
from irkit.interp import scalars
from irkit.interp.graph import run_graph
from irkit.model_info import ModelInfo
from irkit.rkernels.legality import why_illegal
from irkit.runtime.state_memory import HostState
from irkit.schedule.devices import device
from tools.fuzz import levels, random_programs
from tools.fuzz.levels import within
from tools.fuzz.orders import DEVICES, random_grids, routes, shuffled, sized, standard
from tools.fuzz.programs import random_program
from tools.fuzz.programs.arrays import ELEMENTS
from tools.fuzz.programs.facts import of_array

SEEDS = range(800)


@pytest.fixture(scope="module")
def modules():
    return [random_program(seed, 8, seed % 3 == 0).model().module for seed in SEEDS]


def test_all_ops_element_types_and_ranks_are_covered(modules):
    ops = Counter(op.name for module in modules for op in module.walk())
    missing = {op.name for op in Graph.operations} - set(ops)
    assert not missing
    types = [
        value.type
        for module in modules
        for op in module.walk()
        for value in (*op.operands, *op.results)
        if isinstance(value.type, TensorType)
    ]
    assert {t.element_type for t in types} >= set(ELEMENTS)
    assert {len(t.get_shape()) for t in types} >= set(range(6))
    assert any(0 in t.get_shape() for t in types)


def test_outputs_are_of_every_kind(modules):
    """Inputs, constants, one value twice; and values that nothing needs."""
    found = Counter()
    for module in modules:
        main = next(iter(module.ops))
        returned = list(main.body.block.last_op.operands)
        found["several"] += len(returned) > 1
        found["twice"] += len(set(returned)) < len(returned)
        found["input"] += any(v in main.body.block.args for v in returned)
        found["constant"] += any(isinstance(v.owner, arith.ConstantOp) for v in returned)
        found["dead"] += any(not any(r.uses for r in op.results) for op in main.body.block.ops)
    assert all(found[k] > 3 for k in ("several", "twice", "input", "constant", "dead")), found


def test_batches_anywhere_and_state(modules):
    """Batches that do not lead, alone or with others folded into them, under several names; state."""
    found = Counter()
    for module in modules:
        main = next(iter(module.ops))
        shapes = [a.type.get_shape() for a in main.body.block.args]
        found["elsewhere"] += any(DYNAMIC in s[1:] for s in shapes)
        found["symbols", str(symbols(main))] += 1
        found["state"] += len(state_of(main)) > 0
        found["states"] += len(state_of(main)) > 1
        found["folded"] += any(
            isinstance(op, graph.ReshapeOp)
            and DYNAMIC in (s := op.x.type.get_shape())
            and DYNAMIC not in s[:1]
            and prod(s) != prod(op.y.type.get_shape())
            for op in main.body.block.ops
        )
    assert found["elsewhere"] > 10
    assert found["state"] > 10
    assert found["states"] > 2
    assert found["folded"] > 3
    assert len([k for k in found if k[0] == "symbols"]) == 4


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_a_route_for_one_batch_size_takes_runs_of_that_size(seed):
    program = random_program(seed, 8, True)
    route = sized(standard(random.Random(seed), "test4"), 5)
    assert route.rows == 5
    types = entry_point_of(program.model().module).inputs
    taken = [levels._is_of(arrays, types, 5) for arrays in program.runs]
    dynamic = any(DYNAMIC in t.get_shape() for t in types)
    assert taken == ([False, False, True] if dynamic else [True] * 3)
    assert random_programs.judge(seed, 8, True, [route]) is None


def test_a_fault_in_what_moves_the_batch_is_found(monkeypatch):
    def crossed(self, array):
        return np.moveaxis(array, -1, 0)

    monkeypatch.setattr(random_programs, "SHRINKING", 2.0)
    monkeypatch.setattr(BatchPlace, "to_front", crossed)
    rng = random.Random(1)
    findings = (
        random_programs.judge(seed, 4, True, [standard(rng, "test4")])
        for seed in range(300)
        if random_program(seed, 4, True).anywhere
    )
    assert any(f is not None and "tensor<" in f.data.decode() for f in findings)


def test_compiled_programs_take_batches_anywhere():
    b = GraphBuilder([("x", tensor(f32, (3, DYNAMIC)))])
    names = ModelInfo("network", ("x",), ("y",))
    model = b.finish([("y", b(graph.NegOp, b.inputs[0]))], names)
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    journey = levels.Journey(model, [[x]], within([0.0]))
    route = replace(standard(random.Random(1), "cpu1"), compiled=True)
    assert journey.follow(route) is None


def test_a_fault_in_state_is_found(monkeypatch):
    """Compiled programs that write new state late show the old one."""
    monkeypatch.setattr(random_programs, "SHRINKING", 2.0)
    monkeypatch.setattr(HostState, "read", lambda self, number: self._arrays[number] + 1)
    route = replace(standard(random.Random(1), "cpu1"), compiled=True)
    stateful = (s for s in range(300) if state_of(_main(random_program(s, 2, False))))
    finding = random_programs.judge(next(stateful), 2, False, [route])
    assert "computes something else" in finding.what


def _main(program):
    return next(iter(program.model().module.ops))


def test_a_seed_is_a_program():
    first, second = (random_program(7, 9, True) for _ in range(2))
    assert str(first.model().module) == str(second.model().module)
    for a, b in zip(first.runs, second.runs, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("seed", range(60))
def test_facts_hold(seed):
    """Every output of the interpreter lies where the generator says."""
    program = random_program(seed, 8, seed % 3 == 0)
    model = program.model()
    for inputs in program.runs:
        outputs = run_graph(model.module, model.weights, inputs)
        for value, array in zip(program.outputs, outputs, strict=True):
            claimed, seen = program.facts[value], of_array(array)
            slack = claimed.error + 1e-6 * claimed.size
            if array.size:
                assert claimed.low - slack <= seen.low or seen.low == 0.0
                assert seen.high <= claimed.high + slack or seen.high == 0.0
            assert seen.finite or not claimed.finite
            assert seen.whole or not claimed.whole


def test_orders_have_what_a_level_needs():
    rng = random.Random(3)
    for _ in range(50):
        for route in (standard(rng, "test4"), shuffled(rng, "test4")):
            passes = ",".join(route.steps).replace("schedule-list", "schedule-wavefront")
            order = ["unroll-recurrence", "convert-graph-to-tensor", "form-roperators"]
            order += ["partition-rtasks", "schedule-wavefront", "plan-memory", "verify-schedule"]
            assert sorted(order, key=passes.index) == order
    assert len({r.steps for r in (shuffled(rng, "test4") for _ in range(50))}) > 45


@pytest.mark.parametrize("name", sorted(set(DEVICES)))
def test_random_grids_are_legal_and_others(name):
    ctx, changed, left = IrkitContext(), 0, 0
    register_dialects(ctx)
    model = RandomGraph(3, 12, batch=False).model()
    ctx.weights = model.weights
    for level in ("graph", "tensor", "task"):
        run_level(ctx, model.module, level, name)
    for seed in range(8):
        module = model.module.clone()
        roperators = [op for op in module.ops if isinstance(op, ROperatorOp)]
        before = [op.alternatives for op in roperators]
        random_grids(random.Random(seed), module, name)
        module.verify()
        changed += before != [op.alternatives for op in roperators]
        for op in roperators:
            left += op.alternatives is not None
            for alternative in op.alternatives or ():
                op.choose(alternative)
                assert why_illegal(op, device(name)) is None
            assert why_illegal(op, device(name)) is None
    assert changed > 3
    assert left > 3


def test_near_is_within_the_error():
    differs = within([0.1])
    one = np.array([1.0, np.nan, np.inf], np.float32)
    assert differs([one], [one]) is None
    assert differs([one + np.float32(0.05)], [one]) is None
    assert "1.0 became 1.2" in differs([one + np.float32(0.2)], [one])
    assert "became" in differs([np.array([1.0, 0.0, np.inf], np.float32)], [one])
    assert "became" in differs([np.array([1.0, np.nan, -np.inf], np.float32)], [one])
    assert "became" in differs([one.astype(np.float64)], [one])
    assert "outputs" in differs([], [one])
    assert "became" in differs([np.array([2])], [np.array([1])])


def test_a_fault_is_found_and_shown_by_a_small_module(monkeypatch):
    """The tensor level computes max of integers wrongly: found within some programs, and shrunk to that."""
    monkeypatch.setattr(random_programs, "SHRINKING", 5.0)
    wrong = dict(scalars._FUNCTIONS)
    wrong[arith.MaxSIOp] = np.minimum
    monkeypatch.setattr(scalars, "_FUNCTIONS", wrong)
    for seed in range(200):
        rng = random.Random(seed)
        finding = random_programs.judge(seed, rng.randint(1, 6), False, routes(rng, False)[:1])
        # Other functions are made of max, and may fail otherwise.
        if finding is not None and "computes something else" in finding.what:
            break
    text = finding.data.decode()
    assert "computes something else" in finding.what
    assert f"random_program({seed}" in text
    assert text.count("graph.") <= 2
    assert "graph.max" in text or "graph.reduce" in text or "graph.clip" in text


def test_what_the_compiler_raises_is_a_finding(monkeypatch):
    from irkit.passes.tensor.fuse_elementwise import FuseElementwise

    def broken(self, ctx, op):
        raise ZeroDivisionError("no")

    monkeypatch.setattr(random_programs, "SHRINKING", 5.0)
    monkeypatch.setattr(FuseElementwise, "apply", broken)
    rng = random.Random(0)
    finding = random_programs.judge(1, 3, False, [standard(rng, "test4")])
    assert "ZeroDivisionError" in finding.what
    assert "graph." not in finding.data.decode().split("builtin.module")[1]
