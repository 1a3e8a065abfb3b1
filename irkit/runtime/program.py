"""CompiledProgram: what `irkit.compile` returns."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from irkit.errors import ArtifactError, DeviceError, InvalidInputError, UnsupportedError
from irkit.model_info import ModelInfo
from irkit.runtime.artifact import Artifact
from irkit.runtime.cpu import MODES as CPU_MODES
from irkit.runtime.cpu import CpuExecutor
from irkit.runtime.frames import frame_array, is_frame
from irkit.runtime.host_arrays import as_array, logarithm, to_host
from irkit.runtime.loading import load_source
from irkit.runtime.proof import check_proof
from irkit.schedule.tables import Port
from irkit.weights import Array

if TYPE_CHECKING:
    from irkit.viewing.timeline import Timeline

# On a GPU there is no thread of the host to run straight through on.
CUDA_MODES = CPU_MODES[1:]


class Variant:
    """One compiled program: artifact, executor, and the checks that its inputs must pass."""

    def __init__(self, artifact: Artifact, mode: str = "auto") -> None:
        self.artifact = artifact
        self.info = ModelInfo.from_json(artifact.info)
        self.executor: Any = _executor(artifact, mode)
        check_proof(artifact, self.executor.program)
        self.inputs: tuple[Port, ...] = self.executor.program.inputs
        self.outputs: tuple[Port, ...] = self.executor.program.outputs
        self._dtypes = [np.dtype(p.dtype) for p in self.inputs]
        self._out = [
            (p.shape[1:] if p.shape[:1] == (-1,) else p.shape, np.dtype(p.dtype))
            for p in self.outputs
        ]
        self._dynamic = [p.shape[:1] == (-1,) for p in self.outputs]
        # One row takes microseconds: its checks are made ready here.
        first = self.inputs[0] if len(self.inputs) == 1 else None
        self._one_row = (
            first is not None
            and first.shape[:1] == (-1,)
            and artifact.target == "cpu"
            and mode in ("auto", "serial")
            and self.info.allow_nan
            and self.info.allow_infinity
        )
        self._row_shape = (1, *first.shape[1:]) if first is not None else ()
        self._row_shapes = [
            ((1, *shape) if dynamic else shape, dtype)
            for (shape, dtype), dynamic in zip(self._out, self._dynamic, strict=True)
        ]

    def _is_plain_row(self, x: Any) -> bool:
        return (
            type(x) is np.ndarray
            and x.shape == self._row_shape
            and x.dtype == self._dtypes[0]
            and x.flags.carray
        )

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """All outputs, in order. Raises InvalidInputError."""
        outputs = self._run(inputs)
        return outputs if not self.info.checks else self._without_checks(outputs)

    def _without_checks(self, outputs: list[Any]) -> list[Any]:
        """The model's own outputs, if none of its checks failed in any row."""
        own = len(outputs) - len(self.info.checks)
        for array, message in zip(outputs[own:], self.info.checks.values(), strict=True):
            host: Array = to_host(array)
            if not host.all():
                row = int(np.flatnonzero(host == 0)[0])
                raise InvalidInputError(f"row {row}: {message}")
        return outputs[:own]

    def _run(self, inputs: Sequence[Any]) -> list[Any]:
        if len(inputs) != len(self.inputs):
            names = ", ".join(p.name for p in self.inputs)
            raise InvalidInputError(
                f"expected {len(self.inputs)} inputs ({names}), got {len(inputs)}"
            )
        if self.artifact.target == "cuda":
            return self.executor.run_arrays(inputs, self._check)
        if self._one_row and self._is_plain_row(inputs[0]):
            outputs = [np.empty(shape, dtype) for shape, dtype in self._row_shapes]
            self.executor.run_row(inputs, outputs)
            return outputs
        arrays = [self._check(i, x) for i, x in enumerate(inputs)]
        rows = self._rows(arrays)
        outputs = [
            np.empty((rows, *shape) if dynamic else shape, dtype)
            for (shape, dtype), dynamic in zip(self._out, self._dynamic, strict=True)
        ]
        if rows > 0:
            self.executor.run(arrays, outputs, rows)
        return outputs

    def _rows(self, arrays: Sequence[Array]) -> int:
        if not self.executor.program.dynamic:
            return 1
        sizes = {
            a.shape[0] for a, p in zip(arrays, self.inputs, strict=True) if p.shape[:1] == (-1,)
        }
        if len(sizes) != 1:
            raise InvalidInputError(f"inputs disagree on the number of rows: {sorted(sizes)}")
        (rows,) = sizes
        if rows == 0 and self.info.kind != "network":
            # As the libraries that such models come from.
            raise InvalidInputError("expected 1 or more rows, got 0")
        return rows

    def _check(self, number: int, value: Any) -> Array:
        """`value` as an array that the program can take, or InvalidInputError."""
        port = self.inputs[number]
        if type(value) is not np.ndarray:
            value = as_array(port.name, value, self._dtypes[number])
        array = value
        if array.dtype != self._dtypes[number]:
            array = self._cast(port, array)
        shape = port.shape
        if array.ndim != len(shape) or any(
            s not in (-1, n) for s, n in zip(shape, array.shape, strict=True)
        ):
            wanted = "x".join("rows" if s == -1 else str(s) for s in shape) or "scalar"
            have = "x".join(map(str, array.shape)) or "scalar"
            raise InvalidInputError(f"input '{port.name}': expected shape {wanted}, got {have}")
        if not (array.flags.c_contiguous and array.flags.aligned):
            # A copy in another order changes no value.
            array = (
                np.ascontiguousarray(array) if array.flags.aligned else np.array(array, order="C")
            )
        self._check_values(port, array)
        return array

    def _cast(self, port: Port, array: Array) -> Array:
        """The conversions that the source library itself makes, and lossless ones."""
        name = str(array.dtype)
        if array.dtype.kind in "fiub" and (
            name in self.info.casts or np.can_cast(array.dtype, port.dtype, "safe")
        ):
            with np.errstate(over="ignore"):
                return array.astype(port.dtype)
        accepted = ", ".join(dict.fromkeys((port.dtype, *self.info.casts)))
        raise InvalidInputError(
            f"input '{port.name}': expected dtype {accepted}, got {array.dtype}"
        )

    def _check_values(self, port: Port, array: Array) -> None:
        info = self.info
        if (info.allow_nan and info.allow_infinity) or array.dtype.kind != "f":
            return
        # NaN says nothing of the others' size.
        largest = float(np.fmax.reduce(np.abs(array), axis=None, initial=0.0))
        if info.largest is not None and info.largest < largest < np.inf:
            raise InvalidInputError(
                f"input '{port.name}' has a value of size {largest:g}, which overflows inside the model: "
                f"expected at most {info.largest:g}"
            )
        if np.isfinite(largest) and info.allow_nan:
            return
        if not info.allow_nan and bool(np.isnan(array).any()):
            raise InvalidInputError(
                f"input '{port.name}' has NaN, for which the model has no meaning"
            )
        if not info.allow_infinity and bool(np.isinf(array).any()):
            raise InvalidInputError(
                f"input '{port.name}' has infinity, which the model does not accept"
            )

    def timelines(self, inputs: Sequence[Any] | None, mode: str) -> list[Timeline]:
        """Planned, and measured if there are inputs. Raises UnsupportedError, InvalidInputError."""
        from irkit.viewing.timeline import planned, timeline

        facts = self.artifact.report
        roperators, program = facts["roperators"], self.executor.program
        costs = [float(roperators[k]["cost_ns"]) for k in program.kernels]
        found = [planned(program, roperators, costs, float(facts["wait_ns"]))]
        if inputs is None:
            return found
        if self.artifact.target == "cuda":
            raise UnsupportedError(
                "measured timelines of programs on a GPU; the planned one needs no inputs"
            )
        from irkit.runtime.cpu_trace import TracedExecutor

        probe, traced = copy.copy(self), TracedExecutor(self.executor, mode)
        probe.executor, probe._one_row = traced, False
        for _ in range(3):  # the first calls pay for cold caches
            probe.run(inputs)
        title = f"measured, {mode}"
        return [*found, timeline(title, program, roperators, traced.rows())]


