"""Blocks of an entry that run side by side on a multiprocessor.

Blocks that share an rTask hide the way to memory, and the length of functions, from one another: where each
takes just more registers than half of them, as the assembler likes, one runs where two could, and takes about
as long as both.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from irkit.runtime.cuda.assembling import assemble, resources_of

REGISTERS = 1 << 16
"""Those of a multiprocessor."""
STORED = 32
"""Bytes of a thread that may be stored and read again, so that one block more fits: of Black-Scholes'
formula in float64, 24 bytes cost less than a third of the warps; 120 cost more than that."""
_FACTS = re.compile(r"^LAUNCH = (\{.*\})$", re.M)


def side_by_side(text: str) -> dict[str, int]:
    """Of a module's text, how many blocks of which entries are to fit on a multiprocessor, where it is more
    than one."""
    facts = _FACTS.search(text)
    wanted = ast.literal_eval(facts[1]).get("side_by_side", ()) if facts else ()
    return {f"op_{number}": blocks for number, blocks in enumerate(wanted) if blocks > 1}


def assembled(
    ptx: str, wanted: Mapping[str, int], threads: int, arch: str
) -> tuple[str, bytes, str]:
    """PTX, machine code and the assembler's log of a text, with as many blocks side by side of each entry as
    are `wanted`, of `threads` each, or as leave a thread registers enough."""
    code, log = assemble(ptx, arch)
    before = resources_of(log)
    most = {e: REGISTERS // (n * threads) for e, n in wanted.items()}
    blocks = {e: wanted[e] for e in wanted if e in before and before[e]["registers"] > most[e]}
    while blocks:
        closer = _closer(ptx, blocks)
        other, told = assemble(closer, arch)
        after = resources_of(told)
        crowded = {e for e in blocks if after[e]["stack"] > before[e]["stack"] + STORED}
        if not crowded:
            return closer, other, told
        blocks = {e: n - (e in crowded) for e, n in blocks.items() if n - (e in crowded) > 1}
    return ptx, code, log


def _closer(ptx: str, blocks: Mapping[str, int]) -> str:
    """Entries of which the assembler is told how many blocks are to fit."""
    for entry, count in blocks.items():
        pattern = rf"(\.entry {entry}\(.*?\.minnctapersm) \d+"
        ptx = re.sub(pattern, rf"\1 {count}", ptx, count=1, flags=re.S)
    return ptx
