/* Operators of training where their surroundings matter: results over their sources' memory, parameters and moments that are written
 * over, numbers without a graph. Values in all layouts are for the reference tests. */
#include "check.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"

#include <math.h>

static struct ggml_context * ctx;
static ggml_backend_t        cpu;

static struct ggml_tensor * input(int64_t n, int64_t rows) {
    struct ggml_tensor * x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, n, rows);
    ggml_set_input(x);
    return x;
}

/* Values that repeat nowhere near each other. */
static void fill(struct ggml_tensor * t, int seed, float span) {
    float * x = malloc(ggml_nbytes(t));
    for (int64_t i = 0; i < ggml_nelements(t); i++) {
        x[i] = span * sinf((float) (seed + 1) * 1.7f + (float) i * 0.61f);
    }
    ggml_backend_tensor_set(t, x, 0, ggml_nbytes(t));
    free(x);
}

/* Case 3 of the public reports: the backward pass of a softmax whose source, gradient or result may be given up to its result. */
static void soft_max_back(void) {
    enum { N = 37, ROWS = 11 };
    float first[N * ROWS];
    for (int kept = 0; kept < 4; kept++) {
        ggml_gallocr_t       galloc = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
        struct ggml_tensor * x      = input(N, ROWS);
        struct ggml_tensor * g      = input(N, ROWS);
        struct ggml_tensor * grad   = ggml_scale(ctx, g, 2);
        struct ggml_tensor * y      = ggml_soft_max(ctx, ggml_scale(ctx, x, 3));
        struct ggml_tensor * back   = ggml_soft_max_ext_back(ctx, grad, y, 0.5f, 0);
        /* outputs are not given up, others may be */
        if (kept & 1) {
            ggml_set_output(grad);
        }
        if (kept & 2) {
            ggml_set_output(y);
        }
        ggml_set_output(back);
        struct ggml_cgraph * graph = ggml_new_graph(ctx);
        ggml_build_forward_expand(graph, back);
        CHECK(ggml_gallocr_alloc_graph(galloc, graph), "soft_max_back %d: alloc", kept);
        fill(x, 1, 1);
        fill(g, 2, 1);
        CHECK(ggml_backend_graph_compute(cpu, graph) == GGML_STATUS_SUCCESS, "soft_max_back %d: compute", kept);
        float got[N * ROWS];
        ggml_backend_tensor_get(back, got, 0, sizeof got);
        if (kept == 0) {
            memcpy(first, got, sizeof got);
        }
        double sum = 0;
        for (int i = 0; i < N; i++) {
            sum += got[i];
        }
        CHECK(memcmp(first, got, sizeof got) == 0 && fabs(sum) < 1e-6 && got[0] != 0, "soft_max_back %d: the same whatever is kept", kept);
        ggml_gallocr_free(galloc);
        ggml_reset(ctx);
    }
}

/* Steps over parameters in memory of their own, twice with one graph. */
static void steps(void) {
    enum { N = 100 };
    struct ggml_tensor * w[2], *g = input(N, 1), *m = input(N, 1), *v = input(N, 1), *adamw = input(7, 1), *sgd = input(2, 1);
    for (int i = 0; i < 2; i++) {
        w[i] = input(N, 1);
        ggml_set_param(w[i]);
    }
    struct ggml_cgraph * graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, ggml_opt_step_adamw(ctx, w[0], g, m, v, adamw));
    ggml_build_forward_expand(graph, ggml_opt_step_sgd(ctx, w[1], g, sgd));
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, cpu);
    const float a[7] = { 0.1f, 0.5f, 0.75f, 1e-8f, 0.5f, 1, 1 }, s[2] = { 0.25f, 0.5f };
    ggml_backend_tensor_set(adamw, a, 0, sizeof a);
    ggml_backend_tensor_set(sgd, s, 0, sizeof s);
    fill(g, 3, 1);
    for (int i = 0; i < 2; i++) {
        fill(w[i], 4, 1);
    }
    float zeros[N] = { 0 }, want[2][N], wm[N] = { 0 }, wv[N] = { 0 }, grad[N];
    ggml_backend_tensor_set(m, zeros, 0, sizeof zeros);
    ggml_backend_tensor_set(v, zeros, 0, sizeof zeros);
    ggml_backend_tensor_get(g, grad, 0, sizeof grad);
    ggml_backend_tensor_get(w[0], want[0], 0, sizeof want[0]);
    ggml_backend_tensor_get(w[1], want[1], 0, sizeof want[1]);
    for (int step = 0; step < 2; step++) {
        CHECK(ggml_backend_graph_compute(cpu, graph) == GGML_STATUS_SUCCESS, "steps: compute %d", step);
        for (int i = 0; i < N; i++) {
            wm[i]      = 0.5f * wm[i] + 0.5f * grad[i];
            wv[i]      = 0.75f * wv[i] + 0.25f * grad[i] * grad[i];
            want[0][i] = want[0][i] * 0.95f - 0.1f * wm[i] / (sqrtf(wv[i]) + 1e-8f);
            want[1][i] = want[1][i] * 0.875f - 0.25f * grad[i];
        }
    }
    struct ggml_tensor * all[4] = { w[0], w[1], m, v };
    const float *        is[4]  = { want[0], want[1], wm, wv };
    for (int k = 0; k < 4; k++) {
        float got[N];
        ggml_backend_tensor_get(all[k], got, 0, sizeof got);
        float most = 0;
        for (int i = 0; i < N; i++) {
            most = fmaxf(most, fabsf(got[i] - is[k][i]));
        }
        CHECK(most < 1e-5f, "steps: tensor %d, off by %g", k, (double) most);
    }
    ggml_backend_buffer_free(buffer);
    ggml_reset(ctx);
}

