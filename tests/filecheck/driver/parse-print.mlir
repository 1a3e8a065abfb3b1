// RUN: irkit-opt %s | filecheck %s
// RUN: irkit-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC
// RUN: irkit-opt %s --print-op-generic | irkit-opt - | filecheck %s
// RUN: irkit-opt < %s | filecheck %s
// RUN: irkit-opt %s --verify-roundtrip \
// RUN:   | filecheck %s

// CHECK:      builtin.module {
// CHECK-NEXT:   func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
// CHECK-NEXT:     %w = arith.constant dense_resource<w> : tensor<4xf32>
// CHECK-NEXT:     %[[Y:.*]] = graph.add %x, %w : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
// CHECK-NEXT:     func.return %[[Y]] : tensor<?x4xf32>

// GENERIC:      "builtin.module"() ({
// GENERIC-NEXT:   "func.func"()
// GENERIC:          "graph.add"(%x, %w) : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %w = arith.constant dense_resource<w> : tensor<4xf32>
  %0 = graph.add %x, %w : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  func.return %0 : tensor<?x4xf32>
}
