"""Copies of whole tiles by one thread, and the barriers in shared memory that count what has arrived.

From compute capability 9.0 on. A barrier (`mbarrier`) is 8 bytes; each of its phases ends when so many
threads have arrived, and, where bytes are expected, those are there: the first phase has parity 0, the next
1, and so on by turns. PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier" and
"cp.async.bulk".
Barriers and tiles are places in `staged`, shared memory of float32. Arguments marked *literal* must be
constants in the source text.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from irkit.runtime.intrinsics.cuda import asm, shared_address
from irkit.runtime.intrinsics.cuda_wgmma_terms import Packer, terms_of_chunk

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.cuda").types
intrinsic: Any = import_module("numba.cuda.extending").intrinsic

I32, I64 = ir.IntType(32), ir.IntType(64)


def _on_barrier(text: str, numbered: bool) -> Any:
    """An intrinsic (staged, place) that runs `text` on the barrier there, whose address is $0; `numbered` it
    has one more argument, of 32 bits, which is $1."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        numbers = [builder.trunc(a, I32) for a in args[2:]]
        given = [shared_address(builder, *args[:2]), *numbers]
        constraints = ",".join([*("r" * len(given)), "~{memory}"])
        asm(builder, text, ir.VoidType(), given, constraints)
        return context.get_dummy_value()

    u64 = types.uint64

    def plain(typing_context: Any, staged: Any, place: Any) -> Any:
        return types.void(staged, u64), generate

    def with_number(typing_context: Any, staged: Any, place: Any, number: Any) -> Any:
        return types.void(staged, u64, u64), generate

    return intrinsic(with_number if numbered else plain)


open_barrier = _on_barrier("mbarrier.init.shared::cta.b64 [$0], $1;", True)
"""(staged, place, arrivals): begin a barrier whose phases each need so many threads."""

close_barrier = _on_barrier("mbarrier.inval.shared::cta.b64 [$0];", False)
"""(staged, place): the barrier's memory is memory again."""

arrive = _on_barrier("mbarrier.arrive.release.cta.shared::cta.b64 _, [$0];", False)
"""(staged, place): this thread has arrived; what it did before is seen by who awaits the phase."""

expect = _on_barrier("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [$0], $1;", True)
"""(staged, place, bytes): this thread has arrived, and so many bytes are on their way in this phase."""

await_phase = _on_barrier(
    "{ .reg .pred ready;\n"
    "again: mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 ready, [$0], $1;\n"
    "@ready bra done;\nbra again;\ndone: }",
    True,
)
"""(staged, place, parity): wait for the end of the phase of that parity."""


arrive_behind_copies = _on_barrier("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [$0];", False)
"""(staged, place): this thread arrives when all the copies are there that it has started."""


@intrinsic
def publish_barriers(typing_context: Any) -> Any:
    """Barriers that were opened, and memory that was written, are for asynchronous copies to see."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        text = "fence.mbarrier_init.release.cluster;\nfence.proxy.async;"
        asm(builder, text, ir.VoidType(), [], "~{memory}")
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def copy_rows(
    typing_context: Any, staged: Any, place: Any, source: Any, index: Any, count: Any, barrier: Any
) -> Any:
    """Start copying `count` bytes, a multiple of 16, from source[index] to staged[place], both at multiples
    of 16 bytes; the barrier at staged[barrier] counts them as they arrive."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target = shared_address(builder, args[0], args[1])
        start = builder.ptrtoint(builder.gep(args[2], [args[3]]), I64)
        size = builder.trunc(args[4], I32)
        signal = shared_address(builder, args[0], args[5])
        text = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];"
        asm(builder, text, ir.VoidType(), [target, start, size, signal], "r,l,r,r,~{memory}")
        return context.get_dummy_value()

    u64, i64 = types.uint64, types.int64
    return types.void(staged, u64, source, i64, i64, u64), generate


@intrinsic
def packed_magnitudes(
    typing_context: Any, least: Any, most: Any, staged: Any, place: Any, inside: Any
) -> Any:
    """(`least`, `most`) with those of eight bfloat16s at staged[place], where `inside`.

    Each is two of 16 bits, for the halves of words; magnitudes order as their bits do. One is taken off for
    `least`, so that zero is the largest.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b, kind = builder, ir.VectorType(I32, 4)
        where = b.inttoptr(shared_address(b, *args[2:4]), kind.as_pointer(3))
        four = b.load(where)
        four.align = 16
        words = [b.extract_element(four, I32(i)) for i in range(4)]
        low, top = counted_magnitudes(b, args[0], args[1], words)
        kept = [b.select(args[4], low, args[0]), b.select(args[4], top, args[1])]
        return context.make_tuple(b, types.UniTuple(types.uint32, 2), kept)

    u32 = types.uint32
    given = (u32, u32, staged, types.uint64, types.boolean)
    return types.UniTuple(u32, 2)(*given), generate


def counted_magnitudes(b: Any, least: Any, most: Any, words: list[Any]) -> tuple[Any, Any]:
    """(`least`, `most`) with the magnitudes of words of two bfloat16s, as `packed_magnitudes` has them."""
    for word in words:
        size = b.and_(word, I32(0x7FFF7FFF))
        before = _of_halves(b, "add.u16x2", size, I32(0xFFFFFFFF))
        least = _of_halves(b, "min.u16x2", least, before)
        most = _of_halves(b, "max.u16x2", most, size)
    return least, most


def _of_halves(builder: Any, name: str, x: Any, y: Any) -> Any:
    kind = ir.FunctionType(I32, [I32, I32])
    code = ir.InlineAsm(kind, f"{name} $0, $1, $2;", "=r,r,r", side_effect=False)
    return builder.call(code, [x, y])


@intrinsic
def store_terms(
    typing_context: Any, target: Any, index: Any, terms: Any, part: Any, kind: Any
) -> Any:
    """Terms in 16 bytes, rounded or split as `kind` says, to target[index]; further parts each `part`
    elements on. `part` and `kind` are literal."""
    given = (part, kind)
    if not all(isinstance(v, types.IntegerLiteral) for v in given):
        return None
    between, how = (v.literal_value for v in given)
    assert terms.count == terms_of_chunk(how)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b, packer, four = builder, Packer(builder, how), ir.VectorType(I32, 4)
        words = [b.bitcast(b.extract_value(args[2], i), I32) for i in range(terms.count)]
        for n, chunk in enumerate(packer.parts(words)):
            where = b.gep(args[0], [b.add(args[1], I64(n * between))])
            b.store(packer.joined(chunk), b.bitcast(where, four.as_pointer())).align = 16
        return context.get_dummy_value()

    return types.void(target, types.int64, terms, *given), generate
