/* What callbacks and callers get wrong: each is a status and a text that names the registration, state is released once, and the next
 * correct graph runs. */
#include "ext_util.h"

#include "ggml/src/ggml-impl.h"

#include <stdint.h>

#define OP "test.affine.v1"
#define SAY(text) "%s: " text, t->name

static struct team cpu, dev;
static struct fake fake_dev;

static struct job {
    struct ggml_tensor * x, * e, * a, * y;
    struct ggml_cgraph * graph;
    ggml_backend_sched_t sched;
} job;

/* y = sqr(affine(x)) * 3 */
static bool begin(struct team * t) {
    ggml_reset(ctx);
    job.x     = input("x", 8, 3);
    job.e     = named(affine(OP, job.x, 2, 1), "e");
    job.a     = named(ggml_sqr(ctx, job.e), "a");
    job.y     = named(ggml_scale(ctx, job.a, 3), "y");
    job.graph = graph_of(job.y);
    return team_alloc(t, job.sched, job.graph);
}

static enum ggml_status compute(void) {
    fill(job.x, 1);
    return ggml_backend_sched_graph_compute(job.sched, job.graph);
}

static bool good(struct team * t) {
    ggml_backend_sched_reset(job.sched);
    if (!begin(t) || compute() != GGML_STATUS_SUCCESS) {
        return false;
    }
    return is_right(job.y);
}

/* descriptions */

static void descriptions(struct team * t) {
    struct probe p  = { .name = "bad.desc", .op = GGML_OP_SQR };
    p.device        = t->dev;
    struct ggml_ext_kernel_desc d = probe_desc(&p);
    d.supports      = NULL;
    FAILS(!ggml_ext_register_kernel(t->dev, &d), GGML_EXT_CODE_NULL_ARGUMENT, "bad.desc", NULL, "bad input: no supports", "supports");
    d         = probe_desc(&p);
    d.execute = NULL;
    FAILS(!ggml_ext_register_kernel(t->dev, &d), GGML_EXT_CODE_NULL_ARGUMENT, "bad.desc", NULL, "bad input: no execute", "execute");
    d.op    = GGML_OP_NONE;
    d.match = probe_match;
    FAILS(!ggml_ext_register_kernel(t->dev, &d), GGML_EXT_CODE_NULL_ARGUMENT, "bad.desc", NULL, "bad input: a rule without execute", "execute");
    d          = probe_desc(&p);
    d.match_op = GGML_OP_SQR;
    FAILS(!ggml_ext_register_kernel(t->dev, &d), GGML_EXT_CODE_BAD_ARGUMENT, "bad.desc", NULL, "bad input: match_op without match", "match_op");
    d.match    = probe_match;
    d.match_op = GGML_OP_COUNT;
    FAILS(!ggml_ext_register_kernel(t->dev, &d), GGML_EXT_CODE_BAD_ARGUMENT, "bad.desc", NULL, "bad input: match_op that is none", "match_op");
    d          = probe_desc(&p);
    d.optimize = probe_optimize;
    FAILS(!ggml_ext_register_kernel(t->dev, &d), GGML_EXT_CODE_BAD_ARGUMENT, "bad.desc", NULL, "bad input: optimize without match", "optimize");
    d       = probe_desc(&p);
    d.scope = (ggml_ext_scope_t) &p;
    FAILS(!ggml_ext_register_kernel(t->dev, &d), GGML_EXT_CODE_BAD_ARGUMENT, "bad.desc", NULL, "bad input: a scope that is none", "scope");
    d = probe_desc(&p);
    char long_name[200];
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    d.name                          = long_name;
    FAILS(!ggml_ext_register_kernel(t->dev, &d), GGML_EXT_CODE_BAD_ARGUMENT, EXT_NOT_LOOKED_AT, NULL, "bad input: a name without end", "128");
    d.name = "";
    FAILS(!ggml_ext_register_kernel(t->dev, &d), GGML_EXT_CODE_BAD_ARGUMENT, EXT_NOT_LOOKED_AT, NULL, "bad input: an empty name", "name");
    CHECK(good(t), SAY("bad input: the next graph runs"));
}

/* matches */

static struct ggml_tensor * stranger;

