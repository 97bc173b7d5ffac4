/* Plain evaluation of a step of ggml-ext.h: each node in order, in f32 as the library does it, intermediates in memory of its own. What
 * it reads may lie under the result. */
#ifndef EXT_EVAL_H
#define EXT_EVAL_H

#include "check.h"

#include <math.h>

struct eval {
    const struct ggml_ext_step * step;
    char *                       memory[64]; /* of nodes that have no data; the last one's result until it is complete */
};

static int eval_index(const struct eval * e, const struct ggml_tensor * t) {
    for (int i = 0; i < e->step->n_nodes; i++) {
        if (e->step->nodes[i] == t) {
            return i;
        }
    }
    return -1;
}

/* Where the data of `t` are during the evaluation. */
static char * eval_data(const struct eval * e, const struct ggml_tensor * t) {
    size_t                     offset = 0;
    const struct ggml_tensor * root   = t;
    for (; root->view_src; root = root->view_src) {
        offset += root->view_offs;
    }
    const int i = eval_index(e, root);
    if (i >= 0 && e->memory[i]) {
        return e->memory[i] + offset;
    }
    return t->data ? (char *) t->data : root->data ? (char *) root->data + offset : NULL;
}

static float * eval_at(const struct eval * e, const struct ggml_tensor * t, const int64_t i[4]) {
    size_t offset = 0;
    for (int d = 0; d < 4; d++) {
        offset += (size_t) (i[d] % t->ne[d]) * t->nb[d];
    }
    return (float *) (eval_data(e, t) + offset);
}

static void eval_row_norm(const struct eval * e, const struct ggml_tensor * t, const struct ggml_tensor * x, const int64_t first[4]) {
    float eps;
    memcpy(&eps, t->op_params, sizeof eps);
    double  sum  = 0;
    int64_t i[4] = { 0, first[1], first[2], first[3] };
    for (i[0] = 0; i[0] < x->ne[0]; i[0]++) {
        const double v = *eval_at(e, x, i);
        sum += v * v;
    }
    const float scale = (float) (1.0 / sqrt(sum / (double) x->ne[0] + (double) eps));
    for (i[0] = 0; i[0] < x->ne[0]; i[0]++) {
        *eval_at(e, t, i) = *eval_at(e, x, i) * scale;
    }
}

/* Each element of `to`, in logical order, from the element of the same number of `from`. */
static bool eval_copy(const struct eval * e, const struct ggml_tensor * to, const struct ggml_tensor * from) {
    if (from->type != GGML_TYPE_F32 || (to->type != GGML_TYPE_F32 && to->type != GGML_TYPE_F16)) {
        return false;
    }
    const int64_t n = ggml_nelements(to);
    for (int64_t k = 0; k < n; k++) {
        size_t at = 0;
        int64_t i[4], rest = k;
        for (int d = 0; d < 4; d++) {
            i[d] = rest % from->ne[d];
            rest /= from->ne[d];
        }
        const float x = *eval_at(e, from, i);
        rest          = k;
        for (int d = 0; d < 4; d++) {
            at += (size_t) (rest % to->ne[d]) * to->nb[d];
            rest /= to->ne[d];
        }
        if (to->type == GGML_TYPE_F16) {
            const ggml_fp16_t half = ggml_fp32_to_fp16(x);
            memcpy(eval_data(e, to) + at, &half, sizeof half);
        } else {
            memcpy(eval_data(e, to) + at, &x, sizeof x);
        }
    }
    return true;
}

static void eval_row_sum(const struct eval * e, const struct ggml_tensor * t, const struct ggml_tensor * x, const int64_t first[4]) {
    double  sum  = 0;
    int64_t i[4] = { 0, first[1], first[2], first[3] };
    for (i[0] = 0; i[0] < x->ne[0]; i[0]++) {
        sum += (double) *eval_at(e, x, i);
    }
    *eval_at(e, t, first) = (float) sum;
}

