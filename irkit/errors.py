"""The errors a user of irkit can meet. Each message names the thing and what would be accepted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class IrkitError(Exception):
    """Base of all errors that irkit raises on purpose."""


class UnsupportedError(IrkitError):
    """The model's meaning cannot be reproduced exactly; `missing` lists every reason found."""

    def __init__(self, message: str, missing: Sequence[str] = ()) -> None:
        self.missing = tuple(missing)
        lines = [message, *(f"  - {reason}" for reason in self.missing)]
        super().__init__("\n".join(lines))


class ConstantInputError(UnsupportedError):
    """Some inputs of an ONNX model must be known at import: `inputs` are their names."""

    def __init__(self, inputs: Sequence[str], missing: Sequence[str]) -> None:
        self.inputs = tuple(inputs)
        names = ", ".join(map(repr, inputs))
        super().__init__(f"give the values of {names} as constants={{name: array}}:", missing)


class OpenBatchError(UnsupportedError):
    """An ONNX model cannot be imported for every batch size: `axes` says which dimension of which input
    the batch is."""

    def __init__(self, message: str, missing: Sequence[str], axes: Mapping[str, int]) -> None:
        self.axes = dict(axes)
        super().__init__(message, missing)


class BudgetError(UnsupportedError):
    """A program needs more bytes than it may: `needed` is how many it would take."""

    def __init__(self, budget: int, needed: int, plain: int) -> None:
        self.budget, self.needed, self.plain = budget, needed, plain
        super().__init__(
            f"budget = {budget}: the least that was found is {needed} bytes in use at once,"
            f" of {plain} without recomputation"
        )


class InvalidModelError(IrkitError):
    """The model itself is unusable: unfitted, truncated, malformed."""


class InvalidInputError(IrkitError, ValueError):
    """An array given to a compiled program has the wrong shape, dtype, layout or values."""


class NotFiniteError(IrkitError, ArithmeticError):
    """The loss of a training step is NaN or infinite; the message names the first op that made it so."""


class DeviceError(IrkitError):
    """The requested device is absent or cannot run the program."""


class ArtifactError(IrkitError):
    """A saved program is corrupted, foreign or of another version."""


class InternalError(IrkitError):
    """irkit is at fault: a pass left IR that is wrong. Nothing was computed."""


class ScheduleError(IrkitError):
    """A schedule was not proved: the verifier names the violated rule and the rTasks."""
