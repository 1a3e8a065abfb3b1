"""Text, counted by the host as scikit-learn counts it."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import pytest
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from tests.conformance.interpreted import compare, interpreted

TEXTS = ["the cat sat", "a dog, a dog", "Ünicode and the dog", "", "cat cat the hat"] * 4


@pytest.mark.parametrize(
    "counter",
    [
        CountVectorizer(ngram_range=(1, 2)),
        HashingVectorizer(n_features=32),
        TfidfVectorizer(sublinear_tf=True),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3)),
    ],
    ids=lambda step: type(step).__name__,
)
def test_counts(counter: object) -> None:
    model = make_pipeline(counter, LogisticRegression()).fit(TEXTS, [0, 1, 1, 2, 0] * 4)
    given = [*TEXTS[:5], "never seen at all", "the the DOG"]
    compare(interpreted(model), model, given, rtol=1e-9, atol=1e-9, prepare=lambda part: part)
