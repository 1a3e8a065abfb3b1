"""`split-at-collectives`: what stands between collective ops as functions of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException
from xdsl.utils.hints import isa

from irkit.dialects.dist import CollectiveOp
from irkit.dialects.functions import is_straight
from irkit.dialects.graph import ReshapeOp, TransposeOp
from irkit.dialects.state import StatePair, set_state, state_of

_COPIED = (ConstantOp, ReshapeOp, TransposeOp)
"""What is made anew where it is needed, of what it is made of."""
_OWN = ("irkit.inputs", "irkit.outputs", "irkit.state")
"""Attributes that a part has of its own."""


@dataclass(frozen=True)
class SplitAtCollectives(ModulePass):
    """Make functions of what stands between collective ops, which are called there.

    A collective op is called behind a part that computes what it needs and nothing else; so what it does not
    need, as the rest of a backward pass, comes behind it and can go on beside it. The last part computes
    all that is left: with it all the state, which it alone updates. Constants and changes of shape are made in
    each part that needs them. Functions without loops. Exact.

    ```mlir
    %g = graph.neg %x : (tensor<8xf32>) -> tensor<8xf32>
    %s = dist.all_reduce %g {kind = "sum"} : (tensor<8xf32>) -> tensor<8xf32>
    %y = graph.exp %s : (tensor<8xf32>) -> tensor<8xf32>
    ```
    becomes
    ```mlir
    %g = func.call @main_part0(%x) : (tensor<8xf32>) -> tensor<8xf32>
    %s = dist.all_reduce %g {kind = "sum"} : (tensor<8xf32>) -> tensor<8xf32>
    %y = func.call @main_part1(%s) : (tensor<8xf32>) -> tensor<8xf32>
    ```
    """

    name = "split-at-collectives"
    requires: ClassVar[tuple[str, ...]] = ("graph",)
    produces: ClassVar[str] = "graph"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in list(op.ops):
            if not isinstance(function, FuncOp) or not function.body.blocks:
                continue
            if not any(isinstance(inner, CollectiveOp) for inner in function.walk()):
                continue
            if not is_straight(function):
                raise PassFailedException(
                    f"'@{function.sym_name.data}' has loops or calls beside collective ops"
                )
            _Splitting(function).run()


@dataclass
class _Part:
    """Ops of a part, what it takes of the function, and which of its values others need."""

    ops: list[Operation]
    pairs: tuple[StatePair, ...] = ()
    copier: _Copier | None = None
    results: list[SSAValue] = field(default_factory=list[SSAValue])

    @property
    def made(self) -> _Copier:
        """What its block is made with."""
        assert self.copier is not None
        return self.copier


class _Splitting:
    """One function, while it is split."""

    def __init__(self, function: FuncOp) -> None:
        self.function, self.block = function, function.body.block
        end = self.block.last_op
        assert isinstance(end, ReturnOp)
        self.end = end
        self.collectives = [op for op in self.block.ops if isinstance(op, CollectiveOp)]
        self._stage: dict[Operation, int] = {}

    def run(self) -> None:
        """Split it."""
        parts = self._parts()
        for part in parts:
            part.copier = _Copier([self.block.args[p.argument] for p in part.pairs])
            self._fill(part)
        paired = {pair.result for part in parts for pair in part.pairs}
        needed = [v for part in parts for v in part.made.arguments]
        needed += [v for op in self.collectives for v in op.operands]
        needed += [v for n, v in enumerate(self.end.operands) if n not in paired]
        for part in parts:
            own = set(part.ops)
            part.results = [v for v in dict.fromkeys(needed) if v.owner in own]
        self._write(parts)

    def _parts(self) -> list[_Part]:
        for number, op in enumerate(self.collectives):
            self._need(op, number)
        last = len(self.collectives)
        for op in self.block.ops:
            if op is not self.end and not isinstance(op, CollectiveOp):
                self._stage.setdefault(op, last)
        found = [_Part([op for op in self.block.ops if self._stage.get(op) == n]) for n in range(last + 1)]
        found[-1].pairs = state_of(self.function)
        return found

    def _need(self, op: Operation, number: int) -> None:
        """What an op needs, and no part has yet, is in part `number`."""
        pending = list(op.operands)
        while pending:
            owner = pending.pop().owner
            if not isinstance(owner, Operation) or owner in self._stage:
                continue
            if not isinstance(owner, CollectiveOp):
                self._stage[owner] = number
                pending += owner.operands

    def _fill(self, part: _Part) -> None:
        for op in part.ops:
            part.made.add(op)
        for pair in part.pairs:
            part.made.need(self.end.operands[pair.result])

    def _write(self, parts: Sequence[_Part]) -> None:
        """The calls of the parts, and the collective ops between, in place of all ops."""
        env: dict[SSAValue, SSAValue] = {a: a for a in self.block.args}
        made: list[Operation] = []
        for number, part in enumerate(parts):
            if part.results or part.pairs:
                function = self._function(number, part)
                call = self._call(function, part, env)
                env.update(zip(part.results, call.results, strict=False))
                made.append(call)
            if number < len(self.collectives):
                copy = self.collectives[number].clone(env)
                env.update(zip(self.collectives[number].results, copy.results, strict=True))
                made.append(copy)
        returned = [env.get(v, v) for v in self.end.operands]
        if parts[-1].pairs:
            news = made[-1].results[len(parts[-1].results) :]
            for pair, value in zip(parts[-1].pairs, news, strict=True):
                returned[pair.result] = value
        made.append(ReturnOp(*returned))
        for op in reversed(list(self.block.ops)):
            Rewriter.erase_op(op, safe_erase=False)
        self.block.add_ops(made)

    def _call(self, function: FuncOp, part: _Part, env: dict[SSAValue, SSAValue]) -> CallOp:
        given = [env[v] for v in part.made.arguments]
        call = CallOp(function.sym_name.data, given, list(function.function_type.outputs))
        call.location = function.location
        for value, result in zip(part.results, call.results, strict=False):
            result.name_hint = value.name_hint
        return call

    def _name(self, value: SSAValue, number: int) -> str:
        """What an argument of a part is called: as the function calls it, if it is one of its own."""
        given = self.function.attributes.get("irkit.inputs")
        if isinstance(value, BlockArgument) and isa(given, ArrayAttr[StringAttr]):
            return given.data[value.index].data
        return f"_{number}"

    def _function(self, number: int, part: _Part) -> FuncOp:
        outputs = [*part.results, *(self.end.operands[p.result] for p in part.pairs)]
        arguments = part.made.arguments
        types = [v.type for v in arguments], [v.type for v in outputs]
        name = f"{self.function.sym_name.data}_part{number}"
        made = FuncOp(name, types, Region(part.made.block(outputs)))
        for key, value in self.function.attributes.items():
            if key.startswith("irkit.") and key not in _OWN:
                made.attributes[key] = value
        made.attributes["irkit.inputs"] = ArrayAttr(
            [StringAttr(self._name(v, n)) for n, v in enumerate(arguments)]
        )
        made.attributes["irkit.outputs"] = ArrayAttr(
            [StringAttr(f"_{n}") for n in range(len(outputs))]
        )
        if part.pairs:
            plain = len(part.results)
            places = [arguments.index(self.block.args[p.argument]) for p in part.pairs]
            set_state(made, [StatePair(a, plain + n) for n, a in enumerate(places)])
        if part.ops:
            made.location = part.ops[-1].location
        Rewriter.insert_op(made, InsertPoint.before(self.function))
        return made


class _Copier:
    """Ops of a part in a block of their own. `arguments` are what that takes of the function."""

    def __init__(self, arguments: Sequence[SSAValue]) -> None:
        self.arguments = list(arguments)
        self._made = Block(arg_types=[v.type for v in arguments])
        self._env: dict[SSAValue, SSAValue] = dict(zip(arguments, self._made.args, strict=True))

    def block(self, outputs: Sequence[SSAValue]) -> Block:
        """The block, which returns `outputs`."""
        self._made.add_op(ReturnOp(*(self._env[v] for v in outputs)))
        return self._made

    def add(self, op: Operation) -> None:
        """One more op."""
        for value in op.operands:
            self.need(value)
        copy = op.clone(self._env)
        self._made.add_op(copy)
        self._env.update(zip(op.results, copy.results, strict=True))

    def need(self, value: SSAValue) -> None:
        """Have a value: made anew, or as an argument."""
        if value in self._env:
            return
        owner = value.owner
        if isinstance(owner, Operation) and isinstance(owner, _COPIED):
            self.add(owner)
            return
        argument = self._made.insert_arg(value.type, len(self._made.args))
        argument.name_hint = value.name_hint
        self.arguments.append(value)
        self._env[value] = argument
