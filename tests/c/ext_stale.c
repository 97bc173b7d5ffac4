/* EXT-28: a plan that was made before something changed is refused, and goes on when the change does not concern it. */
#include "ext_util.h"

#define OP "test.affine.v1"

static struct team cpu, dev;
static struct fake fake_dev;

static struct job {
    struct ggml_tensor * x, * e, * a, * y;
    struct ggml_cgraph * graph;
    ggml_backend_sched_t sched;
    struct team *        team;
} job;

/* y = sqr(affine(x)) * 3, allocated */
static bool begin(struct team * t) {
    ggml_reset(ctx);
    job.team  = t;
    job.x     = input("x", 8, 3);
    job.e     = named(affine(OP, job.x, 2, 1), "e");
    job.a     = named(ggml_sqr(ctx, job.e), "a");
    job.y     = named(ggml_scale(ctx, job.a, 3), "y");
    job.graph = graph_of(job.y);
    if (!team_alloc(t, job.sched, job.graph)) {
        return false;
    }
    return true;
}

static enum ggml_status compute(void) { return ggml_backend_sched_graph_compute(job.sched, job.graph); }

static bool good(void) {
    fill(job.x, 1);
    if (compute() != GGML_STATUS_SUCCESS) {
        return false;
    }
    return is_right(job.y);
}

static bool again(void) {
    struct team * t = job.team;
    ggml_backend_sched_reset(job.sched);
    return begin(t) && good();
}

/* The plan is stale, twice; nothing runs; a new allocation runs. `base` is the kernel that the plan launches. */
static void stale(const char * what, struct probe * base, const char * registration, const struct ggml_tensor * node) {
    char name[160];
    const int ran = base->n_execute, graphs = watched.n_graphs;
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "EXT-28: %s: %s: stale%s", job.team->name, what, i ? ", and stays so" : "");
        FAILS(compute() == GGML_STATUS_FAILED, GGML_EXT_CODE_STALE_PLAN, registration, node, name, "stale", "anew");
    }
    CHECK(base->n_execute == ran && watched.n_graphs == graphs, "EXT-28: %s: %s: nothing ran", job.team->name, what);
    CHECK(again(), "EXT-28: %s: %s: allocated anew it runs", job.team->name, what);
}

static void goes_on(const char * what) { CHECK(good(), "EXT-28: %s: %s: goes on", job.team->name, what); }

