"""Read a module with its weights: what every tool starts with."""

from __future__ import annotations

from typing import IO

from xdsl.dialects.builtin import ModuleOp

from irkit.context import IrkitContext
from irkit.driver.files.context import make_context
from irkit.driver.files.model_files import read_text
from irkit.driver.files.parsing import parse_module
from irkit.driver.instruments.reproducer import Reproducer
from irkit.driver.tools.error_handler import ErrorHandler
from irkit.driver.verification.verifier import check_module


def load_module(path: str, stdin: IO[str], handler: ErrorHandler) -> tuple[IrkitContext, ModuleOp]:
    """The verified module in file `path` (`-` is `stdin`) and its context. Raises UserError."""
    text, name = read_text(path, stdin)
    handler.input_name, handler.input_text = path, text
    handler.sources.add(name, text)
    handler.reproducer = Reproducer(text, name, lambda: make_context(path))
    ctx = make_context(path)
    module = parse_module(ctx, text, name)
    check_module(module)
    return ctx, module