/* Everything that a callback must leave alone. */
static void spoil_graph(struct ggml_cgraph * g, struct probe * p) {
    switch (*(int *) p->more) {
        case 0: g->n_nodes--; break;
        case 1: g->nodes[0] = NULL; break;
        case 2: g->nodes = &stranger; break;
        default: g->n_nodes = -1; break;
    }
}

static void matches(struct team * t) {
    static const int answers[] = { 4, 64, INT32_MAX, INT32_MIN, -1 };
    struct probe     rule      = { .name = "bad.match", .pattern = { GGML_OP_SQR, GGML_OP_SCALE } };
    CHECK(probe_register(&rule, t->dev), SAY("bad input: a rule"));
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        rule.match_answer = answers[i];
        ggml_backend_sched_reset(job.sched);
        if (answers[i] > 0) {
            char text[32];
            snprintf(text, sizeof text, "%d nodes", answers[i]);
            FAILS(!begin(t), GGML_EXT_CODE_CALLBACK, "bad.match", job.a, "EXT-40, bad input: match returns more nodes than there are", text, "there are 2");
            FAILS(compute() == GGML_STATUS_FAILED, GGML_EXT_CODE_CALLBACK, "bad.match", job.a, "bad input: and computing says so");
        } else {
            CHECK(good(t) && rule.n_execute == 0, SAY("EXT-40, bad input: match returns %d: no match"), answers[i]);
        }
    }
    GGML_EXT_INIT(ggml_ext_counters, c);
    CHECK(ggml_ext_counters(t->dev, "bad.match", &c) && c.errors >= 3, SAY("bad input: errors are counted (%llu)"), (unsigned long long) c.errors);
    rule.match_answer = 0;
    CHECK(good(t) && rule.n_execute == 1, SAY("bad input: the next graph runs, fused"));
    ggml_backend_sched_reset(job.sched);
    probe_end(&rule, "bad input");
    /* optimize that does what it must not; the graph is given up */
    for (int how = 0; how < 4; how++) {
        struct probe bad = { .name = "bad.optimize", .pattern = { GGML_OP_SQR, GGML_OP_SCALE }, .optimize = spoil_graph, .more = &how };
        CHECK(probe_register(&bad, t->dev), SAY("bad input: a rule that optimises"));
        FAILS(!begin(t), GGML_EXT_CODE_CALLBACK, "bad.optimize", EXT_ANY, "bad input: optimize changes the graph itself", "ggml_ext_graph_delay");
        CHECK(bad.n_execute + bad.n_prepare == 0, SAY("bad input: and nothing runs"));
        ggml_backend_sched_reset(job.sched);
        probe_end(&bad, "bad input");
    }
    CHECK(good(t), SAY("bad input: the next graph runs"));
}

/* prepare */

static size_t huge(const struct ggml_ext_step * step) {
    (void) step;
    return (size_t) 1 << 63;
}
static size_t most(const struct ggml_ext_step * step) {
    (void) step;
    return SIZE_MAX;
}
static size_t too_much(const struct ggml_ext_step * step) {
    (void) step;
    return (size_t) 1 << 46;
}

static void requests(struct team * t) {
    size_t (*const sizes[])(const struct ggml_ext_step *) = { huge, most };
    struct probe p = { .name = "bad.prepare", .op = GGML_OP_SQR }, before = { .name = "before", .op = GGML_OP_CUSTOM, .op_name = OP, .priority = 1 };
    CHECK(probe_register(&p, t->dev) && probe_register(&before, t->dev), SAY("bad input: two kernels"));
    for (size_t i = 0; i < 2; i++) {
        p.workspace_of = sizes[i];
        ggml_backend_sched_reset(job.sched);
        FAILS(!begin(t), GGML_EXT_CODE_OUT_OF_MEMORY, "bad.prepare", job.a, "EXT-31, bad input: prepare asks for 2^63 bytes", "workspace", i ? "18446744073709551615" : "9223372036854775808");
        CHECK(probe_live(&p) == 0 && probe_live(&before) == 0, SAY("bad input: states are released"));
        size_t estimate[2] = { 1, 1 };
        FAILS((ggml_backend_sched_reserve_size(job.sched, job.graph, estimate), estimate[0] == 0), GGML_EXT_CODE_OUT_OF_MEMORY, "bad.prepare", EXT_ANY, "bad input: measured", "workspace");
        FAILS(!ggml_backend_sched_reserve(job.sched, job.graph), GGML_EXT_CODE_OUT_OF_MEMORY, "bad.prepare", EXT_ANY, "bad input: reserved", "workspace");
        CHECK(probe_live(&p) == 0 && p.wrong == 0, SAY("bad input: states are released once"));
    }
    p.workspace_of = too_much;
    ggml_backend_sched_reset(job.sched);
    FAILS(!begin(t), GGML_EXT_CODE_OUT_OF_MEMORY, "bad.prepare", EXT_ANY, "bad input: prepare asks for what the machine has not", "70368744177664");
    FAILS(compute() == GGML_STATUS_ALLOC_FAILED, GGML_EXT_CODE_OUT_OF_MEMORY, "bad.prepare", EXT_ANY, "bad input: and computing says so");
    p.workspace_of = NULL;
    CHECK(good(t) && p.n_execute == 1, SAY("bad input: the next graph runs"));
    ggml_backend_sched_reset(job.sched);
    probe_end(&p, "bad input");
    probe_end(&before, "bad input");
}

