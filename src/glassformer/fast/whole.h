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
    const int32_t *shift;  // 128 times the sum of an output's weights, as inputs are kept as 1 … 255
    int32_t n_in, n_out;   // n_in a multiple of 8
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

static inline int padded(int d) { return (d + 7) / 8 * 8; }

// Rows are worked on in groups of ROWS, the rest of them in halves of that; a group stores its rows four numbers at a time in
// turn, so that one pointer serves all.
struct Group {
    int64_t first;
    int size;
};

static inline Group group_of(int64_t row, int64_t rows) {
    int64_t first = std::min(row, rows - 1) / ROWS * ROWS;
    int size = ROWS;
    for (; first + size > rows; size /= 2) {}
    while (row >= first + size) {
        first += size;
        for (; first + size > rows; size /= 2) {}
    }
    return {first, size};
}

// A row as whole numbers, ZERO - 127 … ZERO + 127.
static void quantise_row(const float *x, int d, int64_t row, int64_t rows, uint8_t *to, float *scale) {
    const Group group = group_of(row, rows);
    Floats most = all(0.f);
    for (int i = 0; i < d; i += LANES) most = larger(most, size(load(left(d - i), x + i)));
    const float most_of_all = largest(most);
    const Floats by = all(most_of_all > 1e-30f ? 127 / most_of_all : 0);
    int32_t *fours = (int32_t *)(to + group.first * padded(d)) + (row - group.first);
    for (int i = 0; i < d; i += LANES) {
        int32_t some[LANES / 4];
        store_input(load(left(d - i), x + i) * by, (uint8_t *)some);
        for (int j = 0; j < LANES / 4 && i + 4 * j < d; j++) fours[(i / 4 + j) * group.size] = some[j];
    }
    scale[row] = most_of_all / 127;
}

// f(0), f(1) … f(N - 1), written out: what is indexed by these stays in registers.
template <int N, typename F>
static inline __attribute__((always_inline)) void each(F &&f) {
    if constexpr (N > 1) each<N - 1>(f);
    f(std::integral_constant<int, N - 1>());
}
#define EACH(i) [&](auto i) __attribute__((always_inline))

// R rows of input against B blocks of 16 outputs: what is read serves all of them. Meanwhile memory is asked for what lies
// `ahead`, so many bytes a step.
template <int R, int B>
static __attribute__((noinline)) void tile(const Linear &w, int block, const uint8_t *q, const float *scale, float *out, bool add,
                                           const int8_t *ahead, int64_t pace) {
    constexpr int IN_BLOCK = 16 / LANES, P = B * IN_BLOCK;  // registers
    Wholes sums[R][P];
    each<R>(EACH(r) { each<P>(EACH(p) { sums[r][p] = no_wholes(); }); });
    const int64_t size = (int64_t)16 * w.n_in;
    const int8_t *weight = w.weight + block * size;
    const int32_t *fours = (const int32_t *)q;
    for (int k = 0; k < w.n_in / 4; k += FOURS, weight += 64 * FOURS, fours += R * FOURS, ahead += pace) {
        _mm_prefetch(ahead, _MM_HINT_T0);
        Wholes part[P][FOURS];
        each<P>(EACH(p) {
            each<FOURS>(EACH(f) { part[p][f] = load(weight + p / IN_BLOCK * size + p % IN_BLOCK * 4 * LANES + 64 * f); });
        });
        each<R>(EACH(r) {
            Wholes own[FOURS];
            each<FOURS>(EACH(f) { own[f] = spread(fours[R * f + r]); });
            each<P>(EACH(p) { add_products(sums[r][p], own, part[p]); });
        });
    }
    each<P>(EACH(p) {
        const int o = 16 * block + LANES * p;
        if (o < w.n_out) {
            const Mask m = left(w.n_out - o);
            const Floats by = load(m, w.scale + o), bias = load(m, w.bias + o);
            const Wholes shift = load(m, w.shift + o);
            each<R>(EACH(r) {
                Floats y = fma(floats(less(sums[r][p], shift)), by * all(scale[r]), bias);
                float *to = out + (int64_t)r * w.n_out + o;
                if (add) y = y + load(m, to);
                store(m, y, to);
            });
        }
    });
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
                // Many rows work on a block for so long that memory would stand still: each group asks for its part of the next.
                const bool many = rows > ROWS;
                const int64_t size = (int64_t)16 * w.n_in;
                const int8_t *next = w.weight + size * block + (many ? size * B + size * B * r / rows : 0);
                const int64_t pace = many ? 64 * FOURS * B * R / rows : 0;
                if (R == ROWS) tile<ROWS, B>(w, block, from, scale + r, to, add, next, pace);
                else if (R == 4) tile<4, B>(w, block, from, scale + r, to, add, next, pace);
                else if (R == 2) tile<2, B>(w, block, from, scale + r, to, add, next, pace);
                else tile<1, B>(w, block, from, scale + r, to, add, next, pace);
                r += R;
            }
    };
    run(std::integral_constant<int, BLOCKS>());
    run(std::integral_constant<int, 1>());
}

// The mean of n values by their weights, S registers of it.
template <int S, typename Value>
static void mean(const float *weights, int64_t n, Value value, int at, int d_v, float share, float *z) {
    Floats found[S] = {};
    Mask m[S];
    for (int c = 0; c < S; c++) m[c] = left(d_v - at - LANES * c);
    for (int64_t j = 0; j < n; j++) {
        const Floats weight = all(weights[j]);
        const auto *from = value(j) + at;
#pragma GCC unroll 8
        for (int c = 0; c < S; c++) found[c] = fma(weight, load(m[c], from + LANES * c), found[c]);
    }
    for (int c = 0; c < S; c++) store(m[c], found[c] * all(share), z + at + LANES * c);
}

// One query of one head over n keys and values, wherever they lie; `weights` has room for n.
template <typename Key, typename Value>
static void attend(const float *q, int64_t n, Key key, Value value, int d_k, int d_v, float *weights, float *z) {
    float most = -INFINITY, by = 1 / std::sqrt((float)d_k), sum = 0;
    for (int64_t j = 0; j < n; j += 4) {
        auto next = [&](int i) { return key(std::min(j + i, n - 1)); };
        const decltype(key(0)) keys[4] = {next(0), next(1), next(2), next(3)};
        float found[4];
        _mm_storeu_ps(found, four_dots(q, keys, d_k));
        for (int64_t i = j; i < std::min(j + 4, n); i++) most = std::max(most, weights[i] = found[i - j] * by);
    }
    for (int64_t j = 0; j < n; j += LANES) {
        const Mask m = left(n - j);
        const Floats e = exp_of(load(m, weights + j) - all(most));
        store(m, e, weights + j);
        sum += total(only(m, e, 0.f));
    }
    int at = 0;
    auto run = [&](auto size) {
        constexpr int S = decltype(size)::value;
        for (; d_v - at > LANES * (S - 1); at += LANES * S) mean<S>(weights, n, value, at, d_v, 1 / sum, z);
    };
    run(std::integral_constant<int, 8>());
    run(std::integral_constant<int, 4>());
    run(std::integral_constant<int, 2>());
    run(std::integral_constant<int, 1>());
}
