// A decoder's stack in 8-bit whole numbers: everything between the embedding and the head in one call.
//
// Where one token is made at a time, the work is to read the weights once; a Python step of some hundred small
// operations takes as long again. Norms, softmax and attention are in fp32; keys and values are kept in fp16, because
// many rows read more of them than of weights. Attention runs over the real slots of its own row only.
//
// Threads are torch's: compiled with -fopenmp, but linked to no runtime, this finds the one that torch has loaded.

#include "whole.h"

extern "C" {
struct Call {
    float *x;               // (b, n, d_model), changed in place
    half *const *k, *const *v;  // for each layer (b, h_kv, capacity, d)
    const uint8_t *mask;    // (b, n, start + n) or none; the future is hidden anyway
    const float *cos, *sin;  // (b, n, d_k)
    int64_t b, n, start, capacity;
};
}

extern "C" const int32_t glassformer_most_together = MOST_TOGETHER;

enum { NO_ROTARY, HALVES, INTERLEAVED };

const int64_t FEW = 16;  // rows

// What this thread makes of all outputs.
static inline Share share_of(const Linear &w) {
    const int64_t blocks = blocks_of(w), i = omp_get_thread_num(), n = omp_get_num_threads();
    return {(int)(blocks * i / n), (int)(blocks * (i + 1) / n)};
}

static void own_linear(const Linear &w, const uint8_t *q, const float *scale, int64_t rows, float *out, bool add = false) {
    linear(w, share_of(w), q, scale, rows, out, add);
}

static void turn(float *x, const float *cos, const float *sin, int d, int layout) {
    for (int i = 0; i < d / 2; i++) {
        int a = layout == HALVES ? i : 2 * i, b = layout == HALVES ? i + d / 2 : 2 * i + 1;
        float first = x[a], second = x[b];
        x[a] = first * cos[a] - second * sin[a];
        x[b] = second * cos[b] + first * sin[b];
    }
}

// One query of one head over the slots that it may see; `weights` and `slots` have room for all.
static void attend_slots(const float *q, const half *k, const half *v, int64_t n_slots, const uint8_t *mask, int d_k,
                         int d_v, float *weights, int64_t *slots, float *z) {
    int64_t n = 0;
    for (int64_t j = 0; j < n_slots; j++)
        if (!mask || mask[j]) slots[n++] = j;
    attend(q, n, [=](int64_t j) { return k + slots[j] * d_k; }, [=](int64_t j) { return v + slots[j] * d_v; }, d_k, d_v,
           weights, z);
}

extern "C" void glassformer_linear(const Linear *w, const float *x, int64_t d, int64_t rows, float *out, int n_threads) {
    std::unique_ptr<uint8_t[]> q(new uint8_t[rows * w->n_in]);
    std::unique_ptr<float[]> scale(new float[rows]);
#pragma omp parallel num_threads(n_threads)
    {
#pragma omp for
        for (int64_t r = 0; r < rows; r++) quantise_row(x + r * d, d, r, rows, q.get(), scale.get());
        own_linear(*w, q.get(), scale.get(), rows, out);
    }
}

// The logarithm of the sum of each row's exponentials.
extern "C" void glassformer_log_totals(const float *scores, int64_t n, int64_t rows, float *out, int n_threads) {
#pragma omp parallel for num_threads(n_threads)
    for (int64_t r = 0; r < rows; r++) out[r] = log_total(scores + r * n, n);
}

