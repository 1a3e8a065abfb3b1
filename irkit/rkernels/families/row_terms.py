"""`gemv` and `recurrent_cell`: `acc[g] = sum_t sum_k Xt[b, k] * Wt[u, g, k]`, operands read by pointer."""

from __future__ import annotations

import math
from collections.abc import Sequence

from irkit.dialects.access_boxes import grid_of
from irkit.dialects.linalg_generic import row_term
from irkit.dialects.roperator_root import Root
from irkit.dialects.tensor_ops.interface import Index
from irkit.dialects.types import DYNAMIC
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.elements import delinearised, linear
from irkit.rkernels.family import Family, leading_parts, of_floats
from irkit.rkernels.work import Part, Work, work


def multiply_adds(part: Part) -> float:
    """Multiply-adds of a part of row terms: all of them, whether grouped or not, at four bytes."""
    terms = [row_term(op) for op in part.root.chain]
    return part.elements * sum(term.k for term in terms if term is not None) * part.lanes


FEW_AT_ONCE = (("units", 2, "fma"), ("wide_units", 4, "wide"))
"""On a CPU, how many rows of x a row of weights is read for at once, and in which rate: so many sums of four
rows of weights each that they stay in registers, 16 of 32 bytes or 32 of 64."""

MOST_AT_ONCE = {1: 1, 2: 2, 4: 6}
"""How many rows these registers hold the sums of where their number is known, by FEW_AT_ONCE."""


def dots(part: Part, kind: str = "dot") -> Work:
    """The same on a CPU, in multiply-adds of a rate. One row waits for its weights (`dot`); where those that
    are read serve several, vector units are about as busy as with a product's tiles."""
    return work(**{kind: multiply_adds(part) * (1.0 if kind == "dot" else 1.1)})


JOINING = 8
"""What joining the lanes of a vector to one sum takes, in terms that wait for one another."""

JOINING_EIGHT = 3
"""The same of eight vectors at once on a CPU, in simple ops for each."""


class RowTerms(Family):
    """`UNITS`, `BATCH`, `INIT(OPERANDS, b, u, g)`, `STORE(OPERANDS, b, u, acc)`, pointers `Xt`, `Wt`,
    lengths `Kt`, and `B`, `U`, `G`, `TERMS`. On a GPU `STORE(OPERANDS, b, u, acc, known)`, where `known` is
    what `FETCH(OPERANDS, b, u)` read before the sums, and `NOTHING` of its type."""

    def refuses(self, root: Root) -> str | None:
        """Contractions of floats that are row by row."""
        if root.family not in ("gemm", "recurrent_cell"):
            return f"its root is of family '{root.family}'"
        if not all(row_term(op) for op in root.chain):
            return "its root is not row by row"
        return of_floats(root)

    def grid(self, root: Root, tasks: int) -> list[int]:
        """Parts of the units, or shares of the batch."""
        if DYNAMIC in root.parallel:
            return leading_parts(root, tasks)
        return [1, min(tasks, root.parallel[1])] + [1] * (len(root.parallel) - 2)

    def refuses_grid(self, root: Root, grid: Sequence[int]) -> str | None:
        """Units alone are cut, or the batch alone."""
        cut = 0 if root.parallel[0] == DYNAMIC else 1
        if any(g > 1 for d, g in enumerate(grid) if d != cut):
            return f"only dimension {cut} can be cut"
        return None

    def bind(self, binder: Binder) -> None:
        """Operands must lie in memory, up to reshapes."""
        root, names = binder.root, binder.binding.names
        binder.units()
        batch, units, *group = root.parallel
        names |= self.rows(binder)
        names |= {
            "B": "0" if batch == DYNAMIC else str(batch),
            "U": str(units),
            "G": str(math.prod(group)),
            "TERMS": str(len(root.chain)),
        }
        for number, op in enumerate(root.chain):
            term = row_term(op)
            if term is None:
                raise UnsupportedError("a contraction that is not row by row")
            names[f"X{number}"] = binder.pointer(term.x)
            names[f"W{number}"] = binder.pointer(term.w)
            names[f"K{number}"] = str(term.k)
        binder.init("b, u, g", lambda p: ("b", "u", *[p.name(i) for i in delinearised("g", group)]))

        def accumulator(index: Index) -> str:
            if index[:2] != ("b", "u"):
                raise UnsupportedError("an epilogue that reads another unit's sums")
            return f"acc[{linear(index[2:], group)}]" if group else "acc[0]"

        ahead = "b, u" if binder.target == "cuda" else None
        binder.store("b, u, acc", lambda p: ("b", "u"), accumulator, ahead)

    def rows(self, binder: Binder) -> dict[str, str]:
        """The rTask's rows: `FIRST` and `LAST`, and `BATCH`, what `range` takes: all, or a share of the
        batch."""
        batch = binder.root.parallel[0]
        if batch != DYNAMIC:
            return {"BATCH": str(batch), "FIRST": "0", "LAST": str(batch)}
        first, last = "(rows * task) // tasks", "(rows * (task + 1)) // tasks"
        return {"BATCH": f"{first}, {last}", "FIRST": f"({first})", "LAST": f"({last})"}


class Gemv(RowTerms):
    """A matrix times few vectors: one term, no groups."""

    name = "gemv"

    def refuses(self, root: Root) -> str | None:
        """One term without groups."""
        if root.family != "gemm" or len(root.chain) != 1 or len(root.parallel) != 2:
            return "its root is no one product of vectors and a matrix"
        return super().refuses(root)


class RecurrentCell(RowTerms):
    """Several terms, or grouped ones."""

    name = "recurrent_cell"

    def refuses(self, root: Root) -> str | None:
        """What `irkit.dialects.roperator_root` calls so."""
        if root.family != "recurrent_cell":
            return "its root is no recurrent cell"
        return super().refuses(root)


class CellRows(RecurrentCell):
    """The same, cut by rows: an rTask has all units of its own."""

    name = "cell_rows"

    def grid(self, root: Root, tasks: int) -> list[int]:
        """Shares of the rows, known or not."""
        return leading_parts(root, tasks)[:1] + [1] * (len(root.parallel) - 1)

    def refuses_grid(self, root: Root, grid: Sequence[int]) -> str | None:
        """Rows alone are cut."""
        return "only dimension 0 can be cut" if any(g > 1 for g in grid[1:]) else None

    def rows(self, binder: Binder) -> dict[str, str]:
        """Its part of the rows where their number is known."""
        batch, parts = binder.root.parallel[0], grid_of(binder.op, binder.root)[0]
        if batch == DYNAMIC:
            return super().rows(binder)
        first, last = f"{batch} * task", f"{batch} * (task + 1)"
        if binder.target == "cuda" and batch * parts < 1 << 32:
            first, last = (f"divide({n}, {parts})[0]" for n in (first, last))
        else:
            first, last = (f"({n}) // {parts}" for n in (first, last))
        return {"BATCH": f"{first}, {last}", "FIRST": f"({first})", "LAST": f"({last})"}