static void changes(struct team * t) {
    struct team * other = t == &cpu ? &dev : &cpu;
    struct probe  base  = { .name = "base", .op = GGML_OP_CUSTOM, .op_name = OP };
    struct probe  sqr = { .name = "late.sqr", .op = GGML_OP_SQR }, more = { .name = "late.affine", .op = GGML_OP_CUSTOM, .op_name = OP, .priority = 1 };
    struct probe  cos = { .name = "late.cos", .op = GGML_OP_COS }, other_dev = { .name = "late.other", .op = GGML_OP_SQR };
    struct probe  rule = { .name = "late.rule", .match_op = GGML_OP_SQR, .pattern = { GGML_OP_SQR, GGML_OP_SCALE } };
    struct probe  rule_cos = { .name = "late.rule.cos", .match_op = GGML_OP_COS, .pattern = { GGML_OP_COS, GGML_OP_SCALE } };
    struct probe  rule_any = { .name = "late.rule.any", .pattern = { GGML_OP_COS, GGML_OP_SCALE } };
    job.sched = team_sched(t, false);
    CHECK(probe_register(&base, t->dev) && begin(t) && good() && base.n_execute == 1, "EXT-28: %s: a plan that launches '%s'", t->name, base.name);

    CHECK(probe_register(&cos, t->dev), "EXT-28: a kernel for an operator that the graph has not");
    goes_on("registration for another operator");
    CHECK(probe_register(&other_dev, other->dev), "EXT-28: a kernel on another device");
    goes_on("registration on another device");
    CHECK(probe_register(&sqr, t->dev), "EXT-28: a kernel for a node that native code computes");
    stale("registration for a native node", &base, NULL, NULL);
    CHECK(sqr.n_execute == 1, "EXT-28: %s: and the new kernel takes part", t->name);
    CHECK(probe_register(&more, t->dev), "EXT-28: a kernel for a launched node");
    stale("registration for a launched node", &base, NULL, NULL);
    CHECK(more.n_execute == 1, "EXT-28: %s: and has priority", t->name);
    CHECK(probe_register(&rule_cos, t->dev), "EXT-28: a rule for an operator that the graph has not");
    goes_on("rule for another operator");
    CHECK(probe_register(&rule, t->dev), "EXT-28: a rule for an operator of the graph");
    /* the rules so far were for COS only, so that none was asked: but there are rules */
    stale("rule for a node", &more, NULL, NULL);
    CHECK(rule.n_execute == 1 && rule.n_nodes == 2, "EXT-28: %s: and the rule takes part", t->name);
    CHECK(probe_register(&rule_any, t->dev), "EXT-28: a rule for any node");
    stale("rule for any node", &rule, NULL, NULL);

    CHECK(ggml_ext_invalidate(t->dev, "late.cos") && ggml_ext_invalidate(other->dev, NULL), "EXT-28: answers change elsewhere");
    goes_on("invalidation of what is not concerned");
    CHECK(ggml_ext_invalidate(t->dev, "late.affine"), "EXT-28: answers of a kernel change");
    stale("invalidation by name", &more, NULL, NULL);
    CHECK(ggml_ext_invalidate(t->dev, NULL), "EXT-28: answers of a device change");
    stale("invalidation of a device", &more, NULL, NULL);
    more.off = true;
    CHECK(ggml_ext_invalidate(t->dev, "late.affine"), "EXT-28: a policy changes");
    const int before = base.n_execute;
    stale("changed policy", &more, NULL, NULL);
    CHECK(base.n_execute == before + 1, "EXT-28: %s: and is asked anew", t->name);
    CHECK(ggml_ext_release(t->dev, "late.cos"), "EXT-28: something unused is released");
    goes_on("release of what is not used");

    ggml_backend_sched_free(job.sched);
    ggml_reset(ctx);
    struct probe * used[] = { &base, &sqr, &more, &rule, &rule_cos, &rule_any, &other_dev };
    for (size_t i = 0; i < sizeof used / sizeof *used; i++) {
        probe_end(used[i], "EXT-28");
    }
}

/* Nothing at all was registered on the device when the graph was allocated. */
static void first_ever(struct team * t) {
    ggml_reset(ctx);
    job.sched              = team_sched(t, false);
    struct ggml_tensor * x = input("x", 8, 3), * a = ggml_sqr(ctx, x), * y = named(ggml_scale(ctx, a, 3), "y");
    struct ggml_cgraph * g = graph_of(y);
    struct probe         cos = { .name = "first.cos", .op = GGML_OP_COS }, sqr = { .name = "first.sqr", .op = GGML_OP_SQR };
    CHECK(team_alloc(t, job.sched, g), "EXT-28: %s: a graph, nothing registered", t->name);
    fill(x, 1);
    CHECK(ggml_backend_sched_graph_compute(job.sched, g) == GGML_STATUS_SUCCESS, "EXT-28: %s: runs", t->name);
    CHECK(probe_register(&cos, t->dev) && ggml_backend_sched_graph_compute(job.sched, g) == GGML_STATUS_SUCCESS, "EXT-28: %s: the first registration is for another operator: goes on", t->name);
    CHECK(probe_register(&sqr, t->dev), "EXT-28: the second concerns it");
    FAILS(ggml_backend_sched_graph_compute(job.sched, g) == GGML_STATUS_FAILED, GGML_EXT_CODE_STALE_PLAN, NULL, NULL, "EXT-28: a registration after an allocation without any: stale", "stale");
    CHECK(sqr.n_execute == 0, "EXT-28: %s: nothing ran", t->name);
    ggml_backend_sched_free(job.sched);
    probe_end(&cos, "EXT-28");
    probe_end(&sqr, "EXT-28");
    ggml_reset(ctx);
}

