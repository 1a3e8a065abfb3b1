"""Maps of which one mask says for every result where it is computed.

`a[mask] = v` is one, and so are rounds of a loop that goes on with what a mask picked. Masks of few elements,
or of such that lie together, hold for none in most blocks of elements: there only what is kept is stored.
"""

from __future__ import annotations

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import i1
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, BlockArgument, SSAValue
from xdsl.ir.affine import AffineMap

from irkit.dialects.linalg_generic import is_elementwise, maps
from irkit.dialects.types import tensor_type

_FREE = (linalg.FillOp, tensor.DimOp, tensor.EmptyOp, arith.ConstantOp)


def mask_of(body: Block) -> BlockArgument | None:
    """The operand of an rOperator's body that is the mask of every result; None if there is none.

    The body is one elementwise op that reads the mask at the element that it computes; each of its results
    is what the mask chooses of two, or is true where the mask is and something else.
    """
    *ops, last = body.ops
    made = [op for op in ops if not isinstance(op, _FREE)]
    if len(made) != 1:
        return None
    (op,) = made
    if not isinstance(op, linalg.GenericOp) or not is_elementwise(op):
        return None
    terminator = op.body.block.last_op
    if terminator is None or set(last.operands) != set(op.results):
        return None
    masks = [_masks(v, op) for v in terminator.operands]
    shared = set[BlockArgument].intersection(*masks) if masks else set[BlockArgument]()
    return next((m for m in body.args if m in shared), None)


def _masks(value: SSAValue, op: linalg.GenericOp) -> set[BlockArgument]:
    """Operands, read at the element itself alone, that choose what a result is."""
    owner = value.owner
    test = owner.cond if isinstance(owner, arith.SelectOp) else value
    if test is value and not isinstance(owner, arith.AndIOp):
        return set()
    needed = _needed(test)
    arguments = [t for t in needed if isinstance(t, BlockArgument) and t.block is op.body.block]
    found = [op.operands[a.index] for a in arguments]
    return {m for m in found if isinstance(m, BlockArgument) and _is_read_in_place(m, op)}


def _needed(test: SSAValue) -> list[SSAValue]:
    """What must be true where `test` is."""
    owner = test.owner
    if isinstance(owner, arith.AndIOp) and test.type == i1:
        return [*_needed(owner.lhs), *_needed(owner.rhs)]
    return [test]


def _is_read_in_place(mask: BlockArgument, op: linalg.GenericOp) -> bool:
    identity = AffineMap.identity(len(op.iterator_types))
    read = [m for v, m in zip(op.operands, maps(op), strict=True) if v is mask]
    return tensor_type(mask).element_type == i1 and all(m == identity for m in read)
