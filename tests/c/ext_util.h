/* What the tests of ggml-ext.h share: errors, a registration that counts what happens to it (ext_probe.h), teams of backends, and a
 * plain evaluation of steps (ext_eval.h). */
#ifndef EXT_UTIL_H
#define EXT_UTIL_H

#include "ext_eval.h"
#include "ext_probe.h"
#include "fake_device.h"

/* errors */

static CHECK_UNUSED struct ggml_ext_error ext_error(void) {
    GGML_EXT_INIT(ggml_ext_error, e);
    if (!ggml_ext_last_error(&e)) {
        e.code = GGML_EXT_CODE_NONE;
    }
    return e;
}

/* One check: `failed` holds, an error was logged, and it has the code, the registration (NULL: none), the node (NULL: none; EXT_ANY: not
 * looked at), and the texts that follow the name of the check; the text names registration and node. */
#define EXT_ANY ((const struct ggml_tensor *) -1)
#define EXT_NOT_LOOKED_AT ((const char *) -1)
#define FAILS(failed, code, registration, node, ...)                                                                   \
    do {                                                                                                               \
        check_log_errors = 0;                                                                                          \
        const bool failed_ = (failed);                                                                                 \
        ext_fails(failed_, code, registration, node, #failed, __FILE__, __LINE__, (const char *[]){ __VA_ARGS__, NULL }); \
    } while (0)

static CHECK_UNUSED void ext_fails(bool failed, int code, const char * registration, const struct ggml_tensor * node, const char * cond,
                                   const char * file, int line, const char ** texts) {
    const char *                name = *texts++;
    const struct ggml_ext_error e    = ext_error();
    char                        why[400] = "";
    const char *                text = e.text ? e.text : "";
    if (!failed) {
        snprintf(why, sizeof why, "no failure of %s", cond);
    } else if (check_log_errors == 0) {
        snprintf(why, sizeof why, "nothing was logged");
    } else if (e.code != code) {
        snprintf(why, sizeof why, "code %d, not %d", e.code, code);
    } else if (registration != EXT_NOT_LOOKED_AT && (registration == NULL) != (e.registration == NULL)) {
        snprintf(why, sizeof why, "registration %s", e.registration ? e.registration : "NULL");
    } else if (registration != EXT_NOT_LOOKED_AT && registration && strcmp(registration, e.registration) != 0) {
        snprintf(why, sizeof why, "registration '%s', not '%s'", e.registration, registration);
    } else if (registration != EXT_NOT_LOOKED_AT && registration && !strstr(text, registration)) {
        snprintf(why, sizeof why, "the text does not name '%s'", registration);
    } else if (node != EXT_ANY && e.node != node) {
        snprintf(why, sizeof why, "node %p, not %p", (const void *) e.node, (const void *) node);
    } else if (node != EXT_ANY && node && node->name[0] && !strstr(text, node->name)) {
        snprintf(why, sizeof why, "the text does not name node '%s'", node->name);
    }
    for (; !why[0] && *texts; texts++) {
        if (!strstr(text, *texts)) {
            snprintf(why, sizeof why, "the text has no '%s'", *texts);
        }
    }
    if (why[0]) {
        check_failures++;
        printf("not ok %s: %s (%s:%d); last error: %s\n", name, why, file, line, text);
    } else {
        printf("ok %s\n", name);
    }
    fflush(stdout);
}

/* teams */

enum { LOGGED = 64 };

/* Backends that compute together; `main` is the one under test. */
struct team {
    const char *       name;
    ggml_backend_t     list[2];
    int                n;
    ggml_backend_t     main;
    ggml_backend_dev_t dev;
    struct fake *      fake; /* NULL: the CPU */
};

/* What a watched backend was given: graphs of so many nodes. */
static struct {
    int  n_graphs, n_nodes[LOGGED], n_optimized;
    bool custom;                /* a node of GGML_OP_CUSTOM was among them */
    char first[LOGGED][GGML_MAX_NAME];
    char optimized[LOGGED][GGML_MAX_NAME];
    int  optimized_nodes[LOGGED];
} watched;

static CHECK_UNUSED void watch_reset(void) { memset(&watched, 0, sizeof watched); }

static enum ggml_status watched_compute(ggml_backend_t b, struct ggml_cgraph * g) {
    const int n = ggml_graph_n_nodes(g);
    for (int i = 0; i < n; i++) {
        watched.custom |= ggml_graph_node(g, i)->op == GGML_OP_CUSTOM;
    }
    if (watched.n_graphs < LOGGED && n > 0) {
        watched.n_nodes[watched.n_graphs] = n;
        snprintf(watched.first[watched.n_graphs], GGML_MAX_NAME, "%s", ggml_graph_node(g, 0)->name);
        watched.n_graphs++;
    }
    return fake_compute(b, g);
}

static void watched_optimize(ggml_backend_t b, struct ggml_cgraph * g, struct ggml_backend_graph_optimize_params * params) {
    (void) b;
    (void) params;
    const int n = ggml_graph_n_nodes(g);
    if (watched.n_optimized < LOGGED && n > 0) {
        watched.optimized_nodes[watched.n_optimized] = n;
        snprintf(watched.optimized[watched.n_optimized], GGML_MAX_NAME, "%s", ggml_graph_node(g, 0)->name);
        watched.n_optimized++;
    }
}

/* The CPU alone: the scheduler allocates the client's own graph. */
static CHECK_UNUSED struct team team_cpu(void) {
    struct team t = { .name = "CPU", .n = 1, .dev = fake_cpu() };
    t.main = t.list[0] = ggml_backend_cpu_init();
    return t;
}

/* A device of another make before the CPU: the scheduler splits and lays out. */
static CHECK_UNUSED struct team team_fake(struct fake * f, const char * name) {
    fake_make(f, name);
    f->host_memory = true;
    struct team t = { .name = name, .n = 2, .dev = &f->device, .fake = f };
    t.main = t.list[0] = fake_init_backend(&f->device, NULL);
    t.list[1]          = ggml_backend_cpu_init();
    t.main->iface.graph_compute  = watched_compute;
    t.main->iface.graph_optimize = watched_optimize;
    watch_reset();
    return t;
}

static CHECK_UNUSED void team_free(struct team * t) {
    for (int i = 0; i < t->n; i++) {
        ggml_backend_free(t->list[i]);
    }
}

static CHECK_UNUSED ggml_backend_sched_t team_sched(struct team * t, bool parallel) {
    return ggml_backend_sched_new(t->list, NULL, t->n, 64, parallel, false);
}

/* All nodes to the backend under test, then memory. */
static CHECK_UNUSED bool team_alloc(struct team * t, ggml_backend_sched_t s, struct ggml_cgraph * g) {
    for (int i = 0; t->fake && i < ggml_graph_n_nodes(g); i++) {
        ggml_backend_sched_set_tensor_backend(s, ggml_graph_node(g, i), t->main);
    }
    return ggml_backend_sched_alloc_graph(s, g);
}

/* tensors */

static struct ggml_context * ctx;

static CHECK_UNUSED void ctx_open(void) { ctx = ggml_init((struct ggml_init_params){ 1 << 20, NULL, true }); }

static CHECK_UNUSED struct ggml_tensor * named(struct ggml_tensor * t, const char * name) { return ggml_set_name(t, name); }

static CHECK_UNUSED struct ggml_tensor * input(const char * name, int64_t ne0, int64_t ne1) {
    struct ggml_tensor * t = named(ggml_new_tensor_2d(ctx, GGML_TYPE_F32, ne0, ne1), name);
    ggml_set_input(t);
    return t;
}

static CHECK_UNUSED struct ggml_cgraph * graph_of(struct ggml_tensor * result) {
    struct ggml_cgraph * g = ggml_new_graph_custom(ctx, 64, false);
    ggml_set_output(result);
    ggml_build_forward_expand(g, result);
    return g;
}

/* A value for element i of a tensor filled with `seed`: small, of either sign, never zero. */
static CHECK_UNUSED float value(int64_t i, int seed) { return (float) ((i * 7 + seed * 3) % 23 - 11) * 0.25f + 0.125f; }

static CHECK_UNUSED void fill(struct ggml_tensor * t, int seed) {
    const int64_t n = ggml_nelements(t);
    float *       x = malloc((size_t) n * sizeof *x);
    for (int64_t i = 0; i < n; i++) {
        x[i] = value(i, seed);
    }
    ggml_backend_tensor_set(t, x, 0, (size_t) n * sizeof *x);
    free(x);
}

/* Element i of a contiguous f32 tensor. */
static CHECK_UNUSED float got(struct ggml_tensor * t, int64_t i) {
    float x = NAN;
    ggml_backend_tensor_get(t, &x, (size_t) i * sizeof x, sizeof x);
    return x;
}

/* The registered operator of these tests: test.affine.v1, y = x * scale + shift, elementwise over the first source. */
struct affine {
    float scale, shift;
};

static CHECK_UNUSED bool affine_infer(struct ggml_tensor * const * src, int n_src, const void * attrs, struct ggml_ext_output * out, void * data) {
    (void) attrs;
    (void) data;
    if (n_src < 1 || src[0]->type != GGML_TYPE_F32) {
        return ggml_ext_refuse("affine takes one f32 source");
    }
    memcpy(out->ne, src[0]->ne, sizeof out->ne);
    return true;
}

static CHECK_UNUSED bool affine_register(const char * name) {
    GGML_EXT_INIT(ggml_ext_op_desc, desc);
    desc.name      = name;
    desc.attr_size = sizeof(struct affine);
    desc.infer     = affine_infer;
    return ggml_ext_register_op(&desc);
}

static CHECK_UNUSED struct ggml_tensor * affine(const char * op, struct ggml_tensor * x, float scale, float shift) {
    const struct affine a = { scale, shift };
    return ggml_ext_op_create(ctx, op, &x, 1, &a, sizeof a);
}

/* What most programs begin and end with: the CPU alone, and a device of the test's before it. */
static CHECK_UNUSED void teams_open(struct team * cpu, struct team * dev, struct fake * fake) {
    check_quiet();
    ctx_open();
    *cpu = team_cpu();
    *dev = team_fake(fake, "OTHER");
}

static CHECK_UNUSED int teams_close(struct team * cpu, struct team * dev) {
    team_free(cpu);
    team_free(dev);
    ggml_free(ctx);
    return check_done();
}

/* Whether y = 3 (2 x + 1)^2 for the values that `fill` gives x, 24 of them. */
static CHECK_UNUSED bool is_right(struct ggml_tensor * y) {
    for (int64_t i = 0; i < 24; i++) {
        const float e = value(i, 1) * 2 + 1;
        if (got(y, i) != e * e * 3) {
            return false;
        }
    }
    return true;
}

#endif
