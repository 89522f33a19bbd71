/* Forward pass, gradient and RMSprop of a batch of seeds' networks, as custom calls of XLA.

   The networks are those of ipe/deep/networks.py: `matrix` (seeds, inputs, outputs) is the middle layer's, `rest` all
   other weights and biases in a row. Observations are (seeds, batch, n) numbers; images may have eight of their bits in a
   byte. Sizes are read from the arrays' shapes, those of images from the attributes channels, height, width (else 0).
   The attribute bfloat16 says whether the middle layer's products, nearly all of them, are made of pairs. The attribute
   dueling says whether the last layer is two, whose outputs come one after the other: one output from the first half of
   the middle layer's units, the others from the second half. */
#include <stdlib.h>

#include "convolution.h"
#include "layers.h"
#include "priorities.h"
#include "xla/ffi/api/c_api.h"

/* A last layer: which of the middle layer's units it reads, which of the network's outputs it gives, and where its weights
   and biases begin in `rest`. */
typedef struct {
    int64_t unit, inputs, output, outputs, weights, bias;
} head;

typedef struct {
    int64_t seeds, batch, padded, inputs, first, middle, outputs, rest;
    int is_image, in_bits, halves, n_heads;
    image im;
    int64_t b0, b1; /* where they begin in `rest`, after the first layer's weights */
    head heads[2];
} shape;

static XLA_FFI_Buffer *argument(const XLA_FFI_CallFrame *frame, int i) { return frame->args.args[i]; }

static XLA_FFI_Buffer *result(const XLA_FFI_CallFrame *frame, int i) { return frame->rets.rets[i]; }

/* One seed's part of an array whose first axis are the seeds. */
static void *of_seed(const XLA_FFI_Buffer *buffer, int64_t seed) {
    int64_t size = buffer->dtype == XLA_FFI_DataType_U8 ? 1 : sizeof(float);
    for (int64_t i = 1; i < buffer->rank; i++) size *= buffer->dims[i];
    return (char *)buffer->data + seed * size;
}

/* XLA sorts attributes by their names. */
static int64_t attribute(const XLA_FFI_CallFrame *frame, int i) {
    return *(const int64_t *)((const XLA_FFI_Scalar *)frame->attrs.attrs[i])->value;
}

static shape shape_of(const XLA_FFI_CallFrame *frame) {
    const XLA_FFI_Buffer *matrix = argument(frame, 0), *rest = argument(frame, 1), *observations = argument(frame, 2);
    shape s = {.seeds = matrix->dims[0], .first = matrix->dims[1], .middle = matrix->dims[2], .rest = rest->dims[1]};
    s.batch = observations->dims[1];
    s.padded = (s.batch + GROUP - 1) / GROUP * GROUP;
    s.inputs = observations->dims[2];
    s.halves = attribute(frame, 0) != 0;
    s.im = (image){.channels = attribute(frame, 1), .height = attribute(frame, 3), .width = attribute(frame, 4)};
    s.n_heads = attribute(frame, 2) ? 2 : 1;
    s.is_image = s.im.height > 0;
    s.in_bits = observations->dtype == XLA_FFI_DataType_U8;
    if (s.is_image) s.im.maps = s.first / ((s.im.height - 2) * (s.im.width - 2));
    const int64_t fan_in = s.is_image ? 9 * s.im.channels : s.inputs, outputs = s.is_image ? s.im.maps : s.first;
    s.b0 = fan_in * outputs;
    s.b1 = s.b0 + outputs;
    int64_t place = s.b1 + s.middle;
    const int64_t units = s.middle / s.n_heads;
    s.outputs = (s.rest - place) / (units + 1);
    for (int64_t i = 0, output = 0; i < s.n_heads; i++) {
        const int64_t n = i + 1 < s.n_heads ? 1 : s.outputs - output;
        s.heads[i] = (head){i * units, units, output, n, place, place + units * n};
        place += (units + 1) * n;
        output += n;
    }
    return s;
}

/* Memory of this thread, kept from call to call; what was there before is lost. NULL if there is not enough. */
static float *scratch(int64_t floats) {
    static _Thread_local float *memory;
    static _Thread_local int64_t size;
    if (floats > size) {
        free(memory);
        const size_t bytes = ((size_t)floats * sizeof(float) + 63) / 64 * 64;
        memory = aligned_alloc(64, bytes);
        size = memory ? floats : 0;
    }
    return memory;
}

/* What is not 0 in one of a seed's images. */
static int64_t spots_of(const shape *s, const void *observations, int64_t b, spot *spots) {
    if (s->in_bits) return spots_of_bits(s->im, (const uint8_t *)observations + b * s->inputs, spots);
    return spots_of_numbers(s->im, (const float *)observations + b * s->inputs, spots);
}

