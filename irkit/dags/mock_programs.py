"""Programs of irkit's on the mock device: what an interpreter makes of their IR."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from irkit.bfloat16 import dtype_of
from irkit.context import IrkitContext
from irkit.dags.programs import ProgramSource, facts_of
from irkit.driver.registry import register_dialects
from irkit.errors import UnsupportedError
from irkit.interp import run_module
from irkit.runtime.artifact import Artifact
from irkit.runtime.variant import Variant
from irkit.schedule.tables import Port


@dataclass(frozen=True, eq=False)
class MockWorkspace:
    """A block of the host's memory, where a run keeps its inputs until it computes."""

    block: np.ndarray[Any, Any]

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Address and bytes."""
        return [(self.block.ctypes.data, self.block.nbytes)]


class MockProgram:
    """A program that takes its inputs, and computes later: whoever uses its workspace in between, or changes
    what it reads before, gives it other values."""

    def __init__(self, artifact: Artifact, inputs: Sequence[Port], outputs: Sequence[Port]) -> None:
        self._artifact = artifact
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)

    @cached_property
    def _module(self) -> ModuleOp:
        context = IrkitContext()
        register_dialects(context)
        return Parser(context, self._artifact.ir["graph"]).parse_module()

    def workspace(self, rows: int) -> MockWorkspace:
        """Room for the inputs."""
        room = sum(_bytes(port, rows) for port in self.inputs)
        return MockWorkspace(np.full(max(room, 1), 0xCD, np.uint8))

    def bind(
        self, workspace: MockWorkspace, addresses: Sequence[int], rows: int
    ) -> Callable[[Any], None]:
        """What puts a run into a stream, as two things to do."""
        count, places = len(self.inputs), _places(self.inputs, rows)

        def take() -> None:
            for port, at, place in zip(self.inputs, addresses, places, strict=False):
                ctypes.memmove(workspace.block.ctypes.data + place, at, _bytes(port, rows))

        def compute() -> None:
            start = workspace.block.ctypes.data
            taken = [_array(p, start + n, rows) for p, n in zip(self.inputs, places, strict=True)]
            weights = {**self._artifact.weights, **self._artifact.graph_weights}
            found = run_module(self._module, weights, [a.copy() for a in taken])
            for port, at, value in zip(self.outputs, addresses[count:], found, strict=True):
                _array(port, at, rows)[...] = value

        def put(append: Callable[[Callable[[], None]], None]) -> None:
            append(take)
            append(compute)

        return put


def _bytes(port: Port, rows: int) -> int:
    return int(np.prod(port.shape_of(rows), dtype=np.int64)) * dtype_of(port.dtype).itemsize


def _places(ports: Sequence[Port], rows: int) -> list[int]:
    sizes = [_bytes(port, rows) for port in ports]
    return [sum(sizes[:n]) for n in range(len(sizes))]


def _array(port: Port, address: int, rows: int) -> np.ndarray[Any, Any]:
    shape, size = port.shape_of(rows), max(_bytes(port, rows), 1)
    raw = memoryview((ctypes.c_uint8 * size).from_address(address))
    return np.ndarray(shape, dtype_of(port.dtype), raw)


def mock_program(source: ProgramSource) -> MockProgram:
    """A program that was compiled for a GPU. Raises UnsupportedError for another."""
    _, program = facts_of(source)
    if program is None:
        raise UnsupportedError("the program was compiled for a CPU: a stream cannot run it")
    artifact = source.artifact if isinstance(source, Variant) else source
    return MockProgram(artifact, program.inputs, program.outputs)
