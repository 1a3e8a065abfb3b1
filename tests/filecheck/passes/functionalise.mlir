// Arrays become values: parts are slices and insertions, and what is written last is read.
// RUN: irkit-opt %s -p functionalise --split-input-file | filecheck %s
// RUN: irkit-opt %s -p functionalise --split-input-file --check-semantics --verify-roundtrip

// x[1:] += x[:-1]: both are read before the write, and what is left pairs with the argument.
// CHECK-LABEL: func.func @main(%x: tensor<8xf64>) -> tensor<8xf64>
// CHECK-SAME: irkit.outputs = ["x"], irkit.state = array<i64: 0, 0>
// CHECK-NEXT: %0 = graph.slice %x {offsets = array<i64: 1>, sizes = array<i64: 7>, strides = array<i64: 1>}
// CHECK-NEXT: %1 = graph.slice %x {offsets = array<i64: 0>, sizes = array<i64: 7>, strides = array<i64: 1>}
// CHECK-NEXT: %[[S:.*]] = graph.add %0, %1
// CHECK-NEXT: %[[R:.*]] = tensor.insert_slice %[[S]] into %x[1] [7] [1]
// CHECK-NEXT: func.return %[[R]]
func.func @main(%x: memref<8xf64>) attributes {irkit.inputs = ["x"], irkit.outputs = []} {
  %tail = memref.reinterpret_cast %x to offset: [1], sizes: [7], strides: [1] : memref<8xf64> to memref<7xf64, strided<[1], offset: 1>>
  %head = memref.reinterpret_cast %x to offset: [0], sizes: [7], strides: [1] : memref<8xf64> to memref<7xf64, strided<[1]>>
  %t = bufferization.to_tensor %tail : memref<7xf64, strided<[1], offset: 1>> to tensor<7xf64>
  %h = bufferization.to_tensor %head : memref<7xf64, strided<[1]>> to tensor<7xf64>
  %sum = graph.add %t, %h : (tensor<7xf64>, tensor<7xf64>) -> tensor<7xf64>
  bufferization.materialize_in_destination %sum in writable %tail : (tensor<7xf64>, memref<7xf64, strided<[1], offset: 1>>) -> ()
  func.return
}

// -----

// R = X + 1; X *= 2; Q = R + Y, with out=: whole writes leave nothing but values.
// CHECK-LABEL: func.func @main
// CHECK-NOT: insert_slice
// CHECK: %[[R:.*]] = graph.add %x, %{{.*}}
// CHECK: %[[X:.*]] = graph.add %x, %x
// CHECK: %[[Q:.*]] = graph.add %[[R]], %y
// CHECK: func.return %[[Q]], %[[X]]
func.func @main(%x: memref<4xf32>, %y: memref<4xf32>) -> memref<4xf32> {
  %r = memref.alloc() : memref<4xf32>
  %one = arith.constant dense<1.0> : tensor<4xf32>
  %0 = bufferization.to_tensor %x : memref<4xf32> to tensor<4xf32>
  %1 = graph.add %0, %one : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  bufferization.materialize_in_destination %1 in writable %r : (tensor<4xf32>, memref<4xf32>) -> ()
  %2 = graph.add %0, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  bufferization.materialize_in_destination %2 in writable %x : (tensor<4xf32>, memref<4xf32>) -> ()
  %3 = bufferization.to_tensor %r : memref<4xf32> to tensor<4xf32>
  %4 = bufferization.to_tensor %y : memref<4xf32> to tensor<4xf32>
  %5 = graph.add %3, %4 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  bufferization.materialize_in_destination %5 in writable %r : (tensor<4xf32>, memref<4xf32>) -> ()
  func.return %r : memref<4xf32>
}

// -----

// What lies apart from a write is read from before it, what lies inside from what was written; a write that
// another one covers is gone.
// CHECK-LABEL: func.func @main
// CHECK: %[[A:.*]] = graph.slice %x {offsets = array<i64: 0>, sizes = array<i64: 2>
// CHECK: %[[N:.*]] = graph.neg %[[A]]
// CHECK: %[[B:.*]] = graph.slice %x {offsets = array<i64: 4>, sizes = array<i64: 2>
// CHECK: %[[C:.*]] = graph.slice %[[N]] {offsets = array<i64: 1>, sizes = array<i64: 1>
// CHECK: %[[L:.*]] = tensor.insert_slice %[[B]] into %x[0] [2] [1]
// CHECK-NEXT: func.return %[[C]], %[[L]]
func.func @main(%x: memref<8xf32>) -> memref<1xf32> {
  %r = memref.alloc() : memref<1xf32>
  %a = memref.reinterpret_cast %x to offset: [0], sizes: [2], strides: [1] : memref<8xf32> to memref<2xf32, strided<[1]>>
  %b = memref.reinterpret_cast %x to offset: [4], sizes: [2], strides: [1] : memref<8xf32> to memref<2xf32, strided<[1], offset: 4>>
  %c = memref.reinterpret_cast %x to offset: [1], sizes: [1], strides: [1] : memref<8xf32> to memref<1xf32, strided<[1], offset: 1>>
  %0 = bufferization.to_tensor %a : memref<2xf32, strided<[1]>> to tensor<2xf32>
  %1 = graph.neg %0 : (tensor<2xf32>) -> tensor<2xf32>
  bufferization.materialize_in_destination %1 in writable %a : (tensor<2xf32>, memref<2xf32, strided<[1]>>) -> ()
  %2 = bufferization.to_tensor %b : memref<2xf32, strided<[1], offset: 4>> to tensor<2xf32>
  %3 = bufferization.to_tensor %c : memref<1xf32, strided<[1], offset: 1>> to tensor<1xf32>
  bufferization.materialize_in_destination %3 in writable %r : (tensor<1xf32>, memref<1xf32>) -> ()
  bufferization.materialize_in_destination %2 in writable %a : (tensor<2xf32>, memref<2xf32, strided<[1]>>) -> ()
  func.return %r : memref<1xf32>
}

