"""Slices that are written in place: NumPy's results, loops of their own, and nothing stored that does not
change."""

from __future__ import annotations

import dataclasses
from typing import Any

import cpu_emulator
import numpy as np
import pytest
from emulated_loops import Emulated, register_gpu4

import irkit
from irkit.dialects.task import ROperatorOp
from irkit.rkernels import registry
from irkit.rkernels.bind import bind
from irkit.rkernels.in_place import refuses_in_place
from irkit.rkernels.legality import root_of

Boxes = list[tuple[int, bool, tuple[slice, ...]]]


def drawn(seed: int) -> tuple[Any, Any, Any, int]:
    """A function that writes random slices, with steps, of two arrays of each other; the arrays; its
    rounds."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(3, 9, int(rng.integers(1, 4))))
    steps = [
        (int(rng.integers(4)), bool(rng.integers(2)), _box(rng, shape))
        for _ in range(int(rng.integers(1, 4)))
    ]
    rounds = int(rng.choice([1, 7]))
    upper, lower = (tuple(s for _ in shape) for s in (slice(1, None), slice(None, -1)))
    back = tuple(slice(None, None, -1) for _ in shape)

    def step(a: Any, b: Any) -> None:
        for kind, turned, box in steps:
            target, source = (b, a) if turned else (a, b)
            if kind == 0:
                target[box] = source[box] * 0.5 + target[box]
            elif kind == 1:
                target[box] += source[box]
            elif kind == 2:
                target[box] = 0.25 * source[back][box] - target[box]
            else:
                target[upper] = 0.5 * (source[lower] + target[upper]) + 0.125 * target[lower]

    def function(a: Any, b: Any) -> None:
        for _ in irkit.range(rounds):
            step(a, b)

    return function, rng.standard_normal(shape), rng.standard_normal(shape), rounds


def _box(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[slice, ...]:
    found: list[slice] = []
    for size in shape:
        start = int(rng.integers(size))
        stop = int(rng.integers(start + 1, size + 1))
        found.append(slice(start, stop, int(rng.integers(1, 4))))
    return tuple(found)


@pytest.mark.parametrize("seed", range(10))
def test_random_slices(seed: int) -> None:
    function, a, b, _ = drawn(seed)
    wanted, given = [a.copy(), b.copy()], [a.copy(), b.copy()]
    function(*wanted)
    irkit.jit(target="cpu", cache=False)(function)(*given)
    assert all(np.array_equal(g, w) for g, w in zip(given, wanted, strict=True))


@pytest.mark.parametrize("seed", [s for s in range(60) if drawn(s)[3] > 1][:6])
def test_random_slices_in_loops_on_a_gpu(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """The emitted kernels, blocks in random orders. (A GPU's compiler may contract: what it computes here is
    exact in both ways, or close.)"""
    register_gpu4(monkeypatch)
    function, a, b, _ = drawn(seed)
    made = irkit.jit(target="cuda", device="gpu4", cache=False)(function).compile(a, b)
    artifact: Any = made._last.runner._runner._variant.artifact  # pyright: ignore
    run = Emulated(monkeypatch, artifact.source, artifact.weights, "persistent", seed)
    wanted = {"a": a.copy(), "b": b.copy()}
    function(*wanted.values())
    given = [{"a": a, "b": b}[port.name].copy() for port in run.executor.program.inputs]
    for port, array in zip(run.executor.program.outputs, run(*given), strict=True):
        np.testing.assert_allclose(array, wanted[port.name], rtol=1e-13)


def stencil(a: Any, b: Any) -> None:
    """A turn writes the interior of each array once."""
    for _ in irkit.range(6):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1])


def fields(a: Any, b: Any) -> None:
    """Each array is updated of itself and of the other."""
    for _ in irkit.range(6):
        a[0, :] = 0.5
        a[1:, :] -= 0.5 * (b[1:, :] - b[:-1, :])
        b[:-1, :-1] -= 0.7 * (a[:-1, 1:] - a[:-1, :-1] + a[1:, :-1])


@pytest.mark.parametrize("function", [stencil, fields])
def test_a_turn_has_a_launch_an_array(function: Any) -> None:
    """What is inserted is read from the array, not kept besides; in loops nothing is copied."""
    made = irkit.jit(target="cpu", cache=False)(function)
    made.compile(np.ones((9, 9)), np.ones((9, 9)))
    turn = made.ir("task").partition("func.func @main_part0(")[2].partition("func.return")[0]
    assert turn.count("task.launch") == 2
    assert "_in_place_store_within" in made.source


KIND = "tensor<7x9xf32>"


def inserting(body: str, inputs: str, rkernel: str) -> ROperatorOp:
    """An rOperator that inserts slices into its last operand, and may do so in place; inputs without that."""
    number = inputs.count("%")
    module = irkit.parse(f"""task.roperator @f({inputs}, %d: {KIND}) -> {KIND}
    attributes {{grid = array<i64: 2, 1>, rkernel = "{rkernel}", parameters = {{}},
                 in_place = array<i64: {number}, 0>}} {{
  {body}
  task.yield %r : {KIND}
}}""")
    return next(op for op in module.ops if isinstance(op, ROperatorOp))


ONE = f"%r = tensor.insert_slice %x into %d[1, 2] [2, 3] [3, 2] : tensor<2x3xf32> into {KIND}"
LATER = "%r = tensor.insert_slice %y into %q{place} [1, 4] [1, 1] : tensor<1x4xf32> into {kind}"
FIRST = f"%q = tensor.insert_slice %x into %d[1, 2] [4, 5] [1, 1] : tensor<4x5xf32> into {KIND}"
BODIES = {
    "steps": (ONE, "%x: tensor<2x3xf32>", [(2, 3)]),
    "hidden": (
        FIRST + "\n  " + LATER.format(place="[2, 0]", kind=KIND),
        "%x: tensor<4x5xf32>, %y: tensor<1x4xf32>",
        [(4, 5), (1, 4)],
    ),
    "apart": (
        FIRST + "\n  " + LATER.format(place="[6, 5]", kind=KIND),
        "%x: tensor<4x5xf32>, %y: tensor<1x4xf32>",
        [(4, 5), (1, 4)],
    ),
}


def inserted(case: str, given: list[Any], dest: Any) -> Any:
    """By NumPy."""
    made = dest.copy()
    if case == "steps":
        made[1:5:3, 2:8:2] = given[0]
        return made
    made[1:5, 2:7] = given[0]
    made[(2, slice(0, 4)) if case == "hidden" else (6, slice(5, 9))] = given[1][0]
    return made


@pytest.mark.parametrize("in_place", [False, True], ids=["elsewhere", "in-place"])
@pytest.mark.parametrize("rkernel", ["map.rows", "map.inserted"])
@pytest.mark.parametrize("case", BODIES)
def test_slices_have_loops_of_their_own(
    monkeypatch: pytest.MonkeyPatch, case: str, rkernel: str, in_place: bool
) -> None:
    """In place and elsewhere, with what a later slice hides, and steps."""
    monkeypatch.setattr("irkit.rkernels.binding.binder.always_in_place", lambda *_: in_place)
    body, inputs, shapes = BODIES[case]
    op, kernel = inserting(body, inputs, rkernel), registry.find("cpu", rkernel)
    binding = bind(op, root_of(op), kernel, 1)
    assert refuses_in_place(op, kernel, binding) is None
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    dest = rng.standard_normal((7, 9)).astype(np.float32)
    wanted, made = inserted(case, given, dest), dest if in_place else np.full_like(dest, np.nan)
    for task in range(2):
        cpu_emulator.run(kernel, binding, [*given, dest, made], task, 2, 7)
    np.testing.assert_array_equal(made, wanted)


CHANGES = [
    ("read elsewhere", "p2[r * 9 + j] = ", "v9 = p2[r * 9 + 1]\n    p2[r * 9 + j] = v9 + "),
    ("read late", "= v0", "= v0\n    v9 = p1[r * 9 + j]"),
    ("stored twice", "= v0", "= v0\n    p2[r * 9 + j] = v0"),
    ("stored elsewhere", "p2[r * 9 + j] = ", "p2[r * 9 + 1] = "),
    ("handed on", "= v0", "= other(p1, v0)"),
]


@pytest.mark.parametrize("change", CHANGES, ids=[c[0] for c in CHANGES])
def test_what_is_printed_is_held_to_it(change: tuple[str, str, str]) -> None:
    """One change of one function that stores."""
    text = "v0 = p1[r * 9 + j]\n    p2[r * 9 + j] = v0\n"
    op = inserting(ONE, "%x: tensor<2x3xf32>", "map.inserted")
    kernel = registry.find("cpu", "map.inserted")
    binding = bind(op, root_of(op), kernel, 1)
    names = dict(binding.names)

    def with_store(body: str) -> Any:
        functions = [f for f in binding.functions if "f_store_within" not in f]
        functions.append(f"@fused\ndef f_store_within(p0, p1, p2, r, j):\n    {body}")
        return dataclasses.replace(binding, functions=functions, names=names)

    assert refuses_in_place(op, kernel, with_store(text)) is None
    assert change[1] in text
    changed = with_store(text.replace(change[1], change[2]))
    assert refuses_in_place(op, kernel, changed) is not None
