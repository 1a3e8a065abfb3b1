"""Hold a pass to the levels that it states: `requires`, any of these, and `produces`."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from irkit.dialects.levels import LEVELS, fault
from irkit.driver.diagnostics.diagnostic import BrokenPassError, UserError, note
from irkit.driver.diagnostics.locations import place_of
from irkit.driver.registry import makers_of
from irkit.interp import level_of


def check_required(module: ModuleOp, module_pass: ModulePass, place: str | None = None) -> None:
    """Raise UserError if `module` is at none of the levels that a pass takes, if it states any.

    `place` is where an error is shown whose op has no place.
    """
    levels: tuple[str, ...] = getattr(module_pass, "requires", ())
    if not levels:
        return
    faults = {level: fault(module, LEVELS[level]) for level in levels}
    # Of several levels, the one that the module was meant to be at.
    level = next((name for name in levels if name == level_of(module)), levels[0])
    if None in faults.values() or (found := faults[level]) is None:
        return
    # Nothing but a program is made one of the first level.
    made = level != "graph" or level_of(module) == "program"
    maker = next(iter(makers_of(level)), None) if made else None
    hint = [] if maker is None else [note(f"'{maker}' makes a module of that level")]
    what = f"'{found.op.name}' {found.text}"
    message = f"pass '{module_pass.name}' requires the {level} level, but {what}"
    raise UserError(message, place_of(found.op) or place, hint)


def check_level(module: ModuleOp, level: str) -> None:
    """Raise UserError if `module` is not at `level`."""
    if (found := fault(module, LEVELS[level])) is not None:
        message = f"expected the {level} level, but '{found.op.name}' {found.text}"
        raise UserError(message, place_of(found.op))


def check_produced(module: ModuleOp, module_pass: ModulePass, place: str | None = None) -> None:
    """Raise BrokenPassError if `module` is not at the level that a pass must leave, if it states one."""
    level: str | None = getattr(module_pass, "produces", None)
    if level is None or (found := fault(module, LEVELS[level])) is None:
        return
    what = f"'{found.op.name}' {found.text}"
    message = f"pass '{module_pass.name}' must produce the {level} level, but {what}"
    raise BrokenPassError(message, place_of(found.op) or place)
