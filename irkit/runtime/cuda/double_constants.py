"""Numbers of 64 bits that PTX has in its instructions, put into constant memory.

An instruction of a GPU has room for 32 bits of a number: of a double with more of them it takes two moves for
each of its uses, as many instructions as a polynomial has products. In constant memory it is an operand.
"""

from __future__ import annotations

import re

NAME = "irkit_doubles"
_LINE = re.compile(
    r"^(?P<before>\s*(?:@!?%p\w+\s+)?)(?P<op>(?:fma\.rn|add(?:\.rn)?|sub(?:\.rn)?|mul(?:\.rn)?|mov|setp\.\w+)"
    r"\.f64\s)(?P<rest>[^;]*;)",
    re.M,
)
_NUMBER = re.compile(r"\b0d([0-9A-F]{8})([0-9A-F]{8})\b")
_BODY = re.compile(r"^(?=\.(?:visible|weak|func|entry)\b[^;{]*$)", re.M)
_OPENS = re.compile(r"^\{\s*$", re.M)
_REGISTER = "%irkit_double"


def in_constant_memory(ptx: str) -> str:
    """PTX whose doubles of more than 32 bits are read from constant memory, each of them once there."""
    places: dict[str, int] = {}
    found = [_body(part, places) for part in _BODY.split(ptx)]
    if not places:
        return ptx
    values = ", ".join(f"0d{number}" for number in places)
    table = f".const .align 8 .f64 {NAME}[{len(places)}] = {{{values}}};\n\n"
    return found[0] + table + "".join(found[1:])


def _body(text: str, places: dict[str, int]) -> str:
    """A function, with registers of its own for what its instructions read."""
    count = 0

    def changed(line: re.Match[str]) -> str:
        nonlocal count
        loads: list[str] = []

        def number(match: re.Match[str]) -> str:
            nonlocal count
            if match[2] == "00000000":
                return match[0]
            place = places.setdefault(match[1] + match[2], len(places))
            register = f"{_REGISTER}{count}"
            loads.append(f"ld.const.f64 {register}, [{NAME}+{8 * place}];\n")
            count += 1
            return register

        rest = _NUMBER.sub(number, line["rest"])
        return "".join(loads) + line["before"] + line["op"] + rest

    made = _LINE.sub(changed, text)
    if not count:
        return text
    return _OPENS.sub(f"{{\n.reg .f64 {_REGISTER}<{count}>;", made, count=1)
