/* Products of one layer of one seed's network. Hidden layers lie transposed: a row per unit, a column per observation of
   the minibatch, padded to a whole number of GROUPs. So every product reads the weights as they are. */
#ifndef IPE_LAYERS_H
#define IPE_LAYERS_H

#include "bfloat16.h"
#include "vectors.h"

#if defined(__AVX512F__)
#define ROWS 8 /* with two vectors each: 16 of 32 registers */
#else
#define ROWS 2
#endif
#define GROUP (2 * LANES)

/* acc[r] += sum over k of a[k * step + r * row_step] * b[k]; r < rows, b[k] a GROUP. All of them may be pairs. */
INLINE void accumulate(int halves, int rows, int64_t n, const float *a, int64_t step, int64_t row_step, const float *b,
                       int64_t b_step, lanes acc[][2]) {
    for (int64_t k = 0; k < n; k++) {
        const lanes low = load(b + k * b_step), high = load(b + k * b_step + LANES);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            const float weight = a[k * step + r * row_step];
            acc[r][0] = plus_product(halves, acc[r][0], weight, low);
            acc[r][1] = plus_product(halves, acc[r][1], weight, high);
        }
    }
}

INLINE void forward_rows(int halves, int rows, const float *weights, const float *bias, int64_t inputs, int64_t outputs,
                         const float *x, float *y, int64_t batch, int rectified) {
    lanes acc[ROWS][2];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) acc[r][0] = acc[r][1] = (lanes){0} + bias[r];
    accumulate(halves, rows, inputs, weights, outputs, 1, x, batch, acc);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
        store(y + r * batch, rectified ? relu(acc[r][0]) : acc[r][0]);
        store(y + r * batch + LANES, rectified ? relu(acc[r][1]) : acc[r][1]);
    }
}

INLINE void all_forward(int halves, const float *weights, const float *bias, int64_t inputs, int64_t outputs,
                        const float *x, float *y, int64_t batch, int rectified) {
    for (int64_t g = 0; g < batch; g += GROUP) {
        int64_t j = 0;
        for (; j + ROWS <= outputs; j += ROWS)
            forward_rows(halves, ROWS, weights + j, bias + j, inputs, outputs, x + g, y + j * batch + g, batch, rectified);
        for (; j < outputs; j++)
            forward_rows(halves, 1, weights + j, bias + j, inputs, outputs, x + g, y + j * batch + g, batch, rectified);
    }
}

/* y (outputs, batch) = weights^T x + bias, rectified or not; x (inputs, batch), weights (inputs, outputs). */
static void layer_forward(const float *weights, const float *bias, int64_t inputs, int64_t outputs, const float *x,
                          float *y, int64_t batch, int rectified) {
    all_forward(0, weights, bias, inputs, outputs, x, y, batch, rectified);
}

/* The same of pairs, half as many inputs; rectified. */
static void layer_forward_halves(const float *weights, const float *bias, int64_t inputs, int64_t outputs, const float *x,
                                 float *y, int64_t batch) {
    all_forward(1, weights, bias, inputs, outputs, x, y, batch, 1);
}

/* The same of a single observation: x (inputs), y (outputs). The same bytes as in a batch. */
static void layer_forward_one(const float *weights, const float *bias, int64_t inputs, int64_t outputs, const float *x,
                              float *y, int rectified) {
    int64_t j = 0;
    for (; j + 4 * LANES <= outputs; j += 4 * LANES) {
        lanes acc[4];
#pragma GCC unroll 4
        for (int v = 0; v < 4; v++) acc[v] = load(bias + j + v * LANES);
        for (int64_t k = 0; k < inputs; k++)
#pragma GCC unroll 4
            for (int v = 0; v < 4; v++) acc[v] += x[k] * load(weights + k * outputs + j + v * LANES);
#pragma GCC unroll 4
        for (int v = 0; v < 4; v++) store(y + j + v * LANES, rectified ? relu(acc[v]) : acc[v]);
    }
    for (; j + LANES <= outputs; j += LANES) {
        lanes acc = load(bias + j);
        for (int64_t k = 0; k < inputs; k++) acc += x[k] * load(weights + k * outputs + j);
        store(y + j, rectified ? relu(acc) : acc);
    }
    for (int64_t i = j; i < outputs; i++) y[i] = bias[i];
    for (int64_t k = 0; k < inputs; k++)
        for (int64_t i = j; i < outputs; i++) y[i] = __builtin_fmaf(x[k], weights[k * outputs + i], y[i]);
    if (rectified)
        for (int64_t i = j; i < outputs; i++) y[i] = y[i] < 0.0f ? 0.0f : y[i];
}

