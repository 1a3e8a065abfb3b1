// RUN: irkit-opt %s -p specialise-batch{size=4} | filecheck %s
// RUN: irkit-run %s --level=graph | filecheck %s --check-prefix=OUT
// RUN: irkit-run %s --level=tensor | filecheck %s --check-prefix=OUT
// Where there are no elements, those that are left do not tell how large the dynamic dimension is.

// CHECK: graph.reshape %x {shape = array<i64: 4, 0>} : (tensor<0x1x4xf32>) -> tensor<4x0xf32>
// OUT:   output0: float32[3, 0]
func.func @main(%x: tensor<0x1x?xf32>) -> tensor<?x0xf32> {
  %y = graph.reshape %x {shape = array<i64: -9223372036854775808, 0>}
    : (tensor<0x1x?xf32>) -> tensor<?x0xf32>
  func.return %y : tensor<?x0xf32>
}
