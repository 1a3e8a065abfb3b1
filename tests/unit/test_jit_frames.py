"""Frames and series of pandas in compiled functions: results are pandas's, whoever computes them."""

# pyright: basic

from __future__ import annotations

import operator
import warnings

import host_functions
import numpy as np
import pytest
from jitted import interpreted

import irkit
from irkit.annotations import frame_calls
from irkit.errors import UnsupportedError

pd = pytest.importorskip("pandas", "3")

RNG = np.random.default_rng(7)
N = 400


def same(got, want, rtol=1e-12):
    """Types, labels, dtypes and values of two structures."""
    if isinstance(want, tuple):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            same(g, w, rtol)
    elif isinstance(want, pd.DataFrame):
        pd.testing.assert_frame_equal(got, want, rtol=rtol, atol=0)
    elif isinstance(want, pd.Series):
        pd.testing.assert_series_equal(got, want, rtol=rtol, atol=0)
    elif isinstance(want, pd.Index):
        pd.testing.assert_index_equal(got, want)
    elif isinstance(want, np.ndarray):
        assert got.dtype == want.dtype
        if want.dtype.kind in "OUS":
            # As of texts of which all are missing.
            pd.testing.assert_series_equal(pd.Series(got), pd.Series(want))
        else:
            np.testing.assert_allclose(got, want, rtol=rtol)
    else:
        assert type(got) is type(want), (type(got), type(want))
        numbers = isinstance(want, int | float | np.number)
        assert got is want or (
            got == pytest.approx(want, rel=rtol, nan_ok=True) if numbers else got == want
        )


def check(function, *args, jit=interpreted, rtol=1e-12):
    """A function and its compiled twin, twice, on copies; what they leave of their arguments too."""
    twin = jit(function)
    for _ in range(2):
        theirs, ours = [a.copy() for a in args], [a.copy() for a in args]
        want = function(*theirs)
        same(twin(*ours), want, rtol)
        same(tuple(ours), tuple(theirs), rtol)
    return twin


def people(n=N):
    return pd.DataFrame(
        {
            "population": RNG.integers(0, 10**6, n),
            "adults": np.where(RNG.random(n) < 0.1, np.nan, RNG.random(n) * 1e6),
            "crimes": RNG.random(n).astype("f4"),
            "big": RNG.random(n) < 0.5,
            "city": pd.array(RNG.choice(np.array(["Ulm", "Bonn", None], object), n), dtype="str"),
            "zip": pd.array(RNG.choice(np.array([1, 22, None], object), n), dtype="Int64"),
        },
        index=RNG.permutation(n),
    )


# The programs of the papers


def crime_index(population, adults, robberies):
    big = population.mask(population < 500000.0, 0.0)
    index = (big + adults * 2.0 - robberies * 2000.0) / 100000.0
    index = index.mask(index > 0.02, 0.032)
    index = index.mask(index < 0.01, 0.005)
    return index.sum()


def birth_analysis(names):
    totals = names.groupby(["year", "sex"])["births"].sum()
    lesley = names[names["name"].str.startswith("Lesl")]
    table = lesley.pivot_table("births", index="year", columns="sex", aggfunc="sum")
    return totals, table.div(table.sum(axis=1), axis=0)


def movie_lens(ratings, users, movies):
    data = pd.merge(pd.merge(ratings, users), movies)
    mean = data.pivot_table("rating", index="title", columns="gender", aggfunc="mean")
    often = data.groupby("title").size()
    often = often.index[often >= 3]
    mean = mean.loc[often]
    mean["diff"] = mean["M"] - mean["F"]
    return mean.sort_values(by="diff"), data.groupby("title")["rating"].std()


def data_cleaning(requests):
    zips = requests["zip"].str.slice(0, 5)
    zips = zips.mask(zips == "00000", None)
    requests["zip"] = zips
    return zips.unique(), requests["zip"].isna().sum()


def test_the_crime_index_is_irkits_own():
    columns = [pd.Series(RNG.random(N) * scale) for scale in (1e6, 5e5, 1e3)]
    f = check(crime_index, *columns, jit=irkit.jit(target="cpu"))
    assert f.report().get("host_tasks", []) == []
    assert "rOperators, proved" in f.explain()


