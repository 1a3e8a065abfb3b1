"""`while` statements of a traced function, told of each round: the same source, in which a statement

    while test:
        body

asks an object of `while_rounds.WhileRounds` whether it goes on, and takes from it what stands for variables
that it assigns to. `and`, `or`, `not` and chains in the test are spelled out, as Python asks each part for
its truth, and `len` in it is the object's too. A `for` statement over a range of which the first statement is
`if test: break` is asked whether data say so; where they do, it is a `while` statement in the next trace.
Lines stay what they are. Where there is no source, or it is not that of the function, the function stays as
it is, and a test of data is refused as any other `if`.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast

from irkit.frontends.numpy.left_loops import is_left, is_read
from irkit.syntax_trees import in_one_thread

OWN = "__irkit_"
"""What the names of variables begin with that are none of the user's."""
ROUNDS = f"{OWN}while__"
"""The built-in function that makes a WhileRounds."""
SPAN = f"{OWN}span__"
"""The built-in function that makes a Span."""
_FEATURES = sum(getattr(__future__, n).compiler_flag for n in __future__.all_feature_names)
_RESUMED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def told_of_rounds(code: types.CodeType, leaving: frozenset[str] = frozenset()) -> types.CodeType:
    """The code of a function, with `while` statements that say what they do. `leaving`: places of the first
    statements of `for` statements that are to be `while` statements."""
    return _rewritten(code, code.co_filename, leaving)


@lru_cache(maxsize=1024)
def _rewritten(code: types.CodeType, file: str, leaving: frozenset[str]) -> types.CodeType:
    """`file` is part of the key: code is equal to that of another file."""
    if code.co_flags & _RESUMED:
        return code
    module = _module(code)
    found = None if module is None else _definition(module, code)
    if (
        module is None
        or found is None
        or not any(isinstance(n, ast.While) or is_left(n) for n in ast.walk(found))
    ):
        return code
    plain = _compiled(module, code)
    if plain is None or not _same(plain, code):
        return code
    lines = {int(at) for path, _, at in (p.rpartition(":") for p in leaving) if path == file}
    _Rewriter(lines).visit(found)
    made = _compiled(module, code)
    return code if made is None else made


def _module(code: types.CodeType) -> ast.Module | None:
    """The file that has a function; None where there is none."""
    try:
        lines, _ = inspect.findsource(code)
        return in_one_thread(lambda: ast.parse("".join(lines)))
    except (OSError, SyntaxError):
        return None


def _definition(module: ast.Module, code: types.CodeType) -> ast.FunctionDef | None:
    """The statement that defines the function."""
    found = (n for n in ast.walk(module) if isinstance(n, ast.FunctionDef))
    first = code.co_firstlineno
    return next((n for n in found if n.name == code.co_name and _first_line(n) == first), None)


