// What stands between the products of an encoder whose texts lie end to end, in fp32: attention inside each text, biases
// with the activation, biases with the stream and its norm. Each reads and writes its numbers once.
//
// d width, h heads, t positions of all texts together

#include "vector.h"

// A head of a text of n positions, with room for what is worked out on the way.
struct Head {
    const float *qkv, *bias;  // rows are 3d apart
    float *z;                 // rows are d apart
    int64_t n;
    int d, d_k, causal;
    float *turned, *queries, *scores;  // (d_k, wide), (QUERIES, d_k), (QUERIES, wide)
    int64_t wide;
};

enum { QUERIES = 4 };  // at a time: what is read of keys and values serves all of them

// z = softmax((q + bias)(k + bias)ᵀ / √d_k)(v + bias) for Q queries from `first` on. A key's bias adds the same to all
// scores of a query, so that it may be left out; the shares sum to one, so that a value's is added to the mean.
template <int Q>
static void attend_queries(const Head &head, int64_t first) {
    const float by = 1 / std::sqrt((float)head.d_k);
    const int64_t most_seen = head.causal ? first + Q : head.n, row = 3 * head.d;
    for (int q = 0; q < Q; q++)
        for (int c = 0; c < head.d_k; c++)
            head.queries[q * head.d_k + c] = (head.qkv[(first + q) * row + c] + head.bias[c]) * by;
    for (int64_t j = 0; j < most_seen; j += LANES) {
        Floats found[Q] = {};
        for (int c = 0; c < head.d_k; c++) {
            const Floats keys = load(left(LANES), head.turned + c * head.wide + j);
#pragma GCC unroll 4
            for (int q = 0; q < Q; q++)
                found[q] = fma(all(head.queries[q * head.d_k + c]), keys, found[q]);
        }
#pragma GCC unroll 4
        for (int q = 0; q < Q; q++) store(left(LANES), found[q], head.scores + q * head.wide + j);
    }
    Floats share[Q];
    for (int q = 0; q < Q; q++) {
        float *own = head.scores + q * head.wide;
        const int64_t seen = head.causal ? first + q + 1 : head.n;
        Floats most = all(-INFINITY), sum = all(0.f);
        for (int64_t j = 0; j < seen; j += LANES) most = larger(most, only(left(seen - j), load(left(LANES), own + j), -INFINITY));
        most = all(largest(most));
        for (int64_t j = 0; j < most_seen; j += LANES) {
            const Mask m = left(std::max((int64_t)0, seen - j));
            const Floats e = only(m, exp_of(load(left(LANES), own + j) - most), 0.f);
            store(left(LANES), e, own + j);
            sum = sum + e;
        }
        share[q] = all(1 / total(sum));
    }
    for (int c = 0; c < head.d_k; c += LANES) {
        const Mask m = left(head.d_k - c);
        Floats mean[Q] = {};
        for (int64_t j = 0; j < most_seen; j++) {
            const Floats values = load(m, head.qkv + j * row + 2 * head.d + c);
#pragma GCC unroll 4
            for (int q = 0; q < Q; q++)
                mean[q] = fma(all(head.scores[q * head.wide + j]), values, mean[q]);
        }
        const Floats bias = load(m, head.bias + 2 * head.d + c);
#pragma GCC unroll 4
        for (int q = 0; q < Q; q++)
            store(m, fma(mean[q], share[q], bias), head.z + (first + q) * head.d + c);
    }
}

static void attend_head(const Head &head) {
    for (int64_t j = 0; j < head.n; j++)
        for (int c = 0; c < head.d_k; c++) head.turned[c * head.wide + j] = head.qkv[j * 3 * head.d + head.d + c];
    int64_t i = 0;
    for (; i + QUERIES <= head.n; i += QUERIES) attend_queries<QUERIES>(head, i);
    for (; i < head.n; i++) attend_queries<1>(head, i);
}

// qkv (t, 3d) without its bias (3d); a text is `begins[i]` to `begins[i + 1]`.
extern "C" void glassformer_attend(const float *qkv, const float *bias, const int64_t *begins, int64_t n_texts, int d, int h,
                                   int causal, float *z, int n_threads) {
    int64_t longest = 0;
    for (int64_t i = 0; i < n_texts; i++) longest = std::max(longest, begins[i + 1] - begins[i]);
    const int64_t wide = (longest + 15) / 16 * 16, d_k = d / h;
#pragma omp parallel num_threads(n_threads)
    {
        std::unique_ptr<float[]> room(new float[(d_k + QUERIES) * wide + QUERIES * d_k]());
        float *scores = room.get() + d_k * wide, *queries = scores + QUERIES * wide;
#pragma omp for schedule(dynamic)
        for (int64_t item = 0; item < n_texts * h; item++) {
            const int64_t i = item / h, at = item % h * d_k;
            attend_head({qkv + begins[i] * 3 * d + at, bias + at, z + begins[i] * d + at, begins[i + 1] - begins[i], d,
                         (int)d_k, causal, room.get(), queries, scores, wide});
        }
    }
}

// x (t, d) becomes activation(x + bias).
extern "C" void glassformer_activate(float *x, const float *bias, int64_t rows, int d, int kind, int n_threads) {
#pragma omp parallel for num_threads(n_threads)
    for (int64_t r = 0; r < rows; r++)
        for (int i = 0; i < d; i += LANES) {
            const Mask m = left(d - i);
            float *own = x + r * d + i;
            store(m, activate(kind, load(m, own) + load(m, bias + i)), own);
        }
}

// x (t, d) becomes stream + x + bias, and its norm if one is given.
extern "C" void glassformer_add(float *x, const float *stream, const float *bias, int64_t rows, int d, const Norm *norm,
                                int n_threads) {
#pragma omp parallel for num_threads(n_threads)
    for (int64_t r = 0; r < rows; r++) {
        float *own = x + r * d;
        const float *from = stream + r * d;
        for (int i = 0; i < d; i += LANES) {
            const Mask m = left(d - i);
            store(m, load(m, own + i) + (load(m, from + i) + load(m, bias + i)), own + i);
        }
        if (norm->weight) norm_row(*norm, own, d, own);
    }
}
