"""Values that are carried with their flag in the kernels of a CUDA module, as text: the persistent kernel
copies a mailbox to shared memory before an rTask, and stores the rTask's piece of a result behind it.
"""

from __future__ import annotations

RESOLVING = "        resolve_all(words, rows_padded)\n"
"""What finds the operands of an rTask, behind which mailboxes are read."""
MAIL = '''\
@fused
def gather(mail, elements, place, tag):
    """Copy a mailbox to shared memory, each element once it is there: it comes with the run's number."""
    staged = shared_of(uint32(0), place)
    element = thread_index()
    while element < elements:
        word = ld_relaxed64(mail + 8 * element)
        while uint32(word >> uint64(32)) != tag:
            word = ld_relaxed64(mail + 8 * element)
        staged[element] = uint32(word)
        element += THREADS


@fused
def publish(mail, place, plain, piece_first, rows, run, distance, tag):
    """Store this rTask's piece of a result, with the run's number in a mailbox, and as it is."""
    staged = shared_of(uint32(0), place)
    number = thread_index()
    while number < rows * run:
        row, column = divide(number, run)
        element = piece_first + row * distance + column
        word = uint64(staged[element]) | (uint64(tag) << uint64(32))
        st_relaxed64(mail + 8 * element, word)
        u32p(plain)[element] = staged[element]
        number += THREADS
'''

_GATHERING = """\
        for number_of in range(words[MAIL_AT]):
            at = MAIL_AT + 2 + 3 * number_of
            gather(counters + words[at], words[at + 1], words[at + 2], uint32(epoch))
"""

_PUBLISHING = """\
        table = shared_of(int64(0), BASE_TABLE)
        for number_of in range(words[MAIL_AT + 1]):
            at = MAIL_AT + 2 + 3 * GATHERS + 8 * number_of
            publish(
                counters + words[at],
                words[at + 1],
                table[words[at + 2] + 1] + words[at + 3],
                words[at + 4],
                words[at + 5],
                words[at + 6],
                words[at + 7],
                uint32(epoch),
            )
        # What is signalled is all stored, and the record's place is free for another.
        cuda.syncthreads()
"""


def carrying(text: str) -> str:
    """The persistent kernel of a program that carries values."""
    signalling = "        # The last warp signals"
    text = text.replace(RESOLVING, RESOLVING + _GATHERING)
    return text.replace(signalling, _PUBLISHING + signalling)
