"""What emitted CUDA modules need beyond Numba: typed pointers, flags, shared memory, wide loads.

Importing this asks for neither a GPU nor a driver. An *address* is a 64-bit generic address (global or
shared memory); a *pointer* is a typed `CPointer`, which indexes like an array, unchecked. Whatever is
marked *literal* must be a constant in the source text.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.cuda").types
intrinsic: Any = import_module("numba.cuda.extending").intrinsic

I8, I32, I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
SHARED = 3
SHARED_SYMBOL = "irkit_shared"


def asm(builder: Any, text: str, result: Any, args: list[Any], constraints: str) -> Any:
    """Emit inline PTX that is neither removed, moved across memory accesses, nor duplicated."""
    kind = ir.FunctionType(result, [a.type for a in args])
    code = ir.InlineAsm(kind, text, constraints, side_effect=True)
    return builder.call(code, args, attrs=("convergent",))


def shared_pointer(builder: Any) -> Any:
    """The first byte of the block's dynamic shared memory, as an i8 pointer to shared memory."""
    module = builder.module
    symbol = module.globals.get(SHARED_SYMBOL)
    if symbol is None:
        symbol = ir.GlobalVariable(module, ir.ArrayType(I8, 0), SHARED_SYMBOL, addrspace=SHARED)
        symbol.linkage = "external"
        symbol.align = 128
    return builder.bitcast(symbol, I8.as_pointer(SHARED))


def generic(builder: Any, pointer: Any) -> Any:
    """`pointer` as a generic pointer."""
    return builder.addrspacecast(pointer, pointer.type.pointee.as_pointer())


def to_shared(builder: Any, pointer: Any) -> Any:
    """A generic pointer as the one into shared memory that it is."""
    return builder.addrspacecast(pointer, pointer.type.pointee.as_pointer(SHARED))


def shared_address(builder: Any, pointer: Any, position: Any) -> Any:
    """The 32-bit shared address of pointer[position]."""
    return builder.ptrtoint(builder.gep(to_shared(builder, pointer), [position]), I32)


def _pointer_to(dtype: Any) -> Any:
    def pointer(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return types.CPointer(dtype)(types.uint64), generate

    return intrinsic(pointer)


i8p = _pointer_to(types.int8)
u8p = _pointer_to(types.uint8)
i16p = _pointer_to(types.int16)
u16p = _pointer_to(types.uint16)
i32p = _pointer_to(types.int32)
u32p = _pointer_to(types.uint32)
i64p = _pointer_to(types.int64)
u64p = _pointer_to(types.uint64)
f32p = _pointer_to(types.float32)
f64p = _pointer_to(types.float64)


def _on_grids(text: str) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        asm(builder, text, ir.VoidType(), [], "~{memory}")
        return context.get_dummy_value()

    def on_grids(typing_context: Any) -> Any:
        return types.void(), generate

    return intrinsic(on_grids)


begin_next = _on_grids("griddepcontrol.launch_dependents;")
"""The kernel queued behind this one may begin, once all blocks have said so. From capability 9.0 on."""

await_previous = _on_grids("griddepcontrol.wait;")
"""Wait until the kernels queued before this one have ended, if it began early; what they wrote is there."""


@intrinsic
def fetch_to_l2(typing_context: Any, address: Any, nbytes: Any) -> Any:
    """Ask for bytes of global memory, sixteens from a multiple of sixteen on, which are to be read soon.
    From capability 9.0 on."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        given = [args[0], builder.trunc(args[1], I32)]
        text = "cp.async.bulk.prefetch.L2.global [$0], $1;"
        asm(builder, text, ir.VoidType(), given, "l,r,~{memory}")
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64), generate


@intrinsic
def rint(typing_context: Any, x: Any) -> Any:
    """The integral value nearest to x, the even one of two, as a float of x's type."""
    kind, letter = ("f64", "d") if x == types.float64 else ("f32", "f")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        text = f"cvt.rni.{kind}.{kind} $0, $1;"
        return asm(builder, text, args[0].type, [args[0]], f"={letter},{letter}")

    return x(x), generate


@intrinsic
def ipow(typing_context: Any, x: Any, y: Any) -> Any:
    """x to the power of y >= 0, modulo 2^64, by squaring."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        before, loop = builder.block, builder.append_basic_block("power")
        after = builder.append_basic_block("powered")
        builder.branch(loop)
        builder.position_at_end(loop)
        result, base, rest = (builder.phi(I64) for _ in range(3))
        taken = builder.select(builder.trunc(rest, ir.IntType(1)), base, I64(1))
        nexts = (builder.mul(result, taken), builder.mul(base, base), builder.lshr(rest, I64(1)))
        for value, first, following in zip(
            (result, base, rest), (I64(1), *args), nexts, strict=True
        ):
            value.add_incoming(first, before)
            value.add_incoming(following, loop)
        builder.cbranch(builder.icmp_unsigned("!=", nexts[2], I64(0)), loop, after)
        builder.position_at_end(after)
        return nexts[0]

    return types.int64(types.int64, types.int64), generate


@intrinsic
def address_of(typing_context: Any, pointer: Any) -> Any:
    """The generic address of a pointer's first element."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ptrtoint(args[0], I64)

    return types.uint64(pointer), generate


@intrinsic
def ld_acquire(typing_context: Any, address: Any) -> Any:
    """Read a u32 flag in global memory; later reads of this thread see what was released before it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        text = "ld.acquire.gpu.global.u32 $0, [$1];"
        return asm(builder, text, I32, [args[0]], "=r,l,~{memory}")

    return types.uint32(types.uint64), generate


@intrinsic
def red_release_add(typing_context: Any, address: Any, amount: Any) -> Any:
    """Add to a u32 flag in global memory, after all earlier writes that this thread has seen."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        text = "red.release.gpu.global.add.u32 [$0], $1;"
        asm(builder, text, ir.VoidType(), [args[0], args[1]], "l,r,~{memory}")
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint32), generate


