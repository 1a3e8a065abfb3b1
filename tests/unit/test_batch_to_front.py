"""`batch-to-front`: programs with their batch elsewhere compute what they did, and have it in front."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from test_batch_analysis import APART, N, function, inputs_of
from xdsl.dialects.builtin import i64

import irkit
from irkit.batch_place import BatchPlace
from irkit.dialects import graph as g
from irkit.dialects.graph.batch import analyse
from irkit.dialects.graph.elementwise import BinaryOp, UnaryOp
from irkit.dialects.graph.logic import BitwiseOp
from irkit.dialects.types import ui64
from irkit.driver.compiler.batch import SizedModel, read_for_batch
from irkit.driver.execution.entry_point import entry_point_of
from irkit.interp import run_module
from irkit.passes.graph.batch_to_front import first_obstacle, to_front
from irkit.passes.graph.front_rules import RULES
from irkit.weights import WeightStore

POOL = {"kernel_shape": [2], "strides": [1], "pads": [0, 0]}
SCALE = {"alpha": 2.0, "beta": 0.5}
SHAPE = (3, N, 4)


def _compared(emit, x, y):
    return emit(g.CompareOp, x, y, predicate="lt")


def _integers(emit, x):
    return emit(g.CastOp, x, to=i64)


def _of_words(op):
    def made(emit, x, y):
        x, y = (emit(g.CastOp, v, to=ui64) for v in (x, y))
        return emit(op, x, y)

    return [SHAPE, (4,)], made


def _of_integers(op):
    return [SHAPE, (4,)], lambda emit, x, y: emit(op, _integers(emit, x), _integers(emit, y))


def _elementwise(op):
    """A program with one op of its kind on (3, batch, 4), and an operand that broadcasts to it."""
    if op is g.NotOp:
        return [SHAPE], lambda emit, x: emit(g.NotOp, _integers(emit, x))
    if op is g.CastOp:
        return [SHAPE], _integers
    if op is g.ClipOp:
        return [SHAPE], lambda emit, x: emit(g.ClipOp, x, min=-1.0, max=1.0)
    if op is g.WhereOp:
        return [SHAPE, (N, 4), (3, 1, 1)], lambda emit, x, y, z: emit(
            g.WhereOp, _compared(emit, x, y), y, z
        )
    if op is g.FmaOp:
        return [SHAPE, (N, 4), (3, 1, 1)], lambda emit, x, y, z: emit(op, x, y, z)
    if op is g.CompareOp:
        return [SHAPE, (N, 1)], _compared
    if op is g.ThreefryOp:
        return _of_words(op)
    if issubclass(op, BitwiseOp) or op in (g.ModOp, g.RemOp, g.ShiftLeftOp, g.ShiftRightOp):
        return _of_integers(op)
    if issubclass(op, BinaryOp):
        return [SHAPE, (N, 4)], lambda emit, x, y: emit(op, x, y)
    return [SHAPE], lambda emit, x: emit(op, x)


def _norm(emit, x, s):
    return emit(g.BatchNormOp, x, s, s, s, emit(g.AbsOp, s), epsilon=1e-5)


def _gathered(emit, t, x, i, j):
    emit(g.GatherOp, t, i, axis=1)
    emit(g.GatherOp, t, i, axis=0)
    emit(g.GatherOp, x, j, axis=1)


def _multiplied(emit, x, w, v, u):
    y = emit(g.MatmulOp, x, w)
    z = emit(g.TransposeOp, x, permutation=[1, 0, 2])
    emit(g.MatmulOp, v, emit(g.ReshapeOp, z, shape=[N, 1, 3, 4]))
    columns = emit(g.TransposeOp, y, permutation=[0, 2, 1])
    emit(g.MatmulOp, u, columns)


def _of_elements(emit, x, i):
    emit(g.GatherElementsOp, x, i, axis=0)


OF_ATTENTION = [(2, N, 3, 4), (N, 5, 4), (2, 1, 5, 6), (2, N, 3, 6), (3, 5)]
"""Queries, keys, values, a change of what comes of them, a mask."""


def _query_gradient(emit, q, k, v, c, mask):
    k = emit(g.ReshapeOp, k, shape=[1, N, 5, 4])
    return emit(g.AttentionQueryGradientOp, q, k, v, c, mask, scale=0.5)


def _key_gradient(emit, q, k, v, c, mask):
    summed = _query_gradient(emit, q, k, v, c, mask)
    k = emit(g.ReshapeOp, k, shape=[1, N, 5, 4])
    emit(g.AttentionKeyGradientOp, q, k, v, c, summed, mask, scale=0.5)


PROGRAMS = {
    **{op: _elementwise(op) for op in RULES if issubclass(op, UnaryOp | BinaryOp)},
    **{op: _elementwise(op) for op in (g.CastOp, g.CompareOp, g.WhereOp, g.IsNanOp, g.ClipOp, g.FmaOp)},
    g.ArgmaxOp: ([SHAPE], lambda emit, x: emit(g.ArgmaxOp, x, axis=2, keepdims=False)),
    g.AveragePoolOp: ([(2, N, 5)], lambda emit, x: emit(g.AveragePoolOp, x, count_include_pad=False, **POOL)),
    g.AttentionOp: (
        [(2, N, 3, 4), (N, 5, 4), (2, 1, 5, 6), (3, 5)],
        lambda emit, q, k, v, m: emit(
            g.AttentionOp, q, emit(g.ReshapeOp, k, shape=[1, N, 5, 4]), v, m, scale=0.5
        ),
    ),
    g.AttentionQueryGradientOp: (OF_ATTENTION, _query_gradient),
    g.AttentionKeyGradientOp: (OF_ATTENTION, _key_gradient),
    g.BatchNormOp: ([(2, 3, N), (3,)], _norm),
    g.ConcatOp: ([SHAPE], lambda emit, x: (emit(g.ConcatOp, x, x, axis=0), emit(g.ConcatOp, x, x, axis=1))),
    g.CumSumOp: ([SHAPE], lambda emit, x: emit(g.CumSumOp, x, axis=0, exclusive=True, reverse=True)),
    g.ExpandOp: ([(1, N, 1)], lambda emit, x: emit(g.ExpandOp, x, shape=[2, 3, N, 4])),
    g.GatherElementsOp: ([SHAPE, ("i64", 2, N, 4)], _of_elements),
    g.GatherOp: ([(4, 3, 2), (3, 5, N, 2), ("i64", 2, N), ("i64", 2, 2)], _gathered),
    g.GemmOp: (
        [(5, N), (3, 5), (3,)],
        lambda emit, x, w, c: emit(g.GemmOp, x, w, c, trans_a=True, trans_b=True, **SCALE),
    ),
    g.GlobalAveragePoolOp: ([(2, N, 5)], lambda emit, x: emit(g.GlobalAveragePoolOp, x)),
    g.LayerNormOp: ([SHAPE], lambda emit, x: emit(g.LayerNormOp, x, epsilon=0.5, centred=True)),
    g.LpPoolOp: ([(2, N, 5)], lambda emit, x: emit(g.LpPoolOp, x, p=2, **POOL)),
    g.MatmulOp: ([(3, N, 4), (4, 5), (N, 1, 2, 3), (2, 3, 7, 5)], _multiplied),
    g.MaxPoolOp: ([(2, N, 5)], lambda emit, x: emit(g.MaxPoolOp, x, **POOL)),
    g.PadOp: ([SHAPE], lambda emit, x: emit(g.PadOp, x, low=[1, 0, 0], high=[0, 0, 2], value=1.0)),
    g.ReduceOp: (
        [SHAPE],
        lambda emit, x: emit(g.ReduceOp, x, kind="max", axes=[0], keepdims=True),
    ),
    g.ReshapeOp: ([(3, N, 4)], lambda emit, x: emit(g.ReshapeOp, x, shape=[N, 2])),
    g.SliceOp: (
        [SHAPE],
        lambda emit, x: emit(g.SliceOp, x, offsets=[2, 0, 1], sizes=[2, N, 2], strides=[-1, 1, 2]),
    ),
    g.SoftmaxOp: ([SHAPE], lambda emit, x: emit(g.SoftmaxOp, x, axis=0)),
    g.TopKOp: ([SHAPE], lambda emit, x: emit(g.TopKOp, x, k=2, axis=0, largest=True)),
    g.TransposeOp: ([SHAPE], lambda emit, x: emit(g.TransposeOp, x, permutation=[2, 0, 1])),
}  # fmt: skip


def test_every_rule_has_a_program():
    assert PROGRAMS.keys() == RULES.keys()


def moved(shapes, body):
    """A program, and a copy of it with the batch in front."""
    module, main = function(shapes, body)
    assert not analyse(main).mixing
    copy = module.clone()
    front = next(iter(copy.ops))
    weights = WeightStore()
    to_front(front, weights)
    copy.verify()
    return module, copy, main, front, weights


def check(shapes, body):
    module, copy, main, front, weights = moved(shapes, body)
    assert analyse(main).elsewhere()
    assert not analyse(front).elsewhere()
    assert entry_point_of(copy).inputs == entry_point_of(module).inputs
    for rows in (1, 2, 5):
        inputs = inputs_of(main, rows)
        wanted = run_module(module, weights, inputs)
        for got, want in zip(run_module(copy, weights, inputs), wanted, strict=True):
            assert (got.dtype, got.shape) == (want.dtype, want.shape)
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op", PROGRAMS, ids=lambda op: op.name)
def test_each_op(op):
    check(*PROGRAMS[op])


@pytest.mark.parametrize("name", [n for n in APART if n != "a layer of cells"])
def test_programs(name):
    check(*APART[name][:2])


def test_an_op_without_such_a_form_leaves_all_as_it_is():
    """Two samples a row: each size has a program of its own."""
    window = {"strides": [1], "pads": [1, 1], "dilations": [1], "group": 1}

    def body(emit, x, w):
        samples = emit(g.ReshapeOp, x, shape=[N, 3, 4])
        emit(g.ConvOp, samples, w, **window)

    module, main = function([(N, 2, 3, 4), (5, 3, 3)], body)
    before = str(module)
    assert first_obstacle(main, analyse(main)).name == "graph.conv"
    to_front(main, WeightStore())
    assert str(module) == before
    sized = read_for_batch(module, "float32", None, {})
    assert isinstance(sized, SizedModel)
    assert sized.reasons == (
        "'graph.conv': it has no form with another batch than its leading dimension",
    )
    x, w = inputs_of(main, 3)
    (_, wanted) = run_module(module, WeightStore(), [x, w])
    np.testing.assert_allclose(
        irkit.compile(module, target="cpu")(x, w)[1], wanted, rtol=1e-4, atol=1e-5
    )


def test_a_batch_that_leads_stays_as_it_is():
    module, copy, *_ = moved([(N, 4)], lambda emit, x: emit(g.ExpOp, x))
    assert str(copy) == str(module)


def test_where_an_array_of_the_caller_is():
    place = BatchPlace(1, 2, 3)
    y = np.arange(5 * 4 * 6 * 7).reshape(5, 4, 6, 7)
    back = place.back(y)
    assert back.shape == (4, 2 * 5 * 3, 7)
    for o, n, i in np.ndindex(2, 5, 3):
        np.testing.assert_array_equal(back[:, (o * 5 + n) * 3 + i], y[n, :, o * 3 + i])
    assert BatchPlace(2).outside((-1, 3, 4)) == (3, 4, -1)


def test_the_border_of_a_compiled_program(tmp_path):
    """Arrays in the caller's order in and out, of lists too, also of a saved program; wrong ones by name."""

    def body(emit, x):
        y = emit(g.ExpOp, x)
        emit(g.ReshapeOp, y, shape=[N, 2])

    module, _ = function([(3, N, 4)], body)
    program = irkit.compile(module, target="cpu")
    assert program.report()["batch"] == "any"
    program.save(tmp_path / "p.irkit")
    for run in (program, irkit.load(tmp_path / "p.irkit")):
        for rows in (0, 1, 4):
            x = np.random.default_rng(0).standard_normal((3, rows, 4)).astype(np.float32)
            for got, want in zip(run(x), (np.exp(x), np.exp(x).reshape(-1, 2)), strict=True):
                assert got.flags.c_contiguous
                np.testing.assert_allclose(got, want, rtol=1e-5)
        np.testing.assert_allclose(run(x.tolist())[0], np.exp(x), rtol=1e-5)
        with pytest.raises(
            irkit.InvalidInputError, match="'x0': expected shape 3xrowsx4, got 4x3x5"
        ):
            run(np.zeros((4, 3, 5), np.float32))
        with pytest.raises(irkit.InvalidInputError, match="expected 1 inputs"):
            run(x, x)
        on_device = SimpleNamespace(__cuda_array_interface__={})
        with pytest.raises(irkit.InvalidInputError, match="moved on the host"):
            run(on_device)
