"""Arrays on the stack of emitted CPU modules."""

from __future__ import annotations

from typing import Any

import pytest
from numba import njit, types

from irkit.runtime.intrinsics import cpu


@pytest.mark.parametrize("name", ["float32", "float64", "int32", "int64", "uint8"])
def test_nothing_fills_the_stack(name: str) -> None:
    stack: Any = getattr(cpu, f"stack_{name}")

    @njit("int64(int64)")
    def last(value: Any) -> Any:
        made = stack(4096)
        for i in range(4096):
            made[i] = value + i
        return types.int64(made[4095])

    text: str = next(iter(last.inspect_llvm().values()))
    assert "store [4096" not in text
    assert "memset" not in text
    assert last(1) == (0 if name == "uint8" else 4096)
