"""Documents as counts, by scikit-learn's own analyzer: rows of a CSR matrix for a program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from irkit.errors import InvalidInputError, UnsupportedError


class Documents:
    """Counts what documents have, as the vectorizer did that a model was fitted with; thread-safe.

    `facts` is `ModelInfo.text`. Raises UnsupportedError where scikit-learn is not installed.
    """

    def __init__(self, facts: Mapping[str, Any]) -> None:
        try:
            from sklearn import feature_extraction
        except ImportError:
            raise UnsupportedError("documents, where scikit-learn is not installed") from None
        vectorizers: Any = feature_extraction.text
        given: dict[str, Any] = {**facts, "ngram_range": tuple(facts["ngram_range"])}
        if "vocabulary" in given:
            self._counter = vectorizers.CountVectorizer(**given)
        else:
            self._counter = vectorizers.HashingVectorizer(**given, norm=None)
        # What is worked out at the first call is so before threads come.
        self._counter.transform([""])

    def counted(self, documents: Any) -> Any:
        """CSR, rows×columns. Raises InvalidInputError for what are no documents."""
        found = _strings(documents)
        try:
            counts = self._counter.transform(found)
        except UnicodeDecodeError as error:
            raise InvalidInputError(f"a document cannot be decoded: {error}") from None
        return counts if counts.dtype.kind == "f" else counts.astype("float64")


def _strings(documents: Any) -> list[Any]:
    """The documents, each a string or bytes."""
    kind, rank = type(documents).__name__, getattr(documents, "ndim", 1)
    one = isinstance(documents, str | bytes)
    if one or rank != 1 or not hasattr(documents, "__iter__"):
        shown = kind if rank == 1 else f"{kind} of {rank} dimensions"
        raise InvalidInputError(f"expected a list of documents, got {shown}")
    found: list[Any] = list(documents)
    for number, document in enumerate(found):
        if not isinstance(document, str | bytes):
            other = type(document).__name__
            raise InvalidInputError(f"document {number}: expected a string, got {other}")
    if not found:
        raise InvalidInputError("expected 1 or more documents, got 0")
    return found
