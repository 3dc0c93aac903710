// What differs between processors: how many numbers a register holds, and what can be done with them. Sixteen where there
// is AVX-512 with products of whole numbers (VNNI), else eight by AVX2. All else is written once, for LANES numbers.

#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

typedef uint16_t half;  // the bits of an fp16 number

enum { ZERO = 128 };  // what stands for 0 in an input, which has no sign

#if defined(__AVX512VNNI__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

// A tile of products holds ROWS rows and BLOCKS blocks of 16 outputs in registers and takes FOURS times four inputs a step.
enum { LANES = 16, ROWS = 8, BLOCKS = 3, FOURS = 1 };
typedef __m512 Floats;
typedef __m512i Wholes;
typedef __mmask16 Mask;  // the first few

static inline Mask left(int64_t n) { return n >= LANES ? 0xffff : (Mask)((1u << n) - 1); }
static inline Floats all(float x) { return _mm512_set1_ps(x); }
static inline Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
static inline Floats larger(Floats a, Floats b) { return _mm512_max_ps(a, b); }
static inline Floats smaller(Floats a, Floats b) { return _mm512_min_ps(a, b); }
static inline Floats size(Floats x) { return _mm512_abs_ps(x); }
static inline Floats nearest(Floats x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
static inline Floats times_two_to(Floats x, Floats n) { return _mm512_scalef_ps(x, n); }
static inline Floats only(Mask m, Floats x, float otherwise) { return _mm512_mask_blend_ps(m, all(otherwise), x); }
static inline unsigned above(Mask m, Floats x, Floats y) { return _mm512_mask_cmp_ps_mask(m, x, y, _CMP_GT_OQ); }
static inline float total(Floats x) { return _mm512_reduce_add_ps(x); }
static inline float largest(Floats x) { return _mm512_reduce_max_ps(x); }
static inline __m256 folded(Floats x) { return _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1)); }

static inline Floats load(Mask m, const float *from) { return _mm512_maskz_loadu_ps(m, from); }
static inline Floats load(Mask m, const half *from) { return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(m, from)); }
static inline void store(Mask m, Floats x, float *to) { _mm512_mask_storeu_ps(to, m, x); }
static inline void store(Mask m, Floats x, half *to) {
    _mm256_mask_storeu_epi16(to, m, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

static inline Wholes spread(int32_t four) { return _mm512_set1_epi32(four); }
static inline Wholes load(const int8_t *from) { return _mm512_loadu_si512(from); }
static inline Wholes load(Mask m, const int32_t *from) { return _mm512_maskz_loadu_epi32(m, from); }
static inline Wholes no_wholes() { return _mm512_setzero_si512(); }
static inline Floats floats(Wholes x) { return _mm512_cvtepi32_ps(x); }
static inline Wholes less(Wholes x, Wholes y) { return _mm512_sub_epi32(x, y); }

// Numbers from -127 to 127 as inputs.
static inline void store_input(Floats x, uint8_t *to) {
    _mm_storeu_si128((__m128i *)to, _mm512_cvtepi32_epi8(_mm512_add_epi32(_mm512_cvtps_epi32(x), _mm512_set1_epi32(ZERO))));
}

const int32_t MOST_TOGETHER = 0;  // weights may be anything

// To each sum four products more. GCC 12 copies the sums to and fro around the intrinsic.
static inline void add_products(Wholes &sums, const Wholes (&fours)[FOURS], const Wholes (&weights)[FOURS]) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(fours[0]), "v"(weights[0]));
}

#else

enum { LANES = 8, ROWS = 4, BLOCKS = 1, FOURS = 2 };
typedef __m256 Floats;
typedef __m256i Wholes;
struct Mask {
    int n;  // 0 … LANES
};

static inline Mask left(int64_t n) { return {(int)std::min<int64_t>(n, LANES)}; }
static inline Wholes lanes(Mask m) {
    static const int32_t ones[2 * LANES] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const __m256i *)(ones + LANES - m.n));
}
static inline Floats all(float x) { return _mm256_set1_ps(x); }
static inline Floats fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
static inline Floats larger(Floats a, Floats b) { return _mm256_max_ps(a, b); }
static inline Floats smaller(Floats a, Floats b) { return _mm256_min_ps(a, b); }
static inline Floats size(Floats x) { return _mm256_andnot_ps(all(-0.f), x); }
static inline Floats nearest(Floats x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
static inline Floats times_two_to(Floats x, Floats n) {  // n from -126 to 127
    const Wholes exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
}
static inline Floats only(Mask m, Floats x, float otherwise) {
    return m.n == LANES ? x : _mm256_blendv_ps(all(otherwise), x, _mm256_castsi256_ps(lanes(m)));
}
static inline unsigned above(Mask m, Floats x, Floats y) {
    return _mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_GT_OQ)) & ((1u << m.n) - 1);
}
static inline float total(Floats x) {
    __m128 sum = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
    return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}
static inline float largest(Floats x) {
    __m128 most = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    most = _mm_max_ps(most, _mm_movehl_ps(most, most));
    return _mm_cvtss_f32(_mm_max_ss(most, _mm_movehdup_ps(most)));
}
static inline __m256 folded(Floats x) { return x; }

static inline Floats load(Mask m, const float *from) {
    return m.n == LANES ? _mm256_loadu_ps(from) : _mm256_maskload_ps(from, lanes(m));
}
static inline Floats load(Mask m, const half *from) {
    if (m.n == LANES) return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)from));
    half some[LANES] = {};
    std::memcpy(some, from, m.n * sizeof(half));
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)some));
}
static inline void store(Mask m, Floats x, float *to) {
    if (m.n == LANES) _mm256_storeu_ps(to, x);
    else _mm256_maskstore_ps(to, lanes(m), x);
}
static inline void store(Mask m, Floats x, half *to) {
    const __m128i halves = _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    if (m.n == LANES) _mm_storeu_si128((__m128i *)to, halves);
    else std::memcpy(to, &halves, m.n * sizeof(half));
}

static inline Wholes spread(int32_t four) { return _mm256_set1_epi32(four); }
static inline Wholes load(const int8_t *from) { return _mm256_loadu_si256((const __m256i *)from); }
static inline Wholes load(Mask m, const int32_t *from) { return _mm256_maskload_epi32(from, lanes(m)); }
static inline Wholes no_wholes() { return _mm256_setzero_si256(); }
static inline Floats floats(Wholes x) { return _mm256_cvtepi32_ps(x); }
static inline Wholes less(Wholes x, Wholes y) { return _mm256_sub_epi32(x, y); }

static inline void store_input(Floats x, uint8_t *to) {
    const Wholes whole = _mm256_add_epi32(_mm256_cvtps_epi32(x), _mm256_set1_epi32(ZERO));
    const __m128i pairs = _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
    _mm_storel_epi64((__m128i *)to, _mm_packus_epi16(pairs, pairs));
}

// Four products are added up in 16 bits before they become 32, so that four weights of one sign, each with an input of up
// to 255, must not be more than this together.
const int32_t MOST_TOGETHER = INT16_MAX / 255;

static inline void add_products(Wholes &sums, const Wholes (&fours)[FOURS], const Wholes (&weights)[FOURS]) {
    const Wholes pairs = _mm256_maddubs_epi16(fours[0], weights[0]), others = _mm256_maddubs_epi16(fours[1], weights[1]);
    const Wholes found = _mm256_madd_epi16(_mm256_add_epi16(pairs, others), _mm256_set1_epi16(1));
    asm("vpaddd %1, %0, %0" : "+x"(sums) : "x"(found));  // GCC 12 would keep some sums on the stack
}

#endif
