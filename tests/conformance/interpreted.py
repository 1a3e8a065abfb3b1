"""Models as programs that the graph interpreter runs: all that a compiled one does, without compiling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from xdsl.dialects.func import FuncOp

from irkit.dialects.types import numpy_dtype
from irkit.frontends import import_model
from irkit.frontends.module import ImportedModel
from irkit.interp.graph import run_graph
from irkit.row_forms import RowForm
from irkit.runtime.batch_border import BatchBorder
from irkit.runtime.column_types import TypedPrograms
from irkit.runtime.csr_rows import CsrPrograms
from irkit.runtime.input_policy import InputPolicy
from irkit.runtime.mode_choice import ModeChoice
from irkit.runtime.program import CompiledProgram
from irkit.runtime.variant import Variant
from irkit.schedule.tables import Port

BATCHES = (1, 2, 7, None)
METHODS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "score_samples",
    "transform",
)


class InterpretingExecutor:
    """The graph interpreter behind the checks that a compiled program makes."""

    def __init__(self, imported: ImportedModel) -> None:
        (main,) = (op for op in imported.module.ops if isinstance(op, FuncOp))
        self._imported, info = imported, imported.info
        inputs = ports(info.inputs, main.function_type.inputs)
        self.program: Any = SimpleNamespace(
            inputs=inputs, outputs=ports(info.outputs, main.function_type.outputs)
        )
        self.choice = ModeChoice("cpu", "serial", ())
        self.state = None
        self._policy = InputPolicy(inputs, info)

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """All outputs, in order."""
        arrays = [self._policy.host_array(i, x) for i, x in enumerate(inputs)]
        self._policy.rows(a.shape for a in arrays)
        return list(run_graph(self._imported.module, self._imported.weights, arrays))


class Interpreted(Variant):
    """A variant whose executor is the graph interpreter."""

    def __init__(self, imported: ImportedModel) -> None:
        self.artifact: Any = SimpleNamespace(target="cpu")
        self.info = imported.info
        self.executor = InterpretingExecutor(imported)
        self.inputs = self.executor.program.inputs
        self.outputs = self.executor.program.outputs
        # Where the batch is the second dimension, inputs look like those of stored rows.
        self.__dict__["_stored"] = self.info.stored > 0
        self._border = BatchBorder(self.info, self.inputs, self.outputs)


def ports(names: Sequence[str], types: Any) -> tuple[Port, ...]:
    """The ports of a function's arguments or results."""
    found: list[Port] = []
    for name, t in zip(names, types, strict=True):
        shape = tuple(-1 if s < 0 else s for s in t.get_shape())
        found.append(Port(name, str(numpy_dtype(t.element_type)), shape))
    return tuple(found)


def interpreted(model: Any) -> CompiledProgram:
    """A program for both dtypes, made as `irkit.compile` makes them."""
    first = Interpreted(import_model(model, "float64"))
    others = [] if first.info.casts else ["float32"]
    csr = CsrPrograms({})
    if first.info.absent == "zero" and not first.info.counts_documents:
        csr = CsrPrograms({}, lambda dtype: _of_sparse_rows(model, dtype), ["float64", *others])
    return CompiledProgram(
        {"float64": first},
        {d: lambda d=d: Interpreted(import_model(model, d)) for d in others},
        csr=csr,
        typed=TypedPrograms(
            {}, lambda t: Interpreted(import_model(model, "float64", rows=RowForm(types=t)))
        ),
    )


def _of_sparse_rows(model: Any, dtype: str) -> Interpreted:
    """Of rows that the host makes dense: only a compiled program has those that are stored."""
    return Interpreted(import_model(model, dtype, rows=RowForm(sparse=True)))


def same(found: Any, want: Any, rtol: float = 0.0, atol: float = 0.0) -> None:
    """Equal in type, shape and value; numbers within the tolerances."""
    if isinstance(want, list):
        assert isinstance(found, list)
        for f, w in zip(found, want, strict=True):
            same(f, w, rtol, atol)
        return
    want = want.toarray() if hasattr(want, "tocsr") else np.asarray(want)
    assert (found.dtype, found.shape) == (want.dtype, want.shape)
    if rtol == atol == 0.0 or want.dtype.kind != "f":
        assert_array_equal(found, want)
    else:
        assert_allclose(found, want, rtol=rtol, atol=atol)


def compare(
    program: Any,
    model: Any,
    x: Any,
    exact: Sequence[str] = (),
    rtol: float = 1e-6,
    atol: float = 1e-6,
    prepare: Callable[[Any], Any] = np.asarray,
) -> None:
    """Every method of the program against the model's, in several batches. Labels must be equal, and
    the values of `exact` methods have the same bits."""
    methods = [m for m in METHODS if m in program._methods]
    assert methods
    for rows in BATCHES:
        given = x[:rows]
        for method in methods:
            found = getattr(program, method)(given)
            with np.errstate(all="ignore"):
                want = getattr(model, method)(prepare(given))
            if method in exact:
                same(found, want)
            else:
                same(found, want, rtol, atol)
