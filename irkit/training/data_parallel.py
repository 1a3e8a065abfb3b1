"""Steps of training on every rank of a group: in parts, between which gradients are reduced."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from irkit.context import IrkitContext
from irkit.dialects.dist import AllReduceOp, BroadcastOp, CollectiveOp
from irkit.dialects.functions import function_named
from irkit.dialects.segments import segments_of
from irkit.dialects.state import state_of
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.driver.compiler.artifacts import build_artifact
from irkit.driver.compiler.compile import absent_device
from irkit.driver.compiler.fastmath import check_fastmath, set_fastmath
from irkit.driver.compiler.models import ONE_BUILDER
from irkit.driver.compiler.targets import planned_device, target_of
from irkit.driver.diagnostics.library_errors import library_errors
from irkit.driver.pipelines.collecting import seldom_collected
from irkit.driver.pipelines.runner import PipelineRunner, Verify
from irkit.driver.pipelines.specification import build_pipeline
from irkit.driver.registry import all_passes, register_dialects
from irkit.errors import DeviceError, InvalidInputError, UnsupportedError
from irkit.frontends.module import MODEL_ATTRIBUTE, ImportedModel
from irkit.model_info import ModelInfo
from irkit.passes.dist.bucket_all_reduces import BYTES
from irkit.passes.host.program_text import program_of
from irkit.runtime.dist.engine import Engine
from irkit.runtime.dist.parted import Meeting, PartCall, PartedProgram
from irkit.runtime.mode_choice import check_mode
from irkit.runtime.variant import Variant
from irkit.schedule.host.expected import estimate
from irkit.schedule.host.model import HostBuffer, HostTask, Region, Space, Use
from irkit.schedule.host.planning import assign_streams
from irkit.schedule.host.verifier import verify
from irkit.training.update import SIGNATURE, UNSOUND
from irkit.weights import Array

PIPELINE = (
    "place-in-group{{rank={rank} size={size}}},canonicalize,cse,dce,"
    "bucket-all-reduces{{bytes={bytes}}},split-at-collectives,canonicalize"
)
"""What makes parts of a step."""


@dataclass(frozen=True)
class DataParallel:
    """Ranks of a group, each with a part of the batch. `bucket_bytes`: gradients are reduced so many bytes
    together."""

    group: Engine
    bucket_bytes: int = BYTES

    def agree(self, arrays: Mapping[str, Array]) -> None:
        """Raises InvalidInputError where ranks do not start from the same arrays."""
        own = [_digest(f"{n} {a.dtype} {a.shape}".encode(), a.tobytes()) for n, a in arrays.items()]
        counts = self.group.exchange(np.array([len(own)], np.int64))[:, 0]
        if len({*counts.tolist()}) > 1:
            raise InvalidInputError(
                f"ranks of a group have {', '.join(map(str, counts))} arrays of parameters and state: "
                "expected the same on each"
            )
        for name, digests in zip(arrays, self.group.exchange(np.array(own)).T, strict=True):
            if len({*digests.tolist()}) > 1:
                array = arrays[name]
                raise InvalidInputError(
                    f"'{name}' differs between the ranks of a group; on rank {self.group.rank} it is "
                    f"{array.dtype}{list(array.shape)}: start from the same values of the same shapes"
                )

    def check(self, agreed: Array) -> None:
        """Raises InvalidInputError where the ranks' inputs are not of the same shapes and dtypes, or those of
        another rank were refused there. `agreed`: what the step says of that."""
        if agreed[SIGNATURE] != -agreed[SIGNATURE + 1]:
            raise InvalidInputError(
                f"{self._where}: the inputs of ranks are not of the same shapes and dtypes; the state is "
                "as it was"
            )
        if agreed[UNSOUND]:
            raise InvalidInputError(
                f"{self._where}: the step of another rank was refused; the state is as it was"
            )

    def compiled(self, imported: ImportedModel, options: Mapping[str, Any]) -> ParallelProgram:
        """A step as this rank's program. `options`: those of `irkit.jit`. Raises UnsupportedError,
        DeviceError."""
        device = planned_device(options["target"], options["device"])
        target = target_of(device)
        if target != self.group.target:
            raise DeviceError(
                f"data_parallel: arrays of a group by {self.group.name} lie on '{self.group.target}', and "
                f"the step is for '{target}'"
            )
        check_mode(target, options["mode"])
        check_fastmath(options["fastmath"])
        if any(segments_of(imported.module)):
            raise UnsupportedError(
                "data_parallel with checkpoint: a step of a group is several programs, of which later ones"
                " read what earlier ones computed"
            )
        with ONE_BUILDER, seldom_collected():
            set_fastmath(imported.module, options["fastmath"])
            self._split(imported)
            return _Building(imported, self.group, device, options).program()

    @property
    def _where(self) -> str:
        return f"rank {self.group.rank} of {self.group.size}"

    def _split(self, imported: ImportedModel) -> None:
        ctx = IrkitContext(weights=imported.weights)
        register_dialects(ctx)
        group = self.group
        text = PIPELINE.format(rank=group.rank, size=group.size, bytes=self.bucket_bytes)
        with library_errors():
            passes = build_pipeline(text, all_passes())
            PipelineRunner(ctx, verify=Verify.LEVELS).run(imported.module, passes)


class ParallelProgram(PartedProgram):
    """A step of a rank, and its text."""

    text: str = ""

    def ir(self, level: str) -> str:
        """Its text: at "graph" the calls of parts and what the ranks do between them, at "host" the proved
        plan of these, below that each part."""
        if level == "graph":
            return self.text
        if level == "host":
            return str(program_of(self.plan, "main", verified=True))
        return "\n".join(part.artifact.ir[level] for part in self.parts)


@dataclass
class _Building:
    """A split function as parts that are compiled, and a plan of them."""

    imported: ImportedModel
    group: Engine
    device: Any
    options: Mapping[str, Any]
    numbers: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    buffers: list[HostBuffer] = field(default_factory=list[HostBuffer])
    tasks: list[HostTask] = field(default_factory=list[HostTask])
    actions: list[PartCall | Meeting] = field(default_factory=list[PartCall | Meeting])

    def program(self) -> ParallelProgram:
        """Compile the parts, plan, and prove the plan."""
        module = self.imported.module
        main = function_named(module, "main")
        assert main is not None
        pairs = {p.argument: n for n, p in enumerate(state_of(main))}
        returned = {p.result for p in state_of(main)}
        block = main.body.block
        for n, value in enumerate(block.args):
            self._number(value, value.name_hint or f"input{n}")
        # All collective ops are in one order on all ranks: each changes what stands for their way.
        self.buffers.append(HostBuffer("communicator", "host", 1))
        self._way = len(self.buffers) - 1
        for op in block.ops:
            if isinstance(op, CallOp):
                self._part(op, main)
            elif isinstance(op, CollectiveOp):
                self._meeting(op)
        end = block.last_op
        assert isinstance(end, ReturnOp)
        plan = assign_streams(self.buffers, self.tasks)
        verify(plan)
        made = ParallelProgram(
            self.group,
            plan,
            self.actions,
            [self.numbers[v] for n, v in enumerate(block.args) if n not in pairs],
            {self.numbers[v]: pairs[n] for n, v in enumerate(block.args) if n in pairs},
            [self.numbers[v] for n, v in enumerate(end.operands) if n not in returned],
        )
        made.text = str(module)
        return made

    def _number(self, value: SSAValue, name: str) -> int:
        space: Space = "device" if self.group.target == "cuda" else "host"
        self.buffers.append(HostBuffer(name, space, _nbytes(value)))
        self.numbers[value] = len(self.buffers) - 1
        return self.numbers[value]

    def _use(self, value: SSAValue, reads: bool, writes: bool) -> Use:
        whole = Region.of(self.numbers[value], 0, (_nbytes(value),), (1,), 1)
        return Use(whole, reads, writes, value.name_hint or "")

    def _part(self, op: CallOp, main: FuncOp) -> None:
        function = function_named(self.imported.module, op.callee.string_value())
        assert function is not None
        kept = {p.argument: p.result for p in state_of(function)}
        given = list(enumerate(op.arguments))
        made = [r for n, r in enumerate(op.results) if n not in kept.values()]
        for result in made:
            self._number(result, result.name_hint or f"{function.sym_name.data}_{result.index}")
        uses = [self._use(v, True, n in kept) for n, v in given]
        uses += [self._use(v, False, True) for v in made]
        kind = "program" if self.group.target == "cuda" else "function"
        cost = estimate(kind, uses)
        self.tasks.append(HostTask(function.sym_name.data, kind, tuple(uses), cost))
        arguments = tuple(self.numbers[v] for n, v in given if n not in kept)
        results = tuple(self.numbers[v] for v in made)
        self.actions.append(PartCall(self._compiled(function), arguments, results))

    def _compiled(self, function: FuncOp) -> Variant:
        copy = function.clone()
        copy.sym_name = StringAttr("main")
        module = ModuleOp([copy])
        inputs = tuple(_texts(copy, "irkit.inputs"))
        outputs = tuple(_texts(copy, "irkit.outputs"))
        info = ModelInfo("network", inputs, outputs, source="numpy")
        module.attributes[MODEL_ATTRIBUTE] = StringAttr(info.to_json())
        part = ImportedModel(module, self.imported.weights, info)
        artifact = build_artifact(part, self.device, self.options["cache"])
        mode = self.options["mode"]
        return Variant(artifact, mode, absent_device(artifact, mode))

    def _meeting(self, op: CollectiveOp) -> None:
        (value,), result = op.operands, op.results[0]
        self.group.check(numpy_dtype(tensor_type(value).element_type))
        own = isinstance(value.owner, Operation) and len(list(value.uses)) == 1
        self._number(result, result.name_hint or "reduced")
        uses = [self._use(value, True, own), self._use(result, False, True)]
        uses.append(Use(Region.of(self._way, 0, (1,), (1,), 1), True, True, "communicator"))
        name = f"{op.name} of {_nbytes(value)} bytes"
        self.tasks.append(HostTask(name, "collective", tuple(uses), estimate("collective", uses)))
        how = op.kind.data if isinstance(op, AllReduceOp) else ""
        root = op.root.value.data if isinstance(op, BroadcastOp) else 0
        at = self.numbers[value], self.numbers[result]
        self.actions.append(Meeting(op.name, *at, how, root, own))


def _texts(function: FuncOp, attribute: str) -> Sequence[str]:
    found: Any = function.attributes[attribute]
    return [name.data for name in found.data]


def _nbytes(value: SSAValue) -> int:
    held = tensor_type(value)
    return math.prod(held.get_shape()) * numpy_dtype(held.element_type).itemsize


def _digest(*parts: bytes) -> int:
    found = 0
    for part in parts:
        found = zlib.crc32(part, found)
    return found
