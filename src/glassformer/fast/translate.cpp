// Translators in 8-bit whole numbers: texts in, the best answers out, the search included, all on one thread. Several
// that know the same words answer together: what may follow has the mean of the probabilities that they give it.
//
// The texts of a call run side by side: a step of the search takes the open hypotheses of all of them through the
// decoder, whose weights are so read once for all, and a text that has its answers leaves. A hypothesis has no keys and
// values of its own, which would have to be copied at every turn: it knows for each earlier step the row that has them.
// The search is that of decode/beam.py in every detail.
//
// A row's numbers do not depend on the other rows, so that a text has the same answer in any company.

#include <new>
#include <vector>

#include "whole.h"

extern "C" {
struct Words {
    const float *table, *positions;  // a word and a position as they enter, (N, d) and (longest, d)
    Norm norm;                       // no weight: none
};
struct Translator {
    Stack encoder, decoder;
    Words source, target;
    Linear head;
    int32_t start, end;  // marks
};
struct Texts {
    const int32_t *source;  // end to end; a text is begins[i] to begins[i + 1]
    const int64_t *begins;
    const int32_t *prefixes;  // (n, n_prefix): what each answer begins with
    int64_t n, n_prefix, beam, n_best, max_len, no_repeat;
    double length_penalty;
    int32_t *ids;  // (n, n_best, n_prefix + max_len)
    int32_t *lengths;  // (n, n_best), -1 where there is no answer
    float *scores;
};
}

const int WORDS = 60;  // blocks of 16 that are looked through while they are in the cache

struct Hypothesis {
    int64_t text;
    float total;
    std::vector<int32_t> ids, rows;  // what it says, and for each step where its keys and values are
};

struct Answer {
    std::vector<int32_t> ids;
    float score;
};

struct Candidate {
    float score;
    int32_t word;
    int64_t row;
};

// What is known of a row's scores after some of the words.
struct Seen {
    float most = -INFINITY, sum = 0;  // of exponentials, each less the most
    std::vector<Candidate> best;      // at most as many as asked for, best first
};

template <typename T>
static T *room(std::vector<T> &all, int64_t n) {
    if ((int64_t)all.size() < n) all.resize(n);
    return all.data();
}

static void look(const float *scores, int n, int32_t first, int64_t row, size_t most, Seen &seen) {
    Floats top = all(-INFINITY), sum = all(0.f);
    for (int i = 0; i < n; i += LANES) top = larger(top, only(left(n - i), load(left(n - i), scores + i), -INFINITY));
    const float highest = std::max(seen.most, largest(top));
    if (highest == -INFINITY) return;
    float least = seen.best.size() < most ? -INFINITY : seen.best.back().score;
    for (int i = 0; i < n; i += LANES) {
        const Mask m = left(n - i);
        const Floats x = load(m, scores + i);
        sum = sum + only(m, exp_of(x - all(highest)), 0.f);
        unsigned better = above(m, x, all(least));
        for (; better; better &= better - 1) {
            const int at = i + __builtin_ctz(better);
            if (!(scores[at] > least)) continue;
            auto place = std::find_if(seen.best.begin(), seen.best.end(), [&](auto &c) { return c.score < scores[at]; });
            seen.best.insert(place, {scores[at], first + at, row});
            if (seen.best.size() > most) seen.best.pop_back();
            if (seen.best.size() == most) least = seen.best.back().score;
        }
    }
    seen.sum = seen.sum * std::exp(seen.most - highest) + total(sum);
    seen.most = highest;
}

// Some blocks of a layer's outputs as a layer.
static Linear part_of(const Linear &w, int block, int n_blocks) {
    const int first = 16 * block;
    return {w.weight + (int64_t)first * w.n_in, w.scale + first, w.bias + first, w.shift + first, w.n_in,
            std::min(16 * n_blocks, w.n_out - first)};
}

// One translator on its way through the texts.
class Running {
    const Translator &t;
    const Texts &asked;
    std::vector<uint8_t> q;
    std::vector<float> scale, row, x, z, queries, hidden, gate, weights, scores;
    std::vector<std::vector<float>> memories;           // for each layer of the decoder keys and values of all sources
    std::vector<std::vector<std::vector<float>>> kept;  // for each layer and step keys and values of its rows

    void quantise(const float *from, int d, int64_t rows, const Norm *norm) {
        uint8_t *to = room(q, rows * padded(d));
        float *scales = room(scale, rows), *normed = room(row, d);
        for (int64_t r = 0; r < rows; r++) {
            if (norm) norm_row(*norm, from + r * d, d, normed);
            quantise_row(norm ? normed : from + r * d, d, r, rows, to, scales);
        }
    }

    void project(const Linear &w, int64_t rows, float *out, bool add = false) {
        linear(w, {0, blocks_of(w)}, q.data(), scale.data(), rows, out, add);
    }

