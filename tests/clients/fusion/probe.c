/* Loaded into a client that computes its graphs by ggml_gallocr and ggml_backend_graph_compute (LD_PRELOAD), this lets a scheduler
 * allocate and compute them, with the fusion rules of rules.c. It says on stderr, a line each and by the number of the graph's allocator:
 *
 *   probe: buffer GRAPH nodes N gallocr BYTES unfused BYTES fused BYTES    compute buffers: the client's own, and the scheduler's
 *   probe: alone GRAPH RULE BYTES                                          with one rule only
 *   probe: run GRAPH buffer BYTES launches N gone N gone_bytes BYTES views N    nodes and views that have no memory
 *   probe: error TEXT
 *
 * Environment: PROBE_THREADS, threads of the scheduler's backend (2). PROBE_PLAIN, if set: ggml_mul_inplace and ggml_add_inplace build
 * what ggml_mul and ggml_add build, so that it is left to the allocator what is done in place. PROBE_PLAN: the plan of the graph with the
 * most nodes is written there, in the form of the file's name (.dot, .json, else text), and nodes without a name of the client's are
 * called after the weight that they read. GGML_EXT_FORBID works as ever. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml-alloc.h"
#include "ggml-cpu.h"
#include "rules.h"

/* One allocator of the client's, and what stands in for it. */
struct graph {
    struct graph *       next;
    int                  number;
    ggml_gallocr_t       gallocr;
    ggml_backend_sched_t sched;
    struct ggml_cgraph * at_hand; /* allocated last */
    int                  gone, views;
    size_t               gone_bytes;
};

static struct graph *     graphs;
static int                n_graphs;
static ggml_backend_t     backend;
static ggml_backend_dev_t device;

#define REAL(name) ((__typeof__(&name)) real(#name))

static void * real(const char * name) {
    void * f = dlsym(RTLD_NEXT, name);
    if (!f) {
        fprintf(stderr, "probe: error %s is missing\n", name);
        exit(3);
    }
    return f;
}

static bool failed(const char * what) {
    GGML_EXT_INIT(ggml_ext_error, e);
    const bool known = ggml_ext_last_error(&e);
    fprintf(stderr, "probe: error %s: %s\n", what, known ? e.text : "no reason given");
    return false;
}

static bool start(void) {
    if (backend) {
        return true;
    }
    device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (!device || !rules_register(device)) {
        return failed("registration");
    }
    backend = ggml_backend_dev_init(device, NULL);
    if (!backend) {
        return failed("backend");
    }
    const char * threads = getenv("PROBE_THREADS");
    ggml_backend_cpu_set_n_threads(backend, threads ? atoi(threads) : 2);
    return true;
}

static struct graph * graph_of(ggml_gallocr_t gallocr, struct ggml_cgraph * cgraph) {
    for (struct graph * g = graphs; g; g = g->next) {
        if (g->gallocr == gallocr) {
            return g;
        }
    }
    if (!cgraph || !start()) {
        return NULL;
    }
    struct graph * g = calloc(1, sizeof *g);
    if (!g) {
        return NULL;
    }
    g->number  = n_graphs++;
    g->gallocr = gallocr;
    g->sched   = ggml_backend_sched_new(&backend, NULL, 1, (size_t) ggml_graph_size(cgraph), false, false);
    g->next    = graphs;
    graphs     = g;
    return g;
}

/* The compute buffer with all rules but those. */
static size_t without(const char * names, struct graph * g, struct ggml_cgraph * cgraph) {
    size_t size = 0;
    setenv("GGML_EXT_FORBID", names, 1);
    ggml_backend_sched_reset(g->sched);
    ggml_backend_sched_reserve_size(g->sched, cgraph, &size);
    return size;
}

