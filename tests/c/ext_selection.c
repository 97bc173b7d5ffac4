/* Who computes a single node: native code, a kernel, or nobody. EXT-20 to EXT-28. */
#include "ext_util.h"

#define OP "test.affine.v1"

static struct team cpu, dev;
static struct fake fake_dev;

/* sqr(x) * 3 through the scheduler of a team; true when it is computed and right. */
struct small {
    struct ggml_tensor * x, * a, * y;
    struct ggml_cgraph * graph;
};

static struct small small_build(void) {
    struct small j;
    ggml_reset(ctx);
    j.x     = input("x", 8, 3);
    j.a     = named(ggml_sqr(ctx, j.x), "a");
    j.y     = named(ggml_scale(ctx, j.a, 3), "y");
    j.graph = graph_of(j.y);
    return j;
}

static bool small_right(struct small * j) {
    for (int64_t i = 0; i < ggml_nelements(j->y); i++) {
        if (got(j->y, i) != value(i, 1) * value(i, 1) * 3) {
            return false;
        }
    }
    return true;
}

static bool small_run(struct team * t) {
    ggml_backend_sched_t s    = team_sched(t, false);
    struct small         j    = small_build();
    bool                 good = team_alloc(t, s, j.graph);
    if (good) {
        fill(j.x, 1);
        good = ggml_backend_sched_graph_compute(s, j.graph) == GGML_STATUS_SUCCESS && small_right(&j);
    }
    ggml_backend_sched_free(s);
    ggml_reset(ctx);
    return good;
}

/* EXT-20 */

static bool reg(struct probe * p, enum ggml_op op, const char * op_name) {
    p->op      = op;
    p->op_name = op_name;
    return probe_register(p, cpu.dev);
}

static void targets(void) {
    struct probe p = { .name = "target" };
    CHECK(reg(&p, GGML_OP_SQR, NULL), "EXT-20: a kernel for a built-in operator");
    CHECK(small_run(&cpu) && p.n_execute == 1, "EXT-20: runs its nodes, and only those (%d)", p.n_execute);
    probe_end(&p, "EXT-20");
    CHECK(reg(&p, GGML_OP_CUSTOM, OP), "EXT-20: a kernel for a registered operator");
    ggml_backend_sched_t s = team_sched(&cpu, false);
    struct ggml_tensor * x = input("x", 5, 2), * y = affine(OP, ggml_sqr(ctx, x), -2, 0.5f);
    struct ggml_cgraph * g = graph_of(y);
    CHECK(ggml_backend_sched_alloc_graph(s, g), "EXT-20: a graph with it");
    fill(x, 1);
    const int before = p.n_execute;
    CHECK(ggml_backend_sched_graph_compute(s, g) == GGML_STATUS_SUCCESS && p.n_execute == before + 1 && got(y, 9) == value(9, 1) * value(9, 1) * -2 + 0.5f, "EXT-20: runs its nodes");
    ggml_backend_sched_free(s);
    ggml_reset(ctx);
    struct ggml_tensor * other = affine("test.other.v1", input("x", 5, 2), 1, 1);
    const int            asked = p.n_supports;
    CHECK(other && !ggml_backend_dev_supports_op(cpu.dev, other) && p.n_supports == asked, "EXT-20: it is not asked about another registered operator");
    ggml_reset(ctx);
    probe_end(&p, "EXT-20");

    FAILS(!reg(&p, GGML_OP_CUSTOM, NULL), GGML_EXT_CODE_NULL_ARGUMENT, "target", NULL, "EXT-20: GGML_OP_CUSTOM without a name", "op_name");
    FAILS(!reg(&p, GGML_OP_CUSTOM, "test.nobody.v1"), GGML_EXT_CODE_UNKNOWN_NAME, "test.nobody.v1", NULL, "EXT-20: an operator that is not registered");
    FAILS(!reg(&p, GGML_OP_ADD, OP), GGML_EXT_CODE_BAD_ARGUMENT, "target", NULL, "EXT-20: a built-in operator with a name", "op_name");
    FAILS(!reg(&p, GGML_OP_NONE, NULL), GGML_EXT_CODE_BAD_ARGUMENT, "target", NULL, "EXT-20: neither operator nor match");
    FAILS(!reg(&p, GGML_OP_COUNT, NULL), GGML_EXT_CODE_BAD_ARGUMENT, "target", NULL, "EXT-20: no operator");
    FAILS(!reg(&p, (enum ggml_op) -1, NULL), GGML_EXT_CODE_BAD_ARGUMENT, "target", NULL, "EXT-20: a negative operator");
    static const enum ggml_op views[] = { GGML_OP_VIEW, GGML_OP_RESHAPE, GGML_OP_PERMUTE, GGML_OP_TRANSPOSE };
    for (size_t i = 0; i < 4; i++) {
        FAILS(!reg(&p, views[i], NULL), GGML_EXT_CODE_BAD_ARGUMENT, "target", NULL, "EXT-26: a kernel for a view", "view");
    }
    p.name = "name with blanks";
    FAILS(!reg(&p, GGML_OP_SQR, NULL), GGML_EXT_CODE_BAD_ARGUMENT, EXT_NOT_LOOKED_AT, NULL, "EXT-20: a name of other characters", "name with blanks");
    p.name = NULL;
    FAILS(!reg(&p, GGML_OP_SQR, NULL), GGML_EXT_CODE_NULL_ARGUMENT, NULL, NULL, "EXT-20: no name", "name");
}

