// RUN: irkit-opt %s -p 'convert-graph-to-tensor,fuse-elementwise' --check-semantics | filecheck %s
// Of an unsigned constant the scalar in a body is signless, as all of `arith` is.

// CHECK:      %[[TWO:.*]] = arith.constant -2 : i64
// CHECK-NEXT: builtin.unrealized_conversion_cast %[[TWO]] : i64 to ui64
// CHECK:      arith.subi
func.func @main(%x: tensor<4xui64>) -> tensor<4xui64> {
  %two = arith.constant dense<18446744073709551614> : tensor<4xui64>
  %0 = graph.sub %x, %two : (tensor<4xui64>, tensor<4xui64>) -> tensor<4xui64>
  func.return %0 : tensor<4xui64>
}
