"""Products and sums spread over the lanes of a warp, unrolled where Numba's own loops are not.

A vector is dealt to lanes piece by piece; a lane *holds* its pieces in registers, as a tuple, zero
where nothing is left. A piece is four elements, read at once from an address that is a multiple of 16,
if that follows from `stride`, the elements between vectors in memory (0: addresses may be unaligned);
else it is one element. Arguments marked *literal* must be constants in the source text.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from irkit.runtime.intrinsics.cuda import SHARED, asm
from irkit.runtime.intrinsics.half_conversions import HALF, I16, widened
from irkit.runtime.intrinsics.packed_node import node_parts

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.cuda").types
intrinsic: Any = import_module("numba.cuda.extending").intrinsic

I32, I64 = ir.IntType(32), ir.IntType(64)
_BYTES = {"i8": 1, "i16": 2, "half": 2, "float": 4, "i32": 4, "double": 8, "i64": 8}


def literals_of(*args: Any) -> list[int] | None:
    """The values of literal arguments, or None if one is no literal (Numba then tries again)."""
    if all(isinstance(a, types.IntegerLiteral) for a in args):
        return [a.literal_value for a in args]
    return None


def pieces_of(length: int, lanes: int, stride: int) -> tuple[int, int]:
    """(elements in a piece, pieces that a lane holds at most)."""
    width = 4 if stride and stride % 4 == 0 and length % 4 == 0 else 1
    return width, -(-(length // width) // lanes)


def alignment(element: Any, width: int = 4) -> int:
    """Of what address so many elements are at least: a multiple of their size, or of 16."""
    return min(16, width * _BYTES.get(str(element), 16))


def load_vector(builder: Any, pointer: Any, width: int) -> list[Any]:
    """`width` elements at `pointer`; four are one 16-byte aligned access (two for float64). 16-bit floats, of
    which four are 8 bytes, are widened."""
    half = pointer.type.pointee in (HALF, I16)
    if width == 1:
        value = builder.load(pointer)
        return [widened(builder, value) if half else value]
    wide = ir.VectorType(pointer.type.pointee, width).as_pointer(pointer.type.addrspace)
    value = builder.load(builder.bitcast(pointer, wide))
    value.align = alignment(pointer.type.pointee, width)
    value = widened(builder, value) if half else value
    return [builder.extract_element(value, I32(i)) for i in range(width)]


@intrinsic
def load4(typing_context: Any, pointer: Any, index: Any) -> Any:
    """Four elements from `index` on, whose address must be a multiple of 16."""
    if not isinstance(pointer, types.CPointer):
        return None
    result = types.UniTuple(pointer.dtype, 4)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = load_vector(builder, builder.gep(args[0], [args[1]]), 4)
        return context.make_tuple(builder, result, values)

    return result(pointer, types.uint64), generate


def held_pieces(
    builder: Any, first: Any, lane: Any, length: int, lanes: int, stride: int
) -> list[Any]:
    """What `lane` of `lanes` holds of the `length` elements from `first` on."""
    width, pieces = pieces_of(length, lanes, stride)
    held: list[Any] = []
    for piece in range(pieces):
        number = builder.add(lane, I64(piece * lanes))
        # A lane with nothing left reads the first piece and drops it: no branch, no bad address.
        present = builder.icmp_unsigned("<", number, I64(length // width))
        safe = builder.select(present, number, I64(0))
        place = builder.gep(first, [builder.mul(safe, I64(width))])
        full = (piece + 1) * lanes <= length // width
        for value in load_vector(builder, place, width):
            zero = ir.Constant(value.type, 0.0)
            held.append(value if full else builder.select(present, value, zero))
    return held


@intrinsic
def lane_load(
    typing_context: Any, pointer: Any, start: Any, lane: Any, length: Any, lanes: Any, stride: Any
) -> Any:
    """What `lane` of `lanes` (literal) holds of pointer[start : start + length (literal)]."""
    given = literals_of(length, lanes, stride)
    if given is None:
        return None
    count, group, wide = given
    width, pieces = pieces_of(count, group, wide)
    result = types.UniTuple(pointer.dtype, pieces * width)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        first = builder.gep(args[0], [args[1]])
        held = held_pieces(builder, first, args[2], count, group, wide)
        return context.make_tuple(builder, result, held)

    return result(pointer, types.uint64, types.uint64, length, lanes, stride), generate


@intrinsic
def lane_dots(
    typing_context: Any,
    sums: Any,
    held: Any,
    pointer: Any,
    starts: Any,
    offset: Any,
    lane: Any,
    length: Any,
    lanes: Any,
    stride: Any,
    shared: Any,
) -> Any:
    """`sums[i]` + this lane's part of the product of `held` and the vector at starts[i] + offset.

    `starts` is a tuple of uint64; `length`, `lanes` and `stride` are literals. `shared` (literal 1)
    promises that the pointer is to shared memory.
    """
    given = literals_of(length, lanes, stride, shared)
    if given is None:
        return None
    count, group, wide, in_shared = given
    width, pieces = pieces_of(count, group, wide)

    def dot(builder: Any, total: Any, values: list[Any], first: Any, lane_number: Any) -> Any:
        partial = [total, *(ir.Constant(total.type, 0.0) for _ in range(width - 1))]
        for piece in range(pieces):
            number, present = builder.add(lane_number, I64(piece * group)), None
            if (piece + 1) * group > count // width:
                present = builder.icmp_unsigned("<", number, I64(count // width))
                number = builder.select(present, number, I64(0))
            place = builder.gep(first, [builder.mul(number, I64(width))])
            for i, value in enumerate(load_vector(builder, place, width)):
                # Where a lane has no piece, zero times what is there instead: it may be infinite.
                zero = ir.Constant(value.type, 0.0)
                factor = value if present is None else builder.select(present, value, zero)
                partial[i] = builder.fma(values[piece * width + i], factor, partial[i])
        while len(partial) > 1:
            half = len(partial) // 2
            partial = [builder.fadd(partial[i], partial[half + i]) for i in range(half)]
        return partial[0]

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        held_type, starts_type = signature.args[1], signature.args[3]
        values = [builder.extract_value(args[1], i) for i in range(held_type.count)]
        results: list[Any] = []
        for i in range(starts_type.count):
            start = builder.add(builder.extract_value(args[3], i), args[4])
            first = builder.gep(args[2], [start])
            if in_shared:
                first = builder.addrspacecast(first, first.type.pointee.as_pointer(SHARED))
            total = builder.extract_value(args[0], i)
            results.append(dot(builder, total, values, first, args[5]))
        return context.make_tuple(builder, signature.return_type, results)

    u64 = types.uint64
    literals = (length, lanes, stride, shared)
    return sums(sums, held, pointer, starts, u64, u64, *literals), generate


def shuffled(builder: Any, value: Any, distance: int) -> Any:
    """The float32 or float64 of the lane whose number differs in the bit `distance`."""
    text = f"shfl.sync.bfly.b32 $0, $1, {distance}, 31, -1;"
    if isinstance(value.type, ir.FloatType):
        bits = asm(builder, text, I32, [builder.bitcast(value, I32)], "=r,r")
        return builder.bitcast(bits, value.type)
    both = builder.bitcast(value, I64)
    parts = [builder.trunc(both, I32), builder.trunc(builder.lshr(both, I64(32)), I32)]
    low, high = (builder.zext(asm(builder, text, I32, [part], "=r,r"), I64) for part in parts)
    return builder.bitcast(builder.or_(low, builder.shl(high, I64(32))), value.type)


@intrinsic
def group_sums(typing_context: Any, sums: Any, lanes: Any) -> Any:
    """Each entry of a tuple of float32 or float64 summed over groups of `lanes` (literal) lanes.

    All lanes of the warp must call it; every lane of a group gets the sum.
    """
    given = literals_of(lanes)
    if given is None:
        return None
    (group,) = given

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = [builder.extract_value(args[0], i) for i in range(sums.count)]
        distance = group // 2
        while distance:
            values = [builder.fadd(v, shuffled(builder, v, distance)) for v in values]
            distance //= 2
        return context.make_tuple(builder, signature.return_type, values)

    return sums(sums, lanes), generate


@intrinsic
def zeros_like(typing_context: Any, pointer: Any, count: Any) -> Any:
    """A tuple of `count` (literal) zeros of the pointer's element type."""
    given = literals_of(count)
    if given is None:
        return None
    (length,) = given
    result = types.UniTuple(pointer.dtype, length)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        zero = ir.Constant(context.get_value_type(pointer.dtype), 0.0)
        return context.make_tuple(builder, result, [zero] * length)

    return result(pointer, count), generate


