"""irkit: trained models in, proved static schedules out.

import irkit
program = irkit.compile(model)
program(x)

@irkit.jit
def function_of_arrays(x): ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from irkit import te
    from irkit.annotations.annotation import annotate
    from irkit.annotations.callbacks import callback
    from irkit.dags.opening import dag
    from irkit.driver.compiler.accuracy import accuracy
    from irkit.driver.compiler.compile import compile_model as compile
    from irkit.driver.compiler.models import parse
    from irkit.driver.compiler.recompile import load_program as load
    from irkit.driver.compiler.supported import supported_operators
    from irkit.driver.compiler.targets import resolve_target
    from irkit.driver.programs.gradients import (
        custom_gradient,
        grad,
        hessian,
        jacobian,
        jvp,
        value_and_grad,
        vjp,
    )
    from irkit.driver.programs.jitted import jit
    from irkit.driver.programs.loops import loop_range as range
    from irkit.driver.programs.loops import while_loop
    from irkit.driver.programs.networks import network
    from irkit.errors import (
        ArtifactError,
        ConstantInputError,
        DeviceError,
        InternalError,
        InvalidInputError,
        InvalidModelError,
        IrkitError,
        NotFiniteError,
        ScheduleError,
        UnsupportedError,
    )
    from irkit.runtime.program import CompiledProgram
    from irkit.serving.scorer import Scorer
    from irkit.training.step import training_step

__version__ = "0.1.0"

# Resolved on first use, so that `import irkit` and the tools start fast.
_LAZY = {
    "annotate": ("irkit.annotations.annotation", "annotate"),
    "callback": ("irkit.annotations.callbacks", "callback"),
    "accuracy": ("irkit.driver.compiler.accuracy", "accuracy"),
    "dag": ("irkit.dags.opening", "dag"),
    "compile": ("irkit.driver.compiler.compile", "compile_model"),
    "resolve_target": ("irkit.driver.compiler.targets", "resolve_target"),
    "custom_gradient": ("irkit.driver.programs.gradients", "custom_gradient"),
    "hessian": ("irkit.driver.programs.gradients", "hessian"),
    "jacobian": ("irkit.driver.programs.gradients", "jacobian"),
    "network": ("irkit.driver.programs.networks", "network"),
    "grad": ("irkit.driver.programs.gradients", "grad"),
    "jvp": ("irkit.driver.programs.gradients", "jvp"),
    "value_and_grad": ("irkit.driver.programs.gradients", "value_and_grad"),
    "vjp": ("irkit.driver.programs.gradients", "vjp"),
    "jit": ("irkit.driver.programs.jitted", "jit"),
    "range": ("irkit.driver.programs.loops", "loop_range"),
    "te": ("irkit.te", ""),
    "while_loop": ("irkit.driver.programs.loops", "while_loop"),
    "load": ("irkit.driver.compiler.recompile", "load_program"),
    "training_step": ("irkit.training.step", "training_step"),
    "parse": ("irkit.driver.compiler.models", "parse"),
    "supported_operators": ("irkit.driver.compiler.supported", "supported_operators"),
    "Scorer": ("irkit.serving.scorer", "Scorer"),
    "CompiledProgram": ("irkit.runtime.program", "CompiledProgram"),
    "ArtifactError": ("irkit.errors", "ArtifactError"),
    "ConstantInputError": ("irkit.errors", "ConstantInputError"),
    "DeviceError": ("irkit.errors", "DeviceError"),
    "InternalError": ("irkit.errors", "InternalError"),
    "InvalidInputError": ("irkit.errors", "InvalidInputError"),
    "InvalidModelError": ("irkit.errors", "InvalidModelError"),
    "IrkitError": ("irkit.errors", "IrkitError"),
    "NotFiniteError": ("irkit.errors", "NotFiniteError"),
    "ScheduleError": ("irkit.errors", "ScheduleError"),
    "UnsupportedError": ("irkit.errors", "UnsupportedError"),
}

__all__ = [
    "ArtifactError",
    "CompiledProgram",
    "ConstantInputError",
    "DeviceError",
    "InternalError",
    "InvalidInputError",
    "InvalidModelError",
    "IrkitError",
    "NotFiniteError",
    "ScheduleError",
    "Scorer",
    "UnsupportedError",
    "__version__",
    "accuracy",
    "annotate",
    "callback",
    "compile",
    "custom_gradient",
    "dag",
    "grad",
    "hessian",
    "jacobian",
    "jit",
    "jvp",
    "load",
    "network",
    "parse",
    "range",
    "resolve_target",
    "supported_operators",
    "te",
    "training_step",
    "value_and_grad",
    "vjp",
    "while_loop",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'irkit' has no attribute '{name}'")
    import importlib

    module, attribute = _LAZY[name]
    found = importlib.import_module(module)
    value = getattr(found, attribute) if attribute else found
    globals()[name] = value
    return value
