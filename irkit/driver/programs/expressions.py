"""`irkit.te.op`: a tensor expression as a function of arrays, by itself and in functions that are traced."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from irkit.dialects.graph import ExpressionOp
from irkit.dialects.loop import ScheduleAttr
from irkit.driver.programs.jitted import JittedFunction, jit
from irkit.expressions.binding import Program, Step, bind, operands_of, program_of
from irkit.expressions.nest import nest_of
from irkit.expressions.printing import text_of
from irkit.expressions.ranges import Checked, Loop, Shape
from irkit.expressions.steps import Schedule, schedule_of
from irkit.expressions.steps import Step as ScheduleStep
from irkit.expressions.syntax import (
    Apply,
    Expr,
    ExpressionError,
    Number,
    Range,
    Statement,
    names_of,
)
from irkit.frontends.numpy.arrays import fresh, value_of
from irkit.frontends.numpy.operands import array_of
from irkit.frontends.numpy.places import user_place
from irkit.frontends.numpy.recorder import recorder, tracing
from irkit.frontends.numpy.records import Value, out_of_bounds


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise ExpressionError(f"a tensor expression is a string, got {type(text).__name__}")


class Operator:
    """A tensor expression as a function of arrays; its parameters are arguments in their order.

    `name`, `parameters` and `results` are those of the text.
    """

    def __init__(
        self, text: str, options: Mapping[str, Any], schedule: str | Mapping[str, str] | None = None
    ) -> None:
        _check_text(text)
        self._program = program_of(text)
        self.text = text
        self.name = self._program.name
        self.parameters = tuple(p.name for p in self._program.parameters)
        self.results = self._program.results
        self._schedules = _schedules(self._program, schedule)
        self._jitted = _jitted(self, options)

    def __call__(self, *arrays: Any) -> Any:
        """The result, or a tuple of several.

        Raises ExpressionError for arrays of other shapes or types than the text takes, or over which a
        range is ambiguous or out of bounds, IndexError for an index among the arrays that is.
        """
        if tracing():
            return self._traced(arrays)
        try:
            return self._jitted(*arrays)
        except ExpressionError as error:
            raise self._as_written(error) from None

    def _as_written(self, error: ExpressionError) -> ExpressionError:
        """What a pass refuses of a schedule, at its place in the text that was given: passes have schedules
        in one spelling."""
        place = error.place
        if place.called != "schedule" or not place.line:
            return error
        refused = schedule_of(place.text).steps
        for given in self._schedules.values():
            if _kinds(given.steps) != _kinds(refused):
                continue
            for mine, its in zip(given.steps, refused, strict=True):
                places = zip((mine.place, *mine.places), (its.place, *its.places), strict=False)
                found = next((m for m, i in places if i == place), None)
                if found is not None:
                    return ExpressionError(error.message, found)
        return error

    def _traced(self, arrays: tuple[Any, ...]) -> Any:
        given = [array_of(a) for a in arrays]
        steps, _ = bind(self._program, [a.shape for a in given], [a.dtype for a in given])
        values = dict(zip(self.parameters, map(value_of, given), strict=True))
        for step in steps:
            for one in step.domain.checked:
                _require(one, step, values)
            values[step.statement.target] = _recorded(step.statement, values, self._scheduled(step))
        found = [values[name] for name in self.results]
        results = tuple(fresh(v, scalar=v.shape == ()) for v in found)
        return results[0] if len(results) == 1 else results

    def _scheduled(self, step: Step) -> ScheduleAttr | None:
        """How a statement is to be run. Raises ExpressionError for a step that may not be taken."""
        given = self._schedules.get(step.statement.target)
        if given is None or not step.statement.operator:
            return None
        loops = step.domain.loops
        named = replace(given, loops=tuple(x.name for x in loops), operands=step.operands)
        nest_of(named, [loop.size for loop in loops], len(step.domain.parallel))
        return ScheduleAttr.of(named)

    @property
    def jitted(self) -> JittedFunction:
        """What it is by itself: its IR, source and report for the arrays that it was called with last."""
        return self._jitted

    def explain(self, *shapes: Shape, dtype: Any = np.float32) -> str:
        """Each statement with its ranges, a line each, for tensors of these shapes (and one type)."""
        for shape in shapes:
            if not hasattr(shape, "__len__"):
                raise ExpressionError(f"explain: a shape of {shape!r}: expected a tuple of numbers")
        steps, made = bind(self._program, shapes, [np.dtype(dtype)] * len(shapes))
        return "\n".join(_line(step, made) for step in steps)

    def __repr__(self) -> str:
        return f"irkit.te.op({self.text!r})"


def _kinds(steps: Sequence[ScheduleStep]) -> list[tuple[str, int]]:
    return [(step.kind, step.number) for step in steps]


def _line(step: Step, shapes: Mapping[str, Shape]) -> str:
    target = step.statement.target
    shown = text_of(replace(step.statement, ranges=(), exists=()))
    checks = ", ".join(f"{text_of_index(c)} in 0:{c.size} checked" for c in step.domain.checked)
    ranges = ", ".join(filter(None, [str(step.domain), checks]))
    return f"{shown} where {ranges}  # {step.dtype}{list(shapes[target])}"


def text_of_index(one: Checked) -> str:
    """An index that is checked."""
    return text_of(Statement("x", (), "", True, one.read.indices[one.number]))[6:]


def _schedules(program: Program, given: Any) -> dict[str, Schedule]:
    """Schedules by what they compute; one alone is of the one statement that reduces. Raises
    ExpressionError."""
    if given is None:
        return {}
    items = [item for item in program.items if isinstance(item, Statement)]
    reducing = [item.target for item in items if item.operator]
    if not reducing:
        raise ExpressionError(
            "a schedule of a text in which no statement reduces: expected none, as what reduces nothing is "
            "fused with what reads it"
        )
    if isinstance(given, str):
        if len(set(reducing)) != 1:
            names = ", ".join(reducing)
            raise ExpressionError(
                f"a schedule of a text in which {len(reducing)} statements reduce ({names}): "
                "give a mapping from what is computed to its schedule"
            )
        given = {reducing[0]: given}
    texts: dict[Any, Any] = dict(cast("Any", given)) if isinstance(given, Mapping) else {"": given}
    if not all(isinstance(text, str) for text in texts.values()):
        raise ExpressionError(
            f"a schedule is a string, or a mapping from what is computed to strings, got {given!r}"
        )
    for target in texts:
        if target not in reducing:
            known = ", ".join(dict.fromkeys(reducing))
            raise ExpressionError(f"a schedule for '{target}': what reduces is {known}")
    found = {target: schedule_of(text) for target, text in texts.items()}
    for target, one in found.items():
        if one.loops:
            raise ExpressionError(
                f"the schedule of '{target}' names loops: they are the statement's indices"
            )
    return found


def _recorded(
    statement: Statement, values: Mapping[str, Value], schedule: ScheduleAttr | None = None
) -> Value:
    """A statement in the trace at hand."""
    names = operands_of(statement)
    while statement.target in names:
        # What is added to is an operand, and the sum a new tensor.
        statement = replace(statement, target=f"{statement.target}_")
    operands = [values[name] for name in names]
    said = {} if schedule is None else {"schedule": schedule}
    return recorder().op(ExpressionOp, *operands, text=text_of(statement), **said)


def _require(one: Checked, step: Step, values: Mapping[str, Value]) -> None:
    """Whoever runs the program is told if an index is out of bounds."""
    place = one.read.indices[one.number]
    inside: Expr = Apply(
        "&&", (Apply(">=", (place, Number(0))), Apply("<", (place, Number(one.size))))
    )
    truth: Expr = Apply("select", (inside, Number(1), Number(0)))
    for condition in reversed(one.conditions):
        truth = Apply("select", (condition, truth, Number(1)))
    used = set(names_of(truth))
    loops: list[Loop] = [loop for loop in step.domain.loops if loop.name in used]
    ranges = tuple(Range(x.name, Number(x.low), Number(x.high)) for x in loops)
    held = Statement("inside", (), "min" if loops else "", True, truth, ranges)
    r = recorder()
    where = f"{user_place()}: {text_of_index(one)} in '{one.read.tensor}'"
    r.require(out_of_bounds(where, one.size), r.cast(_recorded(held, values), np.dtype(bool)))


def _jitted(operator: Operator, options: Mapping[str, Any]) -> JittedFunction:
    def run(*arrays: Any) -> Any:
        return operator(*arrays)

    kind = inspect.Parameter.POSITIONAL_ONLY
    names = [inspect.Parameter(name, kind) for name in operator.parameters]
    run.__name__ = run.__qualname__ = operator.name
    run.__signature__ = inspect.Signature(names)  # pyright: ignore[reportFunctionMemberAccess]
    return jit(**options)(run)


def op(text: str, schedule: str | Mapping[str, str] | None = None, **options: Any) -> Operator:
    """An operator from a tensor expression: a function of NumPy arrays, which functions that `irkit.jit` and
    `irkit.grad` trace may call too.

    `text` is a function of the language (docs/expressions.md), or statements alone: what they read and do
    not assign are arguments, in the order in which they are first read, and results what no later one
    reads. `schedule` is how the loops of the statement that reduces are run, or a mapping from what is
    computed to that; without it irkit chooses. `options`: those of `irkit.jit`. Raises ExpressionError,
    with the line, column and a caret, for a text that has no meaning, and for a step that may not be taken.

    >>> matmul = irkit.te.op("C(m, n) +=! A(m, k) * B(k, n)")
    >>> c = matmul(a, b)
    """
    return Operator(text, options, schedule)