    void settle(const Norm &norm, int d, int64_t rows) {
        for (int64_t r = 0; r < rows; r++) norm_row(norm, &x[r * d], d, &x[r * d]);
    }

    // Adds to the stream what `out` makes of what `inside` leaves in `found`, width numbers a row.
    template <typename Inside>
    void beside(const Stack &s, const Norm &norm, const Linear &out, std::vector<float> &found, int width, int64_t rows,
                Inside inside) {
        quantise(x.data(), s.d_model, rows, s.pre_norm ? &norm : nullptr);
        room(found, rows * width);
        inside();
        quantise(found.data(), width, rows, nullptr);
        project(out, rows, x.data(), true);
        if (!s.pre_norm) settle(norm, s.d_model, rows);
    }

    void feed_forward(const Stack &s, const Layer &layer, int64_t rows) {
        beside(s, layer.ff_norm, layer.w_2, hidden, s.d_ff, rows, [&] {
            project(layer.w_1, rows, hidden.data());
            const bool gated = layer.gate.weight;
            if (gated) project(layer.gate, rows, room(gate, rows * s.d_ff));
            for (int64_t i = 0; i < rows * s.d_ff; i += LANES) {
                const Mask m = left(rows * s.d_ff - i);
                const Floats value = load(m, &hidden[i]);
                const Floats passed = activate(s.activation, gated ? load(m, &gate[i]) : value);
                store(m, gated ? value * passed : passed, &hidden[i]);
            }
        });
    }

    void enter(const Words &words, int d, int64_t r, int32_t id, int64_t position) {
        float *to = &x[r * d];
        const float *word = words.table + (int64_t)id * d, *place = words.positions + position * d;
        for (int i = 0; i < d; i++) to[i] = word[i] + place[i];
        if (words.norm.weight) norm_row(words.norm, to, d, to);
    }

  public:
    Running(const Translator &t, const Texts &asked) : t(t), asked(asked), kept(t.decoder.n_layers) {}

    void encode() {
        const Stack &s = t.encoder;
        const int d_q = s.h * s.d_k, d_kv = s.h_kv * s.d_k, d_qkv = d_q + d_kv + s.h_kv * s.d_v, d_z = s.h * s.d_v;
        const int64_t rows = asked.begins[asked.n];
        room(x, rows * s.d_model);
        for (int64_t i = 0; i < asked.n; i++)
            for (int64_t r = asked.begins[i]; r < asked.begins[i + 1]; r++)
                enter(t.source, s.d_model, r, asked.source[r], r - asked.begins[i]);
        for (int l = 0; l < s.n_layers; l++) {
            const Layer &layer = s.layers[l];
            beside(s, layer.attention_norm, layer.o, z, d_z, rows, [&] {
                project(layer.qkv, rows, room(queries, rows * d_qkv));
                for (int64_t i = 0; i < asked.n; i++) {
                    const int64_t first = asked.begins[i], n = asked.begins[i + 1] - first;
                    for (int a = 0; a < s.h; a++) {
                        const float *k = &queries[first * d_qkv + d_q + a * s.h_kv / s.h * s.d_k];
                        const float *v = &queries[first * d_qkv + d_q + d_kv + a * s.h_kv / s.h * s.d_v];
                        for (int64_t r = first; r < first + n; r++)
                            attend(&queries[r * d_qkv + a * s.d_k], n, [=](int64_t j) { return k + j * d_qkv; },
                                   [=](int64_t j) { return v + j * d_qkv; }, s.d_k, s.d_v, room(weights, n),
                                   &z[r * d_z + a * s.d_v]);
                    }
                }
            });
            feed_forward(s, layer, rows);
        }
        if (s.last.weight) settle(s.last, s.d_model, rows);
        quantise(x.data(), s.d_model, rows, nullptr);
        for (int l = 0; l < t.decoder.n_layers; l++) {
            const Linear &kv = t.decoder.layers[l].cross_kv;
            memories.emplace_back(rows * kv.n_out);
            project(kv, rows, memories[l].data());
        }
    }

