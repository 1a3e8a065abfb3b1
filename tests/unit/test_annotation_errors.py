"""What is wrong with an annotation is said where it is made, or names the function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy import special

import irkit
from irkit.annotations import ArraySplit, SplitType
from irkit.errors import UnsupportedError


class Sizes(SplitType):
    """It says how large a value is, and no more."""

    def size(self, value: Any) -> int | None:
        return len(value)


class Whole(Sizes):
    """It says nothing of how results are put together."""

    def split(self, value: Any, start: int, stop: int) -> Any:
        return value[start:stop]


class Merges(SplitType):
    """Of results alone."""

    def merge(self, parts: Sequence[Any]) -> Any:
        return np.concatenate(list(parts))


def halved(x: Any) -> Any:
    """Somebody's."""
    return x[::1] / 2


def test_a_split_type_without_its_methods_is_refused_when_it_is_named() -> None:
    with pytest.raises(
        UnsupportedError, match=r"types\['x'\] is .*: expected a split type with split\(\)"
    ):
        irkit.annotate(halved, types={"x": Sizes()}, returns=ArraySplit(0), result="x")
    with pytest.raises(
        UnsupportedError, match=r"returns is .*: expected a split type with merge\(\)"
    ):
        irkit.annotate(halved, types={"x": Whole()}, returns=Whole(), result="x")
    irkit.annotate(halved, types={"x": Whole()}, returns=Merges(), result="x")


def test_a_result_that_raises_names_its_function() -> None:
    def result(x: Any) -> Any:
        raise KeyError("width")

    known: Any = irkit.annotate(lambda x: halved(x), result=result)  # pyright: ignore
    traced: Any = irkit.jit(target="cpu")(lambda x: known(x) + 1)  # pyright: ignore
    with pytest.raises(KeyError, match="width") as met:
        traced(np.ones(3))
    assert any("in the result that is known of '<lambda>'" in n for n in met.value.__notes__)


def test_universal_functions_of_others_write_out() -> None:
    functions: Any = special

    @irkit.jit(target="cpu")
    def f(x: Any, y: Any) -> Any:
        functions.gamma(x, out=y[1:])
        return functions.gammaln(x, np.zeros_like(x)) + y[1:]

    x, y = np.linspace(1, 3, 5), np.zeros(6)
    want, own = functions.gammaln(x) + functions.gamma(x), y.copy()
    np.testing.assert_allclose(f(x, own), want, rtol=1e-14)
    np.testing.assert_array_equal(own[1:], functions.gamma(x))
