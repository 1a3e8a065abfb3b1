"""What Numba says of a kernel that it refuses, in one line: pages of candidates and passes are left out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from inspect import isgeneratorfunction
from typing import Any, Final

from irkit.errors import UnsupportedError

_LINE: Final = re.compile(r'^File "([^"]+)", line (\d+):', re.MULTILINE)
_MISSING: Final = re.compile(
    r"^No implementation of function .* found for signature:\s*>>> (.*)$", re.M
)
_RAISED: Final = re.compile(r"^\s*\w+Error: (?!No implementation)(.*)$", re.MULTILINE)
_SAYS_NOTHING: Final = ("Failed in ", "During: ", "Internal error")


def reason_of(error: Exception) -> str:
    """Why Numba refuses a kernel, and its line where the message has one."""
    text = str(error)
    missing = _MISSING.search(text)
    if missing is not None:
        raised = _RAISED.search(text, missing.end())
        reason = f"it has no {missing[1].strip()}" + (f" ({raised[1]})" if raised else "")
    else:
        lines = (line.strip() for line in text.splitlines())
        told = (line for line in lines if line and not line.startswith(_SAYS_NOTHING))
        reason = next(told, type(error).__name__).partition(" Raised from ")[0].rstrip(".")
    place = _LINE.search(text)
    return f"{reason}, in line {place[2]}" if place else reason


def refused(kernel: Any, types: Sequence[Any], error: Exception) -> UnsupportedError:
    """The error of a kernel that Numba does not compile for arguments of `types`."""
    code = kernel.py_func.__code__
    names = [*code.co_varnames[: code.co_argcount], *("?" for _ in types[code.co_argcount :])]
    given = ", ".join(f"{name}: {t}" for name, t in zip(names, types, strict=False))
    return UnsupportedError(
        f"kernel '{kernel.py_func.__name__}': Numba refuses it for {given}: {reason_of(error)}"
    )


def check_is_function(kernel: Any) -> None:
    """Raises UnsupportedError for a generator, of which Numba makes no kernel."""
    if isgeneratorfunction(kernel.py_func):
        raise UnsupportedError(
            f"kernel '{kernel.py_func.__name__}' is a generator (it has a 'yield'): a function that returns "
            "nothing is expected"
        )
