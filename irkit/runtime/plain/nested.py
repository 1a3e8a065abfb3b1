"""What a nested function of a text is, and which can stand where it is called."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# What no function that is put in place has in it.
OF_ITS_OWN = (
    ast.FunctionDef,
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.NamedExpr,
    ast.Yield,
    ast.YieldFrom,
    ast.Return,
    ast.Global,
    ast.Nonlocal,
    ast.Delete,
)
_PURE = (
    ast.Name,
    ast.Constant,
    ast.Attribute,
    ast.UnaryOp,
    ast.BinOp,
    ast.Tuple,
    ast.expr_context,
    ast.operator,
    ast.unaryop,
)


@dataclass(frozen=True)
class Nested:
    """A function that can be put in place: its parameters, its statements, and the value behind them."""

    parameters: tuple[str, ...]
    body: Sequence[ast.stmt]
    value: ast.expr | None

    @property
    def stored(self) -> set[str]:
        return set(names_in(self.body, ast.Store))

    @property
    def outside(self) -> set[str]:
        """Names that it reads and does not have."""
        behind = [self.value] if self.value is not None else []
        read = set(names_in([*self.body, *behind], ast.Load))
        return read - self.stored - set(self.parameters)


def names_in(nodes: Sequence[ast.AST], kind: type[ast.expr_context]) -> Iterator[str]:
    for node in nodes:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, kind):
                yield inner.id


def known_by(node: ast.AST) -> list[str]:
    match node:
        case ast.Name(name) | ast.arg(name) | ast.FunctionDef(name):
            return [name]
        case ast.alias(name, other):
            return [other or name]
        case _:
            return []


def pure(node: ast.expr) -> bool:
    """Whether computing an expression, twice or never, touches no memory and calls nothing."""
    return all(isinstance(inner, _PURE) for inner in ast.walk(node))


def _inside(node: ast.AST) -> Iterator[ast.FunctionDef]:
    """The functions that are nested in a node, but those nested in these."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield child
        else:
            yield from _inside(child)


def defined_once(function: ast.FunctionDef) -> dict[str, ast.FunctionDef]:
    """The nested functions of a function whose names stand for nothing else in it."""
    found = list(_inside(function))
    names = [d.name for d in found]
    other = {
        *names_in([function], ast.Store),
        *(a.arg for a in ast.walk(function) if isinstance(a, ast.arg)),
    }
    return {d.name: d for d in found if names.count(d.name) == 1 and d.name not in other}


def only_called(function: ast.FunctionDef, definition: ast.FunctionDef) -> bool:
    """Whether a nested function's name stands nowhere but in calls."""
    calls = sum(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == definition.name
        for n in ast.walk(function)
    )
    return calls == list(names_in([function], ast.Load)).count(definition.name)


def as_nested(definition: ast.FunctionDef) -> Nested | None:
    """A function whose one value, if any, stands at its end; None for every other."""
    given = definition.args
    if definition.decorator_list or given.vararg or given.kwarg or given.posonlyargs:
        return None
    if given.defaults or given.kwonlyargs:
        return None
    body = definition.body[ast.get_docstring(definition) is not None :]
    value: ast.expr | None = None
    if body and isinstance(body[-1], ast.Return):
        value = body[-1].value
        body = body[:-1]
    looked_at = [*body, *([value] if value is not None else [])]
    if any(isinstance(n, OF_ITS_OWN) for node in looked_at for n in ast.walk(node)):
        return None
    return Nested(tuple(a.arg for a in given.args), body, value)


def leave_out(function: ast.FunctionDef, names: set[str]) -> None:
    """Leave out those nested functions that nobody calls any more."""
    unused = names
    while unused:
        named = list(names_in([function], ast.Load))
        unused = {n for n in names if n not in named}
        names = names - unused
        if unused:
            _WithoutFunctions(unused).visit(function)


class _WithoutFunctions(ast.NodeTransformer):
    def __init__(self, names: set[str]) -> None:
        self._names = names

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:
        """None of the functions of these names."""
        if node.name in self._names:
            return None
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """A block that becomes empty has a statement still."""
        super().generic_visit(node)
        if isinstance(node, ast.If | ast.For | ast.While | ast.With) and not node.body:
            node.body = [ast.Pass()]
        return node
