"""Which rOperators a library computes as well: products whose answer is no less exact than what was asked.

Of TF32 there is none: cuBLASLt cuts factors off where TF32 here means rounded ones. Activations stay with
irkit's own kernels, which keep NaN. So do 16-bit floats whose sums are to be float32's own, since tensor
cores cut those off.
"""

from __future__ import annotations

import math

from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, FloatAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, BlockArgument, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap

from irkit.dialects.linalg_generic import maps
from irkit.dialects.precision import Precision, precision_of
from irkit.dialects.roperator_root import Root, gemm_inputs
from irkit.dialects.task import ROperatorOp
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.schedule.library_call import NONE, LibraryCall

CUBLASLT = "cublaslt"
LIBRARIES = (CUBLASLT,)
_ELEMENTS: dict[type[Attribute], str] = {
    Float32Type: "float32",
    BFloat16Type: "bfloat16",
    Float16Type: "float16",
}
# In what precision products of elements may be computed; those of 16 bits are exact in any.
_GRANTED = {
    "float32": (Precision.FLOAT32, Precision.IEEE, Precision.BF16, Precision.F16),
    "bfloat16": (Precision.BF16,),
    "float16": (Precision.F16,),
}


def library_call(op: ROperatorOp, root: Root, library: str = CUBLASLT) -> LibraryCall | None:
    """What to ask a library for; None if it does not compute this rOperator, or not as exactly."""
    if library not in LIBRARIES or op.in_place_pairs or len(op.terminator.values) != 1:
        return None
    inputs = _plain_product(root)
    if inputs is None:
        return None
    product, a, b = root.chain[0], *inputs
    transposed = _transposed(root, a, b)
    element = _element(product.inputs[a])
    granted = precision_of(product)
    if transposed is None or element != _element(product.inputs[b]):
        return None
    if granted not in _GRANTED.get(element, ()):
        return None
    ends = _ends(op, root)
    if ends is None:
        return None
    result, bias, addend = ends
    arguments = list(op.body.block.args)
    numbers = [arguments.index(v) if v is not None else NONE for v in (bias, addend)]
    return LibraryCall(
        library,
        math.prod(root.parallel[:-1]),
        root.parallel[-1],
        math.prod(root.reduction),
        transposed,
        element,
        result,
        granted.value,
        _number(op, product.inputs[a]),
        _number(op, product.inputs[b]),
        len(arguments),
        *numbers,
    )


def _number(op: ROperatorOp, value: SSAValue) -> int:
    return next(n for n, argument in enumerate(op.body.block.args) if argument is value)


def _element(value: SSAValue) -> str:
    return _ELEMENTS.get(type(tensor_type(value).element_type), "")


def _plain_product(root: Root) -> tuple[int, int] | None:
    """(number of A, number of B) of a product of two operands in memory, all sizes known."""
    if root.family != "gemm" or len(root.chain) != 1 or DYNAMIC in root.parallel:
        return None
    product = root.chain[0]
    known = {"arith.mulf", "arith.addf", "arith.extf", "linalg.yield"}
    if len(product.inputs) != 2 or any(o.name not in known for o in product.body.block.ops):
        return None
    if not all(isinstance(v, BlockArgument) for v in product.inputs):
        return None
    return gemm_inputs(root) if len(root.parallel) > 1 else None


def _transposed(root: Root, a: int, b: int) -> bool | None:
    """Whether B lies as [n, k]; None where A or B lies otherwise."""
    product = root.chain[0]
    last = len(root.parallel) - 1
    loops = [AffineDimExpr(d) for d in range(last + 1 + len(root.reduction))]
    rows, column, terms = loops[:last], loops[last : last + 1], loops[last + 1 :]
    of_a, of_b = (list(maps(product)[n].results) for n in (a, b))
    whole = all(_fills(root, product, n) for n in (a, b))
    if not whole or of_a != [*rows, *terms] or of_b not in ([*terms, *column], [*column, *terms]):
        return None
    # One column or one term lies both ways.
    return of_b == [*column, *terms]


def _fills(root: Root, product: linalg.GenericOp, number: int) -> bool:
    """Whether the loops go over a whole operand."""
    sizes = (*root.parallel, *root.reduction)
    shape = tensor_type(product.inputs[number]).get_shape()
    read = maps(product)[number].results
    return all(
        isinstance(e, AffineDimExpr) and sizes[e.position] == extent
        for e, extent in zip(read, shape, strict=True)
    )


