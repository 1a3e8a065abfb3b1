// RUN: irkit-opt %s -p cse --split-input-file | filecheck %s

func.func @equal(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = graph.abs %x : (tensor<8xf32>) -> tensor<8xf32>
  %1 = graph.abs %x : (tensor<8xf32>) -> tensor<8xf32>
  %dead = graph.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %2 = graph.add %0, %1 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %2 : tensor<8xf32>
}
// CHECK-LABEL: func.func @equal
// CHECK-NEXT:    %[[A:.*]] = graph.abs %x
// CHECK-NEXT:    %[[S:.*]] = graph.add %[[A]], %[[A]]
// CHECK-NEXT:    func.return %[[S]]

// -----

// Regions that differ in nothing but a type in them; the third is the first.
func.func @types(%x: f64) -> (f64, f64, f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %0 = scf.for %i = %c0 to %c9 step %c1 iter_args(%y = %x) -> (f64) {
    %a = arith.truncf %y : f64 to f32
    %b = arith.extf %a : f32 to f64
    scf.yield %b : f64
  }
  %1 = scf.for %i = %c0 to %c9 step %c1 iter_args(%y = %x) -> (f64) {
    %a = arith.truncf %y : f64 to f16
    %b = arith.extf %a : f16 to f64
    scf.yield %b : f64
  }
  %2 = scf.for %i = %c0 to %c9 step %c1 iter_args(%y = %x) -> (f64) {
    %a = arith.truncf %y : f64 to f32
    %b = arith.extf %a : f32 to f64
    scf.yield %b : f64
  }
  func.return %0, %1, %2 : f64, f64, f64
}
// CHECK-LABEL: func.func @types
// CHECK:         %[[A:.*]] = scf.for
// CHECK-NEXT:      arith.truncf %{{.*}} : f64 to f32
// CHECK:         %[[B:.*]] = scf.for
// CHECK-NEXT:      arith.truncf %{{.*}} : f64 to f16
// CHECK-NOT:     scf.for
// CHECK:         func.return %[[A]], %[[B]], %[[A]]

// -----

// What is read again behind a write is read again, what is read again behind that is not.
func.func @reads(%m: memref<f64>, %v: f64) -> (f64, f64, f64, f64) {
  %0 = memref.load %m[] : memref<f64>
  %1 = memref.load %m[] : memref<f64>
  memref.store %v, %m[] : memref<f64>
  %2 = memref.load %m[] : memref<f64>
  %3 = memref.load %m[] : memref<f64>
  func.return %0, %1, %2, %3 : f64, f64, f64, f64
}
// CHECK-LABEL: func.func @reads
// CHECK-NEXT:    %[[A:.*]] = memref.load
// CHECK-NEXT:    memref.store
// CHECK-NEXT:    %[[B:.*]] = memref.load
// CHECK-NEXT:    func.return %[[A]], %[[A]], %[[B]], %[[B]]

// -----

// What a loop has is not known behind it; what stands before it is known in it.
func.func @loop(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %0 = graph.abs %x : (tensor<8xf32>) -> tensor<8xf32>
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%y = %x) -> (tensor<8xf32>) {
    %1 = graph.abs %x : (tensor<8xf32>) -> tensor<8xf32>
    %2 = graph.exp %x : (tensor<8xf32>) -> tensor<8xf32>
    %3 = graph.add %1, %2 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %4 = graph.add %3, %y : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    scf.yield %4 : tensor<8xf32>
  }
  %5 = graph.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %6 = graph.add %0, %5 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %r, %6 : tensor<8xf32>, tensor<8xf32>
}
// CHECK-LABEL: func.func @loop
// CHECK:         %[[A:.*]] = graph.abs
// CHECK:         scf.for
// CHECK-NEXT:      %[[E:.*]] = graph.exp
// CHECK-NEXT:      graph.add %[[A]], %[[E]]
// CHECK:         %[[F:.*]] = graph.exp
// CHECK-NEXT:    graph.add %[[A]], %[[F]]
