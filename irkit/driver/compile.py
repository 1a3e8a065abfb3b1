"""`irkit.compile`: from a model to a program that runs."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.utils.exceptions import PassFailedException

from irkit import extending
from irkit.context import IrkitContext
from irkit.dialects.task import AppendOp, ProgramOp, ROperatorOp
from irkit.driver.checking import check_module
from irkit.driver.diagnostics import UserError
from irkit.driver.inputs import used_weights
from irkit.driver.loading import make_context
from irkit.driver.parsing import parse_module
from irkit.driver.pipelines import STANDARD, build_pipeline
from irkit.driver.progress import SILENT, ProgressBar
from irkit.driver.registry import all_passes, register_dialects
from irkit.errors import ArtifactError, DeviceError, InvalidModelError, UnsupportedError
from irkit.interp import level_of
from irkit.model_info import ModelInfo
from irkit.passes.task.plain import device_of
from irkit.runtime.artifact import LEVELS, Artifact, cache_folder, ready
from irkit.runtime.program import CompiledProgram, Variant, check_mode
from irkit.weights import WeightStore

if TYPE_CHECKING:
    from irkit.frontends.module import ImportedModel

TARGETS = ("auto", "cpu", "cuda")
DTYPES = ("float64", "float32")
DEVICES = {"cpu": "cpu", "cuda": "h200"}


def compile_model(
    model: Any,
    target: str = "auto",
    *,
    mode: str = "auto",
    dtype: str | None = None,
    cache: bool = True,
    shapes: Mapping[str, Sequence[int]] | None = None,
    constants: Mapping[str, Any] | None = None,
    progress: bool | None = None,
) -> CompiledProgram:
    """Compile a trained model into a program with a proved static schedule.

    `model`: a fitted scikit-learn, LightGBM or XGBoost estimator or Pipeline, an `onnx.ModelProto`, a
    path of an `.onnx` or graph-level `.mlir` file, or an xDSL module. `target`: "cpu", "cuda", or
    "auto" (a GPU if there is one). `mode`: "auto" measures; "per-op", "per-wave", "persistent" (and
    "serial" on a CPU) fix it. `dtype`: "float32" or "float64" if only arrays of that dtype will come.
    `cache`: look for, and keep, the result on disk. For ONNX models, `shapes` (input → shape) fixes symbolic
    dimensions and `constants` (input → array) makes inputs part of the program. `progress`: whether a bar is
    shown on stderr while it takes more than a second; by default on a terminal.

    Raises UnsupportedError with all that is missing, InvalidModelError, DeviceError.
    """
    chosen = resolve_target(target)
    check_mode(chosen, mode)
    if dtype not in (None, *DTYPES):
        raise UnsupportedError(f"dtype '{dtype}'; expected {' or '.join(DTYPES)}")
    fixed = {"shapes": shapes, "constants": constants}
    build = _builder(model, chosen, mode, cache, fixed, progress)
    names = [dtype] if dtype is not None else _dtypes(model)
    first = build(names[0])
    if len(names) > 1 and _same_for_all(first):
        names = names[:1]
    pending = {n: (lambda n=n: build(n)) for n in names[1:]}
    return CompiledProgram({names[0]: first}, pending)


def resolve_target(target: str) -> str:
    """ "cpu" or "cuda". Raises DeviceError for a target that is unknown or absent."""
    if target not in TARGETS:
        raise DeviceError(f"target '{target}': expected {', '.join(TARGETS)}")
    if target == "cpu":
        return "cpu"
    from irkit.runtime.cuda import availability

    reason = availability.why_not()
    if reason is None:
        return "cuda"
    if target == "cuda":
        raise DeviceError(f"target 'cuda': {reason}")
    return "cpu"


def _dtypes(model: Any) -> list[str]:
    """Which input dtypes a model can be compiled for."""
    if isinstance(model, ModuleOp | str | Path) or type(model).__name__ == "ModelProto":
        return ["float32"]
    return list(DTYPES)


def _same_for_all(variant: Variant) -> bool:
    """Whether the model itself casts every other dtype, so that one variant serves all."""
    return bool(variant.info.casts) or variant.inputs[0].dtype not in DTYPES


def _builder(
    model: Any,
    target: str,
    mode: str,
    cache: bool,
    fixed: Mapping[str, Any],
    progress: bool | None,
) -> Callable[[str], Variant]:
    def build(dtype: str) -> Variant:
        with ProgressBar(progress) as bar:
            bar.stage("reading the model")
            imported = read_model(model, dtype, **fixed)
            artifact = build_artifact(imported, target, cache, bar)
            symbols = list(artifact.report["roperators"])
            bar.stage("machine code of rOperator", len(symbols), lambda: ready(artifact, symbols))
            return Variant(artifact, mode)

    return build


def read_model(model: Any, dtype: str, **fixed: Any) -> ImportedModel:
    """The graph-level module of any model that `compile_model` takes, `fixed` being its `shapes` and
    `constants`."""
    from irkit.frontends import import_model
    from irkit.frontends.module import MODEL_ATTRIBUTE, ImportedModel

    weights = WeightStore()
    if isinstance(model, str | Path) and Path(model).suffix == ".mlir":
        model, weights = _read_mlir(str(model))
    if not isinstance(model, ModuleOp):
        return import_model(model, dtype, **fixed)
    if any(fixed.values()):
        raise UnsupportedError("shapes and constants are for ONNX models only")
    # Passes rewrite in place, and the module is its owner's.
    model = model.clone()
    _check_own_module(model, weights)
    facts = model.attributes.get(MODEL_ATTRIBUTE)
    info = ModelInfo.from_json(facts.data) if isinstance(facts, StringAttr) else _plain_info(model)
    return ImportedModel(model, weights, info)


def _read_mlir(path: str) -> tuple[ModuleOp, WeightStore]:
    try:
        ctx = make_context(path)
        module = parse_module(ctx, Path(path).read_text(encoding="utf-8"), path)
        check_module(module)
    except UserError as error:
        raise _invalid(error) from None
    except OSError as error:
        raise InvalidModelError(f"cannot read '{path}': {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidModelError(f"'{path}' is no text file") from None
    return module, ctx.weights


def _invalid(error: UserError) -> InvalidModelError:
    place = error.diagnostic.place
    return InvalidModelError(f"{place}: {error}" if place is not None else str(error))


def _check_own_module(module: ModuleOp, weights: WeightStore) -> None:
    """Raises InvalidModelError for a module that does not verify, is at no level to start from, or
    whose weights are not there."""
    try:
        check_module(module)
    except UserError as error:
        raise _invalid(error) from None
    level = level_of(module)
    if level not in ("graph", "tensor"):
        raise InvalidModelError(
            f"expected a module at the graph or tensor level, got the {level} level"
        )
    missing = sorted(used_weights(module) - set(weights))
    if missing:
        raise InvalidModelError(
            f"the module names weights that are not there: {', '.join(missing)}"
        )


def _plain_info(module: ModuleOp) -> ModelInfo:
    """Facts about a module that no front end made."""
    from xdsl.dialects.func import FuncOp

    main = next(
        (op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == "main"), None
    )
    if main is None:
        raise InvalidModelError("the module has no func.func @main")
    inputs = tuple(f"input{i}" for i in range(len(main.function_type.inputs)))
    outputs = tuple(f"output{i}" for i in range(len(main.function_type.outputs)))
    return ModelInfo("network", inputs, outputs, source="mlir")


def build_artifact(
    imported: ImportedModel, target: str, cache: bool = True, bar: ProgressBar = SILENT
) -> Artifact:
    """Run the standard pipeline and emit; from the disk cache if the same model was compiled before."""
    from irkit.schedule.devices import device

    text = str(imported.module)
    key = _cache_key(text, imported.weights, repr(device(DEVICES[target])))
    folder = cache_folder() if cache else None
    path = folder / "programs" / f"{key}.irkit" if folder is not None else None
    known = _cached(path)
    if known is not None:
        return known
    artifact = _compile(imported, target, bar)
    if path is not None:
        # A cache that cannot be written is none: the program is there all the same.
        with suppress(OSError, ArtifactError):
            path.parent.mkdir(parents=True, exist_ok=True)
            artifact.save(path)
    return artifact


def _cached(path: Path | None) -> Artifact | None:
    """What the disk cache has; an entry that is damaged counts as none and is written anew."""
    if path is None or not path.exists():
        return None
    try:
        return Artifact.load(path)
    except ArtifactError:
        return None


def _cache_key(text: str, weights: WeightStore, device: str) -> str:
    # Weight names are digests of their content, and the text names them all.
    h = hashlib.sha256(text.encode())
    for name in sorted(weights):
        h.update(name.encode())
    h.update(device.encode())
    h.update(_own_digest())
    h.update(extending.digest())
    return h.hexdigest()[:32]


@cache
def _own_digest() -> bytes:
    """Digest of irkit's own sources: another irkit compiles anew."""
    h = hashlib.sha256()
    root = Path(__file__).parent.parent
    for path in sorted(root.rglob("*.py")):
        h.update(path.relative_to(root).as_posix().encode())
        h.update(path.read_bytes())
    return h.digest()


