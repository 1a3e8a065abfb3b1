"""Functions of a module, differentiated: which arguments, which results, what is given and what comes
back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.utils.hints import isa

from irkit.dialects.graph.base import product
from irkit.dialects.graph.gradients import has_gradient
from irkit.dialects.graph.gradients.rule import Maybe, made_good
from irkit.dialects.loops import is_loop
from irkit.dialects.state import STATE, state_of
from irkit.dialects.types import DYNAMIC, numpy_dtype, tensor_type
from irkit.errors import UnsupportedError
from irkit.passes.graph.differentiation.chunks import join_slices
from irkit.passes.graph.differentiation.forward import Forward
from irkit.passes.graph.differentiation.recurrences import prepared
from irkit.passes.graph.differentiation.reverse import Reverse
from irkit.passes.graph.differentiation.tape import Tape
from irkit.passes.program.carried import drop_dead_values
from irkit.weights import WeightStore

INPUTS, OUTPUTS = "irkit.inputs", "irkit.outputs"


@dataclass(frozen=True)
class Differentiation:
    """What is asked for.

    `mode`: "reverse" or "forward". `with_respect_to`: numbers of arguments; `of`: numbers of results.
    `seeded`: in reverse mode, whether cotangents of the results are arguments; else there is one result, of
    one element, whose cotangent is 1. `value`: whether the function's own results are still there, before
    the others. `allow_unused`: whether an argument that no result hangs on has a gradient of zeros; else it
    is refused. `chunked`: in reverse mode, whether loops keep what chunks of their rounds begin with, and run
    each again on the way back, in place of keeping what every round begins with.
    """

    mode: str
    with_respect_to: tuple[int, ...]
    of: tuple[int, ...]
    seeded: bool = True
    value: bool = True
    allow_unused: bool = False
    chunked: bool = False


def names_of(function: FuncOp, which: str) -> list[str]:
    """Names of arguments (INPUTS) or results (OUTPUTS): the attribute's, else hints or numbers."""
    found = function.attributes.get(which)
    if isa(found, ArrayAttr[StringAttr]):
        return [n.data for n in found.data]
    if which == INPUTS:
        arguments = function.body.block.args
        return [a.name_hint or f"argument{n}" for n, a in enumerate(arguments)]
    return [f"result{n}" for n in range(len(function.function_type.outputs))]


def differentiated(function: FuncOp, ask: Differentiation, weights: WeightStore) -> FuncOp:
    """The function that `ask` describes, under the name of `function`, which stays as it is.

    In reverse mode its arguments are those of `function`, then, if `seeded`, a cotangent for each of `of`;
    its results the function's own, then the gradient of each of `with_respect_to`. In forward mode there is
    a tangent for each of `with_respect_to` as argument, and one for each of `of` as result. Raises
    UnsupportedError, naming them, for arguments and results that have no gradient, and ops without a rule.
    """
    _check(function, ask)
    reverse = ask.mode == "reverse"
    chunked = ask.chunked and reverse
    function = prepared(function, ask.with_respect_to, weights, reverse=reverse, chunked=chunked)
    source = function.body.block
    block = Block(arg_types=list(source.arg_types))
    for old, new in zip(source.args, block.args, strict=True):
        new.name_hint = old.name_hint
    walk = _reverse if ask.mode == "reverse" else _forward
    inputs, outputs = names_of(function, INPUTS), names_of(function, OUTPUTS)
    given, (left, made) = _names(inputs, outputs, ask), walk(function, block, ask, weights)
    own = left if ask.value else []
    results = [*own, *made]
    block.add_op(ReturnOp(*results))
    types = [v.type for v in results]
    new = FuncOp(
        function.sym_name.data,
        (list(block.arg_types), types),
        Region(block),
        function.sym_visibility,
    )
    new.location = function.location
    if any(is_loop(op) for op in block.ops):
        drop_dead_values(new)
        join_slices(new)
    new.attributes.update(function.attributes)
    all_inputs = [*inputs, *given[0]]
    all_outputs = [*(outputs if ask.value else []), *given[1]]
    new.attributes[INPUTS] = ArrayAttr([StringAttr(n) for n in all_inputs])
    new.attributes[OUTPUTS] = ArrayAttr([StringAttr(n) for n in all_outputs])
    for argument, name in zip(block.args[len(inputs) :], given[0], strict=True):
        argument.name_hint = name if name.isidentifier() and name.isascii() else None
    return new


def _names(
    inputs: Sequence[str], outputs: Sequence[str], ask: Differentiation
) -> tuple[list[str], list[str]]:
    """Names of the arguments and of the results that are added."""
    if ask.mode == "forward":
        added = [f"tangent_{inputs[n]}" for n in ask.with_respect_to]
        made = [f"tangent_{outputs[n]}" for n in ask.of]
    else:
        added = [f"cotangent_{outputs[n]}" for n in ask.of] if ask.seeded else []
        made = [f"gradient_{inputs[n]}" for n in ask.with_respect_to]
    return _fresh(added, inputs), _fresh(made, outputs if ask.value else [])


