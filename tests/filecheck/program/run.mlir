// Effects happen in order: overlapping slices, a loop, and what the caller's array holds in the end.
// RUN: irkit-run %s --level=program --seed=0 | filecheck %s

func.func @main(%x: memref<6xi64>) -> memref<6xi64, strided<[-1], offset: 5>> attributes {irkit.inputs = ["x"], irkit.outputs = ["turned"]} {
  %one = arith.constant dense<1> : tensor<6xi64>
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %5 = arith.constant 5 : index
  bufferization.materialize_in_destination %one in writable %x : (tensor<6xi64>, memref<6xi64>) -> ()
  // x[1:] += x[:-1] at once, from what x was.
  %tail = memref.reinterpret_cast %x to offset: [1], sizes: [5], strides: [1] : memref<6xi64> to memref<5xi64, strided<[1], offset: 1>>
  %head = memref.reinterpret_cast %x to offset: [0], sizes: [5], strides: [1] : memref<6xi64> to memref<5xi64, strided<[1]>>
  %t = bufferization.to_tensor %tail : memref<5xi64, strided<[1], offset: 1>> to tensor<5xi64>
  %h = bufferization.to_tensor %head : memref<5xi64, strided<[1]>> to tensor<5xi64>
  %s = graph.add %t, %h : (tensor<5xi64>, tensor<5xi64>) -> tensor<5xi64>
  bufferization.materialize_in_destination %s in writable %tail : (tensor<5xi64>, memref<5xi64, strided<[1], offset: 1>>) -> ()
  // x[i + 1] += x[i], one after another.
  scf.for %i = %0 to %5 step %1 {
    %next = affine.apply affine_map<(d0) -> (d0 + 1)> (%i)
    %a = memref.reinterpret_cast %x to offset: [%i], sizes: [], strides: [] : memref<6xi64> to memref<i64, strided<[], offset: ?>>
    %b = memref.reinterpret_cast %x to offset: [%next], sizes: [], strides: [] : memref<6xi64> to memref<i64, strided<[], offset: ?>>
    %l = bufferization.to_tensor %a : memref<i64, strided<[], offset: ?>> to tensor<i64>
    %r = bufferization.to_tensor %b : memref<i64, strided<[], offset: ?>> to tensor<i64>
    %u = graph.add %l, %r : (tensor<i64>, tensor<i64>) -> tensor<i64>
    bufferization.materialize_in_destination %u in writable %b : (tensor<i64>, memref<i64, strided<[], offset: ?>>) -> ()
  }
  %v = memref.reinterpret_cast %x to offset: [5], sizes: [6], strides: [-1] : memref<6xi64> to memref<6xi64, strided<[-1], offset: 5>>
  func.return %v : memref<6xi64, strided<[-1], offset: 5>>
}

// CHECK: turned: int64[6]
// CHECK-NEXT: [11  9  7  5  3  1]
// CHECK-NEXT: x: int64[6]
// CHECK-NEXT: [ 1  3  5  7  9 11]
