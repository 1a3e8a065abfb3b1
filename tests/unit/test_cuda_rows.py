"""What `cuda_rows` writes in LLVM's language, compiled for this machine: the loop over pieces and its end."""

from __future__ import annotations

import ctypes
from importlib import import_module
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda")

from irkit.runtime.intrinsics.cuda_lanes import held_pieces
from irkit.runtime.intrinsics.cuda_rows import I64, Tile, held_products

ir: Any = import_module("llvmlite.ir")
llvm: Any = import_module("llvmlite.binding")

LANES = 4


def tiled(builder: Any, tile: Tile, values: list[Any], lane: Any, pieces: int) -> list[Any]:
    whole = pieces // LANES
    if whole:
        values = tile.loop(values, lane, LANES, whole)
    if pieces % LANES:
        number = builder.add(lane, I64(whole * LANES))
        present = builder.icmp_unsigned("<", number, I64(pieces))
        values = tile.added(values, builder.select(present, number, I64(0)), present)
    return values


def compiled(
    height: int, across: int, width: int, pieces: int, length: int, held: bool
) -> tuple[Any, Any]:
    """(function(x, w, sums, lane) that adds a lane's products, what must stay alive with it). With `held`,
    what the lane has of the rows is read first."""
    pointer, module = ir.FloatType().as_pointer(), ir.Module()
    kind = ir.FunctionType(ir.VoidType(), [pointer, pointer, pointer, ir.IntType(64)])
    function = ir.Function(module, kind, "lane")
    builder = ir.IRBuilder(function.append_basic_block())
    x, w, sums, lane = function.args
    down = [builder.gep(x, [I64(i * length)]) for i in range(height)]
    beside = [builder.gep(w, [I64(j * length)]) for j in range(across)]
    places = [builder.gep(sums, [I64(n)]) for n in range(height * across)]
    values = [builder.load(place) for place in places]
    if held:
        given = (length, LANES, length if width == 4 else 0)
        rows = [v for first in down for v in held_pieces(builder, first, lane, *given)]
        values = held_products(builder, values, rows, beside, lane, given)
    else:
        values = tiled(builder, Tile(builder, down, beside, width), values, lane, pieces)
    for value, place in zip(values, places, strict=True):
        builder.store(value, place)
    builder.ret_void()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(str(module)), machine)
    engine.finalize_object()
    floats = ctypes.POINTER(ctypes.c_float)
    call = ctypes.CFUNCTYPE(None, floats, floats, floats, ctypes.c_uint64)
    return call(engine.get_function_address("lane")), engine


def aligned(array: Any) -> Any:
    """A copy whose address is a multiple of 16."""
    memory = np.empty(array.size + 4, np.float32)
    start = -(memory.ctypes.data // 4) % 4
    memory[start : start + array.size] = array.reshape(-1)
    return memory[start : start + array.size]


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("pieces", [1, 3, 4, 5, 8, 11, 16])
@pytest.mark.parametrize(("height", "across"), [(4, 5), (2, 1)])
def test_the_lanes_of_a_group_sum_all_products(
    height: int, across: int, pieces: int, width: int, held: bool
) -> None:
    random = np.random.default_rng(pieces)
    length = pieces * width
    x = random.standard_normal((height, length)).astype(np.float32)
    w = random.standard_normal((across, length)).astype(np.float32)
    function, engine = compiled(height, across, width, pieces, length, held)
    total = np.zeros(height * across)
    for lane in range(LANES):
        sums = np.full(height * across, 0.5, np.float32)
        # A lane that has no piece may read the first: what is behind the end is not touched.
        given = [aligned(a) for a in (x, w)] + [sums]
        floats = ctypes.POINTER(ctypes.c_float)
        function(*(a.ctypes.data_as(floats) for a in given), lane)
        total += sums - 0.5
    assert engine is not None
    np.testing.assert_allclose(total.reshape(height, across), x.astype(float) @ w.T, atol=1e-5)


@pytest.mark.parametrize("held", [False, True])
def test_what_a_lane_does_not_have_is_no_infinite_weight(held: bool) -> None:
    """Five pieces for four lanes: three have one each, and none reads the first again for the fifth."""
    function, engine = compiled(1, 1, 1, 5, 5, held)
    x, w = aligned(np.ones((1, 5), np.float32)), aligned(np.full((1, 5), np.inf, np.float32))
    floats = ctypes.POINTER(ctypes.c_float)
    for lane in range(LANES):
        sums = np.zeros(1, np.float32)
        function(*(a.ctypes.data_as(floats) for a in (x, w, sums)), lane)
        assert sums[0] == np.inf
    assert engine is not None
