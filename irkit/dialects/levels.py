"""What may stand in a module at each level, as data, and the check of it.

The levels of docs/architecture.md, the schedule's in steps: each pass from the task level on adds something
that the next one needs. A lowering names the levels that it `requires` and `produces`, and the driver holds it
to both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import FunctionType, IndexType, MemRefType, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from irkit.dialects.precision import precision_fault
from irkit.dialects.symbols import dims_fault
from irkit.dialects.types import is_float, is_integer, numpy_dtype
from irkit.errors import UnsupportedError

# Ops by their names; `dialect.*` is every op of a dialect.
_FUNCTION = frozenset({"arith.constant", "func.return"})
_TENSOR_OPS = frozenset(
    {
        "arith.constant",
        "linalg.fill",
        "linalg.generic",
        "te.*",
        "tensor.collapse_shape",
        "tensor.concat",
        "tensor.dim",
        "tensor.empty",
        "tensor.expand_shape",
        "tensor.extract_slice",
        "tensor.insert_slice",
        "tensor.pad",
    }
)
SLICES = frozenset({"tensor.extract_slice", "tensor.insert_slice"})
"""Parts of arrays, as programs of arrays have them; in a loop, at places that hang on its variable."""
# What stands in a function of calls, in loops or not, at every level.
_INDICES = frozenset(
    {f"arith.{name}" for name in ("addi", "constant", "index_cast", "muli", "subi")}
)
_CALLS = frozenset({"func.call", "scf.for", "scf.while", *SLICES}) | _INDICES
NUMBERS = frozenset({"tensor.from_elements", "tensor.splat"})
"""A loop's variable as a tensor, until it is carried as one."""
ASKED = frozenset({"tensor.extract"})
"""What a loop reads of what it asks for."""
_LOOP = frozenset({"scf.yield"}) | _CALLS
# What asks for one more turn, beside what a turn does.
_ASKING = _LOOP | ASKED | {"scf.condition"}
TENSOR_DIALECTS = {"linalg", "tensor", "te"}
"""Dialects of the tensor level alone; `irkit.extending.add_tensor_op` adds others."""
# The bits of an unsigned integer, which is a signless one inside of bodies.
_AS_SIGNLESS = "builtin.unrealized_conversion_cast"
_SCALARS = frozenset({"arith.*", "math.*", "linalg.index", "linalg.yield", _AS_SIGNLESS})
# Bodies of tensor ops.
_BODIES = {
    "linalg.generic": _SCALARS,
    "linalg.fill": _SCALARS,
    "te.rowwise": frozenset({"arith.*", "math.*", "te.row_reduce", "te.yield"}),
    "tensor.pad": frozenset({"arith.constant", "tensor.yield", _AS_SIGNLESS}),
}
# What names bytes between launches, and moves none.
_VIEWS = frozenset(
    {
        "tensor.collapse_shape",
        "tensor.concat",
        "tensor.dim",
        "tensor.empty",
        "tensor.expand_shape",
        "tensor.extract_slice",
    }
)
_ROPERATOR = {"task.roperator": _TENSOR_OPS | {"task.yield"}, **_BODIES}


@dataclass(frozen=True)
class Needs:
    """Every `op` has the property `name`, or `instead` of it another, unless its property `unless[0]` is one
    of the other strings."""

    op: str
    name: str
    unless: tuple[str, ...] = ()
    instead: str = ""

    def lacks(self, op: Operation) -> bool:
        """Whether `op` is of this kind and has not what it needs."""
        if op.name != self.op or self.name in op.properties or self.instead in op.properties:
            return False
        if not self.unless:
            return True
        found = op.properties.get(self.unless[0])
        return getattr(found, "data", None) not in self.unless[1:]


# What `Level.admit` has added: (level, parent) → ops.
_ADMITTED: dict[tuple[str, str], frozenset[str]] = {}


@dataclass(frozen=True)
class Level:
    """`inside`: op → the ops that may stand directly in it. `types`: kinds of values. `needs`: properties.
    `arguments`: kinds of a function's arguments, where these are fewer."""

    name: str
    inside: Mapping[str, frozenset[str]]
    types: frozenset[str]
    needs: tuple[Needs, ...] = ()
    arguments: frozenset[str] | None = None
    _legal: dict[tuple[str, str], bool] = field(
        default_factory=dict[tuple[str, str], bool], compare=False, repr=False
    )

    def allows(self, parent: str, name: str) -> bool:
        """Whether op `name` may stand directly in op `parent`."""
        legal = self._legal.get((parent, name))
        if legal is None:
            allowed = self.inside.get(parent, frozenset[str]()) | _ADMITTED.get(
                (self.name, parent), frozenset[str]()
            )
            legal = name in allowed or f"{name.partition('.')[0]}.*" in allowed
            self._legal[parent, name] = legal
        return legal

    def admit(self, parent: str, names: str) -> None:
        """From here on, ops `names` (one, or `dialect.*`) may stand directly in op `parent`."""
        key = self.name, parent
        _ADMITTED[key] = _ADMITTED.get(key, frozenset[str]()) | {names}
        self._legal.clear()


