"""StringNormalizer and TfIdfVectorizer against ONNX Runtime and ONNX's reference; words that are moved."""

# pyright: basic, reportArgumentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

pytest.importorskip("onnxruntime")

import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import irkit
from irkit.errors import InvalidInputError, InvalidModelError, UnsupportedError
from irkit.frontends.onnx import import_onnx
from irkit.runtime.program import CompiledProgram
from irkit.runtime.string_steps import string_step
from tests.conformance.interpreted import Interpreted

STRING, INT64 = TensorProto.STRING, TensorProto.INT64
UTF8 = "C.UTF-8"
"""A locale that every machine has."""
WORDS = ["monday", "Monday", "TUESDAY", "Straße", "éÉ", "", "a monday b", "Σας", "i", "I", "x y"]


def normalised(source="x", result="y", **attributes):
    return helper.make_node(
        "StringNormalizer", [source], [result], **({"locale": UTF8} | attributes)
    )


def model(nodes, outputs="y", constants=(), **inputs):
    """Of inputs that are strings, but for those that are given with another type."""
    declared = [
        helper.make_tensor_value_info(n, *(t if isinstance(t, tuple) else (STRING, t)))
        for n, t in inputs.items()
    ]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs.split()]
    weights = [numpy_helper.from_array(array, name) for name, array in constants]
    graph = helper.make_graph(nodes, "g", declared, results, weights)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def judged(proto, *inputs):
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    names = (v.name for v in session.get_inputs())
    return session.run(None, dict(zip(names, inputs, strict=True)))


def interpreted(proto, batch=None):
    return CompiledProgram({"float32": Interpreted(import_onnx(proto, batch=batch))})


