// RUN: irkit-opt %s -p 'convert-graph-to-tensor,canonicalize,cse,fuse-elementwise,form-roperators{device="h200"}' | filecheck %s
// RUN: irkit-opt %s -p 'convert-graph-to-tensor,canonicalize,cse,fuse-elementwise,form-roperators{device="cpu2"}' | filecheck %s --check-prefix=CPU

// On a GPU rows without a number of their own are computed by each that reads them: one launch less to wait for.
// CHECK-DAG:   task.roperator @reduce_0({{.*}} attributes {sources = "graph.sub, graph.exp, graph.reduce"}
// CHECK-DAG:   task.roperator @map_0({{.*}} attributes {sources = "graph.sub, graph.sqrt"}
// CHECK-LABEL: func.func @rows
// CHECK-NEXT:    task.launch @reduce_0(%x, %m)
// CHECK-NEXT:    task.launch @map_0(%x, %m)
// CPU-LABEL:   func.func @rows
// CPU-NEXT:      [[d:%.*]] = task.launch @map_0(%x, %m)
// CPU-NEXT:      task.launch @reduce_0([[d]])
// CPU-NEXT:      task.launch @map_1([[d]])
func.func @rows(%x: tensor<64x1000xf32>, %m: tensor<64x1xf32>) -> (tensor<64x1000xf32>, tensor<64xf32>) {
  %d = graph.sub %x, %m : (tensor<64x1000xf32>, tensor<64x1xf32>) -> tensor<64x1000xf32>
  %e = graph.exp %d : (tensor<64x1000xf32>) -> tensor<64x1000xf32>
  %s = graph.reduce %e {kind = "sum", axes = array<i64: 1>, keepdims = false} : (tensor<64x1000xf32>) -> tensor<64xf32>
  %q = graph.sqrt %d : (tensor<64x1000xf32>) -> tensor<64x1000xf32>
  func.return %q, %s : tensor<64x1000xf32>, tensor<64xf32>
}

// What is returned is made once, and so is the difference of two whole tensors.
// CHECK-LABEL: func.func @whole
// CHECK-NEXT:    [[d:%.*]] = task.launch @map_1(%x, %y)
// CHECK-NEXT:    task.launch @reduce_1([[d]])
// CHECK-NEXT:    task.launch @map_2([[d]])
func.func @whole(%x: tensor<64x1000xf32>, %y: tensor<64x1000xf32>) -> (tensor<64x1000xf32>, tensor<64xf32>) {
  %d = graph.sub %x, %y : (tensor<64x1000xf32>, tensor<64x1000xf32>) -> tensor<64x1000xf32>
  %e = graph.exp %d : (tensor<64x1000xf32>) -> tensor<64x1000xf32>
  %s = graph.reduce %e {kind = "sum", axes = array<i64: 1>, keepdims = false} : (tensor<64x1000xf32>) -> tensor<64xf32>
  %q = graph.sqrt %d : (tensor<64x1000xf32>) -> tensor<64x1000xf32>
  func.return %q, %s : tensor<64x1000xf32>, tensor<64xf32>
}
