"""A function of an open batch as one of a batch of so many rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import WhileOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from irkit.dialects.graph import ExpandOp, ReshapeOp, SliceOp
from irkit.dialects.graph.base import GraphOp, product
from irkit.dialects.loops import asked_by, body_of, over
from irkit.dialects.symbols import DIMS, argument_symbols, dims_attribute
from irkit.dialects.types import DYNAMIC, int_array, ints, tensor, tensor_type
from irkit.errors import UnsupportedError

Shapes = Mapping[SSAValue, tuple[int, ...]]
"""The shape that each value had before."""


def specialise(function: FuncOp, size: int, symbol: str) -> None:
    """Give the dynamic dimensions that `symbol` names a size, in place, and all that follows from it.

    Raises UnsupportedError, naming the op, where the function has no meaning at that size.
    """
    names = argument_symbols(function)
    before: dict[SSAValue, tuple[int, ...]] = {}
    for argument, own in zip(list(function.body.block.args), names, strict=True):
        if symbol in own:
            rest = iter(own)
            shape = tensor_type(argument).get_shape()
            fixed = [size if s == DYNAMIC and next(rest) == symbol else s for s in shape]
            element = tensor_type(argument).element_type
            made = Rewriter.replace_value_with_new_type(argument, tensor(element, fixed))
            made.name_hint, before[made] = argument.name_hint, shape
    _fix_all(function.body.block, before, size)
    function.update_function_type()
    left = [[n for n in own if n != symbol] for own in names]
    function.attributes.pop(DIMS, None)
    if (dims := dims_attribute(function.function_type.inputs.data, left)) is not None:
        function.attributes[DIMS] = dims


def _fix_all(block: Block, before: dict[SSAValue, tuple[int, ...]], size: int) -> None:
    for op in list(block.ops):
        if isinstance(op, WhileOp) and any(v in before for v in op.operands):
            _fix_loop(op, before, size)
        elif isinstance(op, GraphOp) and any(v in before for v in op.operands):
            _fix(op, before, size)


def _fix_loop(op: WhileOp, before: dict[SSAValue, tuple[int, ...]], size: int) -> None:
    """Give what a loop carries the types of what it starts from, and all that follows from it in its body."""
    asked, body = asked_by(op), body_of(op)
    for argument, start in zip(list(body.args), op.operands, strict=True):
        if start in before:
            before[Rewriter.replace_value_with_new_type(argument, start.type)] = before[start]
    _fix_all(body, before, size)
    made = over(op, list(op.operands), asked)
    for old, new in zip(op.results, made.results, strict=True):
        new.name_hint = old.name_hint
        if old.type != new.type:
            before[new] = tensor_type(old).get_shape()
    Rewriter.replace_op(op, made)


def _fix(op: GraphOp, before: dict[SSAValue, tuple[int, ...]], size: int) -> None:
    """Build `op` anew for operands whose types have changed."""
    rule = _RULES.get(type(op))
    operands, props = (list(op.operands), dict(op.properties))
    if rule is not None:
        operands, props = rule(op, before)
    try:
        types: list[Attribute] = list(type(op).inferred([tensor_type(v) for v in operands], props))
    except VerifyException as error:
        raise UnsupportedError(f"a batch of {size}: {error}") from None
    made = type(op).create(
        operands=operands, result_types=types, properties=props, attributes=op.attributes
    )
    made.location = op.location
    for old, new in zip(op.results, made.results, strict=True):
        new.name_hint = old.name_hint
        if old.type != new.type:
            before[new] = tensor_type(old).get_shape()
    Rewriter.replace_op(op, made)


Fixed = tuple[list[SSAValue], dict[str, Attribute]]
"""Operands and properties."""


def _fix_expand(op: Operation, before: Shapes) -> Fixed:
    assert isinstance(op, ExpandOp)
    want = ints(op.shape)
    have = [1] * (len(want) - tensor_type(op.x).get_num_dims()) + list(
        tensor_type(op.x).get_shape()
    )
    operands: list[SSAValue] = [op.x]
    if op.like is not None and op.like in before:
        rows = _rows(op.like, before)
        have = [rows if w == DYNAMIC else h for h, w in zip(have, want, strict=True)]
    elif op.like is not None:
        operands.append(op.like)
        have = [DYNAMIC if h == 1 else h for h in have]
    shape = [h if w == DYNAMIC else w for h, w in zip(have, want, strict=True)]
    return operands, {**op.properties, "shape": int_array(shape)}


def _fix_reshape(op: Operation, before: Shapes) -> Fixed:
    """What is left of the elements is the dimension that was dynamic."""
    assert isinstance(op, ReshapeOp)
    want, elements = ints(op.shape), product(tensor_type(op.x).get_shape())
    known = product([s for s in want if s != DYNAMIC])
    left = DYNAMIC if elements == DYNAMIC else elements // known if known else _rows(op.x, before)
    shape = [left if s == DYNAMIC else s for s in want]
    return list(op.operands), {**op.properties, "shape": int_array(shape)}


def _rows(x: SSAValue, before: Shapes) -> int:
    """How large the dimension of x is now that was dynamic."""
    return tensor_type(x).get_shape()[before[x].index(DYNAMIC)]


def _fix_slice(op: Operation, before: Shapes) -> Fixed:
    assert isinstance(op, SliceOp)
    pairs = zip(ints(op.sizes), tensor_type(op.x).get_shape(), strict=True)
    sizes = [have if s == DYNAMIC else s for s, have in pairs]
    return list(op.operands), {**op.properties, "sizes": int_array(sizes)}


_RULES: dict[type[GraphOp], Callable[[Operation, Shapes], Fixed]] = {
    ExpandOp: _fix_expand,
    ReshapeOp: _fix_reshape,
    SliceOp: _fix_slice,
}
"""Ops that say a size."""
