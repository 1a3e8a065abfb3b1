"""What the texts of units have in common: their form, in which numbers are slots.

Numba's front end takes most of the time that compiling takes, and types a number as any other of its kind:
units of one form are typed and lowered once, and their numbers are put into the IR (`intrinsics/slots.py`)
before LLVM sees it. So machine code is what it would be of the text itself.

A whole number is a slot only where nothing that Numba decides can hang on its value: as an operand beside
what is no constant, as an argument of a function of the unit or of one in `OPEN_FROM`, as what is stored, or
as the one value of a name that is used in these ways alone. Subscripts, tests, exponents and arguments of
other calls stay; what Python itself would compute of numbers alone stands as the number that it is. No type
hangs on the value of a float: where `reals` are slots too, all are that are made a float32 or a float64.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from irkit.syntax_trees import in_one_thread

OPEN_FROM: Mapping[str, int] = {
    "add32": 0,
    "add_tile": 3,
    "divide": 0,
    "copy_every": 2,
    "copy_run": 1,
    "divide32": 0,
    "expect_runs": 1,
    "int32": 0,
    "load_vector": 1,
    "mad32": 0,
    "max": 0,
    "min": 0,
    "multiply_blocks": 2,
    "multiply_panels": 3,
    "multiply_pixels": 3,
    "multiply_planes": 2,
    "multiply_strided": 2,
    "multiply_tile": 3,
    "range": 0,
    "turn_rows": 0,
    "turn_runs": 3,
    "turn_whole_runs": 3,
    "within32": 0,
}
"""Function -> its first argument that may be any number: those before it are literals to Numba."""
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
_COMPARED = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
# Beyond it a number is no `int64` to Numba; well below, as products of constants are not looked at.
_LIMIT = 1 << 62


class Form(NamedTuple):
    """A text with `number_slot(n)` for whole numbers, `real_slot(n)` for floats, and the numbers by n."""

    text: str
    values: tuple[int | float, ...]


def form_of(text: str, reals: bool = False) -> Form:
    """The form of a unit's text; without `reals`, floats stay in it."""
    module = in_one_thread(lambda: ast.parse(text))
    slots = [*_slots(module), *(_floats(module) if reals else ())]
    computed = [node for node in _computed(module) if node not in slots]
    # Places in lines are counted in bytes.
    lines = text.encode().split(b"\n")
    values: list[int | float] = []
    pieces: list[tuple[ast.expr, str]] = [(node, str(_constant(node))) for node in computed]
    for node in sorted(slots, key=_place):
        real, value = _float(node), _constant(node)
        pieces.append((node, f"{'number' if real is None else 'real'}_slot({len(values)})"))
        number = value if real is None else real
        assert number is not None
        values.append(number)
    for node, piece in sorted(pieces, key=lambda p: _place(p[0]), reverse=True):
        line = lines[node.lineno - 1]
        lines[node.lineno - 1] = (
            line[: node.col_offset] + piece.encode() + line[node.end_col_offset :]
        )
    return Form(b"\n".join(lines).decode(), tuple(values))


def _place(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _computed(node: ast.AST) -> Iterator[ast.expr]:
    """The largest expressions of numbers alone, as Python itself would compute them."""
    if isinstance(node, ast.BinOp | ast.IfExp) and node.lineno == node.end_lineno:
        value = _constant(node)
        if value is not None and value >= 0:
            yield node
            return
    for child in ast.iter_child_nodes(node):
        yield from _computed(child)


def _constant(node: ast.expr) -> int | None:
    """The number that an expression without names is; None for any other expression."""
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(ast.USub(), operand):
            value = _constant(operand)
            return None if value is None else -value
        case ast.BinOp(left, operator, right) if isinstance(operator, _OPERATORS):
            one, other = _constant(left), _constant(right)
            if one is None or other is None:
                return None
            return _folded(operator, one, other)
        case ast.IfExp(test, one, other):
            chosen, one, other = _constant(test), _constant(one), _constant(other)
            if chosen is None or one is None or other is None:
                return None
            return one if chosen else other
        case _:
            return None


def _folded(operator: ast.operator, one: int, other: int) -> int | None:
    match operator:
        case ast.Add():
            return one + other
        case ast.Sub():
            return one - other
        case ast.Mult():
            return one * other
        case ast.FloorDiv() if other:
            return one // other
        case ast.Mod() if other:
            return one % other
        case _:
            return None


def _float(node: ast.expr) -> float | None:
    """The float that stands somewhere, with a sign or none."""
    match node:
        case ast.Constant(value=float() as value):
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(value=float() as value)):
            return -value
        case _:
            return None