def _first_line(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def _compiled(module: ast.Module, like: types.CodeType) -> types.CodeType | None:
    """The code of the function that `like` is, as the file has it. All of the file is compiled: what names
    are imported has a say in instructions."""
    flags = like.co_flags & _FEATURES
    outer = in_one_thread(
        lambda: compile(module, like.co_filename, "exec", flags, dont_inherit=True)
    )
    found = [c for c in _codes(outer) if c.co_name == like.co_name]
    found = [c for c in found if c.co_firstlineno == like.co_firstlineno]
    if len(found) != 1 or set(found[0].co_freevars) != set(like.co_freevars):
        return None
    return found[0]


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes(constant)


def _same(a: types.CodeType, b: types.CodeType) -> bool:
    """Whether two functions do the same: the file may have changed since it was read."""
    return (
        a.co_code == b.co_code
        and (a.co_names, a.co_varnames) == (b.co_names, b.co_varnames)
        and _constants(a) == _constants(b)
    )


def _constants(code: types.CodeType) -> list[str]:
    return [repr(c) for c in code.co_consts if not isinstance(c, types.CodeType)]


# Statements


@dataclass
class _Function:
    """A function whose statements are rewritten."""

    node: ast.FunctionDef
    loops: list[ast.stmt] = field(default_factory=list[ast.stmt])
    """Loops around the statement at hand."""
    elsewhere: frozenset[str] = frozenset()
    """Names that it says are another scope's."""


class _Rewriter(ast.NodeTransformer):
    def __init__(self, leaving: set[int]) -> None:
        """`leaving`: lines of the first statements of `for` statements that are to be `while` statements."""
        self._functions: list[_Function] = []
        self._made, self._leaving = 0, leaving

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        said = (n for n in ast.walk(node) if isinstance(n, ast.Global | ast.Nonlocal))
        names = frozenset(name for n in said for name in n.names)
        self._functions.append(_Function(node, [], names))
        self.generic_visit(node)
        self._functions.pop()
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_For(self, node: ast.For) -> Any:
        first = node.body[0]
        if (
            not isinstance(first, ast.If)
            or not is_left(node)
            or is_read(node, self._functions[-1].node)
        ):
            return self._inside(node)
        if first.test.lineno in self._leaving:
            return self._counted(node, first.test)
        self._inside(node)
        rounds, line = self._name(), ast.Constant(first.test.lineno)
        begin = ast.Assign(
            [ast.Name(rounds, ast.Store())], _call(ROUNDS, _texts(_Names((), (), ())))
        )
        asked = _method(rounds, "leaves", self._truth(first.test, rounds), line)
        first.test = ast.copy_location(asked, first.test)
        _placed(begin, node)
        ast.fix_missing_locations(node)
        return [begin, node]

    def _counted(self, node: ast.For, test: ast.expr) -> list[ast.stmt]:
        """The same as a `while` statement that counts its rounds in a variable."""
        span = self._name()
        turn, target = f"irkit_turn_{self._made}", cast(ast.Name, node.target).id
        step = ast.BinOp(_read(turn), ast.Add(), ast.Attribute(_read(span), "step", ast.Load()))
        begin: list[ast.stmt] = [
            ast.Assign([ast.Name(span, ast.Store())], _call(SPAN, node.iter)),
            ast.Assign(
                [ast.Name(turn, ast.Store())], ast.Attribute(_read(span), "first", ast.Load())
            ),
        ]
        counts: list[ast.stmt] = [
            ast.Assign([ast.Name(target, ast.Store())], _read(turn)),
            ast.Assign([ast.Name(turn, ast.Store())], step),
        ]
        asks: list[ast.expr] = [_method(span, "goes_on", _read(turn)), ast.UnaryOp(ast.Not(), test)]
        both = ast.copy_location(ast.BoolOp(ast.And(), asks), test)
        loop = ast.copy_location(ast.While(both, [*counts, *node.body[1:]], []), node)
        for made in (*begin, *counts):
            _placed(made, node)
        ast.fix_missing_locations(loop)
        return [*begin, *self.visit_While(loop)]

    def visit_While(self, node: ast.While) -> Any:
        own = self._functions[-1]
        names = _Names.of(node, own)
        self._inside(node)
        rounds = self._name()
        begin = ast.Assign([ast.Name(rounds, ast.Store())], _call(ROUNDS, _texts(names)))
        node.test = _method(rounds, "go_on", self._truth(node.test, rounds))
        taken = [s for n in names.assigned for s in _takes(rounds, n)]
        # Nodes are no statements of two places.
        node.body = [*taken, *node.body]
        node.orelse = [*(s for n in names.assigned for s in _takes(rounds, n)), *node.orelse]
        end = ast.Expr(_method(rounds, "end"))
        for made in (begin, end, *taken, *node.orelse[: len(taken)]):
            _placed(made, node)
        ast.fix_missing_locations(node)
        return [begin, node, end]

    def _inside(self, node: ast.For | ast.While) -> ast.AST:
        self._functions[-1].loops.append(node)
        self.generic_visit(node)
        self._functions[-1].loops.pop()
        return node

    def _name(self) -> str:
        self._made += 1
        return f"{OWN}{self._made}"

    def _truth(self, test: ast.expr, rounds: str) -> ast.expr:
        """A test, in which nothing is asked for its truth but by `rounds`."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            made: ast.expr = _method(rounds, "negated", self._truth(test.operand, rounds))
            return ast.copy_location(made, test)
        if isinstance(test, ast.Compare) and len(test.ops) > 1:
            test = self._chain(test)
        if not isinstance(test, ast.BoolOp):
            return _Lengths(rounds).visit(test)
        is_and = isinstance(test.op, ast.And)
        made = self._truth(test.values[0], rounds)
        for value in test.values[1:]:
            name = self._name()
            held = ast.NamedExpr(ast.Name(name, ast.Store()), made)
            asks = _method(rounds, "is_open", held, ast.Constant(is_and))
            both = "both" if is_and else "either"
            known: ast.expr = ast.Name(name, ast.Load())
            joined = _method(rounds, both, known, self._truth(value, rounds))
            made = ast.IfExp(asks, joined, ast.Name(name, ast.Load()))
        return ast.copy_location(made, test)

    def _chain(self, test: ast.Compare) -> ast.BoolOp:
        """`a < b < c` as `a < (t := b) and t < c`."""
        left, parts = test.left, list[ast.expr]()
        for number, (op, right) in enumerate(zip(test.ops, test.comparators, strict=True)):
            name = self._name()
            last = number == len(test.ops) - 1
            held = right if last else ast.NamedExpr(ast.Name(name, ast.Store()), right)
            parts.append(ast.copy_location(ast.Compare(left, [op], [held]), test))
            left = ast.Name(name, ast.Load())
        return ast.copy_location(ast.BoolOp(ast.And(), parts), test)


class _Lengths(ast.NodeTransformer):
    """`len(x)` as a method of `rounds`, for what Python's own cannot say."""

    def __init__(self, rounds: str) -> None:
        self._rounds = rounds

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name) or node.func.id != "len" or len(node.args) != 1:
            return node
        return ast.copy_location(_method(self._rounds, "length", node.func, node.args[0]), node)


