"""Elements that lie in one row are not divided into rows: maps, run by the emulator."""

from __future__ import annotations

import numpy as np
import pytest
from emulated_op import roperator, run_by


@pytest.mark.parametrize("shape", [(37,), (1, 50), (1, 1, 9), (3, 13)])
@pytest.mark.parametrize("kernel", ["map.elements", "map.fetched"])
def test_every_element_once(shape: tuple[int, ...], kernel: str) -> None:
    kind = f"tensor<{'x'.join(map(str, shape))}xf32>"
    op, order = roperator(f"""func.func @main(%x: {kind}, %y: {kind}) -> {kind} {{
      %a = graph.abs %x : ({kind}) -> {kind}
      %s = graph.sub %a, %y : ({kind}, {kind}) -> {kind}
      func.return %s : {kind}
    }}""")
    x, y = np.random.default_rng(0).standard_normal((2, *shape)).astype("f4")
    for tasks, blocks in ((1, 1), (2, 1), (1, 3)):
        got = np.full(shape, 77, "f4")
        text = run_by(op, kernel, [(x, y)[n] for n in order], [got], tasks, blocks, threads=8)
        np.testing.assert_array_equal(got, np.abs(x) - y)
        assert ("in_one_row(" in text) == (shape != (3, 13))
