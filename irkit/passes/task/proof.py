"""What ties a proof to what it proved: `verified` of a program is a digest of all that the proof read.

The digest goes over the vDevice, the rOperators, the functions and the programs of a module, with every
property and attribute, and no name of an SSA value or location. A change of any of them makes another
digest, so a stale proof is known by reading alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from irkit.dialects.task import CompositeOp, ProgramOp
from irkit.errors import ScheduleError
from irkit.schedule.modes import Mode

_PREFIX = "sha256:"


class OpDigest:
    """A digest of operations in which values are numbers, in the order of their definitions."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._numbers: dict[SSAValue, int] = {}
        self._texts: dict[Attribute, str] = {}

    def hex(self) -> str:
        """What was taken in so far."""
        return self._hash.hexdigest()

    def add(self, op: Operation) -> None:
        """Take in an op and all that is in it."""
        self._put("op", op.name)
        self._put("operands", *(str(self._number(v)) for v in op.operands))
        self._put("results", *(self._defined(v) for v in op.results))
        for kind, given in (("property", op.properties), ("attribute", op.attributes)):
            self._facts(op, kind, given)
        self.add_regions(op)

    def add_regions(self, op: Operation) -> None:
        """Take in all that is in an op, and nothing of itself."""
        for region in op.regions:
            for block in region.blocks:
                self._put("block", *(self._defined(a) for a in block.args))
                for inner in block.ops:
                    self.add(inner)
            self._put("end")

    def _facts(self, op: Operation, kind: str, given: Mapping[str, Attribute]) -> None:
        for name in sorted(given):
            if not (isinstance(op, CompositeOp | ProgramOp) and name == "verified"):
                self._put(kind, name, self._text(given[name]))

    def _number(self, value: SSAValue) -> int:
        # A use before its definition, in text that is wrong anyway, gets a number of its own too.
        return self._numbers.setdefault(value, len(self._numbers))

    def _defined(self, value: SSAValue) -> str:
        return f"{self._number(value)} {self._text(value.type)}"

    def _text(self, attribute: Attribute) -> str:
        text = self._texts.get(attribute)
        if text is None:
            text = self._texts[attribute] = str(attribute)
        return text

    def _put(self, *words: str) -> None:
        # Lengths first, so that no two lists of words are one string of bytes.
        for word in words:
            data = word.encode()
            self._hash.update(b"%d:" % len(data))
            self._hash.update(data)
        self._hash.update(b"\n")


def digest(module: ModuleOp) -> str:
    """The digest of everything in `module` that a proof is about, as `verified` has it."""
    found = OpDigest()
    for op in module.ops:
        found.add(op)
    return _PREFIX + found.hex()


def record_proof(
    module: ModuleOp, programs: Mapping[ProgramOp | CompositeOp, Sequence[Mode]]
) -> None:
    """Write into each program the modes that its proof covers, and the digest of the module into all."""
    for program, modes in programs.items():
        program.modes = ArrayAttr([StringAttr(mode.value) for mode in modes])
    verified = StringAttr(digest(module))
    for program in programs:
        program.verified = verified


def require_proof(module: ModuleOp, program: ProgramOp | CompositeOp) -> None:
    """Raises ScheduleError unless `program` was proved and nothing changed since."""
    name = program.sym_name.data
    if program.verified is None:
        raise ScheduleError(f"task.program @{name} was not proved: run verify-schedule")
    found = digest(module)
    if program.verified.data != found:
        raise ScheduleError(
            f"task.program @{name} is not what was proved: its digest is {found[:23]}..., the proof is of "
            f"{program.verified.data[:23]}...; run verify-schedule again"
        )
