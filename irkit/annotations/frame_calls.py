"""Calls of pandas' functions and methods on what stands for frames: each one task of the host, in parts of
rows where that gives the same."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from irkit.annotations.annotation import Annotation
from irkit.annotations.frames import Node, built, kind_of, node_key, own, pandas
from irkit.annotations.held import Held
from irkit.annotations.sets.pandas import Plan, plan_of
from irkit.annotations.structures import ArrayType, mapped, of_kind
from irkit.annotations.workers import in_parts
from irkit.errors import UnsupportedError
from irkit.processors import usable_cores

PART = 1 << 16
"""Rows below which a part is not worth a thread."""


@dataclass(frozen=True)
class Step:
    """An attribute, an item or a call, of what the steps before it gave. `kind`: "attribute" (`value`: its
    name), "item" (its key), "call" (its arguments, positional and by name)."""

    kind: str
    value: Any

    def of(self, value: Any, given: Any) -> Any:
        """Taken of `value`; `given` is the step's own with objects in the place of nodes."""
        if self.kind == "attribute":
            return getattr(value, given)
        if self.kind == "item":
            return value[given]
        args, kwargs = given
        return value(*args, **kwargs)


class FrameCall:
    """`steps` from `source`, a node or a function. `array`: the type of the array that it gives; None of one
    that gives an object, whose number is returned. `title`: its name in messages."""

    def __init__(
        self, source: Any, steps: Sequence[Step], array: ArrayType | None, title: str
    ) -> None:
        self.source, self.steps, self.array, self.title = source, tuple(steps), array, title
        self._structure = (source, [s.value for s in self.steps])
        self._key = (title, tuple(s.kind for s in self.steps), node_key(self._structure), array)
        self._plan: Plan | None = None
        self._checked = False
        self.__name__ = title

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrameCall) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def key(self) -> Hashable:
        """What two calls that are alike share."""
        return self._key

    def annotation(self, why: str) -> Annotation:
        """As a task of the host."""
        result = ArrayType((), np.dtype(np.int64)) if self.array is None else self.array
        return Annotation(
            self, None, writes=(), result=lambda *_: result, why=why, title=self.title
        )

    def __call__(self, call: Any, *arrays: Any) -> Any:
        """Raises what pandas raises, and UnsupportedError for a result of another kind than was known."""
        held = Held.of(call)
        structure = built(self._structure, arrays, held)
        # Of what is given there is another reference, so that pandas copies what is written.
        source, values = mapped(structure, _shallow)
        whole = functools.partial(self._taken, source, values)
        plan = plan_of(source, self.steps, values)
        found = whole() if plan is None else self._in_parts(plan, whole)
        return self._given(found, arrays, held)

    def _taken(self, source: Any, values: Sequence[Any]) -> Any:
        found = source
        for step, given in zip(self.steps, values, strict=True):
            found = step.of(found, given)
        return found

    def _in_parts(self, plan: Plan, whole: functools.partial[Any]) -> Any:
        """Several threads take parts; the first time the whole is taken as well, and if parts give
        another result it is the whole from then on."""
        if self._checked and self._plan is None:
            return whole()
        if not self._checked:
            found = whole()
            self._plan = plan if _agrees(plan, found) else None
            self._checked = True
            return found
        if plan.rows < 2 * PART:
            return whole()
        return taken_in_parts(plan, max(PART, -(-plan.rows // usable_cores())))

    def _given(self, found: Any, arrays: Sequence[Any], held: Held) -> Any:
        if self.array is None:
            return np.int64(held.keep(own(_checked(found, self.title), arrays)))
        made = np.array(found.to_numpy() if hasattr(found, "to_numpy") else found)
        if made.dtype != self.array.dtype:
            raise UnsupportedError(
                f"'{self.title}' gave {made.dtype}, and {self.array.dtype} was expected"
            )
        return made


def taken_in_parts(plan: Plan, each: int) -> Any:
    """Parts of `each` rows, put together."""
    cuts = [(n, min(n + each, plan.rows)) for n in range(0, plan.rows, each)]
    found: dict[int, Any] = {}

    def part(start: int, stop: int) -> None:
        found[start] = plan.part(start, stop)

    in_parts(part, cuts)
    return plan.merge([found[start] for start, _ in cuts])


def _agrees(plan: Plan, found: Any) -> bool:
    """Whether three parts give the same."""
    if plan.rows < 3:
        return False
    try:
        parts = taken_in_parts(plan, -(-plan.rows // 3))
        check = pandas().testing
        same = (
            check.assert_frame_equal if kind_of(found) == "DataFrame" else check.assert_series_equal
        )
        same(parts, found, rtol=1e-9, atol=0, check_exact=plan.exact)
    except (AssertionError, TypeError, ValueError, KeyError):
        return False
    return True


def _shallow(value: Any) -> Any:
    return value.copy(deep=False) if kind_of(value) in ("Series", "DataFrame") else value


KEPT = (
    int,
    float,
    complex,
    str,
    bytes,
    bool,
    type(None),
    np.generic,
    np.ndarray,
    tuple,
    list,
    dict,
)


def _checked(value: Any, title: str) -> Any:
    """Raises UnsupportedError for what may see the arrays that it was made of when they are others."""
    kind = cast(Any, type(value))
    plain = of_kind(value, *KEPT) or kind_of(value) in ("Series", "DataFrame")
    library = kind.__module__.partition(".")[0] == "pandas"
    groups = hasattr(value, "agg") or hasattr(value, "_parent")
    if plain or (library and not groups):
        return value
    raise UnsupportedError(
        f"'{title}' gave a {kind.__module__}.{kind.__qualname__}: what follows it has to stand in the same "
        "expression, or in a function of another module"
    )


__all__ = ["FrameCall", "Node", "Step", "taken_in_parts"]
