"""CompiledProgram: what `irkit.compile` returns."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from irkit.errors import ArtifactError, InvalidInputError, UnsupportedError
from irkit.model_info import ModelInfo
from irkit.runtime.artifact import Artifact
from irkit.runtime.column_types import TYPES, TypedPrograms, Types
from irkit.runtime.csr_rows import PREFIX, CsrPrograms, CsrRows
from irkit.runtime.data_frames import ColumnsApart, fitted_columns, is_data_frame, named_rows
from irkit.runtime.documents import Documents
from irkit.runtime.host_arrays import as_array, is_objects, logarithm, numbers_of_objects
from irkit.runtime.integers import integers_as_floats
from irkit.runtime.named_columns import named_rows_of
from irkit.runtime.program_state import ProgramState
from irkit.runtime.row_call import RowCall
from irkit.runtime.sized import SizedVariant
from irkit.runtime.sparse_rows import SparseRows, is_sparse
from irkit.runtime.state_identity import IDENTITY, ProgramIdentity
from irkit.runtime.string_border import StringBorder
from irkit.runtime.text_columns import TextColumns
from irkit.runtime.variant import Variant
from irkit.runtime.words import named, numbered
from irkit.weights import Array

if TYPE_CHECKING:
    from irkit.viewing.timeline import Timeline


class CompiledProgram:
    """A compiled model. Call it with arrays, or use the model's own methods.

    A model whose meaning depends on the input's dtype (a scikit-learn pipeline) has one variant per
    dtype, compiled when the first such array comes; `save` compiles all of them. A model whose rows of the
    batch mix has one per batch size, compiled when it is first met; it is saved for a size that is named
    when it is compiled.
    """

    def __init__(
        self,
        variants: Mapping[str, Variant | SizedVariant],
        pending: Mapping[str, Callable[[], Variant | SizedVariant]] | None = None,
        initial_state: Mapping[str, Any] | None = None,
        csr: CsrPrograms | None = None,
        typed: TypedPrograms | None = None,
    ) -> None:
        self._csr, self._typed = csr or CsrPrograms({}), typed or TypedPrograms({})
        self._variants = dict(variants)
        self._pending = dict(pending or {})
        self._first = next(iter(variants.values()))
        self._methods = self._first.info.methods
        self._lock = threading.Lock()
        self._rows: dict[str, tuple[RowCall, ...]] = {}
        self.state = ProgramState(
            self._first.state, self._first.info, initial_state, self._identity()
        )
        """What the program keeps from run to run: name → array, to be read, set, reset, saved."""

    def _identity(self) -> ProgramIdentity:
        if self._first.state is None:
            return ProgramIdentity(None)
        return ProgramIdentity(self._first.artifact.report.get(IDENTITY))

    # Running

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """All outputs for a list of inputs. Raises InvalidInputError on what the model cannot take."""
        if not isinstance(inputs, (list, tuple)):
            kind = type(inputs).__name__
            raise InvalidInputError(
                f"run takes a list, one entry per input of the model, got {kind}"
            )
        if self._again is not None:
            outputs = self._again(inputs)
            if outputs is not None:
                return outputs
        inputs, types = self._read(inputs)
        if self._border is not None:
            return self._border.run(inputs, lambda arrays: self.variant(arrays).run(arrays))
        return self.variant(inputs, types).run(inputs)

    @cached_property
    def _border(self) -> StringBorder | None:
        """What makes of the caller's arrays the program's, and the other way round, where they differ."""
        info = self._first.info
        return StringBorder(info) if info.is_translated else None

    @cached_property
    def _again(self) -> Callable[[Sequence[Any]], list[Any] | None] | None:
        """What runs tensors such as came before, of a program on a GPU that makes nothing of them first."""
        first, info = self._first, self._first.info
        if info.is_translated or first.target != "cuda" or not isinstance(first, Variant):
            return None
        several = len(self._variants) + len(self._pending) > 1
        return None if several or info.reads_objects or info.semantics else first.again

    def _read(self, inputs: Sequence[Any]) -> tuple[Sequence[Any], Types | None]:
        """`inputs` as arrays, and the types of a frame's columns, where there is a program for them."""
        try:
            return self._plain(named_rows(self._first.info, inputs), self._first.info), None
        except ColumnsApart as apart:
            return self._plain(inputs, replace(self._first.info, types_apart=False)), apart.types

    def _plain(self, inputs: Sequence[Any], info: ModelInfo) -> Sequence[Any]:
        """`inputs` with frames as arrays of the columns that the model was fitted on; strings are numbers."""
        if self._documents is not None:
            return [self._documents.counted(x) for x in inputs]
        if self._text_columns is not None:
            return [self._text_columns.rows(x, info.types_apart) for x in inputs]
        if info.semantics:
            return [named_rows_of(info, x) for x in inputs]
        if inputs and is_sparse(inputs[0]):
            return inputs
        if info.words or info.hashed:
            return [numbered(info, x) if info.inputs == ("x",) else named(info, x) for x in inputs]
        if info.kind != "network" and inputs and is_objects(inputs[0]):
            inputs = [numbers_of_objects(info, inputs[0]), *inputs[1:]]
        if info.integers:
            return [integers_as_floats(info, x) for x in inputs]
        if type(inputs[0] if inputs else None) is np.ndarray:
            return inputs
        return [fitted_columns(info, x) if is_data_frame(x) else x for x in inputs]

    @cached_property
    def _documents(self) -> Documents | None:
        """What counts documents, where the input is some."""
        facts = self._first.info.text
        return None if facts is None else Documents(facts)

    @cached_property
    def _text_columns(self) -> TextColumns | None:
        """What counts columns of documents, where the input has some."""
        return TextColumns(self._first.info) if self._first.info.texts else None

    def __call__(self, *inputs: Any) -> Any:
        """The output, or a tuple of them."""
        if len(inputs) == 1:
            rows = self._rows.get(_ONLY)
            for call in self._row_calls(_ONLY) if rows is None else rows:
                if (found := call(inputs[0])) is not None:
                    return found
        outputs = self.run(inputs)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def variant(
        self, inputs: Sequence[Any], types: Types | None = None
    ) -> Variant | SizedVariant | SparseRows | CsrRows:
        """The program that takes these inputs, of a frame whose columns had such types."""
        own = None if types is None else self._typed.of(types)
        if not inputs or not is_sparse(inputs[0]):
            return own or self._of_dtype(inputs)
        own = own or self._csr.of(_name_of(inputs[0].dtype)) or self._of_dtype(inputs)
        if not isinstance(own, SizedVariant) and own.info.stored:
            return CsrRows(own)
        return SparseRows(own, self._first.info)

    def _of_dtype(self, inputs: Sequence[Any]) -> Variant | SizedVariant:
        if len(self._variants) + len(self._pending) == 1 or not inputs:
            return self._first
        # A torch dtype prints as torch.float32; a data frame has one only as an array.
        x = inputs[0] if hasattr(inputs[0], "dtype") else as_array("0", inputs[0])
        name = _name_of(x.dtype)
        if name in self._variants or name in self._pending:
            return self._variants.get(name) or self._compiled(name)
        return self._variants.get("float64") or self._first

    def _compiled(self, name: str) -> Variant | SizedVariant:
        """A variant that was pending; compiled once, whoever asks first."""
        with self._lock:
            if name not in self._variants:
                self._variants[name] = self._pending[name]()
                del self._pending[name]
                self._rows = {}
            return self._variants[name]

    def _only_output(self) -> str | None:
        """The name of the output, if there is one alone."""
        first = self._first
        alone = isinstance(first, Variant) and len(first.outputs) == 1
        return first.outputs[0].name if alone else None

    def _row_calls(self, name: str) -> tuple[RowCall, ...]:
        """Calls of a method with one row, of the input dtypes that there is a program for."""
        output = self._only_output() if name == _ONLY else self._methods.get(name)
        looked_at = name == "predict_log_proba" and output == self._methods.get("predict_proba")
        variants = [] if looked_at or not isinstance(output, str) else [*self._variants.values()]
        casts = len(self._variants) + len(self._pending) == 1
        calls = [v.row_call(str(output), casts) for v in variants if isinstance(v, Variant)]
        found = self._rows[name] = tuple(call for call in calls if call is not None)
        return found

    def _method(self, name: str, X: Any) -> Any:
        rows = self._rows.get(name)
        for call in self._row_calls(name) if rows is None else rows:
            if (found := call(X)) is not None:
                return self._labels(found) if name == "predict" else found
        return self._method_of_any(name, X)

    def _method_of_any(self, name: str, X: Any) -> Any:
        output = self._methods.get(name)
        if output is None:
            known = ", ".join(self._methods) or "none"
            raise UnsupportedError(f"method '{name}' of this model; it has {known}")
        results = None if self._again is None else self._again([X])
        variant = self._first
        if results is None:
            inputs, types = self._read([X])
            variant = self.variant(inputs, types)
            if isinstance(variant, Variant) and isinstance(output, str):
                results = variant.run_for(inputs, output)
            else:
                results = variant.run(inputs)
        names = [p.name for p in variant.outputs]
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
        if self._classes is None:
            return result
        return self._classes[number or 0][result]

    @cached_property
    def _classes(self) -> list[Array] | None:
        """The class labels of each output, by their numbers."""
        info = self._first.info
        if info.classes is None:
            return None
        dtype = np.dtype(info.label_dtype) if info.label_dtype else None
        several = isinstance(self._methods.get("predict"), list | tuple)
        return [np.asarray(c, dtype) for c in (info.classes if several else [info.classes])]

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
    def methods(self) -> tuple[str, ...]:
        """Which of the source model's methods it has: "predict", "transform" and so on."""
        return tuple(self._methods)

    @property
    def takes_strings(self) -> bool:
        """Whether its rows are documents, or some of their columns strings, so that they are objects."""
        return self._first.info.takes_strings

    @property
    def target(self) -> str:
        """ "cpu" or "cuda"."""
        return self._first.target

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
        """Levels, rOperators, rKernels, waves, arena bytes and their ratio to the bound, mode and why.

        `batch`: "any", "fixed", or, where rows of it mix, the sizes compiled for and what mixes them.
        """
        return {**self._first.report(), **self._csr.report()}

    def timelines(
        self, inputs: Sequence[Any] | None = None, mode: str = "persistent"
    ) -> list[Timeline]:
        """The schedule as planned and, with inputs, as a warm call of it was measured.

        `mode` is serial, per-wave or persistent, and the last alone on a GPU, for which a kernel with stamps
        is compiled then. Raises UnsupportedError for another.
        """
        return self._first.timelines(inputs, mode)

    # Keeping

    def __deepcopy__(self, memo: object) -> CompiledProgram:
        """Itself, if it has no state: nothing else of a program changes. Else raises UnsupportedError."""
        if len(self.state):
            raise UnsupportedError("a copy of a program with state: save it, and load it as often")
        return self

    def __copy__(self) -> CompiledProgram:
        """As deeply."""
        return self.__deepcopy__(None)

    def __reduce__(self) -> NoReturn:
        """Raises UnsupportedError: machine code is no data."""
        raise UnsupportedError(
            "a pickle of a program: program.save(path) keeps it, irkit.load(path) is it again, and "
            "irkit.Scorer(program) and irkit.sklearn.CompiledEstimator may be pickled"
        )

    def save(self, path: Path | str) -> None:
        """Write the program to a file; with several dtypes, to `path` and `path` + `.<dtype>`.

        The state that it has now goes with it. Raises ArtifactError if that cannot be written.
        """
        for name in list(self._pending):
            self._compiled(name)
        artifacts = {n: v.kept() for n, v in {**self._variants, **self._typed.saved()}.items()}
        artifacts |= {
            f"{PREFIX}{name}": v.kept()
            for name, v in self._csr.all().items()
            if v is not self._first
        }
        keys = {name: artifact.key for name, artifact in artifacts.items()}
        path = Path(path)
        # The first file, which names the others, comes last: until then there is no new program.
        for name in reversed(keys):
            artifact = replace(artifacts[name], variants=keys)
            first = name == next(iter(keys))
            if first:
                artifact = replace(artifact, state=self.state.arrays(), initial=self.state.initial)
            artifact.save(path if first else path.with_name(f"{path.name}.{name}"))


_ONLY = ""
"""In place of a method: a call of the program, where it has one output."""


@lru_cache(maxsize=64)
def _name_of(dtype: Hashable) -> str:
    """ "float32" of NumPy's type of that name, and of torch's."""
    return str(dtype).rpartition(".")[2]


def load_artifacts(path: Path) -> dict[str, Artifact]:
    """What `CompiledProgram.save` wrote, by input dtype. Raises ArtifactError on any other file."""
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
    return artifacts


def program_of(artifacts: Mapping[str, Artifact], mode: str, where: str) -> CompiledProgram:
    """The program of artifacts by input dtype; the first has its state, which was read from `where`."""
    made = {name: Variant(artifact, mode) for name, artifact in artifacts.items()}
    variants = {n: v for n, v in made.items() if not n.startswith((PREFIX, TYPES))}
    typed = TypedPrograms({v.info.types: v for v in made.values() if v.info.types})
    sparse = {
        name.removeprefix(PREFIX): v
        for name, v in made.items()
        if name.startswith(PREFIX) or (v.info.stored and not v.info.types)
    }
    first = next(iter(artifacts.values()))
    program = CompiledProgram(variants, None, first.initial, CsrPrograms(sparse), typed)
    program.state.restore(first.state, where)
    return program