def _compile(imported: ImportedModel, target: str, bar: ProgressBar) -> Artifact:
    from irkit.lower.task_to_numba.emit import emit_module

    module, texts, seconds = imported.module, dict[str, str](), dict[str, float]()
    ctx = IrkitContext(weights=imported.weights)
    register_dialects(ctx)
    for level in LEVELS:
        bar.stage(f"{level} level")
        start = time.perf_counter()
        run_level(ctx, module, level, DEVICES[target])
        seconds[level] = round(time.perf_counter() - start, 3)
        texts[level] = str(module)
    bar.stage("emission")
    start = time.perf_counter()
    source = emit_module(module, ctx.weights, "cuda" if target == "cuda" else "cpu")
    seconds["emit"] = round(time.perf_counter() - start, 3)
    names = {name for name in ctx.weights if f'"{name}"' in texts["schedule"]}
    weights = {name: ctx.weights[name] for name in sorted(names)}
    report = {"target": target, "seconds": seconds, **_figures(module)}
    cubin = b""
    if target == "cuda":
        from irkit.runtime.cuda.compiling import compile_module
        from irkit.runtime.cuda.facts import read_facts

        bar.stage("machine code for the GPU")
        start = time.perf_counter()
        _, facts = read_facts(source)
        cubin = compile_module(source, facts.entries, facts.threads)
        seconds["cubin"] = round(time.perf_counter() - start, 3)
    return Artifact(target, source, weights, imported.info.to_json(), texts, report, cubin)


