// A row-wise program: its batch is cut into one share per vEU, and a share never leaves its vEU.
// RUN: irkit-opt %s --to=schedule --device=test4 --check-semantics | filecheck %s
// RUN: irkit-opt %s -t 'numba{target=cpu}' --device=cpu4 | filecheck %s --check-prefix=CPU
// RUN: irkit-opt %s -t 'numba{target=cuda}' | filecheck %s --check-prefix=CUDA

// CHECK:     task.program @main_schedule of @main attributes {device = @test4, arena_bytes = 0 : i64, row_bytes = {{[1-9].*}} : i64
// CHECK-NOT: wait
// CHECK:     task.append @gemm_0 to [0:3] wave 0 reads(%x, %w)
// CHECK-NOT: wait
// CHECK:     task.append @softmax_0 to [0:3] wave 1 reads(
// CPU:       Port('output0', 'float32', (-1, 3)),
// CPU:       Appended(
// CPU:       0: gemm_0
// CPU:       1: softmax_0
// CUDA:      Port('output0', 'float32', (-1, 3)),
func.func @main(%x: tensor<?x4xf32>, %w: tensor<4x3xf32>) -> tensor<?x3xf32> {
  %0 = graph.matmul %x, %w : (tensor<?x4xf32>, tensor<4x3xf32>) -> tensor<?x3xf32>
  %1 = graph.softmax %0 {axis = 1 : i64} : (tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return %1 : tensor<?x3xf32>
}
