// RUN: irkit-opt %s -p 'form-roperators{device="cpu2"}' --check-semantics | filecheck %s
// RUN: irkit-opt %s -p 'form-roperators{device="h200"}' | filecheck %s --check-prefix=GPU

// What is inside of an array, a row above that repeats the next, and a column at the left: one launch. The
// slice that is as large as a half is a launch of its own.
// CHECK:       task.roperator @map_0(%{{.*}}: tensor<18x14xf32>, %{{.*}}: tensor<20x16xf32>) -> tensor<20x16xf32>
// CHECK:         math.exp
// CHECK:         %[[A:.*]] = tensor.insert_slice
// CHECK-NEXT:    %[[ROW:.*]] = tensor.extract_slice %[[A]][1, 0] [1, 16] [1, 1]
// CHECK-NEXT:    %[[B:.*]] = tensor.insert_slice %[[ROW]] into %[[A]][0, 0] [1, 16] [1, 1]
// CHECK-NEXT:    %[[COLUMN:.*]] = tensor.extract_slice %[[B]][0, 1] [20, 1] [1, 1]
// CHECK-NEXT:    %[[C:.*]] = tensor.insert_slice %[[COLUMN]] into %[[B]][0, 0] [20, 1] [1, 1]
// CHECK-NEXT:    task.yield %[[C]]
// CHECK:       task.roperator @map_1
// CHECK:       func.func @main
// CHECK-COUNT-2: task.launch
// CHECK-NOT:     task.launch
// GPU:         func.func @main
// GPU-COUNT-4: task.launch
func.func @main(%x: tensor<20x16xf32>, %y: tensor<18x14xf32>) -> tensor<20x16xf32> {
  %e = tensor.empty() : tensor<18x14xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%y : tensor<18x14xf32>) outs(%e : tensor<18x14xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<18x14xf32>
  %1 = tensor.insert_slice %0 into %x[1, 1] [18, 14] [1, 1] : tensor<18x14xf32> into tensor<20x16xf32>
  %2 = tensor.extract_slice %1[1, 0] [1, 16] [1, 1] : tensor<20x16xf32> to tensor<1x16xf32>
  %3 = tensor.insert_slice %2 into %1[0, 0] [1, 16] [1, 1] : tensor<1x16xf32> into tensor<20x16xf32>
  %4 = tensor.extract_slice %3[0, 1] [20, 1] [1, 1] : tensor<20x16xf32> to tensor<20x1xf32>
  %5 = tensor.insert_slice %4 into %3[0, 0] [20, 1] [1, 1] : tensor<20x1xf32> into tensor<20x16xf32>
  %6 = tensor.extract_slice %5[0, 8] [20, 8] [1, 1] : tensor<20x16xf32> to tensor<20x8xf32>
  %7 = tensor.insert_slice %6 into %5[0, 0] [20, 8] [1, 1] : tensor<20x8xf32> into tensor<20x16xf32>
  func.return %7 : tensor<20x16xf32>
}
