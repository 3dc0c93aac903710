// Products in 8-bit whole numbers, and attention of one query: what decoders (native.cpp) and translators
// (translate.cpp) are made of.
//
// Each row of a weight and each row of an input has its own scale. A row's numbers do not depend on the other rows: sums
// of whole numbers are exact in any order.

#pragma once

#include <type_traits>

#include "vector.h"

extern "C" {
struct Linear {
    const int8_t *weight;  // blocks of 16 outputs, in each for every 4 inputs the 16 x 4 numbers
    const float *scale, *bias;
    const int32_t *shift;  // 128 times the sum of an output's weights: inputs are kept as 0 … 255
    int32_t n_in, n_out;   // n_in a multiple of 4
};
struct Layer {
    Linear qkv, o, w_1, gate, w_2;  // no gate.weight: not gated
    Norm attention_norm, ff_norm;
    Linear cross_q, cross_kv, cross_o;  // of a decoder that looks at a memory
    Norm cross_norm;
};
struct Stack {
    const Layer *layers;
    Norm last;  // no weight: none
    int32_t n_layers, d_model, h, h_kv, d_k, d_v, d_ff, activation, pre_norm, rotary;
};
}

static inline int padded(int d) { return (d + 3) / 4 * 4; }

// Rows are worked on in groups of 8, the rest of them in 4, 2 and 1; a group stores its rows four numbers at a time in
// turn, so that one pointer serves all.
struct Group {
    int64_t first;
    int size;
};

static inline Group group_of(int64_t row, int64_t rows) {
    int64_t first = std::min(row, rows - 1) / 8 * 8;
    int size = 8;
    for (; first + size > rows; size /= 2) {}
    while (row >= first + size) {
        first += size;
        for (; first + size > rows; size /= 2) {}
    }
    return {first, size};
}

// A row as whole numbers 1 … 255, 128 for zero.
static void quantise_row(const float *x, int d, int64_t row, int64_t rows, uint8_t *all, float *scale) {
    const Group group = group_of(row, rows);
    const int n_in = padded(d), r = row - group.first;
    __m512 most = _mm512_setzero_ps();
    for (int i = 0; i < d; i += 16)
        most = _mm512_max_ps(most, _mm512_abs_ps(_mm512_maskz_loadu_ps(left(d - i), x + i)));
    const float largest = _mm512_reduce_max_ps(most);
    const __m512 by = _mm512_set1_ps(largest > 1e-30f ? 127 / largest : 0);
    int32_t *to = (int32_t *)(all + group.first * n_in) + r;
    for (int i = 0; i < d; i += 16) {
        __m512i whole = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_maskz_loadu_ps(left(d - i), x + i), by));
        int32_t fours[4];
        _mm_storeu_si128((__m128i *)fours, _mm512_cvtepi32_epi8(_mm512_add_epi32(whole, _mm512_set1_epi32(128))));
        for (int j = 0; j < 4 && i + 4 * j < d; j++) to[(i / 4 + j) * group.size] = fours[j];
    }
    scale[row] = largest / 127;
}

// To each of 16 sums four products more. GCC 12 copies the sums to and fro around the intrinsic.
static inline void add_products(__m512i &sums, __m512i a, __m512i b) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(a), "v"(b));
}

// R rows of input against B blocks of 16 outputs: what is read serves all of them.
template <int R, int B>
static __attribute__((noinline)) void tile(const Linear &w, int block, const uint8_t *q, const float *scale, float *out, bool add) {
    __m512i acc[R][B];
#pragma GCC unroll 8
    for (int r = 0; r < R; r++)
#pragma GCC unroll 4
        for (int b = 0; b < B; b++) acc[r][b] = _mm512_setzero_si512();
    const int64_t size = (int64_t)16 * w.n_in;
    const int8_t *weight = w.weight + block * size;
    const int32_t *fours = (const int32_t *)q;
    for (int k = 0; k < w.n_in / 4; k++, weight += 64, fours += R) {
        __m512i part[B];
#pragma GCC unroll 4
        for (int b = 0; b < B; b++) part[b] = _mm512_loadu_si512(weight + b * size);
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
            const __m512i four = _mm512_set1_epi32(fours[r]);
#pragma GCC unroll 4
            for (int b = 0; b < B; b++) add_products(acc[r][b], four, part[b]);
        }
    }
