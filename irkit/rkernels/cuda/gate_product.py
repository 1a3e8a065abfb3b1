"""Products of which gates are made, on tensor cores: the templates and tiles of `product`, whose sums leave
unit by unit.

The columns of a tile are units, the sums of a unit side by side, so that the thread that has a unit reads
them all and computes what is made of them: a step of a recurrence is one rTask of each tile.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from irkit.dialects.roperator_body import GATES
from irkit.dialects.roperator_root import Root
from irkit.rkernels.cuda import product_mma, product_sliced
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.tilings import cut_into_tiles
from irkit.rkernels.work import Part, Work

COUNTS = (2, 4, 8)
"""Gates of a unit: tiles begin at multiples of four columns, or at those of a unit."""


def leave_gates(OPERANDS, staged, place, threads, sizes, first, ends, fours, anew, unsure, above=0):
    """As `leave_tile`, of units of G sums each, which lie at staged[place] row by row."""
    thread, count = threads
    high, wide = sizes
    b, lead, m, c = first
    m1, c0, c1 = ends
    acc = cuda.local.array(G, FLOAT)

    def exact(y, x):
        found = FLOAT(0)
        column = COLUMN(b, lead, c + x)
        for k in range(K):
            step = STEP(k)
            value = B[AT(column, step)]
            value = value if INSIDE(column, step) else FLOAT(0)
            found += A[(b * M + m + y) * K + k] * value
        return found

    for i in range((high * (wide // G) + count - 1) // count):
        y, v = divide(thread + i * count, wide // G)
        x = v * G
        if y < high and m + y < m1 and c + x < c1 and c + x >= c0:
            unit, rest = divide(c + x, G)
            for g in range(G):
                total = staged[place + y * (wide + 8) + x + g]
                if anew == 1 or (anew == 2 and not (unsure <= abs(total) < math.inf)):
                    total = exact(y, x + g)
                acc[g] = total + INIT(OPERANDS, m + y, unit, g)
            STORE(OPERANDS, m + y, unit, acc)


def _legal(root: Root) -> bool:
    """What tensor cores multiply, of whole units in every tile."""
    return root.parallel[-1] in COUNTS and product_mma.legal(root)


def _work(counted: Callable[[Part], Work]) -> Callable[[Part], Work]:
    """Sums, and what is stored once a unit."""
    return lambda part: counted(part) + part.store * part.share((0, 1))


RKERNELS = [
    RKernel(
        GATES,
        f"{kind}{name}",
        "cuda",
        module.__name__,
        template,
        legal=_legal,
        reassociates=True,
        scratch_bytes=module.scratch,
        threads=product_mma.THREADS_PER_BLOCK,
        parameters=partial(product_mma.parameters_of, tile),
        vectors=("A", "B"),
        streams=True,
        grid=cut_into_tiles(partial(product_mma.tiling, tile), whole=1),
        work=_work(module.computed(tile)),
    )
    for kind, module, template in (
        ("mma", product_mma, "product_mma"),
        ("sliced", product_sliced, "product_sliced"),
    )
    for name, tile in module.TILES.items()
]
