"""Diagnostics as the exceptions of `irkit.errors`, for those who call irkit from Python.

The tools show the same diagnostics with exit code 1 (the user's) or 2 (irkit's).
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager

from irkit.driver.diagnostics.diagnostic import BrokenPassError, Diagnostic, Place, UserError
from irkit.errors import InternalError, InvalidModelError, IrkitError, UnsupportedError


@contextmanager
def library_errors(kind: type[IrkitError] = UnsupportedError) -> Generator[None]:
    """What is raised inside as a diagnostic leaves as an IrkitError.

    A pass that leaves wrong IR is an InternalError; an IrkitError that a pass raised stays what it is;
    anything else is of `kind`.
    """
    try:
        yield
    except BrokenPassError as error:
        raise InternalError(_text(error.diagnostic)) from error
    except UserError as error:
        if isinstance(error.__cause__, IrkitError):
            raise error.__cause__ from None
        raise kind(_text(error.diagnostic)) from None


def invalid_models() -> AbstractContextManager[None]:
    """As `library_errors`, for what reads and checks a model."""
    return library_errors(InvalidModelError)


def _text(diagnostic: Diagnostic) -> str:
    """A diagnostic and its notes, each with its place."""
    place = diagnostic.place
    head = f"{place}: " if isinstance(place, Place) else ""
    notes = "".join(f"\n  {_text(note)}" for note in diagnostic.notes)
    return f"{head}{diagnostic.message}{notes}"
