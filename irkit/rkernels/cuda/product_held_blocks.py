"""The template of products of which warp groups hold a factor; `product_held.py` has its rKernels."""

from __future__ import annotations

import math

RKERNELS = ()


def product_held(task, tasks, rows, scratch, OPERANDS, MAPS):
    b0, b1, m0, m1, l0, l1, c0, c1 = PART(task, tasks, rows)
    # The side that is held, and the one that is shared.
    h0, h1, s0, s1 = c0, c1, m0, m1
    if ROWS:
        h0, h1, s0, s1 = m0, m1, c0, c1
    thread = thread_index()
    warp, lane = divide(thread, 32)
    warp = same_in_warp(warp)
    group, quarter = divide(warp, 4)
    eighth, quad = divide(lane, 4)
    # Of groups that hold the same each has some of the stages, and all that these need.
    rank = group if SLICES > 1 else group - group
    team, beside = thread - rank * TEAM, (group - rank) * 64
    staged = shared_of(float32(0), scratch)
    # First the barriers, two words each: of stages that are there, then of stages that were read; of scaled
    # terms, behind them, those of what is shared: it is read after what is held, and filled again so.
    packs = aligned_place(staged, 4 * STAGES * (1 + SCALED))
    aside = 4 * STAGES * SCALED
    # Which of what is held a lane has: eight that its warp reads from as many banks.
    begin, turned = quarter * 16, eighth
    if KIND == 0 and BY_TERMS:
        turned = eighth % 4 * 2 + eighth // 4
    if KIND == 1 and not BY_TERMS:
        begin, turned = quarter // 2 * 32 + quarter % 2 * 4, eighth // 4 * 16 + eighth % 4
    # Each of the blocks that share a tile has some stages, one behind another.
    stages = (K + BK - 1) // BK
    begins = stages * RANK // RANKS
    turns = stages * (RANK + 1) // RANKS - begins
    own_turns = (turns - rank + SLICES - 1) // SLICES
    if thread == 0:
        for stage in range(STAGES):
            open_barrier(staged, 2 * stage, 1)
            open_barrier(staged, 2 * (STAGES + stage), TEAM // 32)
            if SCALED:
                open_barrier(staged, aside + 2 * stage, 1)
                open_barrier(staged, aside + 2 * (STAGES + stage), TEAM // 32)
    publish_barriers()
    cuda.syncthreads()
    done, mark = 0, uint32(0)
    for b in range(b0, b1):
        # Boxes begin at multiples of 16 bytes.
        for h in range(h0 - h0 % (4 - 3 * BY_TERMS), h1, HELD):
            least, most = uint32(0xFFFFFFFF), uint32(0)
            # Groups of 8 are packed together, whatever the grid.
            for s in range(s0 - s0 % (8 - 7 * KIND), s1, SHARED):
                wide, groups = SHARED, GROUPS_B if ROWS else GROUPS_A
                if KIND == 0:
                    wide = min(SHARED, groups * 8 - s)

                # One warp asks for a stage: what is held in boxes, a lane each part of what is shared.
                def copy_held(turn, slot):
                    k, tile, there = (begins + turn) * BK, packs + slot * STAGE, 2 * slot
                    if BY_TERMS:
                        for n in range(BK // 32):
                            copy_box(
                                staged, tile + n * (HELD * 32), MAP_HELD, k + n * 32, h, b, there
                            )
                    else:
                        for n in range(HELD // 32):
                            copy_box(
                                staged, tile + n * (BK * 32), MAP_HELD, h + n * 32, k, b, there
                            )

                def copy_parts(turn, slot, there):
                    row = ((begins + turn) * PARTS + lane) * (groups * 8) + s
                    place = packs + slot * STAGE + HELD * BK + lane * (SHARED * ROW)
                    if ROWS:
                        copy_rows(staged, place, PACKED_B, fixed(row * BK), wide * ROW * 4, there)
                    else:
                        copy_rows(staged, place, PACKED_A, fixed(row * BK), wide * ROW * 4, there)

                def fill_held(turn, slot):
                    if lane == 0:
                        expect(staged, 2 * slot, HELD * BK * 4)
                        copy_held(turn, slot)

                def fill_shared(turn, slot):
                    if lane == 0:
                        expect(staged, aside + 2 * slot, wide * PARTS * ROW * 4)
                    if lane < PARTS:
                        copy_parts(turn, slot, aside + 2 * slot)

                def fill(turn, slot):
                    if SCALED:
                        fill_held(turn, slot)
                        fill_shared(turn, slot)
                    else:
                        if lane == 0:
                            expect(staged, 2 * slot, HELD * BK * 4 + wide * PARTS * ROW * 4)
                            copy_held(turn, slot)
                            if KIND == 1:
                                k, tile = (begins + turn) * BK, packs + slot * STAGE
                                copy_box(staged, tile + HELD * BK, MAP_SHARED, k, s, b, 2 * slot)
                        if KIND == 0 and lane < PARTS:
                            copy_parts(turn, slot, 2 * slot)

                # The next of the group's own stages: where it lies, and the parity of its phases.
                def following(slot, phase):
                    after = slot + SLICES
                    return (after - STAGES, 1 - phase) if after >= STAGES else (after, phase)

                def read(place, slot):
                    cuda.syncwarp()
                    if lane == 0:
                        arrive(staged, place + 2 * (STAGES + slot))

                # A stage that all have read that it was for is filled again.
                def refill(own, slot, phase):
                    turn = own * SLICES + rank
                    if (
                        (warp if SLICES == 1 else quarter) == 0
                        and own >= 0
                        and turn + STAGES < turns
                    ):
                        await_phase(staged, 2 * (STAGES + slot), phase)
                        fill(turn + STAGES, slot)

                # The same of what is held of a stage, and of what is shared of the one before.
                def refill_apart(own, slot, phase, before, old):
                    turn = own * SLICES + rank
                    if (warp if SLICES == 1 else quarter) == 0 and turn + STAGES < turns:
                        await_phase(staged, 2 * (STAGES + slot), phase)
                        fill_held(turn + STAGES, slot)
                    turn -= SLICES
                    if (
                        (warp if SLICES == 1 else quarter) == 0
                        and own > 0
                        and turn + STAGES < turns
                    ):
                        await_phase(staged, aside + 2 * (STAGES + before), old)
                        fill_shared(turn + STAGES, before)

                # What the group holds of a stage, in registers, once it is there.
                def taken(slot, phase):
                    await_phase(staged, 2 * slot, phase)
                    tile = packs + slot * STAGE + beside * (32 if BY_TERMS else BK)
                    high = HELD if BY_TERMS else BK
                    return column_terms(
                        staged, tile, begin + turned, quad, BY_TERMS, KIND, BK, high
                    )

                # Magnitudes of the first parts of what is shared.
                def seen(tile, least, most):
                    for i in range((SHARED * ROW // 4 + TEAM - 1) // TEAM):
                        word = 4 * (team + i * TEAM)
                        place, inside = tile + min(word, SHARED * ROW - 4), word < wide * ROW
                        least, most = packed_magnitudes(least, most, staged, place, inside)
                    return least, most

                sums, facts = zeros_like(staged, SHARED // 2), zeros_like(staged, 6)
                if SCALED and VECTOR:
                    # What is said of what is shared, for when the sums are there.
                    for i in range(thread, SHARED, THREADS):
                        line = ((stages * PARTS) * groups * 8 + min(s + i, groups * 8 - 1)) * BK
                        if ROWS:
                            header = row_header(PACKED_B, fixed(line))
                        else:
                            header = row_header(PACKED_A, fixed(line))
                        staged[packs + HEADERS + i] = header[0]
                        staged[packs + HEADERS + SHARED + i] = header[1]
                if VECTOR:
                    if warp == 0:
                        # What others wrote, here or in memory, is for asynchronous copies to see.
                        publish_barriers()
                        see_map(MAP_HELD)
                        see_map(MAP_SHARED)
                        for turn in range(min(STAGES, turns)):
                            fill(turn, divide32(done + turn, STAGES)[1])
                    times, slot = divide32(done + rank, STAGES)
                    phase = times % 2
                    before, old = slot, phase
                    words = taken(slot, phase)
                if VECTOR and SCALED:
                    behind = scale_columns(facts, words)
                    read(0, slot)
                    facts, held = facts_of(behind), taken_over(behind, 6)
                    for own in range(own_turns):
                        await_phase(staged, aside + 2 * slot, phase)
                        tile = packs + slot * STAGE + HELD * BK
                        products = scaled_products(held, staged, tile, SHARED)
                        # While the tensor cores multiply, what was read is asked for anew, and the next stage
                        # is cut.
                        refill_apart(own, slot, phase, before, old)
                        after, new = following(slot, phase)
                        if own == own_turns - 1:
                            after, new = slot, phase
                        behind = scale_columns(facts, taken(after, new))
                        if own < own_turns - 1:
                            read(0, after)
                        sums = columns_added(sums, products, facts)
                        mark = still_held(mark, held)
                        read(aside, slot)
                        before, old, slot, phase = slot, phase, after, new
                        facts, held = facts_of(behind), taken_over(behind, 6)
                elif VECTOR and KIND == 0:
                    behind = cut_columns(least, most, words)
                    least, most, held = behind[-2], behind[-1], taken_over(behind, 2)
                    # Sums of all parts but the first ones' leave the tensor cores but once in TOGETHER
                    # stages.
                    for near in range(0, own_turns, TOGETHER):
                        small = zeros_like(staged, SHARED)
                        for own in range(near, min(near + TOGETHER, own_turns)):
                            tile = packs + slot * STAGE + HELD * BK
                            large = first_products(held, staged, tile, SHARED)
                            small = other_products(small, held, staged, tile, SHARED)
                            # While the tensor cores multiply, the next stage is cut. What is waited for lies
                            # between, or else the assembler would put that behind the products.
                            after, new = following(slot, phase)
                            if own == own_turns - 1:
                                after, new = slot, phase
                            words = taken(after, new)
                            sums = group_added(sums, large, 1, 1)
                            behind = cut_columns(least, most, words)
                            least, most = seen(tile, behind[-2], behind[-1])
                            refill(own - 1, before, old)
                            await_products(0)
                            mark = still_held(mark, held)
                            read(0, slot)
                            before, old, slot, phase = slot, phase, after, new
                            held = taken_over(behind, 2)
                        sums = group_added(sums, small, 1, 0)
                if VECTOR and KIND == 1:
                    for own in range(own_turns):
                        tile = packs + slot * STAGE + HELD * BK
                        sums = column_products(sums, words, staged, tile, SHARED)
                        refill(own - 1, before, old)
                        after, new = following(slot, phase)
                        if own == own_turns - 1:
                            after, new = slot, phase
                        behind = taken(after, new)
                        sums = group_added(sums, sums, 0, 0)
                        mark = still_held(mark, words)
                        read(0, slot)
                        before, old, slot, phase = slot, phase, after, new
                        words = behind
                done += turns * VECTOR
                # As in `product_packed_blocks.py`, of first parts.
                low = min(least & uint32(0xFFFF), least >> uint32(16))
                top = max(most & uint32(0xFFFF), most >> uint32(16))
                tiny = cuda.syncthreads_or(int32(low < uint32(26 << 7)))
                huge = cuda.syncthreads_or(int32(top > uint32(147 << 7)))
                unsure, anew = FLOAT(0), 1 - VECTOR
                if SCALED and VECTOR:
                    # What they are in doubt about is NaN.
                    sums = sure_columns(sums, facts, staged, packs + HEADERS, SHARED, quad)
                if KIND == 0 and VECTOR:
                    if tiny:
                        unsure = FLOAT(math.inf) if huge else FLOAT(int32(K)) * FLOAT(2.07e-25)
                    if SLICES == 1:
                        anew = 2 * cuda.syncthreads_or(any_unsure(sums, unsure))
                # Sums lie in lines of C's rows or, if TRANSPOSED, columns: of what is held or of what is
                # shared.
                at, own_lane = packs + rank * SUMS, turned * 4 + quad
                if ACROSS:
                    mma_store_across(staged, at + beside + begin, PITCH, sums, SHARED, own_lane)
                else:
                    mma_store(staged, at + (beside + begin) * PITCH, PITCH, sums, SHARED, own_lane)
                cuda.syncthreads()
                if SLICES > 1 or (RANKS > 1 and anew == 2):
                    wrong = int32(0)
                    for i in range(HELD * SHARED // THREADS):
                        line, along = divide(thread + i * THREADS, HELD * SHARED // LINES)
                        at = packs + line * PITCH + along
                        total = staged[at]
                        for other in range(1, SLICES):
                            total += staged[at + other * SUMS]
                        if KIND == 0 and not (unsure <= abs(total) < math.inf):
                            wrong = int32(1)
                            # What one block is in doubt about, all of a cluster are.
                            total = FLOAT(math.nan) if RANKS > 1 else total
                        staged[at] = total
                    if SLICES > 1 and KIND == 0 and VECTOR:
                        anew = 2 * cuda.syncthreads_or(wrong)
                # Of blocks that share a tile each adds up all their sums of some lines, which then leave.
                leaves, first = packs + RANK * (LINES // RANKS) * PITCH, RANK * (LINES // RANKS)
                if RANKS > 1:
                    meet_cluster()
                    add_ranks(
                        staged, leaves + warp * (SUMS // (8 * RANKS)), SUMS // (8 * RANKS), RANKS
                    )  # fmt: skip
                    if KIND == 0 and VECTOR:
                        # The sum of what is in doubt is NaN.
                        anew, unsure = 2, FLOAT(0)
                cuda.syncthreads()
                m, c = s + first * (1 - TRANSPOSED), h + first * TRANSPOSED
                high, across = SHARED, HELD
                if ROWS:
                    m, c = h + first * (1 - TRANSPOSED), s + first * TRANSPOSED
                    high, across = HELD, SHARED
                high, across = (high, across // RANKS) if TRANSPOSED else (high // RANKS, across)
                LEAVE(
                    OPERANDS, staged, leaves, (thread, THREADS), (high, across), (b, 0, m, c), (m1, c0, c1),
                    VECTOR, anew, unsure, max(m0 - m, 0),
                )  # fmt: skip
                cuda.syncthreads()
                if RANKS > 1:
                    # What a block has summed is there until all others have read it.
                    meet_cluster()
    if thread == 0:
        for stage in range(2 * STAGES * (1 + SCALED)):
            close_barrier(staged, 2 * stage)
        if mark == uint32(1):
            # What was held is used: registers keep it until here.
            staged[0] = FLOAT(0)
    cuda.syncthreads()
