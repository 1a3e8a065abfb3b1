// RUN: not irkit-opt %s 2>&1 | filecheck %s
// CHECK: {{.*}}: error: malformed op

  %threshold = arith.constant dense<[0.5, -0.5,(0.0, 0.0, 0.0, 0.0]> : tensor<6xf32>
