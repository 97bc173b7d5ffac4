/* A program that has never heard of the plugin's kernels: it loads them, uses them, and unloads them while it goes on working. */
#include "plugin.h"
#include "ggml-alloc.h"
#include "ggml-cpu.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHANNELS = 64, ROWS = 32, N_OUT = CHANNELS * ROWS };

/* The last error of the library, with its code in `code`. */
static const char * reason(int32_t * code) {
    struct ggml_ext_error error = { .struct_size = sizeof error };
    const bool            any   = ggml_ext_last_error(&error);
    if (code) {
        *code = any ? error.code : GGML_EXT_CODE_NONE;
    }
    return any ? error.text : "no reason is known";
}

static bool failed(const char * what) {
    fprintf(stderr, "%s failed: %s\n", what, reason(NULL));
    return false;
}

/* The log would say once more what is printed here. */
static void no_log(enum ggml_log_level level, const char * text, void * user_data) {
    (void) level;
    (void) text;
    (void) user_data;
}

/* A graph, and the tensors that it reads and gives. */
struct work {
    struct ggml_context * ctx;
    struct ggml_cgraph *  graph;
    struct ggml_tensor *  x, *gate, *out;
};

/* silu(x * gate + x * gate), and the plugin's operator on it when `clip`. To be freed in any case. */
static bool build(struct work * w, bool clip) {
    struct ggml_init_params params = { 16 * ggml_tensor_overhead() + ggml_graph_overhead(), NULL, /* no_alloc */ true };
    w->ctx = ggml_init(params);
    if (!w->ctx) {
        return false;
    }
    w->x    = ggml_new_tensor_2d(w->ctx, GGML_TYPE_F32, CHANNELS, ROWS);
    w->gate = ggml_new_tensor_1d(w->ctx, GGML_TYPE_F32, CHANNELS);
    ggml_set_input(w->x);
    ggml_set_input(w->gate);
    w->out = ggml_silu(w->ctx, ggml_add(w->ctx, ggml_mul(w->ctx, w->x, w->gate), ggml_mul(w->ctx, w->x, w->gate)));
    if (clip) {
        /* no function of the plugin's is called for it: the name and the attributes are the interface */
        const struct example_softclip_attrs attrs = { 1.5f, 1e-3f };
        w->out                                    = ggml_ext_op_create(w->ctx, EXAMPLE_SOFTCLIP, &w->out, 1, &attrs, sizeof attrs);
    }
    w->graph = ggml_new_graph(w->ctx);
    if (!w->out || !w->graph) {
        return false;
    }
    ggml_set_output(w->out);
    ggml_build_forward_expand(w->graph, w->out);
    return true;
}

/* Computes a graph with a scheduler, which keeps the plan until it is reset or freed. */
static bool compute(ggml_backend_sched_t sched, const struct work * w, float * result) {
    float x[N_OUT], gate[CHANNELS];
    for (int i = 0; i < N_OUT; i++) {
        x[i] = (float) (i * 37 % 101 - 50) / 25;
    }
    for (int i = 0; i < CHANNELS; i++) {
        gate[i] = (float) (i % 7) / 7;
    }
    if (!ggml_backend_sched_alloc_graph(sched, w->graph)) {
        return false;
    }
    ggml_backend_tensor_set(w->x, x, 0, sizeof x);
    ggml_backend_tensor_set(w->gate, gate, 0, sizeof gate);
    if (ggml_backend_sched_graph_compute(sched, w->graph) != GGML_STATUS_SUCCESS) {
        return false;
    }
    ggml_backend_tensor_get(w->out, result, 0, N_OUT * sizeof(float));
    return true;
}

/* The graph of built-in operators, on its own. */
static bool compute_builtin(ggml_backend_t cpu, float * result) {
    struct work          w     = { 0 };
    ggml_backend_sched_t sched = ggml_backend_sched_new(&cpu, NULL, 1, GGML_DEFAULT_GRAPH_SIZE, false, false);
    const bool           ok    = (sched && build(&w, false) && compute(sched, &w, result)) || failed("computing");
    ggml_backend_sched_free(sched);
    ggml_free(w.ctx);
    return ok;
}

struct plugin {
    void *           handle;
    ggml_ext_scope_t scope;
};

/* Takes the plugin's registrations back, then its code. In this order: nothing that is registered may be gone. False: a plan uses one
 * of them, and everything stays. */
static bool plugin_close(struct plugin * p) {
    if (p->scope && !ggml_ext_scope_release(p->scope)) {
        return false;
    }
    p->scope = NULL;
    if (p->handle && dlclose(p->handle) != 0) {
        fprintf(stderr, "dlclose: %s\n", dlerror());
    }
    p->handle = NULL;
    return true;
}

