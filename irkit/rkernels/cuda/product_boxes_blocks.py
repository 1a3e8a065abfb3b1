"""The template of matrix products whose tiles the copy engine copies; `product_boxes.py` has its rKernels."""

from __future__ import annotations

RKERNELS = ()


def product_boxes(task, tasks, rows, scratch, OPERANDS, MAPS):
    b0, b1, m0, m1, l0, l1, c0, c1 = PART(task, tasks, rows)
    thread = thread_index()
    warp, lane = divide(thread, 32)
    warp = same_in_warp(warp)
    group, quarter = divide(warp, 4)
    group_y, group_x = divide(group, BN // WN)
    staged = shared_of(float32(0), scratch)
    # First the barriers, two words each: of stages that are there, then of stages that were read.
    packs = aligned_place(staged, 4 * STAGES)
    left = packs + group_y * (64 * 32 * HIGH)
    right = packs + BM * 32 * PLANES + group_x * (WN * 32)
    if not BY_K:
        right = packs + BM * 32 * PLANES + group_x * WN // 64 * (BK * 32) + group_x * WN % 64 // 2
    own = packs + STAGES * STAGE + warp * OWN
    # Each of the blocks that share a tile has the products of some stages.
    stages = (K + BK - 1) // BK
    start = stages * RANK // RANKS
    turns = stages * (RANK + 1) // RANKS - start
    k_first = start * BK
    # Boxes begin at multiples of 16 bytes.
    c_first = c0 - c0 % (8 - 7 * BY_K)
    across = (c1 - c_first + BN - 1) // BN
    down = (m1 - m0 + BM - 1) // BM
    tiles = (b1 - b0) * down * across
    everything = tiles * turns if VECTOR else 0

    # Which tile a number is: of the batch, its first row and column.
    def tile_at(number):
        above, beside = divide32(number, across)
        b, y = divide32(above, down)
        return b0 + b, m0 + y * BM, c_first + beside * BN

    # The stage `on` behind another in the ring, and the parity of the phase that is awaited there.
    def following(stage, parity, on):
        return (stage + on - STAGES, 1 - parity) if stage >= STAGES - on else (stage + on, parity)

    # Ask for a stage, of terms from k on of a tile.
    def fill(stage, k, b, m, c):
        tile = packs + stage * STAGE
        expect(staged, 2 * stage, 4 * STAGE)
        for plane in range(PLANES):
            copy_box(staged, tile + plane * (BM * 32), MAP_A, k + plane * PLANE, m, b, 2 * stage)
        tile += BM * 32 * PLANES
        if BY_K:
            for plane in range(PLANES):
                copy_box(
                    staged, tile + plane * (BN * 32), MAP_B, k + plane * PLANE, c, b, 2 * stage
                )
        else:
            for plane in range((BN + 63) // 64):
                copy_box(staged, tile + plane * (BK * 32), MAP_B, c + plane * 64, k, b, 2 * stage)

    # Ask for the next `count` of its stages, each as soon as its place was read: of the first, what lay there
    # before counts as read. Few instructions lie between them, for one lane runs slowly. Of a warp that has
    # nothing else to do one lane alone waits: others might find the phase behind the one that they wait for.
    def asked(count, pending, stage, parity, turn, number, b, m, c):
        count = min(count, pending)
        for _ in range(count):
            await_phase(staged, 2 * (STAGES + stage), parity)
            if GROUPS == 1 or lane == 0:
                fill(stage, k_first + turn * BK, b, m, c)
            stage, parity = following(stage, parity, ASKERS)
            turn += ASKERS
            if turn >= turns:
                over, turn = divide32(turn, turns)
                number += over
                b, m, c = tile_at(number)
        return pending - count, stage, parity, turn, number, b, m, c

    def read(stage):
        cuda.syncwarp()
        if lane == 0:
            arrive(staged, 2 * (STAGES + stage))

    # Products of a stage, begun once it is there: behind `given` sums, or `fresh` ones.
    def begun(stage, parity, given, fresh):
        await_phase(staged, 2 * stage, parity)
        return products(stage, 0, given, fresh)

    # Those of 64 rows, from `row` on.
    def products(stage, row, given, fresh):
        tile = stage * STAGE
        return group_products(
            given, staged, tile + left + row * 32, tile + right, WN, BK, 32,
            BM * 32, (BN * BY_K + BK * (1 - BY_K)) * 32, BY_K, KIND, fresh, 0,
        )  # fmt: skip

    # Some columns of the warp's sums go to shared memory, and leave it.
    def put(place, sums, piece):
        if TRANSPOSED:
            store_piece_across(staged, place, 16 + 4, sums, PIECE, piece, lane)
        else:
            store_piece(staged, place, PIECE + 8, sums, PIECE, piece, lane)

    def leave(place, b, y, x):
        # An operand that does not start at a multiple of 16 bytes cannot be copied.
        LEAVE(
            OPERANDS, staged, place, (lane, 32), (16, PIECE), (b, 0, y, x), (m1, c0, c1),
            VECTOR, 1 - VECTOR, FLOAT(0),
        )  # fmt: skip

    if thread == 0:
        for stage in range(STAGES):
            open_barrier(staged, 2 * stage, 1)
            open_barrier(staged, 2 * (STAGES + stage), 4 * GROUPS)
    publish_barriers()
    cuda.syncthreads()
    # Where one group multiplies, warps of the other ask for every ASKERS-th stage each; where two do, the
    # first warp asks for all.
    asker = warp - 4 * (2 - GROUPS)
    asks = 0 <= asker < ASKERS and (lane == 0 or GROUPS == 2) and everything > asker
    pending = (everything - asker + ASKERS - 1) // ASKERS if asks else 0
    place, empty = max(asker, 0), 1
    number, turn = divide32(place, turns)
    b, m, c = tile_at(number)
    if asks:
        # What others wrote, here or in memory, is for asynchronous copies to see.
        publish_barriers()
        see_map(MAP_A)
        see_map(MAP_B)
        if GROUPS == 2:
            pending, place, empty, turn, number, b, m, c = asked(
                STAGES, pending, place, empty, turn, number, b, m, c
            )
    for tile in range(tiles if GROUPS == 1 and group == 1 else 0):
        if asks:
            # Those of this tile.
            last = (tile + 1) * turns - asker + ASKERS - 1
            count = last // ASKERS - (last - turns) // ASKERS
            pending, place, empty, turn, number, b, m, c = asked(
                count, pending, place, empty, turn, number, b, m, c
            )
        if RANKS > 1:
            # All threads of all blocks meet, those too that multiply nothing.
            cuda.syncwarp()
            if OVER:
                cuda.syncthreads()
            meet_cluster()
            meet_cluster()
    stage, parity = 0, 0
    for tile in range(tiles if GROUPS == 2 or group == 0 else 0):
        sums = zeros_like(staged, WN // 2)
        more = zeros_like(staged, WN // 2 * (HIGH - 1))
        if VECTOR:
            if FRESH and HIGH > 1:
                # Two stages at once: while the sums of some rows are added, those of others are computed.
                for pair in range(turns // 2):
                    first = begun(stage, parity, sums, 1)
                    second = products(stage, 64, sums, 1)
                    one = stage
                    stage, parity = following(stage, parity, 1)
                    sums = group_added(sums, first, 1, 1)
                    first = begun(stage, parity, sums, 1)
                    more = group_added(more, second, 1, 1)
                    read(one)
                    second = products(stage, 64, sums, 1)
                    sums = group_added(sums, first, 1, 1)
                    more = group_added(more, second, 1, 0)
                    read(stage)
                    stage, parity = following(stage, parity, 1)
                if turns % 2:
                    first = begun(stage, parity, sums, 1)
                    second = products(stage, 64, sums, 1)
                    sums = group_added(sums, first, 1, 1)
                    more = group_added(more, second, 1, 0)
                    read(stage)
                    stage, parity = following(stage, parity, 1)
            elif FRESH:
                # Two stages at once: while the sums of one are added, the other's are computed.
                for pair in range(turns // 2):
                    first = begun(stage, parity, sums, 1)
                    one = stage
                    stage, parity = following(stage, parity, 1)
                    second = begun(stage, parity, sums, 1)
                    if GROUPS == 2 and asks and pair > 0:
                        pending, place, empty, turn, number, b, m, c = asked(
                            2, pending, place, empty, turn, number, b, m, c
                        )
                    sums = group_added(sums, first, 1, 1)
                    read(one)
                    sums = group_added(sums, second, 1, 0)
                    read(stage)
                    stage, parity = following(stage, parity, 1)
                if turns % 2:
                    first = begun(stage, parity, sums, 1)
                    sums = group_added(sums, first, 1, 0)
                    read(stage)
                    stage, parity = following(stage, parity, 1)
            else:
                # One stage behind the other, the sums in the tensor cores' hands until the last.
                behind = stage
                for n in range(turns):
                    sums = begun(stage, parity, sums, 0)
                    if HIGH > 1:
                        more = products(stage, 64, more, 0)
                    stage, parity = following(stage, parity, 1)
                    if GROUPS == 2 and asks and n > AHEAD:
                        pending, place, empty, turn, number, b, m, c = asked(
                            1, pending, place, empty, turn, number, b, m, c
                        )
                    await_products(AHEAD * HIGH)
                    if n >= AHEAD:
                        read(behind)
                        behind, _ = following(behind, 0, 1)
                sums = group_added(sums, sums, 0, 0)
                if HIGH > 1:
                    more = group_added(more, more, 0, 0)
                for n in range(min(AHEAD, turns)):
                    read(behind)
                    behind, _ = following(behind, 0, 1)
            if GROUPS == 2 and asks:
                # The next tile's terms arrive while the sums of this one leave.
                pending, place, empty, turn, number, b, m, c = asked(
                    turns - 2 * max(turns // 2 - 1, 0) if FRESH else min(AHEAD + 1, turns),
                    pending, place, empty, turn, number, b, m, c,
                )  # fmt: skip
            cuda.syncwarp()
        at_b, at_m, at_c = tile_at(tile)
        y, x = at_m + group_y * (64 * HIGH) + quarter * 16, at_c + group_x * WN
        if RANKS > 1:
            whole = packs + STAGES * STAGE * (1 - OVER) + warp * (OWN * HIGH * WN // PIECE)
            if OVER:
                # All sums of the tile lie where its stages were read.
                cuda.syncthreads()
            for piece in range(WN // PIECE):
                put(whole + piece * OWN, sums, piece)
                if HIGH > 1:
                    put(whole + (WN // PIECE + piece) * OWN, more, piece)
            cuda.syncwarp()
            meet_cluster()
            # The blocks' sums of a piece are added up by one of them.
            for piece in range(RANK, HIGH * WN // PIECE, RANKS):
                below, beside = divide32(piece, WN // PIECE)
                add_ranks(staged, whole + piece * OWN, OWN, RANKS)
                cuda.syncwarp()
                leave(whole + piece * OWN, at_b, y + below * 64, x + beside * PIECE)
            if OVER:
                # The next tile's terms come there.
                publish_tiles()
            cuda.syncwarp()
            meet_cluster()
        else:
            for piece in range(WN // PIECE):
                put(own, sums, piece)
                cuda.syncwarp()
                leave(own, at_b, y, x + piece * PIECE)
                cuda.syncwarp()
                if HIGH > 1:
                    put(own, more, piece)
                    cuda.syncwarp()
                    leave(own, at_b, y + 64, x + piece * PIECE)
                    cuda.syncwarp()
    cuda.syncthreads()
    if thread == 0:
        for stage in range(2 * STAGES):
            close_barrier(staged, 2 * stage)
    cuda.syncthreads()