/* The units whose errors are not 0 for the whole group. Rectified units that no observation of a minibatch activates have
   none: often half of them. What they would add to a sum is 0. */
INLINE int64_t units_with_errors(const float *error, int64_t units, int64_t batch, int32_t *out) {
    int64_t n = 0;
    for (int64_t k = 0; k < units; k++) {
        out[n] = (int32_t)k;
        n += !(no_bits(error + k * batch) && no_bits(error + k * batch + LANES));
    }
    return n;
}

INLINE void input_rows(int halves, int rows, const float *weights, int64_t outputs, const float *error, const int32_t *units,
                       int64_t n, const float *x, float *out, int64_t batch) {
    lanes acc[ROWS][2];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) acc[r][0] = acc[r][1] = (lanes){0};
    for (int64_t k = 0; k < n; k++)
        accumulate(halves, rows, 1, weights + units[k], 1, outputs, error + units[k] * batch, batch, acc);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
        store(out + r * batch, only(acc[r][0], load(x + r * batch) > 0.0f));
        store(out + r * batch + LANES, only(acc[r][1], load(x + r * batch + LANES) > 0.0f));
    }
}

INLINE void all_input_gradients(int halves, const float *weights, int64_t inputs, int64_t outputs, const float *error,
                                const float *x, float *out, int64_t batch) {
    int32_t units[outputs];
    for (int64_t g = 0; g < batch; g += GROUP) {
        const int64_t n = units_with_errors(error + g, outputs, batch, units);
        int64_t i = 0;
        for (; i + ROWS <= inputs; i += ROWS)
            input_rows(halves, ROWS, weights + i * outputs, outputs, error + g, units, n, x + i * batch + g,
                       out + i * batch + g, batch);
        for (; i < inputs; i++)
            input_rows(halves, 1, weights + i * outputs, outputs, error + g, units, n, x + i * batch + g,
                       out + i * batch + g, batch);
    }
}

/* out (inputs, batch) = weights error, where the rectified x was positive; error (outputs, batch). */
static void layer_input_gradient(const float *weights, int64_t inputs, int64_t outputs, const float *error,
                                 const float *x, float *out, int64_t batch) {
    all_input_gradients(0, weights, inputs, outputs, error, x, out, batch);
}

/* The same of weights and errors in pairs, half as many outputs. */
static void layer_input_gradient_halves(const float *weights, int64_t inputs, int64_t outputs, const float *error,
                                        const float *x, float *out, int64_t batch) {
    all_input_gradients(1, weights, inputs, outputs, error, x, out, batch);
}

/* What becomes of a layer's gradient: it is written to `gradient`, or, if that is NULL, a step of RMSprop is made. */
typedef struct {
    float *gradient;
    const float *old, *old_square;
    float *new, *new_square;
    float step_size, decay, epsilon;
} optimiser;

INLINE void apply(const optimiser *o, int64_t at, lanes g) {
    if (o->gradient) {
        store(o->gradient + at, g);
        return;
    }
    const lanes square = o->decay * load(o->old_square + at) + (1.0f - o->decay) * (g * g);
    store(o->new_square + at, square);
    store(o->new + at, load(o->old + at) - o->step_size * g / (square_root(square) + o->epsilon));
}

