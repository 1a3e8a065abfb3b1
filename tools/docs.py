"""Write docs/reference.md: every op of irkit's dialects and every pass, from their definitions.

python tools/docs.py            write the page
python tools/docs.py --check    exit code 1 if the page is not what would be written
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from xdsl.ir import Attribute, Dialect, Operation, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    OperandDef,
    OptionalDef,
    OptPropertyDef,
    PropertyDef,
    ResultDef,
    VariadicDef,
)
from xdsl.passes import ModulePass, get_pass_option_infos

from irkit.driver.pipelines.standard import LEVELS, STANDARD
from irkit.driver.registry import IRKIT_DIALECTS, irkit_dialects
from irkit.passes import PASSES

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference.md"
HEAD = """\
# Reference: ops and passes

Generated from docstrings by `tools/docs.py`; edit those, not this page. In signatures, `?` marks what may be
left out and `*` what may come any number of times.
"""
# Written by the assembly format, never by hand.
_SEGMENTS = ("operandSegmentSizes", "resultSegmentSizes")


def page() -> str:
    """The whole page."""
    parts = [HEAD, _contents()]
    for name, factory in irkit_dialects().items():
        parts += _dialect(name, factory())
    parts += _passes()
    return "\n".join(parts).rstrip() + "\n"


def _contents() -> str:
    dialects = [f"[`{name}`](#dialect-{name})" for name in IRKIT_DIALECTS]
    return f"Dialects: {', '.join(dialects)}. [Passes](#passes).\n"


def _text(documented: object) -> str:
    return inspect.cleandoc(getattr(documented, "__doc__", None) or "")


def _dialect(name: str, dialect: Dialect) -> Iterator[str]:
    module = importlib.import_module(IRKIT_DIALECTS[name][0])
    yield f"## Dialect {name}\n"
    yield f"{_text(module)}\n"
    for attribute in sorted(dialect.attributes, key=lambda a: a.name):
        yield _attribute(attribute)
    for op in sorted(dialect.operations, key=lambda o: o.name):
        yield _op(op)


def _attribute(attribute: type[Attribute]) -> str:
    sigil = "!" if issubclass(attribute, TypeAttribute) else "#"
    return f"### `{sigil}{attribute.name}`\n\n{_text(attribute)}\n"


def _op(op: type[Operation]) -> str:
    if not issubclass(op, IRDLOperation):
        raise TypeError(f"'{op.name}' is not defined by IRDL")
    definition = op.get_irdl_definition()
    rows = [
        ("operands", [_named(n, d) for n, d in definition.operands]),
        ("properties", _properties(definition.properties)),
        ("results", [_named(n, d) for n, d in definition.results]),
        ("regions", [f"`{n}`" for n, _ in definition.regions]),
    ]
    signature = "\n".join(f"- {what}: {', '.join(names)}" for what, names in rows if names)
    return f"### `{op.name}`\n\n{_text(op)}\n\n{signature}".rstrip() + "\n"


def _named(name: str, definition: OperandDef | ResultDef) -> str:
    # An optional operand is a variadic one too.
    if isinstance(definition, OptionalDef):
        return f"`{name}?`"
    return f"`{name}*`" if isinstance(definition, VariadicDef) else f"`{name}`"


def _properties(properties: dict[str, PropertyDef]) -> list[str]:
    """Names in the order of the definition."""
    return [
        f"`{name}?`" if isinstance(definition, OptPropertyDef) else f"`{name}`"
        for name, definition in properties.items()
        if name not in _SEGMENTS
    ]


def _passes() -> Iterator[str]:
    yield "## Passes\n"
    yield "What `irkit-opt --to=LEVEL` and `irkit.compile` run, level by level:\n"
    for level in LEVELS:
        yield f"- {level}: {', '.join(f'`{name}`' for name in STANDARD[level])}"
    yield "\n`canonicalize`, `cse` and `dce` are xDSL's.\n"
    for name in sorted(PASSES):
        yield _pass(name, PASSES[name]())


def _pass(name: str, pass_type: type[ModulePass]) -> str:
    lines = [f"### `{name}`", "", _text(pass_type), ""]
    for option in get_pass_option_infos(pass_type):
        if option.name != "name":
            default = "" if option.default_value is None else f", default `{option.default_value}`"
            kind = option.expected_type.strip("'\"")
            lines.append(f"- option `{option.name.replace('_', '-')}`: {kind}{default}")
    return "\n".join(lines).rstrip() + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the page; the exit code."""
    parser = argparse.ArgumentParser(description="Write docs/reference.md.")
    parser.add_argument(
        "--check", action="store_true", help="only compare; exit code 1 if it differs"
    )
    wanted = page()
    if not parser.parse_args(arguments).check:
        PAGE.write_text(wanted, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == wanted:
        return 0
    print("docs/reference.md is out of date: run tools/docs.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