#pragma GCC unroll 4
    for (int b = 0; b < B; b++) {
        const int o = 16 * (block + b);
        const __mmask16 m = left(w.n_out - o);
        const __m512 by = _mm512_maskz_loadu_ps(m, w.scale + o), bias = _mm512_maskz_loadu_ps(m, w.bias + o);
        const __m512i shift = _mm512_maskz_loadu_epi32(m, w.shift + o);
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
            __m512 y = _mm512_cvtepi32_ps(_mm512_sub_epi32(acc[r][b], shift));
            y = _mm512_fmadd_ps(y, _mm512_mul_ps(by, _mm512_set1_ps(scale[r])), bias);
            float *to = out + (int64_t)r * w.n_out + o;
            if (add) y = _mm512_add_ps(y, _mm512_maskz_loadu_ps(m, to));
            _mm512_mask_storeu_ps(to, m, y);
        }
    }
}

// Blocks of 16 outputs.
struct Share {
    int first, end;
};

static inline int blocks_of(const Linear &w) { return (w.n_out + 15) / 16; }

// A share of the outputs, for all rows.
static void linear(const Linear &w, Share own, const uint8_t *q, const float *scale, int64_t rows, float *out,
                   bool add = false) {
    int block = own.first;
    auto run = [&](auto size) {
        constexpr int B = decltype(size)::value;
        for (; block + B <= own.end; block += B)
            for (int64_t r = 0; r < rows;) {
                const int R = group_of(r, rows).size;
                const uint8_t *from = q + r * w.n_in;
                float *to = out + r * w.n_out;
                if (R == 8) tile<8, B>(w, block, from, scale + r, to, add);
                else if (R == 4) tile<4, B>(w, block, from, scale + r, to, add);
                else if (R == 2) tile<2, B>(w, block, from, scale + r, to, add);
                else tile<1, B>(w, block, from, scale + r, to, add);
                r += R;
            }
    };
    run(std::integral_constant<int, 3>());
    run(std::integral_constant<int, 1>());
}

// One query of one head over n keys and values, wherever they lie; `weights` has room for n.
template <typename Key, typename Value>
static void attend(const float *q, int64_t n, Key key, Value value, int d_k, int d_v, float *weights, float *z) {
    float most = -INFINITY, by = 1 / std::sqrt((float)d_k), sum = 0;
    for (int64_t j = 0; j < n; j++) {
        weights[j] = dot(q, key(j), d_k) * by;
        most = std::max(most, weights[j]);
    }
    for (int64_t j = 0; j < n; j += 16) {
        __mmask16 m = left(n - j);
        __m512 e = exp16(_mm512_sub_ps(_mm512_maskz_loadu_ps(m, weights + j), _mm512_set1_ps(most)));
        _mm512_mask_storeu_ps(weights + j, m, e);
        sum += _mm512_mask_reduce_add_ps(m, e);
    }
    const __m512 share = _mm512_set1_ps(1 / sum);
    for (int i = 0; i < d_v; i += 64) {  // four sums at a time stay in registers
        __m512 found[4] = {};
        __mmask16 m[4];
        for (int c = 0; c < 4; c++) m[c] = left(std::max(0, d_v - i - 16 * c));
        for (int64_t j = 0; j < n; j++) {
            const __m512 weight = _mm512_set1_ps(weights[j]);
            const auto *from = value(j) + i;
            for (int c = 0; c < 4; c++) found[c] = _mm512_fmadd_ps(weight, load(m[c], from + 16 * c), found[c]);
        }
        for (int c = 0; c < 4; c++) _mm512_mask_storeu_ps(z + i + 16 * c, m[c], _mm512_mul_ps(found[c], share));
    }
}