/* execute fails in the middle of a plan */

static void middle(struct team * t) {
    struct probe p = { .name = "bad.execute", .op = GGML_OP_SQR, .fail_execute_at = 2 }, after = { .name = "after", .op = GGML_OP_SCALE };
    CHECK(probe_register(&p, t->dev) && probe_register(&after, t->dev) && good(t), SAY("bad input: kernels"));
    const int ran = after.n_execute;
    FAILS(compute() == GGML_STATUS_FAILED, GGML_EXT_CODE_CALLBACK, "bad.execute", job.a, "EXT-33, bad input: execute fails in the middle", "gave no reason");
    CHECK(after.n_execute == ran, SAY("bad input: and ends the graph"));
    CHECK(compute() == GGML_STATUS_SUCCESS && p.n_execute == 3 && after.n_execute == ran + 1, SAY("bad input: the next run of the plan is right"));
    p.fail_execute_at = 4;
    p.fail_status     = (enum ggml_status) 77;
    FAILS(compute() == (enum ggml_status) 77, GGML_EXT_CODE_CALLBACK, "bad.execute", job.a, "bad input: a status that nobody knows goes up as it is");
    CHECK(good(t), SAY("bad input: the next graph runs"));
    ggml_backend_sched_reset(job.sched);
    probe_end(&p, "bad input");
    probe_end(&after, "bad input");
}

/* callbacks that come back */

static struct {
    struct team *   team;
    struct probe    extra;
    bool            registered, released, op_registered, scope_released, registered_error;
    int             code[4];
    bool            text[4];
    enum ggml_status status;
    bool            reset_refused, alloc, freed_error;
    int             n;
} back;

static void registers(struct probe * p) {
    back.n++;
    check_log_errors   = 0;
    back.registered    = probe_register(&back.extra, p->device);
    back.code[0]       = ext_error().code;
    back.released      = ggml_ext_release(p->device, p->name);
    back.code[1]       = ext_error().code;
    back.op_registered = affine_register("test.inside.v1");
    back.code[2]       = ext_error().code;
    ggml_ext_scope_t s = ggml_ext_scope_new();
    back.scope_released = ggml_ext_scope_release(s);
    back.code[3]        = ext_error().code;
    back.registered_error = check_log_errors == 4 && strstr(check_error_text(), "callback") != NULL;
}
static void in_supports(const struct ggml_ext_step * step, struct probe * p) { (void) step; registers(p); }
static void in_prepare(const struct ggml_ext_step * step, struct probe * p) { (void) step; registers(p); }
static void in_execute(const struct ggml_ext_run * run, struct probe * p) { (void) run; registers(p); }
static int  in_match(struct ggml_cgraph * g, int first, struct probe * p) {
    registers(p);
    return ggml_graph_node(g, first)->op == GGML_OP_SQR ? 2 : 0;
}
static void in_optimize(struct ggml_cgraph * g, struct probe * p) { (void) g; registers(p); }

