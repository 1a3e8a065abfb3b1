"""Functions of arrays that say themselves how they are differentiated.

While a function is traced to be differentiated, a call of one is one op, `graph.custom_call`, which names
it. Its rule is another such op, of the function's own `vjp` or `jvp`. What comes of that is replayed into a
trace: there the functions are called, and no such op is left.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, cast
from weakref import WeakValueDictionary

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, IntegerType, StringAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    var_operand_def,
    var_result_def,
)

from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.gradients import add_rule, has_gradient
from irkit.dialects.graph.gradients.rule import Builder, Maybe, Rule, made_good
from irkit.dialects.inference import Props
from irkit.dialects.types import Tensor
from irkit.errors import UnsupportedError
from irkit.frontends.numpy.arrays import TracedArray, fresh, value_of
from irkit.frontends.numpy.operands import array_of
from irkit.frontends.numpy.places import refused
from irkit.frontends.numpy.recorder import recorder
from irkit.frontends.numpy.records import Value


@irdl_op_definition
class CustomCallOp(GraphOp):
    """A call of a part (function, vjp or jvp) of the custom function `number`; it is gone before a trace
    ends."""

    name = "graph.custom_call"
    inputs = var_operand_def(TensorType)
    number = prop_def(IntegerAttr[IntegerType])
    part = prop_def(StringAttr)
    types = prop_def(ArrayAttr)
    groups = opt_prop_def(ArrayAttr)
    outputs = var_result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        return list(cast("ArrayAttr[Tensor]", props["types"]).data)


class Custom:
    """A function with rules of its own. `ends`: to derivatives its results are constants."""

    def __init__(
        self,
        function: Callable[..., Any],
        vjp: Callable[..., Any] | None,
        jvp: Callable[..., Any] | None,
        ends: bool = False,
    ) -> None:
        self.function, self.vjp, self.jvp, self.ends = function, vjp, jvp, ends
        self.number = next(_NUMBERS)
        self.single = True
        _KNOWN[self.number] = self

    def record(self, scope: Callable[[Any], Any], arguments: Sequence[Any]) -> Any:
        """A call in a trace; one op, if that is differentiated."""
        r = recorder()
        if not r.differentiated:
            return scope(self.function)(*arguments)
        r.customs.append(self)
        arrays = [array_of(a) for a in arguments]
        values = [value_of(a) for a in arrays]
        outcomes = self._outcomes(scope, arrays)
        types = ArrayAttr[Attribute]([v.type for v in outcomes])
        made = r.ops(CustomCallOp, *values, number=self.number, part="function", types=types)
        results = tuple(fresh(v) for v in made)
        return results[0] if self.single else results

    def _outcomes(self, scope: Callable[[Any], Any], arrays: Sequence[TracedArray]) -> list[Value]:
        """What the function returns, to see of which types it is; nothing of it stays."""
        r = recorder()
        before, r.records, r.differentiated = r.records, [], False
        try:
            found = scope(self.function)(*(fresh(value_of(a)) for a in arrays))
            self.single = not isinstance(found, tuple)
            return [value_of(array_of(x)) for x in self.several(found)]
        finally:
            r.records, r.differentiated = before, True

    def several(self, found: Any) -> tuple[Any, ...]:
        """What a part returns, as a tuple."""
        return cast("tuple[Any, ...]", found) if isinstance(found, tuple) else (found,)


_NUMBERS = itertools.count()
_KNOWN: WeakValueDictionary[int, Custom] = WeakValueDictionary()


def called(op: CustomCallOp, values: Sequence[Value]) -> list[Value]:
    """The results of a call, in the trace at hand, of values of it."""
    from irkit.frontends.numpy.nested import scoped

    custom, part = _KNOWN[op.number.value.data], op.part.data
    arrays = [fresh(v) for v in values]
    if part == "function":
        found = custom.several(custom.record(scoped, arrays))
    else:
        found = _derivative(custom, op, part, scoped, arrays)
    wanted = [cast(Tensor, v.type) for v in op.results]
    made = [value_of(array_of(x)) for x in found]
    got = [v.type for v in made]
    if got != wanted:
        shown = ", ".join(map(str, got)), ", ".join(map(str, wanted))
        raise refused(f"the {part} of a custom gradient gives {shown[0]}: expected {shown[1]}")
    return made


def _derivative(
    custom: Custom, op: CustomCallOp, part: str, scope: Any, arrays: list[TracedArray]
) -> tuple[Any, ...]:
    """Gradients of the arguments of floats, or tangents of the results of floats."""
    function = scope(custom.vjp if part == "vjp" else custom.jvp)
    one = custom.single
    groups = _groups(op)
    split = [tuple(arrays[a:b]) for a, b in itertools.pairwise(itertools.accumulate([0, *groups]))]
    arguments, results, changes = split

    def plain(several: tuple[Any, ...]) -> Any:
        return several[0] if one else several

    if part == "vjp":
        found = custom.several(function(arguments, plain(results), plain(changes)))
        if len(found) != len(arguments):
            wanted = f"expected {len(arguments)}, None for what has none"
            raise refused(f"the vjp of a custom gradient gives {len(found)} gradients: {wanted}")
        return tuple(
            np.zeros(a.shape, a.dtype) if g is None else g
            for g, a in zip(found, arguments, strict=True)
            if a.dtype.kind not in "biu"
        )
    return custom.several(function(arguments, changes, plain(results)))


def _groups(op: CustomCallOp) -> list[int]:
    """How many of the operands are arguments, results, and cotangents or tangents."""
    assert op.groups is not None
    counts = cast("ArrayAttr[IntegerAttr[IntegerType]]", op.groups)
    return [c.value.data for c in counts.data]


class _CustomRule(Rule):
    """Calls of the function's own parts."""

    def jvp(self, o: Builder, op: GraphOp, tangents: Sequence[Maybe]) -> list[Maybe]:
        assert isinstance(op, CustomCallOp)
        if _KNOWN[op.number.value.data].ends:
            return [None] * len(op.results)
        custom = _of(op, "jvp")
        changes = [made_good(o, t, v) for t, v in zip(tangents, op.operands, strict=True)]
        return list(_called(o, op, custom, "jvp", changes, list(op.results)))

    def vjp(
        self, o: Builder, op: GraphOp, cotangents: Sequence[Maybe], wanted: Sequence[bool]
    ) -> list[Maybe]:
        assert isinstance(op, CustomCallOp)
        if _KNOWN[op.number.value.data].ends:
            return [None] * len(op.operands)
        custom = _of(op, "vjp")
        changes = [made_good(o, c, v) for c, v in zip(cotangents, op.results, strict=True)]
        floats = [v for v in op.operands if has_gradient(v)]
        found = iter(_called(o, op, custom, "vjp", changes, floats))
        return [next(found) if has_gradient(v) else None for v in op.operands]


def _of(op: CustomCallOp, part: str) -> Custom:
    custom = _KNOWN[op.number.value.data]
    name = getattr(custom.function, "__qualname__", "function")
    if op.part.data != "function" or getattr(custom, part) is None:
        raise UnsupportedError(f"'{name}' has a custom gradient without a {part}")
    return custom


def _called(
    o: Builder,
    op: CustomCallOp,
    custom: Custom,
    part: str,
    changes: Sequence[SSAValue],
    like: Sequence[SSAValue],
) -> Sequence[SSAValue]:
    counts = (len(op.operands), len(op.results), len(changes))
    return o.make(
        CustomCallOp, *op.operands, *op.results, *changes, number=custom.number, part=part,
        types=ArrayAttr[Attribute]([v.type for v in like]),
        groups=ArrayAttr([IntegerAttr(c, 64) for c in counts]),
    )  # fmt: skip


add_rule(CustomCallOp, _CustomRule())
