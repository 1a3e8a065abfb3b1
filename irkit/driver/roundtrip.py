"""Print a module and read it again, in custom and in generic form: it must come back the same."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from irkit.driver.diagnostics import UserError, note
from irkit.driver.instruments import module_text
from irkit.driver.parsing import parse_module


def check_roundtrip(module: ModuleOp, context: Callable[[], Context]) -> None:
    """Raise UserError if `module` does not survive being printed and re-read.

    `context` makes a fresh context, so that nothing is remembered from the first reading.
    """
    for form, generic in (("custom", False), ("generic", True)):
        text = module_text(module, generic=generic)
        try:
            again = parse_module(context(), text, f"<{form} form>")
        except UserError as error:
            found = error.diagnostic
            raise UserError(
                f"the {form} form does not parse", notes=[note(found.message, found.place)]
            ) from None
        if module_text(again, generic=True) != module_text(module, generic=True):
            raise UserError(f"the {form} form reads back as a different module")
