/* Plans and scratch memory: EXT-30 to EXT-37. */
#include "ext_util.h"

#include <stddef.h>

static struct team cpu, dev;
static struct fake fake_dev;

#define SAY(text) "%s: " text, t->name

/* y = sqrt(sqr(x)) * 3, on a team; the kernels are for SQR, SQRT and SCALE */
static struct job {
    struct ggml_tensor * x, * a, * b, * y;
    struct ggml_cgraph * graph;
} job;

static struct probe kernels[3];

/* x lies in memory of the team's main backend, so that the nodes go there; `weights` keeps it. */
static struct ggml_context * weights;
static ggml_backend_buffer_t weight_buffer;

static void place(struct team * t) {
    weights       = ggml_init((struct ggml_init_params){ 1 << 12, NULL, true });
    job.x         = named(ggml_new_tensor_2d(weights, GGML_TYPE_F32, 16, 4), "x");
    weight_buffer = ggml_backend_alloc_ctx_tensors(weights, t->main);
    ggml_backend_buffer_set_usage(weight_buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    fill(job.x, 1);
}

static void unplace(void) {
    ggml_backend_buffer_free(weight_buffer);
    ggml_free(weights);
}

static void build(void) {
    ggml_reset(ctx);
    job.a     = named(ggml_sqr(ctx, job.x), "a");
    job.b     = named(ggml_sqrt(ctx, job.a), "b");
    job.y     = named(ggml_scale(ctx, job.b, 3), "y");
    job.graph = graph_of(job.y);
}

static bool right(void) {
    for (int64_t i = 0; i < 64; i++) {
        if (got(job.y, i) != fabsf(value(i, 1)) * 3) {
            return false;
        }
    }
    return true;
}

static bool compute(ggml_backend_sched_t s) {
    return ggml_backend_sched_graph_compute(s, job.graph) == GGML_STATUS_SUCCESS && right();
}

/* Kernels for the three nodes that ask for so much; 0: a kernel without `prepare`. */
static void begin(struct team * t, size_t w0, size_t w1, size_t w2) {
    const size_t        sizes[] = { w0, w1, w2 };
    const enum ggml_op  ops[]   = { GGML_OP_SQR, GGML_OP_SQRT, GGML_OP_SCALE };
    static const char * names[] = { "plan.sqr", "plan.sqrt", "plan.scale" };
    bool                good    = true;
    for (int i = 0; i < 3; i++) {
        kernels[i] = (struct probe){ .name = names[i], .op = ops[i], .workspace = sizes[i], .no_prepare = sizes[i] == 0 };
        good       = good && probe_register(&kernels[i], t->dev);
    }
    if (!good) {
        CHECK(good, SAY("three kernels"));
    }
}

static void end(struct team * t, const char * what) {
    int wrong = 0, live = 0;
    bool released = true;
    for (int i = 0; i < 3; i++) {
        released = ggml_ext_release(t->dev, kernels[i].name) && released;
        wrong += kernels[i].wrong;
        live += probe_live(&kernels[i]);
    }
    CHECK(released && live == 0 && wrong == 0, SAY("EXT-32: %s: each state is destroyed once (%d alive, %d wrong)"), what, live, wrong);
    CHECK(fake_dev.n_live == (t->fake != NULL), SAY("EXT-31: %s: no buffer is left"), what);
}

static int counted(size_t offset) {
    int n = 0;
    for (int i = 0; i < 3; i++) {
        n += *(int *) ((char *) &kernels[i] + offset);
    }
    return n;
}
#define SUM(member) counted(offsetof(struct probe, member))

/* EXT-30, EXT-31, EXT-34 */

static int unplaced; /* calls of prepare in which no tensor had an address */

static void look_unplaced(const struct ggml_ext_step * step, struct probe * p) {
    (void) p;
    /* what is outside of the graph has its own */
    unplaced += step->nodes[0]->data == NULL && (step->srcs[0]->data != NULL) == (step->srcs[0] == job.x) && step->n_srcs == 1 && step->nodes[0]->ne[0] == 16;
}

static size_t sum(const size_t * sizes) { return sizes[0] + sizes[1]; }

static void measure(struct team * t) {
    size_t               plain[2] = { 0, 0 }, with[2] = { 0, 0 };
    ggml_backend_sched_t s;
    for (int w = 0; w < 2; w++) {
        if (w) {
            begin(t, 1 << 20, 3 << 20, 2 << 20);
            kernels[0].in_prepare = kernels[1].in_prepare = kernels[2].in_prepare = look_unplaced;
        }
        s = team_sched(t, false);
        build();
        const int allocated = fake_dev.n_alloc;
        unplaced            = 0;
        ggml_backend_sched_reserve_size(s, job.graph, w ? with : plain);
        if (w) {
            CHECK(SUM(n_prepare) == 3 && SUM(n_execute) == 0, SAY("EXT-30: measuring prepares, and launches nothing"));
            CHECK(SUM(n_destroy) == 3, SAY("EXT-32: and destroys"));
            CHECK(unplaced == 3 && job.y->data == NULL, SAY("EXT-30: before there are addresses"));
            CHECK(fake_dev.n_alloc == allocated, SAY("EXT-30: no memory of the device is allocated to measure"));
            CHECK(ggml_backend_sched_get_buffer_size(s, t->list[0]) == 0, SAY("EXT-30: no buffer either"));
            CHECK(sum(with) - sum(plain) == 3 << 20, SAY("EXT-31, EXT-34: the estimate has the largest request on top (%zu)"), sum(with) - sum(plain));
        }
        CHECK(ggml_backend_sched_reserve(s, job.graph), SAY("EXT-31: reserve"));
        size_t have = 0;
        for (int i = 0; i < t->n; i++) {
            have += ggml_backend_sched_get_buffer_size(s, t->list[i]);
        }
        CHECK(have == sum(w ? with : plain), SAY("EXT-31: reports of buffer sizes have it too (%zu, %zu)"), have, sum(w ? with : plain));
        if (w) {
            CHECK(SUM(n_prepare) == 6 && SUM(n_execute) == 0 && SUM(n_destroy) == 6, SAY("EXT-30: reserving prepares, launches nothing and destroys"));
        }
        /* what was reserved serves */
        const int reserved = fake_dev.n_alloc;
        build();
        CHECK(team_alloc(t, s, job.graph) && compute(s), SAY("EXT-31: runs in what was reserved"));
        CHECK(fake_dev.n_alloc == reserved, SAY("EXT-31: no more memory is needed"));
        if (w) {
            struct probe * k = kernels;
            CHECK(SUM(n_execute) == 3 && k[0].workspace_buffer == k[1].workspace_buffer && k[1].workspace_buffer == k[2].workspace_buffer, SAY("EXT-34: all steps share one piece"));
            CHECK(k[0].workspace_buffer && k[0].workspace_buffer_size == 3 << 20, SAY("EXT-34: of the largest size (%zu)"), k[0].workspace_buffer_size);
            CHECK(ggml_backend_buffer_get_type(k[0].workspace_buffer) == ggml_backend_sched_get_buffer_type(s, t->main), SAY("EXT-31: in memory of the backend"));
        }
        ggml_backend_sched_free(s);
    }
    end(t, "measured");
}

static void workspaces(struct team * t) {
    begin(t, 4096, 0, 1000);
    ggml_backend_sched_t s = team_sched(t, false);
    build();
    CHECK(team_alloc(t, s, job.graph) && compute(s), SAY("EXT-34: a step without scratch memory"));
    CHECK(kernels[0].workspace_buffer && !kernels[1].workspace_buffer && kernels[2].workspace_buffer == kernels[0].workspace_buffer, SAY("EXT-34: gets none"));
    ggml_backend_buffer_t first = kernels[0].workspace_buffer;
    const size_t          size  = ggml_backend_sched_get_buffer_size(s, t->main);
    const int             made  = fake_dev.n_alloc;
    kernels[0].workspace        = 512;
    ggml_backend_sched_reset(s);
    build();
    CHECK(team_alloc(t, s, job.graph) && compute(s), SAY("EXT-35: a graph that needs less"));
    CHECK(kernels[0].workspace_buffer == first && fake_dev.n_alloc == made && ggml_backend_sched_get_buffer_size(s, t->main) == size, SAY("EXT-35: keeps the scratch memory"));
    kernels[2].workspace = 1 << 16;
    ggml_backend_sched_reset(s);
    build();
    CHECK(team_alloc(t, s, job.graph) && compute(s), SAY("EXT-35: a graph that needs more"));
    CHECK(kernels[2].workspace_buffer_size == 1 << 16 && ggml_backend_sched_get_buffer_size(s, t->main) == size + (1 << 16) - 4096, SAY("EXT-35: gets it, counted once"));
    CHECK(fake_dev.n_alloc == made + (t->fake != NULL), SAY("EXT-35: by one allocation"));
    kernels[0].workspace = kernels[2].workspace = 0;
    ggml_backend_sched_reset(s);
    build();
    CHECK(team_alloc(t, s, job.graph) && compute(s) && !kernels[0].workspace_buffer && !kernels[2].workspace_buffer, SAY("EXT-34: nobody asks: nobody gets"));
    ggml_backend_sched_free(s);
    end(t, "workspaces");
}

/* EXT-32, EXT-33 */

static int alive;

static void look_placed(const struct ggml_ext_run * run, struct probe * p) {
    alive += run->step->nodes[0]->data != NULL && run->step->srcs[0]->data != NULL && run->step->nodes[0]->buffer != NULL && run->backend == (p->device == cpu.dev ? cpu.main : dev.main);
}

static void lives(struct team * t) {
    begin(t, 64, 64, 64);
    for (int i = 0; i < 3; i++) {
        kernels[i].in_execute = look_placed;
    }
    alive                  = 0;
    ggml_backend_sched_t s = team_sched(t, false);
    build();
    CHECK(team_alloc(t, s, job.graph), SAY("EXT-35: a plan"));
    for (int i = 0; i < 5; i++) {
        CHECK(compute(s), SAY("EXT-35: execution %d"), i);
    }
    CHECK(SUM(n_prepare) == 3 && SUM(n_execute) == 15 && SUM(n_destroy) == 0, SAY("EXT-35: prepared once for all executions (%d, %d)"), SUM(n_prepare), SUM(n_destroy));
    CHECK(alive == 15, SAY("EXT-32: execute has the backend and the tensors' addresses"));
    CHECK(!ggml_backend_sched_alloc_graph(s, job.graph) && SUM(n_destroy) == 0 && compute(s), SAY("EXT-35: an allocation too many is refused, the plan goes on"));
    ggml_backend_sched_reset(s);
    CHECK(SUM(n_destroy) == 3, SAY("EXT-32: a reset destroys"));
    build();
    CHECK(team_alloc(t, s, job.graph) && SUM(n_prepare) == 6, SAY("EXT-35: another graph is prepared anew"));
    ggml_backend_sched_free(s);
    CHECK(SUM(n_destroy) == 6, SAY("EXT-32: as does freeing the scheduler"));
    s = team_sched(t, false);
    build();
    ggml_backend_sched_split_graph(s, job.graph);
    CHECK(SUM(n_prepare) == 9 && SUM(n_destroy) == 6, SAY("EXT-32: a graph that is only split"));
    ggml_backend_sched_free(s);
    CHECK(SUM(n_destroy) == 9, SAY("EXT-32: is destroyed too"));
    end(t, "lives");
}

static void prepare_fails(struct team * t) {
    for (int k = 0; k < 3; k++) {
        begin(t, 64, 64, 64);
        kernels[k].fail_prepare_at = 1;
        kernels[k].why             = "no table for it";
        kernels[k].fail_status     = GGML_STATUS_ALLOC_FAILED;
        struct ggml_tensor * node[3];
        ggml_backend_sched_t s = team_sched(t, false);
        build();
        node[0] = job.a, node[1] = job.b, node[2] = job.y;
        FAILS(!team_alloc(t, s, job.graph), GGML_EXT_CODE_CALLBACK, kernels[k].name, node[k], "EXT-33: prepare fails", "prepare", "no table for it");
        CHECK(SUM(n_prepare) == k + 1 && SUM(n_destroy) == k && SUM(n_execute) == 0, SAY("EXT-32: prepare number %d fails: those before are destroyed, it is not (%d, %d)"), k + 1, SUM(n_prepare), SUM(n_destroy));
        build();
        CHECK(team_alloc(t, s, job.graph) && compute(s), SAY("EXT-33: prepare number %d fails: the next graph runs"), k + 1);
        ggml_backend_sched_reset(s);
        /* the same inside of a computation: the status goes up */
        kernels[k].fail_prepare_at = kernels[k].n_prepare + 1;
        build();
        node[0] = job.a, node[1] = job.b, node[2] = job.y;
        FAILS(ggml_backend_sched_graph_compute(s, job.graph) == GGML_STATUS_ALLOC_FAILED, GGML_EXT_CODE_CALLBACK, kernels[k].name, node[k], "EXT-33: its status is the caller's");
        ggml_backend_sched_free(s);
        end(t, "prepare fails");
    }
}

static void execute_fails(struct team * t) {
    static const enum ggml_status statuses[] = { GGML_STATUS_FAILED, GGML_STATUS_ABORTED, GGML_STATUS_ALLOC_FAILED };
    for (int k = 0; k < 3; k++) {
        begin(t, 64, 64, 64);
        struct ggml_tensor * node[3];
        ggml_backend_sched_t s = team_sched(t, false);
        build();
        node[0] = job.a, node[1] = job.b, node[2] = job.y;
        kernels[k].fail_execute_at = 2;
        kernels[k].why             = "the moon is full";
        kernels[k].fail_status     = statuses[k];
        CHECK(team_alloc(t, s, job.graph) && compute(s), SAY("EXT-33: a first execution"));
        watch_reset();
        FAILS(ggml_backend_sched_graph_compute(s, job.graph) == statuses[k], GGML_EXT_CODE_CALLBACK, kernels[k].name, node[k], "EXT-33: execute fails, its status is the caller's", "execute", "the moon is full");
        CHECK(SUM(n_execute) == 3 + k + 1, SAY("EXT-33: execute number %d fails: what comes after does not run (%d)"), k + 1, SUM(n_execute));
        CHECK(watched.n_graphs == 0, SAY("EXT-33: nothing is tried natively"));
        CHECK(SUM(n_destroy) == 0, SAY("EXT-32: the plan and its states stay"));
        CHECK(compute(s), SAY("EXT-33: execute number %d fails: the next execution runs"), k + 1);
        ggml_backend_sched_free(s);
        end(t, "execute fails");
    }
}

/* Memory is refused at every allocation in turn. */
static void memory_fails(struct team * t) {
    int n = 0;
    for (int k = 1; k < 9; k++) {
        begin(t, 64, 1 << 16, 64);
        ggml_backend_sched_t s = team_sched(t, false);
        build();
        fake_dev.n_alloc       = 0;
        fake_dev.fail_alloc_at = k;
        const bool good        = team_alloc(t, s, job.graph);
        const int  asked       = fake_dev.n_alloc;
        n += !good;
        fake_dev.fail_alloc_at = 0;
        CHECK(good == (asked < k), SAY("EXT-31: memory refused at allocation %d of %d: an error"), k, asked);
        if (!good) {
            const bool scratch = k == 2;
            CHECK(ext_error().code == GGML_EXT_CODE_OUT_OF_MEMORY && (!scratch || strstr(check_error_text(), "plan.sqrt")), SAY("EXT-31: of memory, and for the registration that asked for it: %s"), check_error_text());
        }
        ggml_backend_sched_reset(s);
        build();
        CHECK(team_alloc(t, s, job.graph) && compute(s), SAY("EXT-31: memory refused at allocation %d: the next graph runs"), k);
        ggml_backend_sched_free(s);
        end(t, "memory fails");
        if (good) {
            break;
        }
    }
    CHECK(n == 2, SAY("EXT-31: memory for the graph and for the plan can be refused (%d)"), n);
}

/* EXT-35: direct computation */

static bool synced;
static int  destroyed_early;

static void sync_now(ggml_backend_t b) { (void) b; synced = true; }
static void enqueue(const struct ggml_ext_run * run, struct probe * p) { (void) run; (void) p; synced = false; }
static void look_synced(struct probe * p) { (void) p; destroyed_early += !synced; }

static void direct(struct team * t) {
    begin(t, 4096, 0, 64);
    for (int i = 0; i < 3; i++) {
        kernels[i].in_execute = enqueue;
        kernels[i].in_destroy = look_synced;
    }
    build();
    ggml_backend_buffer_t b    = ggml_backend_alloc_ctx_tensors(ctx, t->main);
    const int             live = fake_dev.n_live;
    destroyed_early            = 0;
    void (*old)(ggml_backend_t) = t->main->iface.synchronize;
    if (t->fake) {
        t->main->iface.synchronize = sync_now;
    }
    for (int i = 1; i <= 3; i++) {
        synced                        = !t->fake;
        const enum ggml_status status = i < 3 ? ggml_backend_graph_compute(t->main, job.graph) : ggml_backend_graph_compute_async(t->main, job.graph);
        CHECK(status == GGML_STATUS_SUCCESS && right(), SAY("EXT-35: direct computation %d"), i);
        CHECK(SUM(n_prepare) == 2 * i && SUM(n_destroy) == 2 * i && SUM(n_execute) == 3 * i, SAY("EXT-35: with a plan of its own (%d, %d)"), SUM(n_prepare), SUM(n_destroy));
        CHECK(fake_dev.n_live == live, SAY("EXT-35: whose scratch memory is gone"));
    }
    if (t->fake) {
        CHECK(destroyed_early == 0, SAY("EXT-35: and synchronised before it is released"));
    }
    kernels[1].fail_execute_at = 4;
    kernels[1].fail_status     = GGML_STATUS_ABORTED;
    FAILS(ggml_backend_graph_compute(t->main, job.graph) == GGML_STATUS_ABORTED, GGML_EXT_CODE_CALLBACK, "plan.sqrt", job.b, "EXT-33: execute fails in a direct computation", "ggml_backend_graph_compute");
    CHECK(SUM(n_execute) == 11 && SUM(n_destroy) == 8, SAY("EXT-32: states are destroyed"));
    kernels[2].fail_prepare_at = kernels[2].n_prepare + 1;
    FAILS(ggml_backend_graph_compute(t->main, job.graph) == GGML_STATUS_FAILED, GGML_EXT_CODE_CALLBACK, "plan.scale", job.y, "EXT-33: prepare fails in a direct computation", "prepare");
    CHECK(SUM(n_execute) == 11 && SUM(n_destroy) == 9 && probe_live(&kernels[0]) == 0, SAY("EXT-32: states are destroyed, nothing ran"));
    if (t->fake) {
        fake_dev.fail_alloc_at = fake_dev.n_alloc + 1;
        FAILS(ggml_backend_graph_compute(t->main, job.graph) == GGML_STATUS_ALLOC_FAILED, GGML_EXT_CODE_OUT_OF_MEMORY, "plan.sqr", NULL, "EXT-33: no scratch memory for a direct computation");
        fake_dev.fail_alloc_at = 0;
    }
    CHECK(ggml_backend_graph_compute(t->main, job.graph) == GGML_STATUS_SUCCESS && right(), SAY("EXT-33: the next one runs"));
    t->main->iface.synchronize = old;
    ggml_backend_buffer_free(b);
    end(t, "direct");
}

/* EXT-36 */

enum { LARGE = 1 << 20 };

static size_t for_overlap(const struct ggml_ext_step * step) { return step->overlap ? LARGE : 0; }

/* Two inputs of a fusion, of their own or in one buffer: nothing overlaps, measured or not. */
static void separate(struct team * t, bool allocated) {
    struct probe          rule = { .name = "plan.separate", .pattern = { GGML_OP_ADD, GGML_OP_SCALE }, .workspace_of = for_overlap };
    struct ggml_context * own  = ggml_init((struct ggml_init_params){ 1 << 12, NULL, true });
    ggml_backend_buffer_t b    = NULL;
    size_t                sizes[2][2] = { { 0, 0 }, { 0, 0 } };
    ggml_backend_sched_t  s    = team_sched(t, false);
    int                   made = 0;
    struct ggml_tensor *  p, * q;
    if (allocated) {
        p = ggml_new_tensor_2d(own, GGML_TYPE_F32, 16, 4);
        q = ggml_new_tensor_2d(own, GGML_TYPE_F32, 16, 4);
        b = ggml_backend_alloc_ctx_tensors(own, t->main);
        ggml_backend_buffer_set_usage(b, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    }
    for (int i = 0; i < 4; i++) {
        if (i == 1) {
            CHECK(probe_register(&rule, t->dev), SAY("EXT-36: a rule that needs scratch memory where its result overlaps"));
        }
        ggml_reset(ctx);
        if (!allocated) {
            p = input("p", 16, 4), q = input("q", 16, 4);
        }
        struct ggml_tensor * y = named(ggml_scale(ctx, ggml_add(ctx, p, q), 3), "y");
        struct ggml_cgraph * g = graph_of(y);
        if (i < 2) {
            ggml_backend_sched_reserve_size(s, g, sizes[i]);
            continue;
        }
        const bool good = team_alloc(t, s, g);
        fill(p, 1), fill(q, 2);
        CHECK(good && ggml_backend_sched_graph_compute(s, g) == GGML_STATUS_SUCCESS && got(y, 5) == (value(5, 1) + value(5, 2)) * 3, SAY("EXT-36: runs"));
        CHECK(i == 2 || made == fake_dev.n_alloc, SAY("EXT-36: and again, without new memory"));
        made = fake_dev.n_alloc;
        ggml_backend_sched_reset(s);
    }
    CHECK(rule.n_execute == 2 && rule.n_nodes == 2 && rule.n_srcs == 2, SAY("EXT-36: fused"));
    CHECK((rule.overlap_supports | rule.overlap_prepare | rule.overlap) == 0, SAY("EXT-36: two %s inputs overlap nothing (%llu, %llu, %llu)"), allocated ? "allocated" : "unallocated",
          (unsigned long long) rule.overlap_supports, (unsigned long long) rule.overlap_prepare, (unsigned long long) rule.overlap);
    CHECK(sum(sizes[1]) < sum(sizes[0]) + LARGE, SAY("EXT-36: no scratch memory is counted for what does not overlap (%zu, %zu)"), sum(sizes[0]), sum(sizes[1]));
    ggml_backend_sched_free(s);
    probe_end(&rule, "EXT-36");
    ggml_backend_buffer_free(b);
    ggml_free(own);
}

static struct ggml_tensor * viewed;
static int                  views_seen;

static void look_views(const struct ggml_ext_step * step, struct probe * p) {
    const struct ggml_tensor * u = step->srcs[0], * v = step->srcs[1];
    views_seen += step->n_srcs == 2 && u->view_src == viewed && v->view_src == viewed && u->view_offs == 0 && v->view_offs == *(size_t *) p->more;
}

/* 3 * view(z, 0) is copied to view(z, offset). */
static void views(struct team * t, bool allocated, size_t offset) {
    struct probe          rule = { .name = "plan.views", .pattern = { GGML_OP_SCALE, GGML_OP_CPY }, .workspace_of = for_overlap, .in_prepare = look_views, .more = &offset };
    struct ggml_context * own  = ggml_init((struct ggml_init_params){ 1 << 12, NULL, true });
    ggml_backend_buffer_t b    = NULL;
    ggml_backend_sched_t  s    = team_sched(t, false);
    size_t                sizes[3][2] = { { 0, 0 }, { 0, 0 }, { 0, 0 } };
    views_seen                 = 0;
    if (allocated) {
        viewed = ggml_new_tensor_1d(own, GGML_TYPE_F32, 128);
        b      = ggml_backend_alloc_ctx_tensors(own, t->main);
        ggml_backend_buffer_set_usage(b, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    }
    for (int i = 0; i < 3; i++) {
        if (i == 1) {
            CHECK(probe_register(&rule, t->dev), SAY("EXT-36: a rule that copies into a view"));
        }
        ggml_reset(ctx);
        if (!allocated) {
            viewed = input("z", 128, 1);
        }
        struct ggml_tensor * v = ggml_view_1d(ctx, viewed, 64, offset), * u = ggml_view_1d(ctx, viewed, 64, 0);
        struct ggml_tensor * y = named(ggml_cpy(ctx, ggml_scale(ctx, u, 3), v), "y");
        struct ggml_cgraph * g = ggml_new_graph_custom(ctx, 16, false);
        ggml_build_forward_expand(g, v);
        ggml_set_output(y);
        ggml_build_forward_expand(g, y);
        if (i < 2) {
            ggml_backend_sched_reserve_size(s, g, sizes[i]);
            continue;
        }
        const bool good = team_alloc(t, s, g);
        fill(viewed, 1);
        CHECK(good && ggml_backend_sched_graph_compute(s, g) == GGML_STATUS_SUCCESS && got(y, 63) == value(63, 1) * 3, SAY("EXT-36: runs"));
    }
    const uint64_t want = offset < 64 * sizeof(float) ? 3 : 2;
    CHECK(rule.n_execute == 1 && rule.n_nodes == 2, SAY("EXT-36: fused"));
    CHECK(rule.overlap_supports == want && rule.overlap_prepare == want && rule.overlap == want, SAY("EXT-36, EXT-44: views of one %s tensor %zu bytes apart: overlap %llu, %llu, %llu, is %llu"), allocated ? "allocated" : "unallocated",
          offset, (unsigned long long) rule.overlap_supports, (unsigned long long) rule.overlap_prepare, (unsigned long long) rule.overlap, (unsigned long long) want);
    CHECK(views_seen == 2, SAY("EXT-36: measuring or not, views say what they view and where (%d)"), views_seen);
    CHECK(sum(sizes[1]) + 4096 > sum(sizes[0]) + LARGE && sum(sizes[1]) <= sum(sizes[0]) + LARGE, SAY("EXT-36: scratch memory is counted where the result overlaps (%zu, %zu)"), sum(sizes[0]), sum(sizes[1]));
    ggml_backend_sched_free(s);
    probe_end(&rule, "EXT-36");
    ggml_backend_buffer_free(b);
    ggml_free(own);
}

/* EXT-37 */

static void legacy(void) {
    const struct team * t = &cpu;
    struct probe        p = { .name = "legacy", .op = GGML_OP_SQR }, own = { .name = "legacy.own", .op = GGML_OP_CUSTOM, .op_name = "test.affine.v1" };
    CHECK(affine_register("test.affine.v1") && probe_register(&p, cpu.dev) && probe_register(&own, cpu.dev), SAY("EXT-37: an override, and an operator"));
    for (int k = 0; k < 6; k++) {
        struct ggml_context * data = ggml_init((struct ggml_init_params){ 1 << 18, NULL, false });
        struct ggml_context * kept = ctx;
        ctx                        = data;
        struct ggml_tensor * x     = ggml_new_tensor_1d(data, GGML_TYPE_F32, 16);
        struct ggml_tensor * y     = named(k & 1 ? affine("test.affine.v1", x, 2, 0) : ggml_sqr(data, x), "y");
        struct ggml_cgraph * g     = graph_of(y);
        ctx                        = kept;
        for (int i = 0; i < 16; i++) {
            ((float *) x->data)[i] = value(i, 1);
            ((float *) y->data)[i] = 0;
        }
        enum ggml_status status;
        check_log_errors = 0;
        if (k & 4) {
            ggml_backend_graph_plan_t plan = ggml_backend_graph_plan_create(cpu.main, g);
            status                         = ggml_backend_graph_plan_compute(cpu.main, plan);
            ggml_backend_graph_plan_free(cpu.main, plan);
        } else if (k & 2) {
            struct ggml_cplan plan = ggml_graph_plan(g, 1, NULL);
            plan.work_data         = malloc(plan.work_size + 64);
            status                 = ggml_graph_compute(g, &plan);
            free(plan.work_data);
        } else {
            status = ggml_graph_compute_with_ctx(data, g, 1);
        }
        const char * call = k & 4 ? "ggml_backend_graph_plan_compute" : k & 2 ? "ggml_graph_compute" : "ggml_graph_compute_with_ctx";
        if (k & 1) {
            CHECK(status == GGML_STATUS_FAILED && check_log_errors > 0 && strstr(check_error_text(), "y (CUSTOM)"), SAY("EXT-37: %s: a node of a registered operator fails: %s"), call, check_error_text());
            CHECK(((float *) y->data)[3] == 0 && own.n_execute == 0, SAY("EXT-37: %s: and nothing is computed"), call);
        } else {
            CHECK(status == GGML_STATUS_SUCCESS && ((float *) y->data)[3] == value(3, 1) * value(3, 1), SAY("EXT-37: %s: native code computes"), call);
            CHECK(p.n_execute + p.n_supports + p.n_prepare == 0, SAY("EXT-37: %s: an override is not asked"), call);
        }
        ggml_free(data);
    }
    probe_end(&p, "EXT-37");
    probe_end(&own, "EXT-37");
}

int main(void) {
    teams_open(&cpu, &dev, &fake_dev);
    for (int k = 0; k < 2; k++) {
        struct team * t = k ? &dev : &cpu;
        place(t);
        measure(t);
        workspaces(t);
        lives(t);
        prepare_fails(t);
        execute_fails(t);
        direct(t);
        if (t->fake) {
            memory_fails(t);
        }
        unplace();
        separate(t, false);
        separate(t, true);
        views(t, true, 32);
        views(t, true, 256);
    }
    views(&cpu, false, 32);
    views(&cpu, false, 256);
    legacy();
    return teams_close(&cpu, &dev);
}