    // The last words of all open hypotheses through the decoder, ready to speak of what may follow.
    void decode(int64_t step, const std::vector<Hypothesis> &open) {
        const Stack &s = t.decoder;
        const int d_q = s.h * s.d_k, d_kv = s.h_kv * s.d_k, d_memory = d_kv + s.h_kv * s.d_v, d_qkv = d_q + d_memory;
        const int d_z = s.h * s.d_v;
        const int64_t rows = open.size();
        room(x, rows * s.d_model);
        for (int64_t r = 0; r < rows; r++) enter(t.target, s.d_model, r, step ? open[r].ids.back() : t.start, step);
        for (int l = 0; l < s.n_layers; l++) {
            const Layer &layer = s.layers[l];
            beside(s, layer.attention_norm, layer.o, z, d_z, rows, [&] {
                auto &all = kept[l];
                all.emplace_back(rows * d_memory);
                project(layer.qkv, rows, room(queries, rows * d_qkv));
                for (int64_t r = 0; r < rows; r++)
                    std::copy_n(&queries[r * d_qkv + d_q], d_memory, &all[step][r * d_memory]);
                for (int64_t r = 0; r < rows; r++) {
                    const int32_t *where = open[r].rows.data();
                    for (int a = 0; a < s.h; a++) {
                        const int k = a * s.h_kv / s.h * s.d_k, v = d_kv + a * s.h_kv / s.h * s.d_v;
                        attend(&queries[r * d_qkv + a * s.d_k], step + 1,
                               [&, k](int64_t j) { return all[j].data() + (int64_t)where[j] * d_memory + k; },
                               [&, v](int64_t j) { return all[j].data() + (int64_t)where[j] * d_memory + v; }, s.d_k,
                               s.d_v, room(weights, step + 1), &z[r * d_z + a * s.d_v]);
                    }
                }
            });
            beside(s, layer.cross_norm, layer.cross_o, z, d_z, rows, [&] {
                project(layer.cross_q, rows, room(queries, rows * d_q));
                for (int64_t r = 0; r < rows; r++) {
                    const int64_t first = asked.begins[open[r].text], n = asked.begins[open[r].text + 1] - first;
                    for (int a = 0; a < s.h; a++) {
                        const float *k = &memories[l][first * d_memory + a * s.h_kv / s.h * s.d_k];
                        const float *v = &memories[l][first * d_memory + d_kv + a * s.h_kv / s.h * s.d_v];
                        attend(&queries[r * d_q + a * s.d_k], n, [=](int64_t j) { return k + j * d_memory; },
                               [=](int64_t j) { return v + j * d_memory; }, s.d_k, s.d_v, room(weights, n),
                               &z[r * d_z + a * s.d_v]);
                    }
                }
            });
            feed_forward(s, layer, rows);
        }
        if (s.last.weight) settle(s.last, s.d_model, rows);
        quantise(x.data(), s.d_model, rows, nullptr);
    }

    // The scores of some blocks of words, for each row one after the other.
    float *speak(int block, int n_blocks, int64_t rows) {
        const Linear some = part_of(t.head, block, n_blocks);
        project(some, rows, room(scores, rows * some.n_out));
        return scores.data();
    }
};

class Worker {
    const Translator &t;  // the first, whose words and marks are those of all
    const Texts &asked;
    std::vector<Running> running;
    std::vector<float> shares;
    std::vector<Hypothesis> open;
    std::vector<std::vector<Answer>> ended;
    std::vector<char> best_ended;

    // What would complete a series of words that the hypothesis has already.
    std::vector<int32_t> forbidden(const Hypothesis &h) {
        const int64_t n = asked.no_repeat, length = h.ids.size();
        std::vector<int32_t> found;
        for (int64_t j = 0; n && j + n <= length; j++)
            if (std::equal(h.ids.begin() + j, h.ids.begin() + j + n - 1, h.ids.end() - (n - 1)))
                found.push_back(h.ids[j + n - 1]);
        return found;
    }

    // For each row its best words; their scores become logarithms of probabilities.
    std::vector<Seen> speak() {
        const int64_t rows = open.size();
        std::vector<Seen> seen(rows);
        std::vector<std::vector<int32_t>> not_these;
        for (const Hypothesis &h : open) not_these.push_back(forbidden(h));
        if (running.size() > 1) return speak_together(std::move(seen), not_these);
        for (int block = 0; block < blocks_of(t.head); block += WORDS) {
            const int first = 16 * block, n = part_of(t.head, block, WORDS).n_out;
            float *scores = running[0].speak(block, WORDS, rows);
            for (int64_t r = 0; r < rows; r++) {
                float *own = scores + r * n;
                for (int32_t word : not_these[r])
                    if (word >= first && word < first + n) own[word - first] = -INFINITY;
                look(own, n, first, r, 2 * asked.beam, seen[r]);
            }
        }
        for (Seen &each : seen) {
            const float total = each.most + std::log(each.sum);
            for (Candidate &c : each.best) c.score -= total;
        }
        return seen;
    }

