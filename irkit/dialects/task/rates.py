"""What an rTask's time is made of: the kinds of work, by the names that rates of a vDevice have.

A rate is the time of one unit of a kind on one vEU, in nanoseconds. Units are counted for a whole vEU: a
multiply-add is one, whichever of its threads or vector lanes computes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Lane = Literal["compute", "memory", "latency", "serial"]


@dataclass(frozen=True)
class Rate:
    """A kind of work: what one unit is, and where it goes.

    Work of the lanes "compute", "memory" and "latency" overlaps, so that the slowest of the three counts;
    work of lane "serial" overlaps with nothing.
    """

    unit: str
    lane: Lane = "compute"


RATES: Final[dict[str, Rate]] = {
    # Around the elements.
    "start": Rate("an rTask begun: its record read, its ranges computed", "serial"),
    "row": Rate("a run of elements or an output begun and finished", "serial"),
    "tile": Rate("a tile of sums begun and finished", "serial"),
    "wake": Rate("a vEU beside the first that a run starts: a thread that is woken", "serial"),
    "signal": Rate("an rTask's signal, which those of its append give in turn", "serial"),
    "barrier": Rate("a meeting of all threads of a vEU", "serial"),
    "shuffle": Rate(
        "an exchange between the lanes of a warp that the next one waits for", "serial"
    ),
    "chain": Rate("a term that waits for the sum of those before", "serial"),
    # Memory.
    "byte": Rate("a byte of an operand or result", "memory"),
    "round": Rate("a wait for loads that go out together", "latency"),
    "step": Rate("a wait for the next terms of a tile, which all threads fetch", "latency"),
    "stage": Rate("a wait for terms that were copied ahead", "latency"),
    # Sums of products.
    "fma": Rate("a multiply-add of a tile held in registers, at four bytes"),
    "wide": Rate("the same of a tile that fills 32 registers of 64 bytes"),
    "mma": Rate("a multiply-add of a tensor core, of two factors in TF32"),
    "fragment": Rate("a word of a tile read for a tensor core, and rounded or split"),
    "dot": Rate("a multiply-add whose factors are read for it alone, at four bytes"),
    "term": Rate("a multiply-add whose factors are found by index arithmetic"),
    "pack": Rate("an element copied to where products read it"),
    # Elements.
    "op": Rate("a simple op on an element, in a loop of vectors, at four bytes"),
    "scalar": Rate("a simple op, element by element"),
    "stride": Rate("a load that is not beside that of the element before"),
    "gather": Rate("a load from a place that another load names"),
    "index": Rate("an integer division or remainder"),
    "divide": Rate("a division or square root"),
    "exp": Rate("an exponential"),
    "log": Rate("a logarithm"),
    "tanh": Rate("a hyperbolic tangent"),
    "erf": Rate("an error function"),
    "pow": Rate("a power"),
    "sin": Rate("a sine or cosine"),
    "function": Rate("any other function"),
    "approximate": Rate("a function that may be approximated, at four bytes"),
    # Trees.
    "node": Rate("a node that a row visits"),
    "leaf": Rate("a leaf's value added"),
}
"""Name of a rate → what it is the time of."""
