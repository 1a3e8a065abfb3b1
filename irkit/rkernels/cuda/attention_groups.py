"""The template of attention by warp groups, `attention_wgmma.py` has its rKernels."""

from __future__ import annotations

RKERNELS = ()


def attention_wgmma(task, tasks, rows, scratch, OPERANDS):
    b0, b1, i0, i1 = PART(task, tasks, rows)
    thread = thread_index()
    warp, lane = divide(thread, 32)
    warp = same_in_warp(warp)
    group, quarter = divide(warp, 4)
    staged = shared_of(FLOAT(0), scratch)
    # First the barriers, two words each: of slots that are filled, then of slots that were read.
    packs = aligned_place(staged, 4 * SLOTS)
    if thread == 0:
        for slot in range(SLOTS):
            open_barrier(staged, 2 * slot, THREADS)
            open_barrier(staged, 2 * (SLOTS + slot), THREADS // 32)
    publish_barriers()
    cuda.syncthreads()
    # A thread copies the same 16 bytes of every 32nd row.
    y, chunk = divide(thread, 8)
    # Operands that do not start at multiples of 16 bytes cannot be copied.
    stop = i1 if VECTOR else i0

    # The slot that is so many behind another, and the parity of the phase in which it is filled.
    def behind(slot, parity, count):
        slot += count
        return (slot - SLOTS, 1 - parity) if slot >= SLOTS else (slot, parity)

    def place(slot):
        return packs + QUERIES + slot * SLOT

    # A group has read a slot.
    def read(slot):
        if lane == 0:
            arrive(staged, 2 * (SLOTS + slot))

    # The rows of queries from i on: each group has rows of its own, or `each` being 2, both have the same
    # rows, and every second block of keys.
    def tile(each, b, i, fill, filled, slot, parity):
        from_q = fixed(OFFSET_Q(b) + (i + y) * STEP_Q + chunk * 8)
        from_k = fixed(OFFSET_K(b) + y * STEP_K + chunk * 8)
        from_v = fixed(OFFSET_V(b) + y * STEP_V + chunk * 8)
        first_row = (2 - each) * group * 64
        own_row = first_row + quarter * 16
        mine = (each - 1) * group
        ends = max(min(min(i + BM, i1) + DIAGONAL, KEYS), 0) if CAUSAL else KEYS
        # The first key that not all rows see.
        whole = min(i + first_row + DIAGONAL + 1, ends) if CAUSAL else ends
        turns = max((ends + BN * each - 1) // (BN * each), 1)

        # The blocks of a turn, to the slots that follow. Behind the end are zeros: a weight of zero times NaN
        # is NaN.
        def keys(turn, fill, filled):
            if turn < turns:
                for n in range(each):
                    key = (turn * each + n) * BN
                    await_phase(staged, 2 * (SLOTS + fill), 1 - filled)
                    for plane in range(DEPTH // 64):
                        feed_rows(
                            staged, place(fill) + plane * (BN * 32), y, chunk,
                            KEY, from_k + key * STEP_K + plane * 64, STEP_K, 32, BN // 32,
                            (ends - key) - y if plane * 64 + chunk * 8 < SIZE else 0,
                        )  # fmt: skip
                    arrive_behind_copies(staged, 2 * fill)
                    fill, filled = behind(fill, filled, 1)
            return fill, filled

        def values(turn, fill, filled):
            if turn < turns:
                for n in range(each):
                    key = (turn * each + n) * BN
                    await_phase(staged, 2 * (SLOTS + fill), 1 - filled)
                    for plane in range(WIDTH // 64):
                        feed_rows(
                            staged, place(fill) + plane * (BN * 32), y, chunk,
                            VALUE, from_v + key * STEP_V + plane * 64, STEP_V, 32, BN // 32,
                            (ends - key) - y if plane * 64 + chunk * 8 < COLUMNS else 0,
                        )  # fmt: skip
                    arrive_behind_copies(staged, 2 * fill)
                    fill, filled = behind(fill, filled, 1)
            return fill, filled

        def softmax(turn, scores, largest, totals):
            k = (turn * each + mine) * BN
            if MASKED:
                masks = packs + MASKS + warp * (16 * (BN + 8))
                mma_store(staged, masks, BN + 8, scores, BN, lane)
                cuda.syncwarp()
                for n in range(lane, 16 * BN, 32):
                    r, j = divide(n, BN)
                    row, key = min(i + own_row + r, i1 - 1), min(k + j, KEYS - 1)
                    at = masks + r * (BN + 8) + j
                    staged[at] = SCORE(OPERANDS, b, row, key, staged[at] * SCALE)
                cuda.syncwarp()
                scores = mma_load(staged, masks, BN + 8, 16, BN, lane)
                cuda.syncwarp()
            if k + BN > whole:
                scores = scores_within(
                    scores, lane, i + own_row + DIAGONAL + 1 - k, ends - k, BN, CAUSAL
                )
            return online_softmax(scores, largest, totals, FLOAT(1) if MASKED else SCALE, BN, 0)

        def scored(slot):
            return group_products(
                none, staged, packs + first_row * 32, place(slot), BN, DEPTH, 32,
                BM * 32, BN * 32, 1, KIND, 1, 0,
            )  # fmt: skip

        def weighed(slot, sums, words):
            return weighted_products(sums, words, staged, place(slot), WIDTH, BN, BN * 32, KIND)

        for plane in range(DEPTH // 64):
            feed_rows(
                staged, packs + plane * (BM * 32), y, chunk,
                QUERY, from_q + plane * 64, STEP_Q, 32, BM // 32,
                (i1 - i) - y if plane * 64 + chunk * 8 < SIZE else 0,
            )  # fmt: skip
        # Behind the first keys come those of each next turn, and then the values of this one.
        for turn in range(3):
            fill, filled = keys(turn, fill, filled)
            if turn > 0:
                fill, filled = values(turn - 1, fill, filled)
        none = zeros_like(staged, BN // 2)
        sums = zeros_like(staged, WIDTH // 2)
        at_k, of_k = behind(slot, parity, mine)
        await_phase(staged, 2 * at_k, of_k)
        publish_tiles()
        scores = group_added(none, scored(at_k), 0, 0)
        cuda.syncwarp()
        for n in range(each):
            read(behind(slot, parity, n)[0])
        weights, largest, totals, _ = softmax(0, scores, lowest_rows(2), zeros_like(staged, 2))
        words = packed_weights(weights, KIND)
        slot, parity = behind(slot, parity, each)
        if group == 1 and turns > 1:
            give_turn(0)
        for turn in range(1, turns):
            # The next weights are computed while tensor cores use the last ones.
            at_k, of_k = behind(slot, parity, mine)
            at_v, of_v = behind(slot, parity, each + mine)
            await_phase(staged, 2 * at_k, of_k)
            await_phase(staged, 2 * at_v, of_v)
            publish_tiles()
            await_turn(group)
            begun = scored(at_k)
            added = weighed(at_v, sums, words)
            if group == 0 or turn + 1 < turns:
                give_turn(1 - group)
            scores = group_added(none, begun, 0, 1)
            cuda.syncwarp()
            for n in range(each):
                read(behind(slot, parity, n)[0])
            weights, largest, totals, factors = softmax(turn, scores, largest, totals)
            # The assembler moves a wait ahead of what does not need it, but not ahead of a branch.
            weights, totals = settled(weights), settled(totals)
            fill, filled = keys(turn + 2, fill, filled)
            sums = row_scaled(group_added(sums, added, 0, 0), factors, WIDTH)
            cuda.syncwarp()
            for n in range(each):
                read(behind(slot, parity, each + n)[0])
            fill, filled = values(turn + 1, fill, filled)
            words = packed_weights(weights, KIND)
            slot, parity = behind(slot, parity, 2 * each)
        at_v, of_v = behind(slot, parity, mine)
        await_phase(staged, 2 * at_v, of_v)
        publish_tiles()
        sums = group_added(sums, weighed(at_v, sums, words), 0, 0)
        cuda.syncwarp()
        for n in range(each):
            read(behind(slot, parity, n)[0])
        slot, parity = behind(slot, parity, each)
        totals = row_totals(totals)
        others, theirs = lowest_rows(2), zeros_like(staged, 2)
        cuda.syncthreads()
        if each == 2:
            stats = packs + STATS + quarter * 16
            row_store(staged, stats + group * 64, largest, lane)
            row_store(staged, stats + group * 64 + 128, totals, lane)
            cuda.syncthreads()
            others = row_load(staged, stats + (1 - group) * 64, 2, lane)
            theirs = row_load(staged, stats + (1 - group) * 64 + 128, 2, lane)
        sums = row_scaled(sums, row_shares(largest, totals, others, theirs), WIDTH)
        at = packs + (group * 64 + quarter * 16) * (WIDTH + 8)
        mma_store(staged, at, WIDTH + 8, sums, WIDTH, lane)
        cuda.syncthreads()
        first, e = divide(thread, WIDTH)

        def stored(r, total):
            if i + r < i1 and e < COLUMNS:
                STORE(OPERANDS, b, i + r, e, total)

        # A thread has eight rows of a column at once.
        for r in range(first, BM // each, 8 * APART):
            at = packs + r * (WIDTH + 8) + e
            own = column_load(staged, at, APART * (WIDTH + 8), 8)
            more = zeros_like(staged, 8)
            if each == 2:
                more = column_load(staged, at + 64 * (WIDTH + 8), APART * (WIDTH + 8), 8)
            stored(r, own[0] + more[0])
            stored(r + APART, own[1] + more[1])
            stored(r + 2 * APART, own[2] + more[2])
            stored(r + 3 * APART, own[3] + more[3])
            stored(r + 4 * APART, own[4] + more[4])
            stored(r + 5 * APART, own[5] + more[5])
            stored(r + 6 * APART, own[6] + more[6])
            stored(r + 7 * APART, own[7] + more[7])
        cuda.syncthreads()
        return fill, filled, slot, parity

    fill, filled, slot, parity = 0, 0, 0, 0
    for b in range(b0, b1):
        for i in range(stop + warp, i1, THREADS // 32):
            ROW(OPERANDS, staged, packs + warp * (SIZE + COLUMNS), b, i, lane)
        for i in range(i0, stop, BM):
            if SPLITS and i1 - i <= BM // 2:
                fill, filled, slot, parity = tile(2, b, i, fill, filled, slot, parity)
            else:
                fill, filled, slot, parity = tile(1, b, i, fill, filled, slot, parity)
    if thread == 0:
        for slot in range(2 * SLOTS):
            close_barrier(staged, 2 * slot)
    cuda.syncthreads()
