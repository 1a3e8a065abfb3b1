// RUN: irkit-opt %s | filecheck %s
// RUN: irkit-opt %s | irkit-opt --print-op-generic | irkit-opt | filecheck %s
// RUN: irkit-opt %s -p 'convert-graph-to-tensor' --check-semantics | filecheck %s --check-prefix=TENSOR
// RUN: irkit-opt %s --to=task --device=cpu2 | filecheck %s --check-prefix=TASK
// RUN: irkit-opt %s --to=schedule --device=cpu2 --check-semantics | filecheck %s --check-prefix=CHOSEN

// A product by a schedule of its own: the grid follows from what is bound, the scratch from what is copied.

// CHECK:      %c = graph.expression %a, %b {text = "C(m, n) +=! A(m, k) * B(k, n)",
// CHECK-SAME: schedule = #loop.schedule<"for m, n, k of A, B; bind m to veu in 2; split n by 8 as no, ni; reorder no, m, k, ni; vectorize ni; cache B at no">}
// TENSOR:      linalg.generic
// TENSOR-SAME: irkit.schedule = #loop.schedule<"for m, n, k of A, B; bind m to veu in 2;
// TASK:        rkernel = "generated.nest", grid = array<i64: 2, 1>, parameters = {}
// TASK-SAME:   scratch = 160 : i64
// TASK-SAME:   schedule = #loop.schedule<"for m, n, k of A, B; bind m to veu in 2;
// CHOSEN:      task.roperator @gemm_0
// CHOSEN-SAME: rkernel = "generated.nest"
// CHOSEN-SAME: schedule = #loop.schedule<"for m, n, k of A, B; bind m to veu in 2;
func.func @main(%a: tensor<6x4xf32>, %b: tensor<4x11xf32>) -> tensor<6x11xf32> {
  %c = graph.expression %a, %b {text = "C(m, n) +=! A(m, k) * B(k, n)", schedule = #loop.schedule<"for m, n, k of A, B; bind m to veu in 2; split n by 8 as no, ni; reorder no, m, k, ni; vectorize ni; cache B at no">} : (tensor<6x4xf32>, tensor<4x11xf32>) -> tensor<6x11xf32>
  func.return %c : tensor<6x11xf32>
}