def agree(found, wanted):
    for got, want in zip(found, wanted, strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_array_equal(got, want)


def check(proto, *inputs, batch=None):
    agree(interpreted(proto, batch).run(inputs), judged(proto, *inputs))


def texts(*words):
    return np.array(words, object)


# StringNormalizer


@pytest.mark.parametrize("case", ["NONE", "LOWER", "UPPER"])
@pytest.mark.parametrize("sensitive", [0, 1])
@pytest.mark.parametrize("stopwords", [[], ["Monday", "I"], ["STRASSE", "straße", "ÉÉ", "σας", ""]])
def test_words_are_normalised(case, sensitive, stopwords):
    given = {"stopwords": stopwords} if stopwords else {}
    made = normalised(case_change_action=case, is_case_sensitive=sensitive, **given)
    check(model([made], x=["n"]), texts(*WORDS))
    check(model([made], x=[1, "n"]), texts(*WORDS)[None])
    check(model([made], x=[1, len(WORDS)]), texts(*WORDS)[None])


def test_nothing_is_left():
    made = normalised(stopwords=["a", "b"])
    check(model([made], x=["n"]), texts("A", "b"))
    check(model([made], x=[1, "n"]), texts("A", "b")[None])


@pytest.mark.parametrize("action", ["LOWER", "UPPER"])
@pytest.mark.parametrize("locale", ["C", UTF8])
def test_every_letter(action, locale):
    """ONNX Runtime has its letters of the C library, of a Unicode of its own."""
    letters = [chr(c) for c in range(1, 0x3000) if not 0xD800 <= c < 0xE000]
    made = normalised(case_change_action=action, locale=locale)
    check(model([made], x=["n"]), texts(*letters))


def test_turkish_letters():
    facts = {"sensitive": False, "stopwords": ["SIĞ"], "letters": "turkic"}
    upper = string_step("normalise", {**facts, "case": "UPPER"})
    assert upper(texts("iı", "sığ", "sig")).tolist() == ["İI", "SİG"]
    lower = string_step("normalise", {**facts, "case": "LOWER"})
    assert lower(texts("İI", "SIĞ", "sığ")).tolist() == ["iı"]
    for locale, letters in (
        ("tr_TR.UTF-8", "turkic"),
        ("az", "turkic"),
        ("en_US", "all"),
        ("C", "ascii"),
    ):
        info = import_onnx(model([normalised(locale=locale)], x=["n"])).info
        assert info.string_steps[0][3]["letters"] == letters


def test_onnx_reference_agrees_where_a_stop_word_is_a_string():
    """Its own stop words are words within strings, and it drops accents."""
    rng = np.random.default_rng(3)
    for _ in range(40):
        stopwords = rng.choice(["mon", "TUE", "wed"], 2).tolist()
        at = {
            "case_change_action": str(rng.choice(["LOWER", "UPPER"])),
            "is_case_sensitive": int(rng.integers(2)),
            "stopwords": stopwords,
        }
        x = texts(*rng.choice(["mon", "Mon", "TUE", "tue", "wed", "thu"], 7), "thu")
        proto = model([normalised(**at)], x=["n"])
        (want,) = ReferenceEvaluator(proto).run(None, {"x": x})
        (got,) = interpreted(proto).run([x])
        assert got.tolist() == want.tolist()
        check(proto, x)


def chain(rng):
    """Normalisers with moves before, between and after them, an input beside that is read as it is."""
    nodes, last = [], "x"
    for number in range(rng.integers(1, 4)):
        kind = rng.choice(["Identity", "Reshape", "Unsqueeze", "Flatten"])
        constant = {"Reshape": ["shape"], "Unsqueeze": ["axis"]}.get(kind, [])
        given = {"axis": 0} if kind == "Flatten" else {}
        nodes += [
            helper.make_node(kind, [last, *constant], [f"m{number}"], **given),
            helper.make_node("Reshape", [f"m{number}", "flat"], [f"f{number}"]),
        ]
        at = {
            "case_change_action": str(rng.choice(["LOWER", "UPPER", "NONE"])),
            "is_case_sensitive": int(rng.integers(2)),
        }
        if rng.integers(2):
            at["stopwords"] = rng.choice(WORDS, rng.integers(1, 4)).tolist()
        nodes.append(normalised(f"f{number}", f"n{number}", **at))
        last = f"n{number}"
    nodes += [
        helper.make_node("Unsqueeze", [last, "axis"], ["wide"]),
        helper.make_node(
            "LabelEncoder", [last], ["y"], domain="ai.onnx.ml", keys_strings=["monday", "I", "x y"],
            values_strings=["first", "me", "both"], default_string="other",
        ),
    ]  # fmt: skip
    constants = [(n, np.array(v)) for n, v in (("shape", [1, -1]), ("flat", [-1]), ("axis", [0]))]
    return model(nodes, f"{last} wide y", constants, x=["n"])


def test_random_chains():
    rng = np.random.default_rng(11)
    for _ in range(40):
        check(chain(rng), texts(*rng.choice(WORDS, rng.integers(1, 9))))


def test_an_input_that_is_read_as_it_is_too():
    nodes = [
        normalised(result="u", case_change_action="UPPER"),
        helper.make_node("Concat", ["u", "x"], ["y"], axis=0),
        helper.make_node("Identity", ["x"], ["z"]),
    ]
    check(model(nodes, "y z u", x=[3]), texts("a", "B", "ü"))


def test_words_of_an_input_are_outputs():
    """Of two inputs, which share words that the model does not name."""
    nodes = [
        helper.make_node("Concat", ["a", "b"], ["both"], axis=1),
        helper.make_node("Gather", ["both", "which"], ["y"], axis=1),
        helper.make_node(
            "LabelEncoder", ["both"], ["z"], domain="ai.onnx.ml", keys_strings=["red"],
            values_int64s=[5], default_int64=-7,
        ),
    ]  # fmt: skip
    proto = model(nodes, "y z", [("which", np.array([1, 0, 1]))], a=["n", 1], b=["n", 1])
    check(proto, texts("red", "blue", "?")[:, None], texts("?", "blue", "red")[:, None])


# TfIdfVectorizer


def grams(rng, words, most):
    """A pool of n-grams of up to `most` words: it, and where those of each length begin."""
    pool, starts, count = [], [], 0
    for length in range(1, most + 1):
        starts.append(len(pool))
        for row in sorted({tuple(rng.choice(words, length)) for _ in range(rng.integers(0, 5))}):
            pool += row
            count += 1
    return pool, starts, count


def vectorizer(rng, words, source="x"):
    most = int(rng.integers(1, 4))
    pool, starts, count = grams(rng, words, most)
    if not pool:
        pool, starts, count = [words[0]], [0], 1
    kind = "pool_strings" if isinstance(words[0], str) else "pool_int64s"
    at = {
        "mode": str(rng.choice(["TF", "IDF", "TFIDF"])),
        "min_gram_length": int(rng.integers(1, most + 1)), "max_gram_length": most,
        "max_skip_count": int(rng.integers(0, 3)), "ngram_counts": starts,
        "ngram_indexes": rng.permutation(count + 2)[:count].tolist(),
        kind: [p if isinstance(p, str) else int(p) for p in pool],
    }  # fmt: skip
    if len(starts) < most:
        at["max_gram_length"] = len(starts)
        at["min_gram_length"] = 1
    if rng.integers(2) or at["mode"] != "TF":
        at["weights"] = rng.uniform(0.1, 3, count).astype(np.float32).tolist()
    return helper.make_node("TfIdfVectorizer", [source], ["y"], **at)


def test_random_counts_of_integers():
    rng = np.random.default_rng(5)
    for _ in range(60):
        made, columns = vectorizer(rng, [1, 2, 3, 4]), int(rng.integers(1, 9))
        rows = rng.integers(0, 6, (4, columns))
        check(model([made], x=(INT64, ["n", columns])), rows)
        check(model([made], x=(INT64, [columns])), rows[0])
        short = rows.astype(np.int32)
        check(model([made], x=(TensorProto.INT32, ["n", columns])), short)


def test_random_counts_of_normalised_words():
    rng = np.random.default_rng(7)
    for _ in range(40):
        at = {"stopwords": ["the"]} if rng.integers(2) else {}
        nodes = [
            normalised(result="z", case_change_action="LOWER", **at),
            vectorizer(rng, ["a", "b", "c"], "z"),
        ]
        x = texts(*rng.choice(["a", "B", "c", "The", "zz"], rng.integers(1, 9)), "A")
        kept = len([w for w in x if not at or w != "The"])
        check(model(nodes, x=["n"]), x, batch=kept)


def test_several_ngrams_of_one_place():
    at = {
        "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 1, "ngram_counts": [0, 3],
        "ngram_indexes": [0, 0, 1, 1, 0], "pool_int64s": [1, 2, 3, 1, 2, 2, 2],
    }  # fmt: skip
    x = np.array([[1, 2, 2, 1, 2, 3, 1, 1]])
    for mode in ("TF", "IDF", "TFIDF"):
        made = helper.make_node("TfIdfVectorizer", ["x"], ["y"], mode=mode, **at)
        check(model([made], x=(INT64, ["n", 8])), x)


# Programs


def counted():
    at = {
        "mode": "TFIDF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0,
        "ngram_counts": [0, 2], "ngram_indexes": [2, 0, 1], "weights": [0.5, 2.0, 3.0],
        "pool_strings": ["good", "bad", "not", "good"],
    }  # fmt: skip
    nodes = [
        normalised(result="z", case_change_action="LOWER", stopwords=["The"]),
        helper.make_node("TfIdfVectorizer", ["z"], ["y"], **at),
    ]
    return model(nodes, "y z", x=["n"])


def test_programs_of_each_number_of_words(compiled):
    proto = counted()
    program = compiled(proto, mode="serial")
    for x in (texts("the", "GOOD", "not"), texts("Not", "good", "THE", "bad"), texts("?", "bad")):
        agree(program.run([x]), judged(proto, x))
    with pytest.raises(InvalidInputError, match="1xC strings, C of at least 1"):
        program.run([texts()])
    with pytest.raises(InvalidInputError, match="expected strings, got float among them"):
        program.run([texts("a", float("nan"))])


def test_a_saved_program_in_several_threads(compiled, tmp_path):
    """Numbers of words that the model does not name are a call's own."""
    proto = model([normalised(case_change_action="UPPER", stopwords=["the"])], x=["n"])
    compiled(proto, mode="serial").save(tmp_path / "p")
    program, wrong = irkit.load(tmp_path / "p"), []

    def calls(number):
        for turn in range(60):
            words = [f"w{number}", "the", f"w{turn}x{number}"]
            (found,) = program.run([texts(*words)])
            if found.tolist() != [words[0].upper(), words[2].upper()]:
                wrong.append(found)

    every = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=calls, args=(n,)) for n in range(4)]
    try:
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(every)
    assert not wrong