/* The builder that ends the process elsewhere; each gradient where the header says. */
static void flash_attn_back(void) {
    enum { D = 6, Q = 3, K = 5, HEADS = 4, SHARED = 2 };
    struct ggml_tensor * q = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, D, Q, HEADS), *k = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, D, K, SHARED);
    struct ggml_tensor * v = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, K, D, SHARED), *d = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, D, Q, HEADS);
    struct ggml_tensor * out = ggml_flash_attn_back(ctx, q, k, v, d, true);
    CHECK(ggml_nelements(out) == D * Q * HEADS + 2 * D * K * SHARED, "flash_attn_back: three gradients");
    struct ggml_cgraph * graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, out);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, cpu);
    fill(q, 1, 1), fill(k, 2, 1), fill(v, 3, 1), fill(d, 4, 1);
    CHECK(ggml_backend_graph_compute(cpu, graph) == GGML_STATUS_SUCCESS, "flash_attn_back: compute");
    float got[D * Q * HEADS + 2 * D * K * SHARED], weight = 0, grads[D * Q * HEADS];
    ggml_backend_tensor_get(out, got, 0, sizeof got);
    ggml_backend_tensor_get(d, grads, 0, sizeof grads);
    /* weights of a query sum to 1: so do their parts in the gradient of the first row of values */
    float sum = 0;
    for (int c = 0; c < K; c++) {
        sum += got[D * Q * HEADS + D * K * SHARED + c];
    }
    for (int h = 0; h < HEADS; h += SHARED) {
        for (int i = 0; i < Q; i++) {
            weight += grads[(h * Q + i) * D];
        }
    }
    CHECK(fabsf(sum - weight) < 1e-5f && sum != 0, "flash_attn_back: %g and %g", (double) sum, (double) weight);
    ggml_backend_buffer_free(buffer);
    ggml_reset(ctx);
}

static void corrections(void) {
    float dims[3] = { -1, -1, 7 };
    ggml_rope_yarn_corr_dims(128, 4096, 10000, 32, 1, dims);
    CHECK(dims[0] == 20 && dims[1] == 46 && dims[2] == 7, "yarn_corr_dims: %g %g", (double) dims[0], (double) dims[1]);
    ggml_rope_yarn_corr_dims(64, 64, 10000, 32, 1e-9f, dims);
    CHECK(dims[0] == 0 && dims[1] == 63, "yarn_corr_dims: ends %g %g", (double) dims[0], (double) dims[1]);
    check_log_errors = 0;
    ggml_rope_yarn_corr_dims(128, 4096, 10000, 32, 1, NULL);
    CHECK(check_log_errors == 1 && strstr(check_error_text(), "yarn_corr_dims") != NULL, "yarn_corr_dims: NULL is reported");
    struct ggml_tensor * a = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, 8, 2, 3), *pos = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, 3);
    struct ggml_tensor * custom  = ggml_rope_custom(ctx, a, pos, 8, 2, 128, 5e5f, 0.5f, 1, 1.5f, 32, 1);
    struct ggml_tensor * ext     = ggml_rope_ext(ctx, a, pos, NULL, 8, 2, 128, 5e5f, 0.5f, 1, 1.5f, 32, 1);
    struct ggml_tensor * inplace = ggml_rope_custom_inplace(ctx, a, pos, 8, 2, 128, 5e5f, 0.5f, 1, 1.5f, 32, 1);
    struct ggml_tensor * back    = ggml_rope_ext_back(ctx, a, pos, NULL, 8, 2, 128, 5e5f, 0.5f, 1, 1.5f, 32, 1);
    CHECK(memcmp(custom->op_params, ext->op_params, sizeof ext->op_params) == 0 && custom->op == GGML_OP_ROPE, "rope_custom is rope_ext");
    CHECK(memcmp(inplace->op_params, ext->op_params, sizeof ext->op_params) == 0 && inplace->view_src == a, "rope_custom_inplace is over its source");
    CHECK(memcmp(back->op_params, ext->op_params, sizeof ext->op_params) == 0 && back->op == GGML_OP_ROPE_BACK, "rope_ext_back has rope's parameters");
    ggml_reset(ctx);
}

