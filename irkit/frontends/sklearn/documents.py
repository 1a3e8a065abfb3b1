"""Documents: the host counts what they have, and what follows is compiled.

`CountVectorizer` and `HashingVectorizer` are wholly the host's but for the norm; of `TfidfVectorizer`, its
counts are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects.graph import LogOp, MulOp
from irkit.errors import UnsupportedError
from irkit.frontends.sklearn.importer import Importer, Transformer, Values, kind_of
from irkit.frontends.sklearn.preprocessing import of_unit_norm

VECTORIZERS = ("CountVectorizer", "HashingVectorizer", "TfidfVectorizer")
WIDEST = 1 << 20
"""Columns of a vectorizer up to which it is imported: its rows may have to be made dense, one at
a time then."""
_ANALYSIS = (
    "analyzer",
    "binary",
    "decode_error",
    "encoding",
    "lowercase",
    "ngram_range",
    "stop_words",
    "strip_accents",
    "token_pattern",
)
_FUNCTIONS = ("analyzer", "preprocessor", "strip_accents", "tokenizer")

Steps = list[tuple[str, Any]]


def split(steps: Steps) -> tuple[Any, Steps]:
    """The vectorizer that stands first, or None, and the steps that are compiled."""
    if not steps or kind_of(steps[0][1]) not in VECTORIZERS:
        return None, steps
    name, head = steps[0]
    return head, [*((name, step) for step in behind(head)), *steps[1:]]


def behind(head: Any) -> list[Any]:
    """What a vectorizer makes of its counts, as transformers."""
    if kind_of(head) == "TfidfVectorizer":
        # It has none before it is fitted, which is refused later.
        return [getattr(head, "_tfidf", None)]
    if kind_of(head) == "HashingVectorizer" and head.norm is not None:
        from sklearn.preprocessing import Normalizer

        return [Normalizer(head.norm)]
    return []


def counted(importer: Importer, head: Any, x: SSAValue) -> SSAValue:
    """The counts that the host makes of a column of documents.

    Raises UnsupportedError for a column that is not the model's own.
    """
    first = importer.counts.get((id(head), *importer.words.sources.get(x, ())))
    if first is None:
        raise UnsupportedError(f"{kind_of(head)} of strings that another step makes")
    places = np.arange(first, first + columns(head))
    y = importer.columns(importer.builder.inputs[0], places)
    # Counts are integers, which other rows beside them make float64.
    narrow = np.dtype(head.dtype) == np.float32
    y = importer.cast(y, np.float32 if narrow else np.float64)
    importer.known[y] = Values(False, False)
    return y


def why_not(name: str, head: Any) -> list[str]:
    """Reasons why documents cannot be counted as a vectorizer does."""
    reasons = [f"parameter {p}, a function" for p in _FUNCTIONS if callable(getattr(head, p))]
    if head.input != "content":
        reasons.append(f"parameter input={head.input!r} (supported: 'content')")
    if np.dtype(head.dtype).name not in ("float32", "float64", "int32", "int64"):
        reasons.append(f"parameter dtype={np.dtype(head.dtype)}")
    if columns(head) > WIDEST:
        reasons.append(f"{columns(head)} columns (supported: up to {WIDEST})")
    return [f"step '{name}': {kind_of(head)} with {reason}" for reason in reasons]


def columns(head: Any) -> int:
    """How many columns a vectorizer makes; 0 before it is fitted."""
    if kind_of(head) == "HashingVectorizer":
        return int(head.n_features)
    return len(getattr(head, "vocabulary_", ()))


def text_facts(head: Any) -> dict[str, Any]:
    """What the host needs to count as a fitted vectorizer does, as plain data."""
    facts = {name: getattr(head, name) for name in _ANALYSIS}
    facts["ngram_range"] = list(head.ngram_range)
    if head.stop_words is not None and not isinstance(head.stop_words, str):
        facts["stop_words"] = sorted(head.stop_words)
    facts["dtype"] = np.dtype(head.dtype).name
    if kind_of(head) == "HashingVectorizer":
        return facts | {
            "n_features": int(head.n_features),
            "alternate_sign": bool(head.alternate_sign),
        }
    # In its own order: words that are met often lie together, which look-ups feel.
    return facts | {"vocabulary": {str(word): int(n) for word, n in head.vocabulary_.items()}}


# TfidfTransformer


def _tfidf(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """Counts weighed by how rare their words are; elements that are 0 stay so."""
    build = importer.builder
    if step.sublinear_tf:
        absent = importer.compare(x, "eq", [0.0], "zero")
        x = importer.where(absent, importer.add(build(LogOp, x), [1.0], "one"), [0.0], "zero")
    if hasattr(step, "idf_"):
        weighed = importer.update(MulOp, x, step.idf_, "idf")
        if not np.isfinite(step.idf_).all():
            # A word that no document had weighs infinitely much, where there is one.
            weighed = importer.where(
                importer.compare(x, "eq", [0.0], "zero"), weighed, [0.0], "zero"
            )
        x = weighed
    if step.norm is None:
        return x
    # Counts below 0 have no logarithm.
    importer.require_finite(x, "normalize of TfidfTransformer", nan=False, infinite=False)
    return of_unit_norm(importer, step.norm, x)


TRANSFORMERS: dict[str, Transformer] = {"TfidfTransformer": Transformer(_tfidf)}
