// What all of the C++ shares: exponentials, activations, dots and norms.

#pragma once

#include <omp.h>

#include <cmath>
#include <memory>

#include "lanes.h"

extern "C" {
struct Norm {
    const float *weight, *bias;  // no bias: RMS norm
    float eps;
};
}

enum { RELU, GELU, GELU_TANH, SILU, TANH };

static inline Floats exp_of(Floats x) {
    x = larger(smaller(x, all(88.f)), all(-87.f));
    const Floats n = nearest(x * all(1.44269504f));
    Floats r = fma(-n, all(0.693359375f), x);
    r = fma(-n, all(-2.12194440e-4f), r);
    Floats p = all(1.f / 720);
    for (float c : {1.f / 120, 1.f / 24, 1.f / 6, .5f, 1.f, 1.f}) p = fma(p, r, all(c));
    return times_two_to(p, n);
}

static inline Floats sigmoid(Floats x) { return all(1.f) / (all(1.f) + exp_of(-x)); }

// The standard normal distribution function; the error function by Abramowitz and Stegun, 7.1.26, good to 1.5e-7.
static inline Floats normal(Floats x) {
    const Floats z = size(x) * all(0.70710678f), t = all(1.f) / fma(z, all(0.3275911f), all(1.f));
    Floats p = all(1.061405429f);
    for (float c : {-1.453152027f, 1.421413741f, -0.284496736f, 0.254829592f}) p = fma(p, t, all(c));
    const Floats tail = p * t * exp_of(-(z * z)) * all(.5f);
    return x > all(0.f) ? all(1.f) - tail : tail;
}

static inline Floats activate(int kind, Floats x) {
    switch (kind) {
        case RELU: return larger(x, all(0.f));
        case GELU: return x * normal(x);
        case SILU: return x * sigmoid(x);
        case TANH: return fma(all(2.f), sigmoid(x + x), all(-1.f));
        default:  // x sigmoid(2u) = x (1 + tanh u) / 2
            return x * sigmoid(fma(x * x * x, all(0.044715f), x) * all(2 * 0.79788456f));
    }
}

// d numbers as fp16; one too large for it becomes the largest that there is, not infinite.
static inline void store(const float *from, int d, half *to) {
    for (int i = 0; i < d; i += LANES) {
        const Mask m = left(d - i);
        store(m, smaller(larger(load(m, from + i), all(-65504.f)), all(65504.f)), to + i);
    }
}

// a by each of four others: their sums are summed up together.
template <typename Number>
static inline __m128 four_dots(const float *a, const Number *const b[4], int d) {
    Floats sum[4] = {all(0.f), all(0.f), all(0.f), all(0.f)};
    for (int i = 0; i < d; i += LANES) {
        const Mask m = left(d - i);
        const Floats x = load(m, a + i);
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) sum[j] = fma(x, load(m, b[j] + i), sum[j]);
    }
    const __m256 pairs = _mm256_hadd_ps(folded(sum[0]), folded(sum[1])), others = _mm256_hadd_ps(folded(sum[2]), folded(sum[3]));
    const __m256 halves = _mm256_hadd_ps(pairs, others);
    return _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1));
}

// The logarithm of the sum of n exponentials.
static float log_total(const float *scores, int64_t n) {
    Floats most = all(-INFINITY), sum = all(0.f);
    for (int64_t i = 0; i < n; i += LANES) most = larger(most, only(left(n - i), load(left(n - i), scores + i), -INFINITY));
    const float highest = largest(most);
    for (int64_t i = 0; i < n; i += LANES) {
        const Mask m = left(n - i);
        sum = sum + only(m, exp_of(load(m, scores + i) - all(highest)), 0.f);
    }
    return highest + std::log(total(sum));
}

static void norm_row(const Norm &norm, const float *x, int d, float *out) {
    float sum = 0, squares = 0;
    if (norm.bias) {
#pragma omp simd reduction(+ : sum)
        for (int i = 0; i < d; i++) sum += x[i];
    }
    float mean = sum / d;
#pragma omp simd reduction(+ : squares)
    for (int i = 0; i < d; i++) squares += (x[i] - mean) * (x[i] - mean);
    float by = 1 / std::sqrt(squares / d + norm.eps);
#pragma omp simd
    for (int i = 0; i < d; i++) out[i] = (x[i] - mean) * by * norm.weight[i] + (norm.bias ? norm.bias[i] : 0.f);
}
