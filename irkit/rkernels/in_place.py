"""Whether an rKernel can update operands in place, as an rOperator says in `in_place`.

It can if each element of the operand is read in STORE alone, at the place that is written there, by the one
call that makes this element. What is printed is looked at, since that is what runs.
"""

from __future__ import annotations

import re
from collections import Counter

from irkit.dialects.task import ROperatorOp
from irkit.rkernels.binding.binder import Binding
from irkit.rkernels.rkernel import RKernel


def refuses_in_place(op: ROperatorOp, rkernel: RKernel, binding: Binding) -> str | None:
    """Why the rKernel cannot compute `op` with the operands and results of `in_place` in the same bytes; None
    if it can."""
    if op.in_place is None:
        return None
    if rkernel.stores_again:
        return f"rKernel '{rkernel.name}' may store an element twice, which is not in place"
    first = len(op.body.block.args)
    for operand, result in op.in_place_pairs:
        if not _reads_its_own(binding, binding.pointers[operand], binding.pointers[first + result]):
            return f"operand {operand} is read elsewhere than where result {result} is written"
    return None


def _reads_its_own(binding: Binding, source: str, target: str) -> bool:
    """Whether `source` is read in STORE alone, and there only at the place where `target` is written, before
    that."""
    given = (text for name, text in binding.names.items() if name != "OPERANDS")
    if any(_uses(text)[source] for text in given):
        return False
    bodies = {f.partition("(")[0]: f.partition("):\n")[2] for f in binding.functions}
    store = bodies.pop(f"@fused\ndef {binding.names.get('STORE')}", "")
    if any(_uses(body)[source] for body in bodies.values()):
        return False
    loads, found, _ = store.partition(f"{target}[")
    places = set(re.findall(rf"\b{source}\[([^\]]*)\]", loads))
    written = re.findall(rf"\b{target}\[([^\]]*)\] = ", store)
    whole = _uses(store)[source] == len(re.findall(rf"\b{source}\[", loads))
    return bool(found) and len(written) == 1 and places <= set(written) and whole


def _uses(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text))
