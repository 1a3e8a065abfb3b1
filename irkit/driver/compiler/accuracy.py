"""`irkit.accuracy`: what a model's precision costs, output by output, against strict arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.func import FuncOp

from irkit.bfloat16 import is_half
from irkit.dialects.functions import function_named
from irkit.driver.compiler.artifacts import build_artifact
from irkit.driver.compiler.batch import SizedModel, read_for_batch
from irkit.driver.compiler.compile import absent_device
from irkit.driver.compiler.models import ONE_BUILDER
from irkit.driver.compiler.overflow import Overflow, first_overflow, largest_of, may_overflow
from irkit.driver.compiler.precision import ask_precision, check_precision
from irkit.driver.compiler.strict import strict, without_state
from irkit.driver.compiler.targets import planned_device
from irkit.driver.diagnostics.library_errors import library_errors
from irkit.driver.execution.arrays import BATCH, random_inputs
from irkit.driver.execution.entry_point import entry_point_of
from irkit.errors import InvalidInputError, InvalidModelError, UnsupportedError
from irkit.interp import level_of
from irkit.passes.set_precision import grant
from irkit.runtime.host_arrays import as_array, to_host
from irkit.runtime.mode_choice import AUTO
from irkit.runtime.variant import Variant
from irkit.schedule.model import VDevice
from irkit.weights import Array

if TYPE_CHECKING:
    from irkit.frontends.module import ImportedModel


@dataclass(frozen=True)
class OutputAccuracy:
    """How far an output is from strict arithmetic.

    `absolute`: the largest error; `relative`: the largest quotient of an error and the strict value there,
    where that is not 0; `largest`: the largest magnitude of a strict value; `lost`: how many elements are
    infinite or NaN that are numbers in strict arithmetic. Those count for no error. `elements`: how many
    there are. Integers are compared as numbers.
    """

    absolute: float
    relative: float
    largest: float
    lost: int
    elements: int

    @property
    def to_largest(self) -> float:
        """The largest error by the largest magnitude, which small values do not blow up."""
        return self.absolute / self.largest if self.largest else self.absolute


@dataclass(frozen=True)
class AccuracyReport:
    """Per output what is lost, and where something overflows. Printed, it is a table.

    `products`: what those are computed in that may be computed in less than float32, in order; float32 where
    the device has nothing faster. Empty where nothing allows less.
    """

    device: str
    precision: str
    outputs: Mapping[str, OutputAccuracy]
    overflow: Overflow | None
    products: tuple[str, ...] = ()

    def __str__(self) -> str:
        head = f"accuracy on {self.device}, {self.precision} against strict float32"
        lines = [
            head,
            f"  {'output':<20}{'absolute':>12}{'relative':>12}{'to largest':>12}{'largest':>12}",
        ]
        for name, found in self.outputs.items():
            numbers = (found.absolute, found.relative, found.to_largest, found.largest)
            line = f"  {name:<20}" + "".join(f"{n:>12.3g}" for n in numbers)
            gone = (
                f"  {found.lost} of {found.elements} elements are no numbers" if found.lost else ""
            )
            lines.append(line + gone)
        if self.products == ("float32",):
            lines.append("  all products are in float32: there is nothing faster for them here")
        if self.overflow is not None:
            lines.append(f"  {self.overflow}")
        return "\n".join(lines)


def accuracy(
    model: Any,
    inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    precision: str | None = None,
    target: str = "auto",
    device: str | VDevice | None = None,
    dtype: str = "float32",
    shapes: Mapping[str, Sequence[int]] | None = None,
    constants: Mapping[str, Any] | None = None,
    batch: int | None = None,
    seed: int = 0,
    cache: bool = True,
) -> AccuracyReport:
    """How far the outputs of a model in `precision` are from those in strict arithmetic.

    `model`, `precision`, `target`, `device`, `dtype`, `shapes`, `constants`, `batch` and `cache` are as in
    `irkit.compile`; `precision` None leaves what the model says. Strict arithmetic is float32 (or wider,
    where the model is), also of tensors that are 16-bit floats in the model. Two programs are compiled and
    run on `inputs` (by name, or in order), or, without any, on random ones by `seed`: standard normal floats,
    integers 0 and 1, of `batch` rows, or 3. State is an argument and a result here.

    Where an element of an output is no number though it is one in strict arithmetic, or something is computed
    in float16, the graph is run op by op by the interpreter besides, which names the first op that overflows
    and the outputs that it reaches. It rounds all that a precision allows to be rounded; a program may be
    more exact, and then loses nothing there.

    Raises UnsupportedError, InvalidModelError, InvalidInputError, and DeviceError where the device is not
    there.
    """
    check_precision(precision)
    chosen = planned_device(target, device)
    with ONE_BUILDER, library_errors():
        lowered = _read(model, dtype, batch, {"shapes": shapes, "constants": constants})
        ask_precision(lowered.module, precision)
        plain = strict(lowered)
        entry = entry_point_of(lowered.module)
        if inputs is None:
            given = random_inputs(entry, seed, BATCH if batch is None else batch)
        else:
            given = _in_order(inputs, lowered.info.inputs)
        pair = (given, [_wide(x) for x in given])
        copies = (_main(lowered), _main(plain))
        variants = [_variant(m, chosen, cache) for m in (lowered, plain)]
    got, want = ([to_host(y) for y in v.run(x)] for v, x in zip(variants, pair, strict=True))
    outputs = {
        name: compared(y, z) for name, y, z in zip(lowered.info.outputs, got, want, strict=False)
    }
    overflow = None
    if may_overflow(copies[0]) or any(o.lost for o in outputs.values()):
        for function in copies:
            grant(function)
        overflow = first_overflow(*copies, lowered.weights, pair, entry.output_names)
    facts = variants[0].artifact.report.get("roperators", {}).values()
    products = tuple(sorted({f["products"] for f in facts if "products" in f}))
    return AccuracyReport(chosen.name, precision or "the model's own", outputs, overflow, products)


def compared(got: Array, want: Array) -> OutputAccuracy:
    """One output beside what strict arithmetic has, of the same shape."""
    have, right = (np.asarray(x, np.float64).reshape(-1) for x in (got, want))
    gone = np.isfinite(right) & ~np.isfinite(have)
    both = np.isfinite(right) & np.isfinite(have)
    error, size = np.abs(have[both] - right[both]), np.abs(right[both])
    quotients = error[size > 0] / size[size > 0]
    return OutputAccuracy(
        float(error.max(initial=0.0)),
        float(quotients.max(initial=0.0)),
        largest_of([right]),
        int(gone.sum()),
        right.size,
    )


def _read(model: Any, dtype: str, batch: int | None, fixed: Mapping[str, Any]) -> ImportedModel:
    """The graph-level model, for one size where rows of its batch mix, without state."""
    found = read_for_batch(model, dtype, batch, fixed)
    if isinstance(found, SizedModel):
        found = found.at(BATCH)
    if level_of(found.module) != "graph":
        raise UnsupportedError("accuracy: it is for models and modules of the graph level")
    without_state(found.module)
    return found


def _in_order(inputs: Sequence[Any] | Mapping[str, Any], names: Sequence[str]) -> list[Array]:
    """The inputs as arrays, in order. Raises InvalidInputError."""
    if isinstance(inputs, Mapping):
        missing = [name for name in names if name not in inputs]
        if missing or len(inputs) != len(names):
            raise InvalidInputError(
                f"expected inputs {', '.join(names)}; got {', '.join(map(str, inputs)) or 'none'}"
            )
        inputs = [inputs[name] for name in names]
    if len(inputs) != len(names):
        raise InvalidInputError(f"expected {len(names)} inputs, got {len(inputs)}")
    return [to_host(as_array(name, x)) for name, x in zip(names, inputs, strict=True)]


def _wide(array: Array) -> Array:
    return array.astype(np.float32) if is_half(array.dtype) else array


def _main(imported: ImportedModel) -> FuncOp:
    """A copy of `@main`, which compilation rewrites."""
    main = function_named(imported.module.clone(), "main")
    if main is None:
        raise InvalidModelError("the module has no func.func @main")
    return main


def _variant(imported: ImportedModel, device: VDevice, cache: bool) -> Variant:
    artifact = build_artifact(imported, device, cache)
    return Variant(artifact, executor=absent_device(artifact, AUTO))
