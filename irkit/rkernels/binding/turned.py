"""Operands that a map reads along another dimension than they are stored: transpositions, and what is fused
with them.

A tile of such an operand is read as it lies, through memory that is near, and what is computed of it is
stored as that lies: both are whole sectors of memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import i1
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr

from irkit.dialects.linalg_generic import iterators, loop_of, maps
from irkit.dialects.roperator_root import Root
from irkit.dialects.tensor_ops.interface import Index
from irkit.dialects.types import DYNAMIC, numpy_dtype, tensor_type
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.elements import ElementPrinter, linear
from irkit.rkernels.binding.inserted import inserted_of

_SECTOR = 32
"""Bytes that a GPU reads at least."""
Read = tuple[AffineExpr, ...]


@dataclass(frozen=True)
class Turned:
    """An operand, at what index of the root's loops it is read, and the loops `first` to `last` through which
    its elements lie side by side: neighbours in memory and in the result's rows both."""

    operand: BlockArgument
    index: Read
    first: int
    last: int


def turned(root: Root) -> Turned | None:
    """The first operand of a map that lies along other loops than the last, which moves it too."""
    body, rank = root.body, len(root.parallel)
    if root.op is not None or body is None or body.last_op is None or rank < 2:
        return None
    values = list(body.last_op.operands)
    if any(inserted_of(v) is not None for v in values) or DYNAMIC in root.parallel[1:]:
        return None
    if any(tuple(tensor_type(v).get_shape()) != root.parallel for v in values):
        return None
    own = tuple(AffineDimExpr(d) for d in range(rank))
    for value in values:
        for operand, index in _reads(value, own):
            found = _lying(operand, index, root.parallel)
            if found is not None:
                return found
    return None


def _reads(value: SSAValue, index: Read) -> Iterator[tuple[BlockArgument, Read]]:
    """Operands that an element is made of through elementwise ops alone, and where they are read."""
    if isinstance(value, BlockArgument):
        yield value, index
        return
    op = value.owner
    if not isinstance(op, linalg.GenericOp) or not all(iterators(op)):
        return
    for argument, operand, amap in zip(op.body.block.args, op.inputs, maps(op), strict=False):
        if argument.uses:
            inner = tuple(e.replace_dims_and_symbols(index, ()) for e in amap.results)
            yield from _reads(operand, inner)


def _lying(operand: BlockArgument, index: Read, extents: Sequence[int]) -> Turned | None:
    across, loops = len(extents) - 1, [loop_of(e) for e in index]
    plain = all(isinstance(e, AffineDimExpr | AffineConstantExpr) for e in index)
    if not plain or not loops or loops[-1] in (-1, across) or across not in loops:
        return None
    shape, last = tensor_type(operand).get_shape(), loops[-1]
    first, dim = last, len(loops) - 1
    while dim and loops[dim - 1] == first - 1 >= 0 and shape[dim] == extents[first]:
        first, dim = first - 1, dim - 1
    if DYNAMIC in extents[first : last + 1] or loops.count(across) > 1:
        return None
    return Turned(operand, index, first, last)


def length_of(root: Root, found: Turned) -> int:
    """How many elements of the operand lie side by side, a row of the result each."""
    return math.prod(root.parallel[found.first : found.last + 1])


def bytes_apart(root: Root) -> int:
    """What a lane reads beside its element, of a sector of memory that it has for itself; 0 where what
    neighbours read lies side by side."""
    found = turned(root)
    if found is None:
        return 0
    t = tensor_type(found.operand)
    dim = [loop_of(e) for e in found.index].index(len(root.parallel) - 1)
    size = numpy_dtype(t.element_type).itemsize
    return min(math.prod(t.get_shape()[dim + 1 :]) * size, _SECTOR) - min(size, _SECTOR)


def turned_tiles(b: Binder) -> None:
    """Where an operand is `turned`: `LENGTH` rows, INNER apart, are of what lies side by side in it.
    `LOAD_TILE(OPERANDS, r, j)` is what it has for an element, of type `TILED`, which is `SOURCE` at
    `PLACE(OPERANDS, r, j)`, and `TILES` makes a pointer to such of an address.
    `STORE_TILE(OPERANDS, r, j, acc)` does with that what `STORE` does."""
    found = turned(b.root)
    if found is None or not b.split:
        return
    b.literal("LENGTH", length_of(b.root, found))
    b.literal("INNER", math.prod(b.root.parallel[found.last + 1 : -1]))
    kind = b.binding.pointer_types[found.operand.index]
    b.binding.names["TILED"] = "float32" if kind in ("float16", "bfloat16") else kind
    b.binding.names["TILES"], b.binding.names["SOURCE"] = f"{kind}p", f"p{found.operand.index}"

    def place(printer: ElementPrinter, where: Index) -> Index:
        return tuple(printer.affine(e, where) for e in found.index)

    shape = tensor_type(found.operand).get_shape()
    reading = ElementPrinter()
    at = linear(place(reading, b.rj_index(reading)), shape)
    b.binding.needed("PLACE", "r, j", [*reading.lines, f"return {at}"])
    reading.line(f"return p{found.operand.index}[{at}]")
    b.binding.needed("LOAD_TILE", "r, j", reading.lines)
    printer = ElementPrinter(results=b.written_over())
    where = b.rj_index(printer)
    logical = tensor_type(found.operand).element_type == i1
    printer.remember(found.operand, place(printer, where), "acc != 0" if logical else "acc")
    stores: list[str] = []
    for number, value in enumerate(b.op.terminator.values, len(b.block.args)):
        text = printer.element(value, where)
        if tensor_type(value).element_type == i1:
            text = f"uint8(1) if {text} else uint8(0)"
        # All results are as large as the root.
        stores.append(f"p{number}[r * {b.last} + j] = {text}")
    b.binding.needed("STORE_TILE", "r, j, acc", [*printer.lines, *stores])