extern "C" void glassformer_stack(const Stack *stack, const Call *call, int n_threads) {
    const Stack &s = *stack;
    const Call &c = *call;
    const int64_t rows = c.b * c.n, m = c.start + c.n;
    const int d = s.d_model, d_z = s.h * s.d_v, d_q = s.h * s.d_k, d_kv = s.h_kv * s.d_k, group = s.h / s.h_kv;
    const int d_qkv = d_q + d_kv + s.h_kv * s.d_v, widest = padded(std::max(std::max(d, d_z), (int)s.d_ff));
    const bool few = rows <= FEW;
    std::unique_ptr<float[]> qkv(new float[rows * d_qkv]), z(new float[rows * d_z]);
    std::unique_ptr<float[]> hidden(new float[rows * s.d_ff]), gate(new float[rows * s.d_ff]);
    std::unique_ptr<uint8_t[]> all_q(new uint8_t[rows * widest]);
    std::unique_ptr<float[]> all_scale(new float[rows]);

#pragma omp parallel num_threads(n_threads)
    {
        std::unique_ptr<float[]> row(new float[std::max((int64_t)d, m)]);
        std::unique_ptr<int64_t[]> slots(new int64_t[m]);
        std::unique_ptr<uint8_t[]> own_q(few ? new uint8_t[rows * widest] : nullptr);
        std::unique_ptr<float[]> own_scale(few ? new float[rows] : nullptr);
        uint8_t *q = few ? own_q.get() : all_q.get();
        float *scale = few ? own_scale.get() : all_scale.get();

        // Rows as whole numbers. Few rows each thread makes all by itself: to wait for the others would take longer.
        auto quantise = [&](const float *x, int width, const Norm *norm) {
            auto one = [&](int64_t r) {
                const float *from = x + r * width;
                if (norm) norm_row(*norm, from, width, row.get());
                quantise_row(norm ? row.get() : from, width, r, rows, q, scale);
            };
            if (few) {
                for (int64_t r = 0; r < rows; r++) one(r);
            } else {
#pragma omp for
                for (int64_t r = 0; r < rows; r++) one(r);
            }
        };
        auto settle = [&](const Norm &norm) {
#pragma omp for
            for (int64_t r = 0; r < rows; r++) norm_row(norm, c.x + r * d, d, c.x + r * d);
        };

        for (int l = 0; l < s.n_layers; l++) {
            const Layer &layer = s.layers[l];
            quantise(c.x, d, s.pre_norm ? &layer.attention_norm : nullptr);
            own_linear(layer.qkv, q, scale, rows, qkv.get());
#pragma omp barrier
            // Turn, and write keys and values to their slots. A thread gets the same items in both loops, so that only
            // several rows of one text have to wait for each other's keys.
#pragma omp for schedule(static) nowait
            for (int64_t item = 0; item < rows * s.h_kv; item++) {
                const int64_t r = item / s.h_kv, a = item % s.h_kv;
                const int64_t at = (r / c.n * s.h_kv + a) * c.capacity + c.start + r % c.n;
                float *own = &qkv[r * d_qkv], *k = own + d_q + a * s.d_k, *v = own + d_q + d_kv + a * s.d_v;
                if (s.rotary) {
                    const float *cos = c.cos + r * s.d_k, *sin = c.sin + r * s.d_k;
                    turn(k, cos, sin, s.d_k, s.rotary);
                    for (int i = 0; i < group; i++) turn(own + (a * group + i) * s.d_k, cos, sin, s.d_k, s.rotary);
                }
                store(k, s.d_k, c.k[l] + at * s.d_k);
                store(v, s.d_v, c.v[l] + at * s.d_v);
            }
            if (c.n > 1) {
#pragma omp barrier
            }
#pragma omp for schedule(static)
            for (int64_t item = 0; item < rows * s.h_kv; item++) {
                const int64_t r = item / s.h_kv, a = item % s.h_kv, from = (r / c.n * s.h_kv + a) * c.capacity;
                for (int64_t i = a * group; i < (a + 1) * group; i++)
                    attend_slots(&qkv[r * d_qkv + i * s.d_k], c.k[l] + from * s.d_k, c.v[l] + from * s.d_v,
                           c.start + r % c.n + 1, c.mask ? c.mask + r * m : nullptr, s.d_k, s.d_v, row.get(),
                           slots.get(), &z[r * d_z + i * s.d_v]);
            }
            quantise(z.get(), d_z, nullptr);
            own_linear(layer.o, q, scale, rows, c.x, true);
#pragma omp barrier
            if (!s.pre_norm) settle(layer.attention_norm);

            quantise(c.x, d, s.pre_norm ? &layer.ff_norm : nullptr);
            own_linear(layer.w_1, q, scale, rows, hidden.get());
            if (layer.gate.weight) own_linear(layer.gate, q, scale, rows, gate.get());
            const Share own = share_of(layer.w_1);
            for (int64_t r = 0; r < rows; r++)
                for (int i = 16 * own.first; i < std::min(16 * own.end, (int)s.d_ff); i += LANES) {
                    const Mask some = left(s.d_ff - i);
                    float *to = &hidden[r * s.d_ff + i];
                    const Floats value = load(some, to);
                    store(some, !layer.gate.weight ? activate(s.activation, value) :
                        value * activate(s.activation, load(some, &gate[r * s.d_ff + i])), to);
                }
#pragma omp barrier
            quantise(hidden.get(), s.d_ff, nullptr);
            own_linear(layer.w_2, q, scale, rows, c.x, true);
#pragma omp barrier
            if (!s.pre_norm) settle(layer.ff_norm);
        }
        if (s.last.weight) settle(s.last);
    }
}
