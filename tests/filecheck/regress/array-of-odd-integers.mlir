// RUN: not irkit-opt %s --to=task 2>&1 | filecheck %s
// CHECK: {{.*}}: error: malformed op

  %y = graph.reshape %x {shape = array<i100000: 4, 3>} : (tensor<8xf32>) -> tensor<4x3xf32>
