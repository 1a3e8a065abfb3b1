"""`irkit.load`: a saved program here, or, where its machine code cannot run here, made anew from its IR.

At its top this imports nothing that needs xDSL, without which a program for this machine is loaded.
"""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from pathlib import Path

from irkit.errors import DeviceError
from irkit.runtime.artifact import Artifact
from irkit.runtime.mode_choice import AUTO
from irkit.runtime.program import CompiledProgram, load_artifacts, program_of


def load_program(
    path: Path | str, mode: str = AUTO, *, recompile: bool | None = None
) -> CompiledProgram:
    """A program that `CompiledProgram.save` wrote; needs neither xDSL nor the source library.

    A program whose machine code is for another GPU than the one at hand is compiled anew from the IR that it
    keeps, with a warning that says what it was for; this needs xDSL. `recompile`: False refuses instead, True
    plans any program for a GPU anew for the one at hand, as when it was planned for one with other
    multiprocessors. On a CPU it means nothing: machine code is always made for the processor at hand.

    Its weights are those of the file, mapped and not copied: the file may be replaced or deleted, as `save`
    and renaming do, but not written over while a program has it.

    A saved program is code: load only what you trust. Raises ArtifactError on any other file, DeviceError
    where the program cannot run here.
    """
    artifacts = load_artifacts(Path(path))
    fitted = {name: _fitted(artifact, recompile) for name, artifact in artifacts.items()}
    return program_of(fitted, mode, str(path))


def _fitted(artifact: Artifact, recompile: bool | None) -> Artifact:
    """The program, made anew where it has to be."""
    if artifact.target != "cuda":
        return artifact
    reason = _why_elsewhere(artifact)
    if reason is None and not recompile:
        return artifact
    if recompile is False:
        raise DeviceError(reason)
    if find_spec("xdsl") is None:
        said = reason or "this program was to be planned anew"
        raise DeviceError(f"{said}; to compile it from its IR, install xDSL")
    if recompile is None:
        warnings.warn(f"{reason}: compiled anew from its IR", stacklevel=4)
    return recompiled(artifact)


def _why_elsewhere(artifact: Artifact) -> str | None:
    """Why the machine code cannot run on the GPU at hand. Raises DeviceError where there is none."""
    from irkit.runtime.cuda.driver import device
    from irkit.runtime.cuda.facts import read_facts
    from irkit.runtime.cuda.fitting import why_elsewhere

    program, facts = read_facts(artifact.source)
    return why_elsewhere(program.device, facts, device())


def recompiled(artifact: Artifact, device: str = "cuda") -> Artifact:
    """The program planned and compiled for `device` from its graph-level IR, by the policy that it had.

    Raises what `irkit.compile` raises.
    """
    from irkit.driver.compiler.artifacts import build_artifact
    from irkit.driver.compiler.models import ONE_BUILDER, parse
    from irkit.frontends.module import ImportedModel
    from irkit.model_info import ModelInfo
    from irkit.weights import WeightStore

    weights = WeightStore()
    for name, array in (artifact.weights | artifact.graph_weights).items():
        weights.put(name, array)
    with ONE_BUILDER:
        module = parse(artifact.ir["graph"], "the saved program's graph level")
        model = ImportedModel(module, weights, ModelInfo.from_json(artifact.info))
        policy, budget = artifact.report["policy"], artifact.report.get("memory_budget")
        made = build_artifact(model, device, policy=policy, memory_budget=budget)
    made.state, made.initial = artifact.state, artifact.initial
    made.variants = artifact.variants
    return made
