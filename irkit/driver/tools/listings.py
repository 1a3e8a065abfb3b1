"""What `--list-passes`, `--list-dialects` and `--explain-pass` print."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping

from xdsl.passes import ModulePass, get_pass_option_infos
from xdsl.transforms import get_all_passes

from irkit.driver.registry import (
    ADDED_DIALECTS,
    IRKIT_DIALECTS,
    PassFactory,
    all_dialects,
    all_passes,
    find_pass,
    irkit_dialects,
    irkit_passes,
)


def list_passes(extra: Mapping[str, PassFactory]) -> str:
    """irkit's passes with their first line, then the names of xDSL's."""
    own = irkit_passes() | dict(extra)
    width = max((len(name) for name in own), default=0)
    lines = ["irkit:"]
    lines += [f"  {name:<{width}}  {_summary(own[name]())}".rstrip() for name in sorted(own)]
    lines += ["xdsl:", *(f"  {name}" for name in sorted(get_all_passes().keys() - own.keys()))]
    return "\n".join(lines) + "\n"


def list_dialects() -> str:
    """irkit's dialects with their number of ops, then the names of xDSL's."""
    lines = ["irkit:"]
    for name, factory in sorted((irkit_dialects() | ADDED_DIALECTS).items()):
        count = len(list(factory().operations))
        lines.append(f"  {name}  {count} ops")
    lines += [
        "xdsl:",
        *(
            f"  {name}"
            for name in sorted(
                all_dialects().keys() - IRKIT_DIALECTS.keys() - ADDED_DIALECTS.keys()
            )
        ),
    ]
    return "\n".join(lines) + "\n"


def emit_irdl() -> str:
    """irkit's dialects as an IRDL file."""
    from irkit.driver.verification.irdl_export import export_dialects

    return export_dialects(factory() for factory in irkit_dialects().values()).text()


def explain_pass(name: str, extra: Mapping[str, PassFactory]) -> str:
    """A pass's documentation and options. Raises UserError for an unknown name."""
    pass_type = find_pass(name, all_passes(extra))
    documentation = _documentation(pass_type) or "(no documentation)"
    lines = [name, "", documentation]
    infos = [i for i in get_pass_option_infos(pass_type) if i.name != "name"]
    if infos:
        lines += ["", "options:"]
    for info in infos:
        default = "" if info.default_value is None else f" (default {info.default_value})"
        lines.append(f"  {info.name.replace('_', '-')}: {_type_name(info.expected_type)}{default}")
    return "\n".join(lines) + "\n"


def _type_name(shown: str) -> str:
    # Under `from __future__ import annotations` a field's type is a string, shown in quotes.
    return shown.strip("'\"")


def _documentation(pass_type: type[ModulePass]) -> str:
    # A dataclass without a docstring has one made up from its fields: that is no documentation.
    text = inspect.cleandoc(pass_type.__doc__ or "")
    made_up = dataclasses.is_dataclass(pass_type) and text.startswith(f"{pass_type.__name__}(")
    return "" if made_up else text


def _summary(pass_type: type[ModulePass]) -> str:
    return _documentation(pass_type).split("\n", 1)[0]
