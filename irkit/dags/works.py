"""What a DAG does: launches, which know what they do to which array, and copies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from irkit.dags.located import Located, Path
from irkit.schedule.host.model import Kind


@dataclass(frozen=True)
class ArrayUse:
    """An array of a launch: the parameter's name, where it stands among the arguments, where it is,
    and what is done to it. `covers`: every element of it is written, and none is read before."""

    name: str
    path: Path
    array: Any
    located: Located
    reads: bool
    writes: bool
    covers: bool = False


def called(path: Path) -> str:
    """What an argument without a name is called."""
    return "argument " + ".".join(map(str, path))


@dataclass(frozen=True)
class Launch(ABC):
    """Something to start. `arguments` are the user's; in a step, those that it is started with."""

    arguments: tuple[Any, ...]

    @property
    @abstractmethod
    def name(self) -> str:
        """What errors and pictures call it."""

    @property
    @abstractmethod
    def kind(self) -> Kind:
        """Of which kind the task is."""

    @abstractmethod
    def uses(self, check: bool) -> list[ArrayUse]:
        """Every array that it may touch. `check` holds what is inferred against machine code.

        Raises UnsupportedError where that cannot be told.
        """

    @abstractmethod
    def start(self, stream: Any) -> None:
        """Do it: on a stream, or here and now where the host does it."""

    def at(self, arguments: Sequence[Any]) -> Self:
        """The same of other arguments."""
        return replace(self, arguments=tuple(arguments))

    def prepare(self) -> None:
        """What has to be done once, before it is first started, and not while a graph is recorded."""
        return


@dataclass(frozen=True)
class Copy:
    """A copy of `nbytes` from address `source` to `target`, between the host and the device: the device
    does it, nothing is launched. `of` names the array, `keeps` are the arrays that have the bytes."""

    target: int
    source: int
    nbytes: int
    kind: Kind
    of: str
    keeps: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        """What errors and pictures call it."""
        return f"{self.kind.replace('_', ' ')}: {self.of}"


Work = Launch | Copy
