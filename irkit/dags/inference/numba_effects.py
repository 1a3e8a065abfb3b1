"""Which arguments a Numba kernel reads and writes: an abstract execution of its typed code.

Each variable is followed to the arguments that it may point to: through assignments, views, tuples,
iterators, records, and calls of device functions (Andersen's inclusion constraints, without order;
Program Analysis and Specialization for the C Programming Language, 1994). What no table knows reads
and writes all that it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from irkit.dags.inference.covered import Cover, covers_of
from irkit.dags.inference.memory_values import (
    CAPTURED,
    NOTHING,
    NOWHERE,
    Root,
    Value,
    argument_value,
    holds_memory,
    is_array,
    is_memory,
    kinds_of,
    together,
)
from irkit.dags.inference.numba_calls import LOOK, UNKNOWN, Rule, parameters_of, rule_of
from irkit.dags.inference.typed_code import typed_code
from irkit.errors import UnsupportedError


@dataclass
class Effects:
    """Roots that are read and written; `captured` has the device arrays that code names as globals,
    `covers` what is written whole by large enough launches."""

    reads: set[Root] = field(default_factory=set[Root])
    writes: set[Root] = field(default_factory=set[Root])
    captured: dict[int, Any] = field(default_factory=dict[int, Any])
    covers: tuple[Cover, ...] = ()

    def read(self, value: Value) -> None:
        """All of a value may be read."""
        self.reads |= value.all

    def write(self, value: Value) -> None:
        """All of a value may be written."""
        self.writes |= value.all


def kernel_effects(kernel: Any, types: tuple[Any, ...]) -> Effects:
    """What a Numba CUDA kernel does to its arguments of these types.

    Raises UnsupportedError where Numba refuses it, or where it writes to memory that is of no argument.
    """
    effects = effects_of(typed_code(kernel, types), types)
    if NOWHERE in effects.writes:
        raise UnsupportedError(
            f"kernel '{kernel.py_func.__name__}': it writes through an address that is of none of its "
            "arrays, so what it writes cannot be bounded"
        )
    return effects


def effects_of(code: Any, types: tuple[Any, ...]) -> Effects:
    """What typed code does to arguments of these types."""
    effects = Effects()
    arguments = [argument_value(number, typed) for number, typed in enumerate(types)]
    _Function(code, arguments, effects, ()).run()
    read = {root.number for root in effects.reads}
    effects.covers = tuple(c for c in covers_of(code) if c.argument not in read)
    return effects


class _Function:
    """One function of typed code on certain arguments. `stack` has those that are being followed."""

    def __init__(
        self, code: Any, arguments: Sequence[Value], effects: Effects, stack: tuple[int, ...]
    ) -> None:
        self._code, self._arguments, self._effects = code, arguments, effects
        self._stack = (*stack, id(code))
        self._values: dict[str, Value] = {}
        self._result = NOTHING

    def run(self) -> Value:
        """Follow everything until nothing more is found; what the function returns."""
        statements = [s for block in self._code.blocks.values() for s in block.body]
        before: object = None
        while before != (before := self._state()):
            for statement in statements:
                self._statement(statement)
        return self._result

    def _state(self) -> object:
        found = self._effects
        return dict(self._values), self._result, len(found.reads), len(found.writes)

    # -- statements

    def _statement(self, statement: Any) -> None:
        kind = type(statement).__name__
        if kind in _SKIPPED:
            return
        if kind == "Assign":
            self._assign(statement.target.name, self._expression(statement))
        elif kind in ("SetItem", "StaticSetItem", "SetAttr"):
            self._effects.write(self.of(statement.target))
            self._effects.read(self.of(statement.value))
            self._effects.read(self.of(getattr(statement, "index", None)))
        elif kind == "Return":
            self._result = self._result.join(self.of(statement.value))
        elif kind == "Print":
            self._effects.read(together(self.of(v) for v in statement.args))
        else:
            self._anything(statement.list_vars())

    def _assign(self, name: str, value: Value) -> None:
        self._values[name] = self._values.get(name, NOTHING).join(value)

    def of(self, variable: Any) -> Value:
        """What a variable of the IR may point to; nothing for what is no variable."""
        return self._values.get(getattr(variable, "name", ""), NOTHING)

    def _anything(self, variables: Sequence[Any]) -> Value:
        """The worst that may be done with variables."""
        value = together(self.of(v) for v in variables)
        self._effects.read(value)
        self._effects.write(value)
        return value

    # -- expressions

    def _expression(self, statement: Any) -> Value:
        value, typed = statement.value, self._code.typemap[statement.target.name]
        kind = type(value).__name__
        if kind == "Arg":
            number: int = value.index
            return self._arguments[number]
        if kind in ("Global", "FreeVar"):
            return self._captured(value.value)
        if kind == "Var":
            return self.of(value)
        if kind != "Expr":
            return NOTHING
        rule = _EXPRESSIONS.get(value.op)
        found = rule(self, value, typed) if rule else self._anything(value.list_vars())
        return found if holds_memory(typed) else NOTHING

    def _captured(self, value: Any) -> Value:
        """A device array that code names; a host array is copied when the kernel is compiled."""
        if isinstance(value, tuple):
            return Value(items=tuple(map(self._captured, cast(Sequence[Any], value))))
        if not hasattr(value, "__cuda_array_interface__"):
            return NOTHING
        self._effects.captured[id(value)] = value
        return Value(frozenset([Root(CAPTURED, (id(value),))]))

    def attribute(self, expression: Any, typed: Any) -> Value:
        base, of = self.of(expression.value), self._type(expression.value)
        if "Module" in kinds_of(of):
            return self._captured(getattr(of.pymod, expression.attr, None))
        if not is_array(of) and not holds_memory(typed):
            self._effects.read(base)
        return Value(base.all)

    def item(self, expression: Any, typed: Any) -> Value:
        base, of = self.of(expression.value), self._type(expression.value)
        index = expression.index
        if "BaseTuple" in kinds_of(of):
            if base.items is not None and isinstance(index, int):
                return base.items[index]
            return together([base])
        # An index may be an array too.
        self._effects.read(self.of(index))
        if not is_array(typed):
            self._effects.read(base)
        return Value(base.all)

    def packed(self, expression: Any, typed: Any) -> Value:
        return Value(items=tuple(self.of(item) for item in expression.items))

    def same(self, expression: Any, typed: Any) -> Value:
        return self.of(expression.value)

    def nothing(self, expression: Any, typed: Any) -> Value:
        return NOTHING

    def exhaust(self, expression: Any, typed: Any) -> Value:
        if "BaseTuple" not in kinds_of(self._type(expression.value)):
            self._effects.read(self.of(expression.value))
        return self.of(expression.value)

    def union(self, expression: Any, typed: Any) -> Value:
        value = NOTHING
        for incoming in expression.incoming_values:
            value = value.join(self.of(incoming))
        return value

    def next(self, expression: Any, typed: Any) -> Value:
        """An iterator hands out elements, or rows."""
        value = together(self.of(v) for v in expression.list_vars())
        self._effects.read(value)
        return value

    def look(self, expression: Any, typed: Any) -> Value:
        return together(self.of(v) for v in expression.list_vars())

    def computed(self, expression: Any, typed: Any) -> Value:
        value = together(self.of(v) for v in expression.list_vars())
        self._effects.read(value)
        return value

    def in_place(self, expression: Any, typed: Any) -> Value:
        self._effects.write(self.of(expression.lhs))
        return self.computed(expression, typed)

    def _type(self, variable: Any) -> Any:
        return self._code.typemap[variable.name]

    # -- calls

    def call(self, expression: Any, typed: Any) -> Value:
        function = self._type(expression.func)
        args = [self.of(v) for v in expression.args]
        named = {name: self.of(v) for name, v in expression.kws}
        if expression.vararg is None and hasattr(function, "dispatcher"):
            return self._device_function(function.dispatcher, expression, args, named)
        this = self.of(expression.func)
        if this.all:
            args = [this, *args]
        args += [self.of(expression.vararg)] if expression.vararg is not None else []
        return self._apply(rule_of(function), args, list(named.values()), typed)

    def _apply(self, rule: Rule, args: list[Value], named: list[Value], typed: Any) -> Value:
        first, rest = together(args[:1]), together([*args[1:], *named])
        if named and rule is not LOOK:
            # Which parameter a name is of is not followed.
            first = together([first, rest])
        for value, does in ((first, rule.first), (rest, rule.rest)):
            if "r" in does:
                self._effects.read(value)
            if "w" in does:
                self._effects.write(value)
        if rule.result == "new":
            return NOTHING
        found = together([first, rest])
        unknown = rule is UNKNOWN and is_memory(typed) and not found.all
        return Value(frozenset([NOWHERE])) if unknown else found

    def _device_function(
        self, dispatcher: Any, expression: Any, args: list[Value], named: dict[str, Value]
    ) -> Value:
        signature = self._code.calltypes[expression]
        compiled = dispatcher.overloads.get(tuple(signature.args))
        code = getattr(compiled, "type_annotation", None)
        values = parameters_of(dispatcher, args, named)
        if code is None or values is None or id(code) in self._stack:
            return self._apply(UNKNOWN, args, list(named.values()), signature.return_type)
        return _Function(code, values, self._effects, self._stack).run()


_SKIPPED: Final = {
    "Del",
    "Jump",
    "Branch",
    "StaticRaise",
    "StaticTryRaise",
    "PopBlock",
    "EnterWith",
}
"""Statements that touch no element."""

_EXPRESSIONS: Final[Mapping[str, Callable[[_Function, Any, Any], Value]]] = {
    "binop": _Function.computed,
    "build_tuple": _Function.packed,
    "call": _Function.call,
    "cast": _Function.same,
    "exhaust_iter": _Function.exhaust,
    "getattr": _Function.attribute,
    "getitem": _Function.item,
    "getiter": _Function.look,
    "inplace_binop": _Function.in_place,
    "iternext": _Function.next,
    "null": _Function.nothing,
    "pair_first": _Function.same,
    "pair_second": _Function.same,
    "phi": _Function.union,
    "static_getitem": _Function.item,
    "typed_getitem": _Function.item,
    "unary": _Function.computed,
    "undef": _Function.nothing,
}
