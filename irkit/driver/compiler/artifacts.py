"""Run the standard pipeline, emit, and keep the result on disk."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from irkit.context import IrkitContext
from irkit.dialects.functions import function_named
from irkit.dialects.segments import segments_of
from irkit.dialects.state import state_of
from irkit.driver.compiler.batch import info_with_borders, info_with_limits
from irkit.driver.compiler.cache import cache_key, cached, keep, programs_folder
from irkit.driver.compiler.identity import model_digest
from irkit.driver.compiler.progress import SILENT, PassesShown, ProgressBar
from irkit.driver.compiler.report import figures
from irkit.driver.compiler.targets import DEVICES, planned_device, target_of, usual_device
from irkit.driver.compiler.workers_ahead import WorkersAhead
from irkit.driver.device_at_hand import why_elsewhere
from irkit.driver.files.model_files import used_weights
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.pipelines.standard import STANDARD, WAVEFRONT
from irkit.driver.registry import register_dialects
from irkit.runtime.artifact import LEVELS, Artifact
from irkit.runtime.fewer_collections import fewer_collections
from irkit.runtime.side_by_side import none_left_over
from irkit.runtime.state_identity import IDENTITY
from irkit.schedule.model import VDevice

if TYPE_CHECKING:
    from irkit.frontends.module import ImportedModel


def build_artifact(
    imported: ImportedModel,
    device: str | VDevice,
    cache: bool = True,
    bar: ProgressBar = SILENT,
    policy: str = WAVEFRONT,
    measure: bool = False,
    memory_budget: int | None = None,
    loaded: bool = False,
) -> Artifact:
    """Run the standard pipeline for a vDevice (a target stands for its usual one), scheduled by `policy`,
    and emit; from the disk cache if the same model was compiled before. With `measure`, by times measured on
    the device; by estimates where it is not at hand, which the report then says. `memory_budget`: bytes that
    may be in use at once; with one, and where ops are in segments, the policy is that of memory. `loaded`:
    machine code is made of it next, within the caller's `none_left_over`, by processes that start before."""
    if isinstance(device, str) and device in DEVICES:
        device = usual_device(device)
    device = planned_device(device=device)
    unmeasured = why_elsewhere(device) if measure else None
    measure = measure and unmeasured is None
    recompute = _recomputation(imported, memory_budget)
    plan = _Plan("memory" if recompute else policy, measure, recompute)
    named = _numbered(segments_of(imported.module))
    key = cache_key(imported, (device, STANDARD, plan, unmeasured, memory_budget, named))
    folder = programs_folder() if cache else None
    path = folder / f"{key}.irkit" if folder is not None else None
    known = cached(path)
    if known is not None:
        return known
    identity = model_digest(imported) if _keeps_state(imported) else None
    with none_left_over(), fewer_collections():
        artifact = _compile(imported, device, bar, plan, loaded)
    artifact.report["memory_budget"] = memory_budget
    artifact.report[IDENTITY] = identity
    if unmeasured is not None:
        artifact.report["not_measured"] = unmeasured
    if path is not None:
        keep(path, artifact)
    return artifact


def _keeps_state(imported: ImportedModel) -> bool:
    main = function_named(imported.module, "main")
    return main is not None and bool(state_of(main))


@dataclass(frozen=True)
class _Plan:
    """By what a program is scheduled: a policy, times that are measured, and what is computed again."""

    policy: str
    measure: bool
    recompute: str


def _recomputation(imported: ImportedModel, budget: int | None) -> str:
    """The pass that computes again what is not to be kept; nothing where all is."""
    if budget is not None:
        return f"rematerialise{{budget={budget}}}"
    return "rematerialise" if any(segments_of(imported.module)) else ""


def _numbered(named: Iterable[tuple[int, str]]) -> tuple[tuple[int, int], ...]:
    """Segments by number, in order: those of two traces have other names, and are the same."""
    numbers: dict[str, int] = {}
    return tuple((place, numbers.setdefault(name, len(numbers))) for place, name in named)


def _compile(
    imported: ImportedModel, device: VDevice, bar: ProgressBar, plan: _Plan, loaded: bool
) -> Artifact:
    from irkit.lower.task_to_numba.emit import emit_module

    target = target_of(device)
    module, texts, seconds = imported.module, dict[str, str](), dict[str, float]()
    ctx = IrkitContext(weights=imported.weights)
    register_dialects(ctx)
    named: set[str] = set()
    watched = [WorkersAhead(target)] if target == "cuda" or loaded else []
    for level in LEVELS:
        bar.stage(f"{level} level")
        start = time.perf_counter()
        run_level(
            ctx,
            module,
            level,
            device.name,
            policy=plan.policy,
            measure=plan.measure,
            recompute=plan.recompute,
            instruments=[*watched, PassesShown(bar, level, len(STANDARD[level]))],
        )
        seconds[level] = round(time.perf_counter() - start, 3)
        texts[level] = str(module)
        if level == "graph":
            named = used_weights(module)
    bar.stage("emission")
    start = time.perf_counter()
    source = emit_module(module, ctx.weights, "cuda" if target == "cuda" else "cpu")
    seconds["emit"] = round(time.perf_counter() - start, 3)
    names = {name for name in ctx.weights if f'"{name}"' in texts["schedule"]}
    weights = {name: ctx.weights[name] for name in sorted(names)}
    report = {
        "target": target,
        "device": device.name,
        "policy": plan.policy,
        "seconds": seconds,
        **figures(module),
    }
    cubin = b""
    if target == "cuda":
        from irkit.runtime.cuda.compiling import compile_module
        from irkit.runtime.cuda.facts import read_facts

        bar.stage("machine code for the GPU")
        start = time.perf_counter()
        _, facts = read_facts(source)
        cubin = compile_module(source, facts.entries, facts.threads, facts.arch)
        seconds["cubin"] = round(time.perf_counter() - start, 3)
    info = info_with_borders(info_with_limits(imported.info, module), module)
    kept = sorted(named - weights.keys()) if target == "cuda" else []
    graph_weights = {name: ctx.weights[name] for name in kept}
    return Artifact(
        target, source, weights, info.to_json(), texts, report, cubin, graph_weights=graph_weights
    )
