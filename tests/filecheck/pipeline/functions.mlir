// Every function of a module has a schedule of its own, proved against it; equal bodies are one rOperator.
// RUN: irkit-opt %s --to=schedule --device=test4 | filecheck %s
// RUN: irkit-opt %s --to=schedule --device=test4 | irkit-opt - -p verify-schedule | filecheck %s
// RUN: irkit-opt %s --to=schedule --device=test4 --check-semantics | filecheck %s
// RUN: irkit-run %s --level=schedule --device=test4 --seed=1 | filecheck %s --check-prefix=VALUES
// RUN: irkit-opt %s -t numba --device=test4 | filecheck %s --check-prefix=NUMBA

// CHECK:      task.roperator @map_0
// CHECK:      task.roperator @gemm_0
// CHECK-NOT:  task.roperator
// CHECK:      func.func @main
// CHECK-NEXT:   task.launch @map_0
// CHECK:      task.program @main_schedule of @main
// CHECK-SAME: verified = "sha256:
// CHECK:        task.append @map_0
// CHECK-NOT:    task.append
// CHECK:      func.func @other
// CHECK:      task.program @other_schedule of @other
// CHECK-SAME: verified = "sha256:
// CHECK:        task.append @gemm_0
// CHECK:        task.append @map_0

// @main is what runs.
// VALUES:     output0: float32[4, 4]
// NUMBA:      kernels=('map_0',)
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = graph.relu %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %0 : tensor<4x4xf32>
}
func.func @other(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = graph.matmul %x, %y : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = graph.relu %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %0, %1 : tensor<4x4xf32>, tensor<4x4xf32>
}