def test_births():
    n = N
    names = pd.DataFrame(
        {
            "year": RNG.integers(1990, 1995, n),
            "sex": RNG.choice(["F", "M"], n),
            "name": RNG.choice(["Lesley", "Leslie", "Ann", "Bob"], n),
            "births": RNG.integers(1, 1000, n),
        }
    )
    check(birth_analysis, names)


def test_movies():
    users = pd.DataFrame({"user": range(30), "gender": RNG.choice(["F", "M"], 30)})
    movies = pd.DataFrame({"movie": range(20), "title": [f"film {n}" for n in range(20)]})
    ratings = pd.DataFrame(
        {
            "user": RNG.integers(0, 30, N),
            "movie": RNG.integers(0, 20, N),
            "rating": RNG.integers(1, 6, N),
        }
    )
    f = check(movie_lens, ratings, users, movies, jit=irkit.jit(target="cpu"))
    named = {t["function"] for t in f.report()["host_tasks"]}
    assert {"pandas.merge", "pandas.groupby.size"} <= named


def test_cleaning():
    zips = RNG.choice(np.array(["00000", "12345-99", "54321", None], object), N)
    twin = interpreted(data_cleaning)
    ours, theirs = (pd.DataFrame({"zip": pd.array(zips, dtype="str")}) for _ in range(2))
    found, want = twin(ours), data_cleaning(theirs)
    assert list(found[0]) == list(want[0])
    same(found[1], want[1])
    same(ours, theirs)


# What is whose


def test_the_report_says_which_part_is_the_hosts():
    def f(frame):
        density = frame["adults"].fillna(0) / frame["population"].where(frame["population"] > 0, 1)
        return density.mean(), frame["city"].str.upper(), frame[density > 1]

    twin = check(f, people(), jit=irkit.jit(target="cpu"))
    named = [t["function"] for t in twin.report()["host_tasks"]]
    assert named == ["pandas.Series.str.upper", "pandas.DataFrame[]"]
    assert "host task: pandas.Series.str.upper at" in twin.explain()
    assert "on the host: frame['city'] (str), frame['zip'] (Int64)" in twin.explain()


def test_columns_are_not_copied():
    frame = people()
    f = irkit.jit(target="cpu")(lambda frame: frame["population"] + 1)
    seen = []
    known = f.compile(frame)._last
    run = known.runner.run
    known.runner.run = lambda buffers: (seen.extend(buffers), run(buffers))[1]
    f(frame)
    for name in ("population", "adults", "crimes", "big"):
        own = frame[name].to_numpy()
        assert any(np.shares_memory(own, b) for b in seen), name


# Bit for bit, whatever the columns


def column(kind, n):
    match kind:
        case "f8":
            return RNG.choice([0.0, -0.0, 1.0, 2.5, -3.0, np.nan, np.inf, -np.inf, 1e300], n)
        case "f4":
            return RNG.choice(np.array([0, 1, 2.5, -3, np.nan, np.inf, 7], "f4"), n)
        case "b":
            return RNG.random(n) < 0.5
        case "str":
            return pd.array(RNG.choice(np.array(["a", "bb", None], object), n), dtype="str")
        case "Int64":
            return pd.array(RNG.choice(np.array([1, 2, None], object), n), dtype="Int64")
        case "dt":
            return pd.to_datetime(RNG.integers(0, 10**9, n), unit="s")
    return RNG.integers(-4 if kind[0] == "i" else 0, 5, n).astype(kind)


KINDS = ["f8", "f4", "i8", "i4", "i1", "u1", "b", "str", "Int64", "dt"]
NUMBERS = [0, 1, -2, 2.5, True, np.float64(1.5), np.int64(2), np.float32(0.5), float("nan"), 1000]
BINARY = "add sub mul truediv floordiv mod pow and_ or_ xor eq ne lt le gt ge".split()  # noqa: SIM905
ALONE = [
    "sum",
    "mean",
    "min",
    "max",
    "count",
    "std",
    "var",
    "prod",
    "any",
    "all",
    "median",
    "nunique",
    "isna",
    "notna",
    "abs",
    "cumsum",
    "cummax",
    "rank",
    "diff",
    "shift",
    "ffill",
]