/* The same for n numbers in a row. */
static void apply_all(const optimiser *o, int64_t n, const float *gradient) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) apply(o, i, load(gradient + i));
    if (i == n) return;
    if (o->gradient) {
        memcpy(o->gradient + i, gradient + i, (size_t)(n - i) * sizeof(float));
        return;
    }
    float padded[5][LANES] = {{0}};
    const size_t bytes = (size_t)(n - i) * sizeof(float);
    memcpy(padded[0], gradient + i, bytes);
    memcpy(padded[1], o->old + i, bytes);
    memcpy(padded[2], o->old_square + i, bytes);
    optimiser last = *o;
    last.old = padded[1], last.old_square = padded[2], last.new = padded[3], last.new_square = padded[4];
    apply(&last, 0, load(padded[0]));
    memcpy(o->new + i, padded[3], bytes);
    memcpy(o->new_square + i, padded[4], bytes);
}

/* A block of the gradient that waits to be applied while the next one is added up: roots and quotients take a unit of
   their own, which would be idle otherwise. */
typedef struct {
    lanes gradient[ROWS * 2];
    int64_t at, row_step;
    int full;
} pending;

INLINE void apply_pending(const optimiser *o, const pending *p, int row) {
    apply(o, p->at + row * p->row_step, p->gradient[2 * row]);
    apply(o, p->at + row * p->row_step + LANES, p->gradient[2 * row + 1]);
}

/* Fetch what `apply` will read and write when the block at `at` is full. */
INLINE void fetch(const optimiser *o, int64_t at) {
    if (o->gradient) {
        __builtin_prefetch(o->gradient + at, 1);
        return;
    }
    __builtin_prefetch(o->old + at);
    __builtin_prefetch(o->old_square + at, 1);
    __builtin_prefetch(o->new + at, 1);
}

/* acc[r] += sum over the batch of x[r][b] error[b], in parts, after each of which a row of the pending block is applied;
   `at` is where this block belongs. */
INLINE void gradient_rows(int halves, const float *x, int64_t x_step, const float *error, int64_t batch, const optimiser *o,
                          const pending *p, int64_t at, lanes acc[][2]) {
    int64_t begin = 0;
#pragma GCC unroll 1
    for (int part = 0; part < ROWS; part++) {
        const int64_t end = batch * (part + 1) / ROWS;
        fetch(o, at + part * p->row_step);
        fetch(o, at + part * p->row_step + LANES);
        accumulate(halves, ROWS, end - begin, x + begin, 1, x_step, error + begin * GROUP, GROUP, acc);
        begin = end;
        if (p->full) apply_pending(o, p, part);
    }
}

INLINE void weight_gradient(int halves, const float *x, int64_t inputs, int64_t outputs, const float *error, int64_t batch,
                            int64_t padded, const optimiser *o) {
    const int64_t whole = inputs - inputs % ROWS, pairs = outputs - outputs % GROUP;
    pending waiting = {.row_step = outputs, .full = 0};
    for (int64_t j = 0; j < pairs; j += GROUP)
        for (int64_t i = 0; i < whole; i += ROWS) {
            lanes acc[ROWS][2] = {{{0}}};
            gradient_rows(halves, x + i * padded, padded, error + j * batch, batch, o, &waiting, i * outputs + j, acc);
#pragma GCC unroll 8
            for (int r = 0; r < ROWS; r++) {
                waiting.gradient[2 * r] = acc[r][0];
                waiting.gradient[2 * r + 1] = acc[r][1];
            }
            waiting.at = i * outputs + j, waiting.full = 1;
        }
    if (waiting.full)
        for (int row = 0; row < ROWS; row++) apply_pending(o, &waiting, row);
    for (int64_t j = 0; j < outputs; j += LANES) {
        const int64_t panel = j - j % GROUP, width = panel < pairs ? GROUP : outputs - panel;
        for (int64_t i = panel < pairs ? whole : 0; i < inputs; i++) {
            const float *own = error + panel * batch + j - panel;
            lanes acc = {0};
            for (int64_t b = 0; b < batch; b++) acc = plus_product(halves, acc, x[i * padded + b], load(own + b * width));
            apply(o, i * outputs + j, acc);
        }
    }
}

