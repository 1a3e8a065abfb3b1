"""Copies of boxes of an array by a GPU's copy engine, from compute capability 9.0 on, and sums that leave a
warp's registers piece by piece.

A tensor map says of an array what the engine must know (`irkit.runtime.cuda.tensor_maps`). PTX ISA,
"cp.async.bulk.tensor"; barriers are those of `cuda_bulk`. Arguments marked *literal* must be constants in the
source text.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from irkit.runtime.intrinsics.cuda import asm, shared_address
from irkit.runtime.intrinsics.cuda_mma import across_pieces, along_pieces

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.cuda").types
intrinsic: Any = import_module("numba.cuda.extending").intrinsic

I32, I64 = ir.IntType(32), ir.IntType(64)


@intrinsic
def see_map(typing_context: Any, source: Any) -> Any:
    """Before the first copy by a tensor map: the copy engine sees it as it is in memory now."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        text = "fence.proxy.tensormap::generic.acquire.gpu [$0], 128;"
        where = builder.ptrtoint(args[0], I64)
        asm(builder, text, ir.VoidType(), [where], "l,~{memory}")
        return context.get_dummy_value()

    return types.void(source), generate


@intrinsic
def copy_box(
    typing_context: Any, staged: Any, place: Any, source: Any, x: Any, y: Any, z: Any, barrier: Any
) -> Any:
    """Start copying the box of the tensor map `source`, of three dimensions, that begins at element x, y, z
    to staged[place], at a multiple of 1024 bytes; the barrier at staged[barrier] counts all its bytes as
    they arrive. What is outside of the array is zero."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b = builder
        target, signal = (shared_address(b, args[0], args[i]) for i in (1, 6))
        first = [b.trunc(a, I32) for a in args[3:6]]
        text = (
            "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
            "[$0], [$1, {$2, $3, $4}], [$5];"
        )
        given = [target, b.ptrtoint(args[2], I64), *first, signal]
        asm(b, text, ir.VoidType(), given, "r,l,r,r,r,r,~{memory}")
        return context.get_dummy_value()

    i64, u64 = types.int64, types.uint64
    return types.void(staged, u64, source, i64, i64, i64, u64), generate


def _stores_piece(name: str, pieces: Any, text: str) -> Any:
    def store(
        typing_context: Any, staged: Any, position: Any, step: Any, sums: Any, columns: Any,
        piece: Any, lane: Any,
    ) -> Any:  # fmt: skip
        if not all(isinstance(v, types.IntegerLiteral) for v in (step, columns)):
            return None
        between, wide = step.literal_value, columns.literal_value
        count = 2 * sums.count // wide

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            b, held = builder, args[3]
            number, lane32 = b.trunc(args[5], I32), b.trunc(args[6], I32)
            behind = b.append_basic_block("stored")
            # Registers have no numbers at run time: each piece has stores of its own.
            chosen = b.switch(number, behind)
            for n in range(count):
                block = b.append_basic_block(f"piece{n}")
                chosen.add_case(I32(n), block)
                b.position_at_end(block)
                values = [b.extract_value(held, n * wide // 2 + i) for i in range(wide // 2)]
                pieces(b, shared_address(b, *args[:2]), between, values, lane32)
                b.branch(behind)
            b.position_at_end(behind)
            return context.get_dummy_value()

        u64 = types.uint64
        return types.void(staged, u64, step, sums, columns, u64, u64), generate

    store.__name__, store.__doc__ = name, text
    return intrinsic(store)


store_piece = _stores_piece(
    "store_piece",
    along_pieces,
    """staged[position + i * step + j] = the warp's sum [i, piece * columns + j] of 16 rows, for j < columns;
    `step` and `columns` are literal.""",
)
store_piece_across = _stores_piece(
    "store_piece_across",
    across_pieces,
    """staged[position + j * step + i] = the warp's sum [i, piece * columns + j]; otherwise `store_piece`.""",
)
