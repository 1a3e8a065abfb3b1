"""`irkit.compile`: from a model to a program that runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from xdsl.dialects.builtin import ModuleOp

from irkit.driver.compiler.artifacts import build_artifact
from irkit.driver.compiler.batch import SizedModel, read_for_batch
from irkit.driver.compiler.csr import csr_model, of_sparse_rows
from irkit.driver.compiler.declared_state import declare_state, has_state
from irkit.driver.compiler.fastmath import check_fastmath, set_fastmath
from irkit.driver.compiler.known_files import note_of
from irkit.driver.compiler.models import ONE_BUILDER
from irkit.driver.compiler.precision import ask_precision, check_precision
from irkit.driver.compiler.progress import ProgressBar
from irkit.driver.compiler.targets import check_policy, planned_device, target_of
from irkit.driver.diagnostics.library_errors import library_errors
from irkit.driver.flags import check_flags
from irkit.driver.pipelines.collecting import seldom_collected
from irkit.driver.pipelines.standard import WAVEFRONT
from irkit.errors import UnsupportedError
from irkit.row_forms import PLAIN, RowForm
from irkit.runtime.column_types import TypedPrograms
from irkit.runtime.csr_rows import CsrPrograms
from irkit.runtime.loading import ready
from irkit.runtime.mode_choice import check_mode
from irkit.runtime.program import CompiledProgram
from irkit.runtime.side_by_side import none_left_over
from irkit.runtime.sized import OpenBatch, SizedVariant
from irkit.runtime.variant import Variant
from irkit.schedule.model import VDevice

if TYPE_CHECKING:
    from irkit.frontends.module import ImportedModel
    from irkit.runtime.artifact import Artifact
    from irkit.runtime.cuda.absent import AbsentDevice

DTYPES = ("float64", "float32")


@dataclass(frozen=True)
class Arithmetic:
    """In what a program's arithmetic is other than the model's; None: as the model says."""

    fastmath: Collection[str] | None
    precision: str | None


class Builder(Protocol):
    """Compiles a model for an input dtype, and rows of a form; sparse ones are CSR matrices."""

    def __call__(self, dtype: str, rows: RowForm = PLAIN) -> Variant | SizedVariant:
        """The program. Raises UnsupportedError."""
        ...


@dataclass(frozen=True)
class Plan:
    """What a program is planned for and by: a vDevice, a policy, and measured times or estimates."""

    device: VDevice
    policy: str
    measure: bool


def compile_model(
    model: Any,
    target: str = "auto",
    *,
    device: str | VDevice | None = None,
    policy: str = WAVEFRONT,
    measure: bool = False,
    mode: str = "auto",
    dtype: str | None = None,
    fastmath: Collection[str] | None = None,
    precision: str | None = None,
    cache: bool = True,
    shapes: Mapping[str, Sequence[int]] | None = None,
    constants: Mapping[str, Any] | None = None,
    batch: int | None = None,
    state: Mapping[str, str] | None = None,
    initial_state: Mapping[str, Any] | None = None,
    progress: bool | None = None,
) -> CompiledProgram:
    """Compile a trained model into a program with a proved static schedule.

    `model`: a fitted scikit-learn, LightGBM, XGBoost or CatBoost estimator or Pipeline, a YDF model, an
    `onnx.ModelProto`, a path of an `.onnx` or graph-level `.mlir` file, of LightGBM's text (`.txt`), of
    XGBoost's `.json` or `.ubj` (of each the Booster that its library would read), of CatBoost's `.json` or of
    a YDF model's folder, or an xDSL module.
    `target`: "cpu", "cuda", or "auto" (a GPU if there is one). `device`: the vDevice to plan for, by its name
    ("cpu4", "h200", one that `irkit.extending.add_device` added) or as it is; by default the target's. A
    program for a CUDA device that is not there can be saved, and raises DeviceError when it is called.
    `policy`: who places launches on vEUs: "wavefront", "list" (by critical path), "auto" (of these, what is
    estimated to end sooner), "memory" (one after another, in the order of the fewest bytes in use), or one
    that `irkit.extending.add_policy` added. `measure`: whether rKernels
    and grids are chosen by what they take on the device, which is measured once and kept in the user's cache,
    and not by estimates; it takes minutes, and where the device is not at hand estimates stay, as the report
    then says. `mode`: "auto"
    measures; "per-op", "per-wave", "persistent" (and "serial" on a CPU) fix it. `dtype`: "float32" or
    "float64" if only arrays of that dtype will come. `fastmath`: in what the arithmetic may differ from
    the model's, in LLVM's words: `{"afn"}` lets exp, tanh, erf and their like be computed in vector
    registers, to about the C library's error, `()` keeps the C library's; by default as the model's own
    library has it (ONNX Runtime does, and NumPy for scikit-learn; LightGBM, XGBoost, CatBoost and YDF do
    not).
    `precision`: in which precision products of float32 are computed: "float32" (what a model means that
    says nothing), to at most plain fp32's error by any method (on a GPU, of sums to which 64 terms and more
    contribute; sums of few may be off by up to 4.7e-7); "ieee", by plain fp32 arithmetic alone;
    "tf32", "bf16" or "f16", with factors rounded to that format and sums of float32, or more exactly where
    the target has nothing faster. `cache`: look for, and keep, the result on disk. For ONNX models,
    `shapes` (input → shape) fixes symbolic dimensions and `constants` (input → array) makes inputs part of
    the program. `batch`: a batch size to compile for; without one the program takes any, and a model whose
    rows of the batch mix is compiled anew for each size that it is called with. `state` (input → output)
    makes inputs state: the program keeps them, and what a call makes of such an output is the next call's
    input. Neither is an argument or a result of calls any more; `program.state` has them by the inputs'
    names. They start as zeros, or as `initial_state` says (input → array). `progress`: whether a bar is
    shown on stderr while it takes more than a second; by default on a terminal.

    Raises UnsupportedError with all that is missing, InvalidModelError, DeviceError.
    """
    given = {
        "state": state,
        "initial_state": initial_state,
        "shapes": shapes,
        "constants": constants,
    }
    _check_kinds(device, batch, given)
    check_flags(
        "irkit.compile", measure=measure, cache=cache, progress=progress is not None and progress
    )
    chosen = planned_device(target, device)
    check_mode(target_of(chosen), mode)
    if dtype not in (None, *DTYPES):
        raise UnsupportedError(f"dtype '{dtype}'; expected {' or '.join(DTYPES)}")
    check_policy(policy)
    check_fastmath(fastmath)
    check_precision(precision)
    if state and _dtypes(model) != ["float32"]:
        raise UnsupportedError("state is for ONNX networks and modules")
    fixed = {"shapes": shapes, "constants": constants}
    arithmetic = Arithmetic(fastmath, precision)
    plan = Plan(chosen, policy, measure)
    build = _builder(model, plan, mode, cache, fixed, progress, arithmetic, batch, state)
    names = [dtype] if dtype is not None else _dtypes(model)
    first = build(names[0])
    if len(names) > 1 and _same_for_all(first):
        names = names[:1]
    made = list(names)
    pending: dict[str, Callable[[], Variant | SizedVariant]] = {
        n: (lambda n=n: build(n)) for n in names[1:]
    }
    csr = _csr_programs(first, made, build, batch, target_of(chosen) == "cuda")
    typed = TypedPrograms({}, lambda types: build("float64", RowForm(types=types)))
    return CompiledProgram({names[0]: first}, pending, initial_state, csr, typed)


def _csr_programs(
    first: Variant | SizedVariant,
    names: Sequence[str],
    build: Builder,
    batch: int | None,
    on_gpu: bool,
) -> CsrPrograms:
    """The programs of rows of CSR matrices, compiled when such rows first come."""
    if first.info.stored and isinstance(first, Variant):
        return CsrPrograms({names[0]: first})
    if first.info.counts_documents:
        # Counts of words were tried as what is stored, before.
        return CsrPrograms({}, why_not="the model reads more of its counts than what is stored")
    absent = ("nan", "zero") if on_gpu else ("zero",)
    if first.info.absent not in absent or not isinstance(first, Variant) or batch is not None:
        return CsrPrograms({})

    def of_stored(dtype: str) -> Variant:
        made = build(dtype, RowForm(sparse=True))
        assert isinstance(made, Variant)
        return made

    return CsrPrograms({}, of_stored, names)


def _check_kinds(device: object, batch: object, named: Mapping[str, object]) -> None:
    """Raises UnsupportedError for an argument that is of another kind than it can be."""
    if device is not None and not isinstance(device, str | VDevice):
        raise UnsupportedError(f"device={device!r}: expected a name or a vDevice")
    if batch is not None and (isinstance(batch, bool) or not isinstance(batch, int)):
        raise UnsupportedError(f"batch={batch!r}: expected a number of rows")
    for name, value in named.items():
        if value is not None and not isinstance(value, Mapping):
            raise UnsupportedError(f"{name}={value!r}: expected a mapping from names of inputs")


def absent_device(artifact: Artifact, mode: str) -> AbsentDevice | None:
    """What stands in for the GPU that a program was compiled for, where it cannot run; else None."""
    if artifact.target != "cuda":
        return None
    from irkit.runtime.cuda.absent import AbsentDevice
    from irkit.runtime.cuda.availability import why_not
    from irkit.runtime.cuda.driver import device
    from irkit.runtime.cuda.facts import read_facts
    from irkit.runtime.cuda.fitting import why_elsewhere

    reason = why_not()
    if reason is None:
        program, facts = read_facts(artifact.source)
        reason = why_elsewhere(program.device, facts, device())
    return None if reason is None else AbsentDevice(artifact, mode, reason)


def _dtypes(model: Any) -> list[str]:
    """Which input dtypes a model can be compiled for."""
    if isinstance(model, str | Path):
        return ["float32"] if Path(model).suffix in (".mlir", ".onnx") else list(DTYPES)
    if isinstance(model, ModuleOp) or type(model).__name__ == "ModelProto":
        return ["float32"]
    return list(DTYPES)


def _same_for_all(variant: Variant | SizedVariant) -> bool:
    """Whether the model itself casts every other dtype, so that one variant serves all."""
    return bool(variant.info.casts) or variant.inputs[0].dtype not in DTYPES


def _of_rows(
    read: Callable[[RowForm], ImportedModel | SizedModel], rows: RowForm, on_gpu: bool
) -> ImportedModel | SizedModel:
    """The model for rows of a form, as they will come to its program."""
    if rows.sparse:
        return of_sparse_rows(read(rows), lambda: read(PLAIN), on_gpu)
    return _counts_stored(read(rows), on_gpu)


def _counts_stored(found: ImportedModel | SizedModel, on_gpu: bool) -> ImportedModel | SizedModel:
    """A model that was read, by what its rows store where they are counts of words."""
    if isinstance(found, SizedModel) or not found.info.counts_documents:
        return found
    # Its rows are counts of words: it has no others.
    try:
        return csr_model(found, on_gpu)
    except UnsupportedError:
        return found


def _builder(
    model: Any,
    plan: Plan,
    mode: str,
    cache: bool,
    fixed: Mapping[str, Any],
    progress: bool | None,
    arithmetic: Arithmetic,
    batch: int | None,
    state: Mapping[str, str] | None,
) -> Builder:
    def built(imported: ImportedModel, bar: ProgressBar) -> Artifact:
        set_fastmath(imported.module, arithmetic.fastmath)
        ask_precision(imported.module, arithmetic.precision)
        with library_errors():
            declare_state(imported, state)
        policy, measure = plan.policy, plan.measure
        return build_artifact(imported, plan.device, cache, bar, policy, measure, loaded=True)

    def loaded(artifact: Artifact, bar: ProgressBar) -> Variant:
        symbols = list(artifact.report["roperators"])
        bar.stage("machine code of rOperator", len(symbols), lambda: ready(artifact, symbols))
        return Variant(artifact, mode, absent_device(artifact, mode))

    def build(dtype: str, rows: RowForm = PLAIN) -> Variant | SizedVariant:
        # What is measured hangs on more than its arguments.
        noted = cache and not plan.measure
        settings = (plan, dtype, batch, fixed, arithmetic, state)
        with ONE_BUILDER, seldom_collected(), none_left_over(), ProgressBar(progress) as bar:
            bar.stage("reading the model")
            note = note_of(model, settings) if noted and rows == PLAIN else None
            known = note.artifact() if note is not None else None
            if known is not None:
                return loaded(known, bar)
            on_gpu = target_of(plan.device) == "cuda"

            def read(form: RowForm) -> ImportedModel | SizedModel:
                return read_for_batch(model, dtype, batch, {**fixed, "rows": form})

            found = _of_rows(read, rows, on_gpu)
            if not isinstance(found, SizedModel):
                artifact = built(found, bar)
                if note is not None:
                    note.keep(artifact)
                return loaded(artifact, bar)
        if state or has_state(found.probe):
            raise UnsupportedError(
                "state of a model that has a program for each batch size, as rows of the batch mix"
                " (name one size: irkit.compile(..., batch=N)):",
                found.reasons,
            )
        sized = OpenBatch(found.probe.info, target_of(plan.device), found.axes, found.reasons)
        return SizedVariant(sized, lambda rows: at_size(found, rows))

    def at_size(found: SizedModel, rows: int) -> Variant:
        with ONE_BUILDER, seldom_collected(), none_left_over(), ProgressBar(progress) as bar:
            bar.stage(f"reading the model for {rows} rows")
            return loaded(built(found.at(rows), bar), bar)

    return build