static void registering(struct team * t) {
    static const char * const where[] = { "supports", "prepare", "execute", "match", "optimize" };
    for (int i = 0; i < 5; i++) {
        struct probe p = { .name = "re.enters" };
        p.op           = i < 3 ? GGML_OP_SQR : GGML_OP_NONE;
        p.in_supports  = i == 0 ? in_supports : NULL;
        p.in_prepare   = i == 1 ? in_prepare : NULL;
        p.in_execute   = i == 2 ? in_execute : NULL;
        p.match        = i >= 3 ? in_match : NULL;
        p.optimize     = i == 4 ? in_optimize : NULL;
        memset(&back, 0, sizeof back);
        back.extra = (struct probe){ .name = "inside", .op = GGML_OP_COS };
        CHECK(probe_register(&p, t->dev) && good(t) && p.n_execute == 1 && back.n > 0, SAY("bad input: a callback registers in %s"), where[i]);
        const bool refused = !back.registered && !back.released && !back.op_registered && !back.scope_released;
        const bool codes   = back.code[0] == GGML_EXT_CODE_RE_ENTERED && back.code[1] == GGML_EXT_CODE_RE_ENTERED && back.code[2] == GGML_EXT_CODE_RE_ENTERED && back.code[3] == GGML_EXT_CODE_RE_ENTERED;
        CHECK(refused && codes && back.registered_error, SAY("bad input: registering and releasing in %s is refused with a text (%d %d %d %d)"), where[i], back.code[0], back.code[1], back.code[2], back.code[3]);
        ggml_backend_sched_reset(job.sched);
        probe_end(&p, "bad input");
    }
    CHECK(probe_register(&back.extra, t->dev), SAY("bad input: outside it works"));
    probe_end(&back.extra, "bad input");
}

/* The scheduler and the backend that are at work. */
static void uses_sched(const struct ggml_ext_run * run, struct probe * p) {
    (void) p;
    back.n++;
    back.status  = ggml_backend_sched_graph_compute(job.sched, job.graph);
    back.code[0] = ext_error().code;
    back.alloc   = ggml_backend_sched_alloc_graph(job.sched, job.graph);
    back.code[1] = ext_error().code;
    check_log_errors = 0;
    ggml_backend_sched_reset(job.sched);
    ggml_backend_sched_free(job.sched);
    ggml_backend_sched_set_eval_callback(job.sched, NULL, NULL);
    back.freed_error = check_log_errors == 3;
    back.code[2]     = ext_error().code;
    /* a graph of its own on the backend at work: done or refused, never a deadlock */
    struct ggml_context * own = ggml_init((struct ggml_init_params){ 1 << 16, NULL, false });
    struct ggml_tensor *  s   = ggml_sqrt(own, ggml_new_tensor_1d(own, GGML_TYPE_F32, 4));
    struct ggml_cgraph *  g   = ggml_new_graph_custom(own, 4, false);
    ggml_build_forward_expand(g, s);
    memset(s->src[0]->data, 0, 16);
    const enum ggml_status nested = ggml_backend_graph_compute(run->backend, g);
    back.code[3]                  = nested == GGML_STATUS_SUCCESS ? 0 : ext_error().code;
    ggml_free(own);
}

static void scheduling(struct team * t) {
    struct probe p = { .name = "re.enters", .op = GGML_OP_SQR, .in_execute = uses_sched };
    memset(&back, 0, sizeof back);
    CHECK(probe_register(&p, t->dev) && good(t) && back.n == 1, SAY("bad input: execute uses the scheduler that runs it"));
    CHECK(back.status == GGML_STATUS_FAILED && !back.alloc && back.code[0] == GGML_EXT_CODE_RE_ENTERED && back.code[1] == GGML_EXT_CODE_RE_ENTERED, SAY("bad input: computing and allocating are refused (%d, %d)"), back.code[0], back.code[1]);
    CHECK(back.freed_error && back.code[2] == GGML_EXT_CODE_RE_ENTERED, SAY("bad input: resetting and freeing too"));
    CHECK(t->fake || back.code[3] != 0, SAY("bad input: the CPU's backend at work refuses a graph (%d)"), back.code[3]);
    CHECK(compute() == GGML_STATUS_SUCCESS && back.n == 2, SAY("bad input: and the scheduler is as it was"));
    p.in_execute = NULL;
    CHECK(good(t), SAY("bad input: the next graph runs"));
    ggml_backend_sched_reset(job.sched);
    probe_end(&p, "bad input");
}

