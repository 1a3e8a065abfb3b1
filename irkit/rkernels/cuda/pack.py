"""Terms of products packed for tensor cores: a thread rounds or splits the terms of pieces of 16 bytes."""

from __future__ import annotations

from irkit.dialects import te
from irkit.dialects.packed_terms import SCALED
from irkit.dialects.precision import Precision
from irkit.dialects.roperator_root import Root
from irkit.rkernels.cuda.product_mma import BF16, F16, SPLIT, TF32, THREADS_PER_BLOCK
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

KINDS = {
    Precision.FLOAT32: SPLIT,
    Precision.TF32: TF32,
    Precision.BF16: BF16,
    Precision.F16: F16,
}


def pack_pieces(task, tasks, rows, scratch, OPERANDS):
    t0, t1, g0, g1 = TILES(task)
    count = (t1 - t0) * (g1 - g0) * 8 * PIECES

    # Where a piece begins, and its terms. Neighbours read and write what lies side by side, whole sectors.
    def piece(i):
        if BY_K:
            row, place = divide(i, (t1 - t0) * PIECES)
            block, part = divide(place, PIECES)
        else:
            place, eighth = divide(i, 8)
            place, part = divide(place, PIECES)
            block, group = divide(place, g1 - g0)
            row = group * 8 + eighth
        turned = row % 8 if PIECES == 8 else row % 8 // 2
        start = (((t0 + block) * PARTS * GROUPS + g0) * 8 + row) * PIECES + (part ^ turned)
        terms = TERMS(OPERANDS, g0 * 8 + row, ((t0 + block) * PIECES + part) * COUNT)
        return fixed(start * COUNT), terms

    # Four at once, so that their loads are on their way together.
    for i in range(THREAD, count, 4 * THREADS):
        one = piece(i)
        two = piece(min(i + THREADS, count - 1))
        three = piece(min(i + 2 * THREADS, count - 1))
        four = piece(min(i + 3 * THREADS, count - 1))
        store_terms(PACKED, one[0], one[1], GROUPS * 8 * PIECES * COUNT, KIND)
        store_terms(PACKED, two[0], two[1], GROUPS * 8 * PIECES * COUNT, KIND)
        store_terms(PACKED, three[0], three[1], GROUPS * 8 * PIECES * COUNT, KIND)
        store_terms(PACKED, four[0], four[1], GROUPS * 8 * PIECES * COUNT, KIND)


def _as_they_are(root: Root) -> bool:
    return isinstance(root.op, te.PackOp) and root.op.precision.data != SCALED


def _parameters(root: Root) -> Parameters:
    assert isinstance(root.op, te.PackOp)
    kind = KINDS[Precision(root.op.precision.data)]
    return {"KIND": kind, "COUNT": 4 if kind == TF32 else 8}


def _work(part: Part) -> Work:
    """A row's pieces; those of parts are made of the same terms."""
    parts = part.root.parallel[1]
    terms = part.elements / parts
    each = part.loads + work(op=1 + 3 * parts)
    return each * terms + work(round=part.rounds(terms, 32 * part.threads))


RKERNELS = [
    RKernel(
        "pack",
        "pieces",
        "cuda",
        __name__,
        "pack_pieces",
        legal=_as_they_are,
        threads=THREADS_PER_BLOCK,
        parameters=_parameters,
        work=_work,
        vectors=("X",),
        halves=True,
        spreads=lambda part: part.elements,
    ),
]