# Refusals

LABELS = helper.make_node(
    "LabelEncoder", ["x"], ["z"], domain="ai.onnx.ml", keys_strings=["a"], values_strings=["b"]
)


@pytest.mark.parametrize(
    ("nodes", "shape", "words"),
    [
        ([LABELS, normalised("z")], ["n"], "only the host normalises strings"),
        ([normalised()], [2, 3], r"\[C\] or \[1,C\]"),
        ([normalised()], ["n", 2, 3], r"\[C\] or \[1,C\]"),
        ([normalised(case_change_action="Upper")], ["n"], "expected NONE, LOWER, UPPER"),
        ([normalised(locale="Klingon")], ["n"], "expected a name like en_US"),
        ([normalised(locale="ru_RU.KOI8-R")], ["n"], "only UTF-8"),
        ([normalised(result="z"), helper.make_node("Cast", ["z"], ["y"], to=1)], ["n"], "Cast"),
    ],
)
def test_what_is_no_step_of_the_host(nodes, shape, words):
    with pytest.raises((UnsupportedError, InvalidModelError), match=words):
        import_onnx(model(nodes, x=shape))


def test_rows_of_words():
    program = interpreted(model([normalised()], x=["n", 2]))
    assert program.run([texts("a", "b")[None]])[0].tolist() == [["a", "b"]]
    with pytest.raises(InvalidInputError, match=r"got shape \(2, 2\)"):
        program.run([np.array([["a", "b"], ["c", "d"]], object)])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"pool_strings": ["a"], "pool_int64s": None}, "strings or integers"),
        ({"pool_int64s": [1, 1, 2]}, "an n-gram twice"),
        ({"ngram_indexes": [0]}, "expected one for each of 3"),
        ({"ngram_indexes": [0, 0, 1], "weights": [1.0, 2.0, 3.0], "mode": "IDF"}, "have several"),
        ({"mode": "tf"}, "expected TF, IDF, TFIDF"),
        ({"ngram_counts": [1]}, "begin in the pool"),
        ({"ngram_counts": [0, 0], "max_gram_length": 2}, "are no 2-grams"),
        ({"min_gram_length": 2}, "no sense together"),
    ],
)
def test_ngrams_that_make_no_sense(changed, words):
    at = {
        "mode": "TF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0,
        "ngram_counts": [0], "ngram_indexes": [0, 1, 2], "pool_int64s": [1, 2, 3],
    }  # fmt: skip
    given = {k: v for k, v in (at | changed).items() if v is not None}
    made = helper.make_node("TfIdfVectorizer", ["x"], ["y"], **given)
    with pytest.raises((UnsupportedError, InvalidModelError), match=words):
        import_onnx(model([made], x=(INT64, ["n", 4])))