/* So many numbers, or a few more: what comes after them begins where vectors do. */
static int64_t whole_vectors(int64_t n) { return (n + LANES - 1) / LANES * LANES; }

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* The observations as the first layer wants them: (inputs, padded), 0 beyond the batch. */
static void lay_out(const shape *s, const float *observations, float *x) {
    memset(x, 0, (size_t)(s->inputs * s->padded) * sizeof(float));
    transpose(observations, s->batch, s->inputs, s->inputs, x, s->padded);
}

static void network_forward(const shape *s, const float *matrix, const float *rest, const void *observations,
                            float *hidden, float *last, float *output, float *memory) {
    if (s->is_image) {
        spot *spots = (spot *)(memory + s->batch * s->first);
        for (int64_t b = 0; b < s->batch; b++) {
            const int64_t n = spots_of(s, observations, b, spots);
            convolution_forward(rest, rest + s->b0, s->im, spots, n, memory + b * s->first);
        }
        if (s->padded > s->batch) memset(hidden, 0, (size_t)(s->first * s->padded) * sizeof(float));
        transpose(memory, s->batch, s->first, s->first, hidden, s->padded);
    } else {
        lay_out(s, observations, memory);
        layer_forward(rest, rest + s->b0, s->inputs, s->first, memory, hidden, s->padded, 1);
    }
    if (s->halves) {
        float *weights = memory, *x = weights + s->first * s->middle / 2;
        halve_rows(matrix, s->first, s->middle, weights);
        halve_rows(hidden, s->first, s->padded, x);
        layer_forward_halves(weights, rest + s->b1, s->first / 2, s->middle, x, last, s->padded);
    } else {
        layer_forward(matrix, rest + s->b1, s->first, s->middle, hidden, last, s->padded, 1);
    }
    for (const head *h = s->heads; h < s->heads + s->n_heads; h++)
        layer_forward(rest + h->weights, rest + h->bias, h->inputs, h->outputs, last + h->unit * s->padded,
                      memory + h->output * s->padded, s->padded, 0);
    for (int64_t b = 0; b < s->batch; b++)
        for (int64_t a = 0; a < s->outputs; a++) output[b * s->outputs + a] = memory[a * s->padded + b];
}

/* In floats: a spot is as large as four of them. */
static int64_t spots_memory(const shape *s) { return 4 * s->im.height * s->im.width * s->im.channels; }

static int64_t forward_memory(const shape *s) {
    const int64_t first = s->is_image ? s->batch * s->first + spots_memory(s) : s->inputs * s->padded;
    const int64_t middle = s->halves ? s->first * (s->middle + s->padded) / 2 : 0;
    return larger(larger(first, middle), s->outputs * s->padded);
}

/* The b-th observation alone, in single precision always: to make pairs of the weights takes longer. */
static void network_act(const shape *s, const float *matrix, const float *rest, const void *observations, int64_t b,
                        float *output, float *memory) {
    float *last = memory + s->first;
    if (s->is_image) {
        spot *spots = (spot *)(last + s->middle);
        const int64_t n = spots_of(s, observations, b, spots);
        convolution_forward(rest, rest + s->b0, s->im, spots, n, memory);
    } else {
        const float *observation = (const float *)observations + b * s->inputs;
        layer_forward_one(rest, rest + s->b0, s->inputs, s->first, observation, memory, 1);
    }
    layer_forward_one(matrix, rest + s->b1, s->first, s->middle, memory, last, 1);
    for (const head *h = s->heads; h < s->heads + s->n_heads; h++)
        layer_forward_one(rest + h->weights, rest + h->bias, h->inputs, h->outputs, last + h->unit, output + h->output, 0);
}

/* The middle layer's part of the backward pass in bfloat16: from `columns`, the gradient in its outputs, to the one in its
   inputs, `next`, and to what becomes of the gradient in the weights. */
static void backward_halves(const shape *s, const float *matrix, const float *hidden, const float *columns,
                            const optimiser *of_matrix, float *next, float *memory) {
    const int64_t pairs = s->padded / 2;
    float *weights = memory, *error = weights + s->first * s->middle / 2, *x = error + s->middle * pairs;
    float *turned = x + s->first * pairs;
    halve_columns(matrix, s->first, s->middle, weights);
    halve_rows(columns, s->middle, s->padded, error);
    layer_input_gradient_halves(weights, s->first, s->middle / 2, error, hidden, next, s->padded);

    halve_columns(hidden, s->first, s->padded, x);
    halve_columns(columns, s->middle, s->padded, error);
    to_panels(error, s->middle, pairs, pairs, turned);
    layer_weight_gradient_halves(x, s->first, s->middle, turned, pairs, of_matrix);
}

