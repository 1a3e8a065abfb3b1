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

import functools
import hashlib
from collections.abc import Callable, Mapping
from importlib import import_module
from types import FunctionType
from typing import Any, ClassVar, NamedTuple

import llvmlite.binding as llvm
from llvmlite.binding import Linkage
from llvmlite.binding.newpassmanagers import (
    FunctionPassManager,
    ModulePassManager,
    NewPassManager,
    create_new_module_pass_manager,
)
from numba.core import compiler, sigutils, typeinfer
from numba.core.ccallback import CFunc
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher, CPUTarget, cpu_target

from irkit.runtime.intrinsics import cpu_kept, cpu_quotients
from irkit.runtime.intrinsics.cpu_seldom import PREFIX
from irkit.runtime.intrinsics.loop_hints import hint_loops
from irkit.runtime.numba_repeats import CPU, nothing_twice

_ENGINE = "__irkit_engine__"
# Numba's stubs leave it out.
_FunctionCompiler: Any = import_module("numba.core.dispatcher")._FunctionCompiler


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


class _Library(JITCodeLibrary):
    """What is compiled of one function, which is optimised and made machine code of only if it is called by
    address: what others inline is linked into them as it is, and goes through LLVM once, with them."""

    def add_ir_module(self, ir_module: Any) -> None:
        hint_loops(ir_module)
        super().add_ir_module(ir_module)

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        _optimise(self._codegen, self._final_module)

    def add_linking_library(self, library: Any) -> None:
        if not isinstance(library, _Library):
            library._ensure_finalized()
        self._linking_libraries.append(library)

    def _get_module_for_linking(self) -> Any:
        if self._shared_module is not None:
            return self._shared_module
        if self._finalized:
            return super()._get_module_for_linking()
        for library in dict.fromkeys(self._linking_libraries):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.external:
                function.linkage = "linkonce_odr"
        self._shared_module = self._final_module
        return self._shared_module


class _Codegen(JITCPUCodegen):
    _library_class = _Library

    def _module_pass_manager(self, **options: Any) -> Any:
        passes, builder = super()._module_pass_manager(**options)
        return _freed(passes, _ModulePasses), builder

    def _function_pass_manager(self, **options: Any) -> Any:
        passes, builder = super()._function_pass_manager(**options)
        return _freed(passes, _FunctionPasses), builder


def _optimise(codegen: Any, module: Any) -> None:
    """What LLVM does to a module; what its vectors call is then inlined into them."""
    passes, builder = codegen._module_pass_manager()
    passes.run(module, builder)
    seldom = [f for f in module.functions if f.name.startswith(PREFIX)]
    if not seldom:
        return
    if any(f.is_declaration for f in seldom):
        for whose in (cpu_kept, cpu_quotients):
            module.link_in(llvm.parse_assembly(whose.DEFINITIONS))
    for function in module.functions:
        if function.name.startswith(PREFIX):
            function.linkage = Linkage.internal
    inline = _freed(create_new_module_pass_manager(), _ModulePasses)
    inline.add_always_inliner_pass()
    inline.add_global_dead_code_eliminate_pass()
    inline.run(module, builder)


class _LoweredLibrary(_Library):
    """What is compiled of one function and never gets an address: it ends as IR."""

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    def linked(self) -> str:
        """The IR of the function and of all that it calls; no pass of LLVM has changed it."""
        module = self._final_module
        for library in dict.fromkeys(self._linking_libraries):
            module.link_in(library._get_module_for_linking(), preserve=True)
        passes = _freed(create_new_module_pass_manager(), _ModulePasses)
        # Numba links its whole run-time library, of which rKernels use nothing.
        passes.add_global_dead_code_eliminate_pass()
        passes.run(module, self._codegen._module_pass_manager()[1])
        return str(module)


class _LoweringCodegen(_Codegen):
    _library_class = _LoweredLibrary


@functools.cache
def _rkernel_codegen() -> _Codegen:
    return _Codegen("irkit.rkernel")


class _Known:
    """The functions that this process has lowered: those behind one header, by their names."""

    header = ""
    names: ClassVar[dict[str, Any]] = {}


def lowered(header: str, functions: Mapping[str, str]) -> tuple[str, str]:
    """(its name to the linker, LLVM IR) of the `cfunc` among `functions`, and of those that it calls.

    `functions` are texts by their names, which say what is in them: behind one header a name is one function,
    which is lowered once until `forget_functions`. Without any, the header has all."""
    with nothing_twice(*CPU), global_compiler_lock:
        whole = False
        try:
            names = _names_behind(header)
            for name, text in functions.items():
                if name not in names:
                    exec(compile(text, "<rKernel>", "exec"), names)
            (name,) = (n for n, value in names.items() if isinstance(value, _Callback))
            callback: Any = names.pop(name)
            found = callback.native_name, callback._library.linked()
            whole = bool(functions)
            return found
        finally:
            if not whole:
                forget_functions()


