/* A registration whose answers are made to order and whose callbacks are counted. It computes its steps by ext_eval.h. */
#ifndef EXT_PROBE_H
#define EXT_PROBE_H

#include "ext_eval.h"

#include "ggml-backend.h"

enum { PROBE_STATES = 256, PROBE_PATTERN = 8 };

struct probe;

/* What `prepare` made. Never used twice, so that a second `destroy` shows. */
struct probe_state {
    struct probe *             owner;
    const struct ggml_tensor * node;
    size_t                     workspace;
    int                        destroyed;
};

struct probe {
    const char *       name;
    ggml_backend_dev_t device;
    /* the description */
    enum ggml_op       op, match_op;
    const char *       op_name;
    int32_t            priority;
    ggml_ext_scope_t   scope;
    enum ggml_op       pattern[PROBE_PATTERN]; /* a rule: consecutive operators, up to GGML_OP_NONE */
    bool               no_preferred, no_prepare, no_destroy, no_rule_supports; /* the callback is NULL */
    /* answers */
    bool               off;          /* supports and match say no */
    bool               not_preferred;
    const char *       why;          /* with the answer no */
    size_t             workspace;
    size_t (*workspace_of)(const struct ggml_ext_step * step); /* goes before `workspace` */
    int                fail_prepare_at, fail_execute_at;       /* number of the call, from 1 */
    enum ggml_status   fail_status;  /* what the failing call answers; 0 is success, so GGML_STATUS_FAILED is taken */
    int                match_answer; /* not 0: what `match` answers wherever it matches */
    /* called inside of the callbacks */
    void (*in_supports)(const struct ggml_ext_step * step, struct probe * p);
    void (*in_preferred)(const struct ggml_ext_step * step, struct probe * p);
    void (*in_prepare)(const struct ggml_ext_step * step, struct probe * p);
    void (*in_execute)(const struct ggml_ext_run * run, struct probe * p);
    void (*in_destroy)(struct probe * p);
    int (*match)(struct ggml_cgraph * g, int first, struct probe * p); /* goes before `pattern` */
    void (*optimize)(struct ggml_cgraph * g, struct probe * p);
    void *             more; /* for these */
    /* counted */
    int n_supports, n_preferred, n_prepare, n_execute, n_destroy, n_match, n_optimize, n_states;
    int wrong; /* what must never be: destroyed twice, a strange state, a workspace that is not what was asked for */
    struct probe_state states[PROBE_STATES];
    /* seen */
    int                   supports_order, n_nodes, n_srcs;
    uint64_t              overlap_supports, overlap_prepare, overlap;
    ggml_backend_t        backend;
    ggml_backend_buffer_t workspace_buffer;
    size_t                workspace_buffer_size;
};

static int probe_clock; /* orders the calls of several probes */

static struct probe * probe_of(void * data) { return data; }

static bool probe_no(struct probe * p) { return p->why ? ggml_ext_refuse(p->why) : false; }

static void probe_look(const struct ggml_ext_step * step, struct probe * p) {
    p->wrong += step->struct_size != sizeof *step || step->device != p->device || step->n_nodes < 1 || step->n_srcs < 0;
}

static bool probe_supports(const struct ggml_ext_step * step, void * data) {
    struct probe * p = probe_of(data);
    p->n_supports++;
    p->supports_order   = ++probe_clock;
    p->overlap_supports = step->overlap;
    probe_look(step, p);
    if (p->in_supports) {
        p->in_supports(step, p);
    }
    return p->off ? probe_no(p) : true;
}

static bool probe_preferred(const struct ggml_ext_step * step, void * data) {
    struct probe * p = probe_of(data);
    p->n_preferred++;
    probe_look(step, p);
    if (p->in_preferred) {
        p->in_preferred(step, p);
    }
    return p->not_preferred ? probe_no(p) : true;
}

static enum ggml_status probe_fail(struct probe * p) {
    probe_no(p);
    return p->fail_status ? p->fail_status : GGML_STATUS_FAILED;
}

static enum ggml_status probe_prepare(const struct ggml_ext_step * step, struct ggml_ext_prepared * out, void * data) {
    struct probe * p = probe_of(data);
    p->n_prepare++;
    p->overlap_prepare = step->overlap;
    probe_look(step, p);
    p->wrong += out->struct_size != sizeof *out || out->workspace_size != 0 || out->state != NULL;
    if (p->in_prepare) {
        p->in_prepare(step, p);
    }
    if (p->n_prepare == p->fail_prepare_at || p->n_states == PROBE_STATES) {
        return probe_fail(p);
    }
    struct probe_state * s = &p->states[p->n_states++];
    *s                     = (struct probe_state){ .owner = p, .node = step->nodes[step->n_nodes - 1] };
    s->workspace           = p->workspace_of ? p->workspace_of(step) : p->workspace;
    out->workspace_size    = s->workspace;
    out->state             = s;
    return GGML_STATUS_SUCCESS;
}