static int64_t backward_halves_memory(const shape *s) {
    return s->halves ? (s->first * s->middle + (s->first + 2 * s->middle) * s->padded) / 2 : 0;
}

/* The last layers' part of the backward pass: from the gradient in the outputs, (batch, outputs), to the one in the middle
   layer's outputs, `columns`, and the one in the weights and biases, into `gradient`. */
static void backward_heads(const shape *s, const float *rest, const float *last, const float *error, float *gradient,
                           float *columns, float *of_output, float *rows) {
    memset(of_output, 0, (size_t)(s->outputs * s->padded) * sizeof(float));
    for (const head *h = s->heads; h < s->heads + s->n_heads; h++) {
        const float *units = last + h->unit * s->padded;
        float *slopes = of_output + h->output * s->padded;
        for (int64_t a = 0; a < h->outputs; a++) {
            float sum = 0.0f;
            for (int64_t b = 0; b < s->batch; b++)
                sum += slopes[a * s->padded + b] = error[b * s->outputs + h->output + a];
            gradient[h->bias + a] = sum;
        }
        transpose(units, h->inputs, s->batch, s->padded, rows, h->inputs);
        thin_weight_gradient(rows, h->inputs, h->outputs, error + h->output, s->outputs, s->batch, gradient + h->weights);
        layer_input_gradient(rest + h->weights, h->inputs, h->outputs, slopes, units, columns + h->unit * s->padded,
                             s->padded);
    }
}

/* From the gradient in the outputs, (batch, outputs), to what becomes of the gradient in `matrix` and in `rest`. */
static void network_backward(const shape *s, const float *matrix, const float *rest, const void *observations,
                             const float *hidden, const float *last, const float *error, const optimiser *of_matrix,
                             const optimiser *of_rest, float *memory) {
    float *gradient = memory, *of_output = gradient + whole_vectors(s->rest);
    float *columns = of_output + s->outputs * s->padded;
    float *rows = columns + larger(s->first, s->middle) * s->padded;
    float *x = rows + whole_vectors(larger(s->first, s->middle) * s->batch);
    float *halves = x + larger(larger(s->first, s->inputs) * s->padded, spots_memory(s));

    backward_heads(s, rest, last, error, gradient, columns, of_output, rows);
    to_panels(columns, s->middle, s->batch, s->padded, rows);
    bias_gradient(rows, s->middle, s->batch, gradient + s->b1);
    float *next = x; /* of_matrix writes the new weights: the gradient in its inputs comes first */
    if (s->halves) {
        backward_halves(s, matrix, hidden, columns, of_matrix, next, halves);
    } else {
        layer_input_gradient(matrix, s->first, s->middle, columns, hidden, next, s->padded);
        layer_weight_gradient(hidden, s->first, s->middle, rows, s->batch, s->padded, of_matrix);
    }

    if (s->is_image) {
        transpose(next, s->first, s->batch, s->padded, rows, s->first);
        spot *spots = (spot *)x;
        memset(gradient, 0, (size_t)s->b1 * sizeof(float));
        for (int64_t b = 0; b < s->batch; b++) {
            const int64_t n = spots_of(s, observations, b, spots);
            convolution_gradient(s->im, spots, n, rows + b * s->first, gradient, gradient + s->b0);
        }
    } else {
        const optimiser into = {.gradient = gradient};
        to_panels(next, s->first, s->batch, s->padded, rows);
        lay_out(s, observations, x);
        layer_weight_gradient(x, s->inputs, s->first, rows, s->batch, s->padded, &into);
        bias_gradient(rows, s->first, s->batch, gradient + s->b0);
    }
    apply_all(of_rest, s->rest, gradient);
}

static int64_t backward_memory(const shape *s) {
    const int64_t widest = larger(s->first, s->middle);
    return whole_vectors(s->rest) + s->outputs * s->padded + widest * s->padded + whole_vectors(widest * s->batch) +
           larger(larger(s->first, s->inputs) * s->padded, spots_memory(s)) + backward_halves_memory(s);
}

/* ---- XLA ---- */

/* XLA asks once for the version that a function is written for. */
static int asked_for_version(XLA_FFI_CallFrame *frame) {
    for (XLA_FFI_Extension_Base *e = frame->extension_start; e; e = e->next)
        if (e->type == XLA_FFI_Extension_Metadata) {
            XLA_FFI_Metadata *metadata = ((XLA_FFI_Metadata_Extension *)e)->metadata;
            metadata->api_version.major_version = XLA_FFI_API_MAJOR;
            metadata->api_version.minor_version = XLA_FFI_API_MINOR;
            metadata->traits = 0;
            return 1;
        }
    return 0;
}