_CHOSEN = ("rkernel", "grid")
_TASK_NEEDS = tuple(Needs("task.roperator", name) for name in _CHOSEN)
_OFFERED = tuple(Needs("task.roperator", name, instead="alternatives") for name in _CHOSEN)
_VALUES = frozenset({"tensor", "scalar"})
_MODULE = frozenset({"func.func"})
_TASK_MODULE = frozenset({"func.func", "task.roperator", "task.vdevice"})
_LAUNCHES = _FUNCTION | _VIEWS | {"task.launch"} | _CALLS
_STEPS = frozenset({"task.run", "task.repeat", "task.while"})
_COMPOSITE = {
    "task.composite": _STEPS | {"task.buffer"},
    "task.repeat": _STEPS,
    "task.while": _STEPS,
}
_SCHEDULED = {
    "builtin.module": _TASK_MODULE | {"task.program", "task.composite"},
    # What a schedule is proved against.
    "func.func": _LAUNCHES,
    "scf.for": _LOOP,
    "scf.while": _ASKING,
    "task.program": frozenset({"task.append", "task.buffer", "task.view"}),
    **_COMPOSITE,
    **_ROPERATOR,
}
_TASK = {
    "builtin.module": _TASK_MODULE,
    "func.func": _LAUNCHES,
    "scf.for": _LOOP,
    "scf.while": _ASKING,
    **_ROPERATOR,
}
# Effects on arrays, and values between them.
_EFFECTS = frozenset(
    {
        "affine.apply",
        "arith.constant",
        "arith.index_cast",
        "bufferization.materialize_in_destination",
        "bufferization.to_tensor",
        "func.call",
        "dist.*",
        "graph.*",
        "memref.alloc",
        "memref.copy",
        "memref.reinterpret_cast",
        "program.call",
        "scf.for",
        "scf.while",
        "tensor.from_elements",
        "tensor.insert_slice",
    }
)
_PROGRAM = {
    "builtin.module": _MODULE,
    "func.func": _EFFECTS | {"func.return"},
    "scf.for": _EFFECTS | {"scf.yield"},
    "scf.while": _EFFECTS | {"scf.condition", "scf.yield", "tensor.extract"},
}
_PLANNED = (
    *_TASK_NEEDS,
    Needs("task.program", "arena_bytes"),
    Needs("task.program", "row_bytes"),
    Needs("task.buffer", "offset", unless=("space", "input", "output", "state")),
)

LEVELS: dict[str, Level] = {
    level.name: level
    for level in (
        Level("program", _PROGRAM, _VALUES | {"array"}),
        Level(
            "graph",
            {
                "builtin.module": _MODULE,
                "func.func": _FUNCTION | {"dist.*", "graph.*"} | _CALLS | NUMBERS,
                "scf.for": _LOOP | NUMBERS | {"graph.*"},
                "scf.while": _ASKING | NUMBERS | {"graph.*"},
            },
            _VALUES,
            arguments=frozenset({"tensor"}),
        ),
        Level(
            "tensor",
            {
                "builtin.module": _MODULE,
                "func.func": _FUNCTION | _TENSOR_OPS | _CALLS,
                "scf.for": _LOOP,
                "scf.while": _ASKING,
                **_BODIES,
            },
            _VALUES,
        ),
        Level("task", _TASK, _VALUES),
        Level("partitioned", _TASK, _VALUES, _OFFERED),
        Level("scheduled", _SCHEDULED, _VALUES | {"token"}, _TASK_NEEDS),
        Level("planned", _SCHEDULED, _VALUES | {"token"}, _PLANNED),
        Level(
            "verified",
            _SCHEDULED,
            _VALUES | {"token"},
            (*_PLANNED, Needs("task.program", "verified")),
        ),
    )
}
"""In the order of the standard pipeline."""


@dataclass(frozen=True)
class Fault:
    """What keeps a module from being at a level: the op, and why, in words that follow its name."""

    op: Operation
    text: str


def fault(module: ModuleOp, level: Level) -> Fault | None:
    """The first op of `module`, in the order of the text, that is not of `level`; None if all are."""
    return next(_faults(module, level), None)


def _faults(module: ModuleOp, level: Level) -> Iterator[Fault]:
    for op in module.walk():
        if isinstance(op, FuncOp) and (wrong := dims_fault(op)) is not None:
            yield Fault(op, wrong)
        if (wrong := precision_fault(op)) is not None:
            yield Fault(op, wrong)
        parent = op.parent_op()
        if parent is not None and not level.allows(parent.name, op.name):
            yield Fault(op, f"does not belong in '{parent.name}'")
        for needs in level.needs:
            if needs.lacks(op):
                instead = f", nor '{needs.instead}' instead" if needs.instead else ""
                yield Fault(op, f"has no '{needs.name}'{instead}")
        kinds = level.types
        if isinstance(op, FuncOp) and level.arguments is not None:
            kinds = level.arguments
        for t in _types(op):
            if kind_of(t) not in kinds:
                yield Fault(op, f"has a value of type {t}")


def _types(op: Operation) -> Iterator[Attribute]:
    yield from (result.type for result in op.results)
    for region in op.regions:
        for block in region.blocks:
            yield from (argument.type for argument in block.args)


def kind_of(t: Attribute) -> str:
    """`tensor` (ranked, of numbers that have a NumPy dtype), `scalar`, `array`, `token`, or `other`."""
    if isinstance(t, TensorType):
        element = cast("TensorType[Attribute]", t).element_type
        return "tensor" if is_number(element) else "other"
    if isinstance(t, MemRefType):
        return "array"
    if t.name == "task.token":
        return "token"
    if isinstance(t, IndexType) or is_number(t):
        return "scalar"
    return "function" if isinstance(t, FunctionType) else "other"


def is_number(t: Attribute) -> bool:
    """Whether a type is of numbers that have a NumPy dtype."""
    if is_float(t) or is_integer(t):
        return True
    try:
        numpy_dtype(t)
    except UnsupportedError:
        return False
    return not isinstance(t, IndexType)
