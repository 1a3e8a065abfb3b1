// RUN: not irkit-opt %s --to=graph 2>&1 | filecheck %s
// CHECK: {{.*}}: error: malformed op

  %init = linalg.fill
