// RUN: irkit-opt %s --to=schedule --device=h200 | filecheck %s
// RUN: not irkit-opt %s --to=task --device=cpu2 2>&1 | filecheck %s --check-prefix=CPU

// Loops bound to threads are a GPU's: its rKernel is the nest, in the grid and with the scratch of the schedule.

// CHECK-LABEL: task.roperator @gemm_0
// CHECK-SAME:    rkernel = "generated.nest", grid = array<i64: 4, 1>
// CHECK-SAME:    scratch = 2304
// CPU: 'bind' of 'mt' to threads, of which only a GPU's blocks have several
func.func @main(%a: tensor<64x24xf32>, %b: tensor<24x32xf32>) -> tensor<64x32xf32> {
  %c = graph.expression %a, %b {text = "C(m, n) +=! A(m, k) * B(k, n)", schedule = #loop.schedule<"for m, n, k of A, B; bind m to veu in 4; split m by 16 as mo, mb; split mb by 4 as mt, mi; split n by 16 as no, nb; split nb by 4 as nt, ni; split k by 8 as ko, ki; reorder mo, no, ko, ki, mt, nt, mi, ni; bind mt to thread; bind nt to thread; unroll mi; unroll ni; cache A at ko in 2; cache B at ko in 2">} : (tensor<64x24xf32>, tensor<24x32xf32>) -> tensor<64x32xf32>
  func.return %c : tensor<64x32xf32>
}
