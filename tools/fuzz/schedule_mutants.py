"""Changes of the text of a scheduled module: one fact made another, wherever the proof reads one."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

APPEND = re.compile(
    r"(?P<token>%\S+) = task\.append @(?P<callee>\S+) to \[(?P<first>\d+):(?P<last>\d+)\] wave (?P<wave>\d+)"
    r"(?P<waits> wait\([^)]*\))?(?P<reads> reads\([^)]*\))?(?P<writes> writes\([^)]*\))?(?P<rest>.*)"
)
BUFFER = re.compile(r"(?P<value>%\S+) = task\.(?:buffer|view) .*: (?:\S+ -> )?(?P<type>tensor<\S+)")


class Text:
    """The lines of a module, and where what can be changed stands."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.appends = [n for n, line in enumerate(self.lines) if "= task.append @" in line]
        self.types = {m["value"]: m["type"] for m in map(BUFFER.search, self.lines) if m}

    def edited(self, number: int, line: str) -> str:
        """The text with another line `number`."""
        return "\n".join([*self.lines[:number], line, *self.lines[number + 1 :]])

    def number(self, rng: random.Random, pattern: str) -> str | None:
        """The text with one number that `pattern` finds made another of those it finds, or one near."""
        found = [(n, m) for n, line in enumerate(self.lines) for m in re.finditer(pattern, line)]
        if not found:
            return None
        line, match = rng.choice(found)
        old = int(match[1])
        near = [0, 1, old + 1, old - 1, 2 * old, old + 16, old - 16, old + 256, 4096]
        new = rng.choice([int(m[1]) for _, m in found] + near)
        if new == old:
            return None
        whole = self.lines[line]
        return self.edited(line, whole[: match.start(1)] + str(new) + whole[match.end(1) :])


def without_names(text: str) -> str:
    """The text with its values numbered: an append repeated, of which the first is dropped, is the same."""
    numbers: dict[str, int] = {}
    return re.sub(r"%\w+", lambda m: f"%{numbers.setdefault(m[0], len(numbers))}", text)


Mutation = Callable[[Text, random.Random], str | None]


def _append(text: Text, rng: random.Random) -> tuple[int, re.Match[str]] | None:
    if not text.appends:
        return None
    number = rng.choice(text.appends)
    match = APPEND.search(text.lines[number])
    return (number, match) if match else None


def drop(text: Text, rng: random.Random) -> str | None:
    """An append dropped, and the waits for it."""
    found = _append(text, rng)
    if found is None:
        return None
    number, match = found
    lines, token = list(text.lines), re.escape(match["token"])
    for n in text.appends:
        # Values of the function may have the same name: only waits are looked at.
        waits = APPEND.search(lines[n])
        if waits and waits["waits"]:
            left = re.sub(rf"{token}, |, {token}\b| wait\({token}\)", "", waits["waits"])
            lines[n] = lines[n].replace(waits["waits"], left)
    return "\n".join(lines[:number] + lines[number + 1 :])


def repeat(text: Text, rng: random.Random) -> str | None:
    """An append made twice."""
    found = _append(text, rng)
    if found is None:
        return None
    number, match = found
    again = text.lines[number].replace(match["token"], "%again", 1)
    at = rng.choice([n for n in text.appends if n >= number]) + 1
    return "\n".join([*text.lines[:at], again, *text.lines[at:]])


def swap(text: Text, rng: random.Random) -> str | None:
    """Two appends in the other order."""
    if len(text.appends) < 2:
        return None
    a, b = sorted(rng.sample(text.appends, 2))
    lines = list(text.lines)
    lines[a], lines[b] = lines[b], lines[a]
    return "\n".join(lines)


def place(text: Text, rng: random.Random) -> str | None:
    """An append on other vEUs."""
    found = _append(text, rng)
    if found is None:
        return None
    number, match = found
    first = rng.choice([0, 1, 2, 3, int(match["first"]) + 1])
    last = rng.choice([first, first + 1, 3, int(match["last"])])
    return text.edited(
        number, re.sub(r"to \[\d+:\d+\]", f"to [{first}:{max(first, last)}]", text.lines[number])
    )


def wait(text: Text, rng: random.Random) -> str | None:
    """A wait dropped, added or made another."""
    found = _append(text, rng)
    if found is None:
        return None
    number, match = found
    others = [
        m["token"] for n in text.appends if n < number and (m := APPEND.search(text.lines[n]))
    ]
    old = re.findall(r"%\w+", match["waits"] or "")
    new = [w for w in old if rng.random() < 0.5]
    if others and rng.random() < 0.4:
        new.append(rng.choice(others))
    if new == old:
        return None
    put = f" wait({', '.join(dict.fromkeys(new))})" if new else ""
    line = text.lines[number]
    if match["waits"]:
        return text.edited(number, line.replace(match["waits"], put))
    wave = f"wave {match['wave']}"
    return text.edited(number, line.replace(wave, wave + put, 1))


def operand(text: Text, rng: random.Random) -> str | None:
    """An operand or destination of an append made another buffer of the same type."""
    found = _append(text, rng)
    if found is None:
        return None
    number, match = found
    group = rng.choice(["reads", "writes"])
    names = re.findall(r"%\w+", match[group] or "")
    if not names:
        return None
    at = rng.randrange(len(names))
    same = [v for v, t in text.types.items() if t == text.types.get(names[at]) and v != names[at]]
    if not same:
        return None
    names[at] = rng.choice(same)
    return text.edited(
        number, text.lines[number].replace(match[group], f" {group}({', '.join(names)})")
    )