// -----

// Views in another order: turned, back to front, with a step, broadcast, under another shape, a diagonal; and
// windows that overlap.
// CHECK-LABEL: func.func @main
// CHECK: graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<4x6xi64>) -> tensor<6x4xi64>
// CHECK: graph.slice %x {offsets = array<i64: 3, 0>, sizes = array<i64: 4, 6>, strides = array<i64: -1, 1>}
// CHECK: graph.slice %x {offsets = array<i64: 1, 0>, sizes = array<i64: 1, 3>, strides = array<i64: 1, 2>}
// CHECK: graph.expand %{{.*}} {shape = array<i64: 5, 3>}
// CHECK: graph.reshape %x {shape = array<i64: 3, 8>}
// CHECK: graph.slice %{{.*}} {offsets = array<i64: 0>, sizes = array<i64: 4>, strides = array<i64: 7>} : (tensor<24xi64>) -> tensor<4xi64>
// CHECK: graph.gather %{{.*}} : (tensor<24xi64>, tensor<5x2xi64>) -> tensor<5x2xi64>
func.func @main(%x: memref<4x6xi64>) -> (memref<6x4xi64, strided<[1, 6]>>, memref<4x6xi64, strided<[-6, 1], offset: 18>>, memref<5x3xi64, strided<[0, 2], offset: 6>>, memref<3x8xi64, strided<[8, 1]>>, memref<4xi64, strided<[7]>>, memref<5x2xi64, strided<[1, 1]>>) {
  %t = memref.reinterpret_cast %x to offset: [0], sizes: [6, 4], strides: [1, 6] : memref<4x6xi64> to memref<6x4xi64, strided<[1, 6]>>
  %u = memref.reinterpret_cast %x to offset: [18], sizes: [4, 6], strides: [-6, 1] : memref<4x6xi64> to memref<4x6xi64, strided<[-6, 1], offset: 18>>
  %b = memref.reinterpret_cast %x to offset: [6], sizes: [5, 3], strides: [0, 2] : memref<4x6xi64> to memref<5x3xi64, strided<[0, 2], offset: 6>>
  %r = memref.reinterpret_cast %x to offset: [0], sizes: [3, 8], strides: [8, 1] : memref<4x6xi64> to memref<3x8xi64, strided<[8, 1]>>
  %d = memref.reinterpret_cast %x to offset: [0], sizes: [4], strides: [7] : memref<4x6xi64> to memref<4xi64, strided<[7]>>
  %w = memref.reinterpret_cast %x to offset: [0], sizes: [5, 2], strides: [1, 1] : memref<4x6xi64> to memref<5x2xi64, strided<[1, 1]>>
  func.return %t, %u, %b, %r, %d, %w : memref<6x4xi64, strided<[1, 6]>>, memref<4x6xi64, strided<[-6, 1], offset: 18>>, memref<5x3xi64, strided<[0, 2], offset: 6>>, memref<3x8xi64, strided<[8, 1]>>, memref<4xi64, strided<[7]>>, memref<5x2xi64, strided<[1, 1]>>
}

// -----

// What is no box under any shape is written by indices.
// CHECK-LABEL: func.func @main
// CHECK: %[[G:.*]] = graph.gather
// CHECK: graph.where %{{.*}}, %[[G]], %{{.*}}
func.func @main(%x: memref<4x4xf32>) {
  %v = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %d = memref.reinterpret_cast %x to offset: [0], sizes: [2, 2], strides: [5, 1] : memref<4x4xf32> to memref<2x2xf32, strided<[5, 1]>>
  bufferization.materialize_in_destination %v in writable %d : (tensor<2x2xf32>, memref<2x2xf32, strided<[5, 1]>>) -> ()
  func.return
}
