"""`linalg.generic`: elementwise ops, reductions, contractions."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float64Type
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr

from irkit.dialects.linalg_generic import (
    continues,
    is_contraction,
    is_elementwise,
    is_projection,
    iterators,
    loop_of,
    loop_sizes,
    maps,
    row_term,
    widens,
)
from irkit.dialects.precision import precision_of, rounded
from irkit.dialects.roperator_root import Root
from irkit.dialects.tensor_ops.interface import (
    Box,
    ElementText,
    Extents,
    Index,
    Interpreter,
    Interval,
    Kind,
    TensorOpModel,
)
from irkit.dialects.tensor_ops.intervals import of_affine
from irkit.dialects.tensor_ops.loop_nest import evaluate_generic
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.errors import UnsupportedError
from irkit.weights import Array


class Generic(TensorOpModel[linalg.GenericOp]):
    """Light if all of its loops are parallel; else the root of what accumulates."""

    def kind(self, op: linalg.GenericOp) -> Kind:
        return Kind.LIGHT if is_elementwise(op) else Kind.HEAVY

    def evaluate(
        self, op: linalg.GenericOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        precision = precision_of(op)
        read = [rounded(a, precision) for a in operands[: len(op.inputs)]]
        return evaluate_generic(op, [*read, *operands[len(op.inputs) :]], interpreter)

    def inputs(self, op: linalg.GenericOp) -> Sequence[SSAValue]:
        return op.inputs

    def operand_boxes(
        self, op: linalg.GenericOp, needed: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        loops, read, written = _nest(op, extents)
        for box, out in zip(needed, written, strict=True):
            _narrow(loops, box, out)
        return [tuple(of_affine(e, loops) for e in results) for results in (*read, *written)]

    def result_boxes(
        self, op: linalg.GenericOp, known: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        loops, read, written = _nest(op, extents)
        if all(box is None for box in known[: len(read)]):
            return [None] * len(op.results)
        for box, results in zip(known, read, strict=False):
            _narrow(loops, box, results)
        return [tuple(of_affine(e, loops) for e in results) for results in written]

    def element(
        self, op: linalg.GenericOp, printer: ElementText, result: SSAValue, index: Index
    ) -> str:
        number = next(i for i, r in enumerate(op.results) if r is result)
        outs = maps(op)[len(op.inputs) :]
        out = outs[number]
        loop: dict[int, str] = {}
        for expr, i in zip(out.results, index, strict=True):
            if isinstance(expr, AffineDimExpr):
                loop[expr.position] = i
        if len(loop) != out.num_dims or len(index) != out.num_dims:
            raise UnsupportedError(f"emission of '{op.name}' that writes as {out}")
        values = printer.yielded(op, tuple(loop[d] for d in range(out.num_dims)))
        for other, amap, text in zip(op.results, outs, values, strict=True):
            if amap == out:
                printer.remember(other, index, text)
        return values[number]

    def why_no_prologue(self, op: linalg.GenericOp, producer: Operation, cheap: bool) -> str | None:
        """None if each element of `producer` is read about once."""
        if is_elementwise(op):
            return None
        position = [i for i, v in enumerate(op.operands) if v.owner is producer]
        if all(i >= len(op.inputs) for i in position):
            return None
        indices = [e for i in position for e in maps(op)[i].results]
        if any(not isinstance(e, AffineDimExpr) for e in indices):
            free = cheap or (widens(producer) and not is_contraction(op))
            return None if free else "its windows read elements more than once"
        wide = isinstance(tensor_type(producer.results[0]).element_type, Float64Type)
        few = wide and widens(producer) and _times_read(op, position) <= _FEW
        if few or not is_contraction(op):
            return None
        return "a contraction reads each element many times"

    def why_no_epilogue(self, op: linalg.GenericOp, producer: Operation) -> str | None:
        """None if `producer` is read once per element (or a fixed set of its last dimension), in place."""
        if not is_elementwise(op):
            return super().why_no_epilogue(op, producer)
        loops = len(op.iterator_types)
        rank = tensor_type(producer.results[0]).get_num_dims()
        if loops != rank and not (_is_row_contraction(producer) and loops < rank):
            return f"it has {loops} loops, the root's result {rank} dimensions"
        for operand, amap in zip(op.operands, maps(op), strict=True):
            if operand.owner is not producer:
                continue
            lead, rest = amap.results[:loops], amap.results[loops:]
            in_place = all(
                isinstance(e, AffineDimExpr) and e.position == d for d, e in enumerate(lead)
            )
            if not in_place or not all(isinstance(e, AffineConstantExpr) for e in rest):
                return f"it reads the root's result as {amap}, not in place"
        return None

    def root(self, heavy: Sequence[Operation]) -> Root:
        """A chain of contractions, each of which goes on accumulating, or one other reduction."""
        chain: list[linalg.GenericOp] = []
        for op in heavy:
            if not isinstance(op, linalg.GenericOp) or (chain and not continues(chain[-1], op)):
                raise ValueError("an rOperator has one root")
            chain.append(op)
        last = chain[-1]
        sizes, parallel = loop_sizes(last), iterators(last)
        kept = tuple(s for s, p in zip(sizes, parallel, strict=True) if p)
        reduced = tuple(s for s, p in zip(sizes, parallel, strict=True) if not p)
        return Root(_family(chain), last, kept, reduced, tuple(chain))

    def root_box(self, root: Root, cell: Sequence[Interval]) -> Box:
        op = root.chain[-1]
        parallel = [d for d, p in enumerate(iterators(op)) if p]
        where = dict(zip(parallel, cell, strict=True))
        out = maps(op)[-1]
        return tuple(where[e.position] for e in out.results if isinstance(e, AffineDimExpr))


_FEW = 4
"""So often an element is read and widened in less time than it takes to be written and read, widened."""


def _times_read(op: linalg.GenericOp, operands: Sequence[int]) -> float:
    """How many outputs of a contraction read an element of each of these operands, at most: of a matrix with
    rows of its own as many as there are columns."""
    pairs = list(zip(loop_sizes(op), iterators(op), strict=True))
    used = [{loop_of(e) for e in maps(op)[i].results} for i in operands]
    free = [[s for d, (s, p) in enumerate(pairs) if p and d not in dims] for dims in used]
    return max(inf if DYNAMIC in sizes else prod(sizes) for sizes in free)


def reads_once(op: Operation, producer: Operation) -> bool:
    """Whether a contraction reads each element of `producer` for one output alone, and that computes it with
    simple arithmetic of floats: a matrix that is made for one column, or one row."""
    if not isinstance(op, linalg.GenericOp) or not is_contraction(op):
        return False
    if not isinstance(producer, linalg.GenericOp) or not is_elementwise(producer):
        return False
    # What only widens is for `why_no_prologue`: rKernels read 16-bit floats as they lie.
    if widens(producer):
        return False
    position = [i for i, v in enumerate(op.operands) if v.owner is producer]
    if len(position) != 1 or not is_projection(maps(op)[position[0]]):
        return False
    body = all(isinstance(inner, _SIMPLE) for inner in producer.body.block.ops)
    return body and _times_read(op, position) == 1


_SIMPLE = (
    arith.AddfOp,
    arith.SubfOp,
    arith.MulfOp,
    arith.NegfOp,
    arith.ExtFOp,
    arith.ConstantOp,
    linalg.YieldOp,
)
"""What takes less time than the memory does for an element."""


_Indexed = tuple[tuple[AffineExpr, ...], ...]


def _nest(op: linalg.GenericOp, extents: Extents) -> tuple[list[Interval], _Indexed, _Indexed]:
    """All of the loops of an op; how its inputs, and how its results, are indexed by them."""
    if op not in extents.known:
        loops = tuple(extents.interval(size) for size in loop_sizes(op))
        indexed = tuple(m.results for m in maps(op))
        extents.known[op] = loops, indexed[: len(op.inputs)], indexed[len(op.inputs) :]
    loops, read, written = extents.known[op]
    return list(loops), read, written


def _narrow(loops: list[Interval], box: Box | None, results: Sequence[object]) -> None:
    """Loops that index a dimension alone run over what is known of it."""
    for expr, interval in zip(results, box or (), strict=box is not None):
        if isinstance(expr, AffineDimExpr):
            loops[expr.position] = interval


def _is_row_contraction(op: Operation) -> bool:
    return (
        isinstance(op, linalg.GenericOp)
        and is_contraction(op)
        and iterators(op) == [True] * (len(op.iterator_types) - 1) + [False]
    )


def _family(chain: list[linalg.GenericOp]) -> str:
    last = chain[-1]
    if not is_contraction(last):
        windows = any(not is_projection(m) for m in maps(last))
        return "pool" if windows else "reduce"
    terms = [row_term(op) for op in chain]
    if all(terms) and (len(chain) > 1 or any(t.group for t in terms if t is not None)):
        return "recurrent_cell"
    one_loop = len(loop_sizes(last)) - sum(iterators(last)) == 1
    # A product has rows or columns, and so have its factors.
    product = one_loop and all(is_projection(m) and m.results for m in maps(last))
    return "gemm" if product else "conv"