def _read(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _method(of: str, name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name(of, ast.Load()), name, ast.Load()), list(arguments), [])


def _texts(names: _Names) -> ast.expr:
    made = [ast.Tuple([ast.Constant(n) for n in part], ast.Load()) for part in names.parts]
    return ast.Tuple(list[ast.expr](made), ast.Load())


def _takes(rounds: str, name: str) -> list[ast.stmt]:
    """What binds a variable anew, or unbinds it."""
    given = ast.Attribute(ast.Name(rounds, ast.Load()), "given", ast.Load())
    bind = ast.Assign([ast.Name(name, ast.Store())], given)
    unbind = ast.Delete([ast.Name(name, ast.Del())])
    return [
        ast.If(_method(rounds, "gives", ast.Constant(name)), [bind], []),
        ast.If(_method(rounds, "drops", ast.Constant(name)), [unbind], []),
    ]


def _placed(node: ast.AST, at: ast.stmt) -> None:
    """Everything in `node` is of the first line of `at`."""
    for part in ast.walk(node):
        if "lineno" in part._attributes:
            part.lineno = part.end_lineno = at.lineno  # pyright: ignore[reportAttributeAccessIssue]
            part.col_offset = part.end_col_offset = at.col_offset  # pyright: ignore[reportAttributeAccessIssue]


# Names


@dataclass(frozen=True)
class _Names:
    """Variables that a loop assigns to, in an order. `bound`: those that it binds, and does not only change
    with `+=` and the like; `dead`: those whose value from before a round nobody reads."""

    assigned: tuple[str, ...]
    bound: tuple[str, ...]
    dead: tuple[str, ...]

    @property
    def parts(self) -> tuple[tuple[str, ...], ...]:
        """Its fields."""
        return self.assigned, self.bound, self.dead

    @staticmethod
    def of(loop: ast.While, own: _Function) -> _Names:
        """Those of one loop, before it is rewritten."""
        stored = [n for n in _own_nodes([loop]) if isinstance(n, ast.Name) and _is_store(n)]
        changed = [n.target for n in _own_nodes([loop]) if isinstance(n, ast.AugAssign)]
        assigned = dict.fromkeys(n.id for n in stored if n.id not in own.elsewhere)
        bound = dict.fromkeys(n.id for n in stored if not any(n is c for c in changed))
        names = [n for n in assigned if not n.startswith("__")]
        dead = [n for n in names if n in bound and _dead(n, loop, own)]
        return _Names(tuple(names), tuple(n for n in names if n in bound), tuple(dead))


def _is_store(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store | ast.Del)


def _own_nodes(nodes: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """All nodes but those of functions and comprehensions, which have variables of their own."""
    for node in nodes:
        if isinstance(node, (*_SCOPES, *_COMPREHENSIONS)):
            yield from _walrus(node)
            continue
        yield node
        yield from _own_nodes(list(ast.iter_child_nodes(node)))


def _walrus(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, _SCOPES):
        return
    yield from (n.target for n in ast.walk(node) if isinstance(n, ast.NamedExpr))


def _dead(name: str, loop: ast.While, own: _Function) -> bool:
    """Whether every round binds it before it reads it, and nobody reads it after the loop."""
    if _reads(name, loop.test) or not _bound_first(name, loop.body):
        return False
    inside = {id(n) for n in ast.walk(loop)}
    reads = [
        n for n in ast.walk(own.node) if id(n) not in inside and isinstance(n, ast.Name)
        and n.id == name and isinstance(n.ctx, ast.Load)
    ]  # fmt: skip
    around = own.loops[0] if own.loops else loop
    return not any(n.lineno >= around.lineno for n in reads)


def _bound_first(name: str, body: Sequence[ast.stmt]) -> bool:
    for statement in body:
        if isinstance(statement, ast.Assign) and not _reads(name, statement.value):
            targets = statement.targets
            if any(isinstance(t, ast.Name) and t.id == name for t in targets):
                return True
        if any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(statement)):
            return False
    return False


def _reads(name: str, node: ast.AST) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node))
