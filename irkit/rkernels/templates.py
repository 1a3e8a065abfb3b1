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
    replaced: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        text = token.string
        if token.type == tokenize.NAME and text == name:
            text = new_name
        elif token.type == tokenize.NAME and text.isupper():
            if text not in names:
                raise UnsupportedError(f"placeholder {text} in rKernel template '{name}'")
            text = names[text]
        replaced.append((token.type, text))
    return _join(source, replaced)


def _join(source: str, replaced: list[tuple[int, str]]) -> str:
    """Put replaced tokens back where they stood, so that layout and comments survive."""
    lines = source.splitlines(keepends=True)
    out: list[str] = []
    row, column = 1, 0
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    for token, (kind, text) in zip(tokens, replaced, strict=True):
        if kind in (tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
            continue
        (start_row, start_column), (end_row, end_column) = token.start, token.end
        while row < start_row:
            out.append(lines[row - 1][column:])
            row, column = row + 1, 0
        out.append(lines[row - 1][column:start_column] if row <= len(lines) else "")
        out.append(text)
        row, column = end_row, end_column
        if kind in (tokenize.NEWLINE, tokenize.NL):
            row, column = end_row + 1, 0
    return "".join(out)
