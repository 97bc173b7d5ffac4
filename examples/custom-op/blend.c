/* (d) A fusion: x * g + y * h, two MUL and an ADD, in one pass and without memory for the products. */
#include "internal.h"

/* The shape of the graph: which nodes. That nobody else needs the products is the library's to check. */
static int match(struct ggml_cgraph * graph, int first, void * user_data) {
    (void) user_data;
    if (ggml_graph_n_nodes(graph) - first < 3) {
        return 0;
    }
    const struct ggml_tensor * p   = ggml_graph_node(graph, first);
    const struct ggml_tensor * q   = ggml_graph_node(graph, first + 1);
    const struct ggml_tensor * sum = ggml_graph_node(graph, first + 2);
    if (p->op != GGML_OP_MUL || q->op != GGML_OP_MUL || sum->op != GGML_OP_ADD || sum->src[0] != p || sum->src[1] != q) {
        return 0;
    }
    /* (x * g) * h: other mathematics */
    return q->src[0] == p || q->src[1] == p ? 0 : 3;
}

/* Formats and layouts, asked once the library has found the match legal. The texts are shown by an explained plan. */
static bool supports(const struct ggml_ext_step * step, void * user_data) {
    (void) user_data;
    for (int i = 0; i < 2; i++) {
        const struct ggml_tensor * product = step->nodes[i];
        const struct ggml_tensor * gate    = product->src[1];
        if (!has_f32_rows(product->src[0]) || !has_f32_rows(gate) || !has_f32_rows(step->nodes[2])) {
            return ggml_ext_refuse("all must be F32 with the elements of a row side by side");
        }
        if (gate->ne[0] != product->ne[0] || ggml_nrows(gate) != 1) {
            return ggml_ext_refuse("each gate must be one row, as long as those of its tensor");
        }
        if (!ggml_are_same_shape(product, step->nodes[2])) {
            return ggml_ext_refuse("the products must have the same shape");
        }
    }
    /* the sum of ggml_add_inplace lies where it is told to; a fresh one never overlaps what the step reads */
    if (step->overlap) {
        return ggml_ext_refuse("the result lies over a source");
    }
    return true;
}

static void blend(int ith, int nth, void * user_data) {
    const struct ggml_ext_step * step = user_data;
    const struct ggml_tensor *   p = step->nodes[0], *q = step->nodes[1], *sum = step->nodes[2];
    const float *                g = row(p->src[1], 0), *h = row(q->src[1], 0);
    const int64_t                rows = ggml_nrows(sum);
    for (int64_t r = part(rows, ith, nth); r < part(rows, ith + 1, nth); r++) {
        const float * x = row(p->src[0], r), *y = row(q->src[0], r);
        float *       out = row(sum, r);
        for (int64_t i = 0; i < sum->ne[0]; i++) {
            /* Each product is rounded, as it is where it is stored: with -ffp-contract=off (CMakeLists.txt) no compiler makes a fused
             * multiply-add of this, and the result has the same bits as the three nodes by themselves. */
            const float xg = x[i] * g[i];
            const float yh = y[i] * h[i];
            out[i]         = xg + yh;
        }
    }
}

static enum ggml_status execute(const struct ggml_ext_run * run, void * user_data) {
    const struct example_threads * threads = user_data;
    /* the products have neither data nor buffer now: only their sources, shapes and parameters are read */
    return threads->parallel(run->backend, blend, (void *) run->step);
}

bool example_register_blend(ggml_backend_dev_t device, ggml_ext_scope_t scope, struct example_threads * threads) {
    GGML_EXT_INIT(ggml_ext_kernel_desc, rule);
    rule.name      = EXAMPLE_BLEND_CPU;
    rule.op        = GGML_OP_NONE; /* a fusion only: single nodes are not offered to it */
    rule.match     = match;
    rule.match_op  = GGML_OP_MUL; /* match is not asked about nodes of other operators */
    rule.supports  = supports;
    rule.execute   = execute;
    rule.user_data = threads;
    rule.scope     = scope;
    return ggml_ext_register_kernel_ex(device, &rule, GGML_EXT_KERNEL_DETERMINISTIC);
}
