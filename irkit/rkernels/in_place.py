"""Whether an rKernel can update operands in place, as an rOperator says in `in_place`.

It can if each element of the operand is read only by functions that store, at the place that is written
there, by the one call that makes this element, before it is written, or by one that is asked before that.
What is printed is looked at, since that is what runs.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from irkit.dialects.task import ROperatorOp
from irkit.rkernels.binding.binder import Binding
from irkit.rkernels.rkernel import RKernel
from irkit.syntax_trees import in_one_thread

# Placeholders of functions that store one element.
STORES = (
    "STORE",
    "STORE_FETCHED",
    "STORE_SHORT",
    "STORE_WITHIN",
    "STORE_OUTSIDE",
    "STORE_UNMASKED",
)
# Of functions that are asked of a block of elements before any of it is stored.
ASKS = ("MASK",)


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
    """Whether `source` is read in functions that store alone, and there only at the place where `target` is
    written, before that."""
    given = (text for name, text in binding.names.items() if name != "OPERANDS")
    if any(_uses(text)[source] for text in given):
        return False
    bodies = {f.partition("(")[0]: f.partition("):\n")[2] for f in binding.functions}
    named = {f"@fused\ndef {binding.names.get(name)}" for name in STORES}
    stores = [bodies.pop(name) for name in sorted(named & bodies.keys())]
    asks = {f"@fused\ndef {binding.names.get(name)}" for name in ASKS}
    asked = [bodies.pop(name) for name in sorted(asks & bodies.keys())]
    if any(_uses(body)[source] for body in bodies.values()):
        return False
    found = [_Body.of(text, source, target) for text in stores]
    own = any(body.stored for body in found) and all(body.own for body in found)
    return own and all(_asks_its_own(text, stores, source, target) for text in asked)


def _asks_its_own(text: str, stores: Sequence[str], source: str, target: str) -> bool:
    """Whether a function that is asked before an element is stored loads that one alone: by an index that is
    the same text, of names that are bound alike, where it is stored."""
    body = _Body.of(text, source, target)
    if not body.loaded:
        return body.right
    index = set(re.findall(r"\bv\d+\b", " ".join(body.loaded)))
    bound = {line.strip() for line in text.splitlines() if line.split(" = ")[0].strip() in index}
    return (
        body.right
        and not body.stored
        and any(
            body.loaded <= _Body.of(store, source, target).stored
            and bound <= {line.strip() for line in store.splitlines()}
            for store in stores
        )
    )


def _uses(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text))


@dataclass
class _Body:
    """A function that stores: where it loads the one pointer and stores by the other, in any of its
    branches, and whether it does nothing else with them, and loads nothing that may be stored already."""

    source: str
    target: str
    loaded: set[str] = field(default_factory=set[str])
    stored: set[str] = field(default_factory=set[str])
    right: bool = True

    @classmethod
    def of(cls, text: str, source: str, target: str) -> _Body:
        """What a body does; each name of it is bound once, so that equal indices are equal places."""
        body = cls(source, target)
        tree = in_one_thread(lambda: ast.parse("def body():\n" + text))
        body._run(tree.body[0].body, False)  # pyright: ignore
        return body

    @property
    def own(self) -> bool:
        """Whether what it reads of the source is the one element that it stores. Functions number elements
        each in its own way (`r, j`, or `q, i, j`), so no two are compared."""
        return self.right and len(self.stored) <= 1 and self.loaded <= self.stored

    def _run(self, statements: Sequence[ast.stmt], done: bool) -> bool:
        """Follow statements; whether an element was stored before, and after."""
        for statement in statements:
            if isinstance(statement, ast.If):
                self._read(statement.test, done)
                branches = [self._run(b, done) for b in (statement.body, statement.orelse)]
                done = any(branches)
            else:
                done = self._step(statement, done)
        return done

    def _step(self, statement: ast.stmt, done: bool) -> bool:
        where = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if not isinstance(where, ast.Subscript) or ast.unparse(where.value) != self.target:
            self._read(statement, done)
            return done
        assert isinstance(statement, ast.Assign)
        self._read(statement.value, done)
        self._read(where.slice, done)
        self.right &= not done
        self.stored.add(ast.unparse(where.slice))
        return True

    def _read(self, node: ast.AST, done: bool) -> None:
        """What is read where nothing is stored: of both pointers single elements, and none that may be stored
        already."""
        both = (self.source, self.target)
        loads = [
            inner
            for inner in ast.walk(node)
            if isinstance(inner, ast.Subscript) and ast.unparse(inner.value) in both
        ]
        names = Counter(inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name))
        self.right &= sum(names[pointer] for pointer in both) == len(loads)
        self.right &= not (loads and done)
        self.loaded |= {ast.unparse(load.slice) for load in loads}
