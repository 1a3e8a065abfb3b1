"""What `casting=` allows, and how `order=` has a copy lie, as NumPy says it of the same call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irkit

X = np.arange(6.0).reshape(2, 3) - 2.5
CALLS: dict[str, Callable[[Any], Any]] = {
    "concatenated in integers": lambda x: np.concatenate([x, x], dtype=np.int64),
    "concatenated in integers, allowed": lambda x: np.concatenate(
        [x, x], dtype=np.int64, casting="unsafe"
    ),
    "concatenated in less": lambda x: np.concatenate([x, x], dtype=np.float32),
    "concatenated in less, not allowed": lambda x: np.concatenate(
        [x, x], dtype=np.float32, casting="safe"
    ),
    "concatenated into integers": lambda x: np.concatenate([x, x], out=np.zeros((4, 3), np.int64)),
    "concatenated into less": lambda x: np.concatenate([x, x], out=np.zeros((4, 3), np.float32)),
    "stacked in integers": lambda x: np.stack([x, x], dtype=np.int32),
    "side by side in integers": lambda x: np.hstack([x, x], dtype=np.int32, casting="unsafe"),
    "cast": lambda x: x.astype(np.float32, casting="safe"),
    "cast by columns": lambda x: x.astype(np.float32, order="F").ravel("K"),
    "cast as it lies": lambda x: x.T.astype(np.float32).ravel("K"),
    "cast by rows": lambda x: x.T.astype(np.float32, order="C").ravel("K"),
    "copied by columns": lambda x: x.copy(order="F").ravel("K"),
    "copied in no order": lambda x: x.copy(order="Q"),
    "cast in no order": lambda x: x.astype(np.float32, order="Q"),
}


def answer(function: Callable[[Any], Any]) -> Any:
    try:
        return function(X.copy())
    except (TypeError, ValueError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_numpys(name: str) -> None:
    want, got = answer(CALLS[name]), answer(irkit.jit(CALLS[name]))
    assert type(got) is type(want)
    if isinstance(want, tuple):
        assert got[0] is want[0]
        assert want[1] in got[1]
        return
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)
