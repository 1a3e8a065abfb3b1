"""From a checked ModelProto to a graph-level module, node by node."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from onnx import (
    GraphProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import NameLoc, StringAttr, UnknownLoc, i64
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import SSAValue

from irkit.dialects.symbols import BATCH
from irkit.dialects.types import DYNAMIC, Tensor, element_type, tensor, tensor_type
from irkit.errors import (
    ConstantInputError,
    InvalidInputError,
    InvalidModelError,
    OpenBatchError,
    UnsupportedError,
)
from irkit.frontends.module import GraphBuilder, ImportedModel, ModelInfo
from irkit.frontends.onnx.declared import check_declared, fitting
from irkit.frontends.onnx.extents import has_marks
from irkit.frontends.onnx.folding import FOLDABLE, fold
from irkit.frontends.onnx.functions import body_of, has_body
from irkit.frontends.onnx.handlers import ANYWHERE, DOMAINS, HANDLERS
from irkit.frontends.onnx.indexed import indexed_inputs
from irkit.frontends.onnx.load import Loaded, opset_of, symbols_of
from irkit.frontends.onnx.loops import LOOPS, unrolled
from irkit.frontends.onnx.narrow import NarrowValues, narrow_code
from irkit.frontends.onnx.node import NeedsConstant, Node, Refusal, Value
from irkit.frontends.onnx.provenance import provenance
from irkit.frontends.onnx.strings import Strings
from irkit.narrow_integers import narrow_of
from irkit.weights import Array

# What NumPy, protobuf and the handlers raise on numbers and text that no valid model has: ONNX's checker
# looks at little of them.
MALFORMED = (ArithmeticError, LookupError, TypeError, ValueError)


class Importer:
    """Walks the nodes once; what cannot be imported is collected, not raised at once."""

    def __init__(self, loaded: Loaded, constants: Mapping[str, Array]) -> None:
        self.model = model = loaded.model
        self.loaded = loaded
        self.constants = constants
        self.wanted: dict[str, None] = {}
        self.opset = opset_of(model)
        self.missing: list[str] = []
        self.values: dict[str, Value] = {}
        self.only_constants = True
        self.inlined = 0
        self.symbolic: set[str] = set()
        self.opened: list[tuple[str, str]] = []
        self.ambiguous = False
        self.named: list[str] = []
        self.builder = GraphBuilder([])
        self.strings, self.narrow = Strings(), NarrowValues()

    def run(self) -> ImportedModel:
        """The whole model. Raises UnsupportedError with every reason found, ConstantInputError if
        they all are inputs that must be constant."""
        self._read_initializers()
        self._declare_inputs()
        for proto in self.model.graph.node:
            self._import(proto)
        if self.missing and self.only_constants:
            raise ConstantInputError(tuple(self.wanted), self.missing)
        if self.missing:
            raise self._refusal()
        imported = self._finish()
        if self.missing:
            raise self._refusal()
        return imported

    def _refusal(self) -> UnsupportedError:
        """What is missing; an open batch may be why."""
        axes = {
            name: tensor_type(v).get_shape().index(DYNAMIC)
            for name, v in zip(self.builder.names, self.builder.inputs, strict=True)
            if DYNAMIC in tensor_type(v).get_shape()
        }
        if not axes or self.ambiguous:
            return UnsupportedError("this ONNX model cannot be imported:", self.missing)
        name = next(iter(axes))
        return OpenBatchError(
            "this ONNX model cannot be imported for a batch of any size (one of its dimensions is open:"
            f" batch=N, or shapes={{'{name}': ...}}, fixes it):",
            self.missing,
            axes,
        )

    def _read_initializers(self) -> None:
        for t in self.model.graph.initializer:
            try:
                self.values[t.name] = numpy_helper.to_array(t)
            except ValueError as error:
                raise InvalidModelError(f"initializer '{t.name}': {error}") from None
        for sparse in self.model.graph.sparse_initializer:
            self._miss(f"initializer '{sparse.values.name}': it is sparse")

    def _declare_inputs(self) -> None:
        # Before IR version 4, initializers were listed as inputs too.
        graph_inputs = [v for v in self.model.graph.input if v.name not in self.values]
        if unknown := sorted(self.constants.keys() - {v.name for v in graph_inputs}):
            raise InvalidInputError(
                f"constants names '{unknown[0]}', which is no input of the model"
            )
        inputs: list[tuple[str, Tensor]] = []
        kinds = {v.name: v.type.tensor_type.elem_type for v in graph_inputs}
        for value in graph_inputs:
            if value.name in self.constants:
                self.values[value.name] = fitting(value, self.constants[value.name])
            elif (declared := self._input_type(value)) is not None:
                inputs.append((value.name, declared))
        self.builder = GraphBuilder(inputs, max((n for n, _ in self.opened), default="") or BATCH)
        for (name, _), argument in zip(inputs, self.builder.inputs, strict=True):
            self.values[name] = argument
            if name in self.named:
                self.strings.mark(argument)
            if kind := narrow_code(kinds[name]):
                self.narrow.mark(argument, kind)

    def _input_type(self, value: ValueInfoProto) -> Tensor | None:
        declared = value.type.tensor_type
        if not value.type.HasField("tensor_type"):
            self._miss(f"input '{value.name}': it must be a tensor of known rank")
            return None
        if not declared.HasField("shape"):
            self._miss(
                f"input '{value.name}': it has no shape (give it one with"
                f" shapes={{'{value.name}': ...}})"
            )
            return None
        sizes = [d.dim_value if d.HasField("dim_value") else DYNAMIC for d in declared.shape.dim]
        if any(s < 1 for s in sizes if s != DYNAMIC):
            empty = all(s >= 0 for s in sizes if s != DYNAMIC)
            how = f" (give an empty one as constants={{'{value.name}': array}})" if empty else ""
            self._miss(f"input '{value.name}': no dimension may be below 1, got {sizes}{how}")
            return None
        if not self._one_symbol(value):
            return None
        if declared.elem_type == TensorProto.STRING:
            self.named.append(value.name)
            return tensor(i64, sizes)
        if kind := narrow_code(declared.elem_type):
            return tensor(element_type(kind.wide), sizes)
        try:
            element = element_type(helper.tensor_dtype_to_np_dtype(declared.elem_type))
        except KeyError:
            names = {number: name for name, number in TensorProto.DataType.items()}
            kind = names.get(declared.elem_type, str(declared.elem_type))
            self._miss(f"input '{value.name}': element type {kind} is not supported")
            return None
        return tensor(element, sizes)

    def _one_symbol(self, value: ValueInfoProto) -> bool:
        """Whether the symbolic dimensions of an input are the batch of all others; if not, say so."""
        own = symbols_of(value)
        self.opened += [(n, value.name) for n in own]
        if len({n for n, _ in self.opened} - {""}) < 2 and len(own) < 2:
            return True
        self.ambiguous = True
        (first, where), (second, here) = self.opened[0], self.opened[-1]
        first = first or f"{where}[0]"
        place = "it" if where == here else f"input '{where}'"
        self._miss(
            f"input '{here}': its dimension '{second}' and '{first}' of {place} are both open, and a program"
            f" is compiled for any size of one dimension alone"
            f" (fix the others with shapes={{'{here}': ...}})"
        )
        return False

    def _import(self, proto: NodeProto) -> None:
        """Import one node, or note why not."""
        name = proto.name or next(filter(None, proto.output), "")
        where = f"node '{name}' ({proto.op_type})"
        if proto.domain not in DOMAINS:
            self._miss(f"{where}: operator domain '{proto.domain}' is not supported")
            return
        if not _is_known(proto, self.opset):
            of = f" of domain '{proto.domain}'" if proto.domain else ""
            self._miss(f"{where}: this operator{of} is not supported")
            return
        self.builder.location = NameLoc(StringAttr(name or proto.op_type), UnknownLoc())
        try:
            node = self._node(proto, self.opset)
            if node is None:
                return  # it reads what could not be imported, which is reported already
            self._define(node, self._outputs(node))
        except MALFORMED as error:
            self._miss(f"{where}: its inputs and attributes make no sense together ({error})")
        except NeedsConstant as need:
            self.missing.append(f"{where}: {need}")
            self._want(need.value)
        except Refusal as refusal:
            self._miss(f"{where}: {refusal}")

    def _miss(self, reason: str) -> None:
        self.missing.append(reason)
        self.only_constants = False

    def _want(self, value: SSAValue) -> None:
        """Note the inputs that `value` is computed from."""
        for argument in provenance(value).inputs:
            self.wanted[self.builder.names[argument.index]] = None

    def _outputs(self, node: Node) -> Sequence[Value]:
        """What a node computes: folded, by its handler, or by its operator's body."""
        op, handlers = node.proto.op_type, DOMAINS.get(node.proto.domain, {})
        self._check_elements(node)
        node.check_values()
        if not node.proto.domain and (folded := fold(node, op in handlers)) is not None:
            return folded
        if op == "If":
            return self._branch(node)
        if op in LOOPS and not node.proto.domain:
            return self._loop(node)
        if op in handlers:
            if node.proto.domain or op not in ANYWHERE:
                _check_leading(node)
            outputs = handlers[op](node)
            node.check_attributes()
            self.strings.moved(node.proto, node.inputs, outputs)
            self.narrow.moved(node.proto, node.inputs, outputs)
            return outputs
        if has_body(node.proto, node.opset):
            return self._inline(node)
        if node.proto.domain:
            node.refuse("", f"this operator of domain '{node.proto.domain}' is not supported")
        if op in FOLDABLE:
            node.refuse("", "it is supported only where its inputs are constant")
        node.refuse("", "this operator is not supported")

    def _check_elements(self, node: Node) -> None:
        """Refuse a node that cannot read strings, or integers of so few bits, where it does."""
        for values in (self.strings, self.narrow):
            if reason := values.why_not(node.proto, node.inputs):
                node.refuse("", reason)

    def _branch(self, node: Node) -> Sequence[Value]:
        """Import the branch of an If that a known condition takes; it may read all names around it."""
        taken = node.attribute("then_branch" if node.array(0).item() else "else_branch", None)
        for t in taken.initializer:
            self.values[t.name] = numpy_helper.to_array(t)
        self._import_nodes(node, taken.node, node.opset, "in its branch")
        return [self.values[v.name] for v in taken.output]

    def _loop(self, node: Node) -> Sequence[Value]:
        """Import the body of a loop as often as it runs; it may read all names around it."""
        body = node.attribute("body", None)
        outputs = unrolled(node, body, partial(self._round, node, body))
        node.check_attributes()
        return outputs

    def _round(self, node: Node, body: GraphProto, given: Sequence[Value]) -> list[Value]:
        """Import a body for these inputs; what has a name in it has none outside."""
        around, marked = dict(self.values), set(self.symbolic)
        for t in body.initializer:
            self.values[t.name] = numpy_helper.to_array(t)
        self.values.update(zip((v.name for v in body.input), given, strict=True))
        self._import_nodes(node, body.node, node.opset, "in its body")
        names = [v.name for v in body.output]
        if any(name in self.symbolic for name in names):
            node.refuse("", "its body computes with the dynamic batch size")
        found = [self.values[name] for name in names]
        self.values, self.symbolic = around, marked
        return found

    def _inline(self, node: Node) -> Sequence[Value]:
        """Import the body of an operator that is defined by others."""
        self.inlined += 1
        protos, outputs, opset = body_of(node, f"{node.proto.op_type}{self.inlined}/")
        self._import_nodes(node, protos, opset, "in its body")
        # What the node does not ask for need not be there.
        asked = zip(outputs, node.proto.output, strict=False)
        return [self.values[name] if out else np.empty(0) for name, out in asked]

    def _import_nodes(
        self, node: Node, protos: Sequence[NodeProto], opset: int, where: str
    ) -> None:
        """Import nodes that are part of `node`, and refuse it with what one of them refuses."""
        for proto in protos:
            inner = self._node(proto, opset)
            if inner is None:
                node.refuse(f"{where}, {proto.op_type}", "it reads what could not be imported")
            try:
                self._define(inner, self._outputs(inner))
            except NeedsConstant as need:
                raise NeedsConstant(f"{where}, {proto.op_type}", need.value) from None
            except Refusal as refusal:
                node.refuse(f"{where}, {proto.op_type}", str(refusal))

    def _node(self, proto: NodeProto, opset: int) -> Node | None:
        if any(n and n not in self.values for n in proto.input):
            return None
        inputs = [self.values[n] if n else None for n in proto.input]
        symbolic = [n in self.symbolic for n in proto.input]
        return Node(proto, opset, self.builder, inputs, symbolic, self.strings, self.narrow)

    def _define(self, node: Node, outputs: Sequence[Value]) -> None:
        for index, name in enumerate(node.proto.output):
            if not name:
                continue
            if index >= len(outputs):
                node.refuse(f"output '{name}'", "this output is not supported")
            value = self.values[name] = outputs[index]
            if isinstance(value, SSAValue):
                _suggest_name(value, name)
            elif self._holds_batch(node, value):
                self.symbolic.add(name)

    def _holds_batch(self, node: Node, array: Array) -> bool:
        reads_shape = node.proto.op_type == "Shape" or any(node.symbolic)
        return reads_shape and has_marks(array)

    def _finish(self) -> ImportedModel:
        outputs: list[tuple[str, SSAValue]] = []
        narrow = {n: k.name for n in self.builder.names if (k := self.narrow.of(self.values[n]))}
        for declared in self.model.graph.output:
            value = self.values[declared.name]
            if kind := self.narrow.of(value):
                narrow[declared.name] = kind.name
            if not isinstance(value, SSAValue):
                value = self._constant_output(declared.name, value)
            check_declared(declared, tensor_type(value))
            outputs.append((declared.name, value))
        producer = f"ONNX {self.model.producer_name} {self.model.producer_version}".strip()
        names = tuple(name for name, _ in outputs)
        strings = self.strings
        info = ModelInfo(
            "network",
            self.builder.names,
            names,
            source=producer,
            vocabulary=tuple(strings.numbers),
            string_inputs=tuple(self.named),
            string_outputs=tuple(name for name, value in outputs if value in strings.values),
            string_steps=self.loaded.string_steps,
            caller_inputs=self.loaded.caller_inputs,
            indexed=indexed_inputs(self.builder),
            maps={name: strings.maps[value] for name, value in outputs if value in strings.maps},
            narrow=narrow,
        )
        # ONNX says of functions what they are, not to which digit; ONNX Runtime approximates them too.
        return self.builder.finish(outputs, info, FastMathFlagsAttr([FastMathFlag.APPROX_FUNC]))

    def _constant_output(self, name: str, array: Array) -> SSAValue:
        if name in self.symbolic:
            self._miss(f"output '{name}': it is the dynamic batch size")
        if kind := narrow_of(array.dtype):
            array = array.astype(kind.wide)
        try:
            return self.builder.constant(array)
        except KeyError:
            raise UnsupportedError(f"output '{name}': dtype {array.dtype}") from None


def _check_leading(node: Node) -> None:
    """Refuse an operand whose batch does not lead: the handler knows of no other."""
    for index, value in enumerate(node.inputs):
        if isinstance(value, SSAValue) and DYNAMIC in tensor_type(value).get_shape()[1:]:
            node.refuse(node.name_of(index), "the dynamic batch is not its leading dimension")


def _is_known(proto: NodeProto, opset: int) -> bool:
    own = DOMAINS[proto.domain] if proto.domain else {*LOOPS, "If", *HANDLERS, *FOLDABLE}
    return proto.op_type in own or has_body(proto, opset)


def _suggest_name(value: SSAValue, name: str) -> None:
    hint = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
    if value.name_hint is None and hint and not hint[0].isdigit():
        value.name_hint = hint
