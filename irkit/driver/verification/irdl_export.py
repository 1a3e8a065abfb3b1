"""irkit's dialects as IRDL, so that MLIR's own tools verify their ops, and modules in the form they read.

From each op's definition: operands, results, attributes, regions, and constraints on them. Where IRDL says
less than the definition, the definition is weakened and a note says so; what an op checks in Python (shapes,
inferred types, symbols) no IRDL can say. Four turns make the rest expressible, and `foreign_text` writes so:

- An IRDL op has no properties: they are attributes.
- IRDL attributes must be there: an optional one that is absent is written as `unit`.
- A constraint of IRDL stands for one type, also in a variadic group: a group of tensors is a row of optional
  operands, as many as the widest op needs.
- An IRDL op is no terminator: blocks in irkit's ops end in `"irkit.end"() : () -> ()`.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.builder import Builder
from xdsl.dialects import irdl
from xdsl.dialects.builtin import (
    ArrayAttr,
    ArrayOfConstraint,
    BoolAttr,
    DenseArrayBase,
    DictionaryAttr,
    FloatAttr,
    FunctionType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    UnregisteredOp,
    i1,
    i32,
)
from xdsl.ir import Attribute, Block, Dialect, Operation, ParametrizedAttribute, Region, SSAValue
from xdsl.ir import TypeAttribute as TypeAttributeMixin
from xdsl.irdl import (
    AllOf,
    AnyAttr,
    AnyOf,
    AttrConstraint,
    BaseAttr,
    EqAttrConstraint,
    IRDLOperation,
    MessageConstraint,
    OperandDef,
    OptionalDef,
    ParamAttrConstraint,
    RangeConstraint,
    RangeLengthConstraint,
    RangeOf,
    ResultDef,
    SingleBlockRegionDef,
    VarConstraint,
    VariadicDef,
)
from xdsl.printer import Printer
from xdsl.rewriter import InsertPoint

from irkit.driver.registry import irkit_dialects

END = "irkit.end"
SEGMENTS = ("operandSegmentSizes", "resultSegmentSizes")
# What MLIR calls the attributes and types that irkit's ops take.
_BASES: dict[type[object], str] = {
    ArrayAttr: "#builtin.array",
    DenseArrayBase: "#builtin.dense_array",
    DictionaryAttr: "#builtin.dictionary",
    FloatAttr: "#builtin.float",
    # A type that stands for an attribute.
    FunctionType: "#builtin.type",
    IntegerAttr: "#builtin.integer",
    StringAttr: "#builtin.string",
    SymbolRefAttr: "#builtin.symbol_ref",
    MemRefType: "!builtin.memref",
    TensorType: "!builtin.tensor",
    TypeAttributeMixin: "#builtin.type",
}
_PARAMETERS_LOST = "parameters of an attribute are not constrained"
_ELEMENTS_LOST = "elements of an array are not constrained"


@dataclass
class Export:
    """IRDL of some dialects; `notes`: what is weaker than in irkit → the ops concerned."""

    module: ModuleOp
    notes: dict[str, list[str]]

    def text(self) -> str:
        """As an `.irdl.mlir` file, the notes first."""
        lines = [
            f"// Weaker than in irkit: {what}: {', '.join(ops)}" for what, ops in self.notes.items()
        ]
        stream = io.StringIO()
        Printer(stream).print_op(self.module)
        return "\n".join([*lines, stream.getvalue()]) + "\n"


@dataclass
class _OpExporter:
    """Writes one op's definition into a block."""

    op: type[IRDLOperation]
    notes: dict[str, list[str]]
    widest: int
    block: Block = field(default_factory=Block)
    variables: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])

    def __post_init__(self) -> None:
        self.builder = Builder(InsertPoint.at_end(self.block))

    def export(self) -> irdl.OperationOp:
        """The `irdl.operation`."""
        definition = self.op.get_irdl_definition()
        self._values(irdl.OperandsOp, definition.operands)
        self._values(irdl.ResultsOp, definition.results)
        self._attributes()
        regions = [
            self._region(isinstance(region, SingleBlockRegionDef))
            for _, region in definition.regions
        ]
        if regions:
            names = ArrayAttr([StringAttr(name) for name, _ in definition.regions])
            self.builder.insert(
                irdl.RegionsOp.create(operands=regions, properties={"names": names})
            )
        return irdl.OperationOp(Dialect.split_name(self.op.name)[1], Region([self.block]))

    def _values(
        self,
        made: type[irdl.OperandsOp] | type[irdl.ResultsOp],
        definitions: Sequence[tuple[str, OperandDef | ResultDef]],
    ) -> None:
        values: list[SSAValue] = []
        kinds: list[irdl.VariadicityAttr] = []
        names: list[StringAttr] = []
        for name, definition in definitions:
            for suffix, kind in _slots(definition, self.widest):
                values.append(self._constraint(_of_range(definition.constr)))
                kinds.append(kind)
                names.append(StringAttr(name + suffix))
        if values:
            variadicity = irdl.VariadicityArrayAttr(ArrayAttr(kinds))
            self.builder.insert(made(values, variadicity, ArrayAttr(names)))

    def _attributes(self) -> None:
        definition = self.op.get_irdl_definition()
        values: list[SSAValue] = []
        names: list[Attribute] = []
        for name, found in {**definition.properties, **definition.attributes}.items():
            if name in SEGMENTS:
                continue
            value = self._constraint(found.constr)
            # What may be anything may be `unit`, and IRDL takes no alternative to it.
            if isinstance(found, OptionalDef) and not isinstance(value.owner, irdl.AnyOp):
                absent = self.builder.insert(irdl.IsOp(UnitAttr())).output
                value = self.builder.insert(irdl.AnyOfOp([value, absent])).output
            values.append(value)
            names.append(StringAttr(name))
        if values:
            found_names = {"attribute_value_names": ArrayAttr(names)}
            self.builder.insert(irdl.AttributesOp.create(operands=values, properties=found_names))

    def _region(self, single: bool) -> SSAValue:
        properties: dict[str, Attribute] = (
            {"number_of_blocks": IntegerAttr(1, i32)} if single else {}
        )
        made = irdl.RegionOp.create(properties=properties, result_types=[irdl.RegionType()])
        return self.builder.insert(made).output

    def _note(self, what: str) -> None:
        ops = self.notes.setdefault(what, [])
        if self.op.name not in ops:
            ops.append(self.op.name)

    def _constraint(self, constraint: AttrConstraint) -> SSAValue:
        """The IRDL value of a constraint, as strong as IRDL has one."""
        match constraint:
            case VarConstraint():
                if constraint.name not in self.variables:
                    self.variables[constraint.name] = self._constraint(constraint.constraint)
                return self.variables[constraint.name]
            case MessageConstraint():
                return self._constraint(constraint.constr)
            case AnyOf():
                return self._several(irdl.AnyOfOp, constraint.attr_constrs)
            case AllOf():
                return self._several(irdl.AllOfOp, constraint.attr_constrs)
            case EqAttrConstraint():
                return self.builder.insert(irdl.IsOp(constraint.attr)).output
            case ParamAttrConstraint():
                return self._parametrized(constraint)
            case _:
                return self._plain(constraint)

    def _several(
        self, made: type[irdl.AnyOfOp] | type[irdl.AllOfOp], constraints: Iterable[AttrConstraint]
    ) -> SSAValue:
        return self.builder.insert(made([self._constraint(c) for c in constraints])).output

    def _parametrized(self, constraint: ParamAttrConstraint[ParametrizedAttribute]) -> SSAValue:
        if constraint.base_attr is IntegerAttr and _is_flag(constraint.param_constrs[1]):
            both = [EqAttrConstraint(BoolAttr.from_bool(flag)) for flag in (True, False)]
            return self._several(irdl.AnyOfOp, both)
        if constraint.base_attr is not SymbolRefAttr:
            self._note(_PARAMETERS_LOST)
        return self._base(constraint.base_attr)

    def _plain(self, constraint: AttrConstraint) -> SSAValue:
        match constraint:
            case BaseAttr():
                return self._base(constraint.attr)
            case SymbolNameConstraint():
                return self._base(StringAttr)
            case ArrayOfConstraint():
                self._note(_ELEMENTS_LOST)
                return self._base(ArrayAttr)
            case AnyAttr():
                return self.builder.insert(irdl.AnyOp()).output
            case _:
                self._note(f"{type(constraint).__name__} is any attribute")
                return self.builder.insert(irdl.AnyOp()).output

    def _base(self, attribute: type[object]) -> SSAValue:
        if attribute in _BASES:
            return self.builder.insert(irdl.BaseOp(_BASES[attribute])).output
        name = getattr(attribute, "name", "")
        dialect, _, own = name.partition(".")
        if dialect in irkit_dialects():
            reference = SymbolRefAttr(dialect, [own])
            return self.builder.insert(irdl.BaseOp(reference)).output
        self._note(f"{attribute.__name__} is any attribute")
        return self.builder.insert(irdl.AnyOp()).output