def check_mode(target: str, mode: str) -> None:
    """Raises DeviceError unless programs of `target` can run in `mode`."""
    known = ("auto", *(CPU_MODES if target == "cpu" else CUDA_MODES))
    if mode not in known:
        raise DeviceError(f"mode '{mode}' for {target}: expected {', '.join(known)}")


def _executor(artifact: Artifact, mode: str) -> Any:
    check_mode(artifact.target, mode)
    if artifact.target == "cuda":
        from irkit.runtime.cuda.executor import CudaExecutor

        return CudaExecutor.from_artifact(artifact, mode)
    return CpuExecutor(load_source(artifact), artifact.weights, mode)


class CompiledProgram:
    """A compiled model. Call it with arrays, or use the model's own methods.

    A model whose meaning depends on the input's dtype (a scikit-learn pipeline) has one variant per
    dtype, compiled when the first such array comes; `save` compiles all of them.
    """

    def __init__(
        self,
        variants: dict[str, Variant],
        pending: Mapping[str, Callable[[], Variant]] | None = None,
    ) -> None:
        self._variants = variants
        self._pending = dict(pending or {})
        self._first = next(iter(variants.values()))
        self._methods = self._first.info.methods
        self._lock = threading.Lock()

    # Running

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """All outputs for a list of inputs. Raises InvalidInputError on what the model cannot take."""
        inputs = self._plain(inputs)
        return self._variant(inputs).run(inputs)

    def _plain(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """`inputs` with data frames as arrays of the columns that the model was fitted on."""
        if type(inputs[0] if inputs else None) is np.ndarray:
            return inputs
        info = self._first.info
        return [frame_array(info, x) if is_frame(x) else x for x in inputs]

    def __call__(self, *inputs: Any) -> Any:
        """The output, or a tuple of them."""
        outputs = self.run(inputs)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _variant(self, inputs: Sequence[Any]) -> Variant:
        if len(self._variants) + len(self._pending) == 1 or not inputs:
            return self._first
        # A torch dtype prints as torch.float32; a data frame has one only as an array.
        x = inputs[0]
        x = x if hasattr(x, "dtype") else as_array("0", x)
        name = str(x.dtype).rpartition(".")[2]
        if name in self._variants or name in self._pending:
            return self._variants.get(name) or self._compiled(name)
        return self._variants.get("float64") or self._first

    def _compiled(self, name: str) -> Variant:
        """A variant that was pending; compiled once, whoever asks first."""
        with self._lock:
            if name not in self._variants:
                self._variants[name] = self._pending[name]()
                del self._pending[name]
            return self._variants[name]

    def _method(self, name: str, X: Any) -> Any:
        output = self._methods.get(name)
        if output is None:
            known = ", ".join(self._methods) or "none"
            raise UnsupportedError(f"method '{name}' of this model; it has {known}")
        inputs = self._plain([X])
        variant = self._variant(inputs)
        names = [p.name for p in variant.outputs]
        results = variant.run(inputs)
        wanted = [output] if isinstance(output, str) else output
        found: list[Any] = [results[names.index(o)] for o in wanted]
        if name == "predict_log_proba" and output == self._methods.get("predict_proba"):
            found = [logarithm(p) for p in found]
        if isinstance(output, str):
            return self._labels(found[0]) if name == "predict" else found[0]
        if name != "predict":
            return found
        return np.stack([self._labels(r, k) for k, r in enumerate(found)], axis=1)

    def _labels(self, result: Any, number: int | None = None) -> Any:
        """Class labels by their numbers; of output `number` of a classifier of several."""
        info = self._first.info
        if info.classes is None:
            return result
        classes = info.classes if number is None else info.classes[number]
        dtype = np.dtype(info.label_dtype) if info.label_dtype else None
        return np.asarray(classes, dtype)[result]

    def predict(self, X: Any) -> Any:
        """Labels or values, as the source model's `predict`."""
        return self._method("predict", X)

    def predict_proba(self, X: Any) -> Any:
        """Class probabilities, rows×classes; a list of them for a classifier of several outputs."""
        return self._method("predict_proba", X)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of class probabilities."""
        return self._method("predict_log_proba", X)

    def score_samples(self, X: Any) -> Any:
        """Scores of an outlier detector: the lower, the more abnormal."""
        return self._method("score_samples", X)

    def decision_function(self, X: Any) -> Any:
        """Margins."""
        return self._method("decision_function", X)

    def transform(self, X: Any) -> Any:
        """Transformed rows."""
        return self._method("transform", X)

    # Looking inside

    @property
    def target(self) -> str:
        """ "cpu" or "cuda"."""
        return self._first.artifact.target

    @property
    def source(self) -> str:
        """The emitted Numba module."""
        return self._first.artifact.source

    def ir(self, level: str = "schedule") -> str:
        """Textual IR at "graph", "tensor", "task" or "schedule"."""
        texts = self._first.artifact.ir
        if level not in texts:
            raise UnsupportedError(f"level '{level}'; there are {', '.join(texts)}")
        return texts[level]

    def report(self) -> dict[str, Any]:
        """Levels, rOperators, rKernels, waves, arena bytes and their ratio to the bound, mode and why."""
        return {
            **self._first.artifact.report,
            "mode": self._first.executor.mode,
            "measured": self._first.executor.decisions(),
        }

    def timelines(
        self, inputs: Sequence[Any] | None = None, mode: str = "persistent"
    ) -> list[Timeline]:
        """The schedule as planned and, with inputs, as a warm call of it was measured.

        `mode` is serial, per-wave or persistent. Raises UnsupportedError for inputs on a GPU.
        """
        return self._first.timelines(inputs, mode)

    # Keeping

    def save(self, path: Path | str) -> None:
        """Write the program to a file; with several dtypes, to `path` and `path` + `.<dtype>`.

        Raises ArtifactError if that cannot be written.
        """
        for name in list(self._pending):
            self._compiled(name)
        keys = {name: v.artifact.key for name, v in self._variants.items()}
        path = Path(path)
        # The first file, which names the others, comes last: until then there is no new program.
        for name in reversed(keys):
            artifact = replace(self._variants[name].artifact, variants=keys)
            first = name == next(iter(keys))
            artifact.save(path if first else path.with_name(f"{path.name}.{name}"))


def load(path: Path | str, mode: str = "auto") -> CompiledProgram:
    """A program that `CompiledProgram.save` wrote; needs neither xDSL nor the source library.

    A saved program is code: load only what you trust. Raises ArtifactError on any other file.
    """
    path = Path(path)
    first = Artifact.load(path)
    artifacts = {
        name: first if number == 0 else Artifact.load(path.with_name(f"{path.name}.{name}"))
        for number, name in enumerate(first.variants)
    } or {"only": first}
    for name, artifact in artifacts.items():
        if artifact.variants != first.variants or artifact.key != first.variants.get(
            name, artifact.key
        ):
            raise ArtifactError(f"'{path}.{name}' belongs to another program than '{path}'")
    return CompiledProgram({name: Variant(artifact, mode) for name, artifact in artifacts.items()})
