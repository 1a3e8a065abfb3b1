"""`map`: elementwise work, copies, gathers, transpositions and pads."""

from __future__ import annotations

from irkit.dialects.roperator_root import Root
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.family import Family


class Elementwise(Family):
    """`RANGE`, and `STORE(OPERANDS, r, j)`, which computes an element of every result; `WITHIN`, `STEP`,
    `STORE_WITHIN` and `STORE_OUTSIDE` where slices are inserted. On a GPU `FETCH(OPERANDS, r, j)` and
    `STORE_FETCHED(OPERANDS, r, j, known)` too, the same in two: what is read of memory, and the rest."""

    name = "map"

    def refuses(self, root: Root) -> str | None:
        """Only a body without a heavy op."""
        return None if root.op is None else "it is no map: its root is heavy"

    def bind(self, binder: Binder) -> None:
        """Every element is an expression of the operands'."""
        binder.range()
        binder.store("r, j", binder.rj_index, lambda index: "")
        binder.store_within()
        if binder.target == "cuda":
            binder.store(
                "r, j", binder.rj_index, lambda index: "", ahead="r, j", placeholder="STORE_FETCHED"
            )