def run_level(ctx: IrkitContext, module: ModuleOp, level: str, device: str) -> None:
    """Run the standard passes that bring `module` to `level`, verifying after the last."""
    names = [f'{n}{{device="{device}"}}' if n == "partition-rtasks" else n for n in STANDARD[level]]
    for made in build_pipeline(",".join(names), all_passes()):
        try:
            made.apply(ctx, module)
        except PassFailedException as error:
            raise UnsupportedError(f"pass '{made.name}': {error}") from None
    module.verify()


def roperator_facts(roperators: Iterable[ROperatorOp]) -> dict[str, dict[str, Any]]:
    """What a report says of each rOperator, by symbol."""
    return {
        op.sym_name.data: {
            "rkernel": op.rkernel.data if op.rkernel is not None else "",
            "rtasks": op.tasks,
            "cost_ns": op.cost.value.data if op.cost is not None else 0.0,
            "from": op.sources.data if op.sources is not None else "",
        }
        for op in roperators
    }


def _figures(module: ModuleOp) -> dict[str, Any]:
    roperators = roperator_facts(op for op in module.ops if isinstance(op, ROperatorOp))
    program = next(op for op in module.ops if isinstance(op, ProgramOp))
    appends = [op for op in program.body.block.ops if isinstance(op, AppendOp)]
    return {
        "levels": list(LEVELS),
        "wait_ns": device_of(module).wait_ns,
        "roperators": roperators,
        "appends": len(appends),
        "waves": len({op.wave.value.data for op in appends}),
        "waits": sum(len(op.waits) for op in appends),
        "arena_bytes": program.arena_bytes.value.data if program.arena_bytes is not None else 0,
        "row_bytes": program.row_bytes.value.data if program.row_bytes is not None else 0,
        "arena_ratio": program.arena_ratio.value.data if program.arena_ratio is not None else 1.0,
        "proved": program.verified.data if program.verified is not None else "",
    }
