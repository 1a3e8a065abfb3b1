"""Random source of a function of arrays.

NumPy runs each line as it is written, so that what has no meaning is left out, and shapes and dtypes are
known.
"""

# pyright: basic

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
MOST_ELEMENTS = 600
DTYPES = (
    "float64",
    "float64",
    "float32",
    "float32",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
    "float16",
)


@dataclass
class Source:
    """A function as it grows: its lines, and what its variables are after them."""

    rng: random.Random
    arguments: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])
    known: dict[str, Any] = field(default_factory=dict[str, Any])
    inexact: bool = False
    """Whether something was computed that need not have NumPy's bits."""

    def text(self) -> str:
        """The function."""
        names = [n for n in self.known if isinstance(self.known[n], np.ndarray | np.generic)]
        shown = list(dict.fromkeys([*names[-2:], self.rng.choice(names)]))
        body = "".join(f"    {line}\n" for line in self.lines)
        return f"def f({', '.join(self.arguments)}):\n{body}    return {', '.join(shown)},\n"

    def line(self, text: str, new: str | None = None) -> None:
        """Another line, if NumPy runs it and nothing becomes large."""
        saved = {n: np.array(v) for n, v in self.known.items() if isinstance(v, np.ndarray)}
        space = {"np": np, **self.known}
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                exec(text, space)  # the text is made here
        except (
            ZeroDivisionError,
            ValueError,
            TypeError,
            IndexError,
            OverflowError,
            AttributeError,
        ):
            for name, value in saved.items():
                if self.known[name].flags.writeable:
                    self.known[name][...] = value
            return
        made = space.get(new) if new else None
        if new and not _is_small(made):
            return
        self.lines.append(text)
        if new:
            self.known[new] = made

    def name(self) -> str:
        """A name that is not taken, or one that is."""
        if len(self.known) > 3 and self.rng.random() < 0.15:
            return self.rng.choice([n for n in self.known if n not in self.arguments] or ["v0"])
        return f"v{len(self.lines)}"

    def pick(self, condition: Callable[[Any], bool] = lambda v: True) -> str | None:
        """A variable, later ones more often; None if there is none of the kind."""
        names = [n for n, v in self.known.items() if condition(v)]
        if not names:
            return None
        return names[-1] if self.rng.random() < 0.4 else self.rng.choice(names)


def _is_small(value: Any) -> bool:
    if not isinstance(value, np.ndarray | np.generic):
        return False
    good = value.dtype.kind in "biuf" and value.dtype.itemsize <= 8
    return good and 0 < value.size <= MOST_ELEMENTS and value.ndim <= 5


def array(rng: random.Random, dtype: str, shape: tuple[int, ...]) -> Array:
    """Elements of few bits: sums and products of some are exact."""
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return np.asarray(numbers.integers(-24, 24, shape) / 4).astype(kind)
    if kind == np.bool_:
        return np.asarray(numbers.integers(0, 2, shape)).astype(kind)
    if rng.random() < 0.15:
        limits = np.iinfo(kind)
        return np.asarray(
            numbers.integers(limits.min, limits.max, shape, endpoint=True, dtype=kind)
        )
    return np.asarray(numbers.integers(0 if kind.kind == "u" else -9, 10, shape)).astype(kind)


def laid_out(rng: random.Random, dtype: str, shape: tuple[int, ...]) -> Array:
    """An array in one of the layouts that callers have."""
    kind = rng.choice(("plain", "plain", "plain", "fortran", "strided", "backwards", "cut"))
    if kind == "fortran":
        return np.asfortranarray(array(rng, dtype, shape))
    if kind == "strided" and shape:
        return array(rng, dtype, (*shape[:-1], 2 * shape[-1]))[..., ::2]
    if kind == "backwards" and shape:
        return array(rng, dtype, shape)[::-1]
    if kind == "cut" and shape:
        return array(rng, dtype, (shape[0] + 2, *shape[1:]))[1:-1]
    return array(rng, dtype, shape)
