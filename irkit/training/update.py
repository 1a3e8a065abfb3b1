"""What one step computes: loss, gradients, and the next values of all that is kept."""

from __future__ import annotations

import inspect
import types
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from irkit.driver.programs.gradients import Gradient
from irkit.errors import InvalidInputError, UnsupportedError
from irkit.frontends.numpy.affine import Affine
from irkit.frontends.numpy.arrays import fresh, is_traced
from irkit.frontends.numpy.nested import leaves, mapped, scoped
from irkit.frontends.numpy.recorder import recorder
from irkit.frontends.numpy.records import View
from irkit.training import collectives, random
from irkit.training.models import Model
from irkit.training.optimizers import Optimizer
from irkit.training.structures import filled_with, named_leaves
from irkit.weights import Array

WHAT = "irkit.training_step"
PARAMETERS, STATISTICS, STEPS, KEY = "parameters", "statistics", "steps", "key"
_UNUSED = "no gradient of 'result0' reaches an argument (allow_unused makes it zeros)"
_UNREACHED = "the loss does not hang on parameters, which are not to be given then"
UNSOUND, SIGNATURE = 0, 1
"""Of what the ranks of a group agree on: where something was wrong, and of what shapes their inputs are."""


class Update:
    """A step as a function of (state, inputs). State is written where the step is sound: where no label or
    index was out of bounds and, with `stop_on_nan`, the loss, all gradients and the new state are finite."""

    def __init__(
        self,
        model: Model,
        loss: Callable[..., Any] | None,
        optimizer: Optimizer,
        parameters: Any,
        statistics: Any,
        stop_on_nan: bool,
        seed: int,
        parallel: bool = False,
    ) -> None:
        """`parameters` and `statistics` are structures of arrays. `parallel`: every rank of a group makes
        the step, each on a part of the batch."""
        self.model, self.loss, self.optimizer, self.parallel = model, loss, optimizer, parallel
        self.parameters, self.statistics = parameters, statistics
        self.stop_on_nan, self._key = stop_on_nan, random.key(seed)
        self._names = [n for n, _ in named_leaves(parameters, "")]

    def start(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """The state before the first step: `arrays`, by name, and zeros for what the optimiser keeps."""
        state = dict(arrays)
        for slot in self.optimizer.slots:
            for name in self._names:
                state[slot + name] = np.zeros_like(arrays[PARAMETERS + name])
        state[STEPS] = np.zeros((), np.int64)
        if "key" in self.model.wants:
            state[KEY] = self._key
        return state

    @property
    def trained(self) -> frozenset[str]:
        """Names of the state that the loss is differentiated by."""
        return frozenset(PARAMETERS + name for name in self._names)

    # What identifies a step: each a function of (state, inputs), to be traced

    def outputs_of(self, state: Mapping[str, Any], inputs: Sequence[Any]) -> Any:
        """What the model makes of inputs while it is trained, and writes to its statistics."""
        statistics = filled_with(self.statistics, state, STATISTICS)
        extras = {"training": True, "statistics": statistics, "key": state.get(KEY)}
        parameters = filled_with(self.parameters, state, PARAMETERS)
        outputs = self.model(parameters, tuple(inputs[: self.model.inputs]), extras)
        return mapped(lambda a: a.copy() if is_traced(a) else a, outputs)

    def loss_of(self, state: Mapping[str, Any], inputs: Sequence[Any]) -> Any:
        """The loss, of the model's inputs and what else it takes."""
        parameters = filled_with(self.parameters, state, PARAMETERS)
        statistics = filled_with(self.statistics, state, STATISTICS)
        found, _ = self._total()(parameters, statistics, state.get(KEY), *inputs)
        return found.copy()

    def updated_of(self, state: Mapping[str, Any], inputs: Sequence[Any]) -> Any:
        """What the optimiser makes of parameters and what it keeps of them. `inputs`: gradients."""
        for name, value in self._updated(state, inputs).items():
            state[name][...] = value
        return state[STEPS] + 1

    def _updated(self, state: Mapping[str, Any], gradients: Sequence[Any]) -> dict[str, Any]:
        """New values of parameters and slots, by name."""
        slots = [{s: state[s + n] for s in self.optimizer.slots} for n in self._names]
        own = [state[PARAMETERS + n] for n in self._names]
        updated = self.optimizer.apply(own, gradients, slots, state[STEPS])
        new: dict[str, Any] = {}
        for name, (value, kept) in zip(self._names, updated, strict=True):
            new[PARAMETERS + name] = value
            new |= {slot + name: array for slot, array in kept.items()}
        return new

    # What is trained

    def function(self) -> types.FunctionType:
        """What is traced."""
        apply = self

        def step(state: Any, inputs: Any) -> Any:
            return apply.step(state, inputs)

        step.__qualname__ = self.model.name
        return step

    def step(self, state: Mapping[str, Any], inputs: Sequence[Any]) -> Any:
        """The loss; with `stop_on_nan` whether all is finite; of a group what its ranks agree on. What is new
        goes to `state`."""
        parameters = filled_with(self.parameters, state, PARAMETERS)
        statistics = filled_with(self.statistics, state, STATISTICS)
        gradient = Gradient(self._total(), WHAT, 0, value=True, has_aux=True, allow_unused=False)
        key = random.fold_in(state[KEY], state[STEPS]) if KEY in state else None
        if self.parallel and key is not None:
            key = random.fold_in(key, collectives.rank())
        try:
            (loss, left), gradients = gradient(parameters, statistics, key, *inputs)
        except UnsupportedError as error:
            raise UnsupportedError(str(error).replace(_UNUSED, _UNREACHED)) from None
        if self.parallel:
            # As they come out of the backward pass: what is clipped is their mean.
            gradients = mapped(lambda g: collectives.all_reduced(g, "mean"), gradients)
            loss = collectives.all_reduced(loss, "mean")
        new = self._updated(state, list(leaves(gradients)))
        new[STEPS] = state[STEPS] + 1
        new |= {KEY: state[KEY]} if KEY in state else {}
        new |= dict(zip((n for n, _ in named_leaves(statistics, STATISTICS)), left, strict=True))
        found = [loss]
        if self.stop_on_nan:
            found.append(_all_finite([loss, *leaves(gradients), *new.values()]))
        sound = self._sound(found[1:])
        if not self.parallel:
            self._keep(state, new, sound)
            return tuple(found)
        agreed = _agreed(sound, inputs)
        same = agreed[SIGNATURE] == -agreed[SIGNATURE + 1]
        self._keep(state, new, np.logical_and(agreed[UNSOUND] == 0, same))
        return *found, agreed

    def _total(self) -> Callable[..., Any]:
        """The loss as a function of (parameters, statistics, key, *inputs), and what the statistics are
        then."""
        model, loss = self.model, self.loss

        def total(parameters: Any, statistics: Any, key: Any, *arrays: Any) -> Any:
            extras = {"training": True, "statistics": statistics, "key": key}
            outputs = model(parameters, arrays[: model.inputs], extras)
            rest = arrays[model.inputs :]
            found: Any = outputs[0] if len(outputs) == 1 else outputs
            if loss is not None:
                check_call(loss, model.name, [*outputs, *rest])
                found = scoped(loss)(*outputs, *rest)
            if (fault := _no_loss(found)) is not None:
                raise UnsupportedError(f"{WHAT} of '{model.name}': the loss {fault}")
            return found, self._left(statistics)

        total.__qualname__ = model.name
        return total

    def _left(self, statistics: Any) -> list[Any]:
        """The statistics that the model leaves behind, in the order of the state. Raises UnsupportedError for
        others than it was given, which the state has no place for."""
        found = dict(named_leaves(statistics, STATISTICS))
        start = dict(named_leaves(self.statistics, STATISTICS))
        if found.keys() != start.keys():
            own, got = (", ".join(f"'{n}'" for n in names) for names in (start, found))
            raise UnsupportedError(
                f"{WHAT} of '{self.model.name}': the model leaves the statistics {got}: expected {own}"
            )
        for name, array in start.items():
            kept = [(tuple(a.shape), a.dtype) for a in (array, found[name]) if hasattr(a, "dtype")]
            (shape, dtype), (other, kind) = kept[0], kept[-1]
            if len(kept) < 2 or shape != other or not np.can_cast(kind, dtype, "same_kind"):
                said = f"{kind}{list(other)}" if len(kept) == 2 else type(found[name]).__name__
                raise UnsupportedError(
                    f"{WHAT} of '{self.model.name}': the model leaves '{name}' as {said}: expected "
                    f"{dtype}{list(shape)}"
                )
        return [found[name].copy() for name in start]

    def _sound(self, finite: Sequence[Any]) -> Any:
        """Whether the state may go on, a boolean of the trace: by all checks, and by what is `finite`. None
        where nothing can be wrong."""
        r = recorder()
        reads = [r.read(View(b, Affine(0), (), ())) for b in r.checks.values()]
        held = [*(fresh(v, scalar=True) for v in reads), *finite]
        return reduce(np.logical_and, held) if held else None

    def _keep(self, state: Mapping[str, Any], new: Mapping[str, Any], sound: Any) -> None:
        for name, array in state.items():
            value = new[name]
            array[...] = value if sound is None else np.where(sound, value, array)


def _all_finite(arrays: Sequence[Any]) -> Any:
    """Whether no float among arrays is NaN or infinite, a boolean of the trace."""
    floats = [a for a in arrays if a.dtype.kind == "f" and a.size]
    return reduce(np.logical_and, [np.isfinite(a).all() for a in floats])


def _agreed(sound: Any, inputs: Sequence[Any]) -> Any:
    """Of all ranks the largest: whether the step is not sound, and the signature of the inputs and minus
    that, which are one number where they are the same on all."""
    own = signature(inputs)
    flags = np.array([0, own, -own], np.int64)
    if sound is not None:
        unsound = np.logical_not(sound).astype(np.int64)
        flags = unsound * np.array([1, 0, 0], np.int64) + flags
    return collectives.all_reduced(flags, "max")


def signature(arrays: Sequence[Any]) -> int:
    """A number of the shapes and dtypes of arrays: of others, in all likelihood, another one."""
    return zlib.crc32(repr([(tuple(a.shape), str(a.dtype)) for a in arrays]).encode())


def check_call(loss: Callable[..., Any], name: str, given: Sequence[Any]) -> None:
    """Raises InvalidInputError where the loss takes other arguments than these."""
    try:
        signature = inspect.signature(loss)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*given)
    except TypeError as error:
        raise InvalidInputError(
            f"{WHAT} of '{name}': the loss is called with {len(given)} arrays, outputs of the model and then "
            f"what the step is called with beyond the model's inputs: {error}"
        ) from None


def _no_loss(found: Any) -> str | None:
    """Why something is no loss."""
    if not is_traced(found):
        kind = type(found).__name__
        hangs = " that hangs on no parameter" if isinstance(found, int | float | np.generic) else ""
        return f"is a {kind}{hangs}: expected an array of one number"
    if found.size != 1:
        return f"has shape {list(found.shape)}: expected one number (take its mean or sum)"
    return None
