"""Orders of preference: all of them permutations, the same for the same calls, near those that went deep."""

from __future__ import annotations

import numpy as np

from benchmarks.interval_sets import interval_set
from irkit.schedule.packing_orders import Orders

PROBLEM = interval_set(60, 6, seed=3)
BLAME = np.arange(len(PROBLEM.cliques), dtype=float)


def orders(depth_of, count=40):
    made = Orders(PROBLEM.sizes, PROBLEM.cliques)
    found = [*made.first()]
    for _ in range(count):
        found.append(made.another(BLAME))
        made.went(depth_of(found[-1]))
    return found


def test_permutations_that_are_the_same_for_the_same_calls():
    found, again = orders(len), orders(len)
    for one, other in zip(found, again, strict=True):
        assert sorted(one.tolist()) == list(range(60))
        assert one.tolist() == other.tolist()


def test_orders_come_near_to_those_that_went_deep():
    problem = interval_set(60, 6, seed=3)

    def nearness(deep):
        """How like the last orders are to the first eight, by their places."""
        made = Orders(problem.sizes, problem.cliques)
        places = []
        for number in range(200):
            places.append(np.argsort(made.another(np.zeros(len(BLAME)))))
            made.went(1000 if number in deep else number)
        alike = np.corrcoef(places)[-50:, :8]
        return alike.max(axis=1).mean()

    assert nearness(range(8)) > nearness(()) + 0.01
