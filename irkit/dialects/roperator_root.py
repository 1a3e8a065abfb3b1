"""What an rOperator's body computes: its root, and how the root's dimensions are laid out.

The root is the one op that needs a kernel of its own (a contraction or chain of contractions that
accumulate into each other, a reduction, a softmax, a forest walk, …). All else in a body is light:
each of its elements is an expression of other elements, and is fused as prologue or epilogue. A body
without a heavy op is a `map`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from irkit.dialects import te
from irkit.dialects.task import YieldOp
from irkit.dialects.types import tensor_type
from irkit.errors import UnsupportedError

COMBINERS: dict[type[Operation], str] = {
    arith.AddfOp: "add",
    arith.AddiOp: "add",
    arith.MulfOp: "mul",
    arith.MuliOp: "mul",
    arith.MaximumfOp: "max",
    arith.MinimumfOp: "min",
    arith.MaxSIOp: "max",
    arith.MinSIOp: "min",
}
_TE_FAMILIES: dict[type[Operation], str] = {
    te.SoftmaxOp: "softmax",
    te.ArgmaxOp: "argmax",
    te.ForestOp: "forest",
    te.PerfectForestOp: "perfect_forest",
}


def iterators(op: linalg.GenericOp) -> list[bool]:
    """Per loop dimension: whether it is parallel."""
    return [it.data == IteratorType.PARALLEL for it in op.iterator_types]


def maps(op: linalg.GenericOp) -> list[AffineMap]:
    """Indexing maps of all operands."""
    attr: ArrayAttr[AffineMapAttr] = op.indexing_maps
    return [m.data for m in attr]


def is_heavy(op: Operation) -> bool:
    """Whether an op needs a kernel of its own."""
    if isinstance(op, linalg.GenericOp):
        return not all(iterators(op))
    return type(op) in _TE_FAMILIES


def is_elementwise(op: Operation) -> bool:
    """An all-parallel generic."""
    return isinstance(op, linalg.GenericOp) and all(iterators(op))


def loop_sizes(op: linalg.GenericOp) -> list[int]:
    """Extent of each loop dimension, read off the operand that a dimension indexes alone.

    Raises UnsupportedError for a loop that no operand has alone.
    """
    sizes: dict[int, int] = {}
    for operand, amap in zip(op.operands, maps(op), strict=True):
        for expr, size in zip(amap.results, tensor_type(operand).get_shape(), strict=True):
            if isinstance(expr, AffineDimExpr):
                sizes.setdefault(expr.position, size)
    loops = len(op.iterator_types)
    if missing := [d for d in range(loops) if d not in sizes]:
        raise UnsupportedError(f"loop {missing[0]} of '{op.name}', whose extent no operand says")
    return [sizes[d] for d in range(loops)]


def combiner(op: linalg.GenericOp) -> tuple[str, Operation] | None:
    """("add" | "mul" | "max" | "min", the combining op) of a reduction's body, if it has that form."""
    block = op.body.block
    terminator = block.last_op
    assert terminator is not None
    last = terminator.operands[0].owner
    if len(terminator.operands) != 1 or not isinstance(last, Operation):
        return None
    kind = COMBINERS.get(type(last))
    accumulator = block.args[-1]
    if kind is None or accumulator not in last.operands or len(list(accumulator.uses)) != 1:
        return None
    return kind, last


def is_contraction(op: linalg.GenericOp) -> bool:
    """acc + a * b over some dimensions."""
    if all(iterators(op)) or len(op.inputs) != 2:
        return False
    found = combiner(op)
    if found is None or found[0] != "add":
        return False
    block = op.body.block
    factors = [v for v in found[1].operands if v is not block.args[-1]]
    if len(factors) != 1 or not isinstance(factors[0].owner, arith.MulfOp):
        return False
    return set(factors[0].owner.operands) == set(block.args[:2])


@dataclass(frozen=True)
class Root:
    """The root of a body.

    `parallel` and `reduction` are loop extents (the batch is DYNAMIC). For a chain of contractions
    that accumulate into one another, `chain` lists them in order; `op` is the last.
    `shape` is that of the value that the root defines.
    """

    family: str
    op: Operation | None
    parallel: tuple[int, ...]
    reduction: tuple[int, ...] = ()
    chain: tuple[linalg.GenericOp, ...] = field(default=())

    @property
    def value(self) -> SSAValue | None:
        """What the root defines; None for a map."""
        return self.op.results[0] if self.op is not None else None