@intrinsic
def row_starts(
    typing_context: Any, first: Any, step: Any, limit: Any, length: Any, count: Any
) -> Any:
    """Where rows first, first + step, ... (`count`, literal) of `length` elements start.

    A row number that is not below `limit` is replaced by limit - 1, so that it can be read.
    """
    given = literals_of(count)
    if given is None:
        return None
    (rows,) = given
    result = types.UniTuple(types.uint64, rows)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number, step_value, bound, size = args[:4]
        last = builder.sub(bound, I64(1))
        starts: list[Any] = []
        for _ in range(rows):
            inside = builder.icmp_unsigned("<", number, bound)
            starts.append(builder.mul(builder.select(inside, number, last), size))
            number = builder.add(number, step_value)
        return context.make_tuple(builder, result, starts)

    u64 = types.uint64
    return result(u64, u64, u64, u64, count), generate


@intrinsic
def rows_store(
    typing_context: Any, pointer: Any, first: Any, step: Any, limit: Any, values: Any, enabled: Any
) -> Any:
    """pointer[first + i * step] = values[i] where that index is below `limit`, if `enabled`."""
    if not isinstance(values, types.UniTuple):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        index = args[1]
        for i in range(values.count):
            inside = builder.and_(builder.icmp_unsigned("<", index, args[3]), args[5])
            with builder.if_then(inside):
                builder.store(builder.extract_value(args[4], i), builder.gep(args[0], [index]))
            index = builder.add(index, args[2])
        return context.get_dummy_value()

    u64 = types.uint64
    return types.void(pointer, u64, u64, u64, values, types.boolean), generate


