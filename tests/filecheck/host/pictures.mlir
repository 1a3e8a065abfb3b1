// A plan of tasks is drawn as schedules are; without streams it is none yet, and no function to run.
// RUN: irkit-opt %s -p assign-streams --schedule-view %t.svg -o %t.mlir
// RUN: cat %t.svg | filecheck %s
// RUN: not irkit-opt %s --schedule-view %t.svg 2>&1 | filecheck %s --check-prefix=BARE
// RUN: not irkit-run %s 2>&1 | filecheck %s --check-prefix=NORUN

// CHECK: <svg
// CHECK: stream 1
// CHECK: square
// BARE: error: --schedule-view needs streams, 'host.program' @vec has none: assign-streams gives them
// NORUN: pictures.mlir:12:1: error: expected a function @main, got a plan of tasks, 'host.program' @vec
host.program @vec {
  %x = host.buffer {space = "device", nbytes = 64 : i64}
  %0 = host.region %x updates 64 bytes at 0 {label = "x"}
  %t0 = host.task "square" kernel uses(%0) {line = "vec.py:1"}
}
