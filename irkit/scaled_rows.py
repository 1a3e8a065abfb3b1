"""How rows of float32 are scaled and cut into two float16 parts, for tensor cores: what packs them and what
multiplies them agree on these.

A row is multiplied by a power of two, so that its largest term is in [2^14, 2^15): two float16 parts then
have 22 bits and a sign of each term that is 2^-28 of the largest or more. Of a sum of products the sum of
high parts' is the result but for a 2^11th; low·low is left out, at most 2^-22 of a product. A product is off
by 4.7e-7 at most, by 0.7e-7 in the mean: sums of many, which round each addition, do not notice. As in H.
Ootomo and R. Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing the FP32
theoretical peak performance", 2022, but for the scale.
"""

from __future__ import annotations

from typing import Final

LOW: Final = 2.0**11
"""How many times as large as it counts a low part is kept, so that it is lost as late as possible."""
LARGEST: Final = 14
"""The exponent of a row's largest term."""
EXPONENTS: Final = (-80, 110)
"""The powers of two that rows are multiplied by: within these no sum overflows where it is divided again."""
KEPT: Final = 2.0**-13
"""Scaled terms from here on have all their bits."""
HEADROOM: Final = 2.0**40
"""What a row's smaller terms have lost, in all, times this is the row's bound: 2^15 for the other factor,
2^24 for a sum's last bit, 2 to be sure. Sums as large as the bounds of row and column do not notice it."""
SLIGHT: Final = 2.0**-36
"""What a scaled term below that loses at most."""
TINY: Final = 2.0**-80
"""Sums of products from here on, the other factor scaled, do not notice what float32 is too short for."""
UNDERFLOW: Final = 60
"""The greatest power of two of a factor of which products, taken back, are float32s in any case."""