/* EXT-21, EXT-22 */

static void order(void) {
    struct probe first = { .name = "first", .op = GGML_OP_SQR }, second = { .name = "second", .op = GGML_OP_SQR };
    struct probe high = { .name = "high", .op = GGML_OP_SQR, .priority = 7 }, low = { .name = "low", .op = GGML_OP_SQR, .priority = -7 };
    CHECK(probe_register(&low, cpu.dev) && probe_register(&first, cpu.dev) && probe_register(&second, cpu.dev) && probe_register(&high, cpu.dev), "EXT-21: four kernels for one operator");
    CHECK(small_run(&cpu) && high.n_execute == 1 && first.n_execute + second.n_execute + low.n_execute == 0, "EXT-21: the highest priority is asked first");
    high.off = true;
    CHECK(small_run(&cpu) && first.n_execute == 1 && second.n_execute + low.n_execute == 0, "EXT-21: equal: first registered, first asked");
    CHECK(high.n_supports > 0 && high.supports_order < first.supports_order, "EXT-21: in that order");
    first.off = true;
    CHECK(small_run(&cpu) && second.n_execute == 1 && low.n_execute == 0, "EXT-21: then the second");
    second.not_preferred = true;
    CHECK(small_run(&cpu) && second.n_execute == 1 && second.n_preferred == 1 + 1 && low.n_execute == 1, "EXT-21: one that is not preferred makes room for the next");
    low.not_preferred = true;
    CHECK(small_run(&cpu) && low.n_execute == 1 && second.n_execute == 1, "EXT-21: and for native code");
    low.off = true;
    CHECK(small_run(&cpu) && low.n_execute == 1, "EXT-21: a kernel that cannot is not used");
    probe_end(&low, "EXT-21");
    probe_end(&first, "EXT-21");
    probe_end(&second, "EXT-21");
    probe_end(&high, "EXT-21");

    struct probe always = { .name = "always", .op = GGML_OP_SQR, .no_preferred = true };
    CHECK(probe_register(&always, cpu.dev) && small_run(&cpu) && always.n_execute == 1, "EXT-21: without `preferred` it overrides native code");
    probe_end(&always, "EXT-21");

    fake_dev.only_op    = GGML_OP_SCALE;
    struct probe needed = { .name = "needed", .op = GGML_OP_SQR, .not_preferred = true };
    CHECK(probe_register(&needed, dev.dev), "EXT-22: a kernel for what native code has not");
    CHECK(small_run(&dev) && needed.n_execute == 1, "EXT-22: runs, whatever `preferred` would say (asked %d times)", needed.n_preferred);
    CHECK(needed.n_preferred == 0, "EXT-22: which is not asked");
    probe_end(&needed, "EXT-22");
    fake_dev.only_op = GGML_OP_COUNT;
}

/* EXT-23, EXT-24 */

