"""Splits by sets of categories, as comparisons of columns that say whether a row is in the set.

`graph.forest` compares numbers only. For each distinct set of a feature a column is added to x, looked up
in a table by the row's category: 0 where the split goes left, 1 where it goes right. The node then asks
whether that column is at most 0.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from irkit.dialects.graph import AndOp, CastOp, CompareOp, ConcatOp, GatherOp, ReshapeOp, WhereOp
from irkit.dialects.types import DYNAMIC, numpy_dtype, tensor_type
from irkit.errors import InvalidModelError
from irkit.frontends.module import GraphBuilder

MOST_CATEGORIES = 1 << 20


@dataclass
class CategorySets:
    """Sets met so far, numbered from `features` on: the columns that they become.

    Outside a table's categories a row goes right, or left
    where `unknown_left`; NaN goes as each split says. `named_right`: sets name what goes right.
    """

    features: int
    unknown_left: bool = False
    named_right: bool = False
    _columns: dict[tuple[int, bool, tuple[int, ...]], int] = field(
        default_factory=dict[tuple[int, bool, tuple[int, ...]], int]
    )

    def column(self, feature: int, members: Sequence[int], nan_left: bool) -> int:
        """The number of the column that says where rows go by this set."""
        if not 0 <= feature < self.features:
            raise InvalidModelError(f"a categorical split names feature {feature}")
        if members and not 0 <= min(members) <= max(members) < MOST_CATEGORIES:
            raise InvalidModelError(f"a categorical split names category {max(members)}")
        key = (feature, nan_left, tuple(sorted(set(members))))
        return self._columns.setdefault(key, self.features + len(self._columns))

    def extend(self, builder: GraphBuilder, x: SSAValue) -> SSAValue:
        """x with a column for each set; x itself if there are none."""
        if not self._columns:
            return x
        parts, order = [x], [*range(self.features)]
        places = np.empty(len(self._columns), np.int64)
        for feature in sorted({key[0] for key in self._columns}):
            mine = {key: n for key, n in self._columns.items() if key[0] == feature}
            parts.append(self._looked_up(builder, x, feature, list(mine)))
            for number in mine.values():
                places[number - self.features] = len(order)
                order.append(number)
        wide = builder(ConcatOp, *parts, axis=1)
        if (places == np.arange(len(places)) + self.features).all():
            return wide
        picked = np.concatenate([np.arange(self.features), places])
        return builder(GatherOp, wide, builder.constant(picked, "columns"), axis=1)

    def _looked_up(
        self, builder: GraphBuilder, x: SSAValue, feature: int, keys: list[Any]
    ) -> SSAValue:
        dtype = numpy_dtype(tensor_type(x).element_type)
        count = max((max(members, default=-1) for _, _, members in keys), default=-1) + 1
        # Row `count` is for what is no category of the table, the row after it for NaN.
        table = np.full((count + 2, len(keys)), not self.unknown_left, np.bool_)
        for place, (_, nan_left, members) in enumerate(keys):
            table[:count, place] = not self.named_right
            table[list(members), place] = self.named_right
            table[count + 1, place] = not nan_left
        cell = builder(GatherOp, x, builder.constant(np.array([feature]), "feature"), axis=1)

        def compared(predicate: str, bound: float) -> SSAValue:
            limit = builder.constant(np.array([bound], dtype), "bound")
            return builder(CompareOp, cell, limit, predicate=predicate)

        low = 0.0 if self.unknown_left else np.nextafter(dtype.type(-1), dtype.type(0))
        known = builder(AndOp, compared("ge", low), compared("lt", float(count)))
        number = builder(CompareOp, cell, cell, predicate="eq")
        other = builder(
            WhereOp,
            number,
            builder.constant(np.array([count], dtype), "other"),
            builder.constant(np.array([count + 1], dtype), "nan"),
        )
        code = builder(CastOp, builder(WhereOp, known, cell, other), to=i64)
        rows = builder.constant(table.astype(dtype), "sets")
        found = builder(GatherOp, rows, builder(ReshapeOp, code, shape=[DYNAMIC]), axis=0)
        return builder(ReshapeOp, found, shape=[DYNAMIC, len(keys)])
