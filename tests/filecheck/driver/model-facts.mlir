// RUN: not irkit-opt %s --to=graph 2>&1 | filecheck %s

// CHECK: error: pass 'checks-to-limits' failed: 'irkit.model' has not what is known of a model: Unterminated string
builtin.module attributes {irkit.model = "{\22kind\22: \22transformer\22, \22inputs\22: [\22x"} {
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    func.return %x : tensor<2xf32>
  }
}
