// Products go to the GPU, with what hangs on them; what is small and apart stays on the CPU.
// RUN: irkit-opt %s -p "choose-devices{host=cpu2}" | filecheck %s
// RUN: irkit-opt %s -p "choose-devices{host=cpu2}" --verify-roundtrip
// RUN: irkit-opt %s -p "choose-devices{host=cpu2},insert-transfers" | filecheck %s --check-prefix=COPIES
// RUN: irkit-opt %s -p "choose-devices{host=cpu2 device=cpu}" | filecheck %s --check-prefix=CPU
// RUN: irkit-opt %s -p "choose-devices{host=cpu2 device=cuda target=a100}" | filecheck %s --check-prefix=CUDA

// What is read by one part alone, and made there, is an array of this part's.
// CHECK-LABEL: func.func @main_region0(%a: memref<1024x1024xf64>, %r: memref<1024xf64>)
// CHECK: graph.matmul
// CHECK: graph.reduce
// CHECK-LABEL: func.func @main_region1(%v: memref<8xf64>)
// CHECK: graph.neg
// CHECK-LABEL: func.func @main(
// CHECK-SAME: irkit.plan = {chosen = {{[0-9]+}} : i64, cpu = {{[0-9]+}} : i64, cuda = {{[0-9]+}} : i64}
// CHECK: func.call @main_region0(%a, %{{.*}}) {irkit.device = "cuda", irkit.costs = {cpu = {{[0-9]+}} : i64, cuda = {{[0-9]+}} : i64, moved = {{[0-9]+}} : i64}}
// CHECK: func.call @main_region1(%v) {irkit.device = "cpu"
// CHECK: program.call @log

// COPIES-LABEL: func.func @main(
// COPIES: "memref.copy"(%a, %[[A:[^)]*]])
// COPIES-NEXT: func.call @main_region0(%[[A]], %[[R:[^)]*]])
// COPIES-NEXT: func.call @main_region1(%v)
// COPIES: "memref.copy"(%[[R]],
// COPIES-NOT: memref.copy

// CPU-LABEL: func.func @main(
// CPU: func.call @main_region0({{.*}}) {irkit.device = "cpu"
// CPU-NOT: "cuda"

// CUDA-LABEL: func.func @main(
// CUDA: func.call @main_region0({{.*}}) {irkit.device = "cuda"
// CUDA-NOT: "cpu"
func.func @main(%a: memref<1024x1024xf64>, %v: memref<8xf64>) -> memref<1024xf64> {
  %ab = memref.alloc() : memref<1024x1024xf64>
  %r = memref.alloc() : memref<1024xf64>
  %0 = bufferization.to_tensor %a : memref<1024x1024xf64> to tensor<1024x1024xf64>
  %1 = graph.matmul %0, %0 : (tensor<1024x1024xf64>, tensor<1024x1024xf64>) -> tensor<1024x1024xf64>
  bufferization.materialize_in_destination %1 in writable %ab : (tensor<1024x1024xf64>, memref<1024x1024xf64>) -> ()
  %2 = bufferization.to_tensor %v : memref<8xf64> to tensor<8xf64>
  %3 = graph.neg %2 : (tensor<8xf64>) -> tensor<8xf64>
  bufferization.materialize_in_destination %3 in writable %v : (tensor<8xf64>, memref<8xf64>) -> ()
  %4 = bufferization.to_tensor %ab : memref<1024x1024xf64> to tensor<1024x1024xf64>
  %5 = graph.reduce %4 {kind = "max", axes = array<i64: 1>, keepdims = false} : (tensor<1024x1024xf64>) -> tensor<1024xf64>
  bufferization.materialize_in_destination %5 in writable %r : (tensor<1024xf64>, memref<1024xf64>) -> ()
  program.call @log(%v) {reads = array<i64: 0>, writes = array<i64>} : memref<8xf64>
  func.return %r : memref<1024xf64>
}
