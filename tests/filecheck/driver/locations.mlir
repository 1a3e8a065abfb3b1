// RUN: irkit-opt %s --mlir-print-debuginfo | filecheck %s
// RUN: irkit-opt %s --print-debuginfo | irkit-opt - --print-debuginfo | filecheck %s
// RUN: irkit-opt %s -p canonicalize --print-debuginfo | filecheck %s --check-prefix=CANON
// RUN: irkit-opt %s | filecheck %s --check-prefix=NONE

// NONE-NOT: loc(

// An op stands where its name is; locations that are given are kept.
// CHECK:       func.func @main(%a: i32 loc("{{.*}}locations.mlir":[[# @LINE + 16]]:17)) -> i32
// CHECK-NEXT:    %c2 = arith.constant 2 : i32 loc("{{.*}}locations.mlir":[[# @LINE + 16]]:9)
// CHECK-NEXT:    %c3 = arith.constant 3 : i32 loc("model.py":8:1)
// CHECK-NEXT:    arith.addi %c2, %c3 : i32 loc("{{.*}}locations.mlir":[[# @LINE + 16]]:10)
// CHECK-NEXT:    arith.muli {{.*}} loc("{{.*}}locations.mlir":[[# @LINE + 16]]:10)
// CHECK-NEXT:    func.return {{.*}} loc("{{.*}}locations.mlir":[[# @LINE + 16]]:3)

// The folded constant stands where the addition stood.
// CANON:       func.func @main
// CANON-NEXT:    arith.constant 5 : i32 loc("{{.*}}locations.mlir":[[# @LINE + 10]]:10)
// CANON-NEXT:    arith.muli {{.*}} loc("{{.*}}locations.mlir":[[# @LINE + 10]]:10)
// CANON-NOT:     loc(unknown)
// CANON:       } loc("{{.*}}locations.mlir":1:1)



func.func @main(%a: i32) -> i32 {
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32 loc("model.py":8:1)
  %sum = arith.addi %c2, %c3 : i32
  %out = arith.muli %sum, %a : i32
  func.return %out : i32
}
