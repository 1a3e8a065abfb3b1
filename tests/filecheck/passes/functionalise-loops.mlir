// Loops carry the buffers that they write; parts at moving places are slices with offsets.
// RUN: irkit-opt %s -p functionalise --split-input-file | filecheck %s

// CHECK-LABEL: func.func @main(%x: tensor<8x4xf64>) -> tensor<8x4xf64>
// CHECK: scf.for %i = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[X:.*]] = %x) -> (tensor<8x4xf64>)
// CHECK: %[[AT:.*]] = arith.addi %i, %{{.*}} : index
// CHECK: tensor.extract_slice %[[X]][%[[AT]], 0] [1, 4] [1, 1]
// CHECK: tensor.extract_slice %[[X]][%i, 0] [1, 4] [1, 1]
// CHECK: %[[Y:.*]] = tensor.insert_slice %{{.*}} into %[[X]]
// CHECK: scf.yield %[[Y]]
func.func @main(%x: memref<8x4xf64>) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %7 = arith.constant 7 : index
  scf.for %i = %0 to %7 step %1 {
    %next = affine.apply affine_map<(d0) -> (d0 * 4 + 4)> (%i)
    %here = affine.apply affine_map<(d0) -> (d0 * 4)> (%i)
    %n = memref.reinterpret_cast %x to offset: [%next], sizes: [4], strides: [1] : memref<8x4xf64> to memref<4xf64, strided<[1], offset: ?>>
    %h = memref.reinterpret_cast %x to offset: [%here], sizes: [4], strides: [1] : memref<8x4xf64> to memref<4xf64, strided<[1], offset: ?>>
    %a = bufferization.to_tensor %n : memref<4xf64, strided<[1], offset: ?>> to tensor<4xf64>
    %b = bufferization.to_tensor %h : memref<4xf64, strided<[1], offset: ?>> to tensor<4xf64>
    %c = graph.add %a, %b : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    bufferization.materialize_in_destination %c in writable %n : (tensor<4xf64>, memref<4xf64, strided<[1], offset: ?>>) -> ()
  }
  func.return
}

// -----

// What is written before it is read in every iteration, and not read behind the loop, is not carried.
// CHECK-LABEL: func.func @main(%x: tensor<4xf64>) -> tensor<4xf64>
// CHECK: scf.for %{{.*}} iter_args(%{{[^,]*}} = %x) -> (tensor<4xf64>)
// CHECK-NEXT: graph.neg
// CHECK-NEXT: graph.add
// CHECK-NEXT: scf.yield
func.func @main(%x: memref<4xf64>) {
  %t = memref.alloc() : memref<4xf64>
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %7 = arith.constant 7 : index
  scf.for %i = %0 to %7 step %1 {
    %a = bufferization.to_tensor %x : memref<4xf64> to tensor<4xf64>
    %b = graph.neg %a : (tensor<4xf64>) -> tensor<4xf64>
    bufferization.materialize_in_destination %b in writable %t : (tensor<4xf64>, memref<4xf64>) -> ()
    %c = bufferization.to_tensor %t : memref<4xf64> to tensor<4xf64>
    %d = graph.add %c, %a : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    bufferization.materialize_in_destination %d in writable %x : (tensor<4xf64>, memref<4xf64>) -> ()
  }
  func.return
}

// -----

// A loop that asks carries what it asks for, and the arrays that it writes; what no turn writes is read from outside.
// CHECK-LABEL: func.func @main(%x: tensor<4xf64>, %go: tensor<i1>, %w: tensor<4xf64>)
// CHECK: %[[R:.*]], %[[X:.*]] = scf.while (%[[G:.*]] = %go, %[[Y:.*]] = %x) : (tensor<i1>, tensor<4xf64>) -> (tensor<i1>, tensor<4xf64>) {
// CHECK-NEXT: %[[C:.*]] = tensor.extract %[[G]][] : tensor<i1>
// CHECK-NEXT: scf.condition(%[[C]]) %[[G]], %[[Y]]
// CHECK-NEXT: } do {
// CHECK-NEXT: ^{{.*}}(%[[H:.*]]: tensor<i1>, %[[Z:.*]]: tensor<4xf64>):
// CHECK-NEXT: %[[S:.*]] = graph.add %[[Z]], %w
// CHECK-NEXT: %[[N:.*]] = graph.not %[[H]]
// CHECK-NEXT: scf.yield %[[N]], %[[S]]
// CHECK: func.return %[[X]], %[[R]]
func.func @main(%x: memref<4xf64>, %go: memref<i1>, %w: memref<4xf64>) {
  scf.while () : () -> () {
    %c = bufferization.to_tensor %go : memref<i1> to tensor<i1>
    %e = tensor.extract %c[] : tensor<i1>
    scf.condition(%e)
  } do {
    %a = bufferization.to_tensor %x : memref<4xf64> to tensor<4xf64>
    %b = bufferization.to_tensor %w : memref<4xf64> to tensor<4xf64>
    %s = graph.add %a, %b : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    bufferization.materialize_in_destination %s in writable %x : (tensor<4xf64>, memref<4xf64>) -> ()
    %g = bufferization.to_tensor %go : memref<i1> to tensor<i1>
    %n = graph.not %g : (tensor<i1>) -> tensor<i1>
    bufferization.materialize_in_destination %n in writable %go : (tensor<i1>, memref<i1>) -> ()
    scf.yield
  }
  func.return
}
