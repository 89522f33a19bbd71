/* Pairs of bfloat16: two numbers, rounded to nearest, in the place of one, on processors that multiply them so. The sums of
   their products are in single precision. Elsewhere (HAS_HALVES is 0) there are none: nobody asks for them. */
#ifndef IPE_BFLOAT16_H
#define IPE_BFLOAT16_H

#include "vectors.h"

#if defined(__AVX512BF16__)
#define HAS_HALVES 1
#else
#define HAS_HALVES 0
#endif

/* acc + a b; or, if they are pairs, acc + a[0] b[0] + a[1] b[1]. */
INLINE lanes plus_product(int halves, lanes acc, float a, lanes b) {
#if HAS_HALVES
    if (halves) return (lanes)_mm512_dpbf16_ps((__m512)acc, (__m512bh)_mm512_set1_ps(a), (__m512bh)b);
#endif
    (void)halves;
    return acc + a * b;
}

/* Rows of numbers as rows of half as many pairs: of numbers next to each other. `columns` is even, and there are a multiple
   of 32 numbers. */
static inline void halve_columns(const float *from, int64_t rows, int64_t columns, float *to) {
#if HAS_HALVES
    for (int64_t i = 0; i < rows * columns; i += 2 * LANES) {
        const __m512bh both = _mm512_cvtne2ps_pbh((__m512)load(from + i + LANES), (__m512)load(from + i));
        store(to + i / 2, (lanes)both);
    }
#else
    (void)from, (void)rows, (void)columns, (void)to;
#endif
}

/* Rows of numbers as half as many rows of pairs: of numbers below each other. `rows` is even, `columns` a multiple of 16. */
static inline void halve_rows(const float *from, int64_t rows, int64_t columns, float *to) {
#if HAS_HALVES
    for (int64_t i = 0; i < rows; i += 2)
        for (int64_t j = 0; j < columns; j += LANES) {
            const __m512i above = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh((__m512)load(from + i * columns + j)));
            const __m512i below =
                _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh((__m512)load(from + (i + 1) * columns + j)));
            store(to + i / 2 * columns + j, (lanes)_mm512_or_si512(above, _mm512_slli_epi32(below, 16)));
        }
#else
    (void)from, (void)rows, (void)columns, (void)to;
#endif
}

#endif
