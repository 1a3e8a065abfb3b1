"""Print a module and read it again, in custom and in generic form: it must come back the same."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from irkit.driver.diagnostics.diagnostic import BrokenPassError, UserError, note
from irkit.driver.files.parsing import parse_module
from irkit.driver.files.printing import module_text
from irkit.driver.instruments.timer import Timer


class RoundtripChecker:
    """The instrument behind `--verify-roundtrip`: what each pass leaves can be printed and read again."""

    def __init__(self, module: ModuleOp, context: Callable[[], Context], timer: Timer) -> None:
        self._context = context
        self._timer = timer
        with timer("verify round trip"):
            check_roundtrip(module, context)

    def before(self, module: ModuleOp, module_pass: ModulePass) -> None:
        """What was there before has been checked."""

    def after(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """Raises BrokenPassError if the module does not come back as it is."""
        try:
            with self._timer("verify round trip"):
                check_roundtrip(module, self._context)
        except UserError as error:
            blame = f"pass '{module_pass.name}' left IR that does not survive being printed"
            raise BrokenPassError.of(error, blame) from None

    def failed(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """There is nothing to check."""


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
        # A NaN is not equal to itself, but printed alike; the order of properties means nothing.
        same = module.is_structurally_equivalent(again)
        if not same and module_text(again, generic=True) != module_text(module, generic=True):
            raise UserError(f"the {form} form reads back as a different module")