    // The same of several translators, by the sums of the probabilities that they give each word.
    std::vector<Seen> speak_together(std::vector<Seen> seen, const std::vector<std::vector<int32_t>> &not_these) {
        const int64_t rows = open.size(), n = t.head.n_out;
        std::fill_n(room(shares, rows * n), rows * n, 0.f);
        for (Running &each : running) {
            const float *scores = each.speak(0, blocks_of(t.head), rows);
            for (int64_t r = 0; r < rows; r++) {
                const Floats total = all(log_total(scores + r * n, n));
                for (int64_t i = 0; i < n; i += LANES) {
                    const Mask m = left(n - i);
                    float *to = &shares[r * n + i];
                    store(m, load(m, to) + exp_of(load(m, scores + r * n + i) - total), to);
                }
            }
        }
        for (int64_t r = 0; r < rows; r++) {
            float *own = &shares[r * n], sum = 0;
            for (int32_t word : not_these[r]) own[word] = 0;
#pragma omp simd reduction(+ : sum)
            for (int64_t i = 0; i < n; i++) sum += own[i];
            look(own, n, 0, r, 2 * asked.beam, seen[r]);
            for (Candidate &c : seen[r].best) c.score = std::log(c.score / sum);
        }
        return seen;
    }

    bool is_over(int64_t text) {
        if (asked.length_penalty == 0) return best_ended[text] && (int64_t)ended[text].size() >= asked.n_best;
        return (int64_t)ended[text].size() >= asked.beam;
    }

    // The open hypotheses of one text, `first` to `end`, become those that go on from them.
    void choose(int64_t first, int64_t end, std::vector<Seen> &seen, int64_t length, std::vector<Hypothesis> &next) {
        const int64_t text = open[first].text, k = asked.beam;
        std::vector<Candidate> all;
        for (int64_t r = first; r < end; r++)
            for (Candidate c : seen[r].best)
                if (std::isfinite(c.score)) all.push_back({open[r].total + c.score, c.word, r});
        std::stable_sort(all.begin(), all.end(), [](auto &a, auto &b) { return a.score > b.score; });
        if ((int64_t)all.size() > 2 * k) all.resize(2 * k);
        std::vector<Hypothesis> going;
        int64_t places = k;
        for (int64_t j = 0; j < (int64_t)all.size(); j++) {
            const Candidate &c = all[j];
            const bool last = length == asked.max_len;
            // Right after a given prefix an answer may end only where that is the best of all.
            const bool too_early = length == 1 && asked.n_prefix && c.word == t.end && j > 0;
            if (!too_early && (c.word == t.end || last)) {
                if (j >= k) continue;
                best_ended[text] |= j == 0;
                Answer answer{open[c.row].ids, (float)(c.score / std::pow(asked.n_prefix + length, asked.length_penalty))};
                if (c.word != t.end) answer.ids.push_back(c.word);
                ended[text].push_back(std::move(answer));
            } else if (places-- > 0 && !too_early && !last) {
                going.push_back({text, c.score, open[c.row].ids, open[c.row].rows});
                going.back().ids.push_back(c.word);
            }
        }
        if (!is_over(text)) std::move(going.begin(), going.end(), std::back_inserter(next));
    }

  public:
    Worker(const Translator *all, int n, const Texts &asked)
        : t(all[0]), asked(asked), ended(asked.n), best_ended(asked.n) {
        for (int i = 0; i < n; i++) running.emplace_back(all[i], asked);
    }

    void run() {
        for (Running &each : running) each.encode();
        for (int64_t i = 0; i < asked.n; i++) open.push_back({i, 0, {}, {}});
        for (int64_t step = 0; !open.empty() && step < asked.n_prefix + asked.max_len; step++) {
            for (int64_t r = 0; r < (int64_t)open.size(); r++) open[r].rows.push_back(r);
            for (Running &each : running) each.decode(step, open);
            if (step < asked.n_prefix) {
                for (Hypothesis &h : open) h.ids.push_back(asked.prefixes[h.text * asked.n_prefix + step]);
                continue;
            }
            std::vector<Seen> seen = speak();
            std::vector<Hypothesis> next;
            for (int64_t first = 0, end; first < (int64_t)open.size(); first = end) {
                for (end = first; end < (int64_t)open.size() && open[end].text == open[first].text; end++) {}
                choose(first, end, seen, step - asked.n_prefix + 1, next);
            }
            open = std::move(next);
        }
        for (int64_t i = 0; i < asked.n; i++) {
            std::stable_sort(ended[i].begin(), ended[i].end(), [](auto &a, auto &b) { return a.score > b.score; });
            for (int64_t j = 0; j < asked.n_best; j++) {
                const int64_t at = i * asked.n_best + j;
                asked.lengths[at] = j < (int64_t)ended[i].size() ? ended[i][j].ids.size() : -1;
                if (asked.lengths[at] < 0) continue;
                asked.scores[at] = ended[i][j].score;
                std::copy(ended[i][j].ids.begin(), ended[i][j].ids.end(), asked.ids + at * (asked.n_prefix + asked.max_len));
            }
        }
    }
};

// Not zero: there is too little memory.
extern "C" int glassformer_translate(const Translator *translators, int n, const Texts *asked) {
    try {
        Worker(translators, n, *asked).run();
        return 0;
    } catch (const std::bad_alloc &) {
        return 1;
    }
}
