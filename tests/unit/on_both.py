"""Programs on the CPU and a device that is none, whose functions the interpreter runs: what is copied is
counted."""

from __future__ import annotations

import ctypes
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from irkit.context import IrkitContext
from irkit.dags.host_programs import DeviceFunction
from irkit.dags.mock import MockDevice
from irkit.dialects.program.builder import BuiltProgram
from irkit.dialects.program.check import written_arguments
from irkit.dialects.program.spaces import is_of_device
from irkit.dialects.program.views import array_type
from irkit.dialects.types import numpy_dtype
from irkit.errors import DeviceError
from irkit.interp.program import Execution
from irkit.passes.host.actions import HostProgram, Move
from irkit.passes.placement.planning import Planner, placed
from irkit.passes.program.form_regions import FormRegions
from irkit.passes.program.insert_transfers import InsertTransfers
from irkit.schedule.devices import device
from irkit.schedule.links import link_to
from tools.fuzz.effects.attempt import drawn


class Space:
    """Memory that a run works in."""

    def __init__(self, nbytes: int) -> None:
        self.block = np.full(max(nbytes, 1), 0xCD, np.uint8)

    @property
    def spans(self) -> list[tuple[int, int]]:
        return [(self.block.ctypes.data, self.block.nbytes)]


class Source:
    """A function of the device: it takes all its arguments into its workspace, computes there, and writes
    what it has changed, as three things to do."""

    def __init__(self, function: FuncOp, weights: Any) -> None:
        self.function, self.weights = function, weights
        self.arguments = list(function.body.block.args)
        self.writes = tuple(written_arguments(function))
        self.reads = tuple(range(len(self.arguments)))
        self.inputs = self.outputs = ()

    def _sizes(self) -> list[int]:
        return [_nbytes(a) for a in self.arguments]

    def workspace(self, rows: int) -> Space:
        return Space(sum(self._sizes()))

    def bind(self, workspace: Space, addresses: Sequence[int], rows: int) -> Callable[[Any], None]:
        sizes, base = self._sizes(), workspace.block.ctypes.data
        places = [base + sum(sizes[:n]) for n in range(len(sizes))]
        count = len(self.reads)

        def take() -> None:
            for number, address in zip(self.reads, addresses[:count], strict=True):
                ctypes.memmove(places[number], address, sizes[number])

        def compute() -> None:
            arrays = [_array(a, at).copy() for a, at in zip(self.arguments, places, strict=True)]
            with np.errstate(all="ignore"):
                Execution(self.function, self.weights, {}).run(arrays)
            for number in self.writes:
                _array(self.arguments[number], places[number])[...] = arrays[number]

        def give() -> None:
            for number, address in zip(self.writes, addresses[count:], strict=True):
                ctypes.memmove(address, places[number], sizes[number])

        def put(append: Any) -> None:
            for step in (take, compute, give):
                append(step)

        return put


def _nbytes(argument: Any) -> int:
    t = array_type(argument)
    return int(np.prod(t.get_shape())) * numpy_dtype(t.element_type).itemsize


def _array(argument: Any, address: int) -> Any:
    t = array_type(argument)
    raw = memoryview((ctypes.c_uint8 * max(_nbytes(argument), 1)).from_address(address))
    return np.ndarray(t.get_shape(), numpy_dtype(t.element_type), raw)


class Counting(MockDevice):
    """The mock, which counts what it copies; it may fail."""

    fails_after: int | None = None

    def __init__(self, seed: int = 0, memory: int = 1 << 30) -> None:
        super().__init__(seed, memory=memory)
        self.copies = Counter[str]()
        self.allocated = 0

    def allocate(self, nbytes: int) -> int:
        self.allocated += 1
        return super().allocate(nbytes)

    def program(self, source: Any) -> Any:
        return source if isinstance(source, Source) else super().program(source)

    def copy(self, target: int, source: int, nbytes: int, stream: Any) -> None:
        if self.fails_after is not None:
            self.fails_after -= 1
            if self.fails_after < 0:
                raise DeviceError("the device is lost")
        there = any(m <= target < m + b.nbytes for m, b in self._memory.items())
        way = "to_device" if there else "to_host"
        self.copies[way] += 1
        self.copies[f"bytes {way}"] += nbytes
        super().copy(target, source, nbytes, stream)


def planned_copies(program: HostProgram) -> Counter[str]:
    """What the tasks of a program copy."""
    found = Counter[str]()
    for task, action in zip(program.tasks, program.actions, strict=True):
        if task.kind in ("to_device", "to_host"):
            assert isinstance(action, Move)
            low, high = action.source.hull
            found[task.kind] += 1
            found[f"bytes {task.kind}"] += high - low
    return found


def on_drawn_devices(built: BuiltProgram, seed: int) -> ModuleOp:
    """The program with transfers, its parts on devices that are drawn."""
    rng = random.Random(seed)
    cut, context = built.module.clone(), IrkitContext(weights=built.weights)
    main = next(f for f in cut.ops if isinstance(f, FuncOp))
    FormRegions().apply(context, cut)
    cpu, gpu = device("cpu2"), device("h200")
    placed(cut, main, Planner(cpu, gpu, link_to(gpu), assign=lambda c: drawn(c, rng)))
    InsertTransfers().apply(context, cut)
    return cut


def by_interpreter(function: FuncOp, weights: Any, options: Any = None) -> DeviceFunction:
    """A function of the device, for the interpreter."""
    source = Source(function, weights)
    return DeviceFunction(cast(Any, source), source.reads, source.writes)


def functions_of(module: ModuleOp, weights: Any) -> dict[str, Any]:
    """The functions of a program, on either side."""
    found: dict[str, Any] = {}
    for function in module.ops:
        if not isinstance(function, FuncOp) or function.sym_name.data == "main":
            continue
        if is_of_device(function):
            found[function.sym_name.data] = by_interpreter(function, weights)
        else:
            found[function.sym_name.data] = _here(function, weights)
    return found


def _here(function: FuncOp, weights: Any) -> Callable[..., None]:
    def run(*arrays: Any) -> None:
        with np.errstate(all="ignore"):
            Execution(function, weights, {}).run(arrays)

    return run
