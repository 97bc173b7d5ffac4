/* (c) A kernel in the place of one of ggml's own: SILU of small tensors, on the calling thread. */
#include "internal.h"

#include <math.h>

/* Up to here it is chosen. The number stands for a measurement that a real kernel would be made after. */
enum { SMALL = 16384 };

/* Correct where it says yes, whatever is faster. */
static bool supports(const struct ggml_ext_step * step, void * user_data) {
    (void) user_data;
    const struct ggml_tensor * node = step->nodes[0];
    /* GGML_OP_UNARY is many functions */
    if (ggml_get_unary_op(node) != GGML_UNARY_OP_SILU) {
        return ggml_ext_refuse("it computes SILU only");
    }
    if (!has_f32_rows(node) || !has_f32_rows(node->src[0])) {
        return ggml_ext_refuse("source and result must be F32 with the elements of a row side by side");
    }
    return true;
}

/* Only asked where the device can compute the node itself. The reason is shown by an explained plan. */
static bool preferred(const struct ggml_ext_step * step, void * user_data) {
    (void) user_data;
    return ggml_nelements(step->nodes[0]) <= SMALL || ggml_ext_refuse("large: the device's own code is faster");
}

/* ggml lets SILU work in place, so the result may lie exactly over the source (bit 0 of step->overlap). Every element is read before it
 * is written and never after: nothing more is needed. */
static enum ggml_status execute(const struct ggml_ext_run * run, void * user_data) {
    (void) user_data;
    struct ggml_tensor * node = run->step->nodes[0];
    for (int64_t r = 0; r < ggml_nrows(node); r++) {
        const float * x = row(node->src[0], r);
        float *       y = row(node, r);
        for (int64_t i = 0; i < node->ne[0]; i++) {
            const float e = expf(-x[i]);
            y[i]          = isinf(e) ? -0.0f : x[i] / (1 + e); /* the limit, as ggml has it; -inf / inf would be NaN */
        }
    }
    return GGML_STATUS_SUCCESS;
}

bool example_register_silu(ggml_backend_dev_t device, ggml_ext_scope_t scope) {
    GGML_EXT_INIT(ggml_ext_kernel_desc, kernel);
    kernel.name      = EXAMPLE_SILU_CPU;
    kernel.op        = GGML_OP_UNARY;
    kernel.supports  = supports;
    kernel.preferred = preferred;
    kernel.execute   = execute;
    kernel.scope     = scope;
    return ggml_ext_register_kernel_ex(device, &kernel, GGML_EXT_KERNEL_DETERMINISTIC);
}
