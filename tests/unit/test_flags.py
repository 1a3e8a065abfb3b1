"""Arguments that are True or False: anything else is refused by name."""

# pyright: basic
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irkit
from irkit.errors import UnsupportedError
from irkit.training.optimizers import SGD

MODULE = "func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> { func.return %x : tensor<3xf32> }"


@pytest.mark.parametrize("flag", ["measure", "cache", "progress"])
@pytest.mark.parametrize("value", ["no", 1, [True]])
def test_of_compile(flag: str, value: Any) -> None:
    with pytest.raises(UnsupportedError, match=f"irkit.compile: {flag}=.*: expected True or False"):
        irkit.compile(irkit.parse(MODULE), "cpu", **{flag: value})


@pytest.mark.parametrize("flag", ["measure", "cache"])
def test_of_jit(flag: str) -> None:
    given: Any = "no"
    with pytest.raises(UnsupportedError, match=f"irkit.jit: {flag}='no': expected True or False"):
        irkit.jit(**{flag: given})


def test_of_a_step() -> None:
    given: Any = "no"
    with pytest.raises(UnsupportedError, match="stop_on_nan='no': expected True or False"):
        irkit.training_step(
            lambda p, x: (p * x).sum(), None, SGD(0.1), parameters=np.ones(3), stop_on_nan=given
        )


def test_numpys_are_taken() -> None:
    given: Any = np.bool_(False)
    program = irkit.compile(irkit.parse(MODULE), "cpu", cache=given, progress=None)
    np.testing.assert_array_equal(program(np.ones(3, np.float32)), np.ones(3))
