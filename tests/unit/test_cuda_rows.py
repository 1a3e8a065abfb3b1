"""What `cuda_rows` writes in LLVM's language, compiled for this machine: the loop over pieces and its end."""

from __future__ import annotations

import ctypes
from importlib import import_module
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda")

from irkit.runtime.intrinsics.cuda_rows import I64, Tile

ir: Any = import_module("llvmlite.ir")
llvm: Any = import_module("llvmlite.binding")

LANES = 4


def compiled(height: int, across: int, width: int, pieces: int, length: int) -> tuple[Any, Any]:
    """(function(x, w, sums, lane) that adds a lane's products, what must stay alive with it)."""
    pointer, module = ir.FloatType().as_pointer(), ir.Module()
    kind = ir.FunctionType(ir.VoidType(), [pointer, pointer, pointer, ir.IntType(64)])
    function = ir.Function(module, kind, "lane")
    builder = ir.IRBuilder(function.append_basic_block())
    x, w, sums, lane = function.args
    down = [builder.gep(x, [I64(i * length)]) for i in range(height)]
    beside = [builder.gep(w, [I64(j * length)]) for j in range(across)]
    tile = Tile(builder, down, beside, width)
    places = [builder.gep(sums, [I64(n)]) for n in range(height * across)]
    values = [builder.load(place) for place in places]
    whole = pieces // LANES
    if whole:
        values = tile.loop(values, lane, LANES, whole)
    if pieces % LANES:
        number = builder.add(lane, I64(whole * LANES))
        present = builder.icmp_unsigned("<", number, I64(pieces))
        values = tile.added(values, builder.select(present, number, I64(0)), present)
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


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("pieces", [1, 3, 4, 5, 8, 11, 16])
@pytest.mark.parametrize(("height", "across"), [(4, 5), (2, 1)])
def test_the_lanes_of_a_group_sum_all_products(
    height: int, across: int, pieces: int, width: int
) -> None:
    random = np.random.default_rng(pieces)
    length = pieces * width
    x = random.standard_normal((height, length)).astype(np.float32)
    w = random.standard_normal((across, length)).astype(np.float32)
    function, engine = compiled(height, across, width, pieces, length)
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
