"""Columns of strings: the host numbers what they have, and programs compare the numbers.

Encoders and imputers say which strings of a column they tell apart; all others are one number, as none of
them tells those apart. NaN stays NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects.graph import IsNanOp, OrOp
from irkit.errors import UnsupportedError
from irkit.model_info import is_pandas_na
from irkit.weights import Array

if TYPE_CHECKING:
    from irkit.frontends.sklearn.importer import Importer

Word = str | None


@dataclass
class Words:
    """The strings (and None) of the model's own columns, numbered as they are met.

    `sources` says of values whose columns are the model's own, or filled ones of its own, which those are.
    """

    sources: dict[SSAValue, tuple[int, ...]] = field(
        default_factory=dict[SSAValue, tuple[int, ...]]
    )
    documents: set[int] = field(default_factory=set[int])
    """Columns that vectorizers read."""
    numbers: dict[int, dict[Word, int]] = field(default_factory=dict[int, dict[Word, int]])
    with_na: set[int] = field(default_factory=set[int])
    """Columns in which pandas' NA is missing."""
    _as_numbers: dict[int, str] = field(default_factory=dict[int, str])

    def picked(self, x: SSAValue, y: SSAValue, columns: Sequence[int]) -> None:
        """`y` has columns of x."""
        if x in self.sources:
            self.sources[y] = tuple(self.sources[x][c] for c in columns)

    def read_as_numbers(self, x: SSAValue, who: str) -> None:
        """A step that compares no categories looks at all of x."""
        for source in self.sources.get(x, ()):
            self._as_numbers.setdefault(source, who)

    def beside(self, parts: Sequence[SSAValue], makers: Iterable[str], wide: SSAValue) -> None:
        """`wide` has the parts, of these makers, side by side: columns of the model's own if all of theirs
        are; else what strings there are nobody can encode any more."""
        if all(part in self.sources for part in parts):
            self.sources[wide] = tuple(c for part in parts for c in self.sources[part])
            return
        for part, maker in zip(parts, makers, strict=True):
            self.read_as_numbers(part, maker)

    def codes(self, x: SSAValue, column: int, values: Any, who: str) -> Array:
        """What a program sees in that column of x for each of `values`, as float64."""
        values = np.asarray(values)
        sources = self.sources.get(x)
        if values.dtype.kind in "fiub":
            if sources is not None:
                self._as_numbers.setdefault(sources[column], who)
            return np.asarray(values, np.float64)
        if sources is None:
            raise UnsupportedError(f"{who} of strings that another step makes")
        known = self.numbers.setdefault(sources[column], {})
        return np.array([_code(known, v) for v in values.tolist()], np.float64)

    def table(self) -> tuple[tuple[int, tuple[Word, ...]], ...]:
        """Each column of strings with those that have numbers, in their order.

        Raises UnsupportedError if such a column, or one of documents, is read as numbers too.
        """
        both = sorted((set(self.numbers) | self.documents) & set(self._as_numbers))
        if both:
            who = ", ".join(f"column {c} by {self._as_numbers[c]}" for c in both)
            raise UnsupportedError(f"columns of strings that are no categories: {who}")
        return tuple((c, tuple(self.numbers[c])) for c in sorted(self.numbers))


def _code(known: dict[Word, int], value: Any) -> float:
    if value is None or isinstance(value, str):
        return float(known.setdefault(value, len(known)))
    return np.nan


def fills_words(step: Any) -> bool:
    """Whether a fitted SimpleImputer fills gaps in strings."""
    return all(isinstance(v, str) for v in np.asarray(step.statistics_, object).tolist())


def filled(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """What a SimpleImputer makes of strings: the number of its own where one is missing."""
    words, missing = importer.words, step.missing_values
    statistics: list[str] = np.asarray(step.statistics_, object).tolist()
    codes = [words.codes(x, c, [v], "SimpleImputer")[0] for c, v in enumerate(statistics)]
    gone = importer.builder(IsNanOp, x)
    if is_pandas_na(missing):
        # All that pandas takes for missing is.
        words.with_na.update(words.sources.get(x, ()))
        gone = importer.builder(OrOp, gone, _is_word_of(importer, x, None))
    elif missing is None or isinstance(missing, str):
        gone = _is_word_of(importer, x, missing)
    y = importer.where(gone, x, codes, "statistics")
    words.picked(x, y, range(len(statistics)))
    return y


def _is_word_of(importer: Importer, x: SSAValue, word: Word) -> SSAValue:
    """Which cells are a string, or None, as i1."""
    every = range(importer.width(x))
    codes = [importer.words.codes(x, c, [word], "SimpleImputer")[0] for c in every]
    return importer.compare(x, "eq", codes, "missing")


def why_not_filled(step: Any) -> list[str]:
    """Reasons why gaps in strings cannot be filled in a program."""
    missing = step.missing_values
    reasons = ["parameter add_indicator=True, over strings"] if step.add_indicator else []
    gap = missing is None or isinstance(missing, str) or is_pandas_na(missing) or missing != missing
    return reasons if gap else [*reasons, f"parameter missing_values={missing!r}, over strings"]


def why_not_words(values: Any) -> str | None:
    """Why categories are neither numbers nor strings; None if they are."""
    values = np.asarray(values)
    if values.dtype.kind in "fiubU":
        return None
    odd = [v for v in cast(list[Any], values.tolist()) if not _is_word(v)]
    if values.dtype.kind == "O" and not odd:
        return None
    kind = type(odd[0]).__name__ if odd else str(values.dtype)
    return f"categories of type {kind} among others"


def _is_word(value: Any) -> bool:
    missing = isinstance(value, float) and value != value
    return value is None or isinstance(value, str) or missing
