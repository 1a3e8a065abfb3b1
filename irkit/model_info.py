"""Facts about a model that its IR does not state; imports no xDSL, so that saved programs load fast."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, cast

from irkit.errors import InvalidModelError
from irkit.plain_json import parsed


@dataclass(frozen=True)
class Limits:
    """What a model accepts of its input's columns: numbers from `low` to `high`, and NaN where `nan` is true.

    Each has an element for every column, or one for all. `message`: why a row with anything else is refused.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    nan: tuple[bool, ...]
    message: str


DOCUMENTS = -1
"""The column of documents of a model whose rows are documents."""
BY_ORDER = -1
Categories = tuple[int, tuple[str | int | float, ...]]
"""Where a column of categories stands (BY_ORDER: anywhere, in the order of the others), and its categories by
their numbers."""

Semantic = tuple[Literal["number", "truth", "category", "index"], int, tuple[str, ...]]
"""What a column that is picked by its name holds; of a category how many there are, and their words by their
numbers."""

StringStep = tuple[str, str, str, Mapping[str, Any]]
"""Kind, what it reads, what it makes, and how."""


def is_pandas_na(value: Any) -> bool:
    """Whether `value` is pandas' NA; pandas need not be there."""
    return type(value).__name__ == "NAType"


@dataclass(frozen=True)
class ModelInfo:
    """Facts about a model that its IR does not state.

    `methods` maps a scikit-learn method ("predict", "predict_proba", "predict_log_proba",
    "decision_function", "score_samples", "transform") to the output it returns; of a classifier of
    several outputs, to a tuple of them. `classes` are the labels that a "predict" output indexes (a tuple
    for each of several outputs), `label_dtype` is NumPy's name for their dtype.
    Where "predict_log_proba" names the outputs of "predict_proba", the host takes their logarithms.
    `casts` names dtypes that the source library itself converts on entry ("float64" for a
    scikit-learn forest, whose program takes float32), and integers too, at once; any other dtype is an error.
    `own_types` names dtypes that the library computes in and the program does not: they are refused.
    `allow_nan` and `allow_infinity`: whether the source library accepts them;
    `allow_empty`: whether it answers for no rows. `largest`: a magnitude up
    to which no step of the model overflows (the source library refuses what does); None if there is none.
    `checks`: outputs that are 0 in rows which the source library refuses, with the reason.
    `limits`: what the host refuses of the columns of the one input, in place of checks that the program had.
    `columns`: names of the columns of a data frame, if the model was fitted on one. `by_name`: the model
    picks them by name, in any order, and never looks at those that are `unused`; else they must be the same.
    `names_as_text`: columns whose names are no strings go by what `str` makes of these.
    `frames_only`: it names them by strings, so that the library takes no rows that are no frame.
    `unread`: places of columns of rows that are no frame which it never looks at.
    `types_apart`: it computes some columns of a data frame in other types than that of all of them; `types`:
    NumPy's names of those that the columns have of which this is the program, as float64; empty for one type.
    `words`: numbers of columns of strings, each with the strings (and None) that the program tells apart:
    it sees their places there, -1 for any other, NaN for NaN. `na_words`: those of them in which pandas' NA
    is taken for NaN, as scikit-learn does where `missing_values` is that.
    `semantics`: what each of `columns` holds, of a model that takes a mapping from their names to columns
    too, and numbers of categories in rows that are neither that nor a frame; empty for any other.
    `hashed`: numbers of columns of strings or integers, of which the program sees CatBoost's hashes.
    `categories`: what columns of categories of a data frame become numbers by; None where they are what they
    hold.
    `absent`: what an element is that a sparse row does not have, "zero" or "nan" (missing); empty if the
    model takes no sparse rows, `dense_only` being why. `sparse_nan`: whether sparse rows may have NaN;
    `sparse_zeros`: whether they may store a 0, or an element in parts; `sparse_order`: whether the columns of
    what a row stores must be in order.
    `stored`: of a program of rows of a CSR matrix, how many columns they have: its inputs are those of
    `irkit/dialects/csr_base.py`; 0 for any other. `stored_once`: elements that are stored twice are added up
    before it sees them. `stored_dense`: it makes dense rows of them, some at a time.
    `integers`: what becomes of arrays of integers first: "float32", they are rounded to that (LightGBM's own
    copy), or "narrow", float32 must hold them, as only parts of the model round them. Empty if nothing does.
    `text`: how documents are counted, where the input is some (`irkit.runtime.documents`); else None.
    `texts`: columns of documents, or DOCUMENTS, each with how they are counted: the counts stand behind the
    model's own columns, in this order.
    `vocabulary`: the strings of an ONNX model, by the numbers that its program has for them; `string_inputs`,
    `string_outputs`: what is strings to the caller. `narrow`: inputs and outputs whose bytes are integers of
    2 or 4 bits to the caller, and of which type ("int4"). `maps`: outputs that are a map a row to the caller,
    and the labels of their columns. `string_steps`: what the host makes of strings first, in order: which
    kind of step (`irkit/runtime/string_steps.py`), what it reads, what it makes, and how. `caller_inputs`:
    what the caller gives, in order, where the program reads what such steps make; empty if it is `inputs`.
    `indexed`: inputs that are indices, and the smallest extent of what they index: -1 is its last element.
    `input_batch`, `output_batch`: where the batch stands in what the caller sees of each, if that is not the
    program's leading dimension: the fields of a `BatchPlace`. Empty if it is so of all.
    """

    kind: Literal["classifier", "regressor", "transformer", "outlier", "clusterer", "network"]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    methods: Mapping[str, str | tuple[str, ...]] = field(
        default_factory=dict[str, str | tuple[str, ...]]
    )
    classes: tuple[Any, ...] | None = None
    casts: tuple[str, ...] = ()
    own_types: tuple[str, ...] = ()
    allow_nan: bool = True
    allow_infinity: bool = True
    allow_empty: bool = False
    largest: float | None = None
    source: str = ""
    label_dtype: str = ""
    checks: Mapping[str, str] = field(default_factory=dict[str, str])
    limits: tuple[Limits, ...] = ()
    columns: tuple[str, ...] | None = None
    by_name: bool = False
    unused: tuple[str, ...] = ()
    names_as_text: bool = False
    frames_only: bool = False
    unread: tuple[int, ...] = ()
    types_apart: bool = False
    types: tuple[str, ...] = ()
    words: tuple[tuple[int, tuple[str | None, ...]], ...] = ()
    na_words: tuple[int, ...] = ()
    semantics: tuple[Semantic, ...] = ()
    hashed: tuple[int, ...] = ()
    categories: tuple[Categories, ...] | None = None
    absent: Literal["", "zero", "nan"] = ""
    dense_only: str = ""
    sparse_nan: bool = True
    sparse_zeros: bool = True
    sparse_order: bool = False
    stored: int = 0
    stored_once: bool = False
    stored_dense: bool = False
    integers: Literal["", "float32", "narrow"] = ""
    text: Mapping[str, Any] | None = None
    texts: tuple[tuple[int, Mapping[str, Any]], ...] = ()
    vocabulary: tuple[str, ...] = ()
    string_inputs: tuple[str, ...] = ()
    string_outputs: tuple[str, ...] = ()
    narrow: Mapping[str, str] = field(default_factory=dict[str, str])
    maps: Mapping[str, tuple[Any, ...]] = field(default_factory=dict[str, tuple[Any, ...]])
    string_steps: tuple[StringStep, ...] = ()
    caller_inputs: tuple[str, ...] = ()
    indexed: Mapping[str, int] = field(default_factory=dict[str, int])
    input_batch: tuple[tuple[int, int, int] | None, ...] = ()
    output_batch: tuple[tuple[int, int, int] | None, ...] = ()

    @property
    def counts_documents(self) -> bool:
        """Whether rows of its program are counts that the host makes of documents."""
        return self.text is not None or bool(self.texts)

    @property
    def reads_objects(self) -> bool:
        """Whether columns of its rows may be strings, of which the host makes numbers."""
        return bool(self.words or self.hashed) or self.counts_documents

    @property
    def takes_strings(self) -> bool:
        """Whether its rows may be objects: such columns, or categories by their names."""
        return self.reads_objects or any(kind == "category" for kind, _, _ in self.semantics)

    @property
    def is_translated(self) -> bool:
        """Whether arrays of its caller are none of its program's: strings, maps, integers of 2 or 4 bits."""
        strings = self.string_inputs or self.string_outputs or self.string_steps
        return bool(strings or self.maps or self.narrow)

    def to_json(self) -> str:
        """One line of JSON, stored in the module."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> ModelInfo:
        """Inverse of `to_json`. Raises InvalidModelError for other text."""
        try:
            return _info_of(parsed(text))
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise InvalidModelError(
                f"'irkit.model' has not what is known of a model: {error}"
            ) from None


def _info_of(fields: dict[str, Any]) -> ModelInfo:
    for name in ("input_batch", "output_batch"):
        fields[name] = tuple(None if p is None else tuple(p) for p in fields.get(name, ()))
    for name in (
        "inputs",
        "outputs",
        "classes",
        "casts",
        "own_types",
        "columns",
        "unused",
        "unread",
        "na_words",
        "hashed",
        "types",
    ):
        if fields.get(name) is not None:
            fields[name] = tuple(map(_hashable, fields[name]))
    fields["limits"] = tuple(
        Limits(tuple(f["low"]), tuple(f["high"]), tuple(f["nan"]), f["message"])
        for f in fields.get("limits", ())
    )
    fields["words"] = tuple((c, tuple(words)) for c, words in fields.get("words", ()))
    fields["semantics"] = tuple(
        (kind, count, tuple(words)) for kind, count, words in fields.get("semantics", ())
    )
    fields["texts"] = tuple((c, facts) for c, facts in fields.get("texts", ()))
    if (categories := fields.get("categories")) is not None:
        fields["categories"] = tuple((place, tuple(values)) for place, values in categories)
    for name in ("vocabulary", "string_inputs", "string_outputs", "caller_inputs"):
        fields[name] = tuple(fields.get(name, ()))
    fields["string_steps"] = tuple(tuple(step) for step in fields.get("string_steps", ()))
    fields["maps"] = {output: tuple(labels) for output, labels in fields.get("maps", {}).items()}
    fields["methods"] = {m: _hashable(o) for m, o in fields["methods"].items()}
    return ModelInfo(**fields)


def _hashable(value: Any) -> Any:
    """JSON has lists where there were tuples."""
    return tuple(cast(list[Any], value)) if isinstance(value, list) else value
