"""Rows of a `scipy.sparse` CSR matrix, as dense rows of a program some at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from irkit.errors import InvalidInputError, UnsupportedError
from irkit.model_info import ModelInfo
from irkit.runtime.host_arrays import to_host
from irkit.runtime.sized import SizedVariant
from irkit.runtime.variant import Variant
from irkit.weights import Array

CHUNK_BYTES = 1 << 20
"""Dense rows at a time: what a core's cache holds while a program reads them."""


def is_sparse(value: Any) -> bool:
    """Whether `value` is a sparse matrix or array of any format."""
    return type(value) is not np.ndarray and hasattr(value, "tocsr")


def csr_rows(info: ModelInfo, value: Any) -> Any:
    """`value` as CSR of numbers that the model takes, as it is stored.

    Raises UnsupportedError if the model takes no sparse rows, InvalidInputError for no matrix of numbers.
    """
    name = info.inputs[0].removesuffix(".data") if info.inputs else "0"
    if not info.absent:
        reason = f": {info.dense_only}" if info.dense_only else ""
        raise UnsupportedError(f"input '{name}': sparse matrices{reason}")
    if value.ndim != 2:
        raise InvalidInputError(
            f"input '{name}' is sparse, of {value.ndim} dimensions; accepted: 2"
        )
    kinds = "f" if info.absent == "nan" else "fiub"
    if value.dtype.kind not in kinds:
        wanted = "floats" if kinds == "f" else "numbers"
        raise InvalidInputError(f"input '{name}': expected {wanted}, got dtype {value.dtype}")
    if value.format != "csr":
        # As scikit-learn converts it: of COO, elements that are stored twice are added up.
        value = value.tocsr()
    if len(value.indices) and not _within(value.indices, value.shape[1]):
        raise InvalidInputError(f"input '{name}': a CSR matrix with columns that it has not")
    if not info.sparse_nan and value.dtype.kind == "f" and np.isnan(value.data).any():
        raise InvalidInputError(
            f"input '{name}' has NaN, which the model does not accept in sparse rows"
        )
    if info.sparse_order and not value.has_sorted_indices:
        raise InvalidInputError(
            f"input '{name}' stores elements of a row out of order, of which PolynomialFeatures "
            "of scikit-learn makes columns in other places: sort_indices() sorts them"
        )
    if not info.sparse_zeros:
        _refuse_stored_zeros(name, value)
    return value


def _refuse_stored_zeros(name: str, value: Any) -> None:
    """Raises InvalidInputError for CSR that stores a 0, or an element more than once."""
    if (value.data == 0).any():
        raise InvalidInputError(
            f"input '{name}' stores a 0, of which scikit-learn would take the logarithm: "
            "eliminate_zeros() leaves it out"
        )
    if value.has_canonical_format:
        return
    whole = value.copy()
    whole.sum_duplicates()
    if whole.nnz != value.nnz:
        raise InvalidInputError(
            f"input '{name}' stores an element in parts, of each of which scikit-learn would take the "
            "logarithm: sum_duplicates() adds them up"
        )


def _within(indices: Array, columns: int) -> bool:
    """Whether all are columns; negative ones are large as unsigned ones."""
    if indices.dtype.kind != "i":
        return bool(indices.min() >= 0 and indices.max() < columns)
    return bool(indices.view(f"u{indices.dtype.itemsize}").max() < columns)


def sparse_rows(info: ModelInfo, value: Any) -> Any:
    """`value` as rows that can be made dense: CSR of numbers, no element twice. Raises as `csr_rows`."""
    value = csr_rows(info, value)
    if value.has_canonical_format:
        return value
    value = value.copy()
    value.sum_duplicates()
    return value


class SparseRows:
    """A program of dense rows as one of sparse rows; thread-safe as it is."""

    def __init__(self, variant: Variant | SizedVariant, info: ModelInfo) -> None:
        if not isinstance(variant, Variant):
            raise UnsupportedError("sparse rows of a model that has a program for each batch size")
        self._variant, self._info = variant, info
        self.outputs = variant.outputs

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """All outputs, in order. Raises InvalidInputError, UnsupportedError."""
        rows = sparse_rows(self._info, inputs[0])
        if len(inputs) != 1:
            raise InvalidInputError(f"expected 1 input, got {len(inputs)}")
        parts = [self._variant.executor.run([chunk]) for chunk in self._chunks(rows)]
        if len(parts) == 1:
            return self._variant.checked(parts[0])
        whole = [np.concatenate([to_host(a) for a in each]) for each in zip(*parts, strict=True)]
        return self._variant.checked(whole)

    def _chunks(self, rows: Any) -> Iterator[Array]:
        """Dense rows, in order; at least one chunk, so that no rows are refused as such."""
        count, width = rows.shape
        size = max(1, CHUNK_BYTES // max(1, width * rows.dtype.itemsize))
        absent = np.nan if self._info.absent == "nan" else 0
        for start in range(0, max(count, 1), size):
            starts = rows.indptr[start : start + size + 1]
            here = slice(int(starts[0]), int(starts[-1]))
            dense = np.full((len(starts) - 1, width), absent, rows.dtype)
            row = np.repeat(np.arange(len(dense)), np.diff(starts))
            dense[row, rows.indices[here]] = rows.data[here]
            yield dense