/* Case 7 of the public reports: work buffers of 1 to 64 threads, and the same bytes from all of them. Sizes above what one thread does
 * alone; sources permuted where the operator takes them so. */
static void work_buffers(void) {
    struct ggml_tensor * a = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, 64, 33, 9), *pos = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, 33);
    struct ggml_tensor * labels = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, 64, 33, 9), *m = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, 64, 40);
    struct ggml_tensor * q = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, 32, 20, 6), *k = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, 32, 25, 3);
    struct ggml_tensor * v = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, 25, 32, 3), *n = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 90, 40);
    struct ggml_tensor * g = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 1), *kernel = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, 3, 3, 7);
    struct ggml_tensor * columns = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, 63, 20, 18);
    struct ggml_tensor * turned  = ggml_permute(ctx, a, 0, 2, 1, 3);
    struct ggml_tensor * flat    = ggml_cont_2d(ctx, a, 64, 33 * 9);
    struct ggml_tensor * ids     = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, 33 * 9);
    int64_t              image[] = { 20, 18, 7, 1 };
    struct ggml_tensor * all[]   = {
        ggml_rope_ext_back(ctx, turned, pos, NULL, 64, 2, 0, 1e4f, 1, 0, 1, 0, 0),
        ggml_cross_entropy_loss(ctx, a, labels),
        ggml_cross_entropy_loss_back(ctx, g, a, labels),
        ggml_flash_attn_back(ctx, q, k, v, q, true),
        ggml_out_prod(ctx, m, n),
        ggml_get_rows_back(ctx, flat, ids, flat),
        ggml_repeat_back(ctx, ggml_permute(ctx, a, 1, 0, 2, 3), pos), /* [33,64,9] to [33] */
        ggml_repeat_back(ctx, a, g),
        ggml_im2col_back(ctx, columns, kernel, image, 1, 1, 1, 1, 1, 1, true),
        ggml_rms_norm_back(ctx, turned, turned, 1e-6f),
        ggml_soft_max_ext_back(ctx, turned, turned, 1, 0),
        ggml_silu_back(ctx, turned, turned),
    };
    enum { ALL = sizeof all / sizeof *all };
    struct ggml_cgraph * graph = ggml_new_graph(ctx);
    for (int i = 0; i < ALL; i++) {
        ggml_build_forward_expand(graph, all[i]);
    }
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, cpu);
    struct ggml_tensor *  numbers[] = { a, labels, q, k, v, n, g, columns };
    for (int i = 0; i < 8; i++) {
        fill(numbers[i], i, 2);
    }
    int32_t indices[33 * 9];
    for (int i = 0; i < 33 * 9; i++) {
        indices[i] = i * 31 % 50;
    }
    ggml_backend_tensor_set(ids, indices, 0, sizeof indices);
    ggml_backend_tensor_set(pos, indices, 0, ggml_nbytes(pos));
    ggml_fp16_t half[64 * 40];
    for (int i = 0; i < 64 * 40; i++) {
        half[i] = ggml_fp32_to_fp16(sinf((float) i));
    }
    ggml_backend_tensor_set(m, half, 0, sizeof half);
    uint8_t * want[ALL] = { 0 };
    for (int threads = 1; threads <= 64; threads += threads < 8 ? 1 : 7) {
        struct ggml_cplan plan = ggml_graph_plan(graph, threads, NULL);
        uint8_t *         work = malloc(plan.work_size + 64);
        memset(work, 0xFF, plan.work_size);
        memset(work + plan.work_size, 0xA5, 64);
        plan.work_data = work;
        CHECK(ggml_graph_compute(graph, &plan) == GGML_STATUS_SUCCESS, "work buffers: %d threads", threads);
        int changed = 0, other = 0;
        for (int i = 0; i < 64; i++) {
            changed += work[plan.work_size + i] != 0xA5;
        }
        for (int i = 0; i < ALL; i++) {
            const size_t size = ggml_nbytes(all[i]);
            if (threads == 1) {
                want[i] = memcpy(malloc(size), all[i]->data, size);
            }
            other += memcmp(want[i], all[i]->data, size) != 0;
            memset(all[i]->data, 0xFF, size);
        }
        CHECK(changed == 0 && other == 0, "work buffers: %d threads, %d bytes behind the buffer, %d other results", threads, changed, other);
        free(work);
    }
    for (int i = 0; i < ALL; i++) {
        free(want[i]);
    }
    ggml_backend_buffer_free(buffer);
    ggml_reset(ctx);
}

int main(void) {
    check_quiet();
    ctx = ggml_init((struct ggml_init_params){ 1 << 20, NULL, true });
    cpu = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, NULL);
    soft_max_back();
    steps();
    flash_attn_back();
    work_buffers();
    corrections();
    ggml_backend_free(cpu);
    ggml_free(ctx);
    return check_done();
}
