"""Programs of arrays as functions of values, held against NumPy."""

from __future__ import annotations

import random

import numpy as np
import pytest
from xdsl.dialects.builtin import f64, i64

from irkit.context import IrkitContext
from irkit.dialects import graph
from irkit.dialects.program.builder import BuiltProgram, ProgramBuilder
from irkit.dialects.program.views import Affine, StridedView, buffer_type
from irkit.dialects.state import state_of
from irkit.interp.program import Execution
from irkit.passes.program.decode import decoded
from irkit.passes.program.functionalise import Functionalise, functionalised
from irkit.passes.program.places import Place, Relation, inner, relation
from irkit.weights import WeightStore
from tools.fuzz.effects.attempt import attempt, disagreement
from tools.fuzz.effects.programs import Program, random_program
from tools.fuzz.effects.views import random_view


def values(built: BuiltProgram):
    return functionalised(built.module.body.block.first_op, built.weights)


def names(function) -> list[str]:
    return [op.name for op in function.walk()]


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_mean_what_numpy_does(seed: int):
    finding = attempt(random.Random(f"functionalise {seed}"))
    assert finding is None, f"{finding.what}\n{finding.data.decode()}"


@pytest.mark.parametrize("seed", range(40))
def test_boxes_are_their_views(seed: int):
    """A decoded view shows what NumPy shows, and decodes wherever basic indexing of an array made it."""
    rng = random.Random(seed)
    for _ in range(30):
        shape = tuple(rng.randint(1, 6) for _ in range(rng.randrange(4)))
        drawn = random_view(rng, 0, shape, [])
        dtype = np.dtype(np.int64)
        program = Program(dtype, [shape], 1, [], [drawn])
        assert disagreement(program, seed) is None
        buffer = ProgramBuilder([("x", buffer_type(i64, shape))]).buffers[0]
        whole = StridedView(buffer, Affine(), shape, _strides(shape))
        assert decoded(whole, shape).place.is_whole()
        index = tuple(
            rng.choice((slice(None, None, -1), slice(1, None), slice(None, None, 2), 0))
            for _ in shape
        )
        x = np.arange(int(np.prod(shape))).reshape(shape)
        basic = x[(*index, ...)]
        if 0 in basic.shape:
            continue
        turned = basic.transpose(rng.sample(range(basic.ndim), basic.ndim))
        view = StridedView(
            buffer,
            Affine(int(turned.ravel()[0])),
            turned.shape,
            tuple(s // 8 for s in turned.strides),
        )
        assert decoded(view, shape).place.shape == shape


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(s // 8 for s in np.zeros(shape).strides)


def _random_place(rng: random.Random, shape: tuple[int, ...]) -> Place:
    steps = tuple(rng.randint(1, 3) for _ in shape)
    starts = tuple(rng.randrange(n) for n in shape)
    counts = tuple(
        rng.randint(1, (n - 1 - a) // s + 1) for n, a, s in zip(shape, starts, steps, strict=True)
    )
    return Place(shape, tuple(map(Affine, starts)), counts, steps)


def _elements(place: Place) -> np.ndarray:
    x = np.arange(int(np.prod(place.shape))).reshape(place.shape)
    dims = zip(place.starts, place.counts, place.steps, strict=True)
    return x[np.ix_(*(a.constant + s * np.arange(n) for a, n, s in dims))]


@pytest.mark.parametrize("seed", range(20))
def test_relations_are_those_of_sets(seed: int):
    rng = random.Random(seed)
    for _ in range(200):
        shape = rng.choice([(7,), (4, 5), (20,), (2, 10)])
        other = rng.choice(
            [s for s in ((4, 5), (20,), (2, 10)) if np.prod(s) == np.prod(shape)] or [shape]
        )
        a, b = _random_place(rng, shape), _random_place(rng, rng.choice([shape, other]))
        mine, theirs = set(_elements(a).ravel()), set(_elements(b).ravel())
        found = relation(a, b)
        # Exact where steps are 1; never wrong.
        assert found is not Relation.APART or not mine & theirs
        if {*a.steps, *b.steps} == {1}:
            assert (found is Relation.APART) == (not mine & theirs)
        if a.shape == b.shape:
            assert (found is Relation.INSIDE) == (mine <= theirs)
        if found is Relation.INSIDE:
            dims = zip(inner(a, b).starts, a.counts, inner(a, b).steps, strict=True)
            at = np.ix_(*(s.constant + t * np.arange(n) for s, n, t in dims))
            np.testing.assert_array_equal(_elements(b)[at], _elements(a))


def test_a_stencil_in_place_is_one_insertion():
    b = ProgramBuilder([("x", buffer_type(f64, (8, 8)))])
    (x,) = b.buffers
    inside = b.view(x, 9, (6, 6), (8, 1))
    parts = [b.read(b.view(x, 9 + d, (6, 6), (8, 1))) for d in (0, 1, -1, 8, -8)]
    total = parts[0]
    for part in parts[1:]:
        total = b(graph.AddOp, total, part)
    b.write(b(graph.MulOp, total, b.constant(np.float64(0.2))), inside)
    function = values(b.finish([]))
    assert names(function).count("tensor.insert_slice") == 1
    assert names(function).count("graph.slice") == 5
    given = np.random.default_rng(0).standard_normal((8, 8))
    want = given.copy()
    want[1:-1, 1:-1] = (
        want[1:-1, 1:-1] + want[1:-1, 2:] + want[1:-1, :-2] + want[2:, 1:-1] + want[:-2, 1:-1]
    ) * 0.2
    np.testing.assert_array_equal(Execution(function, WeightStore(), {}).run([given])[0], want)


def test_chains_through_whole_arrays_are_values_alone():
    """As calls with out= into few arrays: nothing is inserted, and no array is made that nobody asks for."""
    b = ProgramBuilder([(n, buffer_type(f64, (16,))) for n in "xy"])
    x, y = b.buffers
    t = b.alloc(f64, (16,))
    for _ in range(5):
        b.write(b(graph.AddOp, b.read(x), b.read(y)), t)
        b.write(b(graph.MulOp, b.read(t), b.read(x)), t)
    function = values(b.finish([("t", t)]))
    kinds = set(names(function))
    assert kinds <= {"func.func", "graph.add", "graph.mul", "func.return"}
    assert names(function).count("graph.add") == 1  # the last: nobody reads what came before


def test_what_is_left_pairs_with_its_argument():
    b = ProgramBuilder([("x", buffer_type(f64, (4,))), ("y", buffer_type(f64, (4,)))])
    x, y = b.buffers
    b.write(b.read(x), y)
    built = b.finish([("y", x)])
    context = IrkitContext(weights=built.weights)
    Functionalise().apply(context, built.module)
    (function,) = built.module.ops
    assert [tuple(p) for p in state_of(function)] == [(1, 1)]
    assert [n.data for n in function.attributes["irkit.outputs"]] == ["y", "y_left"]


def test_programs_of_the_fuzzer_have_what_it_is_for():
    """Loops, moving views and partial writes are drawn often enough."""
    programs = [random_program(random.Random(n)) for n in range(100)]
    texts = [str(p.build().module) for p in programs]
    assert sum("scf.for" in t for t in texts) > 30
    assert sum("affine.apply" in t for t in texts) > 15
    assert sum("strides: [-" in t for t in texts) > 15