def _names_behind(header: str) -> dict[str, Any]:
    if not _Known.names or _Known.header != header:
        forget_functions()
        name = "irkit_rkernel_" + hashlib.sha256(header.encode()).hexdigest()[:16]
        _Known.header = header
        _Known.names |= {"__name__": name, _ENGINE: _ModuleTarget(_LoweringCodegen(name))}
        exec(compile(header, "<rKernel>", "exec"), _Known.names)
    return _Known.names


def forget_functions() -> None:
    """Drop what `lowered` knows."""
    with global_compiler_lock:
        # Compiled functions refer to these names, which refer to them, where no garbage collector looks.
        _Known.names.clear()


@global_compiler_lock
def object_code(text: str) -> bytes:
    """Machine code of LLVM IR that `lowered` gave, for this processor."""
    codegen = _rkernel_codegen()
    module = llvm.parse_assembly(text)
    _optimise(codegen, module)
    module.verify()
    return codegen._tm.emit_object(module)


@global_compiler_lock
def new_engine() -> Any:
    """An LLVM engine with nothing in it, for object code that was compiled by `cfunc` in some process."""
    # Makes known to LLVM what compiled functions call of Numba's own library.
    whole: Any = cpu_target.target_context
    whole.refresh()
    return _Codegen("irkit.rkernel")._engine._ee


class _ModuleTarget(CPUTarget):
    """Numba's CPU target, which compiles into an engine of its own."""

    @global_compiler_lock
    def __init__(self, codegen: _Codegen | None = None) -> None:
        super().__init__("cpu")
        whole: Any = cpu_target.target_context
        whole.refresh()
        self._context = whole.subtarget(_internal_codegen=codegen or _Codegen("irkit.program"))

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


class _InlinedCompiler(_FunctionCompiler):
    def _customize_flags(self, flags: Any) -> Any:
        flags.no_compile = True
        return flags

    def _compile_core(self, args: Any, return_type: Any) -> Any:
        result = super()._compile_core(args, return_type)
        # Lowering finds a function by what would be its compiled object.
        result = result._replace(entry_point=object())
        context = self.targetdescr.target_context
        context.insert_user_function(result.entry_point, result.fndesc, [result.library])
        return result


class _Inlined(_Dispatcher):
    """A function that is only inlined: nobody asks for its address, nor calls it from Python."""

    def __init__(self, py_func: Any, locals: Any, targetoptions: Any) -> None:
        super().__init__(py_func, locals, targetoptions)
        self._compiler = _InlinedCompiler(
            py_func, self.targetdescr, targetoptions, locals, compiler.Compiler
        )

    def add_overload(self, cres: Any) -> None:
        self.overloads[tuple(cres.signature.args)] = cres


class _Callback(CFunc):
    def __init__(self, pyfunc: Any, sig: Any, locals: Any, options: Any) -> None:
        self._targetdescr = _target_of(pyfunc)
        super().__init__(pyfunc, sig, locals, options)


class CalledFunction(NamedTuple):
    """What Python calls of a function: the linker's names of its entry and its environment, how many
    arguments it has, and the object code that has all this."""

    entry: str
    environment: str
    arity: int
    code: bytes


@global_compiler_lock
def called_from_python(names: Mapping[str, Any]) -> dict[str, CalledFunction]:
    """The functions of a module, of one signature each, that `njit` compiled for Python."""
    found: dict[str, CalledFunction] = {}
    for name, value in names.items():
        if not isinstance(value, _Dispatcher) or isinstance(value, _Inlined):
            continue
        (compiled,) = value.overloads.values()
        if compiled.environment.consts:
            raise AssertionError(f"{name}: what it would need of this process")
        described = compiled.fndesc
        found[name] = CalledFunction(
            described.llvm_cpython_wrapper_name,
            described.env_name,
            len(described.argtypes),
            compiled.library._get_compiled_object(),
        )
    return found


def njit(
    signature_or_function: Any = None, *, cache: bool = False, **options: Any
) -> Callable[..., Any]:
    """As `numba.njit` of one signature, of none, or of a function. `cache` is what emitted modules say; what
    is kept, and where, is a matter of who loads them."""
    options = {"nopython": True, "boundscheck": None, **options}

    def decorated(function: Any) -> Any:
        inlined = options.get("forceinline") and options.get("no_cpython_wrapper")
        made = (_Inlined if inlined else _Dispatcher)(function, {}, dict(options))
        if sigutils.is_signature(signature_or_function):
            with typeinfer.register_dispatcher(made):
                made.compile(signature_or_function)
                made.disable_compile()
        return made

    if isinstance(signature_or_function, FunctionType):
        return decorated(signature_or_function)
    return decorated


def cfunc(signature: Any, *, cache: bool = False, **options: Any) -> Callable[[Any], Any]:
    """As `numba.cfunc`: a function that is called by its `address`. `cache` is what emitted modules said when
    Numba kept machine code on disk; irkit does so itself, by what the function says and not by its file."""

    def decorated(function: Any) -> Any:
        made = _Callback(function, sigutils.normalize_signature(signature), {}, options)
        made.compile()
        return made

    return decorated