def _is_flag(constraint: AttrConstraint) -> bool:
    """Whether the type of an integer can be `i1` alone."""
    return constraint.verifies(i1) and not constraint.verifies(i32)


def _of_range(constraint: RangeConstraint) -> AttrConstraint:
    """What each member of a group of values is held to."""
    if isinstance(constraint, RangeLengthConstraint):
        return _of_range(constraint.constraint)
    return constraint.constr if isinstance(constraint, RangeOf) else AnyAttr()


def _one_type(constraint: AttrConstraint) -> bool:
    """Whether only one type satisfies a constraint: then all members of a group have it."""
    if isinstance(constraint, BaseAttr) and issubclass(constraint.attr, ParametrizedAttribute):
        return not constraint.attr.get_irdl_definition().parameters
    return isinstance(constraint, EqAttrConstraint)


def _slots(
    definition: OperandDef | ResultDef, widest: int
) -> list[tuple[str, irdl.VariadicityAttr]]:
    """Suffix and kind of each IRDL operand or result that a definition becomes."""
    if isinstance(definition, OptionalDef):
        return [("", irdl.VariadicityAttr.OPTIONAL)]
    if not isinstance(definition, VariadicDef):
        return [("", irdl.VariadicityAttr.SINGLE)]
    if _one_type(_of_range(definition.constr)):
        return [("", irdl.VariadicityAttr.VARIADIC)]
    return [(f"_{i}", irdl.VariadicityAttr.OPTIONAL) for i in range(widest)]


