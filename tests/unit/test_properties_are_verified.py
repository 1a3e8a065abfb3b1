"""No verifier passes a property that has no meaning, nor fails with a word of Python's: the examples of all
ops' docstrings, each property in turn made nonsense, negative or one too short or too long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from test_dialect_docs import EXAMPLE, ops, parse, wrapped
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, StringAttr
from xdsl.ir import Attribute, Operation

from irkit.driver.diagnostics.diagnostic import UserError
from irkit.driver.verification.verifier import check_module

PARTS = ("graph", "te", "task", "host", "program", "dist", "bufferization")
"""Dialects whose ops are irkit's own."""
FREE = {
    ("graph.slice", "strides"): "a stride of -1 is one backwards",
    ("host.program", "sym_name"): "any name",
    ("host.program", "verified"): "a digest, which loading compares",
    ("host.region", "label"): "any text",
    ("host.task", "label"): "any text",
    ("host.task", "line"): "any text",
    ("program.call", "reads"): "any of the operands",
    ("program.call", "writes"): "any of the operands",
    ("task.buffer", "source"): "any name of a weight",
    ("task.composite", "sym_name"): "any name",
    ("task.program", "sym_name"): "any name",
    ("task.roperator", "sym_name"): "any name",
    ("task.roperator", "grid"): "what parts loops have is held by passes that read roots",
    ("task.roperator", "rkernel"): "any name of a template",
    ("task.run", "steps"): "places may move backwards",
    ("task.vdevice", "sym_name"): "any name",
    **{
        (
            f"{level}.attention_{side}_gradient",
            "causal",
        ): "a diagonal, which may lie below the main one"
        for level in ("graph", "te")
        for side in ("key", "query")
    },
    ("te.attention", "causal"): "a diagonal, which may lie below the main one",
}
"""What may be anything of these, and why."""


def changed(value: Attribute) -> list[Attribute]:
    """Values that most properties cannot have."""
    match value:
        case StringAttr():
            return [StringAttr("nonsense")]
        case IntegerAttr(type=IntegerType() as kind) if kind.width.data > 1:
            return [IntegerAttr(-1, kind), IntegerAttr(-7, kind)]
        case DenseArrayBase(elt_type=IntegerType() as kind) if kind.width.data > 1:
            numbers = [int(n) for n in value.get_values()]
            lists: Sequence[list[int]] = ([-7] * len(numbers), numbers[:-1], [*numbers, 1])
            return [DenseArrayBase.from_list(kind, n) for n in lists if n != numbers]
        case _:
            return []


def of_examples(op: type[Operation]) -> Iterator[tuple[Operation, Operation]]:
    """Modules of an op's examples, and the op in them."""
    for example in EXAMPLE.findall(op.__doc__ or ""):
        module = parse(wrapped(example))
        yield from ((module, found) for found in module.walk() if found.name == op.name)


def said(module: Operation) -> str | None:
    """What is wrong with a module; None where nothing is."""
    try:
        check_module(module)
    except UserError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    "op", [op for op in ops() if op.name.split(".")[0] in PARTS], ids=lambda op: op.name
)
def test_changed_properties_are_refused_by_name(op: type[Operation]) -> None:
    for module, found in of_examples(op):
        for name, value in list(found.properties.items()):
            if name == "operandSegmentSizes" or (op.name, name) in FREE:
                continue
            for other in changed(value):
                found.properties[name] = other
                message = said(module)
                assert message is not None, (name, other)
                assert "expects" in message or "expected" in message, message
            found.properties[name] = value


def test_what_is_free_is_there() -> None:
    known = {op.name: op for op in ops()}
    for name, key in FREE:
        assert any(key in found.properties for _, found in of_examples(known[name])), (name, key)
