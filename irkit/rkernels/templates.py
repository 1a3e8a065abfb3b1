"""Turn an rKernel template into the text of a function: UPPERCASE names are replaced."""

from __future__ import annotations

import importlib
import inspect
import io
import textwrap
import tokenize
from collections.abc import Callable, Mapping
from functools import cache

from irkit.errors import UnsupportedError
from irkit.rkernels.rkernel import RKernel


def template_source(rkernel: RKernel) -> str:
    """Source text of an rKernel's template."""
    return _source(_function(rkernel))


def function_source(module: str, name: str) -> str:
    """Source text of a function that templates call."""
    return _source(getattr(importlib.import_module(module), name))


def placeholders(rkernel: RKernel) -> frozenset[str]:
    """The UPPERCASE names of an rKernel's template."""
    return _placeholders(_source(_function(rkernel)))


def _function(rkernel: RKernel) -> Callable[..., object]:
    return getattr(importlib.import_module(rkernel.module), rkernel.function)


@cache
def _source(function: Callable[..., object]) -> str:
    return textwrap.dedent(inspect.getsource(function))


@cache
def _placeholders(source: str) -> frozenset[str]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return frozenset(t.string for t in tokens if t.type == tokenize.NAME and t.string.isupper())


def specialise(source: str, name: str, new_name: str, names: Mapping[str, str]) -> str:
    """`source` with function `name` renamed and every placeholder replaced.

    Raises UnsupportedError if a placeholder has no meaning for this rOperator.
    """
    out: list[str] = []
    for before, text, is_name in _pieces(source):
        out.append(before)
        if is_name and text == name:
            text = new_name
        elif is_name and text.isupper():
            if text not in names:
                raise UnsupportedError(f"placeholder {text} in rKernel template '{name}'")
            text = names[text]
        out.append(text)
    return "".join(out)


@cache
def _pieces(source: str) -> tuple[tuple[str, str, bool], ...]:
    """The tokens of a text, each with what stands before it, layout and comments too, and whether it is a
    name. A template is bound for many rOperators."""
    lines = source.splitlines(keepends=True)
    found: list[tuple[str, str, bool]] = []
    row, column = 1, 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
            continue
        (start_row, start_column), (end_row, end_column) = token.start, token.end
        before: list[str] = []
        while row < start_row:
            before.append(lines[row - 1][column:])
            row, column = row + 1, 0
        before.append(lines[row - 1][column:start_column] if row <= len(lines) else "")
        found.append(("".join(before), token.string, token.type == tokenize.NAME))
        row, column = end_row, end_column
        if token.type in (tokenize.NEWLINE, tokenize.NL):
            row, column = end_row + 1, 0
    return tuple(found)
