"""What the host does itself: Python functions, and programs of irkit's that it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from irkit.dags.inference.host_code import host_effects
from irkit.dags.inference.memory_values import Root
from irkit.dags.located import arrays_in
from irkit.dags.reached import arrays_reached
from irkit.dags.works import ArrayUse, Launch, called
from irkit.errors import UnsupportedError
from irkit.schedule.host.model import Kind


@dataclass(frozen=True)
class HostCall(Launch):
    """A Python function that the host calls. Of one that Numba compiles, what it reads and writes is
    inferred from its typed code; another may read and write all its arrays, but for those that are
    read-only."""

    function: Callable[..., Any]
    keywords: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def name(self) -> str:
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    @property
    def kind(self) -> Kind:
        return "function"

    def uses(self, check: bool) -> list[ArrayUse]:
        if list(arrays_in(list(self.keywords.values()))):
            raise UnsupportedError(
                f"function '{self.name}': arrays are given by position, not by name"
            )
        effects = host_effects(self.function, self.arguments) if not self.keywords else None
        found: list[ArrayUse] = []
        for path, array, at in arrays_in(self.arguments):
            root = Root(path[0], path[1:])
            reads = effects is None or root in effects.reads
            writes = not at.readonly if effects is None else root in effects.writes
            if reads or writes:
                found.append(ArrayUse(called(path), path, array, at, reads, writes))
        if effects is None:
            known = {id(use.array) for use in found}
            found += [
                ArrayUse("an array that it comes to", (), array, at, True, not at.readonly)
                for array, at in arrays_reached(self.name, self.function, self.arguments)
                if id(array) not in known
            ]
        for use in found:
            if use.located.space == "device":
                raise UnsupportedError(
                    f"function '{self.name}', argument {use.path[0]}: the host is given an array on the "
                    "device; read it first"
                )
        return found

    def start(self, stream: Any) -> None:
        self.function(*self.arguments, **self.keywords)


@dataclass(frozen=True)
class HostProgram(Launch):
    """A program of irkit's that the host runs; `arguments` are its inputs, then the arrays that its
    outputs are written to."""

    program: Any
    inputs: int

    @property
    def name(self) -> str:
        return "program"

    @property
    def kind(self) -> Kind:
        return "function"

    def uses(self, check: bool) -> list[ArrayUse]:
        found = [
            ArrayUse(called(path), path, array, at, path[0] < self.inputs, path[0] >= self.inputs)
            for path, array, at in arrays_in(self.arguments)
        ]
        for use in found:
            if use.writes and (use.located.space == "device" or use.located.readonly):
                raise UnsupportedError(
                    "the program's outputs go to host arrays that may be written"
                )
        return found

    def start(self, stream: Any) -> None:
        found = self.program.run(list(self.arguments[: self.inputs]))
        targets = self.arguments[self.inputs :]
        if len(found) != len(targets):
            raise UnsupportedError(
                f"the program has {len(found)} outputs, and {len(targets)} arrays were given for them"
            )
        for target, output in zip(targets, found, strict=True):
            target[...] = output
