"""Run the standard pipeline, emit, and keep the result on disk."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from irkit.context import IrkitContext
from irkit.driver.compiler.batch import info_with_borders
from irkit.driver.compiler.cache import cache_key, cached, keep, programs_folder
from irkit.driver.compiler.progress import SILENT, ProgressBar
from irkit.driver.compiler.report import figures
from irkit.driver.compiler.targets import DEVICES, planned_device, target_of, usual_device
from irkit.driver.device_at_hand import why_elsewhere
from irkit.driver.files.model_files import used_weights
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.pipelines.standard import STANDARD, WAVEFRONT
from irkit.driver.registry import register_dialects
from irkit.runtime.artifact import LEVELS, Artifact
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
) -> Artifact:
    """Run the standard pipeline for a vDevice (a target stands for its usual one), scheduled by `policy`,
    and emit; from the disk cache if the same model was compiled before. With `measure`, by times measured on
    the device; by estimates where it is not at hand, which the report then says."""
    if isinstance(device, str) and device in DEVICES:
        device = usual_device(device)
    device = planned_device(device=device)
    unmeasured = why_elsewhere(device) if measure else None
    measure = measure and unmeasured is None
    key = cache_key(imported, (device, STANDARD, policy, measure, unmeasured))
    folder = programs_folder() if cache else None
    path = folder / f"{key}.irkit" if folder is not None else None
    known = cached(path)
    if known is not None:
        return known
    artifact = _compile(imported, device, bar, policy, measure)
    if unmeasured is not None:
        artifact.report["not_measured"] = unmeasured
    if path is not None:
        keep(path, artifact)
    return artifact


def _compile(
    imported: ImportedModel, device: VDevice, bar: ProgressBar, policy: str, measure: bool
) -> Artifact:
    from irkit.lower.task_to_numba.emit import emit_module

    target = target_of(device)
    module, texts, seconds = imported.module, dict[str, str](), dict[str, float]()
    ctx = IrkitContext(weights=imported.weights)
    register_dialects(ctx)
    named: set[str] = set()
    for level in LEVELS:
        bar.stage(f"{level} level")
        start = time.perf_counter()
        run_level(ctx, module, level, device.name, policy=policy, measure=measure)
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
        "policy": policy,
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
    info = info_with_borders(imported.info, module)
    kept = sorted(named - weights.keys()) if target == "cuda" else []
    graph_weights = {name: ctx.weights[name] for name in kept}
    return Artifact(
        target, source, weights, info.to_json(), texts, report, cubin, graph_weights=graph_weights
    )
