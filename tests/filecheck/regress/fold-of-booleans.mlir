// RUN: irkit-opt %s -p canonicalize --check-semantics --verify-roundtrip | filecheck %s
// Sums of i1 are modulo 2, folded or computed.

// CHECK-NOT: arith.addi
// CHECK-NOT: arith.subi %{{.*}}true
// CHECK:     linalg.yield
#id = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<4xi1>) -> (tensor<4xi1>, tensor<4xi1>, tensor<4xi1>) {
  %e = tensor.empty() : tensor<4xi1>
  %0, %1, %2 = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xi1>) outs(%e, %e, %e : tensor<4xi1>, tensor<4xi1>, tensor<4xi1>) {
  ^bb0(%a: i1, %o: i1, %p: i1, %q: i1):
    %t = arith.constant true
    %f = arith.constant false
    %sum = arith.addi %t, %t : i1
    %less = arith.subi %f, %t : i1
    %kept = arith.subi %a, %a : i1
    linalg.yield %sum, %less, %kept : i1, i1, i1
  } -> (tensor<4xi1>, tensor<4xi1>, tensor<4xi1>)
  func.return %0, %1, %2 : tensor<4xi1>, tensor<4xi1>, tensor<4xi1>
}
