"""Choice of devices: the cut against every assignment, the flow against the copies that are inserted, and
what is sane over sizes."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from jitted import Interpreted
from xdsl.dialects import memref
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr
from xdsl.dialects.func import CallOp, FuncOp

from irkit.context import IrkitContext
from irkit.dialects.functions import function_named
from irkit.dialects.program.builder import BuiltProgram
from irkit.dialects.program.spaces import device_of_call
from irkit.driver.programs.jitted import JittedFunction
from irkit.passes.placement.choose_devices import ChooseDevices
from irkit.passes.placement.cut import Choice, cheapest
from irkit.passes.placement.flow import HOST_PART, Flow, Value, nbytes_of
from irkit.passes.placement.planning import COSTS, PLAN, Planner, placed
from irkit.passes.placement.units import Unit
from irkit.passes.program.form_regions import FormRegions
from irkit.passes.program.insert_transfers import InsertTransfers
from irkit.schedule.devices import device
from irkit.schedule.links import link_to
from tools.fuzz.effects.attempt import drawn
from tools.fuzz.effects.programs import random_program

GPU = device("h200")
LINK = link_to(GPU)


def is_legal(choice: Choice, on_gpu: Sequence[bool]) -> bool:
    """Whether what is tied to the CPU is there."""
    return not any(on_gpu[part - 1] for part in choice.tied)


def every(choice: Choice) -> list[float]:
    """The cost of each assignment that may be."""
    ways = itertools.product((False, True), repeat=len(choice.cpu))
    return [choice.cost(way) for way in ways if is_legal(choice, way)]


def random_choice(rng: random.Random) -> Choice:
    parts = rng.randint(1, 8)
    values: list[Value] = []
    for _ in range(rng.randrange(12)):
        users = set(rng.sample(range(parts + 1), rng.randint(1, min(3, parts))))
        made = Value(rng.randrange(1 << 22), rng.randint(0, parts), rng.choice((1.0, 7.0)), users)
        values.append(made)
    cpu, gpu = ([float(rng.randrange(1, 10**6)) for _ in range(parts)] for _ in range(2))
    tied = frozenset(n for n in range(1, parts + 1) if rng.random() < 0.2)
    return Choice(Flow([Unit() for _ in range(parts)], values), LINK, cpu, gpu, tied)


@pytest.mark.parametrize("seed", range(60))
def test_the_cut_is_the_cheapest_assignment(seed: int):
    choice = random_choice(random.Random(seed))
    found = cheapest(choice)
    assert is_legal(choice, found)
    # Capacities are whole nanoseconds.
    assert choice.cost(found) == pytest.approx(min(every(choice)), abs=len(choice.flow.values) + 9)


@pytest.mark.parametrize("seed", range(40))
def test_the_cut_of_a_program_is_its_cheapest_assignment(seed: int):
    """And its flow is what `insert-transfers` copies, wherever the parts are."""
    rng = random.Random(f"flow {seed}")
    program = random_program(rng, loops=False, calls=seed % 2 == 0)
    seen: list[Choice] = []

    def random_parts(choice: Choice) -> list[bool]:
        return drawn(choice, rng)

    for assign in (cheapest, random_parts):
        built = program.build()
        seen.clear()
        on_gpu: list[list[bool]] = []

        def chosen(choice: Choice, assign: Any = assign, where: Any = on_gpu) -> list[bool]:
            seen.append(choice)
            where.append(assign(choice))
            return where[-1]

        _placed(built, Planner(device("cpu2"), GPU, LINK, assign=chosen))
        choice = seen[0]
        crossing = [v for v in choice.flow.values if choice.copy_cost(v, on_gpu[0])]
        copies = [op for op in built.module.walk() if isinstance(op, memref.CopyOp)]
        assert sum(nbytes_of(op.source) for op in copies) == sum(v.nbytes for v in crossing)
        assert len(copies) == len(crossing)
        if len(choice.cpu) <= 10 and assign is cheapest:
            assert choice.cost(on_gpu[0]) == pytest.approx(min(every(choice)), abs=50)


def _placed(built: BuiltProgram, planner: Planner) -> None:
    context = IrkitContext(weights=built.weights)
    main = function_named(built.module, "main")
    assert isinstance(main, FuncOp)
    FormRegions().apply(context, built.module)
    placed(built.module, main, planner)
    InsertTransfers().apply(context, built.module)


# Sizes


def black_scholes(price: Any, strike: Any, t: Any) -> Any:
    root = 0.2 * np.sqrt(t)
    d1 = (np.log(price / strike) + 0.07 * t) / root
    return price * np.tanh(d1) - strike * np.exp(-0.05 * t) * np.tanh(d1 - root)


def norm(x: Any) -> Any:
    return np.sqrt((x * x).sum())


def product(a: Any, b: Any) -> Any:
    return (a @ b).max(axis=1)


def both(a: Any, b: Any) -> Any:
    """A product, for a GPU, and a little beside it."""
    return a @ b, a[0] + 1.0


Function = Callable[..., Any]


def traced(function: Any, args: list[Any]) -> BuiltProgram:
    """The program of a function of arrays."""
    made: list[BuiltProgram] = []

    def lower(built: BuiltProgram) -> Interpreted:
        made.append(built)
        return Interpreted(built)

    JittedFunction(function, lower).compile(*args)
    return made[0]


def plan(function: Function, *args: Any, **options: Any) -> tuple[dict[str, int], list[str]]:
    """What a function is expected to take, and where its regions are."""
    built = traced(function, list(args)).module
    context = IrkitContext()
    ChooseDevices(host="cpu2", pinned=True, **options).apply(context, built)
    main = function_named(built, "main")
    assert main is not None
    calls = [op for op in built.walk() if isinstance(op, CallOp)]
    return numbers(main.attributes[PLAN]), [device_of_call(c) for c in calls]


def numbers(attribute: object) -> dict[str, int]:
    assert isinstance(attribute, DictionaryAttr)
    found = attribute.data.items()
    return {k: v.value.data for k, v in found if isinstance(v, IntegerAttr)}


def inputs(function: Function, exponent: int) -> list[Any]:
    size = 1 << exponent
    if function in (product, both):
        side = int(size**0.5)
        return [np.empty((side, side)), np.empty((side, side))]
    return [np.empty(size) for _ in range(1 if function is norm else 3)]


@pytest.mark.parametrize("function", [black_scholes, norm, product, both])
def test_the_choice_is_sane_over_sizes(function: Function):
    for exponent in range(10, 29, 3):
        found, where = plan(function, *inputs(function, exponent))
        assert found["chosen"] <= min(found["cpu"], found["cuda"]), exponent
        if exponent == 10:
            assert set(where) == {"cpu"}, "a launch takes longer than all of it"
        if exponent == 28 and function is not norm:
            assert "cuda" in where, "arithmetic takes longer than the link"


def test_a_gpu_takes_over_once_as_sizes_grow():
    for function in (black_scholes, product):
        places = ["cuda" in plan(function, *inputs(function, n))[1] for n in range(10, 29, 2)]
        assert places == sorted(places), "from some size on, and no more back"
        assert any(places)
        assert not all(places)


def test_devices_are_forced():
    args = inputs(black_scholes, 10)
    assert plan(black_scholes, *args, device="cuda")[1] == ["cuda"]
    assert plan(black_scholes, *inputs(black_scholes, 24), device="cpu")[1] == ["cpu"]


def test_what_a_region_would_cost_elsewhere_is_what_the_plan_would():
    module = traced(both, inputs(both, 22)).module
    ChooseDevices(host="cpu2", pinned=True).apply(IrkitContext(), module)
    calls = [op for op in module.walk() if isinstance(op, CallOp)]
    assert all(numbers(call.attributes[COSTS])["moved"] >= 0 for call in calls)
    assert len({device_of_call(c) for c in calls}) == 2, "the sum of a row stays on the CPU"
    assert HOST_PART == 0