@intrinsic
def node_store(typing_context: Any, pointer: Any, index: Any, feature: Any, threshold: Any) -> Any:
    """Node `index` of packed nodes (a 32-bit word and a threshold, side by side) at `pointer`."""
    if not isinstance(pointer, types.CPointer):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        element = args[0].type.pointee
        bits = ir.IntType(pointer.dtype.bitwidth)
        word = args[2] if bits == I32 else builder.zext(args[2], bits)
        pair = ir.VectorType(bits, 2)
        both = builder.insert_element(ir.Constant(pair, ir.Undefined), word, I32(0))
        value = builder.bitcast(args[3], bits) if element != bits else args[3]
        both = builder.insert_element(both, value, I32(1))
        place = builder.gep(builder.bitcast(args[0], pair.as_pointer()), [args[1]])
        builder.store(both, place).align = 2 * bits.width // 8
        return context.get_dummy_value()

    return types.void(pointer, types.uint64, types.uint32, pointer.dtype), generate


@intrinsic
def node_load(typing_context: Any, pointer: Any, index: Any) -> Any:
    """(32-bit word, threshold) of packed node `index`, read at once."""
    if not isinstance(pointer, types.CPointer):
        return None
    result = types.Tuple((types.uint32, pointer.dtype))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        element = args[0].type.pointee
        bits = ir.IntType(pointer.dtype.bitwidth)
        pair = ir.VectorType(bits, 2)
        place = builder.gep(builder.bitcast(args[0], pair.as_pointer()), [args[1]])
        both = builder.load(place)
        both.align = 2 * bits.width // 8
        word = builder.extract_element(both, I32(0))
        word = word if bits == I32 else builder.trunc(word, I32)
        threshold = builder.bitcast(builder.extract_element(both, I32(1)), element)
        return context.make_tuple(builder, result, [word, threshold])

    return result(pointer, types.uint64), generate


@intrinsic
def heap_node(typing_context: Any, nodes: Any, index: Any, x: Any) -> Any:
    """(first word, threshold of the type that `x` points to) of node `index` of two words, read at once."""
    if not isinstance(nodes, types.CPointer) or not isinstance(x, types.CPointer):
        return None
    result = types.Tuple((types.uint32, x.dtype))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pair = ir.VectorType(I32, 2)
        both = builder.load(builder.gep(builder.bitcast(args[0], pair.as_pointer()), [args[1]]))
        both.align = 8
        word, bits = (builder.extract_element(both, I32(i)) for i in range(2))
        parts = [word, builder.bitcast(bits, args[2].type.pointee)]
        return context.make_tuple(builder, result, parts)

    return result(nodes, types.int64, x), generate


@intrinsic
def packed_node(typing_context: Any, nodes: Any, index: Any, x: Any) -> Any:
    """(threshold of the type that `x` points to, third word, fourth word) of node `index`, read at once."""
    if not isinstance(nodes, types.CPointer) or not isinstance(x, types.CPointer):
        return None
    result = types.Tuple((x.dtype, types.int32, types.int32))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        parts = node_parts(builder, args[0], args[1], args[2].type.pointee)
        return context.make_tuple(builder, result, parts)

    return result(nodes, types.int32, x), generate