def _fresh(names: Sequence[str], taken: Sequence[str]) -> list[str]:
    """Names that none of `taken` has."""
    known, found = {*taken}, list[str]()
    for name in names:
        while name in known:
            name = f"{name}_"
        known.add(name)
        found.append(name)
    return found


def _check(function: FuncOp, ask: Differentiation) -> None:
    """Raises UnsupportedError, with all reasons, for what cannot be differentiated."""
    where = f"@{function.sym_name.data}"
    block = function.body.block
    inputs, outputs = names_of(function, INPUTS), names_of(function, OUTPUTS)
    end = block.last_op
    assert isinstance(end, ReturnOp)
    faults = [
        f"argument '{inputs[n]}' of type {block.args[n].type}: only floats have a gradient"
        for n in ask.with_respect_to
        if not has_gradient(block.args[n])
    ]
    faults += [
        f"result '{outputs[n]}' of type {end.operands[n].type}: only floats have a gradient"
        for n in ask.of
        if not has_gradient(end.operands[n])
    ]
    open_extents = "its extents must be known (specialise-batch gives the batch a size)"
    dynamic = [
        f"argument '{name}' of type {a.type}: {open_extents}"
        for name, a in zip(inputs, block.args, strict=True)
        if DYNAMIC in tensor_type(a).get_shape()
    ]
    if not ask.seeded and ask.mode == "reverse":
        faults += _no_scalar(outputs, [end.operands[n] for n in ask.of], ask.of)
    if state_of(function) and not ask.value:
        faults.append(f"{STATE}: what is state is a result, and results were not asked for")
    if faults or dynamic:
        raise UnsupportedError(f"{where} cannot be differentiated:", [*faults, *dynamic])


def _no_scalar(names: Sequence[str], values: Sequence[SSAValue], of: Sequence[int]) -> list[str]:
    """Why results are no loss."""
    if len(values) != 1:
        return [f"a gradient is that of one result, got {len(values)}: say which"]
    if product(tensor_type(values[0]).get_shape()) == 1:
        return []
    hint = "a gradient is that of one number (take its sum or mean, or give a cotangent)"
    return [f"result '{names[of[0]]}' of type {values[0].type} is no scalar: {hint}"]


Made = tuple[list[SSAValue], list[SSAValue]]
"""The function's own results, and what comes beside them."""


def _reverse(function: FuncOp, block: Block, ask: Differentiation, weights: WeightStore) -> Made:
    tape = Tape(block, weights)
    arguments: list[SSAValue] = list(block.args)
    chosen = [arguments[n] for n in ask.with_respect_to]
    known: dict[SSAValue, SSAValue] = dict(zip(function.body.block.args, arguments, strict=True))
    walk = Reverse(tape, known, chosen)
    end = walk.block(function.body.block)
    left = [walk.known[v] for v in end.operands]
    seeds: dict[SSAValue, SSAValue] = {}
    for n in ask.of:
        if ask.seeded:
            seed: SSAValue = block.insert_arg(left[n].type, len(block.args))
        else:
            t = tensor_type(left[n])
            seed = tape.constant(np.ones(t.get_shape(), numpy_dtype(t.element_type)))
        known_seed = seeds.get(left[n])
        seeds[left[n]] = seed if known_seed is None else tape.ops.add(known_seed, seed)
    found = walk.pull(seeds)
    _check_used(function, ask, [found.get(v) for v in chosen])
    return left, [made_good(tape.ops, found.get(v), v) for v in chosen]


def _check_used(function: FuncOp, ask: Differentiation, found: Sequence[Maybe]) -> None:
    """Raises UnsupportedError for arguments that no result hangs on."""
    # What is computed of no elements is a constant, which says nothing of the function.
    empty = any(0 in tensor_type(a).get_shape() for a in function.body.block.args)
    if ask.allow_unused or empty:
        return
    inputs, outputs = names_of(function, INPUTS), names_of(function, OUTPUTS)
    unused = [inputs[n] for n, made in zip(ask.with_respect_to, found, strict=True) if made is None]
    if unused:
        of = ", ".join(f"'{outputs[n]}'" for n in ask.of)
        where = f"@{function.sym_name.data}: no gradient of {of} reaches"
        raise UnsupportedError(
            f"{where} an argument (allow_unused makes it zeros):", [f"'{n}'" for n in unused]
        )


def _forward(function: FuncOp, block: Block, ask: Differentiation, weights: WeightStore) -> Made:
    tape = Tape(block, weights)
    arguments: list[SSAValue] = list(block.args)
    tangents: dict[SSAValue, SSAValue] = {
        arguments[n]: block.insert_arg(arguments[n].type, len(block.args))
        for n in ask.with_respect_to
    }
    known: dict[SSAValue, SSAValue] = dict(zip(function.body.block.args, arguments, strict=True))
    walk = Forward(tape, known, tangents)
    end = walk.block(function.body.block)
    left = [walk.known[v] for v in end.operands]
    return left, [made_good(tape.ops, walk.tangents.get(left[n]), left[n]) for n in ask.of]