static void probe_scratch(const struct ggml_ext_run * run, struct probe * p, size_t size) {
    p->wrong += run->workspace_size != size || (run->workspace != NULL) != (size > 0);
    p->workspace_buffer      = run->workspace;
    p->workspace_buffer_size = run->workspace ? ggml_backend_buffer_get_size(run->workspace) : 0;
    p->wrong += p->workspace_buffer_size < size;
    if (run->workspace && ggml_backend_buffer_is_host(run->workspace)) {
        /* all of it is the step's */
        memset(ggml_backend_buffer_get_base(run->workspace), 0x5A, size);
    }
}

static enum ggml_status probe_execute(const struct ggml_ext_run * run, void * data) {
    struct probe *               p = probe_of(data);
    const struct probe_state *   s = run->state;
    const struct ggml_ext_step * step = run->step;
    p->n_execute++;
    probe_look(step, p);
    p->n_nodes = step->n_nodes;
    p->n_srcs  = step->n_srcs;
    p->overlap = step->overlap;
    p->backend = run->backend;
    p->wrong += run->struct_size != sizeof *run;
    if (!p->no_prepare) {
        const bool known = s >= p->states && s < p->states + p->n_states;
        p->wrong += !known || s->destroyed || s->owner != p || s->node != step->nodes[step->n_nodes - 1];
        probe_scratch(run, p, known ? s->workspace : 0);
    } else {
        p->wrong += s != NULL;
        probe_scratch(run, p, 0);
    }
    if (p->in_execute) {
        p->in_execute(run, p);
    }
    if (p->n_execute == p->fail_execute_at) {
        return probe_fail(p);
    }
    return eval_step(step) ? GGML_STATUS_SUCCESS : probe_fail(p);
}

static void probe_destroy(void * state, void * data) {
    struct probe *       p = probe_of(data);
    struct probe_state * s = state;
    p->n_destroy++;
    if (p->in_destroy) {
        p->in_destroy(p);
    }
    p->wrong += s < p->states || s >= p->states + p->n_states || s->destroyed++ > 0;
}

static int probe_match(struct ggml_cgraph * g, int first, void * data) {
    struct probe * p = probe_of(data);
    int            n = 0;
    p->n_match++;
    if (p->off) {
        return 0;
    }
    if (p->match) {
        return p->match(g, first, p);
    }
    for (; n < PROBE_PATTERN && p->pattern[n] != GGML_OP_NONE; n++) {
        if (first + n >= ggml_graph_n_nodes(g) || ggml_graph_node(g, first + n)->op != p->pattern[n]) {
            return 0;
        }
    }
    return n && p->match_answer ? p->match_answer : n;
}

static void probe_optimize(struct ggml_cgraph * g, void * data) {
    struct probe * p = probe_of(data);
    p->n_optimize++;
    p->optimize(g, p);
}

static CHECK_UNUSED struct ggml_ext_kernel_desc probe_desc(struct probe * p) {
    GGML_EXT_INIT(ggml_ext_kernel_desc, d);
    const bool rule = p->match || p->pattern[0] != GGML_OP_NONE;
    d.name      = p->name;
    d.op        = p->op;
    d.op_name   = p->op_name;
    d.priority  = p->priority;
    d.match_op  = p->match_op;
    d.user_data = p;
    d.supports  = p->no_rule_supports ? NULL : probe_supports;
    d.preferred = p->no_preferred ? NULL : probe_preferred;
    d.prepare   = p->no_prepare ? NULL : probe_prepare;
    d.execute   = probe_execute;
    d.destroy   = p->no_prepare || p->no_destroy ? NULL : probe_destroy;
    d.match     = rule ? probe_match : NULL;
    d.optimize  = p->optimize ? probe_optimize : NULL;
    d.scope     = p->scope;
    return d;
}

static CHECK_UNUSED bool probe_register(struct probe * p, ggml_backend_dev_t device) {
    p->device                           = device;
    const struct ggml_ext_kernel_desc d = probe_desc(p);
    return ggml_ext_register_kernel(device, &d);
}

/* Counts from zero; states that are alive stay. */
static CHECK_UNUSED void probe_zero(struct probe * p) {
    p->n_supports = p->n_preferred = p->n_execute = p->n_match = p->n_optimize = 0;
    p->overlap_supports = p->overlap_prepare = p->overlap = 0;
}

/* States that were prepared and not destroyed. */
static CHECK_UNUSED int probe_live(const struct probe * p) { return p->n_states - p->n_destroy; }

/* Released, with every state destroyed once and nothing out of order. */
static CHECK_UNUSED void probe_end(struct probe * p, const char * test) {
    CHECK(ggml_ext_release(p->device, p->name), "%s: '%s' is released, no plan holds it", test, p->name);
    CHECK(probe_live(p) == 0 && p->wrong == 0, "%s (EXT-32): '%s' has %d states alive, %d wrong calls", test, p->name, probe_live(p), p->wrong);
}

#endif
