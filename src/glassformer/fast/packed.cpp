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
    for (int64_t j = 0; j < most_seen; j += 16) {
        __m512 found[Q] = {};
        for (int c = 0; c < head.d_k; c++) {
            const __m512 keys = _mm512_loadu_ps(head.turned + c * head.wide + j);
#pragma GCC unroll 4
            for (int q = 0; q < Q; q++)
                found[q] = _mm512_fmadd_ps(_mm512_set1_ps(head.queries[q * head.d_k + c]), keys, found[q]);
        }
#pragma GCC unroll 4
        for (int q = 0; q < Q; q++) _mm512_storeu_ps(head.scores + q * head.wide + j, found[q]);
    }
    __m512 share[Q];
    for (int q = 0; q < Q; q++) {
        float *own = head.scores + q * head.wide;
        const int64_t seen = head.causal ? first + q + 1 : head.n;
        __m512 most = _mm512_set1_ps(-INFINITY), sum = _mm512_setzero_ps();
        for (int64_t j = 0; j < seen; j += 16) most = _mm512_mask_max_ps(most, left(seen - j), most, _mm512_loadu_ps(own + j));
        most = _mm512_set1_ps(_mm512_reduce_max_ps(most));
        for (int64_t j = 0; j < most_seen; j += 16) {
            const __mmask16 m = left(std::max((int64_t)0, seen - j));
            const __m512 e = _mm512_maskz_mov_ps(m, exp16(_mm512_sub_ps(_mm512_loadu_ps(own + j), most)));
            _mm512_storeu_ps(own + j, e);
            sum = _mm512_add_ps(sum, e);
        }
        share[q] = _mm512_set1_ps(1 / _mm512_reduce_add_ps(sum));
    }
    for (int c = 0; c < head.d_k; c += 16) {
        const __mmask16 m = left(head.d_k - c);
        __m512 mean[Q] = {};
        for (int64_t j = 0; j < most_seen; j++) {
            const __m512 values = _mm512_maskz_loadu_ps(m, head.qkv + j * row + 2 * head.d + c);
#pragma GCC unroll 4
            for (int q = 0; q < Q; q++)
                mean[q] = _mm512_fmadd_ps(_mm512_set1_ps(head.scores[q * head.wide + j]), values, mean[q]);
        }
        const __m512 bias = _mm512_maskz_loadu_ps(m, head.bias + 2 * head.d + c);
#pragma GCC unroll 4
        for (int q = 0; q < Q; q++)
            _mm512_mask_storeu_ps(head.z + (first + q) * head.d + c, m, _mm512_fmadd_ps(mean[q], share[q], bias));
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
        for (int i = 0; i < d; i += 16) {
            const __mmask16 m = left(d - i);
            const __m512 given = _mm512_add_ps(_mm512_maskz_loadu_ps(m, x + r * d + i), _mm512_maskz_loadu_ps(m, bias + i));
            _mm512_mask_storeu_ps(x + r * d + i, m, activate(kind, given));
        }
}

// x (t, d) becomes stream + x + bias, and its norm if one is given.
extern "C" void glassformer_add(float *x, const float *stream, const float *bias, int64_t rows, int d, const Norm *norm,
                                int n_threads) {
#pragma omp parallel for num_threads(n_threads)
    for (int64_t r = 0; r < rows; r++) {
        float *own = x + r * d;
        const float *from = stream + r * d;
        for (int i = 0; i < d; i += 16) {
            const __mmask16 m = left(d - i);
            const __m512 added = _mm512_add_ps(_mm512_maskz_loadu_ps(m, from + i), _mm512_maskz_loadu_ps(m, bias + i));
            _mm512_mask_storeu_ps(own + i, m, _mm512_add_ps(_mm512_maskz_loadu_ps(m, own + i), added));
        }
        if (norm->weight) norm_row(*norm, own, d, own);
    }
}
