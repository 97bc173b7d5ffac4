/* A small graph with a registered operator, a kernel in the place of ggml's own and a fusion: what is chosen, what memory it takes, and
 * that the fusion changes no bit of the result. */
#include "check.h"
#include "example.h"
#include "ggml-alloc.h"
#include "ggml-cpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHANNELS = 512, ROWS = 256, OUT = 64, N_OUT = OUT * ROWS };

static bool failed(const char * what) {
    struct ggml_ext_error error = { .struct_size = sizeof error };
    fprintf(stderr, "%s failed: %s\n", what, ggml_ext_last_error(&error) ? error.text : "no reason is known");
    return false;
}

/* The log would say once more what is printed here. */
static void no_log(enum ggml_log_level level, const char * text, void * user_data) {
    (void) level;
    (void) text;
    (void) user_data;
}

/* What stays in memory between graphs: data and weights. */
struct model {
    struct ggml_context * ctx;
    ggml_backend_buffer_t buffer;
    struct ggml_tensor *  x, *noise, *gate_x, *gate_noise, *w;
};

static bool fill(struct ggml_tensor * t, float scale) {
    static uint32_t seed = 1;
    float *         data = malloc(ggml_nbytes(t));
    if (!data) {
        return false;
    }
    for (int64_t i = 0; i < ggml_nelements(t); i++) {
        seed    = seed * 1664525 + 1013904223;
        data[i] = scale * ((float) (seed >> 8) / 8388608 - 1);
    }
    ggml_backend_tensor_set(t, data, 0, ggml_nbytes(t));
    free(data);
    return true;
}

static struct ggml_tensor * named(struct ggml_context * ctx, const char * name, int64_t ne0, int64_t ne1) {
    struct ggml_tensor * t = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, ne0, ne1);
    return t ? ggml_set_name(t, name) : NULL;
}

static bool load(struct model * m, ggml_backend_t cpu) {
    struct ggml_init_params params = { 8 * ggml_tensor_overhead(), NULL, /* no_alloc */ true };
    m->ctx                         = ggml_init(params);
    if (!m->ctx) {
        return failed("ggml_init");
    }
    m->x          = named(m->ctx, "x", CHANNELS, ROWS);
    m->noise      = named(m->ctx, "noise", CHANNELS, ROWS);
    m->gate_x     = named(m->ctx, "gate_x", CHANNELS, 1);
    m->gate_noise = named(m->ctx, "gate_noise", CHANNELS, 1);
    m->w          = named(m->ctx, "w", CHANNELS, OUT);
    m->buffer     = ggml_backend_alloc_ctx_tensors(m->ctx, cpu);
    return (m->buffer && fill(m->x, 4) && fill(m->noise, 1) && fill(m->gate_x, 1) && fill(m->gate_noise, 1) && fill(m->w, 0.1f))
        || failed("loading");
}

/* softclip(silu(w * silu(x * gate_x + noise * gate_noise))) */
static struct ggml_tensor * build(struct ggml_context * ctx, const struct model * m) {
    struct ggml_tensor * mix    = ggml_add(ctx, ggml_mul(ctx, m->x, m->gate_x), ggml_mul(ctx, m->noise, m->gate_noise));
    struct ggml_tensor * hidden = ggml_mul_mat(ctx, m->w, ggml_silu(ctx, ggml_set_name(mix, "mix")));
    struct ggml_tensor * out    = example_softclip(ctx, ggml_silu(ctx, ggml_set_name(hidden, "hidden")), 1.5f, 1e-3f);
    return out ? ggml_set_name(out, "out") : NULL;
}

/* What computes each node, and why nothing else does. */
static bool print_plan(ggml_backend_sched_t sched) {
    const size_t n    = ggml_ext_explain(sched, GGML_EXT_EXPLAIN_TEXT, NULL, 0);
    char *       text = n > 0 ? malloc(n + 1) : NULL;
    const bool   ok   = text && ggml_ext_explain(sched, GGML_EXT_EXPLAIN_TEXT, text, n + 1) == n;
    if (ok) {
        printf("%s", text);
    }
    free(text);
    return ok || failed("ggml_ext_explain");
}

/* Builds, places, computes. A scheduler of its own, so that its buffer has the size that this graph needs. `title` is printed with the
 * plan; NULL: neither. */