def _floats(module: ast.Module) -> Iterator[ast.expr]:
    """The floats of a module that are slots."""
    for node in ast.walk(module):
        match node:
            case ast.Call(ast.Name("float32" | "float64"), [value], []) if (
                _float(value) is not None and value.lineno == value.end_lineno
            ):
                yield value
            case _:
                pass


def _slots(module: ast.Module) -> Iterator[ast.expr]:
    """The numbers of a module that are slots."""
    functions = [f for f in module.body if isinstance(f, ast.FunctionDef)]
    own = dict.fromkeys((f.name for f in functions), 0)
    for function in functions:
        for node in _candidates(function, {**OPEN_FROM, **own}):
            value = _constant(node)
            if value is not None and abs(value) < _LIMIT and node.lineno == node.end_lineno:
                yield node


def _candidates(function: ast.FunctionDef, open_from: Mapping[str, int]) -> Iterator[ast.expr]:
    """Expressions of a function that are slots where they are numbers."""
    bound = _Names(function, open_from)
    for statement in function.body:
        for node in ast.walk(statement):
            yield from _open_operands(node, open_from)
            yield from bound.values(node)
            if isinstance(node, ast.Compare):
                yield from bound.compared(node)


def _open_operands(node: ast.AST, open_from: Mapping[str, int]) -> Iterable[ast.expr]:
    """Direct operands of a node that may be any number; each is such by itself alone."""
    match node:
        case ast.BinOp(left, operator, right) if isinstance(operator, _OPERATORS):
            # A constant beside a constant is part of what is one together.
            return () if _plain(left) and _plain(right) else (left, right)
        case ast.AugAssign(_, operator, value) if isinstance(operator, _OPERATORS):
            return (value,)
        case ast.Call(ast.Name(name), arguments, []) if name in open_from:
            return arguments[open_from[name] :]
        case ast.Assign([ast.Subscript()], value):
            return (value,)
        case ast.Return(ast.Tuple(elements)):
            return elements
        case ast.IfExp(_, one, other) if _constant(node) is None:
            return one, other
        case _:
            return ()


def _plain(node: ast.expr) -> bool:
    """Whether an expression has no name in it: Python itself computes it."""
    return not any(isinstance(n, ast.Name) for n in ast.walk(node))


class _Names:
    """The names of a function that are numbers, and which of these may be slots."""

    def __init__(self, function: ast.FunctionDef, open_from: Mapping[str, int]) -> None:
        stores: dict[str, int] = {}
        loads: dict[str, int] = {}
        free: dict[str, int] = {}
        self._numbers: set[str] = set()
        for node in ast.walk(function):
            if isinstance(node, ast.Name):
                counts = loads if isinstance(node.ctx, ast.Load) else stores
                counts[node.id] = counts.get(node.id, 0) + 1
            for name in _names(_open_operands(node, open_from)):
                free[name] = free.get(name, 0) + 1
            self._numbers |= {name.id for name, _ in _bindings(node)}
        for node in ast.walk(function):
            for name in _names(self.compared(node)) if isinstance(node, ast.Compare) else ():
                free[name] = free.get(name, 0) + 1
        self._slots = {
            name
            for name in self._numbers
            if stores[name] == 1 and loads.get(name, 0) == free.get(name, 0)
        }

    def values(self, node: ast.AST) -> Iterator[ast.expr]:
        """What a statement binds to names that may be slots."""
        return (value for name, value in _bindings(node) if name.id in self._slots)

    def compared(self, node: ast.Compare) -> Iterable[ast.expr]:
        """The operands of a comparison, unless Numba may know what comes of it: it leaves out branches."""
        operands = [node.left, *node.comparators]
        known = all(
            _plain(n) or (isinstance(n, ast.Name) and n.id in self._numbers) for n in operands
        )
        return () if known or not all(isinstance(o, _COMPARED) for o in node.ops) else operands


def _names(nodes: Iterable[ast.expr]) -> Iterator[str]:
    return (node.id for node in nodes if isinstance(node, ast.Name))


def _bindings(node: ast.AST) -> Iterator[tuple[ast.Name, ast.expr]]:
    """Names that an assignment gives numbers, with these."""
    match node:
        case ast.Assign([ast.Name() as name], value) if _constant(value) is not None:
            yield name, value
        case ast.Assign([ast.Tuple(names)], ast.Tuple(values)) if len(names) == len(values):
            for name, value in zip(names, values, strict=True):
                if isinstance(name, ast.Name) and _constant(value) is not None:
                    yield name, value
        case _:
            return
