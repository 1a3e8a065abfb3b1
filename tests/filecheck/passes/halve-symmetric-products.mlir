// RUN: irkit-opt %s -p 'halve-symmetric-products{device="cpu2"}' | filecheck %s
// RUN: irkit-opt %s -p 'halve-symmetric-products{device="cpu2"}' --remarks=missed 2>&1 | filecheck %s --check-prefix=MISSED
// RUN: irkit-opt %s -p 'halve-symmetric-products{device="h200"}' | filecheck %s --check-prefix=GPU

// CHECK-LABEL: func.func @gram
// CHECK: %[[A0:.*]] = graph.slice %t {offsets = array<i64: 0, 0>, sizes = array<i64: 160, 800>
// CHECK: %[[P0:.*]] = graph.matmul %[[A0]], %x : {{.*}} -> tensor<160x600xf64>
// CHECK: %[[S:.*]] = graph.slice %[[P0]] {offsets = array<i64: 0, 160>, sizes = array<i64: 160, 160>
// CHECK: %[[M:.*]] = graph.transpose %[[S]]
// CHECK: %[[P1:.*]] = graph.matmul {{.*}} -> tensor<160x440xf64>
// CHECK: %[[R1:.*]] = graph.concat(%[[M]], %[[P1]]) {axis = 1 : i64}
// CHECK: graph.matmul {{.*}} -> tensor<160x280xf64>
// CHECK: %[[P3:.*]] = graph.matmul {{.*}} -> tensor<120x120xf64>
// CHECK: %[[R3:.*]] = graph.concat({{.*}}, %[[P3]]) {axis = 1 : i64}
// CHECK: graph.concat(%[[P0]], %[[R1]], {{.*}}, %[[R3]]) {axis = 0 : i64}
// GPU-LABEL: func.func @gram
// GPU-NOT: graph.concat
func.func @gram(%x: tensor<800x600xf64>) -> tensor<600x600xf64> {
  %t = graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<800x600xf64>) -> tensor<600x800xf64>
  %y = graph.matmul %t, %x : (tensor<600x800xf64>, tensor<800x600xf64>) -> tensor<600x600xf64>
  func.return %y : tensor<600x600xf64>
}

// CHECK-LABEL: func.func @two
// CHECK-NOT: graph.concat
// MISSED: remark: {{.*}}its factors are not of the same vectors
func.func @two(%x: tensor<800x600xf64>, %z: tensor<800x600xf64>) -> tensor<600x600xf64> {
  %t = graph.transpose %z {permutation = array<i64: 1, 0>} : (tensor<800x600xf64>) -> tensor<600x800xf64>
  %y = graph.matmul %t, %x : (tensor<600x800xf64>, tensor<800x600xf64>) -> tensor<600x600xf64>
  func.return %y : tensor<600x600xf64>
}

// CHECK-LABEL: func.func @few
// CHECK-NOT: graph.concat
// MISSED: remark: {{.*}}too few vectors are in both factors, or they are too short
func.func @few(%x: tensor<80x600xf64>) -> tensor<600x600xf64> {
  %t = graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<80x600xf64>) -> tensor<600x80xf64>
  %y = graph.matmul %t, %x : (tensor<600x80xf64>, tensor<80x600xf64>) -> tensor<600x600xf64>
  func.return %y : tensor<600x600xf64>
}
