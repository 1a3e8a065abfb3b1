"""What a program keeps from run to run, as its user sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from irkit.errors import ArtifactError, InvalidInputError
from irkit.model_info import ModelInfo
from irkit.runtime.input_policy import InputPolicy
from irkit.runtime.program_files import write_atomically
from irkit.runtime.state_memory import StateMemory
from irkit.weights import Array


class ProgramState(Mapping[str, Array]):
    """The state of a program: name of the input that it stands for → array.

    Reading gives a copy on the host; setting takes what the program would take as that input. Runs, reading
    and setting exclude each other. Programs without state have an empty one.

    Raises KeyError for a name that is none, InvalidInputError for an array that does not fit, DeviceError if
    the state was lost.
    """

    def __init__(
        self,
        memory: StateMemory | None,
        info: ModelInfo,
        initial: Mapping[str, Any] | None = None,
    ) -> None:
        self._memory = memory
        ports = memory.ports if memory is not None else ()
        self._numbers = {port.name: number for number, port in enumerate(ports)}
        self._policy = InputPolicy(ports, info)
        self._initial = self._checked(initial or {})
        if initial:
            self.reset()

    @property
    def initial(self) -> dict[str, Array]:
        """What `reset` sets that is not zero."""
        return dict(self._initial)

    def __getitem__(self, name: str) -> Array:
        number = self._number(name)
        return self._read([number])[0]

    def __setitem__(self, name: str, value: Any) -> None:
        self.update({name: value})

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def arrays(self) -> dict[str, Array]:
        """All of it between two runs."""
        return dict(zip(self._numbers, self._read(list(self._numbers.values())), strict=True))

    def update(self, values: Mapping[str, Any]) -> None:
        """Set some of it: all that is given, or, if one does not fit, nothing."""
        for name in values:
            self._number(name)
        self._write(self._checked(values))

    def reset(self) -> None:
        """Set all of it to the initial values: those given to `irkit.compile`, else zeros."""
        if self._memory is None:
            return
        zeros = {port.name: np.zeros(port.shape, port.dtype) for port in self._memory.ports}
        self._write(zeros | self._initial)

    def save(self, path: Path | str) -> None:
        """Write all of it to a safetensors file, at once. Raises ArtifactError if that fails."""
        from safetensors.numpy import save

        write_atomically(Path(path), save(self.arrays()))

    def load(self, path: Path | str) -> None:
        """Set all of it from a file that `save` wrote, bit for bit.

        Raises ArtifactError for any other file, InvalidInputError for state of another program.
        """
        from safetensors import SafetensorError
        from safetensors.numpy import load

        try:
            found: dict[str, Array] = load(Path(path).read_bytes())
        except OSError as error:
            raise ArtifactError(f"cannot read '{path}': {error.strerror}") from None
        except (SafetensorError, ValueError, KeyError) as error:
            raise ArtifactError(f"'{path}' is no safetensors file: {error}") from None
        self.restore(found, str(path))

    def restore(self, arrays: Mapping[str, Array], where: str) -> None:
        """Set all of it to arrays that are of its own dtypes. Raises InvalidInputError."""
        if set(arrays) != set(self._numbers):
            raise InvalidInputError(
                f"'{where}' has state {_names(arrays)}, the program {_names(self._numbers)}"
            )
        for name, array in arrays.items():
            port = self._policy.ports[self._numbers[name]]
            if (array.dtype.name, array.shape) != (port.dtype, port.shape):
                raise InvalidInputError(
                    f"'{where}': state '{name}' is {array.dtype}{list(array.shape)}, of the program "
                    f"{port.dtype}{list(port.shape)}"
                )
        self._write(arrays)

    def _number(self, name: str) -> int:
        if name not in self._numbers:
            raise KeyError(f"state '{name}'; there is {_names(self._numbers)}")
        return self._numbers[name]

    def _checked(self, values: Mapping[str, Any]) -> dict[str, Array]:
        unknown = next((name for name in values if name not in self._numbers), None)
        if unknown is not None:
            raise InvalidInputError(f"state '{unknown}'; there is {_names(self._numbers)}")
        policy = self._policy
        return {n: policy.host_array(self._numbers[n], v).copy() for n, v in values.items()}

    def _read(self, numbers: list[int]) -> list[Array]:
        if self._memory is None:
            return []
        with self._memory.lock:
            self._memory.advance.require()
            return [self._memory.read(number) for number in numbers]

    def _write(self, arrays: Mapping[str, Array]) -> None:
        memory = self._memory
        if memory is None:
            return
        with memory.lock:
            if len(arrays) < len(self._numbers):
                memory.advance.require()
            for name, array in arrays.items():
                memory.write(self._numbers[name], array)
            memory.advance.whole = True


def _names(names: Mapping[str, Any]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "none"
