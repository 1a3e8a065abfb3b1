"""Arguments that are True or False."""

from __future__ import annotations

import numpy as np

from irkit.errors import UnsupportedError


def check_flags(where: str, **flags: object) -> None:
    """Raises UnsupportedError for what is neither True nor False: a text such as "no" would count as True."""
    for name, value in flags.items():
        if not isinstance(value, bool | np.bool_):
            raise UnsupportedError(f"{where}: {name}={value!r}: expected True or False")
