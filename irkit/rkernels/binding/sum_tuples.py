"""Sums that a lane makes at once, as a tuple: functions of all of them, written out one by one.

A tuple stays in registers, where an array of a thread's does only if the compiler unrolls each loop over it.
"""

from __future__ import annotations

from collections.abc import Sequence

from irkit.rkernels.binding.binder import Binder

WARP = "0xFFFFFFFF"


def bind_sums(binder: Binder, terms: Sequence[int]) -> None:
    """For SUMS sums of rows of COLUMNS outputs, by LANES lanes: `PLACES(row, count, width)`, where `SUMS //
    COLUMNS` rows from `row` on are, or the last of `count`; `TERMS(places, k)`, term k of each;
    `ADDED(sums, terms)`, `KEPT(whether, sums, others)`, `MET(sums)`, joined over the lanes, and
    `OWN(sums, n)`, sum n. All take OPERANDS first. `terms` are the extents K0, K1 and K2.

    After `TERM`, `COMBINE`, `FLOAT` and `SHUFFLED` are bound.
    """
    binding = binder.binding
    count, columns = binder.parameter("SUMS"), binder.parameter("COLUMNS")
    names, operands, every = binding.names, binding.operands, range(count)
    term, combine, kind = names["TERM"], names["COMBINE"], names["FLOAT"]

    def written(placeholder: str, arguments: str, parts: Sequence[str], *before: str) -> None:
        binding.needed(placeholder, arguments, [*before, f"return ({', '.join(parts)}, )"])

    rows = count // columns
    written(
        "PLACES",
        "row, count, width",
        [f"r{n}, j{n}" for n in range(rows)],
        *(f"r{n}, j{n} = divide(min(row + {n}, count - 1), width)" for n in range(rows)),
    )
    places = [divmod(n, columns) for n in every]
    written(
        "TERMS",
        "r, j, places, k",
        [
            f"{kind}({term}({operands}, r + places[{2 * row}], "
            f"j + places[{2 * row + 1}] * {columns} + {column}, k0, k1, k2))"
            for row, column in places
        ],
        f"k0, inner = divide(k, {terms[1] * terms[2]})",
        f"k1, k2 = divide(inner, {terms[2]})",
    )
    written("ADDED", "sums, terms", [f"{combine}(sums[{n}], terms[{n}])" for n in every])
    kept = [f"sums[{n}] if whether else others[{n}]" for n in every]
    written("KEPT", "whether, sums, others", kept)
    meetings: list[str] = []
    distance = binder.parameter("LANES") // 2
    before = [f"s{n} = sums[{n}]" for n in every]
    while distance:
        for n in every:
            other = f"cuda.shfl_xor_sync({WARP}, {names['SHUFFLED']}(s{n}), {distance})"
            meetings.append(f"s{n} = {combine}(s{n}, {kind}({other}))")
        distance //= 2
    written("MET", "sums", [f"s{n}" for n in every], *before, *meetings)
    chosen = [f"own = sums[{n}] if n == {n} else own" for n in every[1:]]
    binding.needed("OWN", "sums, n", ["own = sums[0]", *chosen, "return own"])