static void queries(void) {
    struct small         j = small_build();
    struct ggml_tensor * e = affine(OP, j.x, 1, 1);
    struct probe         p = { .name = "query", .op = GGML_OP_SQR }, ext = { .name = "query.ext", .op = GGML_OP_CUSTOM, .op_name = OP };
    struct probe         rule = { .name = "rule", .pattern = { GGML_OP_SQR, GGML_OP_SCALE } };
    fake_dev.only_op          = GGML_OP_SCALE;
    CHECK(probe_register(&rule, dev.dev), "EXT-23: a rule for both nodes");
    CHECK(!ggml_backend_dev_supports_op(dev.dev, j.a) && !ggml_backend_supports_op(dev.main, j.a), "EXT-23: claims nothing for one node");
    probe_end(&rule, "EXT-23");
    CHECK(probe_register(&p, dev.dev) && probe_register(&ext, dev.dev), "EXT-23: kernels for single nodes");
    CHECK(ggml_backend_dev_supports_op(dev.dev, j.a) && ggml_backend_supports_op(dev.main, j.a), "EXT-23: count in the capability queries of device and backend");
    CHECK(ggml_backend_dev_supports_op(dev.dev, e) && ggml_backend_supports_op(dev.main, e), "EXT-23: those of registered operators too");
    CHECK(!ggml_ext_dev_supports_native_op(dev.dev, j.a) && !ggml_ext_dev_supports_native_op(dev.dev, e) && ggml_ext_dev_supports_native_op(dev.dev, j.y), "EXT-24: the device's own code alone");
    p.off = true;
    CHECK(!ggml_backend_dev_supports_op(dev.dev, j.a), "EXT-23: a kernel that says no does not count");
    p.off              = false;
    const int asked    = p.n_supports;
    const bool native  = ggml_ext_dev_supports_native_op(dev.dev, j.a);
    CHECK(!native && p.n_supports == asked, "EXT-24: asks no registration");

    /* placed there by the scheduler itself: its sources are weights of the device */
    ggml_reset(ctx);
    ggml_backend_sched_t  s = team_sched(&dev, false);
    struct ggml_tensor *  w = named(ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 8, 3), "w");
    ggml_backend_buffer_t b = ggml_backend_alloc_ctx_tensors_from_buft(ctx, &fake_dev.buft);
    ggml_backend_buffer_set_usage(b, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    fill(w, 1);
    struct ggml_tensor * y = named(ggml_sqr(ctx, w), "y");
    struct ggml_cgraph * g = graph_of(y);
    CHECK(ggml_backend_sched_alloc_graph(s, g) && ggml_backend_sched_get_tensor_backend(s, y) == dev.main, "EXT-23: the scheduler places a node where only a registration computes it");
    watch_reset();
    CHECK(ggml_backend_sched_graph_compute(s, g) == GGML_STATUS_SUCCESS && p.n_execute == 1 && p.backend == dev.main && got(y, 20) == value(20, 1) * value(20, 1), "EXT-23: and it runs there");
    CHECK(watched.n_graphs == 0, "EXT-23: not by its native code");
    ggml_backend_sched_free(s);
    ggml_backend_buffer_free(b);
    ggml_reset(ctx);
    probe_end(&p, "EXT-23");
    probe_end(&ext, "EXT-23");
    fake_dev.only_op = GGML_OP_COUNT;
}

/* EXT-25 */

static struct {
    bool                 same, other_op, other_device, native;
    int                  code;
    struct ggml_tensor * other;
} recursion;

static void recurse(const struct ggml_ext_step * step, struct probe * p) {
    (void) p;
    recursion.same         = ggml_backend_dev_supports_op(step->device, step->nodes[0]);
    recursion.code         = ext_error().code;
    recursion.native       = ggml_ext_dev_supports_native_op(step->device, step->nodes[0]);
    recursion.other_op     = ggml_backend_dev_supports_op(step->device, recursion.other);
    recursion.other_device = ggml_backend_dev_supports_op(step->device == cpu.dev ? dev.dev : cpu.dev, step->nodes[0]);
}

static void recursive(void) {
    fake_dev.only_op = GGML_OP_SCALE;
    struct probe p   = { .name = "recursive", .op = GGML_OP_SQR, .in_supports = recurse, .in_preferred = recurse };
    struct small j   = small_build();
    recursion.other  = j.y;
    CHECK(probe_register(&p, dev.dev), "EXT-25: a kernel that asks the public query about its own node");
    check_log_errors = 0;
    CHECK(ggml_backend_dev_supports_op(dev.dev, j.a) && p.n_supports == 1, "EXT-25: is asked once (%d)", p.n_supports);
    CHECK(!recursion.same && recursion.code == GGML_EXT_CODE_RE_ENTERED && check_log_errors == 1, "EXT-25: gets false and an error");
    CHECK(!recursion.native && recursion.other_op && recursion.other_device, "EXT-25: what is not the same question has its answer");
    CHECK(strstr(check_error_text(), "SQR") && strstr(check_error_text(), dev.name), "EXT-25: the text names operator and device");
    CHECK(small_run(&dev) && p.n_execute == 1, "EXT-25: and the same while a plan is made");
    CHECK(!recursion.same && recursion.code == GGML_EXT_CODE_RE_ENTERED, "EXT-25: the answer then");
    probe_end(&p, "EXT-25");
    fake_dev.only_op = GGML_OP_COUNT;
    ggml_reset(ctx);
}

