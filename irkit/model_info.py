"""Facts about a model that its IR does not state; imports no xDSL, so that saved programs load fast."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class ModelInfo:
    """Facts about a model that its IR does not state.

    `methods` maps a scikit-learn method ("predict", "predict_proba", "decision_function",
    "transform") to the output it returns. `classes` are the labels that a "predict" output indexes.
    `casts` names dtypes that the source library itself converts on entry ("float64" for a
    scikit-learn forest, whose program takes float32); any other dtype is an error.
    `allow_nan` and `allow_infinity`: whether the source library accepts them. `largest`: a magnitude up
    to which no step of the model overflows (the source library refuses what does); None if there is none.
    """

    kind: Literal["classifier", "regressor", "transformer", "network"]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    methods: Mapping[str, str] = field(default_factory=dict[str, str])
    classes: tuple[Any, ...] | None = None
    casts: tuple[str, ...] = ()
    allow_nan: bool = True
    allow_infinity: bool = True
    largest: float | None = None
    source: str = ""

    def to_json(self) -> str:
        """One line of JSON, stored in the module."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> ModelInfo:
        """Inverse of `to_json`."""
        fields = json.loads(text)
        for name in ("inputs", "outputs", "classes", "casts"):
            fields[name] = tuple(fields[name]) if fields[name] is not None else None
        return ModelInfo(**fields)
