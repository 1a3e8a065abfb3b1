"""A module as text."""

from __future__ import annotations

import io

from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer


def module_text(module: ModuleOp, generic: bool = False, debuginfo: bool = False) -> str:
    """`module` as text, ending in a newline."""
    stream = io.StringIO()
    Printer(stream, print_generic_format=generic, print_debuginfo=debuginfo).print_op(module)
    return stream.getvalue() + "\n"
