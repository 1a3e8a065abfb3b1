"""Which arguments a CUDA C kernel writes, from `const` in its signature.

Only what can be read without a preprocessor is taken: where a macro, a typedef of a pointer or two
different signatures leave a doubt, the kernel is refused by name. `const` is believed, as C++ has it:
a kernel that casts it away is wrong there too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from irkit.errors import UnsupportedError

_TOKEN: Final = re.compile(r"[A-Za-z_]\w*|::|\S")
_COMMENT: Final = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""",
    re.S,
)
_DEFINE: Final = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)", re.M)
_DIRECTIVE: Final = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
_QUALIFIERS: Final = {"__restrict__", "__restrict", "restrict", "volatile", "__grid_constant__"}


@dataclass(frozen=True)
class Parameter:
    """One parameter: its name, whether it points to elements, and whether those may be written."""

    name: str
    pointer: bool
    writes: bool


def parameters_of(source: str, kernel: str, macros: Iterable[str] = ()) -> tuple[Parameter, ...]:
    """The parameters of `kernel` in CUDA C source; `macros` are names defined by compiler options.

    A template's arguments are left out of its name ("scale<float>" is "scale"). Raises
    UnsupportedError, naming the kernel, where its signature cannot be read.
    """
    name = kernel.split("<")[0].split("::")[-1].strip()
    plain = _COMMENT.sub(lambda found: '""' if found.group(0)[0] in "\"'R" else " ", source)
    defined = {*_DEFINE.findall(plain), *macros}
    texts = _signatures(_TOKEN.findall(_DIRECTIVE.sub(" ", plain)), name)
    if not texts:
        raise UnsupportedError(
            f"RawKernel '{kernel}': its source has no '__global__' function of this name"
        )
    found = {tuple(_parameter(kernel, part, defined) for part in _parts(text)) for text in texts}
    if len({tuple((p.pointer, p.writes) for p in one) for one in found}) > 1:
        raise UnsupportedError(f"RawKernel '{kernel}': its source has different signatures of it")
    return found.pop()


def _signatures(tokens: Sequence[str], name: str) -> list[list[str]]:
    """The tokens between the parentheses behind each `__global__ ... name`."""
    found: list[list[str]] = []
    for start, token in enumerate(tokens):
        if token != "__global__":
            continue
        at = start + 1
        while at < len(tokens) and tokens[at] not in ("{", ";"):
            if tokens[at] == "(":
                end = _closing(tokens, at)
                if tokens[at - 1] == name:
                    found.append(list(tokens[at + 1 : end]))
                    break
                # `__launch_bounds__(256)`, `__attribute__((...))`
                at = end
            at += 1
    return found


def _closing(tokens: Sequence[str], at: int) -> int:
    """Where the parenthesis at `at` is closed."""
    depth = 0
    for place in range(at, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[place], 0)
        if not depth:
            return place
    return len(tokens)


def _parts(tokens: Sequence[str]) -> list[list[str]]:
    """Tokens between commas that are in no brackets."""
    parts: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += {"(": 1, "<": 1, "[": 1, ")": -1, ">": -1, "]": -1}.get(token, 0)
        if token == "," and not depth:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part and part != ["void"]]


def _parameter(kernel: str, tokens: Sequence[str], macros: set[str]) -> Parameter:
    """One parameter. Raises UnsupportedError for what is more than a value, a pointer or an array."""
    text = " ".join(tokens)
    used = sorted(macros.intersection(tokens))
    if used:
        raise UnsupportedError(
            f"RawKernel '{kernel}', parameter '{text}': '{used[0]}' is a macro, so it cannot be read"
        )
    words = [t for t in tokens if t not in _QUALIFIERS]
    if "(" in words or "&" in words or "." in words or words.count("*") > 1:
        raise UnsupportedError(
            f"RawKernel '{kernel}', parameter '{text}': only values and pointers to elements can be read"
        )
    name = next((t for t in reversed(_before_brackets(words)) if t[0].isalpha() or t[0] == "_"), "")
    if "*" in words:
        return Parameter(name, True, "const" not in words[: words.index("*")])
    pointer = "[" in words
    return Parameter(name, pointer, pointer and "const" not in words)


def _before_brackets(words: Sequence[str]) -> Sequence[str]:
    return words[: words.index("[")] if "[" in words else words
