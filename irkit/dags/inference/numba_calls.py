"""What functions that a kernel may call do with their arguments, as far as it is known by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from irkit.dags.inference.memory_values import Value, kinds_of


class Rule(NamedTuple):
    """`first` and `rest`: what is done to the first argument and to others, "r", "w", "rw" or nothing.

    `result` says what the result points to: "first", "all" or "new", memory of the thread's or block's own.
    """

    first: str
    rest: str
    result: str


LOOK = Rule("", "", "all")
"""No element is touched; what comes out may be a view."""
UNKNOWN = Rule("rw", "rw", "all")
_ATOMIC = Rule("rw", "r", "new")
_LOAD = Rule("r", "r", "new")
_STORE = Rule("w", "r", "new")
_NEW = Rule("", "r", "new")

_BUILTINS: dict[Any, Rule] = {
    f: LOOK for f in (len, enumerate, zip, iter, tuple, reversed, range, slice, bool)
}
_REDUCTIONS = (
    "sum", "prod", "mean", "var", "std", "min", "max", "any", "all", "argmin", "argmax",
)  # fmt: skip
_METHODS = {
    **{f"array.{name}": LOOK for name in ("reshape", "view", "transpose", "ravel")},
    **{f"array.{name}": _LOAD for name in (*_REDUCTIONS, "copy", "item")},
}
"""Of arrays: their typing keys."""
_MODULES: dict[str, dict[str, Rule]] = {
    "numpy": {
        **{name: _LOAD for name in (*_REDUCTIONS, "amin", "amax", "ptp", "median", "copy")},
        **{name: _NEW for name in (
            "empty", "zeros", "ones", "full", "empty_like", "zeros_like", "ones_like",
        )},
    },
    "numba.cuda.stubs": {
        **{f"atomic.{name}": _ATOMIC for name in (
            "add", "sub", "and_", "or_", "xor", "inc", "dec", "exch", "max", "min", "nanmax",
            "nanmin", "compare_and_swap", "cas",
        )},
        "shared.array": _NEW, "local.array": _NEW, "const.array_like": _NEW,
    },
    "numba.cuda.cache_hints": {
        **{name: _LOAD for name in ("ldca", "ldcg", "ldcs", "ldlu", "ldcv")},
        **{name: _STORE for name in ("stcg", "stcs", "stwb", "stwt")},
    },
}  # fmt: skip
"""By module and qualified name of what Numba types calls of."""


def rule_of(function: Any) -> Rule:
    """What a function of this Numba type does; `UNKNOWN`, which is everything, where no table has it."""
    key: Any = getattr(function, "typing_key", None)
    if type(key).__name__ == "tuple":
        # Methods that Numba has as overloads, by class and name.
        of, name = key
        key = f"array.{name}" if getattr(of, "__name__", "") == "Array" else key
    if isinstance(key, str):
        known = _METHODS.get(key) if "BoundFunction" in kinds_of(function) else None
        return known or UNKNOWN
    for known, rule in _BUILTINS.items():
        if key is known:
            return rule
    module = _MODULES.get(str(getattr(key, "__module__", "")), {})
    return module.get(str(getattr(key, "__qualname__", "")), UNKNOWN)


def parameters_of(
    dispatcher: Any, args: Sequence[Value], named: dict[str, Value]
) -> list[Value] | None:
    """Values of a called function's parameters in order; None where that is not plain to see."""
    names = (
        list(dispatcher.__signature__.parameters) if hasattr(dispatcher, "__signature__") else []
    )
    names = names or list(dispatcher.py_func.__code__.co_varnames)
    count = dispatcher.py_func.__code__.co_argcount
    if dispatcher.py_func.__code__.co_flags & 0x0C or count != len(args) + len(named):
        return None
    rest = names[len(args) : count]
    if set(rest) != set(named):
        return None
    return [*args, *(named[name] for name in rest)]
