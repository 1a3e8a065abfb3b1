// RUN: irkit-opt %s --to=schedule --device=test4 | filecheck %s
// RUN: irkit-opt %s --to=schedule --device=h200 | filecheck %s

// Elements are 16 bits in memory and f32 in arithmetic.
// CHECK: task.roperator @map_0
// CHECK: arith.extf %{{.*}} : f16 to f32
// CHECK: arith.maximumf {{.*}} : f32
// CHECK: arith.truncf %{{.*}} : f32 to f16
// CHECK: task.buffer {space = "input", port = 0 : i64} : tensor<?x8xf16>
func.func @main(%x: tensor<?x8xf16>) -> tensor<?x8xf16> {
  %0 = graph.relu %x : (tensor<?x8xf16>) -> tensor<?x8xf16>
  return %0 : tensor<?x8xf16>
}