/* The gradient in the weights, sum over the batch of x error^T: x (inputs, padded batch), error in panels, outputs a
   multiple of LANES. Sizes that are known beforehand save registers, and there are none to spare. */
static void layer_weight_gradient(const float *x, int64_t inputs, int64_t outputs, const float *error, int64_t batch,
                                  int64_t padded, const optimiser *o) {
    const optimiser own = *o; /* not to be read anew after everything that is written */
    if (batch == GROUP)
        weight_gradient(0, x, inputs, outputs, error, GROUP, GROUP, &own);
    else if (padded == GROUP)
        weight_gradient(0, x, inputs, outputs, error, batch, GROUP, &own);
    else
        weight_gradient(0, x, inputs, outputs, error, batch, padded, &own);
}

/* The same of pairs of observations; `pairs` is half the padded batch. */
static void layer_weight_gradient_halves(const float *x, int64_t inputs, int64_t outputs, const float *error,
                                         int64_t pairs, const optimiser *o) {
    const optimiser own = *o;
    if (pairs == LANES)
        weight_gradient(1, x, inputs, outputs, error, LANES, LANES, &own);
    else
        weight_gradient(1, x, inputs, outputs, error, pairs, pairs, &own);
}

INLINE void thin_columns(int columns, const float *x, int64_t inputs, int64_t outputs, const float *error,
                         int64_t error_step, int64_t batch, float *gradient) {
    for (int64_t i = 0; i < inputs; i += LANES) {
        lanes acc[4] = {{0}};
        for (int64_t b = 0; b < batch; b++)
#pragma GCC unroll 4
            for (int j = 0; j < columns; j++) acc[j] += error[b * error_step + j] * load(x + b * inputs + i);
#pragma GCC unroll 4
        for (int j = 0; j < columns; j++)
            for (int k = 0; k < LANES; k++) gradient[(i + k) * outputs + j] = acc[j][k];
    }
}

/* The same for a layer of few outputs, into `gradient`: x (batch, inputs), inputs a multiple of LANES; error (batch,
   error_step), of which the first `outputs` columns are the layer's. */
static void thin_weight_gradient(const float *x, int64_t inputs, int64_t outputs, const float *error, int64_t error_step,
                                 int64_t batch, float *gradient) {
    int64_t j = 0;
    for (; j + 4 <= outputs; j += 4) thin_columns(4, x, inputs, outputs, error + j, error_step, batch, gradient + j);
    for (; j < outputs; j++) thin_columns(1, x, inputs, outputs, error + j, error_step, batch, gradient + j);
}

/* A layer's errors, (units, padded batch), as panels: those of GROUP units, (batch, GROUP), after one another, so that a
   block of products reads from one stretch of memory; the last panel may have LANES units only. */
static void to_panels(const float *columns, int64_t units, int64_t batch, int64_t padded, float *panels) {
    for (int64_t j = 0; j < units; j += GROUP) {
        const int64_t width = units - j < GROUP ? units - j : GROUP;
        transpose(columns + j * padded, width, batch, padded, panels + j * batch, width);
    }
}

/* The gradient in the biases, the sum over the batch; error in panels. */
static void bias_gradient(const float *error, int64_t outputs, int64_t batch, float *gradient) {
    for (int64_t j = 0; j < outputs; j += LANES) {
        const int64_t panel = j - j % GROUP, width = outputs - panel < GROUP ? outputs - panel : GROUP;
        lanes acc = {0};
        for (int64_t b = 0; b < batch; b++) acc += load(error + panel * batch + b * width + j - panel);
        store(gradient + j, acc);
    }
}

#endif
