"""Rows of a `scipy.sparse` CSR matrix, for a program of what is stored; and where such programs come from."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from irkit.errors import InvalidInputError
from irkit.runtime.host_arrays import to_host
from irkit.runtime.sparse_rows import csr_rows, sparse_rows
from irkit.runtime.variant import Variant
from irkit.weights import Array

DENSE_BYTES = 1 << 28
"""Dense rows that a device holds at a time, of a program that makes them."""
PREFIX = "csr-"
"""What names of such programs begin with, beside those of dense rows."""


class MadeDense(Exception):
    """Sparse rows are to a model what dense rows are, and the host makes them that; why."""


class CsrRows:
    """A program of stored elements as one of CSR matrices; thread-safe as it is."""

    def __init__(self, variant: Variant) -> None:
        self._variant, self._info = variant, variant.info
        self.outputs = variant.outputs

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """All outputs, in order. Raises InvalidInputError, UnsupportedError."""
        read = sparse_rows if self._info.stored_once else csr_rows
        rows = read(self._info, inputs[0])
        if len(inputs) != 1:
            raise InvalidInputError(f"expected 1 input, got {len(inputs)}")
        arrays = self._arrays(rows)
        if not self._info.stored_dense:
            return self._variant.checked(self._variant.executor.run(arrays))
        parts = [self._variant.executor.run(part) for part in self._parts(*arrays)]
        if len(parts) == 1:
            return self._variant.checked(parts[0])
        whole = [np.concatenate([to_host(a) for a in each]) for each in zip(*parts, strict=True)]
        return self._variant.checked(whole)

    def _parts(
        self, data: Array, indices: Array, starts: Array, ends: Array
    ) -> Iterator[list[Array]]:
        """As many rows at a time as the device may hold dense; one part at least."""
        size = max(1, DENSE_BYTES // (self._info.stored * data.itemsize))
        for first in range(0, max(len(starts), 1), size):
            low, high = starts[first : first + size], ends[first : first + size]
            begin, end = (int(low[0]), int(high[-1])) if len(low) else (0, 0)
            here = (..., slice(begin, end))
            yield [data[here], indices[here], low - begin, high - begin]

    def _arrays(self, rows: Any) -> list[Array]:
        """Data, indices, starts, ends: the program looks at none of them before it follows them."""
        name, columns = self._info.inputs[0].rpartition(".")[0], self._info.stored
        count, width = rows.shape
        if width != columns:
            raise InvalidInputError(
                f"input '{name}': expected shape rowsx{columns}, got {count}x{width}"
            )
        indptr = np.ascontiguousarray(rows.indptr, np.int64)
        stored = min(len(rows.data), len(rows.indices))
        steps = np.diff(indptr)
        sound = len(indptr) == count + 1 and indptr[0] >= 0 and indptr[-1] <= stored
        if not sound or (len(steps) and steps.min() < 0):
            raise InvalidInputError(f"input '{name}': a CSR matrix whose indptr is none")
        return [
            rows.data[None, :stored],
            np.ascontiguousarray(rows.indices[None, :stored], np.int32),
            indptr[:-1],
            indptr[1:],
        ]


class CsrPrograms:
    """The programs of sparse rows of a model, by input dtype: of what is stored, or of rows that are made
    dense, where scikit-learn computes otherwise of sparse ones.

    Those that are there, and those that `build` compiles when they are first asked for. Thread-safe.
    """

    def __init__(
        self,
        known: Mapping[str, Variant],
        build: Callable[[str], Variant] | None = None,
        dtypes: Sequence[str] = (),
        why_not: str = "",
    ) -> None:
        self._known = dict(known)
        self._build, self._pending = build, [d for d in dtypes if d not in self._known]
        self.why_not = why_not
        """Why rows are made dense, where a program of what is stored could not be made."""
        self._lock = threading.Lock()

    def of(self, dtype: str) -> Variant | None:
        """The program for an input dtype, or that for float64; None if the model has none.

        Raises UnsupportedError for a model that computes of sparse rows what a program does not.
        """
        if not self._known and not self._pending:
            return None
        if dtype not in self._known and dtype not in self._pending:
            dtype = "float64"
        found = self._known.get(dtype)
        return found if found is not None else self._compiled(dtype)

    def all(self) -> dict[str, Variant]:
        """All of them, compiled."""
        for dtype in list(self._pending):
            self._compiled(dtype)
        return dict(self._known)

    def report(self) -> dict[str, Any]:
        """How sparse rows are read: nothing where the model takes none, or where none has come yet."""
        if self.why_not:
            return {"sparse_rows": f"made dense some at a time: {self.why_not}"}
        if any(v.info.stored_dense for v in self._known.values()):
            return {"sparse_rows": "made dense by the program, some at a time"}
        if not all(v.info.stored for v in self._known.values()):
            return {"sparse_rows": "made dense some at a time, for a program of its own"}
        if self._known:
            return {"sparse_rows": "by the elements that are stored"}
        return {}

    def _compiled(self, dtype: str) -> Variant | None:
        """A program that was pending; compiled once, whoever asks first."""
        with self._lock:
            if dtype in self._pending and self._build is not None:
                try:
                    self._known[dtype] = self._build(dtype)
                    self._pending.remove(dtype)
                except MadeDense as error:
                    # The model is the same for all dtypes.
                    self.why_not, self._pending = str(error), []
            return self._known.get(dtype)
