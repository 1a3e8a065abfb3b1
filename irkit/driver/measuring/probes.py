"""Programs that are compiled to be measured: rOperators of a module, each by several of its alternatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.tensor import ExtractSliceOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from irkit.context import IrkitContext
from irkit.dialects.task import AlternativeAttr, LaunchOp, ROperatorOp
from irkit.dialects.tensor_ops.reshape import RESHAPES
from irkit.driver.diagnostics.library_errors import library_errors
from irkit.driver.pipelines.runner import PipelineRunner, Verify
from irkit.driver.pipelines.specification import build_pipeline
from irkit.driver.registry import all_passes
from irkit.model_info import ModelInfo
from irkit.passes.task.vdevices import vdevice_op
from irkit.remarks import Record, recording
from irkit.rkernels.work import TYPICAL_ROWS
from irkit.runtime.artifact import Artifact
from irkit.schedule.model import VDevice

_PASSES = "schedule-wavefront,plan-memory,select-accesses,verify-schedule"


@dataclass(frozen=True, eq=False)
class Question:
    """What does an rTask of the launched rOperator take by this alternative, the batch being so many `rows`?
    `key` is what its answer is kept under."""

    op: ROperatorOp
    launch: LaunchOp
    alternative: AlternativeAttr
    key: str
    rows: int = TYPICAL_ROWS


class Probe:
    """A program of one function that launches every question's rOperator once, on one vEU.

    Operands that are constants of the program are the same constants; others are inputs, one for each type.
    The first alternative of every rOperator comes first, then the second of every one: so each finds in
    caches what a program leaves there that has other work between two launches, and all find the same.
    """

    def __init__(self, questions: Sequence[Question], device: VDevice) -> None:
        self.device = replace(device, veus=1)
        self._main = Block()
        self._inputs: dict[Attribute, SSAValue] = {}
        self._constants: dict[SSAValue, SSAValue] = {}
        self.symbols = {f"probe_{n}": question for n, question in enumerate(questions)}
        self.module = self._module(_by_turns(list(self.symbols.items())))

    def artifact(self, ctx: IrkitContext) -> Artifact:
        """Scheduled and emitted; for a GPU the kernels of its rOperators, compiled to a cubin.

        Raises UnsupportedError for what has no emission.
        """
        from irkit.lower.task_to_numba.emit import emit_module

        with library_errors(), recording(Record(frozenset())):
            passes = build_pipeline(_PASSES, all_passes())
            PipelineRunner(ctx, verify=Verify.LEVELS).run(self.module, passes)
        target = "cuda" if self.device.kind == "cuda" else "cpu"
        source = emit_module(self.module, ctx.weights, target)
        text = str(self.module)
        weights = {name: ctx.weights[name] for name in ctx.weights if f'"{name}"' in text}
        inputs = tuple(f"input{n}" for n in range(len(self._inputs)))
        info = ModelInfo("network", inputs, ("output0",))
        cubin = _cubin(source) if target == "cuda" else b""
        return Artifact(target, source, weights, info.to_json(), cubin=cubin)

    def _module(self, turns: Sequence[tuple[str, Question]]) -> ModuleOp:
        made: list[ROperatorOp] = []
        launches: list[LaunchOp] = []
        for symbol, question in turns:
            op = question.op.clone()
            op.sym_name = StringAttr(symbol)
            op.choose(question.alternative)
            made.append(op)
            operands = [self._operand(value) for value in question.launch.arguments]
            launches.append(LaunchOp(symbol, operands, question.launch.result_types))
            self._main.add_op(launches[-1])
        results = launches[0].outputs
        self._main.add_op(ReturnOp(*results))
        types = list(self._main.arg_types), [value.type for value in results]
        main = FuncOp("main", types, Region(self._main))
        return ModuleOp([vdevice_op(self.device), *made, main])

    def _operand(self, value: SSAValue) -> SSAValue:
        if is_constant(value):
            return self._constant(value)
        if value.type not in self._inputs:
            self._inputs[value.type] = self._main.insert_arg(value.type, len(self._inputs))
        return self._inputs[value.type]

    def _constant(self, value: SSAValue) -> SSAValue:
        if value in self._constants:
            return self._constants[value]
        op = value.owner
        assert not isinstance(op, Block)
        copy = op.clone({v: self._constant(v) for v in op.operands})
        self._main.add_op(copy)
        self._constants[value] = copy.results[0]
        return self._constants[value]


def is_constant(value: SSAValue) -> bool:
    """Whether a value is a constant of the program, or a view of one."""
    op = value.owner
    if isinstance(op, (*RESHAPES, ExtractSliceOp)):
        return all(is_constant(v) for v in op.operands)
    return isinstance(op, ConstantOp)


def constants_of(launch: LaunchOp) -> list[ConstantOp]:
    """The constants that operands of a launch are, or are views of."""
    found: list[ConstantOp] = []
    for value in launch.arguments:
        while isinstance(value.owner, (*RESHAPES, ExtractSliceOp)):
            value = value.owner.operands[0]
        if isinstance(value.owner, ConstantOp):
            found.append(value.owner)
    return found


def _by_turns(questions: list[tuple[str, Question]]) -> list[tuple[str, Question]]:
    """The first question about every rOperator, then the second about every one, and so on."""
    asked: dict[ROperatorOp, int] = {}
    turns: list[int] = []
    for _, question in questions:
        turns.append(asked.get(question.op, 0))
        asked[question.op] = turns[-1] + 1
    order = sorted(range(len(questions)), key=lambda n: turns[n])
    return [questions[n] for n in order]


def _cubin(source: str) -> bytes:
    """The kernels of the rOperators alone, each by itself: that is how they are measured."""
    from irkit.runtime.cuda.compiling import compile_module
    from irkit.runtime.cuda.facts import read_facts

    _, facts = read_facts(source)
    entries = [entry for entry in facts.entries if entry.startswith("op_")]
    return compile_module(source, entries, facts.threads, facts.arch)
