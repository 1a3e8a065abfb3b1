"""Every op's docstring has an example; it parses, verifies, and survives printing in both forms."""

from __future__ import annotations

import re

import pytest
from xdsl.ir import Operation

from irkit.context import IrkitContext
from irkit.driver.files.parsing import parse_module
from irkit.driver.files.printing import module_text
from irkit.driver.registry import irkit_dialects, register_dialects
from irkit.driver.verification.verifier import check_module

EXAMPLE = re.compile(r"```mlir\n(.*?)```", re.DOTALL)
WHOLE = re.compile(
    r"\s*(func\.func|builtin\.module|task\.(roperator|program|composite|vdevice)|host\.program)\b"
)
# `%a, %b = dialect.op <operands> {...} : (operand types) -> ...`
STATEMENT = re.compile(
    r"\s*(?:%[\w, %]+=)?\s*[a-z_]+\.[a-z_0-9]+\s*\(?(?P<operands>(?:%\w+\s*(?:,|like\b)?\s*)*)\)?\s*"
    r"(?P<attributes>\{.*?\})?\s*:\s*\((?P<types>.*?)\)\s*->",
    re.DOTALL,
)


def split_types(text: str) -> list[str]:
    """`tensor<4xf32>, i1` as a list: commas inside <> do not separate."""
    return [t.strip() for t in re.split(r",(?![^<]*>)", text) if t.strip()]


def wrapped(example: str) -> str:
    """The example as a whole module: an op alone gets a function that defines its operands."""
    if WHOLE.match(example):
        return example
    found: dict[str, str] = {}
    for match in STATEMENT.finditer(example):
        names, types = re.findall(r"%\w+", match["operands"]), split_types(match["types"])
        assert len(names) == len(types), (names, types)
        found |= dict(zip(names, types, strict=True))
    assert found, f"the example has no `... : (types) -> types` signature:\n{example}"
    arguments = ", ".join(f"{n}: {t}" for n, t in found.items())
    return f"func.func @example({arguments}) {{\n{example}\nfunc.return\n}}\n"


def parse(text: str):
    context = IrkitContext()
    register_dialects(context)
    return parse_module(context, text, "<example>")


def ops() -> list[type[Operation]]:
    return [op for factory in irkit_dialects().values() for op in factory().operations]


@pytest.mark.parametrize("op", ops(), ids=lambda op: op.name)
def test_example(op: type[Operation]):
    examples = EXAMPLE.findall(op.__doc__ or "")
    assert examples, f"'{op.name}' has no ```mlir example"
    for example in examples:
        module = parse(wrapped(example))
        check_module(module)
        assert any(o.name == op.name for o in module.walk()), "the example does not use the op"
        generic = module_text(module, generic=True)
        for text in (module_text(module), generic):
            again = parse(text)
            check_module(again)
            assert module_text(again, generic=True) == generic


def test_summary_is_one_line():
    for op in ops():
        first = (op.__doc__ or "").split("\n", 1)[0]
        assert first.strip(), f"'{op.name}' has no summary"