/* callbacks of the planning stages that use the scheduler */
static void uses_sched_early(const struct ggml_ext_step * step, struct probe * p) {
    (void) step;
    (void) p;
    back.n++;
    back.alloc   = ggml_backend_sched_alloc_graph(job.sched, job.graph);
    back.code[0] = ext_error().code;
    ggml_backend_sched_free(job.sched);
    back.code[1] = ext_error().code;
}

static void planning(struct team * t) {
    for (int i = 0; i < 2; i++) {
        struct probe p = { .name = "re.enters", .op = GGML_OP_SQR };
        p.in_supports  = i == 0 ? uses_sched_early : NULL;
        p.in_prepare   = i == 1 ? uses_sched_early : NULL;
        memset(&back, 0, sizeof back);
        CHECK(probe_register(&p, t->dev) && good(t) && back.n > 0, SAY("bad input: %s uses the scheduler that asks it"), i ? "prepare" : "supports");
        CHECK(!back.alloc && back.code[0] == GGML_EXT_CODE_RE_ENTERED && back.code[1] == GGML_EXT_CODE_RE_ENTERED, SAY("bad input: and is refused (%d, %d)"), back.code[0], back.code[1]);
        ggml_backend_sched_reset(job.sched);
        probe_end(&p, "bad input");
    }
}

/* A kernel that says no only when asked a second time, and one that disappears: nobody is left. */
static int refusals;
static void second_thoughts(const struct ggml_ext_step * step, struct probe * p) {
    (void) step;
    p->off = ++refusals > 1;
}

static void inconsistent(struct team * t, struct probe * base) {
    CHECK(ggml_ext_release(t->dev, base->name), SAY("bad input: without the good kernel"));
    struct probe p = { .name = "fickle", .op = GGML_OP_CUSTOM, .op_name = OP, .in_supports = second_thoughts, .why = "not on a Tuesday" };
    refusals       = t->fake != NULL; /* of a node that the client has placed the plan asks first */
    CHECK(probe_register(&p, t->dev), SAY("bad input: a kernel that changes its mind"));
    ggml_backend_sched_reset(job.sched);
    FAILS(!begin(t), GGML_EXT_CODE_NO_KERNEL, EXT_NOT_LOOKED_AT, job.e, "bad input: nobody computes the node in the end", OP);
    ggml_backend_sched_reset(job.sched);
    p.off = false, refusals = -1000;
    CHECK(good(t) && p.n_execute == 1, SAY("bad input: the next graph runs"));
    ggml_backend_sched_reset(job.sched);
    probe_end(&p, "bad input");
    CHECK(probe_register(base, t->dev), SAY("bad input: the good kernel again"));
}

/* The application frees its scheduler with a plan at hand, registrations before backends and the other way round. */
static void ends(struct team * t) {
    struct probe p = { .name = "ends", .op = GGML_OP_SQR, .workspace = 128 };
    CHECK(probe_register(&p, t->dev) && good(t), SAY("bad input: a plan"));
    FAILS(!ggml_ext_release(t->dev, "ends"), GGML_EXT_CODE_IN_USE, "ends", NULL, "bad input: a registration is released while a plan uses it");
    CHECK(compute() == GGML_STATUS_SUCCESS, SAY("bad input: which goes on"));
    ggml_backend_sched_free(job.sched);
    probe_end(&p, "bad input");
    job.sched = team_sched(t, false);
    CHECK(good(t), SAY("bad input: the next graph runs"));
}

int main(void) {
    teams_open(&cpu, &dev, &fake_dev);
    CHECK(affine_register(OP), "an operator");
    for (int i = 0; i < 2; i++) {
        struct team * t    = i ? &dev : &cpu;
        struct probe  base = { .name = "base", .op = GGML_OP_CUSTOM, .op_name = OP };
        job.sched          = team_sched(t, false);
        CHECK(probe_register(&base, t->dev) && good(t), SAY("a kernel that is right"));
        descriptions(t);
        matches(t);
        requests(t);
        middle(t);
        registering(t);
        scheduling(t);
        planning(t);
        inconsistent(t, &base);
        ends(t);
        ggml_backend_sched_free(job.sched);
        ggml_reset(ctx);
        probe_end(&base, "bad input");
        CHECK(fake_dev.n_live == 0, SAY("bad input: no buffer is left"));
    }
    return teams_close(&cpu, &dev);
}
