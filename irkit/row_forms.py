"""In which form rows come to a model, beside their dtype, where its library's arithmetic hangs on it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RowForm:
    """`sparse`: a sparse matrix. `types`: NumPy's names of the types that columns of a data frame have, of
    which a model computes some apart; empty where all have that of the rows."""

    sparse: bool = False
    types: tuple[str, ...] = ()


PLAIN = RowForm()
