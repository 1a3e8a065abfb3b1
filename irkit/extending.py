"""Add to irkit from outside the package: ops of the graph and the tensor level, passes, rKernels, vDevices,
policies.

Additions hold for the process that makes them. Compiled programs are kept on disk under a key that has
all additions in it, their code with what it binds and refers to
(`irkit/driver/compiler/fingerprint.py`), so a program compiled without them is never taken for one with.
`examples/` has one of each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from irkit.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdsl.ir import Dialect, Operation
    from xdsl.passes import ModulePass

    from irkit.dialects.graph.base import GraphOp
    from irkit.dialects.tensor_ops.interface import TensorOpModel
    from irkit.lower.graph_to_tensor.elementwise import Rule as Lowering
    from irkit.passes.task.schedule_policy import Policy
    from irkit.rkernels.family import Family
    from irkit.rkernels.registry import RKernel
    from irkit.schedule.model import VDevice
    from irkit.weights import Array

_SYMBOL = re.compile(r"[A-Za-z_][\w-]*")


def add_dialect(
    dialect: Dialect,
    meanings: Mapping[type[GraphOp], Callable[..., Array | tuple[Array, ...]]],
    lowerings: Mapping[type[GraphOp], Lowering],
) -> None:
    """Make the ops of a graph-level dialect known to every tool and to `irkit.compile`.

    Every op derives from `irkit.dialects.graph.base.GraphOp`. `meanings`: op → its meaning in NumPy, a
    function of the op and its operands' arrays; `lowerings`: op → its tensor-level form, a function of
    a `TensorBuilder` and the op that returns the results' values.
    Raises UnsupportedError for a name that is taken, or an op that lacks either.
    """
    from irkit.dialects.graph.semantics import SEMANTICS
    from irkit.dialects.levels import LEVELS
    from irkit.driver.registry import ADDED_DIALECTS, all_dialects
    from irkit.lower.graph_to_tensor.convert import RULES

    if dialect.name in all_dialects() and not _is_added(f"dialect {dialect.name}"):
        raise UnsupportedError(f"dialect '{dialect.name}': there is one of this name")
    for op in dialect.operations:
        for what, table in (("meaning", meanings), ("lowering", lowerings)):
            if op not in table:
                raise UnsupportedError(f"op '{op.name}' without a {what}")
    SEMANTICS.update(meanings)
    RULES.update(lowerings)
    ADDED_DIALECTS[dialect.name] = lambda: dialect
    LEVELS["graph"].admit("func.func", f"{dialect.name}.*")
    _note(f"dialect {dialect.name}", *dialect.operations, dict(meanings), dict(lowerings))


def add_tensor_op(op: type[Operation], model: TensorOpModel[Any]) -> None:
    """Make an op known at the tensor level and in rOperators; a model that it had goes.

    It is of a dialect of tensor-level ops alone. It is light (`model` prints its elements) or heavy (it is a
    root of `model.family`, for which there is a family of rKernels), and no view: schedules know all of
    those. Raises UnsupportedError for a dialect that is taken, or a model of neither kind.
    """
    from xdsl.ir import Dialect

    from irkit.dialects.levels import LEVELS, TENSOR_DIALECTS
    from irkit.dialects.tensor_ops import registry
    from irkit.driver.registry import ADDED_DIALECTS, all_dialects

    name = op.name.partition(".")[0]
    if name in all_dialects() and not _is_added(f"tensor dialect {name}"):
        raise UnsupportedError(f"op '{op.name}': there is a dialect '{name}' of other ops")
    if registry.is_partial(model):
        raise UnsupportedError(f"op '{op.name}': its model prints no element and is no root")
    before = ADDED_DIALECTS[name]().operations if name in ADDED_DIALECTS else ()
    dialect = Dialect(name, [*(o for o in before if o.name != op.name), op], [])
    registry.register(op, model)
    ADDED_DIALECTS[name] = lambda: dialect
    TENSOR_DIALECTS.add(name)
    LEVELS["tensor"].admit("func.func", op.name)
    for level in LEVELS.values():
        if "task.roperator" in level.inside:
            level.admit("task.roperator", op.name)
    _note(f"tensor dialect {name}")
    _note(f"tensor op {op.name}", op, type(model), dict(vars(model)))


def add_pass(made: type[ModulePass], *, level: str | None = None) -> None:
    """Make a pass known by its name; with `level`, it runs there at the end of every compilation.

    Raises UnsupportedError for a name that is taken, or an unknown level.
    """
    from irkit.driver.pipelines.standard import STANDARD
    from irkit.driver.registry import all_passes
    from irkit.passes import PASSES

    if made.name in all_passes() and not _is_added(f"pass {made.name}"):
        raise UnsupportedError(f"pass '{made.name}': there is one of this name")
    if level is not None and level not in STANDARD:
        raise UnsupportedError(f"level '{level}': expected {', '.join(STANDARD)}")
    PASSES[made.name] = lambda: made
    if level is not None and made.name not in STANDARD[level]:
        STANDARD[level].append(made.name)
    _note(f"pass {made.name}", made, level)


def add_rkernel(rkernel: RKernel) -> None:
    """Make an rKernel a candidate for the roots that it is legal for; one of the same name goes."""
    from importlib import import_module

    from irkit.rkernels.registry import register

    register(rkernel)
    template = getattr(import_module(rkernel.module), rkernel.function)
    _note(f"rkernel {rkernel.target} {rkernel.name}", rkernel, template)


def add_family(family: Family) -> None:
    """Make a family of rKernels known, on every target; one of the same name goes."""
    from irkit.rkernels.families import register

    register(family)
    _note(f"family {family.name}", type(family), dict(vars(family)))


def add_policy(name: str, policy: Policy) -> None:
    """Make a scheduling policy known: `irkit.compile(policy=name)`, and the pass `schedule-<name>`.

    What it places is proved like any schedule. Raises UnsupportedError for a name that is taken, or one
    that no pass can have.
    """
    from irkit.driver.registry import all_passes
    from irkit.passes import PASSES
    from irkit.passes.task.schedule_policy import SchedulePass

    made = f"schedule-{name}"
    if not _SYMBOL.fullmatch(name):
        raise UnsupportedError(f"policy '{name}': expected a name of letters, digits, - and _")
    if made in all_passes() and not _is_added(f"policy {name}"):
        raise UnsupportedError(f"policy '{name}': there is one of this name")
    facts = {"name": made, "policy": staticmethod(policy), "__doc__": policy.__doc__}
    kind = type(f"Schedule{name.title()}", (SchedulePass,), facts)
    PASSES[made] = lambda: kind
    _note(f"policy {name}", policy)


def add_device(made: VDevice) -> None:
    """Make a vDevice known by its name, to `irkit.compile(device=...)` and to every tool.

    It may be a machine that is not at hand. Raises UnsupportedError for a name that is taken, or one that
    a symbol cannot have.
    """
    from irkit.schedule.devices import device, device_names, register_device

    if not _SYMBOL.fullmatch(made.name):
        raise UnsupportedError(f"device name '{made.name}': expected letters, digits, _ and -")
    if made.name in device_names() and device(made.name) == made:
        return
    try:
        register_device(made.name, made)
    except ValueError as error:
        raise UnsupportedError(str(error)) from None


def _is_added(name: str) -> bool:
    from irkit.driver.registry import ADDED

    return name in ADDED


def _note(name: str, *things: object) -> None:
    """What was added becomes part of the disk cache's key, as it is when a model is compiled."""
    from irkit.driver.registry import ADDED

    ADDED.pop(name, None)
    ADDED[name] = things
