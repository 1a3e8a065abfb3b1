"""`map`: elementwise work, copies, gathers, transpositions and pads."""

from __future__ import annotations

import math

from irkit.dialects.roperator_root import Root
from irkit.dialects.tensor_ops.interface import Index
from irkit.dialects.types import DYNAMIC
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.elements import ElementPrinter, delinearised
from irkit.rkernels.binding.fours import fours
from irkit.rkernels.binding.inserted import inserted_of
from irkit.rkernels.binding.masked import mask_of
from irkit.rkernels.binding.turned import turned_tiles
from irkit.rkernels.family import Family

_SHORT = 8
BLOCK = 128
"""Elements of which a mask is asked together: a few vectors of bytes. Of more, fewer blocks have none."""


def short_rows(root: Root) -> bool:
    """Whether the last dimension has a few elements, the one before two at least, and all are written."""
    if len(root.parallel) < 2 or root.body is None or root.body.last_op is None:
        return False
    before, last = root.parallel[-2:]
    inserted = any(inserted_of(v) is not None for v in root.body.last_op.operands)
    return 1 < last <= _SHORT and before != DYNAMIC and before > 1 and not inserted


def masked_rows(root: Root) -> bool:
    """Whether a mask in memory says for all results where they are computed, in rows of several blocks."""
    long = len(root.parallel) > 0 and root.parallel[-1] >= 2 * BLOCK
    return long and root.body is not None and mask_of(root.body) is not None


class Elementwise(Family):
    """`RANGE`, and `STORE(OPERANDS, r, j)`, which computes an element of every result; `WITHIN`, `STEP`,
    `STORE_WITHIN` and `STORE_OUTSIDE` where slices are inserted.

    On a GPU `SPLIT(element, width)`, which row and column that is, `FETCH(OPERANDS, r, j)` and
    `STORE_FETCHED(OPERANDS, r, j, known)` too, the same in two: what is read of memory, and the rest;
    `FETCH_FOUR` and `STORE_FOUR`, the same of four elements
    (`irkit/rkernels/binding/fours.py`). Where an operand is read along another dimension than it is stored
    `PLACE`, `SOURCE`, `LOAD_TILE`, `STORE_TILE`, `TILED`, `TILES`, `LENGTH`, `INNER`
    (`irkit/rkernels/binding/turned.py`). On a CPU, of rows of a few elements,
    `STORE_SHORT(OPERANDS, q, i, j)`: r is q * `I` + i. Where a mask in memory chooses for every result,
    `MASK(OPERANDS, r, j)` is an element of it, and `STORE_UNMASKED(OPERANDS, r, j)` what `STORE` does where
    that is false.
    """

    name = "map"

    @staticmethod
    def _short(binder: Binder) -> None:
        def index(printer: ElementPrinter) -> Index:
            lead = [printer.name(i) for i in delinearised("q", binder.lead[:-1])]
            return (*lead, "i", "j")

        binder.literal("I", binder.lead[-1])
        binder.store("q, i, j", index, lambda index: "", placeholder="STORE_SHORT")

    @staticmethod
    def _masked(binder: Binder) -> None:
        mask = mask_of(binder.block)
        assert mask is not None
        binder.load("MASK", "r, j", mask, binder.rj_index)
        binder.store(
            "r, j",
            binder.rj_index,
            lambda index: "",
            placeholder="STORE_UNMASKED",
            known={mask: "False"},
        )

    def refuses(self, root: Root) -> str | None:
        """Only a body without a heavy op."""
        return None if root.op is None else "it is no map: its root is heavy"

    def bind(self, binder: Binder) -> None:
        """Every element is an expression of the operands'."""
        binder.range()
        binder.store("r, j", binder.rj_index, lambda index: "")
        binder.store_within()
        if binder.target == "cpu" and short_rows(binder.root):
            self._short(binder)
        if binder.target == "cpu" and masked_rows(binder.root):
            self._masked(binder)
        if binder.target == "cuda":
            one_row = math.prod(binder.lead) == 1
            binder.binding.names["SPLIT"] = "in_one_row" if one_row else "divide"
            binder.store(
                "r, j", binder.rj_index, lambda index: "", ahead="r, j", placeholder="STORE_FETCHED"
            )
            fours(binder, binder.rj_index)
        turned_tiles(binder)