static float eval_element(const struct ggml_tensor * t, float x, float y) {
    float s, b, attrs[2];
    memcpy(&s, (const char *) t->op_params, sizeof s);
    memcpy(&b, (const char *) t->op_params + sizeof s, sizeof b);
    switch (t->op) {
        case GGML_OP_REPEAT: return x;
        case GGML_OP_ADD: return x + y;
        case GGML_OP_SUB: return x - y;
        case GGML_OP_MUL: return x * y;
        case GGML_OP_SQR: return x * x;
        case GGML_OP_SQRT: return sqrtf(x);
        case GGML_OP_SCALE: return b == 0 ? x * s : x * s + b;
        case GGML_OP_UNARY: return t->op_params[0] == GGML_UNARY_OP_RELU ? (x > 0 ? x : 0) : t->op_params[0] == GGML_UNARY_OP_NEG ? -x : NAN;
        case GGML_OP_CUSTOM: return ggml_ext_op_attrs(t, attrs, sizeof attrs) ? x * attrs[0] + attrs[1] : NAN;
        default: return NAN;
    }
}

static bool eval_node(const struct eval * e, const struct ggml_tensor * t) {
    switch (t->op) {
        case GGML_OP_NONE: case GGML_OP_VIEW: case GGML_OP_RESHAPE: case GGML_OP_PERMUTE: case GGML_OP_TRANSPOSE: return true;
        case GGML_OP_CPY: case GGML_OP_CONT: case GGML_OP_DUP: return eval_copy(e, t, t->src[0]);
        case GGML_OP_ADD: case GGML_OP_SUB: case GGML_OP_MUL: case GGML_OP_SQR: case GGML_OP_SQRT: case GGML_OP_SCALE: case GGML_OP_UNARY:
        case GGML_OP_CUSTOM: case GGML_OP_RMS_NORM: case GGML_OP_REPEAT: case GGML_OP_SUM_ROWS: break;
        default: return false;
    }
    int64_t i[4];
    for (i[3] = 0; i[3] < t->ne[3]; i[3]++) {
        for (i[2] = 0; i[2] < t->ne[2]; i[2]++) {
            for (i[1] = 0; i[1] < t->ne[1]; i[1]++) {
                i[0] = 0;
                if (t->op == GGML_OP_RMS_NORM) {
                    eval_row_norm(e, t, t->src[0], i);
                    continue;
                }
                if (t->op == GGML_OP_SUM_ROWS) {
                    eval_row_sum(e, t, t->src[0], i);
                    continue;
                }
                for (; i[0] < t->ne[0]; i[0]++) {
                    const float x = *eval_at(e, t->src[0], i), y = t->src[1] ? *eval_at(e, t->src[1], i) : 0;
                    *eval_at(e, t, i) = eval_element(t, x, y);
                }
            }
        }
    }
    return true;
}

/* Computes a step. False: it has an operator that is not known here. */
static CHECK_UNUSED bool eval_step(const struct ggml_ext_step * step) {
    struct eval e    = { .step = step };
    bool        good = step->n_nodes <= 64;
    const struct ggml_tensor * last = step->nodes[step->n_nodes - 1];
    for (int i = 0; good && i < step->n_nodes; i++) {
        const struct ggml_tensor * t = step->nodes[i];
        const bool owns = !t->view_src;
        if (owns && (t == last || !t->data)) {
            e.memory[i] = malloc(ggml_nbytes(t) + 1);
        }
    }
    for (int i = 0; good && i < step->n_nodes; i++) {
        good = eval_node(&e, step->nodes[i]);
    }
    if (good && e.memory[step->n_nodes - 1]) {
        memcpy(last->data, e.memory[step->n_nodes - 1], ggml_nbytes(last));
    }
    for (int i = 0; i < 64; i++) {
        free(e.memory[i]);
    }
    return good;
}

#endif
