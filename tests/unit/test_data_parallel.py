"""Steps of training on several ranks: threads here, processes in test_data_parallel_mpi.py."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irkit
from irkit.errors import DeviceError, InvalidInputError, NotFiniteError, UnsupportedError
from irkit.training import groups, losses, optimizers, random

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((12, 16)).astype(np.float32), RNG.integers(0, 4, 12)


def start() -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    return [
        {
            "w": (rng.standard_normal((a, b)) / a**0.5).astype(np.float32),
            "b": np.zeros(b, np.float32),
        }
        for a, b in ((16, 8), (8, 8), (8, 4))
    ]


def model(p: Any, x: Any) -> Any:
    for layer in p[:-1]:
        x = np.maximum(x @ layer["w"] + layer["b"], 0)
    return x @ p[-1]["w"] + p[-1]["b"]


def made(group: Any = None, **given: Any) -> Any:
    options: dict[str, Any] = {
        "optimizer": optimizers.Adam(0.01, clip_norm=1.0),
        "parameters": start(),
        "target": "cpu",
        "device": "cpu1",
    }
    return irkit.training_step(
        given.pop("model", model),
        given.pop("loss", losses.softmax_cross_entropy),
        data_parallel=group,
        **{**options, **given},
    )


def on_ranks(size: int, run: Callable[[Any, int], Any]) -> list[Any]:
    """What each rank returns, or the error that it raised."""
    members = groups.simulated(size)
    found: list[Any] = [None] * size

    def work(rank: int) -> None:
        try:
            found[rank] = run(members[rank], rank)
        except Exception as error:
            found[rank] = error
            members[rank].leave()

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def part(array: Any, rank: int, size: int) -> Any:
    return np.ascontiguousarray(np.split(array, size)[rank])


@pytest.mark.parametrize("size", [1, 2, 3])
def test_ranks_do_what_one_does_with_the_joined_batch(size: int) -> None:
    """In buckets of a few hundred bytes, so that there are several."""

    def run(group: Any, rank: int) -> Any:
        step = made(groups.DataParallel(group, 300))
        found = [float(step(part(X, rank, size), part(Y, rank, size))) for _ in range(5)]
        return found, step.state.arrays(), step

    one = made()
    wanted = [float(one(X, Y)) for _ in range(5)]
    ranks = on_ranks(size, run)
    for found, state, _ in ranks:
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
        for name, array in state.items():
            assert array.tobytes() == ranks[0][1][name].tobytes()
            np.testing.assert_allclose(array, one.state[name], rtol=1e-4, atol=1e-6)
    report = ranks[0][2].report()
    assert report["proved"]
    assert (report["rank"], report["ranks"], len(report["collectives"])) == (0, size, 3)


def test_the_collective_ops_are_tasks_that_the_backward_pass_goes_on_beside() -> None:
    def run(group: Any, rank: int) -> Any:
        step = made(groups.DataParallel(group, 300)).compile(X[:6], Y[:6])
        return step.report()["tasks"], step.ir("host"), step.ir("graph")

    tasks, plan, graph = on_ranks(2, run)[0]
    kinds = [(kind, queue, waits) for _, kind, queue, waits in tasks]
    # The second part of the backward pass waits for nothing; the last one for the last reduction.
    assert kinds[:4] == [
        ("function", 0, ()),
        ("collective", 1, (0,)),
        ("function", 0, ()),
        ("collective", 1, (2,)),
    ]
    assert kinds[-1] == ("function", 0, (len(tasks) - 2,))
    assert 'verified = "sha256:' in plan
    assert graph.count("dist.all_reduce") == 3


def test_each_rank_draws_random_numbers_of_its_own() -> None:
    def noisy(p: Any, x: Any, key: Any = None) -> Any:
        return (
            (p * random.uniform(key, x.shape)).sum() + x.sum() * 0 if key is not None else p.sum()
        )

    def run(group: Any, rank: int) -> Any:
        step = made(
            group,
            model=noisy,
            loss=None,
            parameters=np.ones(1, np.float32),
            optimizer=optimizers.SGD(0.5),
        )
        return [float(step(np.ones(4, np.float32))) for _ in range(2)], step.state.arrays()

    key: Any = random.key(0)
    draws: list[float] = []
    for rank in range(2):
        own = random.fold_in(random.fold_in(key, np.int64(0)), np.int64(rank))
        draws.append(float(random.uniform(own, (4,)).sum()))
    assert draws[0] != draws[1]
    found = on_ranks(2, run)
    assert found[0][0] == found[1][0]
    np.testing.assert_allclose(found[0][0][0], np.mean(draws), rtol=1e-5)


def test_shapes_that_differ_are_an_error_on_all_ranks() -> None:
    def run(group: Any, rank: int) -> Any:
        step = made(group)
        step(X[:6], Y[:6])
        before = step.state.arrays()
        with pytest.raises(InvalidInputError, match="not of the same shapes and dtypes"):
            step(X[: 5 + rank], Y[: 5 + rank])
        for name, array in step.state.arrays().items():
            np.testing.assert_array_equal(array, before[name])
        return float(step(X[:6], Y[:6])), step.steps

    found = on_ranks(2, run)
    assert found[0] == found[1]
    assert found[0][1] == 2


def test_what_is_wrong_on_one_rank_leaves_the_state_of_all() -> None:
    def run(group: Any, rank: int) -> Any:
        step = made(group, stop_on_nan=True)
        step.compile(X[:6], Y[:6])
        before = step.state.arrays()
        own: type[Exception] = IndexError if rank else InvalidInputError
        with pytest.raises(own, match="out of bounds" if rank else "step of another rank"):
            step(X[:6], Y[:6] + 100 * rank)
        with pytest.raises(NotFiniteError, match="step 1: the loss is nan"):
            step(X[:6] * np.float32(np.nan if rank else 1), Y[:6])
        for name, array in step.state.arrays().items():
            np.testing.assert_array_equal(array, before[name])
        return float(step(X[:6], Y[:6]))

    found = on_ranks(2, run)
    assert found[0] == found[1]


def test_ranks_that_start_otherwise_are_refused() -> None:
    def run(group: Any, rank: int) -> Any:
        other = start()
        other[1]["w"] = other[1]["w"] + np.float32(rank)
        with pytest.raises(InvalidInputError, match=r"'parameters.1.w' differs between the ranks"):
            made(group, parameters=other)
        with pytest.raises(InvalidInputError, match="have 19, 13 arrays"):
            made(group, parameters=start()[: 3 - rank])
        return None

    assert on_ranks(2, run) == [None, None]


def with_statistics(p: Any, x: Any, statistics: Any) -> Any:
    return model(p, x)


def test_what_cannot_be_is_refused_by_name() -> None:
    (group,) = groups.simulated(1)
    with pytest.raises(UnsupportedError, match="data_parallel of int: expected a group"):
        made(2)
    with pytest.raises(UnsupportedError, match="data_parallel with statistics="):
        made(group, model=with_statistics, statistics=np.zeros(3))
    with pytest.raises(
        DeviceError, match="a simulated group lie on 'cpu', and the step is for 'cuda'"
    ):
        made(group, target="auto", device="h200").compile(X, Y)


def test_missing_engines_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mpi4py.MPI", None)
    with pytest.raises(DeviceError, match="a group by MPI needs mpi4py"):
        groups.mpi()
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    with pytest.raises(DeviceError, match="a group by NCCL needs CuPy"):
        groups.nccl(0, 2, tmp_path / "meeting")
    with pytest.raises(DeviceError, match="rank 2 of a group of 2: expected 0 to 1"):
        groups.nccl(2, 2, tmp_path / "meeting")


def test_a_rank_that_fails_is_told_to_the_others() -> None:
    def run(group: Any, rank: int) -> Any:
        step = made(group)
        step(X[:6], Y[:6])
        if rank:
            raise ValueError("gone")
        step(X[:6], Y[:6])
        return None

    found = on_ranks(2, run)
    assert isinstance(found[0], DeviceError)
    assert "rank 0 of 2: another rank has failed" in str(found[0])
