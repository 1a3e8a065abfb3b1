"""Columns of documents beside others: CSR rows of the model's own columns and all counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from irkit.errors import InvalidInputError
from irkit.model_info import DOCUMENTS, ModelInfo
from irkit.runtime.data_frames import fitted_columns, is_data_frame
from irkit.runtime.documents import Documents
from irkit.runtime.words import numbered
from irkit.weights import Array


class TextColumns:
    """Counts documents as the vectorizers within a model did; thread-safe.

    Raises UnsupportedError where scikit-learn is not installed.
    """

    def __init__(self, info: ModelInfo) -> None:
        self._info = info
        self._counters = [(column, Documents(facts)) for column, facts in info.texts]
        self._read = frozenset(column for column, _ in info.texts)

    def rows(self, value: Any, apart: bool = False) -> Any:
        """CSR of all that the program reads. Raises InvalidInputError for rows that have it not; ColumnsApart
        if types are looked at `apart`."""
        if DOCUMENTS in self._read:
            counts = [documents.counted(value) for _, documents in self._counters]
            return _beside(np.zeros((counts[0].shape[0], 1)), counts)
        own, texts = self._of_frame(value, apart) if is_data_frame(value) else self._of_rows(value)
        counts = [
            _counted(documents, *texts[column], len(own)) for column, documents in self._counters
        ]
        return _beside(own, counts)

    def _of_frame(self, value: Any, apart: bool) -> tuple[Array, dict[int, tuple[str, Any]]]:
        names: list[Any] = list(value.columns)
        wanted = names
        if self._info.columns is not None and all(isinstance(n, str) for n in names):
            wanted = list(self._info.columns)
        lacking = [wanted[c] if c < len(wanted) else c for c in sorted(self._read)]
        if lacking := [n for n in lacking if n not in names]:
            raise InvalidInputError(f"the data frame lacks columns {', '.join(map(repr, lacking))}")
        texts = {c: (f"column '{wanted[c]}'", value[wanted[c]]) for c in self._read}
        # A column may be documents to one step and categories to another.
        words = {column for column, _ in self._info.words}
        skipped = [wanted[c] for c in self._read - words]
        info = replace(self._info, unused=(*self._info.unused, *skipped), types_apart=apart)
        if all(n in info.unused for n in wanted):
            rows = len(np.asarray(value[wanted[min(self._read)]]))
            return np.zeros((rows, len(wanted))), texts
        return fitted_columns(info, value), texts

    def _of_rows(self, value: Any) -> tuple[Array, dict[int, tuple[str, Any]]]:
        rows: Any = np.asarray(value, object)
        own = numbered(self._info, rows, self._read)
        return own, {c: (f"column {c}", rows[:, c]) for c in self._read}


def _counted(documents: Documents, name: str, values: Any, rows: int) -> Any:
    column: Any = np.asarray(values, object)
    if column.ndim != 1 or len(column) != rows:
        raise InvalidInputError(f"{name}: expected one document a row")
    try:
        return documents.counted(column)
    except InvalidInputError as error:
        raise InvalidInputError(f"{name}: {error}") from None


def _beside(own: Array, counts: list[Any]) -> Any:
    """Rows that store all of `own`, which is a 0 or none, and what is counted."""
    from scipy import sparse

    matrices: Any = sparse
    rows, columns = own.shape
    starts: Array = np.arange(rows + 1, dtype=np.int64) * columns
    every: Array = np.tile(np.arange(columns, dtype=np.int64), rows)
    mine = matrices.csr_matrix((own.ravel(), every, starts), shape=own.shape)
    return matrices.hstack([mine, *(c.astype(own.dtype) for c in counts)], format="csr")
