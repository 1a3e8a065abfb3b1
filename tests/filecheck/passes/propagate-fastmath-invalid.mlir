// RUN: not irkit-opt %s -p propagate-fastmath 2>&1 | filecheck %s

// CHECK: error: pass 'propagate-fastmath' failed: 'irkit.fastmath' expects afn alone, got reassoc, nnan too
func.func @more(%x: tensor<8xf32>) -> tensor<8xf32> attributes {irkit.fastmath = #arith.fastmath<reassoc,nnan,afn>} {
  func.return %x : tensor<8xf32>
}
