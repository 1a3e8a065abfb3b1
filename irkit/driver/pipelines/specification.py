"""Pipelines as text, such as `a,b{x=1}`: what they ask for, and what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from irkit.driver.diagnostics.diagnostic import Place, UserError, did_you_mean
from irkit.driver.gpu_at_hand import know_gpu_at_hand
from irkit.driver.registry import PassFactory, find_pass

if TYPE_CHECKING:
    from xdsl.passes import ModulePass
    from xdsl.utils.arg_spec import ArgSpec

PIPELINE = "<pipeline>"


def build_pipeline(text: str, passes: Mapping[str, PassFactory]) -> list[ModulePass]:
    """The passes that `text`, such as `a,b{x=1}`, asks for; a vDevice in it may be "cuda".

    Raises UserError at the offending column for bad syntax, an unknown pass, or a bad option.
    """
    from xdsl.utils.arg_spec import parse_pipeline
    from xdsl.utils.exceptions import ArgSpecParseError

    know_gpu_at_hand()
    try:
        specs = list(parse_pipeline(re.sub(r"\s*,\s*(?![^{]*\})", ",", text.strip())))
    except ArgSpecParseError as error:
        raise _syntax_error(str(error)) from None
    return [build_pass(spec, text, passes) for spec in specs]


def build_pass(spec: ArgSpec, text: str, passes: Mapping[str, PassFactory]) -> ModulePass:
    """One pass with its options. Raises UserError."""
    try:
        pass_type = find_pass(spec.name, passes)
    except UserError as error:
        raise UserError(str(error), _place(text, spec.name)) from None
    known = option_names(pass_type)
    for key in spec.parameters:
        if key.replace("-", "_") not in known:
            raise UserError(
                f"pass '{spec.name}' has no option '{key}'{_options_hint(key, known)}",
                _place(text, key),
            )
    try:
        return pass_type.from_pass_spec(spec)
    except (ValueError, TypeError) as error:
        raise UserError(f"pass '{spec.name}': {error}", _place(text, spec.name)) from None


def option_names(pass_type: type[ModulePass]) -> list[str]:
    """Names of a pass's options, as Python fields."""
    import dataclasses

    return [f.name for f in dataclasses.fields(pass_type) if f.init and f.name != "name"]


def _options_hint(key: str, known: list[str]) -> str:
    if not known:
        return "; it has none"
    shown = [name.replace("_", "-") for name in known]
    return did_you_mean(key, shown) or f"; it has {', '.join(shown)}"


def _place(text: str, word: str) -> Place:
    match = re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text)
    return Place(PIPELINE, 1, match.start() + 1 if match else 1, len(word))


def _syntax_error(context: str) -> UserError:
    # "...:\n<name>:<line>:<column>\n<source>\n<carets>\n<message>\n"
    lines = context.strip("\n").split("\n")
    column = int(lines[1].rsplit(":", 1)[1])
    message = lines[-1].strip()
    return UserError(message[:1].lower() + message[1:], Place(PIPELINE, 1, column))