static bool plugin_open(struct plugin * p, const char * path, ggml_backend_dev_t device) {
    p->handle   = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    p->scope    = ggml_ext_scope_new();
    void * proc = p->handle ? dlsym(p->handle, EXAMPLE_PLUGIN_ENTRY) : NULL;
    if (!proc) {
        fprintf(stderr, "%s: %s\n", path, dlerror());
        return false;
    }
    example_plugin_load_t load;
    memcpy(&load, &proc, sizeof proc);
    return load(device, p->scope);
}

static float largest_difference(const float * a, const float * b) {
    float largest = 0;
    for (int i = 0; i < N_OUT; i++) {
        const float d = fabsf(a[i] - b[i]);
        largest       = isnan(d) || d > largest ? d : largest; /* NaN is kept */
    }
    return largest;
}

static uint64_t times_ran(ggml_backend_dev_t device, const char * name) {
    struct ggml_ext_counters c = { .struct_size = sizeof c };
    return ggml_ext_counters(device, name, &c) ? c.ran : 0;
}

static bool expect(bool holds, const char * what) {
    printf("%s %s\n", holds ? "ok    " : "not ok", what);
    return holds;
}

/* The life of a plugin. `clipped` and `later` are graphs with its operator, `sched` computes the first. */
static bool go(ggml_backend_t cpu, ggml_backend_sched_t sched, struct plugin * p, const char * path, struct work * clipped,
               struct work * later) {
    static float             before[N_OUT], with[N_OUT], after[N_OUT], clip[N_OUT];
    const ggml_backend_dev_t device = ggml_backend_get_device(cpu);
    int32_t                  code;

    bool ok = compute_builtin(cpu, before);
    ok      = ok && (plugin_open(p, path, device) || failed("loading the plugin"));
    ok      = ok && compute_builtin(cpu, with);
    ok      = ok && expect(times_ran(device, EXAMPLE_BLEND_CPU) == 1 && times_ran(device, EXAMPLE_SILU_CPU) == 1,
                           "the plugin's kernels computed the program's graph");
    ok      = ok && expect(largest_difference(before, with) < 1e-6f, "with the numbers of the library's own");
    ok      = ok && ((build(clipped, true) && build(later, true) && compute(sched, clipped, clip)) || failed("the plugin's operator"));
    ok      = ok && expect(times_ran(device, EXAMPLE_SOFTCLIP_CPU) == 1, "its operator, which the library does not have, too");
    if (!ok) {
        return false;
    }

    /* the scheduler has a plan, and may be told to compute it again: unloading would pull the code from under it */
    ok = expect(!plugin_close(p) && p->handle, "the plugin cannot be unloaded while a plan uses it:");
    printf("         %s\n", reason(&code));
    ok = ok && code == GGML_EXT_CODE_IN_USE;
    ggml_backend_sched_reset(sched);
    ok = ok && (plugin_close(p) || failed("unloading the plugin"));
    ok = ok && expect(!dlopen(path, RTLD_NOW | RTLD_NOLOAD), "after a reset it can, and its code is gone");
    if (!ok) {
        return false;
    }

    ok = compute_builtin(cpu, after);
    ok = ok && expect(memcmp(before, after, sizeof before) == 0, "the program's graph runs as before, to the bit");
    ok = ok && expect(!compute(sched, later, clip), "a graph that was built with the plugin's operator is an error:");
    printf("         %s\n", reason(&code));
    ok = ok && code == GGML_EXT_CODE_NO_KERNEL;
    struct work again = { 0 };
    ok = ok && expect(!build(&again, true), "and so is building one:");
    printf("         %s\n", reason(&code));
    ggml_free(again.ctx);
    return ok && code == GGML_EXT_CODE_UNKNOWN_NAME;
}

int main(int argc, char ** argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: host PLUGIN.so\n");
        return EXIT_FAILURE;
    }
    ggml_log_set(no_log, NULL);
    ggml_backend_t       cpu   = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, NULL);
    ggml_backend_sched_t sched = cpu ? ggml_backend_sched_new(&cpu, NULL, 1, GGML_DEFAULT_GRAPH_SIZE, false, false) : NULL;
    struct plugin        p     = { 0 };
    struct work          clipped = { 0 }, later = { 0 };

    bool ok = sched ? go(cpu, sched, &p, argv[1], &clipped, &later) : failed("the CPU backend");
    ggml_backend_sched_free(sched);
    ok = (plugin_close(&p) || failed("unloading the plugin")) && ok;
    ggml_free(clipped.ctx);
    ggml_free(later.ctx);
    ggml_backend_free(cpu);
    printf("%s\n", ok ? "all as it should be" : "FAILED");
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