static bool run(ggml_backend_t cpu, const struct model * m, int n_threads, const char * title, float * result, size_t * memory) {
    struct ggml_init_params params = { 32 * ggml_tensor_overhead() + ggml_graph_overhead(), NULL, /* no_alloc */ true };
    struct ggml_context *   ctx    = ggml_init(params);
    ggml_backend_sched_t    sched  = ggml_backend_sched_new(&cpu, NULL, 1, GGML_DEFAULT_GRAPH_SIZE, false, false);
    struct ggml_tensor *    out    = ctx ? build(ctx, m) : NULL;
    struct ggml_cgraph *    graph  = ctx ? ggml_new_graph(ctx) : NULL;
    bool                    ok     = (sched && out && graph) || failed("building");
    if (ok) {
        ggml_set_output(out);
        ggml_build_forward_expand(graph, out);
        ggml_backend_cpu_set_n_threads(cpu, n_threads);
        /* here registrations are asked, fusions are settled and scratch memory is taken */
        ok = ggml_backend_sched_alloc_graph(sched, graph) || failed("ggml_backend_sched_alloc_graph");
    }
    if (ok && title) {
        printf("-- %s\n", title);
        ok = print_plan(sched);
    }
    ok = ok && (ggml_backend_sched_graph_compute(sched, graph) == GGML_STATUS_SUCCESS || failed("ggml_backend_sched_graph_compute"));
    if (ok) {
        ggml_backend_tensor_get(out, result, 0, N_OUT * sizeof(float));
        *memory = ggml_backend_sched_get_buffer_size(sched, cpu);
    }
    ggml_backend_sched_free(sched);
    ggml_free(ctx);
    return ok;
}

static float largest_difference(const float * a, const float * b) {
    float largest = 0;
    for (int i = 0; i < N_OUT; i++) {
        const float d = fabsf(a[i] - b[i]);
        largest       = isnan(d) || d > largest ? d : largest; /* NaN is kept */
    }
    return largest;
}

static bool compare(ggml_backend_t cpu, const struct model * m) {
    static float fused[N_OUT], one_thread[N_OUT], unfused[N_OUT];
    size_t       memory, memory_one, memory_unfused;
    if (!run(cpu, m, 4, "with the fusion", fused, &memory) || !run(cpu, m, 1, NULL, one_thread, &memory_one)) {
        return false;
    }
    /* no plan uses it any more: its schedulers are gone. Until then the library would refuse, with a text. */
    if (!ggml_ext_release(ggml_backend_get_device(cpu), EXAMPLE_BLEND_CPU)) {
        return failed("ggml_ext_release");
    }
    if (!run(cpu, m, 4, "without the fusion", unfused, &memory_unfused)) {
        return false;
    }
    const float between_threads = largest_difference(fused, one_thread), between_plans = largest_difference(fused, unfused);
    printf("-- compute buffer: %zu bytes with the fusion, %zu without\n", memory, memory_unfused);
    printf("-- largest difference: %g between fused and not, %g between four threads and one\n", (double) between_plans,
           (double) between_threads);
    return memcmp(fused, unfused, sizeof fused) == 0 && memcmp(fused, one_thread, sizeof fused) == 0 && memory < memory_unfused;
}

/* An operator's refusal is an error with a text, at the place where the node is built. */
static bool show_refusal(void) {
    struct ggml_init_params params = { 8 * ggml_tensor_overhead(), NULL, /* no_alloc */ true };
    struct ggml_context *   ctx    = ggml_init(params);
    struct ggml_tensor *    x      = ctx ? ggml_set_name(ggml_new_tensor_2d(ctx, GGML_TYPE_F16, 8, 2), "x") : NULL;
    struct ggml_ext_error   error  = { .struct_size = sizeof error };
    const bool              ok     = x && !example_softclip(ctx, x, 1, 1) && ggml_ext_last_error(&error);
    printf("-- a node that cannot be: %s\n", ok ? error.text : "was built, or nothing says why not");
    ggml_free(ctx);
    return ok;
}

int main(void) {
    ggml_log_set(no_log, NULL);
    ggml_backend_t   cpu   = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, NULL);
    ggml_ext_scope_t scope = ggml_ext_scope_new();
    struct model     m     = { 0 };
    bool             ok    = (cpu && scope) || failed("the CPU backend");
    /* before anything is asked what it supports, and before any graph is placed */
    ok = ok && example_register(ggml_backend_get_device(cpu), scope);
    ok = ok && load(&m, cpu);
    ok = ok && show_refusal();
    ok = ok && check_all(cpu);
    ok = ok && compare(cpu, &m);
    /* operators, kernels and rules go together */
    ok = (!scope || ggml_ext_scope_release(scope) || failed("ggml_ext_scope_release")) && ok;
    ggml_backend_buffer_free(m.buffer);
    ggml_free(m.ctx);
    ggml_backend_free(cpu);
    printf("%s\n", ok ? "all as it should be" : "FAILED");
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