Ends = tuple[str, BlockArgument | None, BlockArgument | None]


def _ends(op: ROperatorOp, root: Root) -> Ends | None:
    """(elements of the result, bias, addend): what the sums start from, and what is done to them."""
    start = _start(root)
    if start is None:
        return None
    bias, addend = start
    value, own = op.terminator.values[0], root.chain[0].results[0]
    if value is own:
        return "float32", bias, addend
    behind = value.owner
    if not isinstance(behind, linalg.GenericOp) or len(behind.results) != 1:
        return None
    # The result's elements are rounded sums; a bias would be of their type.
    if bias is None and addend is None and _is_rounding(behind, own):
        return _element(value), None, None
    added = _added(behind, own, root)
    if added is None or (bias and added[0]) or (addend and added[1]):
        return None
    return "float32", bias or added[0], addend or added[1]


def _start(root: Root) -> tuple[BlockArgument | None, BlockArgument | None] | None:
    """(bias, addend) that the sums start from; None if from anything else."""
    start = root.chain[0].outputs[0].owner
    if isinstance(start, linalg.FillOp):
        return (None, None) if _is_zero(start.inputs[0]) else None
    if not isinstance(start, linalg.GenericOp) or len(start.inputs) != 1:
        return None
    source, inner = start.inputs[0], start.body.block
    end = inner.last_op
    if end is None or end is not inner.first_op or end.operands[0] is not inner.args[0]:
        return None
    if not isinstance(source, BlockArgument) or _element(source) != "float32":
        return None
    return _place(source, maps(start)[0], root)


def _place(
    value: BlockArgument, read: AffineMap, root: Root
) -> tuple[BlockArgument | None, BlockArgument | None] | None:
    """(bias, addend): what an operand is that is read so; None if neither."""
    shape, rank = tensor_type(value).get_shape(), len(root.parallel)
    if list(read.results) == [AffineDimExpr(rank - 1)] and shape == root.parallel[-1:]:
        return value, None
    if list(read.results) == _identity(rank) and shape == root.parallel:
        return None, value
    return None


def _identity(rank: int) -> list[AffineExpr]:
    return [AffineDimExpr(d) for d in range(rank)]


def _is_zero(value: SSAValue) -> bool:
    made = value.owner
    if not isinstance(made, arith.ConstantOp):
        return False
    constant: Attribute = made.value
    return isinstance(constant, FloatAttr) and constant.value.data == 0


def _added(
    behind: linalg.GenericOp, own: SSAValue, root: Root
) -> tuple[BlockArgument | None, BlockArgument | None] | None:
    """(bias, addend) that are added to the sums, if that is all that `behind` does."""
    if not _is_sum(behind) or [v for v in behind.inputs if v is own] != [own]:
        return None
    bias: BlockArgument | None = None
    addend: BlockArgument | None = None
    for value, read in zip(behind.inputs, maps(behind), strict=False):
        if value is own and list(read.results) == _identity(len(root.parallel)):
            continue
        if not isinstance(value, BlockArgument) or _element(value) != "float32":
            return None
        place = _place(value, read, root)
        if place is None or (bias and place[0]) or (addend and place[1]):
            return None
        bias, addend = bias or place[0], addend or place[1]
    return bias, addend


def _is_sum(behind: linalg.GenericOp) -> bool:
    """Whether each element is the sum of one of every input, each taken once."""
    block = behind.body.block
    *sums, end = block.ops
    used = [v for op in sums for v in op.operands] + list(end.operands)
    made = [v for op in sums for v in op.results]
    inputs = list(block.args[: len(behind.inputs)])
    return (
        all(isinstance(op, arith.AddfOp) for op in sums)
        and len(used) == len(set(used)) == len(inputs) + len(made)
        and set(used) == {*inputs, *made}
        and list(maps(behind)[-1].results) == _identity(maps(behind)[-1].num_dims)
    )


def _is_rounding(behind: linalg.GenericOp, own: SSAValue) -> bool:
    names = [o.name for o in behind.body.block.ops]
    identity = _identity(maps(behind)[-1].num_dims)
    return (
        names == ["arith.truncf", "linalg.yield"]
        and list(behind.inputs) == [own]
        and all(list(m.results) == identity for m in maps(behind))
    )
