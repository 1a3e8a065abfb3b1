"""What is launched, told apart by kind: what it does to which array, and how it is started."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final
from weakref import WeakKeyDictionary

from irkit.dags.inference.agreement import check_machine_code
from irkit.dags.inference.c_signature import parameters_of
from irkit.dags.inference.memory_values import Root
from irkit.dags.inference.numba_effects import Effects, kernel_effects
from irkit.dags.inference.typed_code import argument_types, machine_code
from irkit.dags.located import Located, Path, arrays_in
from irkit.errors import UnsupportedError
from irkit.schedule.host.model import Kind


@dataclass(frozen=True)
class ArrayUse:
    """An array of a launch: the parameter's name, where it stands among the arguments, where it is,
    and what is done to it."""

    name: str
    path: Path
    array: Any
    located: Located
    reads: bool
    writes: bool


def called(path: Path) -> str:
    """What an argument without a name is called."""
    return "argument " + ".".join(map(str, path))


@dataclass(frozen=True)
class Work(ABC):
    """A launch. `arguments` are as the user gave them."""

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
    def start(self, arguments: Sequence[Any], stream: Any) -> None:
        """Do it with these arguments: on a stream, or here and now where the host does it."""


_EFFECTS: Final[WeakKeyDictionary[Any, dict[Any, Effects]]] = WeakKeyDictionary()
"""What was inferred, by kernel, types of its arguments, and whether machine code was looked at."""


def numba_effects(kernel: Any, types: tuple[Any, ...], check: bool) -> Effects:
    """What a Numba kernel does to arguments of these types, inferred once."""
    known = _EFFECTS.setdefault(kernel, {})
    if (types, check) not in known:
        effects = kernel_effects(kernel, types)
        if check:
            name = kernel.py_func.__name__
            check_machine_code(name, types, effects, machine_code(kernel, types))
        known[types, check] = effects
    return known[types, check]


@dataclass(frozen=True)
class NumbaLaunch(Work):
    """A Numba CUDA kernel with its grid, block and bytes of dynamic shared memory."""

    kernel: Any
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int = 0

    @property
    def name(self) -> str:
        return str(self.kernel.py_func.__name__)

    @property
    def kind(self) -> Kind:
        return "kernel"

    def uses(self, check: bool) -> list[ArrayUse]:
        effects = numba_effects(self.kernel, argument_types(self.kernel, self.arguments), check)
        names = self.kernel.py_func.__code__.co_varnames
        found: list[ArrayUse] = []
        for path, array, located in arrays_in(self.arguments):
            root = Root(path[0], path[1:])
            name = ".".join(map(str, (names[path[0]], *path[1:])))
            reads, writes = root in effects.reads, root in effects.writes
            if writes and located.readonly:
                raise UnsupportedError(
                    f"kernel '{self.name}' writes argument {path[0]}, an array that is read-only"
                )
            if reads or writes:
                found.append(ArrayUse(name, path, array, located, reads, writes))
        for array in effects.captured.values():
            root = next(r for r in effects.reads | effects.writes if r.path == (id(array),))
            for _, _, located in arrays_in([array]):
                reads, writes = root in effects.reads, root in effects.writes
                found.append(ArrayUse("a global", (), array, located, reads, writes))
        return found

    def start(self, arguments: Sequence[Any], stream: Any) -> None:
        self.kernel[self.grid, self.block, stream, self.shared_bytes](*arguments)


@dataclass(frozen=True)
class RawLaunch(Work):
    """A CuPy RawKernel with its grid, block and bytes of dynamic shared memory."""

    kernel: Any
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int = 0

    @property
    def name(self) -> str:
        return str(self.kernel.name)

    @property
    def kind(self) -> Kind:
        return "kernel"

    @cached_property
    def _parameters(self) -> Any:
        options = [str(option) for option in self.kernel.options or ()]
        macros = [o[2:].split("=")[0].strip() for o in options if o.startswith("-D")]
        if self.kernel.code is None:
            raise UnsupportedError(f"RawKernel '{self.name}': it has no source to read")
        return parameters_of(str(self.kernel.code), self.name, macros)

    def uses(self, check: bool) -> list[ArrayUse]:
        parameters = self._parameters
        if len(parameters) != len(self.arguments):
            raise UnsupportedError(
                f"RawKernel '{self.name}' takes {len(parameters)} arguments, got {len(self.arguments)}"
            )
        found: list[ArrayUse] = []
        for path, array, located in arrays_in(self.arguments):
            parameter = parameters[path[0]]
            if not parameter.pointer or len(path) > 1:
                raise UnsupportedError(
                    f"RawKernel '{self.name}', parameter '{parameter.name}': it is given an array, and is no "
                    "pointer that can be read as one"
                )
            found.append(ArrayUse(parameter.name, path, array, located, True, parameter.writes))
        return found

    def start(self, arguments: Sequence[Any], stream: Any) -> None:
        from importlib import import_module

        cupy: Any = import_module("cupy")
        with cupy.cuda.ExternalStream(stream):
            self.kernel(self.grid, self.block, tuple(arguments), shared_mem=self.shared_bytes)


@dataclass(frozen=True)
class HostCall(Work):
    """A Python function that the host calls. It may read and write all its arrays, but for read-only
    ones and those that are named in `reads`, by position."""

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
        found = [
            ArrayUse(called(p), p, a, at, True, not at.readonly)
            for p, a, at in arrays_in(self.arguments)
        ]
        for use in found:
            if use.located.space == "device":
                raise UnsupportedError(
                    f"function '{self.name}', argument {use.path[0]}: the host is given an array on the "
                    "device; read it first"
                )
        return found

    def start(self, arguments: Sequence[Any], stream: Any) -> None:
        self.function(*arguments, **self.keywords)


@dataclass(frozen=True)
class ProgramCall(Work):
    """A program of irkit's on arrays; `arguments` are its inputs, then the arrays that its outputs are
    written to."""

    program: Any
    inputs: int

    @property
    def name(self) -> str:
        return "program"

    @property
    def kind(self) -> Kind:
        return "program"

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

    def start(self, arguments: Sequence[Any], stream: Any) -> None:
        found = self.program.run(list(arguments[: self.inputs]))
        targets = arguments[self.inputs :]
        if len(found) != len(targets):
            raise UnsupportedError(
                f"the program has {len(found)} outputs, and {len(targets)} arrays were given for them"
            )
        for target, output in zip(targets, found, strict=True):
            target[...] = output


@dataclass(frozen=True)
class Copy(Work):
    """A copy of bytes between the host and the device: `arguments` are the target's and the source's
    address, and the number of bytes. `keeps` are the arrays that have them."""

    to: Kind
    of: str
    keeps: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.to.replace('_', ' ')}: {self.of}"

    @property
    def kind(self) -> Kind:
        return self.to

    def uses(self, check: bool) -> list[ArrayUse]:
        return []

    def start(self, arguments: Sequence[Any], stream: Any) -> None:
        """Devices copy themselves."""
        raise NotImplementedError
