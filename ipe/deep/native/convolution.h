/* A 3x3 convolution with stride 1 of images that are mostly zeros, as MinAtar's are: only what is not 0 is looked at. */
#ifndef IPE_CONVOLUTION_H
#define IPE_CONVOLUTION_H

#include "vectors.h"

typedef struct {
    int64_t height, width, channels, maps; /* maps, the outputs per position: a multiple of LANES */
} image;

/* A number of an image that is not 0, and where it is. */
typedef struct {
    int32_t row, column, channel;
    float value;
} spot;

INLINE spot spot_at(image im, int64_t k, float value) {
    const int64_t cell = k / im.channels;
    return (spot){(int32_t)(cell / im.width), (int32_t)(cell % im.width), (int32_t)(k % im.channels), value};
}

/* Those of an image (height, width, channels), in their order; how many there are. */
static int64_t spots_of_numbers(image im, const float *pixels, spot *out) {
    const int64_t size = im.height * im.width * im.channels;
    int64_t n = 0;
    for (int64_t k = 0; k < size; k++) {
        if (k + LANES <= size && all_zero(pixels + k)) {
            k += LANES - 1;
            continue;
        }
        if (pixels[k] != 0.0f) out[n++] = spot_at(im, k, pixels[k]);
    }
    return n;
}

/* The same of an image of zeros and ones, eight in a byte, the first in its lowest bit. */
static int64_t spots_of_bits(image im, const uint8_t *bits, spot *out) {
    const int64_t size = im.height * im.width * im.channels;
    int64_t n = 0;
    for (int64_t byte = 0; 8 * byte < size; byte++)
        for (unsigned rest = bits[byte]; rest; rest &= rest - 1) {
            const int64_t k = 8 * byte + __builtin_ctz(rest);
            if (k < size) out[n++] = spot_at(im, k, 1.0f);
        }
    return n;
}

/* to += value * from, n numbers, a multiple of LANES. */
INLINE void add_scaled(float *to, float value, const float *from, int64_t n) {
    for (int64_t m = 0; m < n; m += LANES) store(to + m, load(to + m) + value * load(from + m));
}

/* For every position that sees a spot: the row of the weights that it is multiplied with there, and the position. Of one
   position, the weights come in their order. */
#define FOR_POSITIONS(im, s, weight, position, at)                                                                     \
    for (int64_t i_ = 0; i_ < 3; i_++)                                                                                 \
        for (int64_t j_ = 0; j_ < 3; j_++) {                                                                           \
            const int64_t row_ = (s).row - i_, column_ = (s).column - j_;                                              \
            if (row_ < 0 || row_ >= (im).height - 2 || column_ < 0 || column_ >= (im).width - 2) continue;             \
            const int64_t weight = (i_ * 3 + j_) * (im).channels + (s).channel;                                        \
            const int64_t position = row_ * ((im).width - 2) + column_;                                                \
            at;                                                                                                        \
        }

/* y (positions, maps) = patches weights + bias, rectified; weights (9 * channels, maps). */
static void convolution_forward(const float *weights, const float *bias, image im, const spot *spots, int64_t n,
                                float *y) {
    const int64_t positions = (im.height - 2) * (im.width - 2);
    for (int64_t p = 0; p < positions; p++) memcpy(y + p * im.maps, bias, (size_t)im.maps * sizeof(float));
    for (int64_t k = 0; k < n; k++)
        FOR_POSITIONS(im, spots[k], weight, position,
                      add_scaled(y + position * im.maps, spots[k].value, weights + weight * im.maps, im.maps));
    for (int64_t k = 0; k < positions * im.maps; k += LANES) store(y + k, relu(load(y + k)));
}

/* Adds one image's part to the gradient in the weights and in the biases; error (positions, maps). */
static void convolution_gradient(image im, const spot *spots, int64_t n, const float *error, float *weights,
                                 float *bias) {
    const int64_t positions = (im.height - 2) * (im.width - 2);
    for (int64_t k = 0; k < n; k++)
        FOR_POSITIONS(im, spots[k], weight, position,
                      add_scaled(weights + weight * im.maps, spots[k].value, error + position * im.maps, im.maps));
    for (int64_t m = 0; m < im.maps; m += LANES) {
        lanes acc = load(bias + m);
        for (int64_t p = 0; p < positions; p++) acc += load(error + p * im.maps + m);
        store(bias + m, acc);
    }
}

#endif