def assigned(frame, value):
    frame["z"] = value
    frame["x"] = frame.y
    return frame


def located(frame, value):
    frame.loc[frame.y == frame.y, "x"] = value
    return frame


def operations():
    for name in BINARY:
        op = getattr(operator, name)
        yield name, lambda f, op=op: op(f.x, f.y)
        for v in (*NUMBERS, "a"):
            yield f"{name} {v!r}", lambda f, op=op, v=v: op(f.x, v)
            if v != "a":
                yield f"{v!r} {name}", lambda f, op=op, v=v: op(v, f.x)
    for name in ALONE:
        yield name, lambda f, n=name: getattr(f.x, n)()
        yield f"frame {name}", lambda f, n=name: getattr(f, n)()
        yield f"groups {name}", lambda f, n=name: getattr(f.groupby("y").x, n)()
    for v in (*NUMBERS, "a"):
        yield f"where {v!r}", lambda f, v=v: f.x.where(f.x > 1, v)
        yield f"mask {v!r}", lambda f, v=v: f.x.mask(f.x > 1, v)
        yield f"fillna {v!r}", lambda f, v=v: f.x.fillna(v)
        yield f"frame fillna {v!r}", lambda f, v=v: f.fillna(v)
        yield f"frame + {v!r}", lambda f, v=v: f + v
        yield f"replace {v!r}", lambda f, v=v: f.x.replace(1, v)
        yield f"clip {v!r}", lambda f, v=v: f.x.clip(v)
        yield f"assigned {v!r}", lambda f, v=v: assigned(f, v)
        yield f"located {v!r}", lambda f, v=v: located(f, v)
    for kind in ("f8", "f4", "i8", "i4", "u1", "bool", "str", "category", "object", "Int64"):
        yield f"astype {kind}", lambda f, t=kind: f.x.astype(t)
    for entries in ({1: 2.0, 2: 3.0, -3: 1.5}, {1: 2}, {1.0: 4.0, float("nan"): 3.0}, {1: "a"}):
        yield f"map {entries}", lambda f, e=entries: f.x.map(e)
        yield f"replace {entries}", lambda f, e=entries: f.x.replace(e)
    yield from FURTHER.items()


FURTHER = {
    "neg": lambda f: -f.x,
    "invert": lambda f: ~f.x,
    "frame mask": lambda f: f.mask(f > 1, 0),
    "where other": lambda f: f.x.where(f.x > 1, f.y),
    "where": lambda f: f.x.where(f.x > 1),
    "frame + frame": lambda f: f + f,
    "limits that are turned": lambda f: f.x.clip(3, -1),
    "round": lambda f: f.round(1),
    "map function": lambda f: f.x.map(lambda v: v),
    "isin": lambda f: f.x.isin([1, 2.5]),
    "isin text": lambda f: f.x.isin([1, 2, "a"]),
    "between": lambda f: f.x.between(-1, 2),
    "filter": lambda f: (f[f.x > 1], f[f.x > 1].y.nunique()),
    "sort": lambda f: f.sort_values("y").x,
    "numpy": lambda f: (np.sqrt(f.x), np.maximum(f.x, f.y), np.add(f.x, f.y)),
    "numpy sums": lambda f: (np.sum(f.x), np.std(f.x), np.max(f.x)),
    "numpy where": lambda f: np.where(f.x > 1, f.x, 0),
    "rows": lambda f: (f.head(3), f.tail(3), f.iloc[::-2], f.x.iloc[-3:]),
    "row": lambda f: f.iloc[0],
    "other labels": lambda f: f.x + f.x.iloc[::-1],
    "columns": lambda f: (f.drop(columns="x"), f.rename(columns={"x": "q"}), f[["y"]], f.columns),
    "assign": lambda f: f.assign(z=f.x, w=lambda g: g.z == g.x),
    "merge": lambda f: f.merge(f.head(4), on="y", how="left"),
    "concat": lambda f: pd.concat([f, f]),
    "describe": lambda f: f.describe(),
    "labels": lambda f: f.index,
    "text": lambda f: (f.x.str.len(), f.x.str.upper(), f.x.str.contains("a")),
    "counts": lambda f: f.x.value_counts(),
    "a new frame": lambda f: pd.DataFrame({"p": f.x, "q": f.y}),
    "rows one by one": lambda f: f.apply(lambda r: r.x, axis=1),
    "aggregations": lambda f: (
        f.groupby("y").agg({"x": "max"}),
        f.groupby("y").agg(m=("x", "max")),
    ),
}
OPERATIONS = list(operations())
LABELS = (
    lambda n: None,
    lambda n: RNG.permutation(n),
    lambda n: list("abcdefghijklmnopqrst"[:n]),
    lambda n: np.zeros(n, int),
)


