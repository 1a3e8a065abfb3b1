"""Which arrays a Numba kernel writes whole, so that nothing of them has to be on the device before.

An element assignment counts where each index runs over a whole axis and nothing else decides whether it
is reached: a loop over `range`, or from `cuda.grid` in steps of `cuda.gridsize`; or a thread's own number,
behind a comparison with a bound or behind none. What decides is found as control dependence (Ferrante,
Ottenstein, Warren: The Program Dependence Graph and Its Use in Optimization, 1987). Bounds are known when
the kernel is launched.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, Final, NamedTuple

from irkit.dags.located import Located

AXES: Final = ("x", "y", "z")
_NUMBERS: Final = ("threadIdx", "blockIdx", "blockDim", "gridDim")
_DEEPEST = 32

Term = tuple[Any, ...]
"""A value by its making: ("size", argument), ("grid", axis), ("constant", number), ...; () is unknown."""


class Reach(NamedTuple):
    """How far an index runs: to each of the `stops`, and to the number of threads along an axis of the
    launch, where there is one thread for each."""

    stops: tuple[Term, ...]
    threads: int | None = None


@dataclass(frozen=True)
class Cover:
    """An argument that is written in all places from 0 to what each axis reaches."""

    argument: int
    axes: tuple[Reach, ...]

    def whole(
        self,
        arguments: Sequence[Any],
        arrays: Mapping[int, Located],
        launched: Sequence[int],
    ) -> bool:
        """Whether a launch writes all of it. `arrays` are the arguments that are arrays, by number;
        `launched` are threads along x, y and z."""
        shape = arrays[self.argument].shape
        if len(shape) != len(self.axes):
            return False
        for extent, reach in zip(shape, self.axes, strict=True):
            ends = [_at_launch(stop, arguments, arrays) for stop in reach.stops]
            if reach.threads is not None:
                ends.append(launched[reach.threads])
            if any(end is None or end < extent for end in ends):
                return False
        return True


def _at_launch(term: Term, arguments: Sequence[Any], arrays: Mapping[int, Located]) -> int | None:
    kind, number = term[0], term[1]
    if kind == "constant":
        return int(number)
    if kind == "argument":
        value: Any = arguments[number]
        return operator.index(value) if hasattr(value, "__index__") else None
    if number not in arrays:
        return None
    shape = arrays[number].shape
    if kind == "size":
        return math.prod(shape)
    axis: int = term[2]
    return shape[axis] if axis < len(shape) else None


def covers_of(code: Any) -> tuple[Cover, ...]:
    """What typed code writes whole, by the bounds of its loops and comparisons."""
    kernel = _Kernel(code)
    found = [
        kernel.cover(label, statement)
        for label, block in code.blocks.items()
        for statement in block.body
        if type(statement).__name__ == "SetItem"
    ]
    return tuple(cover for cover in found if cover is not None)


class _Kernel:
    def __init__(self, code: Any) -> None:
        self._blocks = code.blocks
        self._made: dict[str, list[Any]] = {}
        for block in code.blocks.values():
            for statement in block.body:
                if type(statement).__name__ == "Assign":
                    self._made.setdefault(statement.target.name, []).append(statement.value)

    @cached_property
    def _after(self) -> Mapping[int, set[int]]:
        """Blocks that are reached from each block whatever happens, itself among them."""
        analysis: Any = import_module("numba.cuda.core.analysis")
        return analysis.compute_cfg_from_blocks(self._blocks).post_dominators()

    # -- values

    def _definition(self, variable: Any) -> Any:
        """What makes a variable, through copies of it; None where that is not one thing."""
        for _ in range(_DEEPEST):
            made = self._made.get(getattr(variable, "name", ""), [])
            if len(made) != 1:
                return None
            value = made[0]
            if type(value).__name__ == "Expr" and value.op == "cast":
                value = value.value
            if type(value).__name__ != "Var":
                return value
            variable = value
        return None

    def _term(self, variable: Any, depth: int = 0) -> Term:
        value = self._definition(variable)
        kind = type(value).__name__
        if depth > _DEEPEST or value is None:
            return ()
        if kind == "Arg":
            return "argument", value.index
        if kind in ("Const", "Global", "FreeVar"):
            return ("constant", value.value) if isinstance(value.value, int) else ()
        if kind != "Expr":
            return ()
        if value.op == "getattr":
            return self._attribute(value, depth)
        if value.op in ("static_getitem", "typed_getitem"):
            return self._item(value, depth)
        if value.op == "binop":
            return _arithmetic(
                str(value.fn.__name__),
                *(self._term(side, depth + 1) for side in (value.lhs, value.rhs)),
            )
        return self._call(value, depth) if value.op == "call" else ()

    def _attribute(self, value: Any, depth: int) -> Term:
        owner = self._definition(value.value)
        if type(owner).__name__ == "Arg" and value.attr in ("size", "shape"):
            return value.attr, owner.index
        if type(owner).__name__ == "Expr" and owner.op == "getattr" and value.attr in AXES:
            name = owner.attr if owner.attr in _NUMBERS else None
            module = self._object(owner.value)
            known = name is not None and module is import_module("numba.cuda")
            return (name, AXES.index(value.attr)) if known else ()
        return ()

    def _item(self, value: Any, depth: int) -> Term:
        of = self._definition(value.value)
        if type(of).__name__ == "Expr" and of.op == "exhaust_iter":
            return self._part(self._term(of.value, depth + 1), value.index)
        return self._part(self._term(value.value, depth + 1), value.index)

    def _part(self, whole: Term, index: Any) -> Term:
        if not isinstance(index, int) or index < 0 or not whole:
            return ()
        if whole[0] == "shape":
            return "extent", whole[1], index
        if whole[0] in ("grids", "gridsizes"):
            return whole[0][:-1], index
        return ()

    def _call(self, value: Any, depth: int) -> Term:
        function, arguments = self._object(value.func), value.args
        cuda: Any = import_module("numba.cuda")
        if function is len and len(arguments) == 1:
            of = self._definition(arguments[0])
            return ("extent", of.index, 0) if type(of).__name__ == "Arg" else ()
        for name in ("grid", "gridsize"):
            if function is not getattr(cuda, name) or len(arguments) != 1:
                continue
            dimensions = self._term(arguments[0], depth + 1)
            if dimensions == ("constant", 1):
                return name, 0
            return (f"{name}s",) if dimensions[:1] == ("constant",) else ()
        return ()

    def _object(self, variable: Any) -> Any:
        """The Python object that code names."""
        value = self._definition(variable)
        kind = type(value).__name__
        if kind in ("Global", "FreeVar"):
            return value.value
        if kind == "Expr" and value.op == "getattr":
            owner = self._object(value.value)
            return getattr(owner, value.attr, None) if type(owner).__name__ == "module" else None
        return None

    # -- what decides whether a block is reached

    def _decisions(self, label: int, below: frozenset[int] = frozenset()) -> list[_Decision] | None:
        """Branches that lead to a block, from the outermost on; None where that is no plain nest."""
        found: list[_Decision] = []
        for at, block in self._blocks.items():
            last = block.body[-1]
            if type(last).__name__ != "Branch" or at == label:
                continue
            for taken, to in ((True, last.truebr), (False, last.falsebr)):
                if label in self._after[to] and label not in self._after[at]:
                    found.append(_Decision(at, last.cond, taken))
        if not found:
            return [] if label in self._after[min(self._blocks)] else None
        if len(found) > 1 or found[0].block in below:
            return None
        above = self._decisions(found[0].block, below | {label})
        return None if above is None else [*above, found[0]]

    def _loop(self, decision: _Decision) -> Any:
        """The iterator that a branch asks for one more; None for another branch."""
        value = self._definition(decision.condition)
        asks = type(value).__name__ == "Expr" and value.op == "pair_second" and decision.taken
        return self._definition(value.value) if asks else None

    def _comparison(self, decision: _Decision) -> tuple[Term, Term]:
        """(index, bound) of a branch that is taken where an index is below a bound."""
        value: Any = self._definition(decision.condition)
        if type(value).__name__ == "Expr" and value.op == "call" and len(value.args) == 1:
            asked: Any = self._definition(value.args[0])
            value = asked if self._object(value.func) is bool else None
        if type(value).__name__ != "Expr" or value.op != "binop":
            return (), ()
        sides = self._term(value.lhs), self._term(value.rhs)
        wanted = "lt" if decision.taken else "ge"
        mirrored = "gt" if decision.taken else "le"
        name = str(value.fn.__name__)
        if name == wanted:
            return sides
        return (sides[1], sides[0]) if name == mirrored else ((), ())

    # -- assignments

    def cover(self, label: int, statement: Any) -> Cover | None:
        """What an assignment in a block covers; None where that cannot be told."""
        target = self._definition(statement.target)
        decisions = self._decisions(label)
        if type(target).__name__ != "Arg" or decisions is None:
            return None
        loops = {id(loop): loop for d in decisions if (loop := self._loop(d)) is not None}
        bounds = [self._comparison(d) for d in decisions if self._loop(d) is None]
        axes: list[Reach] = []
        used: list[Term] = []
        for index in self._indices(statement.index):
            reach = self._along(index, loops, bounds, used)
            if reach is None:
                return None
            axes.append(reach)
        # Whatever else decides leaves elements out, a bound on threads that go on in a loop among it.
        alone = [("grid", reach.threads) for reach in axes if reach.threads is not None]
        if loops or any(found not in alone for found, _ in bounds):
            return None
        return Cover(target.index, tuple(axes)) if len(set(used)) == len(used) else None

    def _indices(self, variable: Any) -> list[Any]:
        value = self._definition(variable)
        packed = type(value).__name__ == "Expr" and value.op == "build_tuple"
        return list(value.items) if packed else [variable]

    def _along(
        self,
        index: Any,
        loops: dict[int, Any],
        bounds: Sequence[tuple[Term, Term]],
        used: list[Term],
    ) -> Reach | None:
        """How far an index runs. It takes its loop from `loops`, and notes the threads that it counts."""
        value = self._definition(index)
        if type(value).__name__ == "Expr" and value.op == "pair_first":
            loop = loops.pop(id(self._definition(value.value)), None)
            return None if loop is None else self._range(loop, used)
        term = self._term(index)
        if term[:1] != ("grid",):
            return None
        used.append(term)
        stops = tuple(stop for found, stop in bounds if found == term)
        return Reach(stops, term[1]) if all(map(_known, stops)) else None

    def _range(self, loop: Any, used: list[Term]) -> Reach | None:
        over = self._definition(loop.value)
        if type(over).__name__ == "Expr" and over.op == "getiter":
            over = self._definition(over.value)
        if type(over).__name__ != "Expr" or over.op != "call":
            return None
        if self._object(over.func) is not range or over.kws or over.vararg is not None:
            return None
        given = [self._term(a) for a in over.args]
        first = ("constant", 0) if len(given) == 1 else given[0]
        stop = given[0] if len(given) == 1 else given[1]
        step = given[2] if len(given) == 3 else ("constant", 1)
        if not _known(stop):
            return None
        if first == ("constant", 0) and step == ("constant", 1):
            return Reach((stop,))
        if first[:1] != ("grid",) or step != ("gridsize", first[1]):
            return None
        used.append(first)
        return Reach((stop,))


class _Decision(NamedTuple):
    """A branch of a block on a condition, and the way that was taken."""

    block: int
    condition: Any
    taken: bool


def _known(term: Term) -> bool:
    return term[:1] in (("constant",), ("argument",), ("extent",), ("size",))


def _arithmetic(name: str, left: Term, right: Term) -> Term:
    """A thread's number and the number of threads, where they are written out."""
    sides = {left[:1], right[:1]}
    if () in sides or left[-1] != right[-1]:
        return ()
    if name == "mul" and sides == {("blockIdx",), ("blockDim",)}:
        return "blocks before", left[-1]
    if name == "mul" and sides == {("gridDim",), ("blockDim",)}:
        return "gridsize", left[-1]
    if name == "add" and sides == {("blocks before",), ("threadIdx",)}:
        return "grid", left[-1]
    return ()
