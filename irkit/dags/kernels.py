"""Launches of kernels: Numba's, of which the effects are inferred, and CuPy's, of which C says them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from inspect import CO_VARARGS
from math import prod
from typing import Any, Final, cast
from weakref import WeakKeyDictionary

from irkit.dags.inference.agreement import check_machine_code
from irkit.dags.inference.c_signature import parameters_of
from irkit.dags.inference.memory_values import Root
from irkit.dags.inference.numba_effects import Effects, kernel_effects
from irkit.dags.inference.typed_code import argument_types, machine_code
from irkit.dags.located import Path, arrays_in, contiguous
from irkit.dags.works import ArrayUse, Launch
from irkit.errors import UnsupportedError
from irkit.schedule.host.model import Kind

GRID, BLOCK = (2**31 - 1, 65535, 65535), (1024, 1024, 64)
"""The largest numbers of blocks and threads along each axis."""


def sizes_of(given: Any) -> tuple[Any, ...]:
    """A grid or a block as it is written: a number, or up to three."""
    many = isinstance(given, tuple | list)
    return tuple(cast("list[Any]", given)) if many else (given,)


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
class KernelLaunch(Launch):
    """A kernel with its grid, block and bytes of dynamic shared memory."""

    kernel: Any
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int = 0

    @property
    def kind(self) -> Kind:
        return "kernel"

    def check_sizes(self) -> None:
        """Raises UnsupportedError for a grid or a block that no GPU launches."""
        for what, sizes, most in (("grid", self.grid, GRID), ("block", self.block, BLOCK)):
            fits = len(sizes) <= 3 and all(
                hasattr(s, "__index__") and 0 < s <= m for s, m in zip(sizes, most, strict=False)
            )
            if not fits or (what == "block" and prod(sizes) > BLOCK[0]):
                shown = ", at most 1024 threads" if what == "block" else ""
                raise UnsupportedError(
                    f"kernel '{self.name}': {what} {tuple(sizes)}: expected 1 to 3 whole numbers from 1 to "
                    f"{most}{shown}"
                )


@dataclass(frozen=True)
class NumbaLaunch(KernelLaunch):
    """A Numba CUDA kernel."""

    @property
    def name(self) -> str:
        return str(self.kernel.py_func.__name__)

    def uses(self, check: bool) -> list[ArrayUse]:
        self.check_sizes()
        code = self.kernel.py_func.__code__
        if not code.co_flags & CO_VARARGS and code.co_argcount != len(self.arguments):
            raise UnsupportedError(
                f"kernel '{self.name}' takes {code.co_argcount} arguments, got {len(self.arguments)}"
            )
        effects = numba_effects(self.kernel, argument_types(self.kernel, self.arguments), check)
        names = self.kernel.py_func.__code__.co_varnames
        found: list[ArrayUse] = []
        covered = self._covered(effects)
        for path, array, located in arrays_in(self.arguments):
            root = Root(path[0], path[1:])
            name = ".".join(map(str, (names[path[0]], *path[1:])))
            reads, writes = root in effects.reads, root in effects.writes
            if writes and located.readonly:
                raise UnsupportedError(
                    f"kernel '{self.name}' writes argument {path[0]}, an array that is read-only"
                )
            if reads or writes:
                whole = path in covered and contiguous(located)
                found.append(ArrayUse(name, path, array, located, reads, writes, whole))
        for array in effects.captured.values():
            root = next(r for r in effects.reads | effects.writes if r.path == (id(array),))
            for _, _, located in arrays_in([array]):
                reads, writes = root in effects.reads, root in effects.writes
                found.append(ArrayUse("a global", (), array, located, reads, writes))
        return found

    def _covered(self, effects: Effects) -> set[Path]:
        """Arguments that this launch writes whole."""
        if not effects.covers:
            return set()
        arrays = {path[0]: at for path, _, at in arrays_in(self.arguments) if len(path) == 1}
        grid, block = ((*sizes, 1, 1) for sizes in (self.grid, self.block))
        launched = [grid[axis] * block[axis] for axis in range(3)]
        return {
            (cover.argument,)
            for cover in effects.covers
            if cover.argument in arrays and cover.whole(self.arguments, arrays, launched)
        }

    def start(self, stream: Any) -> None:
        self.kernel[self.grid, self.block, stream, self.shared_bytes](*self.arguments)


@dataclass(frozen=True)
class RawLaunch(KernelLaunch):
    """A CuPy RawKernel."""

    @property
    def name(self) -> str:
        return str(self.kernel.name)

    @cached_property
    def _parameters(self) -> Any:
        options = [str(option) for option in self.kernel.options or ()]
        macros = [o[2:].split("=")[0].strip() for o in options if o.startswith("-D")]
        if self.kernel.code is None:
            raise UnsupportedError(f"RawKernel '{self.name}': it has no source to read")
        return parameters_of(str(self.kernel.code), self.name, macros)

    def uses(self, check: bool) -> list[ArrayUse]:
        self.check_sizes()
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

    def start(self, stream: Any) -> None:
        from importlib import import_module

        cupy: Any = import_module("cupy")
        with cupy.cuda.ExternalStream(stream):
            self.kernel(self.grid, self.block, self.arguments, shared_mem=self.shared_bytes)
