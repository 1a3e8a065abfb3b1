"""What is fitted may be of another version of scikit-learn, or changed since: one error names the step."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from xdsl.utils.exceptions import VerifyException

from irkit.errors import InvalidModelError, IrkitError
from irkit.frontends.sklearn.importer import kind_of

# What NumPy, the graph's ops and importers raise on attributes that are missing or do not fit together.
_MALFORMED = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    VerifyException,
)


@contextmanager
def reading(step: Any) -> Generator[None]:
    """Raises InvalidModelError where what was fitted of a step cannot be read."""
    try:
        yield
    except IrkitError:
        raise
    except _MALFORMED as error:
        raise InvalidModelError(
            f"{kind_of(step)} has fitted attributes that do not fit together, or not this version of "
            f"scikit-learn: {_said(error)}"
        ) from error


def _said(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    # Of a key the text is the key alone.
    kind = f"{type(error).__name__}: " if isinstance(error, KeyError) or not lines else ""
    return kind + (lines[0] if lines else "")