static XLA_FFI_Error *out_of_memory(XLA_FFI_CallFrame *frame) {
    XLA_FFI_Error_Create_Args args = {.struct_size = XLA_FFI_Error_Create_Args_STRUCT_SIZE,
                                      .message = "not enough memory",
                                      .errc = XLA_FFI_Error_Code_RESOURCE_EXHAUSTED};
    return frame->api->XLA_FFI_Error_Create(&args);
}

/* Whether the attribute bfloat16 may be set. */
int ipe_has_bfloat16(void) { return HAS_HALVES; }

/* matrix, rest, observations -> outputs, hidden layer, last layer */
XLA_FFI_Error *ipe_forward(XLA_FFI_CallFrame *frame) {
    if (asked_for_version(frame)) return NULL;
    const shape s = shape_of(frame);
    float *memory = scratch(forward_memory(&s));
    if (!memory) return out_of_memory(frame);
    for (int64_t i = 0; i < s.seeds; i++)
        network_forward(&s, of_seed(argument(frame, 0), i), of_seed(argument(frame, 1), i),
                        of_seed(argument(frame, 2), i), of_seed(result(frame, 1), i), of_seed(result(frame, 2), i),
                        of_seed(result(frame, 0), i), memory);
    return NULL;
}

/* matrix, rest, observations -> outputs; for a few observations */
XLA_FFI_Error *ipe_act(XLA_FFI_CallFrame *frame) {
    if (asked_for_version(frame)) return NULL;
    const shape s = shape_of(frame);
    float *memory = scratch(s.first + s.middle + spots_memory(&s));
    if (!memory) return out_of_memory(frame);
    for (int64_t i = 0; i < s.seeds; i++)
        for (int64_t b = 0; b < s.batch; b++)
            network_act(&s, of_seed(argument(frame, 0), i), of_seed(argument(frame, 1), i), of_seed(argument(frame, 2), i),
                        b, (float *)of_seed(result(frame, 0), i) + b * s.outputs, memory);
    return NULL;
}

/* matrix, rest, observations, hidden layer, last layer, error -> gradient in matrix, in rest */
XLA_FFI_Error *ipe_backward(XLA_FFI_CallFrame *frame) {
    if (asked_for_version(frame)) return NULL;
    const shape s = shape_of(frame);
    float *memory = scratch(backward_memory(&s));
    if (!memory) return out_of_memory(frame);
    for (int64_t i = 0; i < s.seeds; i++) {
        const optimiser of_matrix = {.gradient = of_seed(result(frame, 0), i)};
        const optimiser of_rest = {.gradient = of_seed(result(frame, 1), i)};
        network_backward(&s, of_seed(argument(frame, 0), i), of_seed(argument(frame, 1), i),
                         of_seed(argument(frame, 2), i), of_seed(argument(frame, 3), i), of_seed(argument(frame, 4), i),
                         of_seed(argument(frame, 5), i), &of_matrix, &of_rest, memory);
    }
    return NULL;
}

/* matrix, rest, observations, hidden layer, last layer, error, squares of matrix, of rest, numbers (seeds, 3): step size,
   decay, epsilon -> new matrix, new rest, new squares of matrix, of rest, all of which may be where the old ones are */
XLA_FFI_Error *ipe_rmsprop(XLA_FFI_CallFrame *frame) {
    if (asked_for_version(frame)) return NULL;
    const shape s = shape_of(frame);
    float *memory = scratch(backward_memory(&s));
    if (!memory) return out_of_memory(frame);
    for (int64_t i = 0; i < s.seeds; i++) {
        const float *numbers = of_seed(argument(frame, 8), i);
        optimiser step[2];
        for (int part = 0; part < 2; part++)
            step[part] = (optimiser){.old = of_seed(argument(frame, part), i),
                                     .old_square = of_seed(argument(frame, 6 + part), i),
                                     .new = of_seed(result(frame, part), i),
                                     .new_square = of_seed(result(frame, 2 + part), i),
                                     .step_size = numbers[0],
                                     .decay = numbers[1],
                                     .epsilon = numbers[2]};
        network_backward(&s, step[0].old, step[1].old, of_seed(argument(frame, 2), i), of_seed(argument(frame, 3), i),
                         of_seed(argument(frame, 4), i), of_seed(argument(frame, 5), i), &step[0], &step[1], memory);
    }
    return NULL;
}
