"""Look-ups of hashes in tables of statistics: all of int64, at its ends too."""

# pyright: basic

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import i64

from irkit.dialects.types import DYNAMIC, tensor
from irkit.frontends.catboost_categories import _SortedKeys
from irkit.frontends.module import GraphBuilder
from irkit.interp.graph import run_graph
from irkit.model_info import ModelInfo

LEAST, MOST = -(1 << 63), (1 << 63) - 1
HASHES = st.one_of(
    st.integers(LEAST, MOST),
    st.integers(-3, 3),
    st.integers(LEAST, LEAST + 3),
    st.integers(MOST - 3, MOST),
    st.integers(1 << 40, (1 << 40) + 9),
)


@settings(max_examples=150, deadline=None)
@given(
    tables=st.lists(st.sets(HASHES, max_size=40), min_size=1, max_size=3),
    others=st.lists(HASHES, max_size=20),
)
def test_each_hash_finds_its_value(tables: list[set[int]], others: list[int]) -> None:
    sorted_tables = [np.array(sorted(t), np.int64) for t in tables]
    keys = _SortedKeys.of(sorted_tables)
    builder = GraphBuilder([("x", tensor(i64, (DYNAMIC, len(tables))))])
    module = builder.finish(
        [("y", keys.places(builder, builder.inputs[0]))], ModelInfo("network", ("x",), ("y",))
    )
    asked = sorted({*others, *(key for table in tables for key in table)})
    rows: Any = np.repeat(np.array(asked, np.int64)[:, None], len(tables), axis=1)
    (places,) = run_graph(module.module, module.weights, [rows])
    for number, table in enumerate(sorted_tables):
        values = np.arange(1, len(table) + 1).astype(np.float32)
        spread = keys.spread(number, values, np.float32(-1))
        known = dict(zip(table.tolist(), values.tolist(), strict=True))
        found = spread[places[:, number] - keys.start[number]]
        assert found.tolist() == [known.get(hash_, -1.0) for hash_ in asked]