@pytest.mark.parametrize("kinds", ["i8 i1", "f8 i8", "f8 f4"])
def test_how_many_there_are_in_each_column(kinds):
    """Of integers all, which the trace knows."""
    frame = pd.DataFrame({c: column(k, 6) for c, k in zip("xy", kinds.split(), strict=True)})
    same(interpreted(lambda f: f.count())(frame.copy()), frame.count(), 0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted({n.split()[0] for n, _ in OPERATIONS}))
def test_random_frames(name):
    own = [(n, f) for n, f in OPERATIONS if n.split()[0] == name]
    for _ in range(12 + len(own)):
        called, function = own[RNG.integers(len(own))]
        n = int(RNG.choice([1, 2, 7, 20]))
        kinds = RNG.choice(KINDS, 2)
        parts = {c: column(k, n) for c, k in zip("xy", kinds, strict=True)}
        frame = pd.DataFrame(parts, index=LABELS[RNG.integers(4)](n))
        rtol = 1e-6 if {"f4"} & set(kinds) else 1e-12
        said = f"{called} of {kinds}, {n} rows"
        try:
            want = function(frame.copy())
        except Exception as error:
            with pytest.raises(type(error)):
                interpreted(function)(frame.copy())
            continue
        try:
            same(interpreted(function)(frame.copy()), want, rtol)
        except (AssertionError, TypeError, irkit.IrkitError) as error:
            raise AssertionError(f"{said}: {error}") from error


# Labels, effects, and arguments that are one


def test_labels_that_are_equal_are_one():
    def f(a, b):
        return a["adults"] + b["adults"]

    frame = people()
    twin = check(f, frame, frame, jit=irkit.jit(target="cpu"))
    assert "host task" not in twin.explain()
    twin = check(f, frame, frame.iloc[::-1], jit=irkit.jit(target="cpu"))
    assert "host task: pandas.add" in twin.explain()


def test_columns_of_an_argument_that_are_assigned_to():
    def f(frame):
        frame["twice"] = frame["adults"] * 2
        frame["city"] = frame["city"].str.lower()
        frame.loc[frame["population"] > 500000, "population"] = 0
        del frame["zip"]
        return frame["twice"].sum()

    check(f, people())

    def twice(a, b):
        a["new"] = b["adults"] + 1
        return b["new"].sum()

    ours = people()
    theirs = ours.copy()
    assert interpreted(twice)(ours, ours) == pytest.approx(twice(theirs, theirs))
    same(ours, theirs)


def test_an_error_changes_no_frame():
    def f(frame):
        frame["twice"] = frame["adults"] * 2
        return frame["city"].astype(float)

    frame = people()
    before = frame.copy()
    with pytest.raises(ValueError, match="convert") as error:
        interpreted(f)(frame)
    assert any("a task of the host" in n for n in error.value.__notes__)
    same(frame, before)


def test_results_share_no_memory():
    def f(frame):
        column = frame["adults"]
        return column, column.head(5), frame

    frame = people()
    whole, head, other = interpreted(f)(frame)
    whole.iloc[0] = -1
    assert head.iloc[0] != -1
    assert frame["adults"].iloc[0] != -1
    other.loc[other.index[0], "adults"] = -2
    assert frame["adults"].iloc[0] != -2