bool ggml_gallocr_reserve(ggml_gallocr_t gallocr, struct ggml_cgraph * cgraph) {
    struct graph * g = graph_of(gallocr, cgraph);
    if (!g || !g->sched || !REAL(ggml_gallocr_reserve)(gallocr, cgraph)) {
        return failed("reserve");
    }
    const char * before = getenv("GGML_EXT_FORBID");
    char *       kept   = before ? strdup(before) : NULL;
    char names[RULES_NAMES];
    rules_but(-1, names);
    const size_t unfused = without(names, g, cgraph), fused = without("", g, cgraph);
    fprintf(stderr, "probe: buffer %d nodes %d gallocr %zu unfused %zu fused %zu\n", g->number, ggml_graph_n_nodes(cgraph),
            ggml_gallocr_get_buffer_size(gallocr, 0), unfused, fused);
    for (int i = 0; rules_name(i); i++) {
        rules_but(i, names);
        fprintf(stderr, "probe: alone %d %s %zu\n", g->number, rules_name(i), without(names, g, cgraph));
    }
    unsetenv("GGML_EXT_FORBID");
    if (kept) {
        setenv("GGML_EXT_FORBID", kept, 1);
    }
    free(kept);
    return true;
}

/* Whether the explained plan says the same. */
static bool agrees(const struct graph * g) {
    const size_t n    = ggml_ext_explain(g->sched, GGML_EXT_EXPLAIN_JSON, NULL, 0);
    char *       text = n ? malloc(n + 1) : NULL;
    if (!text || ggml_ext_explain(g->sched, GGML_EXT_EXPLAIN_JSON, text, n + 1) != n) {
        free(text);
        return failed("plan");
    }
    int          skipped = -1;
    size_t       bytes   = 0;
    const char * at      = strstr(text, "\"skipped\":"); /* the first is that of the totals */
    const bool   same    = at && sscanf(at, "\"skipped\":%d,\"skipped_bytes\":%zu", &skipped, &bytes) == 2
                      && skipped == g->gone + g->views && bytes == g->gone_bytes;
    free(text);
    if (!same) {
        fprintf(stderr, "probe: error the plan says that %d nodes have no memory (%zu bytes); it is %d (%zu bytes) and %d views\n", skipped,
                bytes, g->gone, g->gone_bytes, g->views);
    }
    return same;
}

/* Nodes that are there without memory. Views count apart: what they look at has none, or has it elsewhere. */
static bool look(struct graph * g, struct ggml_cgraph * cgraph) {
    g->gone = g->views = 0;
    g->gone_bytes      = 0;
    for (int i = 0; i < ggml_graph_n_nodes(cgraph); i++) {
        const struct ggml_tensor * t = ggml_graph_node(cgraph, i);
        if (t->data || ggml_nbytes(t) == 0) {
            continue;
        }
        if (t->buffer) {
            fprintf(stderr, "probe: error node '%s' has a buffer and no data\n", t->name);
            return false;
        }
        if (t->view_src) {
            g->views++;
        } else {
            g->gone++;
            g->gone_bytes += ggml_nbytes(t);
        }
    }
    return agrees(g);
}

/* What the client gave no name: "node_7", and what ggml makes of no name, " (view)". */
static bool is_nameless(const struct ggml_tensor * t) {
    return !t->name[0] || t->name[0] == ' ' || !strncmp(t->name, "node_", 5);
}

/* Calls `t`, if it is nameless, after the weight or the bias that `reader` reads: itself, or the node that multiplies it. */
static void name_after_weight(struct ggml_tensor * t, const struct ggml_tensor * reader) {
    static const char prefix[] = "model.diffusion_model.";
    for (int i = 0; i < 2 && is_nameless(t); i++) {
        const char * name = reader->src[i] ? reader->src[i]->name : "";
        const char * end  = strrchr(name, '.');
        if (end && (!strcmp(end, ".weight") || !strcmp(end, ".bias"))) {
            name += strncmp(name, prefix, sizeof prefix - 1) ? 0 : sizeof prefix - 1;
            ggml_format_name(t, "%.*s", (int) (end - name), name);
        }
    }
}

