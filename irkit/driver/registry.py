"""Which dialects and passes the tools know: irkit's own and xDSL's, none imported before it is used."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from irkit.driver.diagnostics.diagnostic import UserError, did_you_mean

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.ir import Dialect
    from xdsl.passes import ModulePass

PassFactory = Callable[[], "type[ModulePass]"]

IRKIT_DIALECTS: dict[str, tuple[str, str]] = {
    "program": ("irkit.dialects.program", "Program"),
    "graph": ("irkit.dialects.graph", "Graph"),
    "dist": ("irkit.dialects.dist", "Dist"),
    "te": ("irkit.dialects.te", "Te"),
    "loop": ("irkit.dialects.loop", "Loop"),
    "task": ("irkit.dialects.task", "Task"),
    "host": ("irkit.dialects.host", "Host"),
}
"""Name → (module, attribute)."""

COMPLETED_DIALECTS: dict[str, Callable[[], Dialect]] = {
    "arith": lambda: importlib.import_module("irkit.dialects.float_remainder").Arith,
    "bufferization": lambda: importlib.import_module("irkit.dialects.bufferization").Bufferization,
}
"""Upstream dialects with ops of upstream's that xDSL lacks, or where xDSL refuses what upstream takes."""

ADDED_DIALECTS: dict[str, Callable[[], Dialect]] = {}
"""Dialects that `irkit.extending` has added."""

ADDED: dict[str, tuple[object, ...]] = {}
"""Everything that `irkit.extending` has added, by kind and name: the key of the disk cache has it all."""


def irkit_dialects() -> dict[str, Callable[[], Dialect]]:
    """Factories of irkit's dialects, by name."""

    def factory(module: str, attribute: str) -> Callable[[], Dialect]:
        return lambda: getattr(importlib.import_module(module), attribute)

    return {name: factory(*where) for name, where in IRKIT_DIALECTS.items()}


def all_dialects() -> dict[str, Callable[[], Dialect]]:
    """Factories of every dialect, by name; irkit's own win."""
    from xdsl.dialects import get_all_dialects

    return get_all_dialects() | COMPLETED_DIALECTS | irkit_dialects() | ADDED_DIALECTS


def irkit_passes() -> dict[str, PassFactory]:
    """Factories of irkit's passes, by name."""
    from irkit.passes import PASSES

    return dict(PASSES)


def all_passes(extra: Mapping[str, PassFactory] | None = None) -> dict[str, PassFactory]:
    """Factories of every pass, by name; irkit's own win over xDSL's, `extra` over both."""
    from xdsl.transforms import get_all_passes

    return get_all_passes() | irkit_passes() | dict(extra or {})


def register_dialects(ctx: Context) -> None:
    """Make every dialect known to `ctx`; each is loaded at its first use."""
    for name, factory in all_dialects().items():
        ctx.register_dialect(name, factory)


def find_pass(name: str, passes: Mapping[str, PassFactory]) -> type[ModulePass]:
    """The pass called `name`. Raises UserError with the nearest name, or where all are."""
    if name not in passes:
        hint = did_you_mean(name, passes) or "; irkit-opt --list-passes has all there are"
        raise UserError(f"unknown pass '{name}'{hint}")
    return passes[name]()


def makers_of(level: str) -> list[str]:
    """irkit's passes that lead to `level` from another one."""
    passes = {name: factory() for name, factory in irkit_passes().items()}
    return [
        name
        for name, found in passes.items()
        if getattr(found, "produces", None) == level
        and level not in getattr(found, "requires", ())[:1]
    ]
