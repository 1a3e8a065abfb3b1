"""Python's operators on what stands for frames."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

_OPERATOR: Any = operator

OPERATORS: Mapping[str, Callable[..., Any]] = {
    "add": _OPERATOR.add, "sub": _OPERATOR.sub, "mul": _OPERATOR.mul, "truediv": _OPERATOR.truediv,
    "floordiv": _OPERATOR.floordiv, "mod": _OPERATOR.mod, "pow": _OPERATOR.pow, "and": _OPERATOR.and_,
    "or": _OPERATOR.or_, "xor": _OPERATOR.xor, "eq": _OPERATOR.eq, "ne": _OPERATOR.ne, "lt": _OPERATOR.lt,
    "le": _OPERATOR.le, "gt": _OPERATOR.gt, "ge": _OPERATOR.ge, "matmul": _OPERATOR.matmul,
}  # fmt: skip
UNARY: Mapping[str, Callable[..., Any]] = {
    "neg": _OPERATOR.neg, "pos": _OPERATOR.pos, "abs": _OPERATOR.abs, "invert": _OPERATOR.invert,
}  # fmt: skip
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def install(kind: type, binary: Callable[..., Any], unary: Callable[..., Any]) -> None:
    """Give a class Python's operators: `binary(name, left, right)`, `unary(name, value)`."""

    def forward(name: str) -> Callable[..., Any]:
        def method(self: Any, other: Any) -> Any:
            return binary(name, self, other)

        return method

    def backward(name: str) -> Callable[..., Any]:
        def method(self: Any, other: Any) -> Any:
            return binary(name, other, self)

        return method

    def alone(name: str) -> Callable[..., Any]:
        def method(self: Any) -> Any:
            return unary(name, self)

        return method

    for name in OPERATORS:
        setattr(kind, f"__{name}__", forward(name))
        if name not in COMPARISONS:
            setattr(kind, f"__r{name}__", backward(name))
    for name in UNARY:
        setattr(kind, f"__{name}__", alone(name))