def find_root(body: Block) -> Root:
    """The root of an rOperator's body. Raises ValueError if heavy ops do not form one root."""
    heavy = [op for op in body.ops if is_heavy(op)]
    if not heavy:
        terminator = body.last_op
        assert isinstance(terminator, YieldOp)
        return Root("map", None, tuple(tensor_type(terminator.values[0]).get_shape()))
    last = heavy[-1]
    if isinstance(last, linalg.GenericOp):
        return _generic_root(heavy, last)
    if len(heavy) != 1:
        raise ValueError("an rOperator has one root")
    family = _TE_FAMILIES[type(last)]
    shape = tuple(tensor_type(last.results[0]).get_shape())
    if family == "argmax":
        return Root(family, last, shape, (tensor_type(last.operands[0]).get_shape()[-1],))
    return Root(family, last, shape)


def _generic_root(heavy: list[Operation], last: linalg.GenericOp) -> Root:
    chain: list[linalg.GenericOp] = []
    for op in heavy:
        if not isinstance(op, linalg.GenericOp) or (chain and not continues(chain[-1], op)):
            raise ValueError("an rOperator has one root")
        chain.append(op)
    sizes, parallel = loop_sizes(last), iterators(last)
    kept = tuple(s for s, p in zip(sizes, parallel, strict=True) if p)
    reduced = tuple(s for s, p in zip(sizes, parallel, strict=True) if not p)
    return Root(_generic_family(chain), last, kept, reduced, tuple(chain))


def _generic_family(chain: list[linalg.GenericOp]) -> str:
    last = chain[-1]
    if not is_contraction(last):
        windows = any(not _is_projection(m) for m in maps(last))
        return "pool" if windows else "reduce"
    terms = [row_term(op) for op in chain]
    if all(terms) and (len(chain) > 1 or any(t.group for t in terms if t is not None)):
        return "recurrent_cell"
    if (
        all(_is_projection(m) for m in maps(last))
        and len(loop_sizes(last)) - sum(iterators(last)) == 1
    ):
        return "gemm"
    return "conv"


def _is_projection(amap: AffineMap) -> bool:
    return all(isinstance(e, AffineDimExpr | AffineConstantExpr) for e in amap.results)


def continues(first: linalg.GenericOp, second: linalg.GenericOp) -> bool:
    """Whether `second` goes on accumulating into the result of `first`, over the same outputs."""
    if second.outputs[0] is not first.results[0]:
        return False
    return is_contraction(first) and is_contraction(second)


@dataclass(frozen=True)
class RowTerm:
    """One term sum_k X[b, k] * W[u, g, k] of a row-wise contraction over loops (b, u, g..., k)."""

    x: SSAValue
    w: SSAValue
    k: int
    group: tuple[int, ...]


def row_term(op: linalg.GenericOp) -> RowTerm | None:
    """`op` as a RowTerm: loops (b, u, g..., k), X read by (b, k), W by (u, g..., k), both pointers."""
    sizes, parallel = loop_sizes(op), iterators(op)
    n = len(sizes)
    if not is_contraction(op) or n < 3 or parallel != [True] * (n - 1) + [False]:
        return None
    b, k = 0, n - 1
    x_dims, w_dims, out_dims = ([_dim(e) for e in m.results] for m in maps(op))
    inputs = list(op.inputs)
    if w_dims == [b, k] and x_dims == list(range(1, n)):
        x_dims, w_dims, inputs = w_dims, x_dims, inputs[::-1]
    if x_dims != [b, k] or w_dims != list(range(1, n)) or out_dims != list(range(n - 1)):
        return None
    return RowTerm(inputs[0], inputs[1], sizes[k], tuple(sizes[2 : n - 1]))


def _dim(expr: AffineExpr) -> int:
    return expr.position if isinstance(expr, AffineDimExpr) else -1


def gemm_inputs(root: Root) -> tuple[int, int] | None:
    """(number of A, number of B) of a contraction where A has no columns and B no rows."""
    op = root.chain[-1]
    used = [{_dim(e) for e in m.results} for m in maps(op)[:2]]
    last, lead = len(root.parallel) - 1, set(range(len(root.parallel) - 1))
    for a, b in ((0, 1), (1, 0)):
        if last not in used[a] and not used[b] & lead:
            return a, b
    return None


def gemm_layout(root: Root) -> str:
    """How B lies in memory: "kj" (columns run fastest) or "jk"; "" if it is no plain gemm."""
    if root.family != "gemm" or len(root.chain) != 1:
        return ""
    found = gemm_inputs(root)
    if found is None:
        return ""
    fastest = _dim(maps(root.chain[0])[found[1]].results[-1])
    return "jk" if fastest == len(root.parallel) else "kj"
