// RUN: irkit-opt %s --to=graph | filecheck %s --check-prefix=GRAPH
// RUN: irkit-opt %s --to=tensor | filecheck %s --check-prefix=TENSOR
// RUN: irkit-opt %s --to=task --device=test4 | filecheck %s --check-prefix=TASK
// RUN: irkit-opt %s --to=schedule --device=test4 | filecheck %s --check-prefix=SCHEDULE
// RUN: irkit-opt %s --to=schedule --device=test4 --check-semantics | filecheck %s --check-prefix=SCHEDULE
// RUN: irkit-opt %s -t 'numba{target=cpu}' | filecheck %s --check-prefix=NUMBA

// One level after the other gives the same.
// RUN: irkit-opt %s --to=tensor | irkit-opt - --to=task --device=test4 | irkit-opt - --to=schedule \
// RUN:   | filecheck %s --check-prefix=SCHEDULE
// RUN: irkit-opt %s --to=tensor -o %t.mlir && not irkit-opt %t.mlir --to=graph 2>&1 \
// RUN:   | filecheck %s --check-prefix=BACK

// Every level computes the same.
// RUN: irkit-run %s --level=graph --seed=5 | filecheck %s --check-prefix=VALUES
// RUN: irkit-run %s --level=tensor --seed=5 | filecheck %s --check-prefix=VALUES
// RUN: irkit-run %s --level=task --seed=5 --device=test4 | filecheck %s --check-prefix=VALUES
// RUN: irkit-run %s --level=schedule --seed=5 --device=test4 | filecheck %s --check-prefix=VALUES
// RUN: not irkit-opt %s --to=schedule --device=tset4 2>&1 | filecheck %s --check-prefix=DEVICE

// GRAPH:      graph.relu
// GRAPH-NOT:  linalg
// TENSOR:     linalg.generic
// TENSOR-NOT: graph.
// TASK:       task.roperator @
// TASK:       rkernel
// TASK:       task.launch @
// SCHEDULE:   task.vdevice @test4
// SCHEDULE:   task.program @main
// SCHEDULE:   task.append @
// NUMBA:      from numba import
// NUMBA:      Appended(
// VALUES:      output0: float32[3, 4]
// VALUES-NEXT: {{.*}}0.         0.27566016 0.         0.
// VALUES-NEXT: {{.*}}0.17778134 1.7097255  0.         0.
// VALUES-NEXT: {{.*}}0.         3.2348022  0.4756512  0.

// BACK:       error: the module is at the tensor level: it cannot go back to the graph level
// DEVICE:     error: pass 'read-as-it-lies' failed: unknown device 'tset4'; did you mean 'test4'?
func.func @main(%x: tensor<?x4xf32>, %w: tensor<4xf32>) -> tensor<?x4xf32> {
  %0 = graph.add %x, %w : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %1 = graph.relu %0 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %1 : tensor<?x4xf32>
}
