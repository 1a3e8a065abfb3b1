// A program of arrays means the same as a function of values, and compiled; what is left in x comes behind what
// is returned, under a name of its own.
// RUN: irkit-run %s --level=program --seed=3 | filecheck %s
// RUN: irkit-run %s --level=graph --seed=3 | filecheck %s
// RUN: irkit-run %s --level=numba --seed=3 | filecheck %s

func.func @main(%x: memref<4xi64>, %y: memref<4xi64>) -> memref<4xi64, strided<[-1], offset: 3>> attributes {irkit.inputs = ["x", "y"], irkit.outputs = ["x"]} {
  %t = bufferization.to_tensor %y : memref<4xi64> to tensor<4xi64>
  %h = bufferization.to_tensor %x : memref<4xi64> to tensor<4xi64>
  %tens = arith.constant dense<[10, 20, 30, 40]> : tensor<4xi64>
  %none = graph.sub %t, %t : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  %zero = graph.sub %h, %h : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  %both = graph.add %none, %zero : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  %sum = graph.add %both, %tens : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  bufferization.materialize_in_destination %sum in writable %x : (tensor<4xi64>, memref<4xi64>) -> ()
  %v = memref.reinterpret_cast %x to offset: [3], sizes: [4], strides: [-1] : memref<4xi64> to memref<4xi64, strided<[-1], offset: 3>>
  func.return %v : memref<4xi64, strided<[-1], offset: 3>>
}

// CHECK: x: int64[4]
// CHECK-NEXT: [40 30 20 10]
// CHECK-NEXT: x_left: int64[4]
// CHECK-NEXT: [10 20 30 40]
