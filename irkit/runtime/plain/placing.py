"""Nested functions of a unit's text, put where they are called before Numba sees the text.

Numba does so too, but it makes IR of a function anew for every call, and looks through all that it has put
in over and over. What a name outside stands for is what it is when the function is called, as in Python;
names inside become new ones, and an argument that is a name or a number stands itself for its parameter.

A function stays nested, and Numba's to put in place, where it is more than statements with a value behind
them, where it is not only called, and where a call may not be reached, or follows in its statement what may
touch memory.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from typing import cast

from irkit.runtime.plain.nested import (
    OF_ITS_OWN,
    Nested,
    as_nested,
    defined_once,
    known_by,
    leave_out,
    names_in,
    only_called,
    pure,
)


def put_in_place(module: ast.Module) -> ast.Module:
    """The module whose functions have as few nested ones as can be; the tree is changed."""
    taken = {name for node in ast.walk(module) for name in known_by(node)}
    for function in module.body:
        if isinstance(function, ast.FunctionDef):
            _Place(function, taken).put()
    return ast.fix_missing_locations(module)


class _Place:
    """A function, whose nested ones are put in place: those first that call no others."""

    def __init__(self, function: ast.FunctionDef, taken: set[str]) -> None:
        self._function = function
        self._taken = taken
        self._nested: dict[str, Nested] = {}
        # Names that the function has whose statements are looked at, where that is a nested one.
        self._own: set[str] = set()
        # Whether nothing that stays in the statement at hand, and is computed before, may touch memory.
        self._untouched = True

    def put(self) -> None:
        waiting = defined_once(self._function)
        while waiting:
            ready = [
                n for n, d in waiting.items() if not waiting.keys() & set(names_in([d], ast.Load))
            ]
            if not ready:
                break
            for name in ready:
                self._prepare(waiting.pop(name))
        if self._nested:
            self._own = set()
            self._blocks(self._function)
            leave_out(self._function, set(self._nested))

    def _prepare(self, definition: ast.FunctionDef) -> None:
        """Put in place what a nested function calls; then it may be put in place itself."""
        _Place(definition, self._taken).put()
        parameters = {a.arg for a in definition.args.args}
        self._own = parameters | set(names_in(definition.body, ast.Store))
        self._blocks(definition)
        nested = as_nested(definition)
        if nested is not None and only_called(self._function, definition):
            self._nested[definition.name] = nested

    def _blocks(self, node: ast.AST) -> None:
        for name in ("body", "orelse", "finalbody"):
            statements: list[ast.stmt] | None = getattr(node, name, None)
            if statements:
                found = [s for statement in statements for s in self._statement(statement)]
                setattr(node, name, found or [ast.Pass()])

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        """A statement, behind those that are put in its place or before it."""
        before: list[ast.stmt] = []
        self._untouched = True
        match node:
            case ast.FunctionDef():
                # A nested one, which is prepared by itself.
                return [node]
            case ast.Expr(ast.Call() as call) if (nested := self._callee(call)) is not None:
                value = self._put_before(call, nested, before)
                return before if value is None or pure(value) else [*before, ast.Expr(value)]
            case ast.Assign(targets, ast.IfExp(test, one, other)) if self._calls(one, other):
                # What is computed in one case only is a statement's there, and reached.
                choice = ast.If(test, [_assigned(targets, one)], [_assigned(targets, other)])
                return self._statement(choice)
            case ast.Assign(targets, value):
                node.value = self._assigned(value, before)
                node.targets = [self._expression(t, before) for t in targets]
                return [*before, *_one_by_one(node)]
            case _:
                self._head(node, before)
        self._blocks(node)
        return [*before, node]

    def _assigned(self, value: ast.expr, before: list[ast.stmt]) -> ast.expr:
        """A value that is assigned as a whole."""
        nested = self._callee(value) if isinstance(value, ast.Call) else None
        if nested is None or nested.value is None:
            return self._expression(value, before)
        assert isinstance(value, ast.Call)
        found = self._put_before(value, nested, before)
        assert found is not None
        self._untouched = pure(found)
        return found

    def _head(self, node: ast.stmt, before: list[ast.stmt]) -> None:
        """What a statement computes itself, blocks in it aside."""
        match node:
            case ast.AugAssign(target, _, value):
                self._untouched = isinstance(target, ast.Name)
                node.value = self._expression(value, before)
            case ast.Expr(value) | ast.Return(ast.expr() as value):
                node.value = self._expression(value, before)
            case ast.If(test):
                node.test = self._expression(test, before)
            case ast.For(_, turns):
                node.iter = self._expression(turns, before)
            case ast.While(test):
                # It is computed again in every turn.
                node.test = self._expression(test, before, reached=False)
            case _:
                pass

    def _calls(self, *nodes: ast.expr) -> bool:
        """Whether nested functions are called that can stand in place."""
        calls = (n for node in nodes for n in ast.walk(node) if isinstance(n, ast.Call))
        return any(self._callee(call) is not None for call in calls)

    def _callee(self, call: ast.Call) -> Nested | None:
        """The function of a call that can stand in its place."""
        if not isinstance(call.func, ast.Name) or call.keywords:
            return None
        nested = self._nested.get(call.func.id)
        if nested is None or nested.outside & self._own:
            return None
        return nested if len(call.args) == len(nested.parameters) else None

    def _expression(self, node: ast.expr, before: list[ast.stmt], reached: bool = True) -> ast.expr:
        """An expression without calls of nested functions where these can be put `before`; whether it is
        `reached` whenever its statement is."""
        match node:
            case ast.Call() if (nested := self._callee(node)) is not None:
                return self._call(node, nested, before, reached)
            case ast.IfExp(test, one, other):
                node.test = self._expression(test, before, reached)
                node.body = self._expression(one, before, False)
                node.orelse = self._expression(other, before, False)
            case ast.BoolOp(_, [first, *others]):
                rest = [self._expression(o, before, False) for o in others]
                node.values = [self._expression(first, before, reached), *rest]
            case ast.Compare(left, _, [first, *others]):
                node.left = self._expression(left, before, reached)
                node.comparators = [self._expression(first, before, reached)]
                node.comparators += [self._expression(o, before, False) for o in others]
            case _ if isinstance(node, OF_ITS_OWN):
                self._untouched = False
            case _:
                self._operands(node, before, reached)
        if isinstance(node, ast.Call | ast.Subscript):
            self._untouched = False
        return node

    def _operands(self, node: ast.AST, before: list[ast.stmt], reached: bool) -> None:
        """Those of a node, in the order in which they are computed."""
        for name, field in ast.iter_fields(node):
            if isinstance(field, list):
                items = cast("list[ast.AST]", field)
                items[:] = [self._operand(item, before, reached) for item in items]
            elif isinstance(field, ast.expr):
                setattr(node, name, self._expression(field, before, reached))

    def _operand(self, node: ast.AST, before: list[ast.stmt], reached: bool) -> ast.AST:
        if isinstance(node, ast.keyword):
            node.value = self._expression(node.value, before, reached)
        return self._expression(node, before, reached) if isinstance(node, ast.expr) else node

    def _call(
        self, call: ast.Call, nested: Nested, before: list[ast.stmt], reached: bool
    ) -> ast.expr:
        """What stands for a call in an expression."""
        if nested.value is not None and not nested.body:
            self._operands(call, before, reached)
            if all(map(pure, call.args)):
                given = dict(zip(nested.parameters, call.args, strict=True))
                value = _Renamed(given).visit(copy.deepcopy(nested.value))
                self._untouched = self._untouched and pure(value)
                return value
        elif nested.value is not None and reached and self._untouched:
            value = self._put_before(call, nested, before)
            assert value is not None
            self._untouched = True
            if pure(value):
                return value
            name = self._new("value")
            before.append(ast.Assign([ast.Name(name, ast.Store())], value))
            return ast.Name(name, ast.Load())
        else:
            self._operands(call, before, reached)
        self._untouched = False
        return call

    def _put_before(
        self, call: ast.Call, nested: Nested, before: list[ast.stmt]
    ) -> ast.expr | None:
        """Put a function's statements before that of the call; the value that is then the call's."""
        stored = nested.stored
        given: dict[str, ast.expr] = {}
        for name, argument in zip(nested.parameters, call.args, strict=True):
            if name not in stored and isinstance(argument, ast.Name | ast.Constant):
                given[name] = argument
                continue
            new = self._new(name)
            given[name] = ast.Name(new, ast.Load())
            assigned = ast.Assign([ast.Name(new, ast.Store())], argument)
            before.extend(self._statement(assigned))
        for name in sorted(stored - given.keys()):
            given[name] = ast.Name(self._new(name), ast.Load())
        renamed = _Renamed(given)
        before.extend(renamed.visit(copy.deepcopy(statement)) for statement in nested.body)
        return None if nested.value is None else renamed.visit(copy.deepcopy(nested.value))

    def _new(self, name: str) -> str:
        number = 1
        while (new := f"{name}_{number}") in self._taken:
            number += 1
        self._taken.add(new)
        return new


class _Renamed(ast.NodeTransformer):
    def __init__(self, given: Mapping[str, ast.expr]) -> None:
        self._given = given

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """What stands for a name."""
        given = self._given.get(node.id)
        if given is None:
            return node
        if isinstance(given, ast.Name):
            return ast.Name(given.id, node.ctx)
        return copy.deepcopy(given)


def _assigned(targets: list[ast.expr], value: ast.expr) -> ast.Assign:
    return ast.Assign([copy.deepcopy(target) for target in targets], value)


def _one_by_one(node: ast.Assign) -> list[ast.stmt]:
    """An assignment of several names from as many values, one by one where none is among the values."""
    match node:
        case ast.Assign([ast.Tuple(names)], ast.Tuple(values)) if len(names) == len(values):
            stored = {n.id for n in names if isinstance(n, ast.Name)}
            if len(stored) < len(names) or stored & set(names_in(values, ast.Load)):
                return [node]
            pairs = zip(names, values, strict=True)
            return [ast.Assign([name], value) for name, value in pairs]
        case _:
            return [node]
