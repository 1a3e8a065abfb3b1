// RUN: irkit-opt %s -p assign-streams,verify-streams | filecheck %s
// RUN: irkit-opt %s -p 'assign-streams{streams=1},verify-streams' | filecheck %s --check-prefix=ONE

// VEC: two squares side by side, their sum behind both; the second event alone is needed.
// CHECK: host.program @vec attributes {verified = "sha256:{{.*}}"} {
// CHECK: host.task "square" kernel on 1 uses(%{{.*}}) {line = "vec.py:1"}
// CHECK: %[[T:.*]] = host.task "square" kernel on 2 uses
// CHECK: host.task "reduce" kernel on 1 wait(%[[T]]) uses
// CHECK: host.task "look" function on 0 wait(%{{.*}}) uses
// ONE:   host.task "square" kernel on 1 uses
// ONE:   host.task "square" kernel on 1 uses
// ONE:   host.task "reduce" kernel on 1 uses
host.program @vec {
  %x = host.buffer {space = "device", nbytes = 64 : i64}
  %y = host.buffer {space = "device", nbytes = 64 : i64}
  %z = host.buffer {space = "device", nbytes = 8 : i64}
  %0 = host.region %x updates 64 bytes at 0 {label = "x"}
  %t0 = host.task "square" kernel uses(%0) {line = "vec.py:1"}
  %1 = host.region %y updates 64 bytes at 0
  %t1 = host.task "square" kernel uses(%1)
  %2 = host.region %x reads 64 bytes at 0
  %3 = host.region %y reads 64 bytes at 0
  %4 = host.region %z updates 8 bytes at 0
  %t2 = host.task "reduce" kernel uses(%2, %3, %4)
  %5 = host.region %z reads 8 bytes at 0
  %t3 = host.task "look" function uses(%5)
}

// Columns of one matrix are apart, a row of it meets both.
// CHECK: host.program @columns attributes {verified = "sha256:{{.*}}"} {
// CHECK: host.task "left" kernel on 1 uses
// CHECK: %[[R:.*]] = host.task "right" kernel on 2 uses
// CHECK: host.task "row" kernel on 1 wait(%[[R]]) uses
host.program @columns {
  %a = host.buffer {space = "device", nbytes = 64 : i64}
  %0 = host.region %a writes 8 bytes at 0 of [4] by [16]
  %t0 = host.task "left" kernel uses(%0)
  %1 = host.region %a writes 8 bytes at 8 of [4] by [16]
  %t1 = host.task "right" kernel uses(%1)
  %2 = host.region %a reads 16 bytes at 16
  %t2 = host.task "row" kernel uses(%2)
}
