"""Blocks of a cluster, from compute capability 9.0 on: they meet, and read each other's shared memory.

A cluster's blocks run at the same time, on multiprocessors that are near each other. PTX ISA,
"barrier.cluster", "mapa" and "Shared State Space". Arguments marked *literal* must be constants in the
source text.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from irkit.runtime.intrinsics.cuda import asm, shared_address

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.cuda").types
intrinsic: Any = import_module("numba.cuda.extending").intrinsic

I32, I64, F32 = ir.IntType(32), ir.IntType(64), ir.FloatType()
_LANES, _FOUR = 32, 4


@intrinsic
def meet_cluster(typing_context: Any) -> Any:
    """Wait until all threads of all blocks of the cluster are here, with what they have written."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        text = "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;"
        asm(builder, text, ir.VoidType(), [], "~{memory}")
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def add_ranks(typing_context: Any, staged: Any, place: Any, count: Any, ranks: Any) -> Any:
    """staged[place + i] becomes the sum of what is there in each of the cluster's `ranks` blocks, in order.

    Of all lanes of a warp, the same place: `count` floats, a multiple of 4, from a multiple of 4 on. Both
    are literal.
    """
    given = (count, ranks)
    if not all(isinstance(v, types.IntegerLiteral) for v in given):
        return None
    length, blocks = (v.literal_value for v in given)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b = builder
        lane = asm(b, "mov.u32 $0, %laneid;", I32, [], "=r")
        own = b.add(shared_address(b, args[0], args[1]), b.mul(lane, I32(4 * _FOUR)))
        whole, left = divmod(length, _FOUR * _LANES)
        _add(b, own, whole, blocks)
        if left:
            with b.if_then(b.icmp_unsigned("<", lane, I32(left // _FOUR))):
                _add(b, b.add(own, I32(whole * 4 * _FOUR * _LANES)), 1, blocks)
        return context.get_dummy_value()

    return types.void(staged, types.uint64, *given), generate


def _add(b: Any, own: Any, count: int, blocks: int) -> None:
    """Of `count` fours a lane: all are on their way before the first is needed."""
    four = ir.LiteralStructType([F32] * _FOUR)
    found: list[list[Any]] = []
    for rank in range(blocks):
        there = asm(b, f"mapa.shared::cluster.u32 $0, $1, {rank};", I32, [own], "=r,r")
        for n in range(count):
            text = f"ld.shared::cluster.v4.f32 {{$0, $1, $2, $3}}, [$4+{n * 4 * _FOUR * _LANES}];"
            held = asm(b, text, four, [there], "=f,=f,=f,=f,r,~{memory}")
            found.append([b.extract_value(held, i) for i in range(_FOUR)])
    for n in range(count):
        total = found[n]
        for rank in range(1, blocks):
            total = [b.fadd(x, y) for x, y in zip(total, found[rank * count + n], strict=True)]
        text = f"st.shared.v4.f32 [$0+{n * 4 * _FOUR * _LANES}], {{$1, $2, $3, $4}};"
        asm(b, text, ir.VoidType(), [own, *total], "r,f,f,f,f,~{memory}")
