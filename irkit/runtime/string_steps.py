"""Steps from strings to strings that a model begins with: the host takes them, before strings are numbers.

StringNormalizer is ONNX Runtime's where the specification leaves a meaning open: a stop word is a whole
string, accents stay, and a letter whose other case is several letters stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

import numpy as np

from irkit.errors import InvalidInputError
from irkit.weights import Array

Case = Callable[[str], str]
_TURKIC = {"UPPER": {"i": "İ", "ı": "I"}, "LOWER": {"I": "ı", "İ": "i"}}
"""Letters whose other case is another one in Turkish and Azerbaijani."""


def string_step(kind: str, facts: Mapping[str, Any]) -> Callable[[Array], Array]:
    """What a step of `ModelInfo.string_steps` does to an array of strings (dtype object); thread-safe.

    "reshape": to `shape`, in which -1 is what is left. "normalise": StringNormalizer of `case`, `sensitive`,
    `stopwords` and `letters`. The step raises InvalidInputError for a shape that it cannot take.
    """
    if kind == "reshape":
        return partial(_reshaped, tuple(facts["shape"]))
    return _Normalizer(facts)


def _reshaped(shape: tuple[int, ...], strings: Array) -> Array:
    try:
        return strings.reshape(shape)
    except ValueError:
        raise InvalidInputError(
            f"strings of shape {strings.shape}, which the model makes {shape} of"
        ) from None


class _Normalizer:
    """Drops stop words and changes the case of what is left."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        action, letters = facts["case"], facts["letters"]
        self._change = _case(action, letters)
        # What is compared without case is compared in the case that is asked for, else in lower case.
        compared = action if action != "NONE" else "LOWER"
        self._key = _case("NONE" if facts["sensitive"] else compared, letters)
        self._stopwords = frozenset(map(self._key, facts["stopwords"]))

    def __call__(self, strings: Array) -> Array:
        """Strings, C or 1×C, as 1×what is kept or what is kept: one empty string if nothing is."""
        shape = strings.shape
        if strings.ndim not in (1, 2) or shape[:-1] not in ((), (1,)) or not strings.size:
            raise InvalidInputError(
                f"StringNormalizer reads C or 1xC strings, C of at least 1, got shape {shape}"
            )
        kept: list[str] = strings.reshape(-1).tolist()
        if self._stopwords:
            kept = [s for s in kept if self._key(s) not in self._stopwords] or [""]
        made = np.empty(len(kept), object)
        made[:] = [self._change(s) for s in kept]
        return made.reshape(*shape[:-1], -1)


def _case(action: str, letters: str) -> Case:
    """`action`: UPPER, LOWER, or NONE; `letters`: "all", "turkic", or "ascii", which leaves others alone."""
    if action == "NONE":
        return _same
    return partial(_changed, action == "UPPER", letters)


def _same(text: str) -> str:
    return text


def _changed(upper: bool, letters: str, text: str) -> str:
    if text.isascii() and letters != "turkic":
        return text.upper() if upper else text.lower()
    return "".join([_letter(c, upper, letters) for c in text])


@lru_cache(maxsize=1 << 14)
def _letter(letter: str, upper: bool, letters: str) -> str:
    """Unicode's simple mapping of a letter, which Python has only where it is the full one or a title's."""
    if letters == "ascii" and not letter.isascii():
        return letter
    if letters == "turkic" and (other := _TURKIC["UPPER" if upper else "LOWER"].get(letter)):
        return other
    found = (letter.upper(), letter.title()) if upper else (letter.lower(), letter.lower()[:1])
    return next((f for f in found if len(f) == 1), letter)
