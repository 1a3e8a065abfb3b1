"""Numba kernels of the DAG benchmarks: grid-stride loops, after the descriptions of GrCUDA's six
programs."""

from __future__ import annotations

import math

from numba import cuda, float32


@cuda.jit
def clear(x):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        x[i] = 0


@cuda.jit
def square(x, y):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        y[i] = x[i] * x[i]


@cuda.jit
def difference(x, y, z):
    total = float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        total += x[i] - y[i]
    cuda.atomic.add(z, 0, total)


# Black-Scholes


@cuda.jit(device=True)
def normal(x):
    """The cumulative normal distribution by a polynomial of degree 5 (Abramowitz and Stegun 26.2.17)."""
    k = 1 / (1 + 0.2316419 * abs(x))
    poly = k * (
        0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
    )
    tail = 0.3989422804014327 * math.exp(-0.5 * x * x) * poly
    return 1 - tail if x > 0 else tail


@cuda.jit
def black_scholes(x, y):
    """A European call: rate 0.08, volatility 0.3, one year, strike 60."""
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        d1 = (math.log(x[i] / 60.0) + (0.08 + 0.3 * 0.3 / 2)) / 0.3
        y[i] = x[i] * normal(d1) - 60.0 * math.exp(-0.08) * normal(d1 - 0.3)


# Ridge and naive Bayes


@cuda.jit
def standardise(x, z):
    """A thread a feature walks over all rows."""
    for j in range(cuda.grid(1), x.shape[1], cuda.gridsize(1)):
        total = 0.0
        squares = 0.0
        for r in range(x.shape[0]):
            total += x[r, j]
            squares += x[r, j] * x[r, j]
        mean = total / x.shape[0]
        scale = math.sqrt(squares / x.shape[0] - mean * mean)
        for r in range(x.shape[0]):
            z[r, j] = (x[r, j] - mean) / scale


@cuda.jit
def add_product(x, w, out):
    """out[r, c] += sum over f of x[r, f] * w[c, f]"""
    for r in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        for c in range(w.shape[0]):
            total = float32(0)
            for f in range(x.shape[1]):
                total += x[r, f] * w[c, f]
            out[r, c] += total


@cuda.jit
def add_row(b, out):
    for r in range(cuda.grid(1), out.shape[0], cuda.gridsize(1)):
        for c in range(out.shape[1]):
            out[r, c] += b[c]


@cuda.jit
def softmax(x):
    for r in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        most = x[r, 0]
        for c in range(1, x.shape[1]):
            most = max(most, x[r, c])
        total = float32(0)
        for c in range(x.shape[1]):
            x[r, c] = math.exp(x[r, c] - most)
            total += x[r, c]
        for c in range(x.shape[1]):
            x[r, c] /= total


@cuda.jit
def row_max(x, most):
    for r in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        found = x[r, 0]
        for c in range(1, x.shape[1]):
            found = max(found, x[r, c])
        most[r] = found


@cuda.jit
def log_sum_exp(x, most, out):
    for r in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        total = float32(0)
        for c in range(x.shape[1]):
            total += math.exp(x[r, c] - most[r])
        out[r] = math.log(total) + most[r]


@cuda.jit
def exp_minus(x, shift):
    for r in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        for c in range(x.shape[1]):
            x[r, c] = math.exp(x[r, c] - shift[r])


@cuda.jit
def argmax(a, b, out):
    for r in range(cuda.grid(1), a.shape[0], cuda.gridsize(1)):
        best = 0
        for c in range(1, a.shape[1]):
            if a[r, c] + b[r, c] > a[r, best] + b[r, best]:
                best = c
        out[r] = best


# Hubs and authorities


@cuda.jit
def spmv(begin, column, value, x, y):
    for r in range(cuda.grid(1), y.size, cuda.gridsize(1)):
        total = float32(0)
        for k in range(begin[r], begin[r + 1]):
            total += value[k] * x[column[k]]
        y[r] = total


@cuda.jit
def add_up(x, total):
    found = float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        found += x[i]
    cuda.atomic.add(total, 0, found)


@cuda.jit
def divide(x, y, total):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        y[i] = x[i] / total[0]


# Images; two-dimensional grids


