"""The template of gradients of attention on tensor cores, `attention_gradient_mma.py` has its rKernels."""

from __future__ import annotations

import math

RKERNELS = ()


def attention_gradient_mma(task, tasks, rows, scratch, OPERANDS):
    b0, b1, i0, i1 = PART(task, tasks, rows)
    thread = thread_index()
    warp, lane = divide(thread, 32)
    warp_y, warp_x = divide(warp, KG)
    own = warp_y * WM
    staged = shared_of(FLOAT(0), scratch)
    # Weights of parts are lifted by 24 powers of two.
    down = FLOAT(2.0 ** (-24 * EXACT))
    for b in range(b0, b1):
        for i in range(i0, i1, BM):
            start = 0
            end = OTHERS
            # The first inner row that not all outer ones see.
            whole = OTHERS
            if CAUSAL:
                # Query i sees keys to i + DIAGONAL: key j is seen by queries from j - DIAGONAL on.
                if OF_KEYS:
                    start = max(i - DIAGONAL, 0)
                else:
                    end = max(min(min(i + BM, i1) + DIAGONAL, OTHERS), 0)
                    whole = i + DIAGONAL + 1
            whole = min(whole, end)
            turns = (max(end - start, 0) + BN - 1) // BN

            def copies(turn):
                at = INNER + (turn % STAGES) * STAGE
                k = start + turn * BN
                if turn < turns:
                    FETCH_Y(
                        OPERANDS, staged, at, b, k, end, BN, DEPTH, X_ROW, thread, THREADS, VECTOR
                    )
                    FETCH_YY(
                        OPERANDS, staged, at + BN * X_ROW, b, k, end, BN, WIDTH, XX_ROW,
                        thread, THREADS, VECTOR,
                    )  # fmt: skip
                    if OF_KEYS:
                        FETCH_S(OPERANDS, staged, at + SUMS, b, k, end, BN, thread, THREADS)
                commit_copies()

            # Of rows `row` apart, `depth` elements of each. Places are computed anew, as those of copies are.
            def least_of(place, count, depth, row, least):
                for n in range(fixed(thread) * 4, count * depth, THREADS * 4):
                    r, e = divide(n, depth)
                    least, _ = magnitudes(least, uint32(0), staged, place + r * row + e, 4)
                return least

            FETCH_X(OPERANDS, staged, 0, b, i, i1, BM, DEPTH, X_ROW, thread, THREADS, VECTOR)
            FETCH_XX(OPERANDS, staged, OTHER, b, i, i1, BM, WIDTH, XX_ROW, thread, THREADS, VECTOR)
            commit_copies()
            copies(0)
            await_copies(1)
            cuda.syncthreads()
            least, most = uint32(0xFFFFFFFF), uint32(0)
            for n in range(fixed(thread) * 4, BM * DEPTH, THREADS * 4):
                r, e = divide(n, DEPTH)
                least, most = scaled_terms(least, most, staged, r * X_ROW + e, 4, SCALE)
            if EXACT:
                least = least_of(OTHER, BM, WIDTH, XX_ROW, least)
            largest = lowest_rows(WM // 8)
            totals = zeros_like(staged, WM // 8)
            along = zeros_like(staged, WM // 8)
            factors = equal_rows(FLOAT(1), WM // 8)
            first = zeros_like(staged, WM * DEPTH // 32)
            if SECOND_WIDTH:
                second = zeros_like(staged, WM * SECOND_WIDTH // 32)

            # What groups know of their rows, of each other: each had its own largest score.
            def meet(largest, totals, along):
                at = STATS + warp_x * BM + own
                row_store(staged, at, largest, lane)
                row_store(staged, at + KG * BM, row_totals(totals), lane)
                row_store(staged, at + 2 * KG * BM, row_totals(along), lane)
                cuda.syncthreads()
                if thread < BM:
                    place = STATS + thread
                    top = FLOAT(-math.inf)
                    for g in range(KG):
                        top = max(top, staged[place + g * BM])
                    shift = FLOAT(0) if top == FLOAT(-math.inf) else top
                    total = FLOAT(0)
                    sloped = FLOAT(0)
                    for g in range(KG):
                        factor = power_of_two(staged[place + g * BM] - shift)
                        staged[place + g * BM] = factor
                        total += staged[place + (KG + g) * BM] * factor
                        sloped += staged[place + (2 * KG + g) * BM] * factor
                    staged[place + KNOWN] = top
                    staged[place + KNOWN + BM] = total
                    staged[place + KNOWN + 2 * BM] = PORTION(sloped, total)
                cuda.syncthreads()

            for turn in range(turns):
                await_copies(0)
                cuda.syncthreads()
                if not ONCE:
                    copies(turn + 1)
                at = INNER + (turn % STAGES) * STAGE
                right = at + BN * X_ROW
                if EXACT:
                    least = least_of(at, BN, DEPTH, X_ROW, least)
                    least = least_of(right, BN, WIDTH, XX_ROW, least)
                at += warp_x * (WN * X_ROW)
                right += warp_x * (WN * XX_ROW)
                k = start + turn * BN + warp_x * WN
                scores = score_sums(
                    staged, own * X_ROW, at, lane, X_ROW, WM, WN, DEPTH, KIND, 0
                )  # fmt: skip
                slopes = score_sums(
                    staged, OTHER + own * XX_ROW, right, lane, XX_ROW, WM, WN, WIDTH, KIND, 0
                )  # fmt: skip
                if MASKED:
                    place = MASKS + warp * (WM * (WN + 8))
                    mma_store(staged, place, WN + 8, scores, WN, lane)
                    cuda.syncwarp()
                    for n in range(lane, WM * WN, 32):
                        r, j = divide(n, WN)
                        outer, inner = min(i + own + r, i1 - 1), min(k + j, OTHERS - 1)
                        query = inner if OF_KEYS else outer
                        key = outer if OF_KEYS else inner
                        n_own = place + r * (WN + 8) + j
                        staged[n_own] = SCORE(OPERANDS, b, query, key, staged[n_own])
                    cuda.syncwarp()
                    scores = mma_load(staged, place, WN + 8, WM, WN, lane)
                    cuda.syncwarp()
                if OF_KEYS:
                    sums = INNER + (turn % STAGES) * STAGE + SUMS + warp_x * WN
                    weights, slopes = column_slopes(
                        scores, slopes, staged, sums, BN, lane,
                        i + own - DIAGONAL - k, end - k, WN, CAUSAL, EXACT,
                    )  # fmt: skip
                else:
                    if turn * BN + BN > whole:
                        scores = scores_within(
                            scores, lane, i + own + DIAGONAL + 1 - k, end - k, WN, CAUSAL
                        )
                    weights, largest, totals, factors = online_softmax(
                        scores, largest, totals, FLOAT(1), WN, EXACT
                    )
                    sloped, along = row_slopes(weights, slopes, along, factors, WN)
                    if ONCE:
                        meet(largest, totals, along)
                        factors = row_load(staged, STATS + warp_x * BM + own, WM // 8, lane)
                        every = row_load(staged, STATS + KNOWN + 2 * BM + own, WM // 8, lane)
                        slopes = row_differences(weights, slopes, every, factors, WN)
                    else:
                        slopes = sloped
                first = weighted_sums(
                    first, factors, slopes, staged, at, lane, X_ROW, DEPTH, WN, KIND, 0, 1
                )  # fmt: skip
                if OF_KEYS:
                    second = weighted_sums(
                        second, factors, weights, staged, right, lane, XX_ROW, WIDTH, WN, KIND, 0, 1
                    )  # fmt: skip
                elif not ONCE:
                    second = weighted_sums(
                        second, factors, weights, staged, at, lane, X_ROW, DEPTH, WN, KIND, 0, 1
                    )  # fmt: skip
            await_copies(0)
            odd = least < uint32(14 << 24) or most > uint32(227 << 24)
            strange = cuda.syncthreads_or(int32(odd))
            if not OF_KEYS:
                meet(largest, totals, along)
            at = (warp_x * BM + own) * (DEPTH + 8)
            mma_store(staged, at, DEPTH + 8, first, DEPTH, lane)
            if SECOND_WIDTH:
                at = KG * BM * (DEPTH + 8) + (warp_x * BM + own) * (SECOND_WIDTH + 8)
                mma_store(staged, at, SECOND_WIDTH + 8, second, SECOND_WIDTH, lane)
            if thread < BM:
                # Rows of which a result is in doubt.
                staged[STATS + KNOWN + 3 * BM + thread] = FLOAT(EXACT) if strange else FLOAT(0)
            cuda.syncthreads()
            if OF_KEYS:
                for n in range(fixed(thread), BM * (SIZE + COLUMNS), THREADS):
                    r, e = divide(n, SIZE + COLUMNS)
                    total = FLOAT(0)
                    for g in range(KG):
                        if e < SIZE:
                            total += staged[(g * BM + r) * (DEPTH + 8) + e]
                        else:
                            at = KG * BM * (DEPTH + 8) + (g * BM + r) * (SECOND_WIDTH + 8)
                            total += staged[at + e - SIZE]
                    total = total * down * (SCALE if e < SIZE else FLOAT(1))
                    if e < SIZE:
                        staged[r * (DEPTH + 8) + e] = total
                    else:
                        at = KG * BM * (DEPTH + 8) + r * (SECOND_WIDTH + 8)
                        staged[at + e - SIZE] = total
                    if EXACT and not abs(total) < FLOAT(math.inf):
                        staged[STATS + KNOWN + 3 * BM + r] = FLOAT(1)
            else:
                for n in range(fixed(thread), BM * SIZE, THREADS):
                    r, e = divide(n, SIZE)
                    every = STATS + KNOWN + r
                    total = FLOAT(0)
                    for g in range(KG):
                        value = staged[(g * BM + r) * (DEPTH + 8) + e]
                        if not ONCE:
                            at = KG * BM * (DEPTH + 8) + (g * BM + r) * (SECOND_WIDTH + 8)
                            value -= staged[every + 2 * BM] * staged[at + e]
                            value *= staged[STATS + g * BM + r]
                        total += value
                    total = PORTION(total, staged[every + BM]) * SCALE
                    staged[r * (DEPTH + 8) + e] = total
                    # Where there is no key, there is no doubt.
                    if (
                        EXACT
                        and not abs(total) < FLOAT(math.inf)
                        and staged[every + BM] != FLOAT(0)
                    ):
                        staged[every + 3 * BM] = FLOAT(1)
            cuda.syncthreads()
            for n in range(fixed(thread), BM * STORED, THREADS):
                r, e = divide(n, STORED)
                every = STATS + KNOWN + r
                if i + r < i1 and staged[every + 3 * BM] == FLOAT(0):
                    if e < SIZE:
                        STORE(OPERANDS, b, i + r, e, staged[r * (DEPTH + 8) + e])
                    elif OF_KEYS:
                        at = KG * BM * (DEPTH + 8) + r * (SECOND_WIDTH + 8)
                        STORE(OPERANDS, b, i + r, e, staged[at + e - SIZE])
                    elif e > SIZE:
                        STORE(OPERANDS, b, i + r, e, staged[every + 2 * BM])
                    else:
                        # The largest score is a power of two here: its logarithm in two parts.
                        total = math.log(staged[every + BM] * down)
                        rest = fma(staged[every], FLOAT(5.7699990475432854e-08), total)
                        STORE(
                            OPERANDS,
                            b,
                            i + r,
                            e,
                            fma(staged[every], FLOAT(0.6931471228599548), rest),
                        )
            cuda.syncthreads()
            if EXACT:
                for r in range(warp, min(BM, i1 - i), THREADS // 32):
                    if staged[STATS + KNOWN + 3 * BM + r] != FLOAT(0):
                        ROW(OPERANDS, staged, warp * ROWS_OF_WARP, b, i + r, lane)
                cuda.syncthreads()
