"""What a program keeps from run to run, as its user sees it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from irkit.bfloat16 import load_arrays
from irkit.errors import ArtifactError, InvalidInputError
from irkit.model_info import ModelInfo
from irkit.plain_json import parsed
from irkit.runtime.input_policy import InputPolicy
from irkit.runtime.program_files import write_atomically
from irkit.runtime.state_identity import Identity, ProgramIdentity, check_identity, said_by
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
        identity: Identity | None = None,
    ) -> None:
        self._memory = memory
        self.identity: Identity = identity or ProgramIdentity(None)
        """What files of it say of the program, and are held against."""
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
        """Write all of it to a safetensors file, at once, with what identifies the program. Raises
        ArtifactError if that fails."""
        from safetensors.numpy import save

        write_atomically(Path(path), save(self.arrays(), said_by(self.identity)))

    def load(self, path: Path | str, other: Collection[str] = ()) -> None:
        """Set all of it from a file that `save` wrote, bit for bit.

        `other`: of what identifies the program ("program"; of a step of training "model", "loss",
        "optimizer"), what need not be that of the file. Raises ArtifactError for what is no safetensors file,
        InvalidInputError for state of another program; nothing is changed then.
        """
        found, said = read_state(Path(path))
        self._check(found, str(path))
        check_identity(self.identity, said, other, str(path))
        self._write(found)
        self.identity.taken(said, other)

    def restore(self, arrays: Mapping[str, Array], where: str) -> None:
        """Set all of it to arrays that are of its own dtypes. Raises InvalidInputError."""
        self._check(arrays, where)
        self._write(arrays)

    def _check(self, arrays: Mapping[str, Array], where: str) -> None:
        """Raises InvalidInputError for other names, dtypes or shapes than those of the program."""
        lacking = [name for name in self._numbers if name not in arrays]
        beside = [name for name in sorted(arrays) if name not in self._numbers]
        if lacking or beside:
            parts = [f"lacks {_few(lacking)}"] * bool(lacking) + [f"has {_few(beside)}"] * bool(
                beside
            )
            raise InvalidInputError(
                f"'{where}' is state of another program: it {' and '.join(parts)}"
            )
        for name, array in arrays.items():
            port = self._policy.ports[self._numbers[name]]
            if (array.dtype.name, array.shape) != (port.dtype, port.shape):
                raise InvalidInputError(
                    f"'{where}': state '{name}' is {array.dtype}{list(array.shape)}, of the program "
                    f"{port.dtype}{list(port.shape)}"
                )

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


def read_state(path: Path) -> tuple[dict[str, Array], dict[str, str]]:
    """Arrays of a safetensors file, and what it says beside them. Raises ArtifactError."""
    from safetensors import SafetensorError

    try:
        data = path.read_bytes()
        # Arrays first: by then the header is known to be one.
        arrays: dict[str, Array] = load_arrays(data)
        said = parsed(data[8 : 8 + int.from_bytes(data[:8], "little")]).get("__metadata__", {})
    except OSError as error:
        raise ArtifactError(f"cannot read '{path}': {error.strerror}") from None
    except KeyError as error:
        raise ArtifactError(f"'{path}' has arrays of {error.args[0]}, which no state is") from None
    except (SafetensorError, ValueError) as error:
        raise ArtifactError(f"'{path}' is no safetensors file: {error}") from None
    return arrays, said


def _few(names: Sequence[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(f"'{name}'" for name in names[:most]) + more


def _names(names: Mapping[str, Any]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "none"
