// RUN: irkit-opt %s -p 'differentiate{mode=reverse with_respect_to=x,u,s chunked=true}' | filecheck %s
// RUN: irkit-opt %s -p 'differentiate{mode=reverse with_respect_to=x,u,s chunked=true}' | irkit-opt - --to=tensor --check-semantics > /dev/null

// 23 rounds are four chunks of five and three that are left over. What a chunk begins with is kept, and what each of the
// last three rounds does; the way back runs each chunk again, and adds to its own rows of the cotangent of x.
// CHECK-LABEL: func.func @main
// CHECK:         scf.for {{.*}} -> (tensor<2x8xf64>, tensor<4x2x8xf64>) {
// CHECK:           scf.for {{.*}} -> (tensor<2x8xf64>) {
// CHECK:             tensor.extract_slice %x[
// CHECK:             scf.yield
// CHECK:           scf.yield
// CHECK:         scf.for {{.*}} -> (tensor<2x8xf64>, tensor<3x2x8xf64>, tensor<3x2x8xf64>) {
// CHECK:         scf.for
// CHECK:         scf.for {{.*}} -> (tensor<2x8xf64>, tensor<46x8xf64>, tensor<8x8xf64>) {
// CHECK:           scf.for {{.*}} -> (tensor<2x8xf64>, tensor<5x2x8xf64>, tensor<5x2x8xf64>) {
// CHECK:           scf.for {{.*}} -> (tensor<2x8xf64>, tensor<10x8xf64>, tensor<5x2x8xf64>) {
// CHECK:           graph.gemm {{.*}} -> tensor<8x8xf64>
// CHECK:           scf.yield
func.func @main(%x: tensor<46x8xf64>, %u: tensor<8x8xf64>, %s: tensor<2x8xf64>) -> tensor<2x8xf64> attributes {
  irkit.inputs = ["x", "u", "s"]
} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c23 = arith.constant 23 : index
  %r = scf.for %i = %c0 to %c23 step %c1 iter_args(%h = %s) -> (tensor<2x8xf64>) {
    %at = arith.muli %i, %c2 : index
    %row = tensor.extract_slice %x[%at, 0] [2, 8] [1, 1] : tensor<46x8xf64> to tensor<2x8xf64>
    %q = graph.matmul %h, %u : (tensor<2x8xf64>, tensor<8x8xf64>) -> tensor<2x8xf64>
    %t = graph.add %row, %q : (tensor<2x8xf64>, tensor<2x8xf64>) -> tensor<2x8xf64>
    %y = graph.tanh %t : (tensor<2x8xf64>) -> tensor<2x8xf64>
    scf.yield %y : tensor<2x8xf64>
  }
  func.return %r : tensor<2x8xf64>
}
