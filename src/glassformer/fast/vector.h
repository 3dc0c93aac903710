// What all of the C++ shares: sixteen numbers at a time, and norms.

#pragma once

#include <immintrin.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>

extern "C" {
struct Norm {
    const float *weight, *bias;  // no bias: RMS norm
    float eps;
};
}

enum { RELU, GELU, GELU_TANH, SILU, TANH };

static inline __m512 exp16(__m512 x) {
    x = _mm512_max_ps(_mm512_min_ps(x, _mm512_set1_ps(88.f)), _mm512_set1_ps(-87.f));
    __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), 8);
    __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
    __m512 p = _mm512_set1_ps(1.f / 720);
    for (float c : {1.f / 120, 1.f / 24, 1.f / 6, .5f, 1.f, 1.f}) p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(c));
    return _mm512_scalef_ps(p, n);
}

static inline __m512 sigmoid(__m512 x) {
    __m512 one = _mm512_set1_ps(1.f);
    return _mm512_div_ps(one, _mm512_add_ps(one, exp16(_mm512_sub_ps(_mm512_setzero_ps(), x))));
}

// The standard normal distribution function; the error function by Abramowitz and Stegun, 7.1.26, good to 1.5e-7.
static inline __m512 normal(__m512 x) {
    __m512 one = _mm512_set1_ps(1.f), z = _mm512_mul_ps(_mm512_abs_ps(x), _mm512_set1_ps(0.70710678f));
    __m512 t = _mm512_div_ps(one, _mm512_fmadd_ps(z, _mm512_set1_ps(0.3275911f), one));
    __m512 p = _mm512_set1_ps(1.061405429f);
    for (float c : {-1.453152027f, 1.421413741f, -0.284496736f, 0.254829592f})
        p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(c));
    __m512 tail = _mm512_mul_ps(_mm512_mul_ps(p, t), exp16(_mm512_sub_ps(_mm512_setzero_ps(), _mm512_mul_ps(z, z))));
    tail = _mm512_mul_ps(tail, _mm512_set1_ps(.5f));
    return _mm512_mask_sub_ps(tail, _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GT_OQ), one, tail);
}

static inline __m512 activate(int kind, __m512 x) {
    switch (kind) {
        case RELU: return _mm512_max_ps(x, _mm512_setzero_ps());
        case GELU: return _mm512_mul_ps(x, normal(x));
        case SILU: return _mm512_mul_ps(x, sigmoid(x));
        case TANH: return _mm512_fmsub_ps(_mm512_set1_ps(2.f), sigmoid(_mm512_add_ps(x, x)), _mm512_set1_ps(1.f));
        default: {  // x sigmoid(2u) = x (1 + tanh u) / 2
            __m512 cube = _mm512_mul_ps(_mm512_mul_ps(x, x), x);
            __m512 u = _mm512_fmadd_ps(cube, _mm512_set1_ps(0.044715f), x);
            return _mm512_mul_ps(x, sigmoid(_mm512_mul_ps(u, _mm512_set1_ps(2 * 0.79788456f))));
        }
    }
}

static inline __mmask16 left(int64_t n) { return n >= 16 ? 0xffff : (__mmask16)((1u << n) - 1); }

typedef uint16_t half;  // the bits of an fp16 number

static inline __m512 load(__mmask16 m, const float *from) { return _mm512_maskz_loadu_ps(m, from); }

static inline __m512 load(__mmask16 m, const half *from) { return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(m, from)); }

// d numbers as fp16; one too large for it becomes the largest that there is, not infinite.
static inline void store(const float *from, int d, half *to) {
    const __m512 most = _mm512_set1_ps(65504.f);
    for (int i = 0; i < d; i += 16) {
        const __mmask16 m = left(d - i);
        __m512 x = _mm512_min_ps(_mm512_max_ps(load(m, from + i), _mm512_sub_ps(_mm512_setzero_ps(), most)), most);
        _mm256_mask_storeu_epi16(to + i, m, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
}

template <typename Number>
static inline float dot(const float *a, const Number *b, int d) {
    __m512 sum = _mm512_setzero_ps();
    for (int i = 0; i < d; i += 16) {
        const __mmask16 m = left(d - i);
        sum = _mm512_fmadd_ps(load(m, a + i), load(m, b + i), sum);
    }
    return _mm512_reduce_add_ps(sum);
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
