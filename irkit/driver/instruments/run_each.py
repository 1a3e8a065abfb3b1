"""Functions of a module beside the one that runs, each as what runs."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from irkit.driver.execution.entry_point import main_function_of


def other_functions(module: ModuleOp) -> list[str]:
    """Names of the functions with bodies, but for the one that runs."""
    main = main_function_of(module)
    functions = [op for op in module.ops if isinstance(op, FuncOp) and op is not main]
    return [f.sym_name.data for f in functions if f.body.blocks]


def as_main(module: ModuleOp, name: str) -> ModuleOp:
    """A copy in which a function and the one that runs have changed names, and with them their schedules."""
    main = main_function_of(module).sym_name.data
    names = {name: main, main: name}
    copy = module.clone()
    for op in copy.walk():
        _rename(op, names)
    return copy


def _rename(op: Operation, names: dict[str, str]) -> None:
    if isinstance(op, FuncOp):
        op.sym_name = StringAttr(names.get(op.sym_name.data, op.sym_name.data))
    for found in (op.properties, op.attributes):
        found.update({key: _renamed(value, names) for key, value in found.items()})


def _renamed(value: Attribute, names: dict[str, str]) -> Attribute:
    if not isinstance(value, SymbolRefAttr) or value.nested_references.data:
        return value
    name = value.string_value()
    return SymbolRefAttr(names[name]) if name in names else value
