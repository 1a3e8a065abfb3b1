"""The rKernels in the text of an emitted module, each by itself: what is compiled, and kept on disk, apart.

The text of one rOperator (fused functions, then its rKernel, then perhaps the copy for operands that stay)
goes by names of its own: equal rKernels of two models, or of one, are one unit.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

MARK = "# ---- rOperator @"
_SYMBOL = re.compile(r"# ---- rOperator @(\S+):")
_DEFINED = re.compile(r"^def (\w+)\(", re.MULTILINE)
# What follows the last rOperator: on a CPU, on a GPU.
_AFTER = re.compile(r"^(?:KERNELS = \(|@fused\ndef run_task\()", re.MULTILINE)


class NoEmittedModuleError(ValueError):
    """A text that emission did not print."""


@dataclass(frozen=True)
class Unit:
    """One rOperator of a module. `text` is a module by itself, whose functions are named by `names`: name
    in the module -> name in `text`. It is the same for every rOperator that is printed alike."""

    symbol: str
    text: str
    names: Mapping[str, str]

    def key(self, context: bytes) -> str:
        """Digest of all that its machine code hangs on, `context` being what does not stand in the text."""
        return key_of(self.text, context)


def key_of(text: str, context: bytes) -> str:
    """Digest of a text and of what does not stand in it."""
    h = hashlib.sha256(context)
    h.update(b"\0" + text.encode())
    return h.hexdigest()[:40]


@dataclass(frozen=True)
class Parts:
    """A module in pieces: imports, the rOperators in their order, and what is printed behind them."""

    header: str
    units: tuple[Unit, ...]
    rest: str


def parts_of(source: str) -> Parts:
    """Take the text of an emitted module apart. Raises NoEmittedModuleError for any other text."""
    header, mark, body = source.partition(MARK)
    after = _AFTER.search(source)
    if after is None:
        raise NoEmittedModuleError("no emitted module")
    if not mark or len(header) > after.start():
        return Parts(_imports(source[: after.start()]), (), source[after.start() :])
    sections = (mark + body)[: after.start() - len(header)].split(MARK)[1:]
    imports = _imports(header)
    units = tuple(_unit(imports, MARK + section) for section in sections)
    return Parts(imports, units, source[after.start() :])


def _imports(header: str) -> str:
    """A module's head without its docstring, which counts what is in it."""
    return header.split('"""', 2)[2].strip("\n") if header.startswith('"""') else header


def _unit(imports: str, section: str) -> Unit:
    symbol = _SYMBOL.match(section)
    if symbol is None:
        raise NoEmittedModuleError("no emitted module")
    body = "\n".join(line for line in section.split("\n") if not line.startswith("# ")).strip("\n")
    names = {name: f"rkernel_{i}_of_unit" for i, name in enumerate(_DEFINED.findall(body))}
    pattern = re.compile(r"\b(?:" + "|".join(map(re.escape, names)) + r")\b")
    text = pattern.sub(lambda found: names[found.group()], body)
    return Unit(symbol.group(1), f"{imports}\n\n{text}\n", names)
