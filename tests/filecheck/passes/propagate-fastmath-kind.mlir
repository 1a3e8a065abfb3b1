// RUN: not irkit-opt %s -p propagate-fastmath 2>&1 | filecheck %s

// CHECK: error: pass 'propagate-fastmath' failed: 'irkit.fastmath' expects #arith.fastmath<afn>, got "afn"
func.func @kind(%x: tensor<8xf32>) -> tensor<8xf32> attributes {irkit.fastmath = "afn"} {
  func.return %x : tensor<8xf32>
}
