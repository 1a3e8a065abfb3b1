// Of a function of arrays and tensors no function of tensors is made.
// RUN: not irkit-opt %s -p functionalise 2>&1 | filecheck %s

// CHECK: error: pass 'functionalise' failed: @main: argument 0 is a tensor<4xf64>: a function of arrays has buffers alone
func.func @main(%x: tensor<4xf64>) -> tensor<4xf64> {
  %0 = memref.alloc() : memref<4xf64>
  %1 = graph.neg %x : (tensor<4xf64>) -> tensor<4xf64>
  func.return %1 : tensor<4xf64>
}