@intrinsic
def ld_relaxed64(typing_context: Any, address: Any) -> Any:
    """Read a u64 in global memory that other blocks write, whole; it orders nothing else."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        text = "ld.relaxed.gpu.global.u64 $0, [$1];"
        return asm(builder, text, I64, [args[0]], "=l,l,~{memory}")

    return types.uint64(types.uint64), generate


@intrinsic
def st_relaxed64(typing_context: Any, address: Any, value: Any) -> Any:
    """Write a u64 in global memory that other blocks read, whole; it orders nothing else."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        text = "st.relaxed.gpu.global.u64 [$0], $1;"
        asm(builder, text, ir.VoidType(), [args[0], args[1]], "l,l,~{memory}")
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64), generate


@intrinsic
def cp_async16(typing_context: Any, destination: Any, source: Any) -> Any:
    """Start copying 16 bytes from global to shared memory (both generic addresses, 16-byte aligned)."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target = builder.inttoptr(args[0], I8.as_pointer())
        target = builder.addrspacecast(target, I8.as_pointer(SHARED))
        target = builder.ptrtoint(target, I32)
        text = "cp.async.cg.shared.global [$0], [$1], 16;"
        asm(builder, text, ir.VoidType(), [target, args[1]], "r,l,~{memory}")
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64), generate


@intrinsic
def cp_async_wait(typing_context: Any) -> Any:
    """Wait until this thread's copies have arrived; a barrier then shows them to the block."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        asm(builder, "cp.async.wait_all;", ir.VoidType(), [], "~{memory}")
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def shared_base(typing_context: Any) -> Any:
    """The generic address of the block's dynamic shared memory (128-byte aligned)."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ptrtoint(generic(builder, shared_pointer(builder)), I64)

    return types.uint64(), generate


def _shared_typed(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    place = builder.gep(shared_pointer(builder), [args[-1]])
    wanted = context.get_value_type(signature.return_type)
    return generic(builder, builder.bitcast(place, wanted.pointee.as_pointer(SHARED)))


@intrinsic
def shared_f32(typing_context: Any, offset: Any) -> Any:
    """A float32 pointer `offset` bytes into dynamic shared memory."""
    return types.CPointer(types.float32)(types.uint64), _shared_typed


@intrinsic
def shared_i32(typing_context: Any, offset: Any) -> Any:
    """An int32 pointer `offset` bytes into dynamic shared memory."""
    return types.CPointer(types.int32)(types.uint64), _shared_typed


@intrinsic
def shared_like(typing_context: Any, pointer: Any, offset: Any) -> Any:
    """A pointer of the type of `pointer`, `offset` bytes into dynamic shared memory."""
    if not isinstance(pointer, types.CPointer):
        return None
    return pointer(pointer, types.uint64), _shared_typed


@intrinsic
def shared_of(typing_context: Any, value: Any, offset: Any) -> Any:
    """A pointer to elements of the type of the scalar `value`, `offset` bytes into shared memory."""
    return types.CPointer(value)(value, types.uint64), _shared_typed


@intrinsic
def itemsize(typing_context: Any, pointer: Any) -> Any:
    """Bytes of one element of a pointer, a constant."""
    size = pointer.dtype.bitwidth // 8

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return I64(size)

    return types.int64(pointer), generate


@intrinsic
def divide(typing_context: Any, dividend: Any, divisor: Any) -> Any:
    """(quotient, remainder) of numbers in 0 .. 2^32 - 1, with no test for a zero divisor."""
    pair = types.UniTuple(types.int64, 2)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        quotient = builder.udiv(args[0], args[1])
        remainder = builder.sub(args[0], builder.mul(quotient, args[1]))
        parts = [builder.zext(part, I64) for part in (quotient, remainder)]
        return context.make_tuple(builder, pair, parts)

    return pair(types.uint32, types.uint32), generate


@intrinsic
def in_one_row(typing_context: Any, element: Any, width: Any) -> Any:
    """(0, element): as `divide` by the width, of elements that lie in one row."""
    pair = types.UniTuple(types.int64, 2)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.make_tuple(builder, pair, [I64(0), args[0]])

    return pair(types.int64, types.int64), generate


def _read_special(name: str) -> Any:
    def special(typing_context: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            symbol = f"llvm.nvvm.read.ptx.sreg.{name}"
            function = builder.module.globals.get(symbol)
            if function is None:
                function = ir.Function(builder.module, ir.FunctionType(I32, []), symbol)
            return builder.zext(builder.call(function, []), I64)

        return types.int64(), generate

    return intrinsic(special)


thread_index = _read_special("tid.x")
block_index = _read_special("ctaid.x")
block_count = _read_special("nctaid.x")
