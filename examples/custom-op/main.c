/* A small graph with a registered operator, a kernel in the place of ggml's own and a fusion: what is chosen, what memory it takes, and
 * that the fusion changes no bit of the result. */
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

static bool load(struct model * m, ggml_backend_t cpu) {
    struct ggml_init_params params = { 8 * ggml_tensor_overhead(), NULL, /* no_alloc */ true };
    m->ctx                         = ggml_init(params);
    if (!m->ctx) {
        return failed("ggml_init");
    }
    m->x          = ggml_new_tensor_2d(m->ctx, GGML_TYPE_F32, CHANNELS, ROWS);
    m->noise      = ggml_new_tensor_2d(m->ctx, GGML_TYPE_F32, CHANNELS, ROWS);
    m->gate_x     = ggml_new_tensor_1d(m->ctx, GGML_TYPE_F32, CHANNELS);
    m->gate_noise = ggml_new_tensor_1d(m->ctx, GGML_TYPE_F32, CHANNELS);
    m->w          = ggml_new_tensor_2d(m->ctx, GGML_TYPE_F32, CHANNELS, OUT);
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

/* How often each registration was chosen, ran, and said no. */
static void print_counters(ggml_backend_dev_t device) {
    const char * names[] = { EXAMPLE_SOFTCLIP_CPU, EXAMPLE_SILU_CPU, EXAMPLE_BLEND_CPU };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct ggml_ext_counters c = { .struct_size = sizeof c };
        if (ggml_ext_counters(device, names[i], &c)) {
            printf("%-22s chosen %d, ran %d, replaced %d nodes, refused %d\n", names[i], (int) c.selected, (int) c.ran, (int) c.fused_nodes,
                   (int) c.refused);
        }
    }
}

/* Builds, places, computes. A scheduler of its own, so that its buffer has the size that this graph needs. */
static bool run(ggml_backend_t cpu, const struct model * m, int n_threads, float * result, size_t * memory) {
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
        largest       = d <= largest ? largest : d; /* NaN is kept */
    }
    return largest;
}

static bool compare(ggml_backend_t cpu, const struct model * m) {
    static float             fused[N_OUT], one_thread[N_OUT], unfused[N_OUT];
    size_t                   memory, memory_one, memory_unfused;
    const ggml_backend_dev_t device = ggml_backend_get_device(cpu);

    printf("-- with the fusion\n");
    if (!run(cpu, m, 4, fused, &memory)) {
        return false;
    }
    print_counters(device);
    if (!run(cpu, m, 1, one_thread, &memory_one)) {
        return false;
    }
    /* no plan uses it any more: its schedulers are gone. Until then the library would refuse, with a text. */
    if (!ggml_ext_release(device, EXAMPLE_BLEND_CPU)) {
        return failed("ggml_ext_release");
    }
    printf("-- without the fusion\n");
    if (!run(cpu, m, 4, unfused, &memory_unfused)) {
        return false;
    }
    print_counters(device);
    const float between_threads = largest_difference(fused, one_thread), between_plans = largest_difference(fused, unfused);
    printf("-- compute buffer: %zu bytes with the fusion, %zu without\n", memory, memory_unfused);
    printf("-- largest difference: %g between fused and not, %g between four threads and one\n", (double) between_plans,
           (double) between_threads);
    return between_plans == 0 && between_threads == 0 && memory < memory_unfused;
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
    ggml_backend_t   cpu   = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, NULL);
    ggml_ext_scope_t scope = ggml_ext_scope_new();
    struct model     m     = { 0 };
    bool             ok    = (cpu && scope) || failed("the CPU backend");
    /* before anything is asked what it supports, and before any graph is placed */
    ok = ok && example_register(ggml_backend_get_device(cpu), scope);
    ok = ok && load(&m, cpu);
    ok = ok && show_refusal();
    ok = ok && compare(cpu, &m);
    /* operators, kernels and rules go together */
    ok = (!scope || ggml_ext_scope_release(scope) || failed("ggml_ext_scope_release")) && ok;
    ggml_backend_buffer_free(m.buffer);
    ggml_free(m.ctx);
    ggml_backend_free(cpu);
    printf("%s\n", ok ? "all as it should be" : "FAILED");
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