def _exported_attribute(attribute: type[Attribute]) -> irdl.TypeOp | irdl.AttributeOp:
    """A type or attribute; raises TypeError for a parameter that IRDL has no base for."""
    if not issubclass(attribute, ParametrizedAttribute):
        raise TypeError(f"'{attribute.name}' is not defined by IRDL")
    block = Block()
    values: list[SSAValue] = []
    names: list[StringAttr] = []
    for name, parameter in attribute.get_irdl_definition().parameters:
        if not isinstance(parameter.constr, BaseAttr):
            raise TypeError(f"parameter '{name}' of '{attribute.name}' has no base")
        base = irdl.BaseOp(_BASES[parameter.constr.attr])
        block.add_op(base)
        values.append(base.output)
        names.append(StringAttr(name))
    block.add_op(irdl.ParametersOp(values, ArrayAttr(names)))
    made = irdl.TypeOp if issubclass(attribute, TypeAttributeMixin) else irdl.AttributeOp
    return made(Dialect.split_name(attribute.name)[1], Region([block]))


def export_dialects(dialects: Iterable[Dialect], widest: int = 16) -> Export:
    """IRDL of `dialects`; groups of values have at most `widest` members."""
    notes: dict[str, list[str]] = {}
    module = ModuleOp([])
    for dialect in dialects:
        block = Block()
        for attribute in dialect.attributes:
            block.add_op(_exported_attribute(attribute))
        for op in sorted(dialect.operations, key=lambda o: o.name):
            if not issubclass(op, IRDLOperation):
                raise TypeError(f"'{op.name}' is not defined by IRDL")
            block.add_op(_OpExporter(op, notes, widest).export())
        module.body.block.add_op(irdl.DialectOp(dialect.name, Region([block])))
    return Export(module, notes)


# Modules


def foreign_text(module: ModuleOp, widest: int) -> str:
    """`module` in generic form with locations, its irkit ops as the exported definitions have them."""
    copy = module.clone()
    names = {op.name for dialect in irkit_dialects().values() for op in dialect().operations}
    pairs = list(zip(module.walk(), copy.walk(), strict=True))
    for op, made in pairs:
        made.location = op.location
        if made.name in names and isinstance(made, IRDLOperation):
            _rewrite(made, widest)
    stream = io.StringIO()
    Printer(stream, print_generic_format=True, print_debuginfo=True).print_op(copy)
    return stream.getvalue() + "\n"


def widest_group(module: ModuleOp) -> int:
    """The most operands or results of any op."""
    return max((max(len(op.operands), len(op.results)) for op in module.walk()), default=0)


def _rewrite(op: IRDLOperation, widest: int) -> None:
    definition = op.get_irdl_definition()
    sizes = {
        SEGMENTS[0]: _segments(op, definition.operands, widest),
        SEGMENTS[1]: _segments(op, definition.results, widest),
    }
    optional = {
        name: UnitAttr()
        for name, found in {**definition.properties, **definition.attributes}.items()
        if isinstance(found, OptionalDef)
    }
    written = {**optional, **op.properties, **op.attributes}
    for name, found in sizes.items():
        written.pop(name, None)
        if found:
            written[name] = DenseArrayBase.from_list(i32, found)
    op.properties.clear()
    op.attributes.clear()
    op.attributes.update(written)
    for block in (block for region in op.regions for block in region.blocks):
        block.add_op(UnregisteredOp.with_name(END).create())


def _segments(
    op: Operation, definitions: Sequence[tuple[str, OperandDef | ResultDef]], widest: int
) -> list[int]:
    """Sizes of an op's groups as exported; none if they are clear without."""
    groups = [(name, _slots(found, widest)) for name, found in definitions]
    kinds = [kind for _, slots in groups for _, kind in slots]
    if len(kinds) - kinds.count(irdl.VariadicityAttr.SINGLE) < 2:
        return []
    sizes: list[int] = []
    for name, slots in groups:
        found = getattr(op, name)
        count = 0 if found is None else 1 if isinstance(found, SSAValue) else len(found)
        sizes += [count] if len(slots) == 1 else [int(i < count) for i in range(len(slots))]
    return sizes
