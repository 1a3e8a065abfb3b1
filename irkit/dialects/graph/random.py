"""Random numbers of keys and counters, elementwise."""

from __future__ import annotations

from typing import ClassVar

from xdsl.irdl import irdl_op_definition

from irkit.dialects.element_sets import WORDS, Elements
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.elementwise import BinaryOp

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
"""By how many bits the rounds of Threefry-2x32 rotate, four and four."""
PARITY = 0x1BD11BDA
"""What the third word of its key is made with."""
GROUPS = 5
"""How many times four rounds there are."""


@irdl_op_definition
class ThreefryOp(BinaryOp):
    """64 random bits of a key (lhs) and a counter (rhs): Threefry-2x32 of 20 rounds.

    Salmon, Moraes, Dror and Shaw: Parallel Random Numbers: As Easy as 1, 2, 3 (SC 2011). Key, counter and result
    are two words of 32 bits each, the first the lower one. It has neither state nor order: equal operands give
    equal bits, wherever and however often they are computed; of one key different counters give different bits.

    ```mlir
    %y = graph.threefry %k, %c : (tensor<ui64>, tensor<8xui64>) -> tensor<8xui64>
    ```
    """

    name = "graph.threefry"
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (WORDS,)


OPS: list[type[GraphOp]] = [ThreefryOp]
