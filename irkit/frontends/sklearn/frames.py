"""Data frames: whose names of columns count, and columns of categories that boosters number themselves.

What hands frames on to its members as they come (`HANDED_ON`) looks at neither: its members do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from irkit.frontends import lightgbm, xgboost
from irkit.frontends.sklearn.boosters import LIGHTGBM, XGBOOST
from irkit.frontends.sklearn.composition import (
    COMPOSITIONS,
    HANDED_ON,
    estimators_within,
    members,
    pipeline_steps,
)
from irkit.frontends.sklearn.importer import kind_of
from irkit.model_info import BY_ORDER, Categories

Steps = Sequence[tuple[str, Any]]


def reads_apart(steps: Steps) -> bool:
    """Whether steps one after another compute columns of a frame in other types than that of all of it."""
    for _, step in steps:
        match kind_of(step):
            case "FunctionTransformer" if step.func is None and not step.validate:
                continue
            case "FunctionTransformer":
                return not step.validate
            case "FeatureUnion":
                parts = members(step, fitted=True)
            case kind if kind in HANDED_ON:
                parts = estimators_within(step)
            case kind:
                return kind == "ColumnTransformer"
        return any(reads_apart(pipeline_steps(part)) for _, part in parts)
    return False


class _Reader(NamedTuple):
    """A step that reads columns; `whole`: those of the frame that the model is given, all and as they come.
    `categories`: by which it numbers columns itself."""

    name: str
    step: Any
    whole: bool
    categories: tuple[Categories, ...]


def names_of(step: Any) -> Any:
    """Names of the columns that a first step was fitted on, None where nothing looks at them: LightGBM goes
    by places, and the names that it keeps are not even those of the frame."""
    if kind_of(step) in LIGHTGBM:
        return None
    if kind_of(step) not in HANDED_ON:
        return getattr(step, "feature_names_in_", None)
    first = (pipeline_steps(e)[:1] for name, e in estimators_within(step) if name != _FINAL)
    return next((n for steps in first for _, s in steps if (n := names_of(s)) is not None), None)


def categories_of(steps: Steps) -> tuple[Categories, ...] | None:
    """By what columns of categories become numbers, of a model that has no `why_no_categories`; None where no
    part of it numbers any."""
    found = [r.categories for r in _readers(steps, True) if r.categories]
    # XGBoost looks at places and types too.
    return next((each for each in found if each[0][0] != BY_ORDER), found[0]) if found else None


def why_no_categories(steps: Steps) -> list[str]:
    """Reasons why what numbers columns of categories would see others than it was trained on."""
    readers = list(_readers(steps, True))
    coded = [r for r in readers if r.categories]
    if not coded:
        return []
    first = _values(coded[0].categories)
    reasons = [
        f"step '{r.name}': {kind_of(r.step)} with categories of a data frame, behind other steps (train on "
        "their codes)"
        for r in coded
        if not r.whole
    ]
    reasons += [
        f"step '{r.name}': {kind_of(r.step)} with other categories than '{coded[0].name}'"
        for r in coded
        if _values(r.categories) != first
    ]
    reasons += [
        f"step '{r.name}': {kind_of(r.step)} beside what numbers categories of a data frame itself (train on "
        "their codes)"
        for r in readers
        if r.whole and not r.categories
    ]
    return list(dict.fromkeys(reasons))


_FINAL = "final_estimator_"


def _readers(steps: Steps, whole: bool, around: str = "") -> Iterator[_Reader]:
    """All that read columns in steps one after another, which read those of the frame or not."""
    for number, (own, step) in enumerate(steps):
        name = f"{around}: {own}" if around else own
        alone = whole and len(steps) == 1
        inside = _within(step, name, alone)
        if not any(each_whole for _, _, each_whole in inside):
            yield _Reader(name, step, whole and number == 0, _own(step))
        for inner, estimator, each_whole in inside:
            yield from _readers(pipeline_steps(estimator), each_whole, inner)


def _within(step: Any, name: str, whole: bool) -> list[tuple[str, Any, bool]]:
    """Name of each estimator within a step, it, and whether it is handed the frame."""
    if kind_of(step) in COMPOSITIONS:
        return [(f"{name}: {n}", part, False) for n, part in members(step, fitted=True)]
    hands = whole and kind_of(step) in HANDED_ON and not getattr(step, "passthrough", False)
    return [(f"{name}: {n}", e, hands and n != _FINAL) for n, e in estimators_within(step)]


def _own(step: Any) -> tuple[Categories, ...]:
    if kind_of(step) in LIGHTGBM:
        return tuple((BY_ORDER, values) for values in lightgbm.text_of(step).categories)
    return xgboost.json_of(step).categories if kind_of(step) in XGBOOST else ()


def _values(categories: tuple[Categories, ...]) -> list[Any]:
    return [values for _, values in categories]