@cuda.jit
def blur(image, out, weights):
    reach = weights.shape[0] // 2
    i0, j0 = cuda.grid(2)
    for i in range(i0, image.shape[0], cuda.gridsize(2)[0]):
        for j in range(j0, image.shape[1], cuda.gridsize(2)[1]):
            total = float32(0)
            for a in range(-reach, reach + 1):
                for b in range(-reach, reach + 1):
                    if 0 <= i + a < image.shape[0] and 0 <= j + b < image.shape[1]:
                        total += weights[a + reach, b + reach] * image[i + a, j + b]
            out[i, j] = total


@cuda.jit(device=True)
def at(image, i, j):
    if 0 <= i < image.shape[0] and 0 <= j < image.shape[1]:
        return image[i, j]
    return float32(0)


@cuda.jit
def sobel(image, out):
    i0, j0 = cuda.grid(2)
    for i in range(i0, image.shape[0], cuda.gridsize(2)[0]):
        for j in range(j0, image.shape[1], cuda.gridsize(2)[1]):
            right = at(image, i - 1, j + 1) + 2 * at(image, i, j + 1) + at(image, i + 1, j + 1)
            left = at(image, i - 1, j - 1) + 2 * at(image, i, j - 1) + at(image, i + 1, j - 1)
            below = at(image, i + 1, j - 1) + 2 * at(image, i + 1, j) + at(image, i + 1, j + 1)
            above = at(image, i - 1, j - 1) + 2 * at(image, i - 1, j) + at(image, i - 1, j + 1)
            out[i, j] = math.sqrt((right - left) ** 2 + (below - above) ** 2)


@cuda.jit
def maximum(x, most):
    for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        found = x[i, 0]
        for j in range(1, x.shape[1]):
            found = max(found, x[i, j])
        cuda.atomic.max(most, 0, found)


@cuda.jit
def minimum(x, least):
    for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        found = x[i, 0]
        for j in range(1, x.shape[1]):
            found = min(found, x[i, j])
        cuda.atomic.min(least, 0, found)


@cuda.jit
def extend(x, least, most):
    i0, j0 = cuda.grid(2)
    for i in range(i0, x.shape[0], cuda.gridsize(2)[0]):
        for j in range(j0, x.shape[1], cuda.gridsize(2)[1]):
            x[i, j] = min(5 * (x[i, j] - least[0]) / (most[0] - least[0]), 1.0)


@cuda.jit
def unsharpen(image, blurred, out):
    i0, j0 = cuda.grid(2)
    for i in range(i0, image.shape[0], cuda.gridsize(2)[0]):
        for j in range(j0, image.shape[1], cuda.gridsize(2)[1]):
            sharp = image[i, j] * 1.5 - blurred[i, j] * 0.5
            out[i, j] = min(max(sharp, 0.0), 1.0)


@cuda.jit
def combine(x, y, mask, out):
    i0, j0 = cuda.grid(2)
    for i in range(i0, x.shape[0], cuda.gridsize(2)[0]):
        for j in range(j0, x.shape[1], cuda.gridsize(2)[1]):
            out[i, j] = x[i, j] * mask[i, j] + y[i, j] * (1 - mask[i, j])


# Two convolutional branches


@cuda.jit
def convolution(x, weights, out):
    """3 × 3, stride 2, ReLU; positions whose window leaves the image stay as they are."""
    i0, j0 = cuda.grid(2)
    for i in range(i0, out.shape[0] - 1, cuda.gridsize(2)[0]):
        for j in range(j0, out.shape[1] - 1, cuda.gridsize(2)[1]):
            for k in range(out.shape[2]):
                total = float32(0)
                for a in range(3):
                    for b in range(3):
                        for c in range(x.shape[2]):
                            total += weights[k, a, b, c] * x[2 * i + a, 2 * j + b, c]
                out[i, j, k] = max(total, float32(0))


@cuda.jit
def mean_pool(x, out):
    i0, j0 = cuda.grid(2)
    for i in range(i0, out.shape[0], cuda.gridsize(2)[0]):
        for j in range(j0, out.shape[1], cuda.gridsize(2)[1]):
            for k in range(x.shape[2]):
                total = float32(0)
                for a in range(5):
                    for b in range(5):
                        total += x[5 * i + a, 5 * j + b, k]
                out[i, j, k] = total / 25


@cuda.jit
def concat(x, y, out):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        out[i] = x[i]
        out[x.size + i] = y[i]


@cuda.jit
def dot(x, w, out):
    total = float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        total += x[i] * w[i]
    cuda.atomic.add(out, 0, total)
