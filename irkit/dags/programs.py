"""A program of irkit's as a task of a stream: started with addresses on the device, and memory of its own.

What it works in beside its arguments, its *workspace*, is one run's at a time: it is one more array that the
task writes, so that the order of two tasks that share one is proved like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from irkit.bfloat16 import dtype_of
from irkit.dags.located import Located, arrays_in, contiguous
from irkit.dags.works import ArrayUse, Launch, called
from irkit.errors import InvalidInputError, UnsupportedError
from irkit.model_info import ModelInfo
from irkit.runtime.artifact import Artifact
from irkit.runtime.batch_border import BatchBorder
from irkit.runtime.cuda.facts import read_facts
from irkit.runtime.input_policy import DEVICE_ALIGNMENT, InputPolicy
from irkit.runtime.program import CompiledProgram
from irkit.runtime.variant import Variant
from irkit.schedule.host.model import Kind
from irkit.schedule.modes import Mode
from irkit.schedule.tables import Port, Program

ProgramSource = Variant | Artifact
"""What a device can load: compiled for a GPU."""
IN_STREAMS = (Mode.PERSISTENT, Mode.PER_WAVE)
"""Modes that take one stream and no library's memory."""


class Workspace(Protocol):
    """Memory that a run of a program works in."""

    @property
    def spans(self) -> Sequence[tuple[int, int]]:
        """Addresses and bytes."""
        ...


class DeviceProgram(Protocol):
    """A program that is loaded on a device."""

    @property
    def inputs(self) -> tuple[Port, ...]:
        """What it takes."""
        ...

    @property
    def outputs(self) -> tuple[Port, ...]:
        """What it writes."""
        ...

    def workspace(self, rows: int) -> Any:
        """Memory of its own for runs of so many rows of the batch. Raises DeviceError where there is none."""
        ...

    def bind(self, workspace: Any, addresses: Sequence[int], rows: int) -> Callable[[Any], None]:
        """What puts a run on inputs, then outputs, at these addresses into a stream. Only the call itself
        may be recorded into a graph. Raises DeviceError."""
        ...


def source_of(function: Any, inputs: Sequence[Any]) -> ProgramSource | None:
    """What a device could load of something that is called with `inputs`; None for what is no program."""
    if isinstance(function, CompiledProgram):
        function = function.variant(inputs)
    return function if isinstance(function, (Variant, Artifact)) else None


def facts_of(source: ProgramSource) -> tuple[ModelInfo, Program | None]:
    """What is known of a program; no tables of one that was not compiled for a GPU."""
    artifact = source.artifact if isinstance(source, Variant) else source
    program = read_facts(artifact.source)[0] if artifact.target == "cuda" else None
    return ModelInfo.from_json(artifact.info), program


def why_not_in_a_stream(source: ProgramSource) -> str | None:
    """Why a program cannot be a task of a stream; None if it can."""
    info, program = facts_of(source)
    if program is None:
        return "it was compiled for a CPU"
    if program.states:
        return "it keeps state from run to run"
    if not set(program.modes) & set(IN_STREAMS):
        return f"it is proved for none of {', '.join(IN_STREAMS)}"
    if BatchBorder(info, program.inputs, program.outputs).moves:
        return "its batch is not the leading dimension"
    policy = InputPolicy(program.inputs, info)
    if info.checks or any(policy.restricts(n) for n in range(len(program.inputs))):
        return "it looks at its arrays' values"
    return None


@dataclass(frozen=True)
class ProgramLaunch(Launch):
    """A program of irkit's in a stream; `arguments` are its inputs, then the arrays that it writes."""

    program: DeviceProgram
    workspace: Any
    rows: int

    @property
    def name(self) -> str:
        return "program"

    @property
    def kind(self) -> Kind:
        return "program"

    def uses(self, check: bool) -> list[ArrayUse]:
        inputs = len(self.program.inputs)
        found = [
            ArrayUse(called(path), path, array, at, path[0] < inputs, path[0] >= inputs)
            for path, array, at in arrays_in(self.arguments)
        ]
        for use in found:
            if use.writes and use.located.readonly:
                raise UnsupportedError(f"the program writes {use.name}, an array that is read-only")
        _check_apart(found)
        return [*found, *(_worked_in(*span) for span in self.workspace.spans)]

    @cached_property
    def _bound(self) -> Callable[[Any], None]:
        addresses = [located.address for _, _, located in arrays_in(self.arguments)]
        return self.program.bind(self.workspace, addresses, self.rows)

    def prepare(self) -> None:
        _ = self._bound

    def start(self, stream: Any) -> None:
        self._bound(stream)


def rows_of(program: DeviceProgram, arguments: Sequence[Any]) -> int:
    """The batch that arrays make, inputs and then outputs, once they are found to be what the program
    takes. Raises InvalidInputError, with the array that is not."""
    ports = [*program.inputs, *program.outputs]
    arrays = [(path, at) for path, _, at in arrays_in(arguments)]
    if [path for path, _ in arrays] != [(n,) for n in range(len(ports))]:
        raise InvalidInputError(
            f"the program takes {len(program.inputs)} arrays and writes {len(program.outputs)}, "
            f"got {len(arguments)} arguments, {len(arrays)} of them arrays"
        )
    rows: int | None = None
    for number, (port, (_, at)) in enumerate(zip(ports, arrays, strict=True)):
        side = "input" if number < len(program.inputs) else "output"
        if rows is None and port.shape[:1] == (-1,) and at.shape:
            rows = at.shape[0]
        _check_port(f"{side} '{port.name}'", port, at, rows)
    return 1 if rows is None else rows


def _check_port(name: str, port: Port, at: Located, rows: int | None) -> None:
    shape = tuple(rows if size == -1 else size for size in port.shape)
    wanted = dtype_of(port.dtype)
    if at.dtype != wanted or at.shape != shape:
        raise InvalidInputError(
            f"{name}: expected {wanted} of shape {shape}, got {at.dtype} of shape {at.shape}"
        )
    if not contiguous(at):
        raise InvalidInputError(f"{name}: expected a C-contiguous array")
    # Copies of host arrays lie where the host has them, up to the start of the allocation.
    start = at.address if at.space == "device" else at.address - at.root[0]
    if start % DEVICE_ALIGNMENT:
        raise InvalidInputError(
            f"{name}: expected an address that is a multiple of {DEVICE_ALIGNMENT}, as this view has not"
        )


def _check_apart(found: Sequence[ArrayUse]) -> None:
    """Kernels write outputs while others still read: what is written shares no byte with another array."""
    spans = [(use, use.located.region().hull) for use in found]
    for use, (low, high) in spans:
        for other, (start, end) in spans if use.writes else ():
            same_space = use.located.space == other.located.space
            if other is not use and same_space and max(low, start) < min(high, end):
                raise InvalidInputError(
                    f"the program writes {use.name}, which shares memory with {other.name}"
                )


def _worked_in(address: int, nbytes: int) -> ArrayUse:
    located = Located(
        "device", address, (nbytes,), (1,), dtype_of("uint8"), False, (address, address + nbytes)
    )
    return ArrayUse("workspace", (), None, located, False, True)
