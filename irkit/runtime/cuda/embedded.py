"""rKernels whose instructions stand in the walkers' PTX, in the place of calls.

NVVM takes far more than twice the time for a kernel of twice the length: 28 rKernels that are part of one
take it two to three times as long as one by one, and one by one they go through it side by side. So each is a
function of a text of its own, and what NVVM made of it is put where the walkers call it: a block, with the
registers and labels of the function, that begins with its arguments. The assembler sees one kernel, as it
does where NVVM inlines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from irkit.runtime.cuda.apart import body_of, head_of, together, with_own_names

_FUNCTION = re.compile(
    r"^\.visible \.func\s+\(\.param \.b64 func_retval0\)\s*([\w$]+)\s*\(([^)]*)\)\s*\{\n(.*?)^\}\s*",
    re.DOTALL | re.MULTILINE,
)
_PARAMETER = re.compile(r"\.param \.b64 [\w$]+_param_(\d+)")
_CALL = re.compile(
    r"^[ \t]*\{ // callseq (\d+), \d+\n(?P<given>.*?)"
    r"^[ \t]*call\.uni\s+\(retval0\),\s*(?P<name>[\w$]+),\s*\([^)]*\);\n(?P<behind>.*?)"
    r"^[ \t]*\} // callseq \1\n",
    re.DOTALL | re.MULTILINE,
)
_GIVEN = re.compile(r"\bst\.param\.b64\s+\[param(\d+)\+0\], ([^;\s]+);")
_RESULT = re.compile(r"\bld\.param\.b64\s+(%\w+), \[retval0\+0\];")
_READ = re.compile(r"\bld\.param\.([usb])(16|32|64)(\s+%\w+), \[[\w$]+_param_(\d+)\];")
_MADE = re.compile(r"\bst\.param\.b64(\s+)\[func_retval0\+0\], ([^;\s]+);")
_LABEL = re.compile(r"\$\w+")
_RETURN = re.compile(r"\bret;")
# Others than those of its own.
_FOREIGN = re.compile(r"\bcall\b|\.func\b|\.param\b|\bcallprototype\b")
_DECLARED = r"^\.extern \.func\s+(?:\([^)]*\)\s*)?(?:{names})\s*\([^)]*\)\s*;\n"


class Embeddable(NamedTuple):
    """The functions of a text by their names, as blocks, and what the text defines beside them."""

    blocks: Mapping[str, str]
    beside: str


def embeddable(ptx: str, names: Sequence[str]) -> Embeddable | None:
    """The functions `names` of a PTX text, which has no others; None where they are not to be put in the
    place of calls: they call something, or take or give what is no word of 64 bits."""
    text = with_own_names(body_of(ptx), set(names))
    blocks = {m[1]: _block(m[3]) for m in _FUNCTION.finditer(text) if _takes_words(m[2])}
    beside = _FUNCTION.sub("", text)
    whole = set(blocks) == set(names) and not any(map(_FOREIGN.search, (*blocks.values(), beside)))
    return Embeddable(blocks, beside) if whole else None


def _takes_words(parameters: str) -> bool:
    return len(_PARAMETER.findall(parameters)) == parameters.count(".param")


def _block(body: str) -> str:
    """A function's instructions, which take arguments from registers and leave what they give in one."""

    def read(found: re.Match[str]) -> str:
        kind, bits, to, number = found.groups()
        if bits == "64":
            return f"mov.b64{to}, %given{number};"
        return f"cvt.{'u' if kind == 'b' else kind}{bits}.u64{to}, %given{number};"

    return _MADE.sub(r"mov.b64\1%made, \2;", _READ.sub(read, body))


def embedded(walkers: str, functions: Iterable[Embeddable]) -> str | None:
    """The walkers' PTX with functions in the place of calls; None where one of these is called in another way
    than NVVM's, or taken by its address."""
    known = list(functions)
    blocks = {name: block for function in known for name, block in function.blocks.items()}
    if not blocks:
        return walkers
    count = 0

    def put(call: re.Match[str]) -> str:
        nonlocal count
        block = blocks.get(call["name"])
        if block is None:
            return call[0]
        count += 1
        return _in_place(call, block, f"$embedded_{count}")

    names = "|".join(map(re.escape, blocks))
    text = re.sub(_DECLARED.format(names=names), "", walkers, flags=re.MULTILINE)
    text = _CALL.sub(put, text)
    if re.search(rf"(?<![\w$])(?:{names})(?![\w$])", re.sub(r"//[^\n]*", "", text)):
        return None
    return together(head_of(text), [*(f.beside for f in known), body_of(text)])


def _in_place(call: re.Match[str], block: str, mark: str) -> str:
    """The block in the place of a call. Registers of its own hide those of the same names around it."""
    given = _GIVEN.findall(call["given"])
    result = _RESULT.search(call["behind"])
    text = _LABEL.sub(lambda found: f"{mark}_{found[0][1:]}", block)
    return "\n".join(
        [
            f"\t{{ // {call['name']}",
            *(f"\t.reg .b64 %given{n};\n\tmov.b64 \t%given{n}, {value};" for n, value in given),
            "\t.reg .b64 %made;\n\t{",
            _RETURN.sub(f"bra \t{mark};", text),
            f"{mark}:\n\t}}",
            *([f"\tmov.b64 \t{result[1]}, %made;"] if result is not None else []),
            "\t}\n",
        ]
    )


def with_aligned(modules: Iterable[str], aligned: Mapping[str, Sequence[bool]]) -> list[str]:
    """IR modules in which functions know of which of their pointers, the last parameters, callers make
    multiples of 16."""
    names = "|".join(map(re.escape, aligned)) or "(?!)"
    head = re.compile(rf'^(define [^\n@]*@"?({names})"?\()([^()\n]*)(\))', re.MULTILINE)

    def told(found: re.Match[str]) -> str:
        parameters, flags = found[3].split(", "), aligned[found[2]]
        first = len(parameters) - len(flags)
        for number, flag in enumerate(flags, start=first):
            kind, _, name = parameters[number].rpartition(" ")
            if flag and kind.endswith("*"):
                parameters[number] = f"{kind} align 16 {name}"
        return f"{found[1]}{', '.join(parameters)}{found[4]}"

    return [head.sub(told, module) for module in modules]
