// What runs on the device gets memory there; copies are of what a side needs and has not.
// RUN: irkit-opt %s -p insert-transfers | filecheck %s
// RUN: irkit-opt %s -p insert-transfers --verify-roundtrip
// RUN: irkit-opt %s -p insert-transfers | irkit-opt - -p insert-transfers | filecheck %s
// RUN: irkit-opt %s -p insert-transfers | irkit-run - --level=program --seed=0 | filecheck %s --check-prefix=VALUES

// CHECK-LABEL: func.func @scale(%x: memref<4xf64, 1 : i64>, %y: memref<4xf64, 1 : i64>)
// CHECK: reinterpret_cast %x {{.*}} : memref<4xf64, 1 : i64> to memref<4xf64, strided<[-1], offset: 3>, 1 : i64>
func.func @scale(%x: memref<4xf64>, %y: memref<4xf64>) {
  %turned = memref.reinterpret_cast %x to offset: [3], sizes: [4], strides: [-1] : memref<4xf64> to memref<4xf64, strided<[-1], offset: 3>>
  %0 = bufferization.to_tensor %turned : memref<4xf64, strided<[-1], offset: 3>> to tensor<4xf64>
  %1 = graph.add %0, %0 : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  bufferization.materialize_in_destination %1 in writable %y : (tensor<4xf64>, memref<4xf64>) -> ()
  func.return
}

// CHECK-LABEL: func.func @first(%x: memref<4xf64, 1 : i64>)
func.func @first(%x: memref<4xf64>) {
  %one = arith.constant dense<1.0> : tensor<f64>
  %at = memref.reinterpret_cast %x to offset: [0], sizes: [], strides: [] : memref<4xf64> to memref<f64, strided<[]>>
  bufferization.materialize_in_destination %one in writable %at : (tensor<f64>, memref<f64, strided<[]>>) -> ()
  func.return
}

// %y is written as a whole there, and returned: it comes back and never goes. %t is the device's alone. %z is written
// in part, so that its rest has to be there. The loop changes none of %x.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %[[Z:z[^ ]*]] = memref.alloc() : memref<4xf64, 1 : i64>
// CHECK-NEXT: %[[X:x[^ ]*]] = memref.alloc() : memref<4xf64, 1 : i64>
// CHECK: "memref.copy"(%x, %[[X]])
// CHECK-NEXT: func.call @scale(%[[X]], %[[T:t[^,)]*]])
// CHECK-NEXT: func.call @scale(%[[T]], %[[Y:y[^,)]*]])
// CHECK-NEXT: "memref.copy"(%z, %[[Z]])
// CHECK-NEXT: func.call @first(%[[Z]])
// CHECK: scf.for
// CHECK-NEXT: func.call @scale(%[[X]], %[[Z]])
// CHECK-NEXT: }
// CHECK-NEXT: "memref.copy"(%[[Y]], %y)
// CHECK-NEXT: "memref.copy"(%[[Z]], %z)
// CHECK-NEXT: func.return %y
// VALUES: output0: float64[4]
func.func @main(%x: memref<4xf64>, %z: memref<4xf64>) -> memref<4xf64> {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %3 = arith.constant 3 : index
  %t = memref.alloc() : memref<4xf64>
  %y = memref.alloc() : memref<4xf64>
  func.call @scale(%x, %t) {irkit.device = "cuda"} : (memref<4xf64>, memref<4xf64>) -> ()
  func.call @scale(%t, %y) {irkit.device = "cuda"} : (memref<4xf64>, memref<4xf64>) -> ()
  func.call @first(%z) {irkit.device = "cuda"} : (memref<4xf64>) -> ()
  scf.for %i = %0 to %3 step %1 {
    func.call @scale(%x, %z) {irkit.device = "cuda"} : (memref<4xf64>, memref<4xf64>) -> ()
  }
  func.return %y : memref<4xf64>
}
