/* (a) An operator of our own, and (b) a CPU kernel for it, with scratch memory and on all threads. */
#include "internal.h"

#include <math.h>

struct ggml_tensor * example_softclip(struct ggml_context * ctx, struct ggml_tensor * x, float factor, float least) {
    struct example_softclip_attrs attrs = { factor, least };
    return ggml_ext_op_create(ctx, EXAMPLE_SOFTCLIP, &x, 1, &attrs, sizeof attrs);
}

/* Format and shape of the result. Whoever builds a node that cannot be gets the text. */
static bool infer(struct ggml_tensor * const * src, int n_src, const void * attrs, struct ggml_ext_output * out, void * user_data) {
    (void) user_data;
    const struct example_softclip_attrs * a = attrs;
    if (n_src != 1) {
        return ggml_ext_refuse("there must be one source");
    }
    if (src[0]->type != GGML_TYPE_F32) {
        return ggml_ext_refuse("the source must be F32");
    }
    /* written so that NaN is refused too */
    if (!(a->factor > 0 && a->least > 0)) {
        return ggml_ext_refuse("factor and least must be above 0");
    }
    out->type = GGML_TYPE_F32;
    for (int i = 0; i < GGML_MAX_DIMS; i++) {
        out->ne[i] = src[0]->ne[i];
    }
    return true;
}

/* Squares are added up in blocks of rows, whose sums are kept apart in the workspace and added in order. One sum for each thread would
 * need less memory, and would round differently for each number of threads: this kernel promises not to. */
enum { BLOCK = 64 };

static int64_t n_blocks(const struct ggml_tensor * x) {
    return (ggml_nrows(x) + BLOCK - 1) / BLOCK;
}

static bool supports(const struct ggml_ext_step * step, void * user_data) {
    (void) user_data;
    /* the result is contiguous, the library sees to that; the source may be any view */
    if (!has_f32_rows(step->nodes[0]->src[0])) {
        return ggml_ext_refuse("elements of a row must lie side by side, as ggml_cont puts them");
    }
    return true;
}

/* Scratch: the sums of each block, and the limits; each as many floats as there are channels. There are not more blocks than rows, so
 * the product is about the size of the source at most and cannot overflow. */
static enum ggml_status prepare(const struct ggml_ext_step * step, struct ggml_ext_prepared * out, void * user_data) {
    (void) user_data;
    const struct ggml_tensor * x = step->nodes[0]->src[0];
    out->workspace_size          = (size_t) (n_blocks(x) + 1) * (size_t) x->ne[0] * sizeof(float);
    return GGML_STATUS_SUCCESS;
}

struct job {
    const struct ggml_tensor * x;
    struct ggml_tensor *       y;
    float *                    sums;
    float *                    limits;
};

static void add_squares(int ith, int nth, void * user_data) {
    const struct job * job = user_data;
    const int64_t      n = job->x->ne[0], rows = ggml_nrows(job->x), blocks = n_blocks(job->x);
    for (int64_t b = part(blocks, ith, nth); b < part(blocks, ith + 1, nth); b++) {
        float * sums = job->sums + b * n;
        for (int64_t i = 0; i < n; i++) {
            sums[i] = 0; /* the workspace holds whatever the last step left there */
        }
        for (int64_t r = b * BLOCK; r < (b + 1) * BLOCK && r < rows; r++) {
            const float * x = row(job->x, r);
            for (int64_t i = 0; i < n; i++) {
                sums[i] += x[i] * x[i];
            }
        }
    }
}

static void clip(int ith, int nth, void * user_data) {
    const struct job * job = user_data;
    const int64_t      n = job->x->ne[0], rows = ggml_nrows(job->x);
    for (int64_t r = part(rows, ith, nth); r < part(rows, ith + 1, nth); r++) {
        const float * x = row(job->x, r);
        float *       y = row(job->y, r);
        for (int64_t i = 0; i < n; i++) {
            y[i] = job->limits[i] * tanhf(x[i] / job->limits[i]);
        }
    }
}

static enum ggml_status execute(const struct ggml_ext_run * run, void * user_data) {
    const struct example_threads * threads = user_data;
    struct ggml_tensor *           node    = run->step->nodes[0];
    const struct ggml_tensor *     x       = node->src[0];
    struct example_softclip_attrs  attrs;
    if (!ggml_ext_op_attrs(node, &attrs, sizeof attrs)) {
        return GGML_STATUS_FAILED;
    }
    float *     sums = ggml_backend_buffer_get_base(run->workspace);
    struct job  job  = { x, node, sums, sums + n_blocks(x) * x->ne[0] };
    /* returns when all threads are through; any other status, such as an abort, is for the caller of the graph */
    const enum ggml_status status = threads->parallel(run->backend, add_squares, &job);
    if (status != GGML_STATUS_SUCCESS) {
        return status;
    }
    for (int64_t i = 0; i < x->ne[0]; i++) {
        double sum = 0;
        for (int64_t b = 0; b < n_blocks(x); b++) {
            sum += sums[b * x->ne[0] + i];
        }
        const float limit = attrs.factor * (float) sqrt(sum / (double) ggml_nrows(x));
        job.limits[i]     = limit < attrs.least ? attrs.least : limit; /* NaN stays NaN, which fmaxf would hide */
    }
    return threads->parallel(run->backend, clip, &job);
}

bool example_register_softclip(ggml_backend_dev_t device, ggml_ext_scope_t scope, struct example_threads * threads) {
    GGML_EXT_INIT(ggml_ext_op_desc, op);
    op.name      = EXAMPLE_SOFTCLIP;
    op.attr_size = sizeof(struct example_softclip_attrs);
    op.infer     = infer;
    op.scope     = scope;

    GGML_EXT_INIT(ggml_ext_kernel_desc, kernel);
    kernel.name      = EXAMPLE_SOFTCLIP_CPU;
    kernel.op        = GGML_OP_CUSTOM;
    kernel.op_name   = EXAMPLE_SOFTCLIP;
    kernel.supports  = supports;
    kernel.prepare   = prepare;
    kernel.execute   = execute;
    kernel.user_data = threads;
    kernel.scope     = scope;
    return ggml_ext_register_op(&op) && ggml_ext_register_kernel_ex(device, &kernel, GGML_EXT_KERNEL_DETERMINISTIC);
}