/* EXT-26 */

struct given {
    const char * name;
    enum ggml_op op;
    struct ggml_tensor * (*make)(struct ggml_tensor * a, struct ggml_tensor * b);
};

static struct ggml_tensor * make_scale(struct ggml_tensor * a, struct ggml_tensor * b) { (void) b; return ggml_scale_inplace(ctx, a, 2); }
static struct ggml_tensor * make_add(struct ggml_tensor * a, struct ggml_tensor * b) { return ggml_add_inplace(ctx, a, b); }
static struct ggml_tensor * make_mul(struct ggml_tensor * a, struct ggml_tensor * b) { return ggml_mul_inplace(ctx, a, b); }
static struct ggml_tensor * make_cpy(struct ggml_tensor * a, struct ggml_tensor * b) { return ggml_cpy(ctx, b, a); }
static struct ggml_tensor * make_set(struct ggml_tensor * a, struct ggml_tensor * b) { return ggml_set_inplace(ctx, a, ggml_view_1d(ctx, b, 4, 0), a->nb[1], a->nb[2], a->nb[3], 0); }
static struct ggml_tensor * make_norm(struct ggml_tensor * a, struct ggml_tensor * b) { (void) b; return ggml_rms_norm_inplace(ctx, a, 1e-5f); }

static const struct given given[] = {
    { "scale_inplace", GGML_OP_SCALE, make_scale }, { "add_inplace", GGML_OP_ADD, make_add }, { "mul_inplace", GGML_OP_MUL, make_mul },
    { "cpy", GGML_OP_CPY, make_cpy }, { "set_inplace", GGML_OP_SET, make_set }, { "rms_norm_inplace", GGML_OP_RMS_NORM, make_norm },
};

static void never(void) {
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        struct probe p = { .name = "intercept", .op = given[i].op, .priority = 100 };
        float        want[12];
        for (int with = 0; with < 2; with++) {
            if (with) {
                CHECK(probe_register(&p, cpu.dev), "EXT-26: %s: a kernel for its operator", given[i].name);
            }
            ggml_backend_sched_t s = team_sched(&cpu, false);
            struct ggml_tensor * x = input("x", 4, 3), * b = input("b", 4, 3);
            struct ggml_tensor * y = given[i].make(ggml_sqr(ctx, x), b);
            CHECK(y->view_src != NULL && ggml_backend_dev_supports_op(cpu.dev, y), "EXT-26: %s writes into given storage", given[i].name);
            struct ggml_cgraph * g = graph_of(y);
            bool good = ggml_backend_sched_alloc_graph(s, g);
            if (good) {
                fill(x, 1);
                fill(b, 2);
                good = ggml_backend_sched_graph_compute(s, g) == GGML_STATUS_SUCCESS;
                float have[12];
                ggml_backend_tensor_get(y, have, 0, sizeof have);
                good = good && (!with || memcmp(want, have, sizeof have) == 0);
                memcpy(want, have, sizeof have);
            }
            CHECK(good && p.n_supports + p.n_preferred + p.n_execute == 0, "EXT-26: %s is never intercepted (asked %d times)", given[i].name, p.n_supports);
            ggml_backend_sched_free(s);
            ggml_reset(ctx);
        }
        probe_end(&p, "EXT-26");
    }
    /* and it is not claimed either where native code has it not */
    fake_dev.only_op = GGML_OP_SQR;
    struct probe p   = { .name = "claim", .op = GGML_OP_SCALE };
    struct ggml_tensor * x = input("x", 4, 3), * in = ggml_scale_inplace(ctx, x, 2), * out = ggml_scale(ctx, x, 2);
    CHECK(probe_register(&p, dev.dev) && !ggml_backend_dev_supports_op(dev.dev, in) && ggml_backend_dev_supports_op(dev.dev, out), "EXT-26: in-place nodes are not claimed by kernels");
    probe_end(&p, "EXT-26");
    fake_dev.only_op = GGML_OP_COUNT;
    ggml_reset(ctx);
}

