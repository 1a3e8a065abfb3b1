// Regions whose arrays are larger than the device's memory, in chunks.
// RUN: irkit-opt %s -p 'page{bytes=2048 buffers=2}' --split-input-file | filecheck %s
// RUN: irkit-opt %s -p 'page{bytes=2048 buffers=2}' --split-input-file --verify-roundtrip

// A window of three rows: neighbouring chunks both need two. The last chunk is smaller. What is written is read by
// other chunks, so it is written last.
// CHECK-LABEL: func.func @main_region0_rest1(%x: memref<{{.*}}xf64, 1 : i64>
// CHECK-LABEL: func.func @main_region0_chunk0(%x: memref<29xf64, 1 : i64>, %{{.*}}: memref<27xf64, 1 : i64>)
// CHECK: %[[T:.*]] = bufferization.to_tensor %x
// CHECK: %[[A:.*]] = graph.slice %[[T]] {offsets = array<i64: 0>, sizes = array<i64: 27>
// CHECK: %[[B:.*]] = graph.slice %[[T]] {offsets = array<i64: 2>, sizes = array<i64: 27>
// CHECK: graph.add %[[A]], %[[B]]
// CHECK-LABEL: func.func @main(%x: memref<500xf64>)
// CHECK: "memref.copy"(%x, %[[SHADOW:x_.*]]) : (memref<500xf64>, memref<500xf64>)
// CHECK: scf.for %[[I:.*]] =
// CHECK: %[[P:.*]] = affine.apply affine_map<(d0) -> ((d0 * 27))> (%[[I]])
// CHECK: %[[V:.*]] = memref.reinterpret_cast %x to offset: [%[[P]]], sizes: [{{.*}}], strides: [1]
// CHECK: "memref.copy"(%[[V]], %[[X0:.*]]) : (memref<{{.*}}>, memref<29xf64, 1 : i64>)
// CHECK: func.call @main_region0_chunk0(%[[X0]], %[[Y0:.*]]) {irkit.device = "cuda"}
// CHECK: affine.apply affine_map<(d0) -> (((d0 * 27) + 1))> (%[[I]])
// CHECK: "memref.copy"(%[[Y0]], %{{.*}}) : (memref<27xf64, 1 : i64>, memref<27xf64
// CHECK: "memref.copy"(%{{.*}}, %[[X1:x.*]]) : (memref<{{.*}}>, memref<29xf64, 1 : i64>)
// CHECK: func.call @main_region0_chunk0(%[[X1]], %{{.*}})
// CHECK: func.call @main_region0_rest1(
// CHECK: "memref.copy"(%[[SHADOW]], %x)
// CHECK-NEXT: func.return
func.func @main(%x: memref<500xf64>) {
  %left = memref.reinterpret_cast %x to offset: [0], sizes: [498], strides: [1] : memref<500xf64> to memref<498xf64, strided<[1]>>
  %right = memref.reinterpret_cast %x to offset: [2], sizes: [498], strides: [1] : memref<500xf64> to memref<498xf64, strided<[1], offset: 2>>
  %inner = memref.reinterpret_cast %x to offset: [1], sizes: [498], strides: [1] : memref<500xf64> to memref<498xf64, strided<[1], offset: 1>>
  %a = bufferization.to_tensor %left : memref<498xf64, strided<[1]>> to tensor<498xf64>
  %b = bufferization.to_tensor %right : memref<498xf64, strided<[1], offset: 2>> to tensor<498xf64>
  %y = graph.add %a, %b : (tensor<498xf64>, tensor<498xf64>) -> tensor<498xf64>
  bufferization.materialize_in_destination %y in writable %inner : (tensor<498xf64>, memref<498xf64, strided<[1], offset: 1>>) -> ()
  func.return
}

// -----

// A sum is merged from chunk to chunk, in arrays that take turns, and what hangs on it is computed when it is there. A
// region that is said to run on the CPU stays as it is.
// CHECK-LABEL: func.func @norm_end{{.*}}(
// CHECK: graph.sqrt
// CHECK-LABEL: func.func @norm_begin{{.*}}(%{{.*}}: memref<f64>)
// CHECK-LABEL: func.func @norm_chunk0(%x: memref<{{.*}}xf64, 1 : i64>, %{{.*}}: memref<f64, 1 : i64>, %{{.*}}: memref<f64, 1 : i64>)
// CHECK: graph.reduce %{{.*}} {kind = "sum"
// CHECK-LABEL: func.func @main(
// CHECK: func.call @norm_begin1(%[[HOST:.*]]) : (memref<f64>) -> ()
// CHECK: "memref.copy"(%[[HOST]], %[[S0:.*]]) : (memref<f64>, memref<f64, 1 : i64>)
// CHECK: scf.for
// CHECK: func.call @norm_chunk0(%{{.*}}, %[[S0]], %[[S1:.*]]) {irkit.device = "cuda"}
// CHECK: func.call @norm_chunk0(%{{.*}}, %[[S1]], %[[S0]]) {irkit.device = "cuda"}
// CHECK: "memref.copy"(%{{.*}}, %[[HOST]]) : (memref<f64, 1 : i64>, memref<f64>)
// CHECK: func.call @norm_end2(%[[HOST]], %y) : (memref<f64>, memref<f64>) -> ()
// CHECK: func.call @other(%x) {irkit.device = "cpu"}
func.func @other(%x: memref<512xf64>) {
  %t = bufferization.to_tensor %x : memref<512xf64> to tensor<512xf64>
  %y = graph.neg %t : (tensor<512xf64>) -> tensor<512xf64>
  bufferization.materialize_in_destination %y in writable %x : (tensor<512xf64>, memref<512xf64>) -> ()
  func.return
}
func.func @norm(%x: memref<512xf64>, %y: memref<f64>) {
  %t = bufferization.to_tensor %x : memref<512xf64> to tensor<512xf64>
  %0 = graph.mul %t, %t : (tensor<512xf64>, tensor<512xf64>) -> tensor<512xf64>
  %1 = graph.reduce %0 {kind = "sum", axes = array<i64: 0>, keepdims = false} : (tensor<512xf64>) -> tensor<f64>
  %2 = graph.sqrt %1 : (tensor<f64>) -> tensor<f64>
  bufferization.materialize_in_destination %2 in writable %y : (tensor<f64>, memref<f64>) -> ()
  func.return
}
func.func @main(%x: memref<512xf64>, %y: memref<f64>) {
  func.call @norm(%x, %y) : (memref<512xf64>, memref<f64>) -> ()
  func.call @other(%x) {irkit.device = "cpu"} : (memref<512xf64>) -> ()
  func.return
}
