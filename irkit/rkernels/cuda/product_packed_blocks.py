"""The template of matrix products of packed terms; `product_packed.py` has its rKernels."""

from __future__ import annotations

import math

RKERNELS = ()


def product_packed(task, tasks, rows, scratch, OPERANDS):
    b0, b1, m0, m1, l0, l1, c0, c1 = PART(task, tasks, rows)
    thread = thread_index()
    warp, lane = divide(thread, 32)
    warp = same_in_warp(warp)
    group, quarter = divide(warp, 4)
    # Of groups that share a tile each has some of its stages.
    rank = divide(group, BM // 64 * (BN // WN))[0] if SLICES > 1 else 0
    group_y, group_x = divide(group - rank * (BM // 64 * (BN // WN)), BN // WN)
    own_thread = thread - rank * SHARING
    # Where one group multiplies, the other fills stages.
    multiplies = group < 1 if FED else group < THREADS // 128
    staged = shared_of(FLOAT(0), scratch)
    # First the barriers, two words each: of tiles that are there, then of tiles that were read.
    packs = aligned_place(staged, 4 * STAGES)
    left = packs + group_y * 64 * ROW
    right = packs + PARTS * BM * ROW + group_x * WN * ROW
    # Blocks that share a tile have some stages each, one behind another.
    stages = (K + BK - 1) // BK
    begins = stages * RANK // RANKS
    turns = stages * (RANK + 1) // RANKS - begins
    own_turns = (turns - rank + SLICES - 1) // SLICES if multiplies else 0
    done = 0
    if thread == 0:
        for stage in range(STAGES):
            open_barrier(staged, 2 * stage, 1)
            open_barrier(staged, 2 * (STAGES + stage), SHARING // 32)
    publish_barriers()
    cuda.syncthreads()
    least_b, most_b = uint32(0xFFFFFFFF), uint32(0)
    # Groups of 8 rows and columns are packed together, whatever the grid.
    for m in range(m0 - m0 % 8, m1, BM):
        least_a, most_a = uint32(0xFFFFFFFF), uint32(0)
        for c in range(c0 - c0 % 8, c1, BN):
            high = min(BM, GROUPS_A * 8 - m)
            wide = min(BN, GROUPS_B * 8 - c)
            # A lane of the four warps that fill a stage copies one part of one operand: from where, how far
            # on the next block is, where to.
            copied = lane * 4 + quarter
            of_a = copied < PARTS
            part = copied % PARTS
            source = PACKED_A if of_a else PACKED_B
            first_row = part * (GROUPS_A * 8) + m if of_a else part * (GROUPS_B * 8) + c
            start = fixed(first_row * BK)
            step = PARTS * GROUPS_A * 8 * BK if of_a else PARTS * GROUPS_B * 8 * BK
            start += begins * step
            place = packs + part * BM * ROW if of_a else packs + (PARTS * BM + part * BN) * ROW
            count = high * ROW * 4 if of_a else wide * ROW * 4

            def fill(turn):
                stage = divide32(done + turn, STAGES)[1]
                if lane == 0 and quarter == 0:
                    expect(staged, 2 * stage, PARTS * (high + wide) * ROW * 4)
                if copied < 2 * PARTS:
                    copy_rows(
                        staged, place + stage * STAGE, source, start + turn * step, count, 2 * stage
                    )

            # Where a stage lies, once it is there.
            def arrived(turn):
                times, stage = divide32(done + turn, STAGES)
                await_phase(staged, 2 * stage, times % 2)
                return stage * STAGE

            # Products of its terms: of whole ones, or of some parts.
            def products(tile, given, fresh, parts):
                return group_products(
                    given, staged, tile + left, tile + right,
                    WN, BK, ROW, BM * ROW, BN * ROW, 1, KIND, fresh, parts,
                )  # fmt: skip

            def begun(turn, sums):
                return products(arrived(turn), sums, FRESH, 0)

            # Which stage of all is one of the group's own.
            def turn_of(own):
                return own * SLICES + rank

            # A stage that all warps have read is filled again, by those that it was for.
            def refill(turn):
                filling = (group == 0 or SLICES > 1) and not FED
                if filling and turn >= 0 and turn + STAGES < turns:
                    times, stage = divide32(done + turn, STAGES)
                    await_phase(staged, 2 * (STAGES + stage), times % 2)
                    fill(turn + STAGES)

            def read(turn):
                cuda.syncwarp()
                if lane == 0:
                    arrive(staged, 2 * (STAGES + divide32(done + turn, STAGES)[1]))

            # Magnitudes of first parts: of A's along one row of tiles, of B's of all of them. Those of a
            # row's first tile, and of the first row's tiles, are looked at: others have the same terms.
            def seen(turn, least_a, most_a, least_b, most_b):
                tile = packs + divide32(done + turn, STAGES)[1] * STAGE
                if c <= c0:
                    for i in range((BM * ROW // 4 + SHARING - 1) // SHARING):
                        word = 4 * (own_thread + i * SHARING)
                        place, inside = tile + min(word, BM * ROW - 4), word < high * ROW
                        least_a, most_a = packed_magnitudes(least_a, most_a, staged, place, inside)
                if m <= m0:
                    tile += PARTS * BM * ROW
                    for i in range((BN * ROW // 4 + SHARING - 1) // SHARING):
                        word = 4 * (own_thread + i * SHARING)
                        place, inside = tile + min(word, BN * ROW - 4), word < wide * ROW
                        least_b, most_b = packed_magnitudes(least_b, most_b, staged, place, inside)
                return least_a, most_a, least_b, most_b

            if group == FED and copied < 2 * PARTS:
                # What others wrote, here or in memory, is for asynchronous copies to see.
                publish_barriers()
                for turn in range(turns if FED else min(STAGES, turns)):
                    if FED:
                        # What lay there before the first counts as read. A lane that copies nothing may not
                        # wait here: others might be a whole phase ahead by then.
                        times, stage = divide32(done + turn, STAGES)
                        await_phase(staged, 2 * (STAGES + stage), (times + 1) % 2)
                    fill(turn)
            sums = zeros_like(staged, WN // 2)
            if SCALED:
                # What is said of rows and columns, by factors and bounds, for when the sums are there.
                for i in range(thread, BM + BN, THREADS):
                    groups = GROUPS_A if i < BM else GROUPS_B
                    line = min(m + i if i < BM else c + i - BM, groups * 8 - 1)
                    headers = PACKED_A if i < BM else PACKED_B
                    header = row_header(headers, fixed((stages * PARTS * groups * 8 + line) * BK))
                    staged[packs + HEADERS + i] = header[0]
                    staged[packs + HEADERS + BM + BN + i] = header[1]
            if PARTED:
                # Of many stages, sums of LONG together meet: each addition rounds, and the fewer lie behind
                # one another, the less. If it is ANY they are one, and the compiler is to know it.
                for far in range(0, turns if LONG < ANY else 1, LONG * SLICES):
                    total = sums
                    sums = zeros_like(staged, WN // 2)
                    start_of_own = far // SLICES
                    last = min(start_of_own + LONG, own_turns)
                    # Products of all parts but the first are a 256th of the sums: what truncation takes of
                    # them is too little to be seen, so that they leave the tensor cores but once in TOGETHER
                    # stages, and these always have some to compute while sums of first parts are added.
                    for near in range(start_of_own, last, TOGETHER):
                        small = zeros_like(staged, WN // 2)
                        for own in range(near, min(near + TOGETHER, last)):
                            turn = turn_of(own)
                            tile = arrived(turn)
                            large = products(tile, sums, SETS, 2)
                            small = products(tile, small, 0, REST)
                            # Of few stages the last one is filled as soon as its products are there.
                            if SOON:
                                await_products(2)
                                if own > near:
                                    read(turn_of(own - 1))
                            refill(turn_of(own - 2 + SOON))
                            sums = group_added(sums, large, 1, 1)
                            if own > near and not SOON:
                                read(turn_of(own - 1))
                            if not SCALED:
                                least_a, most_a, least_b, most_b = seen(
                                    turn, least_a, most_a, least_b, most_b
                                )
                        sums = (
                            group_added_low(sums, small)
                            if SCALED
                            else group_added(sums, small, 1, 0)
                        )
                        read(turn_of(min(near + TOGETHER, last) - 1))
                    sums = group_added(sums, total, 1, 0)
            elif FRESH:
                # Two stages at once: while the sums of one are added, the other's are computed.
                for own in range(0, own_turns - 1, 2):
                    first = begun(turn_of(own), sums)
                    second = begun(turn_of(own + 1), sums)
                    refill(turn_of(own - 2))
                    refill(turn_of(own - 1))
                    sums = group_added(sums, first, 1, 1)
                    read(turn_of(own))
                    sums = group_added(sums, second, 1, 0)
                    read(turn_of(own + 1))
                if own_turns % 2:
                    first = begun(turn_of(own_turns - 1), sums)
                    sums = group_added(sums, first, 1, 0)
                    read(turn_of(own_turns - 1))
            else:
                # One stage behind the other, the sums in the tensor cores' hands until the last.
                for own in range(own_turns):
                    sums = begun(turn_of(own), sums)
                    refill(turn_of(own - AHEAD - 1))
                    await_products(AHEAD)
                    if own >= AHEAD:
                        read(turn_of(own - AHEAD))
                sums = group_added(sums, sums, 0, 0)
                for own in range(max(own_turns - AHEAD, 0), own_turns):
                    read(turn_of(own))
            done += turns
            # As in `product_wgmma.py`, of the first parts: a part below 2^-126 may count as zero, which a
            # factor of 2^-101 or more does not notice.
            low = min(
                min(least_a & uint32(0xFFFF), least_a >> uint32(16)),
                min(least_b & uint32(0xFFFF), least_b >> uint32(16)),
            )
            top = max(
                max(most_a & uint32(0xFFFF), most_a >> uint32(16)),
                max(most_b & uint32(0xFFFF), most_b >> uint32(16)),
            )
            small = cuda.syncthreads_or(int32(low < uint32(26 << 7)))
            large = cuda.syncthreads_or(int32(top > uint32(147 << 7)))
            unsure = FLOAT(0)
            if small:
                unsure = FLOAT(math.inf) if large else FLOAT(int32(K)) * FLOAT(2.07e-25)
            anew = 0
            if SCALED and multiplies:
                # What they are in doubt about is NaN: rows and columns lie on both sides of a barrier.
                sums = scaled_sums(
                    sums, staged, packs + HEADERS + group_y * 64 + quarter * 16,
                    packs + HEADERS + BM + group_x * WN, BM + BN, lane,
                )  # fmt: skip
            if PARTED and SLICES == 1:
                doubted = any_unsure(sums, unsure) if multiplies else False
                anew = 2 * cuda.syncthreads_or(doubted)
            at = packs + rank * (BM * (BN + 8))
            if TRANSPOSED and multiplies:
                mma_store_across(
                    staged, at + group_x * WN * (BM + 4) + group_y * 64 + quarter * 16,
                    BM + 4, sums, WN, lane,
                )  # fmt: skip
            elif multiplies:
                mma_store(
                    staged, at + (group_y * 64 + quarter * 16) * (BN + 8) + group_x * WN,
                    BN + 8, sums, WN, lane,
                )  # fmt: skip
            cuda.syncthreads()
            if SLICES > 1:
                # A thread reads what others store of a sum, and is the one that joins it.
                wrong = int32(0)
                for i in range(BM * BN // THREADS):
                    if TRANSPOSED:
                        x, y = divide(thread + i * THREADS, BM)
                    else:
                        y, x = divide(thread + i * THREADS, BN)
                    at = packs + (x * (BM + 4) + y if TRANSPOSED else y * (BN + 8) + x)
                    total = staged[at]
                    for other in range(1, SLICES):
                        total += staged[at + other * (BM * (BN + 8))]
                    if PARTED and not (unsure <= abs(total) < math.inf):
                        wrong = int32(1)
                        # What one block is in doubt about, all of a cluster are.
                        total = FLOAT(math.nan) if RANKS > 1 else total
                    staged[at] = total
                anew = 2 * cuda.syncthreads_or(wrong)
            # Of blocks that share a tile each adds up all their sums of some rows, or columns where these lie
            # apart, which then leave.
            m_own, c_own = RANK * (BM // RANKS), 0
            leaves = packs + m_own * (BN + 8)
            if TRANSPOSED:
                m_own, c_own = 0, RANK * (BN // RANKS)
                leaves = packs + c_own * (BM + 4)
            if RANKS > 1:
                meet_cluster()
                add_ranks(
                    staged, leaves + warp * (SUMS // (8 * RANKS)), SUMS // (8 * RANKS), RANKS
                )  # fmt: skip
                if PARTED:
                    # The sum of what is in doubt is NaN.
                    anew, unsure = 2, FLOAT(0)
                cuda.syncthreads()
            LEAVE(
                OPERANDS, staged, leaves, (thread, THREADS),
                (BM // (1 + (RANKS - 1) * (1 - TRANSPOSED)), BN // (1 + (RANKS - 1) * TRANSPOSED)),
                (0, 0, m + m_own, c + c_own), (m1, c0, c1),
                VECTOR, anew, unsure, max(m0 - (m + m_own), 0),
            )  # fmt: skip
            cuda.syncthreads()
            if RANKS > 1:
                # What a block has summed is there until all others have read it.
                meet_cluster()
    if thread == 0:
        for stage in range(2 * STAGES):
            close_barrier(staged, 2 * stage)
    cuda.syncthreads()
