// RUN: irkit-opt %s --split-input-file --verify-diagnostics -p verify-streams

// An event is missing.
// expected-error@unknown {{pass 'verify-streams' failed: schedule violates rule 'race': read after write on 'x': task 0 'a' on stream 1 (user.py:7) does not happen before task 1 'b' on stream 2}}
host.program @race {
  %x = host.buffer {space = "device", nbytes = 64 : i64}
  %0 = host.region %x updates 64 bytes at 0
  %t0 = host.task "a" kernel on 1 uses(%0) {line = "user.py:7"}
  %1 = host.region %x reads 8 bytes at 32
  %t1 = host.task "b" kernel on 2 uses(%1)
}

// -----

// expected-error@unknown {{schedule violates rule 'access': task 0 'a' on stream 1 reads bytes 60 to 68 of 'x', which has 64}}
host.program @outside {
  %x = host.buffer {space = "device", nbytes = 64 : i64}
  %0 = host.region %x reads 8 bytes at 60
  %t0 = host.task "a" kernel on 1 uses(%0)
}

// -----

// expected-error@unknown {{schedule violates rule 'placement': 1 tasks have 0 places}}
host.program @unplaced {
  %t0 = host.task "a" kernel
}
