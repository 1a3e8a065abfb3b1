// RUN: not irkit-opt %s -t 'numba{target=cpu}' --device=cpu2 2>&1 | filecheck %s
// CHECK: {{.*}}: error: malformed op

  %y = graph.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i0: 0, 0, 0, 0>, dilations = array<i64: 1, group>, group = 1 : i64}