def exchange(text: Text, rng: random.Random) -> str | None:
    """Two operands of an append, or of a launch, in the other order."""
    lines = [
        n for n, line in enumerate(text.lines) if "task.append @" in line or "task.launch @" in line
    ]
    found = [(n, m) for n in lines for m in re.finditer(r"(%\w+), (%\w+)", text.lines[n])]
    if not found:
        return None
    number, match = rng.choice(found)
    line = text.lines[number]
    other = f"{match[2]}, {match[1]}"
    return text.edited(number, line[: match.start()] + other + line[match.end() :])


def callee(text: Text, rng: random.Random) -> str | None:
    """An append of another rOperator."""
    found = _append(text, rng)
    if found is None:
        return None
    number, match = found
    names = re.findall(r"task\.roperator @(\w+)", "\n".join(text.lines))
    line = text.lines[number].replace(f"@{match['callee']}", f"@{rng.choice(names)}", 1)
    return text.edited(number, line) if line != text.lines[number] else None


def returned(text: Text, rng: random.Random) -> str | None:
    """The function's results in another order."""
    for number, line in enumerate(text.lines):
        names = re.findall(r"%\w+", line)
        if "func.return" in line and len(set(names)) > 1:
            types = line.partition(" : ")[2]
            mixed = rng.sample(names, len(names))
            changed = f"    func.return {', '.join(mixed)} : {types}"
            return text.edited(number, changed) if mixed != names else None
    return None


def rkernel(text: Text, rng: random.Random) -> str | None:
    """Another rKernel's name on an rOperator."""
    found = [n for n, line in enumerate(text.lines) if 'rkernel = "' in line]
    names = set(re.findall(r'rkernel = "([^"]*)"', "\n".join(text.lines)))
    names |= {"map.rows", "softmax.rows", "gemm.tiled", "reduce.rows", "gemv.rows", "conv.direct"}
    if not found:
        return None
    number = rng.choice(found)
    new = re.sub(
        r'rkernel = "[^"]*"', f'rkernel = "{rng.choice(sorted(names))}"', text.lines[number]
    )
    return text.edited(number, new) if new != text.lines[number] else None


def space(text: Text, rng: random.Random) -> str | None:
    """An input, output or state made another of these."""
    kinds = ["input", "output", "state"]
    found = [
        n for n, line in enumerate(text.lines) if re.search(rf'space = "({"|".join(kinds)})"', line)
    ]
    if not found:
        return None
    number = rng.choice(found)
    line = re.sub(r'space = "\w+"', f'space = "{rng.choice(kinds)}"', text.lines[number])
    return text.edited(number, line) if line != text.lines[number] else None


def pairing(text: Text, rng: random.Random) -> str | None:
    """The results of two pairs of state exchanged."""
    for number, line in enumerate(text.lines):
        match = re.search(r"irkit\.state = array<i64: ([^>]*)>", line)
        flat = match[1].split(", ") if match else []
        if match and len(flat) > 2:
            a, b = rng.sample(range(1, len(flat), 2), 2)
            flat[a], flat[b] = flat[b], flat[a]
            return text.edited(number, line.replace(match[1], ", ".join(flat)))
    return None


def carry(text: Text, rng: random.Random) -> str | None:
    """An operand carried that was waited for, or not carried any more; its waits stay, or go."""
    found = _append(text, rng)
    if found is None:
        return None
    number, match = found
    line = re.sub(r" carried \[.*?\]", "", text.lines[number])
    if line == text.lines[number]:
        line = f"{line.rstrip()} carried [{rng.randrange(3)}]"
        if match["waits"] and rng.random() < 0.7:
            line = line.replace(match["waits"], "", 1)
    return text.edited(number, line)


def numbers(pattern: str) -> Mutation:
    """A change of one of the numbers that `pattern` finds."""
    return lambda text, rng: text.number(rng, pattern)


MUTATIONS: dict[str, Mutation] = {
    "append dropped": drop,
    "append repeated": repeat,
    "appends swapped": swap,
    "append moved": place,
    "waits": wait,
    "operand": operand,
    "operands exchanged": exchange,
    "rOperator of an append": callee,
    "results exchanged": returned,
    "rKernel": rkernel,
    "space": space,
    "pairs of state": pairing,
    "pair of state": numbers(r"irkit\.state = array<i64: .*?(\d+)[,>]"),
    "in place": numbers(r"in_place = array<i64: .*?(\d+)[,>]"),
    "wave": numbers(r"wave (\d+)"),
    "offset": numbers(r'(?:space = "\w+",.* |\{)offset = (\d+)'),
    "port": numbers(r"port = (\d+)"),
    "size of a space": numbers(r"(?:arena|row|constant|shared)_bytes = (\d+)"),
    "resident": numbers(r"resident \[.*?(\d+)"),
    "resident's offset": numbers(r"resident \[.* at (\d+)"),
    "carried": carry,
    "grid": numbers(r"grid = array<i64: .*?(\d+)[,>]"),
    "parameter": numbers(r"parameters = \{.*?= (\d+) "),
    "attribute of an rOperator": numbers(r"task\.roperator .*attributes .* (\d+) : i64"),
    "shape of a buffer": numbers(r"task\.(?:buffer|view) .*tensor<(\d+)"),
    "rows": numbers(r"task\.program .*rows \[.*?(\d+)[:\]]"),
    "vDevice": numbers(r"(?:veus|threads|shared_bytes|multiprocessors) = (\d+)"),
}
