"""Documents within a model: the host counts them, and the counts stand behind the model's own columns.

A vectorizer may be a part of a ColumnTransformer, of one column by name or number, or of a FeatureUnion of
documents, or first in a Pipeline there; and so in what votes, stacks and others hand on to their members.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from irkit.errors import UnsupportedError
from irkit.frontends.sklearn import documents
from irkit.frontends.sklearn.composition import (
    HANDED_ON,
    answering,
    does_nothing,
    estimators_within,
    pipeline_steps,
)
from irkit.frontends.sklearn.importer import Importer, kind_of
from irkit.model_info import DOCUMENTS

Given = Literal["rows", "column", "columns"]
"""What a vectorizer is given: the model's own rows, one column of a frame, or a frame."""


@dataclass(frozen=True)
class Vectorizer:
    """One within a model, and the columns of the model that it is given."""

    step: Any
    sources: tuple[int, ...]
    given: Given


@dataclass(frozen=True)
class Texts:
    """All vectorizers within a model, none of them twice; how many columns the model itself has."""

    own: int
    found: tuple[Vectorizer, ...]

    @property
    def width(self) -> int:
        """Columns of the program: the model's own, then all counts."""
        return self.own + sum(documents.columns(v.step) for v in self.found)

    def facts(self) -> tuple[tuple[int, Any], ...]:
        """`ModelInfo.texts`."""
        return tuple(
            (DOCUMENTS if v.given == "rows" else v.sources[0], documents.text_facts(v.step))
            for v in self.found
        )

    def place(self, importer: Importer) -> None:
        """Say where the counts of each stand among the program's columns, and that no step may read
        documents as numbers."""
        first = self.own
        for v in self.found:
            importer.counts[id(v.step), *v.sources] = first
            importer.words.documents.add(v.sources[0])
            first += documents.columns(v.step)


def texts_of(model: Any, steps: list[tuple[str, Any]]) -> Texts | None:
    """The vectorizers within a model's steps; None if there are none.

    Raises UnsupportedError for one that is given no documents.
    """
    own = getattr(model, "n_features_in_", None)
    # Documents themselves are the model's one column.
    own = int(own) if own is not None else 1
    distinct = {(id(v.step), v.sources): v for v in _within(steps, tuple(range(own)), "rows")}
    if not distinct:
        return None
    found = tuple(distinct.values())
    for v in found:
        if v.given == "columns" or (v.given == "rows" and own != 1):
            raise UnsupportedError(
                f"{kind_of(v.step)} of several columns: it takes documents, or one column of a "
                "ColumnTransformer, named without a list"
            )
    if len({v.given for v in found}) > 1:
        raise UnsupportedError("vectorizers of documents beside vectorizers of columns")
    return Texts(own, found)


def _within(
    steps: list[tuple[str, Any]], sources: tuple[int, ...], given: Given
) -> Iterator[Vectorizer]:
    """Those that read what a pipeline is given; what others make has no documents."""
    if steps:
        yield from _of(steps[0][1], sources, given)


def _of(step: Any, sources: tuple[int, ...], given: Given) -> Iterator[Vectorizer]:
    step = answering(step)
    match kind_of(step):
        case "Pipeline":
            yield from _within(pipeline_steps(step), sources, given)
        case "ColumnTransformer":
            for part, columns, one in _columns(step):
                picked = tuple(sources[c] for c in columns)
                yield from _of(part, picked, "column" if one else "columns")
        case "FeatureUnion":
            for _, part in step.transformer_list:
                yield from () if does_nothing(part) else _of(part, sources, given)
        case kind if kind in documents.VECTORIZERS:
            yield Vectorizer(step, sources, given)
        case kind if kind in HANDED_ON:
            inner = [e for name, e in estimators_within(step) if name != "final_estimator_"]
            for estimator in inner:
                yield from _within(pipeline_steps(estimator), sources, given)
        case _:
            return


def _columns(step: Any) -> Iterator[tuple[Any, list[int], bool]]:
    """Transformer, column numbers, and whether it is given one column alone and no frame."""
    indices = step._transformer_to_input_indices
    for name, part, columns in step.transformers_:
        if not does_nothing(part) and len(indices[name]):
            yield part, [int(i) for i in indices[name]], isinstance(columns, str | int)