def test_assignments_through_masks():
    def f(s):
        s[s > 0] = 0
        return s

    check(f, pd.Series(RNG.normal(size=20)))
    with pytest.raises(
        UnsupportedError, match=r"test_jit_frames.py:\d+: an assignment to a series of int64"
    ):
        interpreted(lambda s: s.__setitem__(s > 0, 0.5))(pd.Series([1, 2]))


def test_frames_of_arrays_and_arrays_of_frames():
    x = RNG.random(20)
    f = check(lambda x: pd.Series(x * 2).rolling(3).mean(), x)
    assert f is not None
    check(lambda x: pd.DataFrame({"a": x, "b": x > 0.5}).groupby("b").a.max(), x)
    check(lambda f: f.to_numpy() @ np.ones(2), pd.DataFrame({"a": x, "b": x + 1}))
    check(lambda f, y: y + f["a"], pd.DataFrame({"a": x}), x)
    check(lambda f: host_functions.centred(f), pd.DataFrame({"a": x, "b": x + 1}))


def test_numbers_of_numpy_are_weak():
    # None lies so near to the mean that what is left of it is rounding.
    s = pd.Series((np.linspace(0, 1, 9) ** 2).astype("f4"))
    check(lambda s, y: (s - s.mean(), s * y.max()), s, RNG.random(3), rtol=1e-6)


# What is refused


def test_values_that_are_asked_for():
    frame = people()
    for function, what in [
        (lambda f: 1 if f[f["big"]]["adults"].sum() > 0 else 0, "'if'"),
        (lambda f: len(f[f["big"]]), "len"),
        (lambda f: [k for k in f.groupby("big")], "a loop"),
        (lambda f: float(f["city"].value_counts().max()), "float"),
        (lambda f: f.sort_values("adults", inplace=True), "inplace"),
        (lambda f: f.insert(0, "z", 1), "changes a frame in place"),
    ]:
        with pytest.raises(UnsupportedError, match=rf"test_jit_frames.py:\d+: .*{what}"):
            interpreted(function)(frame)


def test_frames_that_have_no_form():
    class Mine(pd.DataFrame):
        pass

    with pytest.raises(UnsupportedError, match="which may compute otherwise than a frame"):
        interpreted(lambda f: f)(Mine({"a": [1]}))
    with pytest.raises(UnsupportedError, match="columns of one name"):
        interpreted(lambda f: f)(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(UnsupportedError, match="'PEOPLE' is a frame of pandas, and no argument"):
        interpreted(lambda x: x * PEOPLE["adults"].sum())(np.ones(3))


PEOPLE = pd.DataFrame({"adults": [1.0, 2.0]})


# Parts


@pytest.mark.parametrize(
    "function",
    [
        lambda f: f["city"].str.upper(),
        lambda f: f["zip"].isin([1]),
        lambda f: f.groupby("big")["adults"].sum(),
        lambda f: f.groupby(["big", "city"]).population.mean(),
        lambda f: f.groupby("city")[["population", "adults"]].max(),
        lambda f: f.groupby("city").size(),
        lambda f: f.merge(f.head(9)[["population", "big"]], on="big", how="left"),
        lambda f: pd.merge(f, f.head(9)[["city", "adults"]], on="city"),
        lambda f: f["city"].map({"Ulm": 1.5, "Bonn": 2.5}),
    ],
)
def test_calls_in_parts(function, monkeypatch):
    monkeypatch.setattr(frame_calls, "PART", 32)
    made = []
    whole = frame_calls.taken_in_parts
    monkeypatch.setattr(
        frame_calls, "taken_in_parts", lambda plan, each: made.append(each) or whole(plan, each)
    )
    check(function, people())
    assert len(made) == 2, (
        "the first call looks whether parts give the same, the second is made in parts"
    )


def test_parts_that_give_something_else_are_not_taken(monkeypatch):
    monkeypatch.setattr(frame_calls, "PART", 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(lambda f: f["x"].str.len(), pd.DataFrame({"x": ["a", None, "bb"] * 8}, dtype=object))
