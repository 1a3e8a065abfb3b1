"""The template of attention on tensor cores, `attention_mma.py` has its rKernels."""

from __future__ import annotations

import math

RKERNELS = ()


def attention_mma(task, tasks, rows, scratch, OPERANDS):
    b0, b1, i0, i1 = PART(task, tasks, rows)
    thread = thread_index()
    warp, lane = divide(thread, 32)
    warp_y, warp_x = divide(warp, KG)
    staged = shared_of(FLOAT(0), scratch)
    # Elements that are copied at once.
    q_each = ELEMENTS * (1 + 3 * VECTOR * (CHUNKS_Q | PACKED))
    k_each = ELEMENTS * (1 + 3 * VECTOR * (CHUNKS_K | PACKED))
    v_each = ELEMENTS * (1 + 3 * VECTOR * (CHUNKS_V | PACKED))
    after = SCALE if PACKED else FLOAT(1)
    # Some are copied 16 bytes at once alone.
    stop = i0 if (PACKED | CUT) and not VECTOR else i1
    for b in range(b0, b1):
        for i in range(stop + warp, i1, THREADS // 32):
            ROW(OPERANDS, staged, warp * (SIZE + COLUMNS), b, i, lane)
        from_q, from_k, from_v = OFFSET_Q(b), OFFSET_K(b), OFFSET_V(b)
        for i in range(i0, stop, BM):
            ends = max(min(min(i + BM, i1) + DIAGONAL, KEYS), 0) if CAUSAL else KEYS
            # The first key that not all rows see.
            whole = min(i + DIAGONAL + 1, ends) if CAUSAL else ends

            # What lies past the end is zero: a weight of zero times NaN is NaN.
            def copies(turn):
                base = BM * K_ROW + (turn % STAGES) * STAGE
                k = turn * BN
                if CUT:
                    for n in range(1 + (BN * DEPTH - 1) // (4 * THREADS)):
                        at = (thread + n * THREADS) * 4
                        j, e = divide(at, DEPTH)
                        if at < BN * DEPTH:
                            copy_async(
                                staged, RAW + at, KEY,
                                from_k + min(k + j, KEYS - 1) * STEP_K + min(e, SIZE - 4),
                                4, (k + j < ends) & (e < SIZE),
                            )  # fmt: skip
                elif COPIED_K | PACKED:
                    for n in range(1 + (BN * DEPTH - 1) // (k_each * THREADS)):
                        at = (thread + n * THREADS) * k_each
                        j, e = divide(min(at, BN * DEPTH - k_each), DEPTH)
                        copy_async(
                            staged, base + j * K_ROW + e // ELEMENTS, KEY,
                            from_k + min(k + j, KEYS - 1) * STEP_K
                            + min(e, SIZE - k_each),
                            1 + 3 * VECTOR * (CHUNKS_K | PACKED), (k + j < ends) & (e < SIZE),
                        )  # fmt: skip
                else:
                    for n in range(thread, BN * DEPTH, THREADS):
                        j, e = divide(n, DEPTH)
                        x = LOAD_K(OPERANDS, b, min(k + j, KEYS - 1), min(e, SIZE - 1))
                        staged[base + j * K_ROW + e] = x if k + j < ends and e < SIZE else FLOAT(0)
                if ONCE:
                    # Of the only block the values arrive while its scores are computed.
                    commit_copies()
                base += BN * K_ROW
                if CUT:
                    for n in range(1 + (BN * WIDTH - 1) // (4 * THREADS)):
                        at = (thread + n * THREADS) * 4
                        j, e = divide(at, WIDTH)
                        if at < BN * WIDTH:
                            copy_async(
                                staged, RAW + BN * DEPTH + at, VALUE,
                                from_v + min(k + j, KEYS - 1) * STEP_V + min(e, COLUMNS - 4),
                                4, (k + j < ends) & (e < COLUMNS),
                            )  # fmt: skip
                elif COPIED_V | PACKED:
                    for n in range(1 + (BN * WIDTH - 1) // (v_each * THREADS)):
                        at = (thread + n * THREADS) * v_each
                        j, e = divide(min(at, BN * WIDTH - v_each), WIDTH)
                        copy_async(
                            staged, base + j * V_ROW + e // ELEMENTS, VALUE,
                            from_v + min(k + j, KEYS - 1) * STEP_V
                            + min(e, COLUMNS - v_each),
                            1 + 3 * VECTOR * (CHUNKS_V | PACKED), (k + j < ends) & (e < COLUMNS),
                        )  # fmt: skip
                else:
                    for n in range(thread, BN * WIDTH, THREADS):
                        j, e = divide(n, WIDTH)
                        x = LOAD_V(OPERANDS, b, min(k + j, KEYS - 1), min(e, COLUMNS - 1))
                        inside = k + j < ends and e < COLUMNS
                        staged[base + j * V_ROW + e] = x if inside else FLOAT(0)
                commit_copies()

            # Into parts, what this thread copied.
            def cut(turn, least):
                base = PACKS + (turn % BUFFERS) * PACK
                for n in range(1 + (BN * DEPTH - 1) // (4 * THREADS)):
                    at = (thread + n * THREADS) * 4
                    j, e = divide(at, DEPTH)
                    if at < BN * DEPTH:
                        cut_terms(
                            uint32(0), uint32(0), staged, RAW + at,
                            base + j * K_ROW + e // 2, BN * K_ROW, FLOAT(1),
                        )  # fmt: skip
                for n in range(1 + (BN * WIDTH - 1) // (4 * THREADS)):
                    at = (thread + n * THREADS) * 4
                    j, e = divide(at, WIDTH)
                    if at < BN * WIDTH:
                        least, _ = cut_terms(
                            least, uint32(0), staged, RAW + BN * DEPTH + at,
                            base + 3 * BN * K_ROW + j * V_ROW + e // 2, BN * V_ROW, FLOAT(1),
                        )  # fmt: skip
                return least

            # Of the words that this thread copied, once a stage.
            def least_of(turn, least):
                base = BM * K_ROW + (turn % STAGES) * STAGE + BN * K_ROW
                for n in range(1 + (BN * WIDTH - 1) // (4 * THREADS)):
                    at = min((thread + n * THREADS) * 4, BN * WIDTH - 4)
                    j, e = divide(at, WIDTH)
                    least, _ = magnitudes(least, uint32(0), staged, base + j * V_ROW + e, 4)
                return least

            if CUT:
                for n in range(1 + (BM * DEPTH - 1) // (4 * THREADS)):
                    at = (thread + n * THREADS) * 4
                    r, e = divide(at, DEPTH)
                    if at < BM * DEPTH:
                        copy_async(
                            staged, PACKS + at, QUERY,
                            from_q + min(i + r, i1 - 1) * STEP_Q + min(e, SIZE - 4), 4, e < SIZE,
                        )  # fmt: skip
            else:
                for n in range(1 + (BM * DEPTH - 1) // (q_each * THREADS)):
                    at = (thread + n * THREADS) * q_each
                    if at < BM * DEPTH:
                        r, e = divide(at, DEPTH)
                        if COPIED_Q | PACKED:
                            copy_async(
                                staged, r * K_ROW + e // ELEMENTS, QUERY,
                                from_q + min(i + r, i1 - 1) * STEP_Q
                                + min(e, SIZE - q_each),
                                1 + 3 * VECTOR * (CHUNKS_Q | PACKED), e < SIZE,
                            )  # fmt: skip
                        else:
                            x = LOAD_Q(OPERANDS, b, min(i + r, i1 - 1), min(e, SIZE - 1))
                            staged[r * K_ROW + e] = x if e < SIZE else FLOAT(0)
            copies(0)
            odd, tiny = uint32(0), uint32(0xFFFFFFFF)
            least, most = uint32(0xFFFFFFFF), uint32(0)
            # The low part of a factor below 2^-113 loses up to 2^-136, which a query below 2^100 does not
            # notice; where it is the query that is below, keys may be larger. Of three parts it is 2^-101
            # and 2^-126.
            if not PACKED | CUT:
                await_copies(ONCE)
                for n in range(1 + (BM * DEPTH - 1) // (q_each * THREADS)):
                    at = (thread + n * THREADS) * q_each
                    if at < BM * DEPTH:
                        r, e = divide(at, DEPTH)
                        least, most = scaled_terms(
                            least,
                            most,
                            staged,
                            r * K_ROW + e,
                            1 + 3 * VECTOR * (CHUNKS_Q | PACKED),
                            SCALE,
                        )
            if CUT:
                await_copies(0)
                for n in range(1 + (BM * DEPTH - 1) // (4 * THREADS)):
                    at = (thread + n * THREADS) * 4
                    r, e = divide(at, DEPTH)
                    if at < BM * DEPTH:
                        least, most = cut_terms(
                            least, most, staged, PACKS + at, r * K_ROW + e // 2, BM * K_ROW, SCALE
                        )
                cuda.syncthreads()
            if least < uint32(LEAST << 24) or most > uint32(MOST << 24):
                odd = uint32(1)
            largest = lowest_rows(WM // 8)
            totals = zeros_like(staged, WM // 8)
            sums = zeros_like(staged, WM * WIDTH // 32)
            for turn in range((ends + BN - 1) // BN):
                await_copies(ONCE)
                if CUT:
                    if BUFFERS < 2:
                        cuda.syncthreads()
                    tiny = cut(turn, tiny)
                cuda.syncthreads()
                if not ONCE:
                    copies(turn + 1)
                base = BM * K_ROW + (turn % STAGES) * STAGE
                k = turn * BN + warp_x * WN
                if CUT:
                    base = PACKS + (turn % BUFFERS) * PACK
                    scores = part_scores(
                        staged, warp_y * (WM * K_ROW), base + warp_x * (WN * K_ROW), lane,
                        K_ROW, WM, WN, DEPTH, BM * K_ROW, BN * K_ROW,
                    )  # fmt: skip
                else:
                    scores = score_sums(
                        staged, warp_y * (WM * K_ROW), base + warp_x * (WN * K_ROW), lane,
                        K_ROW, WM, WN, DEPTH, KIND, PACKED,
                    )  # fmt: skip
                if MASKED:
                    own = MASKS + warp * (WM * (WN + 8))
                    mma_store(staged, own, WN + 8, scores, WN, lane)
                    cuda.syncwarp()
                    for n in range(lane, WM * WN, 32):
                        r, j = divide(n, WN)
                        row, key = min(i + warp_y * WM + r, i1 - 1), min(k + j, KEYS - 1)
                        at = own + r * (WN + 8) + j
                        staged[at] = SCORE(OPERANDS, b, row, key, staged[at] * after)
                    cuda.syncwarp()
                    scores = mma_load(staged, own, WN + 8, WM, WN, lane)
                    cuda.syncwarp()
                if turn * BN + BN > whole:
                    scores = scores_within(
                        scores, lane, i + warp_y * WM + DIAGONAL + 1 - k, ends - k, WN, CAUSAL
                    )
                weights, largest, totals, factors = online_softmax(
                    scores, largest, totals, FLOAT(1) if MASKED else after, WN, EXACT
                )
                if ONCE:
                    await_copies(0)
                    cuda.syncthreads()
                if CUT:
                    sums = part_sums(
                        sums, factors, weights, staged,
                        base + 3 * BN * K_ROW + warp_x * (WN * V_ROW), lane,
                        V_ROW, WIDTH, WN, BN * V_ROW,
                    )  # fmt: skip
                else:
                    sums = weighted_sums(
                        sums, factors, weights, staged,
                        base + BN * K_ROW + warp_x * (WN * V_ROW), lane,
                        V_ROW, WIDTH, WN, KIND, PACKED, PARTS,
                    )  # fmt: skip
                if EXACT and not PACKED | CUT:
                    tiny = least_of(turn, tiny)
            await_copies(0)
            # Sums lose as much of the least values' low parts.
            small = cuda.syncthreads_or(int32(tiny < uint32(LEAST << 24)))
            strange = cuda.syncthreads_or(int32(odd))
            unsure = FLOAT(0)
            if EXACT:
                doubt = FLOAT(2.0e-31) if CUT else FLOAT(2.0e-34)
                unsure = FLOAT(math.inf) if strange else doubt if small else FLOAT(0)
            row_store(staged, STATS + warp_x * BM + warp_y * WM, largest, lane)
            row_store(
                staged, STATS + (KG + 1 + warp_x) * BM + warp_y * WM, row_totals(totals), lane
            )
            mma_store(
                staged, (warp_x * BM + warp_y * WM) * (WIDTH + 8), WIDTH + 8, sums, WIDTH, lane
            )
            cuda.syncthreads()
            if thread < BM:
                # Groups of keys meet: each had its own largest score.
                place = STATS + thread
                top = FLOAT(-math.inf)
                for g in range(KG):
                    top = max(top, staged[place + g * BM])
                shift = FLOAT(0) if top == FLOAT(-math.inf) else top
                total = FLOAT(0)
                for g in range(KG):
                    factor = power_of_two(staged[place + g * BM] - shift)
                    staged[place + g * BM] = factor
                    total += staged[place + (KG + 1 + g) * BM] * factor
                if PARTED and i + thread < i1:
                    # Scores are powers of two here, and weights of parts of floats are lifted by 24 of them.
                    power = (top - FLOAT(24 * EXACT)) * FLOAT(math.log(2.0))
                    STORE(OPERANDS, b, i + thread, COLUMNS, power + math.log(total))
                staged[place + KG * BM] = total
                staged[place + (KG + 1) * BM] = FLOAT(0)
            cuda.syncthreads()
            for n in range(BM * WIDTH // THREADS):
                r, e = divide(thread + n * THREADS, WIDTH)
                total = FLOAT(0)
                for g in range(KG):
                    value = staged[(g * BM + r) * (WIDTH + 8) + e]
                    total += value * staged[STATS + g * BM + r]
                every = staged[STATS + KG * BM + r]
                total = PORTION(total, every)
                if EXACT:
                    staged[r * (WIDTH + 8) + e] = total
                    # Where there is no key, there is no doubt.
                    sure = unsure <= abs(total) < FLOAT(math.inf)
                    if e < COLUMNS and every != FLOAT(0) and not sure:
                        staged[STATS + (KG + 1) * BM + r] = FLOAT(1)
                elif i + r < i1 and e < COLUMNS:
                    STORE(OPERANDS, b, i + r, e, total)
            cuda.syncthreads()
            if EXACT:
                for n in range(BM * WIDTH // THREADS):
                    r, e = divide(thread + n * THREADS, WIDTH)
                    known = staged[STATS + (KG + 1) * BM + r] == FLOAT(0)
                    if i + r < i1 and e < COLUMNS and known:
                        STORE(OPERANDS, b, i + r, e, staged[r * (WIDTH + 8) + e])
                cuda.syncthreads()
                for r in range(warp, min(BM, i1 - i), THREADS // 32):
                    if staged[STATS + (KG + 1) * BM + r] != FLOAT(0):
                        ROW(OPERANDS, staged, warp * (SIZE + COLUMNS), b, i + r, lane)
                cuda.syncthreads()