static void name_nodes(struct ggml_cgraph * cgraph) {
    for (int i = 0; i < ggml_graph_n_nodes(cgraph); i++) {
        struct ggml_tensor * t = ggml_graph_node(cgraph, i);
        if (t->op == GGML_OP_MUL) {
            name_after_weight(t->src[0], t);
        }
        if (t->op == GGML_OP_MUL || t->op == GGML_OP_MUL_MAT || t->op == GGML_OP_ADD) {
            name_after_weight(t, t);
        }
    }
}

static bool write_plan(struct graph * g, int n_nodes) {
    static int   most;
    const char * file = getenv("PROBE_PLAN");
    if (!file || n_nodes <= most) {
        return true;
    }
    most = n_nodes;
    const char *                       end    = strrchr(file, '.');
    const enum ggml_ext_explain_format format = end && !strcmp(end, ".dot")    ? GGML_EXT_EXPLAIN_DOT
                                                : end && !strcmp(end, ".json") ? GGML_EXT_EXPLAIN_JSON
                                                                               : GGML_EXT_EXPLAIN_TEXT;
    const size_t                       n      = ggml_ext_explain(g->sched, format, NULL, 0);
    char *                             text   = n ? malloc(n + 1) : NULL;
    FILE *                             f      = text ? fopen(file, "w") : NULL;
    const bool ok = f && ggml_ext_explain(g->sched, format, text, n + 1) == n && fwrite(text, 1, n, f) == n;
    free(text);
    if (!f || fclose(f) != 0 || !ok) {
        return failed("plan");
    }
    return true;
}

bool ggml_gallocr_alloc_graph(ggml_gallocr_t gallocr, struct ggml_cgraph * cgraph) {
    struct graph * g = graph_of(gallocr, cgraph);
    if (!g || !g->sched) {
        return failed("scheduler");
    }
    g->at_hand = NULL;
    if (getenv("PROBE_PLAN")) {
        name_nodes(cgraph);
    }
    ggml_backend_sched_reset(g->sched);
    if (!ggml_backend_sched_alloc_graph(g->sched, cgraph)) {
        return failed("allocation");
    }
    if (!look(g, cgraph) || !write_plan(g, ggml_graph_n_nodes(cgraph))) {
        return false;
    }
    g->at_hand = cgraph;
    return true;
}

enum ggml_status ggml_backend_graph_compute(ggml_backend_t client, struct ggml_cgraph * cgraph) {
    for (struct graph * g = graphs; g; g = g->next) {
        if (g->at_hand == cgraph) {
            const unsigned long long before = rules_launches(device);
            const enum ggml_status   status = ggml_backend_sched_graph_compute(g->sched, cgraph);
            if (status != GGML_STATUS_SUCCESS) {
                failed("computation");
            }
            fprintf(stderr, "probe: run %d buffer %zu launches %llu gone %d gone_bytes %zu views %d\n", g->number,
                    ggml_backend_sched_get_buffer_size(g->sched, backend), rules_launches(device) - before, g->gone, g->gone_bytes,
                    g->views);
            return status;
        }
    }
    return REAL(ggml_backend_graph_compute)(client, cgraph);
}

void ggml_gallocr_free(ggml_gallocr_t gallocr) {
    for (struct graph ** p = &graphs; *p; p = &(*p)->next) {
        struct graph * g = *p;
        if (g->gallocr == gallocr) {
            *p = g->next;
            ggml_backend_sched_free(g->sched);
            free(g);
            break;
        }
    }
    REAL(ggml_gallocr_free)(gallocr);
}

/* builders */

struct ggml_tensor * ggml_mul_inplace(struct ggml_context * ctx, struct ggml_tensor * a, struct ggml_tensor * b) {
    return getenv("PROBE_PLAIN") ? ggml_mul(ctx, a, b) : REAL(ggml_mul_inplace)(ctx, a, b);
}

struct ggml_tensor * ggml_add_inplace(struct ggml_context * ctx, struct ggml_tensor * a, struct ggml_tensor * b) {
    return getenv("PROBE_PLAIN") ? ggml_add(ctx, a, b) : REAL(ggml_add_inplace)(ctx, a, b);
}