/* Metadata of a launched node, or of what it reads. */
static void metadata(struct team * t) {
    struct probe base = { .name = "base", .op = GGML_OP_CUSTOM, .op_name = OP }, rule = { .name = "rule", .pattern = { GGML_OP_SQR, GGML_OP_SCALE } };
    CHECK(probe_register(&base, t->dev) && probe_register(&rule, t->dev), "EXT-28: a kernel and a rule");
    job.sched = team_sched(t, false);
    CHECK(begin(t) && good() && rule.n_execute == 1, "EXT-28: %s: both run", t->name);
    job.e->op_params[6] ^= 1;
    stale("changed parameters", &base, "base", job.e);
    job.e->ne[0] = 4;
    stale("changed shape", &base, "base", job.e);
    job.e->nb[1] = 64;
    stale("changed strides", &base, "base", job.e);
    job.e->type = GGML_TYPE_I32;
    stale("changed format", &base, "base", job.e);
    if (!t->fake) { /* on another device it is the scheduler's copy that is read */
        job.x->ne[1] = 2;
        stale("changed shape of a source", &base, "base", job.e);
    }
    job.e->src[0] = job.a;
    stale("another source", &base, "base", job.e);
    float s = 4;
    memcpy(job.y->op_params, &s, sizeof s);
    stale("changed parameters in a fusion", &rule, "rule", job.y);
    job.a->ne[1] = 1;
    stale("changed shape inside of a fusion", &rule, "rule", job.y);
    job.a->flags |= GGML_TENSOR_FLAG_OUTPUT;
    stale("an output flag inside of a fusion", &rule, "rule", job.y);
    ggml_set_name(job.a, "another name");
    goes_on("another name");
    ggml_backend_sched_free(job.sched);
    probe_end(&base, "EXT-28");
    probe_end(&rule, "EXT-28");
    ggml_reset(ctx);
}

/* A callback that is to see each node, after nodes were fused. */
static int seen;

static bool watch(struct ggml_tensor * t, bool ask, void * data) {
    (void) t;
    (void) data;
    seen += !ask;
    return true;
}

static void callback(struct team * t) {
    struct probe base = { .name = "base", .op = GGML_OP_CUSTOM, .op_name = OP }, rule = { .name = "rule", .pattern = { GGML_OP_SQR, GGML_OP_SCALE } };
    CHECK(probe_register(&base, t->dev) && probe_register(&rule, t->dev), "EXT-28: a kernel and a rule");
    job.sched = team_sched(t, false);
    CHECK(begin(t) && good() && rule.n_execute == 1, "EXT-28: %s: nodes are fused", t->name);
    ggml_backend_sched_set_eval_callback(job.sched, watch, NULL);
    stale("a callback after a fusion", &rule, NULL, NULL);
    CHECK(seen >= 3 && rule.n_execute == 1, "EXT-28, EXT-48: %s: then every node is seen (%d), nothing is fused", t->name, seen);
    ggml_backend_sched_set_eval_callback(job.sched, NULL, NULL);
    goes_on("the callback taken away");
    CHECK(rule.n_execute == 1, "EXT-28: %s: as it was allocated", t->name);
    CHECK(again() && rule.n_execute == 2, "EXT-28: %s: allocated anew, fused again", t->name);
    ggml_backend_sched_free(job.sched);
    probe_end(&base, "EXT-28");
    probe_end(&rule, "EXT-28");
    ggml_reset(ctx);
}

int main(void) {
    teams_open(&cpu, &dev, &fake_dev);
    first_ever(&cpu);
    first_ever(&dev);
    CHECK(affine_register(OP), "an operator");
    for (int k = 0; k < 2; k++) {
        struct team * t = k ? &dev : &cpu;
        changes(t);
        metadata(t);
        callback(t);
    }
    return teams_close(&cpu, &dev);
}
