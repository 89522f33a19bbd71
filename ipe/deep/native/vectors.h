/* Sixteen numbers at once, whatever registers the machine has: GCC makes of them what there is.

   Every sum below is added up in one order that neither the machine's registers nor the number of seeds changes; with
   fused multiplication and addition on every machine that the library is built for, the bytes of a result do not either. */
#ifndef IPE_VECTORS_H
#define IPE_VECTORS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX__)
#include <immintrin.h>
#endif

#define LANES 16

typedef float lanes __attribute__((vector_size(64)));
typedef int32_t mask __attribute__((vector_size(64)));
typedef float unaligned __attribute__((vector_size(64), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))

INLINE lanes load(const float *p) { return *(const unaligned *)p; }

INLINE void store(float *p, lanes x) { *(unaligned *)p = x; }

/* x where the mask is set, 0 elsewhere. */
INLINE lanes only(lanes x, mask where) { return (lanes)((mask)x & where); }

/* A NaN stays one: that a run diverges must be seen. */
INLINE lanes relu(lanes x) { return only(x, ~(x < 0.0f)); }

/* Whether sixteen numbers in a row are 0 (-0 too; a NaN is not). */
INLINE int all_zero(const float *p) {
#if defined(__AVX512F__)
    return !_mm512_cmp_ps_mask(_mm512_loadu_ps(p), _mm512_setzero_ps(), _CMP_NEQ_UQ);
#else
    int zeros = 1;
    for (int i = 0; i < LANES; i++) zeros &= p[i] == 0.0f;
    return zeros;
#endif
}

/* Whether no bit is set in sixteen numbers in a row. Of pairs in bfloat16, too: as one number such a pair may be so small
   that it counts as 0. */
INLINE int no_bits(const float *p) {
#if defined(__AVX512F__)
    const __m512i x = _mm512_loadu_si512(p);
    return !_mm512_test_epi32_mask(x, x);
#else
    const mask x = (mask)load(p);
    int32_t bits = 0;
    for (int i = 0; i < LANES; i++) bits |= x[i];
    return !bits;
#endif
}

INLINE lanes square_root(lanes x) {
#if defined(__AVX512F__)
    return (lanes)_mm512_sqrt_ps((__m512)x);
#else
    lanes y;
    for (int i = 0; i < LANES; i++) y[i] = sqrtf(x[i]);
    return y;
#endif
}

#define EXCHANGE(a, b, lower, upper)                                                                                  \
    do {                                                                                                               \
        lanes first_ = a, second_ = b;                                                                                 \
        a = __builtin_shuffle(first_, second_, lower);                                                                 \
        b = __builtin_shuffle(first_, second_, upper);                                                                 \
    } while (0)

/* Sixteen rows of sixteen, transposed: blocks of 8, of 4, of 2, of 1 change places. */
INLINE void transpose16(const float *from, int64_t from_stride, float *to, int64_t to_stride) {
    static const mask lower[4] = {{0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23},
                                  {0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27},
                                  {0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29},
                                  {0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30}};
    static const mask upper[4] = {{8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31},
                                  {4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31},
                                  {2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31},
                                  {1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31}};
    lanes row[LANES];
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++) row[i] = load(from + i * from_stride);
#pragma GCC unroll 4
    for (int level = 0; level < 4; level++) {
        const int distance = 8 >> level;
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            if (!(i & distance)) EXCHANGE(row[i], row[i + distance], lower[level], upper[level]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++) store(to + i * to_stride, row[i]);
}

/* A matrix of `rows` by `columns`, transposed; `to` has `to_stride` >= rows, beyond which it is left alone. */
static inline void transpose(const float *from, int64_t rows, int64_t columns, int64_t from_stride, float *to,
                             int64_t to_stride) {
    const int64_t whole_rows = rows - rows % LANES, whole_columns = columns - columns % LANES;
    for (int64_t i = 0; i < whole_rows; i += LANES)
        for (int64_t j = 0; j < whole_columns; j += LANES)
            transpose16(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = i < whole_rows ? whole_columns : 0; j < columns; j++)
            to[j * to_stride + i] = from[i * from_stride + j];
}

#endif
