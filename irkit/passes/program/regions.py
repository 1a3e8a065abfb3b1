"""The regions of a program, each as a module of its own."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp

from irkit.dialects.functions import function_named


def region_modules(module: ModuleOp) -> dict[str, ModuleOp]:
    """What `@main` of a program calls, by name: modules at the program level whose `@main` it is.

    Arguments and results have made-up names; a region returns nothing, so that what `functionalise` makes of
    it returns the buffers that it writes, in the order of its arguments.
    """
    main = function_named(module, "main")
    names = () if main is None else (_callee(op) for op in main.walk() if isinstance(op, CallOp))
    found: dict[str, ModuleOp] = {}
    for name in dict.fromkeys(names):
        function = function_named(module, name)
        if function is not None:
            found[name] = ModuleOp([_as_main(function)])
    return found


def _callee(op: CallOp) -> str:
    return op.callee.string_value()


def _as_main(function: FuncOp) -> FuncOp:
    copy = function.clone()
    copy.sym_name = StringAttr("main")
    arguments = range(len(copy.function_type.inputs))
    copy.attributes["irkit.inputs"] = ArrayAttr([StringAttr(f"b{n}") for n in arguments])
    copy.attributes["irkit.outputs"] = ArrayAttr([])
    return copy
