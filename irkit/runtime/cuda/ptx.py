"""Check PTX text for forms that deadlock or crawl."""

from __future__ import annotations

import itertools
import re

_ENTRY = re.compile(r"\.visible \.entry (\w+)")
_LABEL = re.compile(r"^(\$\w+):", re.M)
_BRANCH = re.compile(r"\bbra(?:\.uni)?\s+(\$\w+);")
_CHANGES = re.compile(r"\b(?:st\.|red\.|atom\.|cp\.(?!async\.bulk\.prefetch))")
_READS = re.compile(r"\bld\.(?!param|relaxed)\S+\s+[^\[]*\[(%\w+)")
_RECORD = re.compile(r"\bld\.param\.[bu]64\s+(%\w+), \[\w+_param_0\];")


def split_at_entries(ptx: str) -> list[str]:
    """What stands before the entry kernels, and each of them: the text in pieces."""
    starts = [0, *(m.start() for m in _ENTRY.finditer(ptx)), len(ptx)]
    return [ptx[a:b] for a, b in itertools.pairwise(starts)]


def functions(ptx: str) -> dict[str, str]:
    """Name of each entry kernel -> its text."""
    found: dict[str, str] = {}
    places = list(_ENTRY.finditer(ptx))
    for place, following in zip(places, [*places[1:], None], strict=True):
        end = following.start() if following is not None else len(ptx)
        found[place.group(1)] = ptx[place.start() : end]
    return found


def loops(text: str) -> list[str]:
    """Bodies of the innermost loops: from a label to the branch back to it."""
    starts = {m.group(1): m.end() for m in _LABEL.finditer(text)}
    found: list[str] = []
    for branch in _BRANCH.finditer(text):
        start = starts.get(branch.group(1), len(text))
        body = text[start : branch.start()]
        if start < branch.start() and not _LABEL.search(body):
            found.append(body)
    return found


def _spins(body: str) -> bool:
    """A loop that changes nothing of its own: it can only be waiting for another block."""
    lines = [line.strip() for line in body.splitlines() if line.strip()]
    code = [line for line in lines if not line.startswith("//")]
    works = ("st.", "bar.", "add.", "sub.", "fma.", "mul.", "shl.", "shr.", "mad.", "xor.", "cp.")
    return not any(line.startswith(works) for line in code)


def _too_early(text: str) -> bool:
    """Whether a kernel that may begin early touches what others write before it has waited for these.

    Before its one wait, which no branch leaves out, it may read its record, which is its first parameter, and
    the table of bases, by `ld.relaxed`, and ask for bytes.
    """
    before, *behind = text.split("griddepcontrol.wait;")
    if not behind:
        return "griddepcontrol.launch_dependents" in text
    record = set(_RECORD.findall(before))
    record |= {a for r in record for a in re.findall(rf"cvta\S+\s+(%\w+), {r};", before)}
    touches = _CHANGES.search(before) is not None or not record.issuperset(_READS.findall(before))
    skips = not set(_LABEL.findall(before)).issuperset(_BRANCH.findall(before))
    return touches or skips or len(behind) > 1 or "ret;" in before


def forbidden_forms(ptx: str) -> list[str]:
    """What must not be in an emitted module's PTX, one message each; an empty list is good.

    Spin loops that do not read their flag with `ld.acquire`; a persistent kernel that signals
    without `red.release`; loads that bypass coherence; a kernel that begins early and does not wait.
    """
    found: list[str] = []
    for name, text in functions(ptx).items():
        for body in loops(text):
            if _spins(body) and "ld.acquire" not in body:
                found.append(f"{name}: a loop that only waits, without ld.acquire")
        if "ld.acquire" in text and "red.release" not in text:
            found.append(f"{name}: waits but never signals with red.release")
        if _too_early(text):
            found.append(f"{name}: touches memory before it has waited for the kernel ahead")
        if re.search(r"\bld\.global\.nc", text):
            found.append(f"{name}: ld.global.nc may miss what another vEU wrote")
    if re.search(r"\bld\.global\.nc", split_at_entries(ptx)[0]):
        found.append("what kernels call: ld.global.nc may miss what another vEU wrote")
    return found


def warnings(ptx: str, double_expected: bool = False) -> list[str]:
    """What is legal but slow: local memory, and float64 arithmetic where none is meant."""
    found: list[str] = []
    for name, text in functions(ptx).items():
        local = re.search(r"\.local \.align \d+ \.b8\s+\w+\[(\d+)\]", text)
        if local is not None:
            found.append(f"{name}: {local.group(1)} bytes of local memory")
        if not double_expected and re.search(r"\b(?:add|mul|fma|div)(?:\.rn)?\.f64", text):
            found.append(f"{name}: float64 arithmetic")
    return found