/* EXT-27 */

struct reuse {
    struct ggml_tensor * x, * c, * a, * y, * late;
    struct ggml_cgraph * graph;
};

/* y = (sqr(x) op c), then late = y + c; with `keep`, sqr(x) is read again after y. */
static struct reuse reuse_build(enum ggml_op op, bool keep) {
    struct reuse j;
    ggml_reset(ctx);
    j.x    = input("x", 16, 4);
    j.c    = input("c", 16, 4);
    j.a    = named(ggml_sqr(ctx, j.x), "a");
    j.y    = named(op == GGML_OP_ADD ? ggml_add(ctx, j.c, j.a) : ggml_scale(ctx, j.a, 3), "y");
    j.late = named(ggml_sub(ctx, j.y, keep ? j.a : j.c), "late");
    j.graph = graph_of(j.late);
    return j;
}

static bool reuse_right(struct reuse * j, enum ggml_op op, bool keep) {
    for (int64_t i = 0; i < 64; i++) {
        const float x = value(i, 1), c = value(i, 2), a = x * x, y = op == GGML_OP_ADD ? c + a : a * 3;
        if (got(j->late, i) != y - (keep ? a : c)) {
            return false;
        }
    }
    return true;
}

static void reuse(struct team * t, enum ggml_op op, bool keep) {
    const char * name = op == GGML_OP_ADD ? "ADD" : "SCALE";
    struct probe p    = { .name = "override", .op = op };
    size_t       size[2];
    for (int with = 0; with < 2; with++) {
        if (with) {
            CHECK(probe_register(&p, t->dev), "EXT-27: %s, %s: an override", t->name, name);
        }
        ggml_backend_sched_t s = team_sched(t, false);
        struct reuse         j = reuse_build(op, keep);
        bool good = team_alloc(t, s, j.graph);
        CHECK(good, "EXT-27: %s, %s: memory", t->name, name);
        size[with] = ggml_backend_sched_get_buffer_size(s, t->main);
        /* which of the sources the result lies over, now that it is decided */
        uint64_t now = 0;
        for (int k = 0; k < 2 && j.y->src[k]; k++) {
            now |= (uint64_t) (j.y->src[k]->data == j.y->data) << k;
        }
        fill(j.x, 1);
        fill(j.c, 2);
        for (int again = 0; good && again < 2; again++) {
            fill(j.x, 1);
            fill(j.c, 2);
            good = ggml_backend_sched_graph_compute(s, j.graph) == GGML_STATUS_SUCCESS && reuse_right(&j, op, keep);
        }
        CHECK(good, "EXT-27: %s, %s%s: %s", t->name, name, keep ? ", source kept" : "", with ? "the override has native numbers" : "native");
        if (with) {
            const uint64_t bit = op == GGML_OP_ADD ? 2 : 1;
            CHECK(p.n_execute == 2 && p.overlap == now, "EXT-27, EXT-44: %s, %s: overlap is told as it is (%llu, is %llu)", t->name, name, (unsigned long long) p.overlap, (unsigned long long) now);
            CHECK(keep ? !(now & bit) : (now & bit) != 0, "EXT-27: %s, %s: the result %s its source", t->name, name, keep ? "does not lie over" : "lies over");
            CHECK((now & ~p.overlap_prepare) == 0 && (now & ~p.overlap_supports) == 0, "EXT-27: %s, %s: before, it is told that it may", t->name, name);
            CHECK(size[0] == size[1], "EXT-27: %s, %s: and the override costs no memory (%zu, %zu)", t->name, name, size[0], size[1]);
        }
        ggml_backend_sched_free(s);
    }
    probe_end(&p, "EXT-27");
    ggml_reset(ctx);
}

int main(void) {
    teams_open(&cpu, &dev, &fake_dev);
    CHECK(affine_register(OP) && affine_register("test.other.v1"), "two operators");
    targets();
    order();
    queries();
    recursive();
    never();
    for (int k = 0; k < 8; k++) {
        reuse(k & 4 ? &dev : &cpu, k & 2 ? GGML_OP_ADD : GGML_OP_SCALE, k & 1);
    }
    return teams_close(&cpu, &dev);
}
