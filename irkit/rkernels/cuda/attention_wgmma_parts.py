"""The template of float32 attention by warp groups, `attention_wgmma32.py` has its rKernels."""

from __future__ import annotations

import math

RKERNELS = ()


def attention_wgmma_parts(task, tasks, rows, scratch, OPERANDS):
    b0, b1, i0, i1 = PART(task, tasks, rows)
    thread = thread_index()
    warp, lane = divide(thread, 32)
    warp = same_in_warp(warp)
    group, quarter = divide(warp, 4)
    group_y, group_x = divide(group, KG)
    own_row = group_y * 64 + quarter * 16
    staged = shared_of(FLOAT(0), scratch)
    queries = aligned_place(staged, 0)
    keys = queries + QUERIES
    values = keys + BN * DEPTH
    raw_k = keys + ROOM
    raw_v = raw_k + RAW_K
    told = raw_v + RAW_V
    # Operands that do not start at multiples of 16 bytes cannot be copied.
    stop = i1 if VECTOR else i0
    for head in range(b0, b1):
        # Registers are few, and where rows see unlike numbers of keys there is one more to be held.
        b = anew(head) if CAUSAL else head
        for i in range(stop + warp, i1, THREADS // 32):
            ROW(OPERANDS, staged, warp * (SIZE + COLUMNS), b, i, anew(lane))
        from_q, from_k, from_v = OFFSET_Q(anew(b)), OFFSET_K(anew(b)), OFFSET_V(anew(b))
        for i in range(i0, stop, BM):
            ends = max(min(min(i + BM, i1) + DIAGONAL, KEYS), 0) if CAUSAL else KEYS

            # A warp copies and cuts units of 8 rows and 32 columns of its own: a lane copies four elements of
            # two rows, and cuts eight of one. What lies past the end is zero: a weight of zero times NaN is
            # NaN. Places are found anew each time, registers are few.
            def copy_keys(turn):
                unit, (row, e) = anew(warp), divide(anew(lane), 8)
                down, across = divide(unit, DEPTH // 32)
                place = raw_k + unit * 288 + row * 36 + e * 4
                row, e = turn * BN + down * 8 + row, across * 32 + e * 4
                copy_units(
                    staged, place, KEY, from_k + row * STEP_K + e,
                    ends - row if e < SIZE else 0, STEP_K, 2048 // DEPTH, 8, BN * DEPTH // 2048,
                )  # fmt: skip

            def copy_values(turn):
                unit, (row, e) = anew(warp), divide(anew(lane), 8)
                down, across = divide(unit, WIDE // 32)
                place = raw_v + unit * 288 + row * 36 + e * 4
                row, e = turn * BN + down * 8 + row, across * 32 + e * 4
                copy_units(
                    staged, place, VALUE, from_v + row * STEP_V + e,
                    ends - row if e < COLUMNS else 0, STEP_V, 2048 // WIDE, 8, BN * WIDE // 2048,
                )  # fmt: skip

            # Of what this lane will cut of some units.
            def largest_of(raw, units):
                chunk, row = divide(anew(lane), 8)
                first = raw + anew(warp) * 288 + row * 36 + chunk * 8
                most = uint32(0)
                for n in range(units):
                    _, most = magnitudes(most, most, staged, first + n * 2304, 4)
                    _, most = magnitudes(most, most, staged, first + n * 2304 + 4, 4)
                return most

            # Half of a warp's units, from unit `first` on.
            def cut_some_keys(exponent, first):
                unit, (chunk, row) = anew(warp), divide(anew(lane), 8)
                down, across = divide(unit, DEPTH // 32)
                plane, place = divide(across * 4 + chunk, 8)
                return cut_chunks(
                    staged, raw_k + (first * 8 + unit) * 288 + row * 36 + chunk * 8,
                    power_of(268 - exponent),
                    keys + plane * (BN * 64), (first * (256 // DEPTH) + down) * 8 + row, place,
                    2304, 2048 // DEPTH, BN * DEPTH // 4096, BN * 32,
                )  # fmt: skip

            def cut_keys(exponent):
                unit, (chunk, row) = anew(warp), divide(anew(lane), 8)
                down, across = divide(unit, DEPTH // 32)
                plane, place = divide(across * 4 + chunk, 8)
                return cut_chunks(
                    staged, raw_k + unit * 288 + row * 36 + chunk * 8, power_of(268 - exponent),
                    keys + plane * (BN * 64), down * 8 + row, place,
                    2304, 2048 // DEPTH, BN * DEPTH // 2048, BN * 32,
                )  # fmt: skip

            def cut_values(exponent):
                unit, (chunk, row) = anew(warp), divide(anew(lane), 8)
                down, across = divide(unit, WIDE // 32)
                plane, place = divide(across * 4 + chunk, 8)
                least, most = cut_chunks(
                    staged, raw_v + unit * 288 + row * 36 + chunk * 8, power_of(268 - exponent),
                    values + plane * (BN * 64), down * 8 + row, place,
                    2304, 2048 // WIDE, BN * WIDE // 2048, BN * 32,
                )  # fmt: skip
                tell_largest(staged, told + 16 + warp, most)
                return least

            # What was cut is there for all; if any is larger than any before, it is cut once more.
            def shared_keys(of_k):
                publish_tiles()
                cuda.syncthreads()
                found = told_exponent(staged, told + 8, 8)
                if found > of_k + 1:
                    of_k = found
                    cut_keys(of_k)
                    publish_tiles()
                    cuda.syncthreads()
                return of_k

            def shared_values(of_v):
                publish_tiles()
                cuda.syncthreads()
                found = told_exponent(staged, told + 16, 8)
                if found > of_v + 1:
                    of_v = found
                    cut_values(of_v)
                    publish_tiles()
                    cuda.syncthreads()
                return of_v

            def spread(widest, of_v, least):
                low = int32(least >> uint32(24))
                return max(widest, of_v - low if low > 0 else 255)

            def scored():
                return part_products(
                    staged, queries + group_y * 2048, keys + group_x * (WN * 32),
                    WN, TERMS, BM * 32, BN * 64, BM * DEPTH // 2, BN * 32, AHEAD,
                )  # fmt: skip

            def scale_of(of_k):
                return SCALE * power_of(of_q - 14) * power_of(of_k - 14)

            def weighed(turn, scores, scale, lowest, largest, totals):
                k = turn * BN + group_x * WN
                if MASKED:
                    own = queries + MASKS + warp * (16 * (WN + 8))
                    mma_store(staged, own, WN + 8, scores, WN, lane)
                    cuda.syncwarp()
                    for n in range(lane, 16 * WN, 32):
                        r, j = divide(n, WN)
                        row, key = min(i + own_row + r, i1 - 1), min(k + j, KEYS - 1)
                        at = own + r * (WN + 8) + j
                        staged[at] = SCORE(OPERANDS, b, row, key, staged[at] * scale)
                    cuda.syncwarp()
                    scores = mma_load(staged, own, WN + 8, 16, WN, lane)
                    cuda.syncwarp()
                else:
                    lowest = least_scores(lowest, scores, scale, WN)
                # Unless all rows see all of these keys.
                if turn * BN + BN > (min(i + DIAGONAL + 1, ends) if CAUSAL else ends):
                    scores = scores_within(
                        scores, lane, i + own_row + DIAGONAL + 1 - k, ends - k, WN, CAUSAL
                    )
                weights, largest, totals, factors = online_softmax(
                    scores, largest, totals, FLOAT(1) if MASKED else scale, WN, 15
                )
                return cut_weights(weights), factors, lowest, largest, totals

            unit, (row, e) = anew(warp), divide(anew(lane), 8)
            down, across = divide(unit, DEPTH // 32)
            place = keys + unit * 288 + row * 36 + e * 4
            row, e = i + down * 8 + row, across * 32 + e * 4
            copy_units(
                staged, place, QUERY, from_q + row * STEP_Q + e,
                i1 - row if e < SIZE else 0, STEP_Q, 2048 // DEPTH, 8, BM * DEPTH // 2048,
            )  # fmt: skip
            copy_keys(0)
            copy_values(0)
            await_copies(0)
            cuda.syncwarp()
            tell_largest(staged, told + warp, largest_of(keys, BM * DEPTH // 2048))
            tell_largest(staged, told + 8 + warp, largest_of(raw_k, BN * DEPTH // 2048))
            tell_largest(staged, told + 16 + warp, largest_of(raw_v, BN * WIDE // 2048))
            cuda.syncthreads()
            of_q = told_exponent(staged, told, 8)
            of_k, of_v = told_exponent(staged, told + 8, 8), told_exponent(staged, told + 16, 8)
            unit, (chunk, row) = anew(warp), divide(anew(lane), 8)
            down, across = divide(unit, DEPTH // 32)
            plane, place = divide(across * 4 + chunk, 8)
            cut_chunks(
                staged, keys + unit * 288 + row * 36 + chunk * 8, power_of(268 - of_q),
                queries + plane * (BM * 32), down * 8 + row, place,
                2304, 2048 // DEPTH, BM * DEPTH // 2048, BM * DEPTH // 2,
            )  # fmt: skip
            # Keys are cut to where queries were copied.
            cuda.syncthreads()
            cut_keys(of_k)
            widest, mark = of_k - of_k, uint32(0)
            largest, lowest = lowest_rows(2), zeros_like(staged, 2)
            totals = zeros_like(staged, 2)
            sums, more = zeros_like(staged, LEFT // 2), zeros_like(staged, RIGHT // 2)
            turns = (ends + BN - 1) // BN
            if i + group_y * 64 >= i1:
                # A group without rows copies and cuts alone.
                if AHEAD and turns > 0:
                    of_k = shared_keys(of_k)
                    copy_keys(1)
                    await_copies(0)
                    cuda.syncthreads()
                    _, most = cut_keys(of_k)
                    tell_largest(staged, told + 8 + warp, most)
                for turn in range(turns):
                    of_k = shared_keys(of_k)
                    copy_keys(turn + 1 + AHEAD)
                    await_copies(1)
                    cuda.syncwarp()
                    least = cut_values(of_v)
                    of_v = shared_values(of_v)
                    widest = spread(widest, of_v, least)
                    copy_values(turn + 1)
                    await_copies(1)
                    cuda.syncwarp()
                    _, most = cut_keys(of_k)
                    tell_largest(staged, told + 8 + warp, most)
                turns = 0
            scores, scale = zeros_like(staged, WN // 2), SCALE
            if AHEAD and turns > 0:
                # Scores are a block ahead: the next keys are multiplied while weights are computed.
                of_k = shared_keys(of_k)
                copy_keys(1)
                begun = scored()
                scale = scale_of(of_k)
                scores = joined_products(begun, WN)
                await_copies(0)
                cuda.syncthreads()
                _, most = cut_keys(of_k)
                tell_largest(staged, told + 8 + warp, most)
            for turn in range(turns):
                of_k = shared_keys(of_k)
                copy_keys(turn + 1 + AHEAD)
                begun = scored()
                if AHEAD:
                    words, factors, lowest, largest, totals = weighed(
                        turn, scores, scale, lowest, largest, totals
                    )
                # While the tensor cores multiply, the values are cut.
                await_copies(1)
                cuda.syncwarp()
                least = cut_values(of_v)
                scale = scale_of(of_k)
                scores = joined_products(begun, WN)
                if not AHEAD:
                    words, factors, lowest, largest, totals = weighed(
                        turn, scores, scale, lowest, largest, totals
                    )
                of_v = shared_values(of_v)
                widest = spread(widest, of_v, least)
                copy_values(turn + 1)
                own = values + group_x * (WN * 32)
                back = power_of(of_v - 14)
                begun = weighted_parts(words, staged, own, LEFT, BN * 32)
                # So are the next keys.
                await_copies(1)
                cuda.syncwarp()
                if WIDTH > 64:
                    _, most = cut_some_keys(of_k, 0)
                    sums = weighted_added(sums, begun, factors, back)
                    begun = weighted_parts(words, staged, own + BN * 64, RIGHT, BN * 32)
                    _, behind = cut_some_keys(of_k, BN * DEPTH // 4096)
                    most = max(most, behind)
                else:
                    _, most = cut_keys(of_k)
                tell_largest(staged, told + 8 + warp, most)
                await_products(0)
                mark = still_held(mark, words)
                if WIDTH > 64:
                    more = weighted_added(more, begun, factors, back)
                else:
                    sums = weighted_added(sums, begun, factors, back)
            await_copies(0)
            own_thread, own_lane = anew(thread), anew(lane)
            small = cuda.syncthreads_or(int32(widest > 27))
            tiny = cuda.syncthreads_or(int32(further_apart(largest, lowest, 28)))
            # Factors that are small in their block are off by 2^-50 of its largest.
            reach = power_of(of_q - 14) * power_of(of_k - 14) * (SCALE * FLOAT(SIZE))
            unsure = FLOAT(0)
            if small:
                unsure += FLOAT(1)
            if tiny or MASKED:
                unsure += FLOAT(KEYS)
            unsure *= power_of(of_v - 14) * FLOAT(2.0**-16)
            if not reach <= FLOAT(0.125):
                unsure = FLOAT(math.inf)
            stats = queries + STATS
            row_store(staged, stats + group_x * BM + own_row, largest, own_lane)
            row_store(
                staged, stats + (KG + 1 + group_x) * BM + own_row, row_totals(totals), own_lane
            )
            own = queries + (group_x * BM + own_row) * (WIDTH + 8)
            mma_store(staged, own, WIDTH + 8, sums, LEFT, own_lane)
            if WIDTH > 64:
                mma_store(staged, own + 64, WIDTH + 8, more, RIGHT, own_lane)
            # Nobody knows what it is, and it is never seen.
            staged[stats + (2 * KG + 1) * BM + thread] = FLOAT(mark)
            cuda.syncthreads()
            if thread < BM:
                # Groups of keys meet: each had its own largest score.
                place = stats + thread
                top = FLOAT(-math.inf)
                for g in range(KG):
                    top = max(top, staged[place + g * BM])
                shift = FLOAT(0) if top == FLOAT(-math.inf) else top
                total = FLOAT(0)
                for g in range(KG):
                    factor = power_of_two(staged[place + g * BM] - shift)
                    staged[place + g * BM] = factor
                    total += staged[place + (KG + 1 + g) * BM] * factor
                # Of no keys at all it is infinite, and zero times it is NaN.
                staged[place + KG * BM] = PORTION(FLOAT(1), total)
                staged[place + (KG + 1) * BM] = FLOAT(0)
            cuda.syncthreads()
            for n in range(BM * WIDTH // THREADS):
                r, e = divide(own_thread + n * THREADS, WIDTH)
                total = staged[queries + r * (WIDTH + 8) + e]
                if KG > 1:
                    total *= staged[stats + r]
                    value = staged[queries + (BM + r) * (WIDTH + 8) + e]
                    total += value * staged[stats + BM + r]
                every = staged[stats + KG * BM + r]
                total *= every
                if e < COLUMNS and i + r < i1:
                    STORE(OPERANDS, anew(b), anew(i) + r, e, total)
                    # Where there is no key, there is no doubt.
                    if every != FLOAT(math.inf) and not unsure <= abs(total) < FLOAT(math.inf):
                        staged[stats + (KG + 1) * BM + r] = FLOAT(1)
            cuda.syncthreads()
            for r in range(warp, min(BM, i1 - i), THREADS // 32):
                if staged[stats + (KG + 1) * BM + r] != FLOAT(0):
                    ROW(OPERANDS, staged, warp * (SIZE + COLUMNS), b, i + r, anew(lane))
            cuda.syncthreads()
