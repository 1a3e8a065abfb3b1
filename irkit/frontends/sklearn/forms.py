"""Whether scikit-learn has a value as a sparse matrix."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum


class Form(Enum):
    """What scikit-learn has in place of a value: `ZERO_FREE` is sparse and stores no 0, `UNCLEAR` may."""

    DENSE = 0
    ZERO_FREE = 1
    UNCLEAR = 2


def side_by_side(forms: Sequence[Form]) -> Form:
    """What SciPy makes of values beside each other: zeros of dense ones are not stored."""
    if all(form is Form.DENSE for form in forms):
        return Form.DENSE
    return Form.UNCLEAR if Form.UNCLEAR in forms else Form.ZERO_FREE
