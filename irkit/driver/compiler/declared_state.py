"""The state that `irkit.compile` is asked for, written on the model's `@main`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irkit.dialects.state import StatePair, set_state, state_of
from irkit.driver.diagnostics.diagnostic import did_you_mean
from irkit.driver.execution.entry_point import entry_point_of, main_function_of
from irkit.errors import InvalidInputError, UnsupportedError
from irkit.frontends.module import ImportedModel


def has_state(imported: ImportedModel) -> bool:
    """Whether the module says itself that something of it is state."""
    return bool(state_of(main_function_of(imported.module)))


def declare_state(imported: ImportedModel, state: Mapping[str, str] | None) -> None:
    """Say in the module that inputs, by name, are state, and which outputs are their next values.

    Raises InvalidInputError for names that are none, UnsupportedError for a module that has state of its own,
    and what cannot be state: InvalidModelError, UnsupportedError.
    """
    if not state:
        return
    main = main_function_of(imported.module)
    if state_of(main):
        raise UnsupportedError("state= for a module that says itself what its state is")
    entry = entry_point_of(imported.module)
    pairs = [
        StatePair(
            _number("input", name, entry.input_names), _number("output", output, entry.output_names)
        )
        for name, output in state.items()
    ]
    set_state(main, pairs)


def _number(kind: str, name: str, names: Sequence[str]) -> int:
    if name not in names:
        hint = did_you_mean(name, names)
        raise InvalidInputError(
            f"state: there is no {kind} '{name}'{hint} (there is {', '.join(names)})"
        )
    return names.index(name)
