"""Numba's `njit` and `cfunc`, with machine code that goes when the module goes.

Numba compiles everything of a process into one LLVM engine, which keeps machine code and IR for ever (its
`JITCPUCodegen._add_module` says why): a process that compiles programs and drops them only grows. Here each
module that decorates with these two has an engine of its own. Whatever was compiled holds it; once the last
function of a module is dropped, the engine and its memory are gone.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# pyright: reportPrivateUsage=false
from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from llvmlite.binding.newpassmanagers import (
    FunctionPassManager,
    ModulePassManager,
    NewPassManager,
)
from numba.core import compiler, sigutils, typeinfer
from numba.core.ccallback import CFunc
from numba.core.codegen import JITCPUCodegen
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher, CPUTarget, cpu_target

_ENGINE = "__irkit_engine__"


# In llvmlite 0.50 `NewPassManager._dispose` is hidden by that of another base, which frees nothing.
class _ModulePasses(ModulePassManager):
    def _dispose(self) -> None:
        NewPassManager._dispose(self)


class _FunctionPasses(FunctionPassManager):
    def _dispose(self) -> None:
        NewPassManager._dispose(self)


def _freed(passes: Any, kind: type[Any]) -> Any:
    """The same pass manager, freed when it is dropped."""
    pointer = passes._ptr
    passes.detach()
    return kind(pointer)


class _Codegen(JITCPUCodegen):
    def _module_pass_manager(self, **options: Any) -> Any:
        passes, builder = super()._module_pass_manager(**options)
        return _freed(passes, _ModulePasses), builder

    def _function_pass_manager(self, **options: Any) -> Any:
        passes, builder = super()._function_pass_manager(**options)
        return _freed(passes, _FunctionPasses), builder


class _ModuleTarget(CPUTarget):
    """Numba's CPU target, which compiles into an engine of its own."""

    @global_compiler_lock
    def __init__(self) -> None:
        super().__init__("cpu")
        whole: Any = cpu_target.target_context
        whole.refresh()
        self._context = whole.subtarget(_internal_codegen=_Codegen("irkit.program"))

    @property
    def target_context(self) -> Any:
        return self._context

    @property
    def typing_context(self) -> Any:
        return cpu_target.typing_context


def _target_of(function: FunctionType) -> _ModuleTarget:
    """The target of the module that defines `function`."""
    names = function.__globals__
    if _ENGINE not in names:
        names[_ENGINE] = _ModuleTarget()
    return names[_ENGINE]


class _Dispatcher(CPUDispatcher):
    def __init__(
        self,
        py_func: Any,
        locals: Any = None,
        targetoptions: Any = None,
        pipeline_class: Any = compiler.Compiler,
    ) -> None:
        # Numba reads it as an attribute of the instance.
        self.targetdescr = _target_of(py_func)
        super().__init__(py_func, locals, targetoptions, pipeline_class)


class _Callback(CFunc):
    def __init__(self, pyfunc: Any, sig: Any, locals: Any, options: Any) -> None:
        self._targetdescr = _target_of(pyfunc)
        super().__init__(pyfunc, sig, locals, options)


def njit(
    signature_or_function: Any = None, *, cache: bool = False, **options: Any
) -> Callable[..., Any]:
    """As `numba.njit` of one signature, of none, or of a function."""
    options = {"nopython": True, "boundscheck": None, **options}

    def decorated(function: Any) -> Any:
        made = _Dispatcher(function, {}, dict(options))
        if cache:
            made.enable_caching()
        if sigutils.is_signature(signature_or_function):
            with typeinfer.register_dispatcher(made):
                made.compile(signature_or_function)
                made.disable_compile()
        return made

    if isinstance(signature_or_function, FunctionType):
        return decorated(signature_or_function)
    return decorated


def cfunc(signature: Any, *, cache: bool = False, **options: Any) -> Callable[[Any], Any]:
    """As `numba.cfunc`: a function that is called by its `address`."""

    def decorated(function: Any) -> Any:
        made = _Callback(function, sigutils.normalize_signature(signature), {}, options)
        if cache:
            made.enable_caching()
        made.compile()
        return made

    return decorated
