"""Constants keep every bit, in the text or in the weights."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser

from irkit.context import IrkitContext, resource_name
from irkit.dialects.constants import SMALL, constant, constant_array
from irkit.weights import WeightStore, content_digest


def round_trip(array):
    """`array` through text and back, and whether it stands in the text."""
    ctx = IrkitContext()
    for dialect in (Arith, Builtin):
        ctx.load_dialect(dialect)
    weights = WeightStore()
    op = constant(array, weights)
    (again,) = Parser(ctx, str(op)).parse_module().ops
    got = constant_array(again.results[0], weights)
    assert got is not None
    assert got.dtype == array.dtype
    assert got.shape == array.shape
    assert got.tobytes() == array.tobytes()
    return resource_name(op) is None


@pytest.mark.parametrize(
    "array",
    [
        np.array([1.1, -0.0, 1e-45, 3.4e38], np.float32),
        np.array([[0.1, 1 / 3], [1e-310, -1e308]]),
        np.array([[1, -(2**63)]]),
        np.array([True, False]),
        np.array([-3, 4], np.int8),
        np.array(3.3),
        np.full((2, 3), 0.5, np.float16),
        np.zeros(SMALL, np.int32),
    ],
    ids=str,
)
def test_small_constants_stand_in_the_text(array):
    assert round_trip(array)


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(SMALL + 1, np.int32),
        np.zeros((0, 3), np.float32),
        np.array([np.nan]),
        np.array([np.inf, -np.inf], np.float32),
        np.array([16777216.0], np.float32),
    ],
    ids=str,
)
def test_other_constants_are_weights(array):
    assert not round_trip(array)


def test_one_constant_per_content():
    from irkit.frontends.module import GraphBuilder

    b = GraphBuilder([])
    small, large = np.zeros(3), np.arange(99)
    assert b.constant(small) is b.constant(small.copy())
    assert b.constant(large) is b.constant(large.copy())
    assert b.constant(small) is not b.constant(small.astype(np.float32))
    assert b.constant(small) is not b.constant(-small)


def test_weights_stay_as_they_were_given():
    """What somebody could write to is copied, behind a view too; what nobody can, is not."""
    bytes_of = np.arange(64, dtype=np.int32).tobytes()
    fixed = np.frombuffer(bytes_of, np.int32).reshape(4, 16)
    open_to_all = np.frombuffer(bytearray(bytes_of), np.int32)
    view = open_to_all[:32]
    view.setflags(write=False)
    weights = WeightStore()
    for array in (fixed, fixed.T, open_to_all, view):
        kept, want = weights[weights.add(array)], array.copy()
        assert np.shares_memory(kept, array) is (array is fixed)
        assert kept.flags.c_contiguous
        assert not kept.flags.writeable
        open_to_all[:] += 1
        assert np.array_equal(kept, want)
        assert kept.dtype == want.dtype


def test_what_nobody_else_holds_is_adopted():
    """Under the name that it would have been added by, and as it is."""
    array, other = np.arange(99), np.arange(99)
    weights = WeightStore()
    op = constant(array, weights, "packed", content_digest(array))
    name = resource_name(op.result)
    assert weights[name] is array
    assert not array.flags.writeable
    assert weights.digest(name) == content_digest(other)
    assert WeightStore().add(other, "packed") == name
    assert weights.adopt(other, content_digest(other), "packed") == name
    assert weights[name] is array
