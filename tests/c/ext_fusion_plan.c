/* Fusion in the scheduler: when rules are asked, what they may reorder, what stays allocated, where nothing is fused. EXT-40, EXT-45 to
 * EXT-49, and the public reports 22 and 30. */
#include "ext_fusion.h"

#define SAY(text) "%s: " text, t->name

static struct ggml_tensor * in(int i) {
    static const char * const names[] = { "x", "p", "q", "r" };
    return k.in[i] = input(names[i], 16, 4);
}

static void finish(struct ggml_tensor * result) {
    ggml_set_output(result);
    for (int i = 0; i < TENSORS; i++) {
        if (!k.out[i]) {
            k.out[i] = result;
            break;
        }
    }
    if (!k.graph) {
        k.graph = ggml_new_graph_custom(ctx, 64, false);
    }
    ggml_build_forward_expand(k.graph, result);
}

/* Computes what `build` makes. */
static bool run(struct team * t, ggml_backend_sched_t s, void (*build)(void), char result[TENSORS][BYTES]) {
    ggml_backend_sched_reset(s);
    return fusion_alloc(t, s, build) && fusion_compute(s, result);
}

static char want[TENSORS][BYTES], have[TENSORS][BYTES];

/* EXT-40: which nodes rules are asked about, in which order, and when */

static void four(void) {
    finish(named(ggml_sqrt(ctx, ggml_sqr(ctx, ggml_scale(ctx, ggml_sqr(ctx, in(0)), 0.5f))), "y")); /* SQR SCALE SQR SQRT */
}

static bool placed;
static int  from_node(struct ggml_cgraph * g, int first, struct probe * p) {
    for (int i = 0; i < ggml_graph_n_nodes(g); i++) {
        placed |= ggml_graph_node(g, i)->data != NULL;
    }
    return first == 0 ? *(int *) p->more : 0;
}

static void asking(struct team * t) {
    struct probe pair = { .name = "pair", .match_op = GGML_OP_SQR, .pattern = { GGML_OP_SQR, GGML_OP_SCALE } };
    struct probe last = { .name = "last", .match_op = GGML_OP_SQR, .pattern = { GGML_OP_SQR, GGML_OP_SQRT } };
    struct probe high = { .name = "high", .priority = 3, .match_op = GGML_OP_SQR, .pattern = { GGML_OP_SQR, GGML_OP_SCALE, GGML_OP_SQR } };
    struct probe none = { .name = "none", .match_op = GGML_OP_SQRT, .pattern = { GGML_OP_SQRT, GGML_OP_SQRT } };
    ggml_backend_sched_t s = team_sched(t, false);
    CHECK(run(t, s, four, want), SAY("EXT-40: without rules"));
    CHECK(probe_register(&pair, t->dev) && probe_register(&last, t->dev) && probe_register(&none, t->dev), SAY("EXT-40: three rules"));
    CHECK(run(t, s, four, have) && memcmp(want, have, sizeof want) == 0, SAY("EXT-40, EXT-49: bit for bit"));
    CHECK(pair.n_execute == 1 && last.n_execute == 1 && pair.n_nodes == 2 && last.n_nodes == 2, SAY("EXT-40: consecutive nodes, from where a rule matches"));
    CHECK(pair.n_match == 2 && last.n_match == 1, SAY("EXT-40: nodes that are fused are not asked about again (%d, %d)"), pair.n_match, last.n_match);
    CHECK(none.n_match == 0, SAY("EXT-40: a rule is asked about nodes of its operator (%d)"), none.n_match);
    const int asked = pair.n_match + last.n_match;
    CHECK(fusion_compute(s, have) && fusion_compute(s, have) && pair.n_match + last.n_match == asked && pair.n_execute == 3, SAY("EXT-40: what was selected stays"));
    CHECK(probe_register(&high, t->dev) && run(t, s, four, have) && memcmp(want, have, sizeof want) == 0, SAY("EXT-40: a rule of higher priority"));
    CHECK(high.n_execute == 1 && pair.n_execute == 3 && last.n_execute == 3, SAY("EXT-40: is asked first"));
    high.off = true;
    CHECK(run(t, s, four, have) && high.n_execute == 1 && pair.n_execute == 4, SAY("EXT-40: and makes room when it does not match"));
    pair.off = last.off = true;
    ggml_backend_sched_reset(s);
    int          answer = 4;
    struct probe odd    = { .name = "odd", .match = from_node, .more = &answer };
    CHECK(probe_register(&odd, t->dev), SAY("EXT-40: a rule that looks at the graph"));
    placed = false;
    CHECK(run(t, s, four, have) && odd.n_execute == 1 && odd.n_nodes == 4 && !placed, SAY("EXT-40: before anything is allocated"));
    for (answer = -1; answer < 2; answer++) {
        CHECK(run(t, s, four, have) && odd.n_execute == 1 && memcmp(want, have, sizeof want) == 0, SAY("EXT-40: %d nodes are no fusion"), answer);
    }
    /* a rule that finds out in `supports` */
    answer  = 2;
    odd.off = true;
    odd.why = "no such hardware";
    CHECK(run(t, s, four, have) && odd.n_execute == 1 && memcmp(want, have, sizeof want) == 0, SAY("EXT-41: the rule answers for the rest itself"));
    ggml_backend_sched_free(s);
    probe_end(&pair, "EXT-40");
    probe_end(&last, "EXT-40");
    probe_end(&high, "EXT-40");
    probe_end(&none, "EXT-40");
    probe_end(&odd, "EXT-40");
}

/* EXT-45 */

static struct ggml_tensor *between, *producer, *consumer;

/* SQR, something else, SCALE of the first. */
static void apart(void) {
    producer = named(ggml_sqr(ctx, in(0)), "producer");
    between  = named(ggml_sqrt(ctx, ggml_scale(ctx, ggml_cont(ctx, in(1)), 0)), "between");
    consumer = named(ggml_scale(ctx, producer, 3), "consumer");
    k.graph  = ggml_new_graph_custom(ctx, 64, false);
    ggml_build_forward_expand(k.graph, producer);
    finish(between);
    finish(consumer);
}

static struct {
    int  moved, refused, same;
} delays;

static void bring_together(struct ggml_cgraph * g, struct probe * p) {
    struct ggml_tensor *  nodes[64], *src[64][GGML_MAX_SRC];
    const int             n = ggml_graph_n_nodes(g);
    (void) p;
    for (int i = 0; i + 1 < n; i++) {
        struct ggml_tensor * t = ggml_graph_node(g, i);
        for (int j = i + 2; t->op == GGML_OP_SQR && j < n; j++) {
            if (ggml_graph_node(g, j)->src[0] != t) {
                continue;
            }
            for (int m = 0; m < n; m++) {
                nodes[m] = ggml_graph_node(g, m);
                memcpy(src[m], nodes[m]->src, sizeof src[m]);
            }
            const bool good = ggml_ext_graph_delay(g, i, 1, j);
            delays.moved += good;
            delays.refused += !good;
            bool same = ggml_graph_n_nodes(g) == n;
            for (int m = 0; m < n; m++) {
                const int from = !good || m < i || m >= j ? m : m == j - 1 ? i : m + 1;
                same           = same && ggml_graph_node(g, m) == nodes[from] && memcmp(nodes[from]->src, src[from], sizeof src[from]) == 0;
            }
            delays.same += same;
            return;
        }
    }
}

static void optimizing(struct team * t) {
    struct probe rule = { .name = "together", .pattern = { GGML_OP_SQR, GGML_OP_SCALE } };
    ggml_backend_sched_t s = team_sched(t, false);
    CHECK(run(t, s, apart, want), SAY("EXT-45: without rules"));
    CHECK(probe_register(&rule, t->dev) && run(t, s, apart, have) && rule.n_execute == 0, SAY("EXT-45: the pattern is torn apart"));
    ggml_backend_sched_reset(s);
    probe_end(&rule, "EXT-45");
    rule.optimize = bring_together;
    memset(&delays, 0, sizeof delays);
    CHECK(probe_register(&rule, t->dev) && run(t, s, apart, have) && rule.n_optimize == 1, SAY("EXT-45: a rule that optimises"));
    CHECK(delays.moved == 1 && delays.same == 1, SAY("EXT-45: moves a producer behind what is independent, edges stay (%d, %d)"), delays.moved, delays.same);
    CHECK(rule.n_execute == 1 && rule.n_nodes == 2 && memcmp(want, have, sizeof want) == 0, SAY("EXT-45, EXT-49: then it is fused, bit for bit"));
    /* what was moved together is still checked */
    delays.moved = 0;
    for (int again = 0; again < 2; again++) {
        ggml_backend_sched_reset(s);
        memset(&k, 0, sizeof k);
        ggml_reset(ctx);
        apart();
        if (again) {
            ggml_set_output(producer);
        }
        const int before = rule.n_execute;
        CHECK(team_alloc(t, s, k.graph) && fusion_compute(s, have) && rule.n_execute == before + !again, SAY("EXT-45: legality is checked after the move (%d)"), again);
    }
    ggml_backend_sched_free(s);
    probe_end(&rule, "EXT-45");
}

static void custom_fn(struct ggml_tensor * dst, const struct ggml_tensor * a, int ith, int nth, void * data) {
    (void) dst, (void) a, (void) ith, (void) nth, (void) data;
}

/* Node 0 to before node 2 of: node 0, what is between, its consumer. */
static void delay(struct ggml_tensor * producer, struct ggml_tensor * between, struct ggml_tensor * last, int code, const char * name, const char * text) {
    struct ggml_cgraph * g = ggml_new_graph_custom(ctx, 16, false);
    ggml_build_forward_expand(g, producer);
    ggml_build_forward_expand(g, between);
    ggml_build_forward_expand(g, last);
    const int n = ggml_graph_n_nodes(g);
    if (code == GGML_EXT_CODE_NONE) {
        CHECK(ggml_ext_graph_delay(g, 0, 1, n - 1) && ggml_graph_node(g, n - 2) == producer && ggml_graph_node(g, n - 1) == last && ggml_graph_n_nodes(g) == n, "EXT-45: %s: moved", name);
    } else {
        FAILS(!ggml_ext_graph_delay(g, 0, 1, n - 1), code, NULL, EXT_ANY, name, "ggml_ext_graph_delay", text);
        CHECK(ggml_graph_node(g, 0) == producer && ggml_graph_node(g, n - 1) == last, "%s: nothing moved", name);
    }
    ggml_reset(ctx);
}

static void delays_alone(void) {
    struct ggml_tensor *x, *p, *a;
#define FRESH (x = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 8), p = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 8), a = ggml_sqr(ctx, x))
    FRESH;
    delay(a, ggml_sqr(ctx, p), ggml_scale(ctx, a, 2), GGML_EXT_CODE_NONE, "an independent node", "");
    FRESH;
    delay(a, ggml_cpy(ctx, p, ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 8)), ggml_scale(ctx, a, 2), GGML_EXT_CODE_NONE, "an independent copy", "");
    FRESH;
    delay(a, ggml_scale_inplace(ctx, p, 2), ggml_scale(ctx, a, 2), GGML_EXT_CODE_NONE, "an in-place node elsewhere", "");
    FRESH;
    delay(a, ggml_cast(ctx, p, GGML_TYPE_F16), ggml_scale(ctx, a, 2), GGML_EXT_CODE_NONE, "a conversion with storage of its own", "");
    FRESH;
    delay(a, ggml_sqrt(ctx, a), ggml_scale(ctx, a, 2), GGML_EXT_CODE_NOT_LEGAL, "EXT-45: a dependency", "node 1 reads or views node 0");
    FRESH;
    delay(a, ggml_reshape_2d(ctx, a, 4, 2), ggml_scale(ctx, a, 2), GGML_EXT_CODE_NOT_LEGAL, "EXT-45: a view of what is moved", "node 1 reads or views node 0");
    FRESH;
    delay(a, ggml_map_custom1(ctx, p, custom_fn, 1, NULL), ggml_scale(ctx, a, 2), GGML_EXT_CODE_NOT_LEGAL, "EXT-45: effects that nobody knows", "MAP_CUSTOM1");
    FRESH;
    delay(a, ggml_scale_inplace(ctx, x, 2), ggml_scale(ctx, a, 2), GGML_EXT_CODE_NOT_LEGAL, "EXT-45: a write over what is read", "writes where the moved nodes read");
    FRESH;
    delay(a, ggml_cpy(ctx, p, ggml_view_1d(ctx, x, 8, 0)), ggml_scale(ctx, a, 2), GGML_EXT_CODE_NOT_LEGAL, "EXT-45: a copy over what is read", "writes where the moved nodes read");
    FRESH;
    struct ggml_tensor * write = ggml_cpy(ctx, p, ggml_view_1d(ctx, x, 8, 0));
    delay(ggml_scale_inplace(ctx, x, 3), write, ggml_sqr(ctx, write), GGML_EXT_CODE_NOT_LEGAL, "EXT-45: a write over what is written", "write");
    FRESH;
    a                      = ggml_sqr(ctx, x);
    struct ggml_cgraph * g = graph_of(ggml_scale(ctx, ggml_sqrt(ctx, a), 2));
    static const int bad[][3] = { { -1, 1, 2 }, { 0, 0, 2 }, { 0, -1, 2 }, { 0, 4, 2 }, { 0, 1, 4 }, { 2, 1, 1 }, { 0, 3, 1 }, { 0x7fffffff, 1, 2 }, { 0, 0x7fffffff, 3 } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char name[80];
        snprintf(name, sizeof name, "EXT-45: %d nodes from %d to before %d", bad[i][1], bad[i][0], bad[i][2]);
        FAILS(!ggml_ext_graph_delay(g, bad[i][0], bad[i][1], bad[i][2]), GGML_EXT_CODE_BAD_ARGUMENT, NULL, NULL, name);
    }
    FAILS(!ggml_ext_graph_delay(NULL, 0, 1, 2), GGML_EXT_CODE_NULL_ARGUMENT, NULL, NULL, "EXT-45: no graph");
    CHECK(ggml_ext_graph_delay(g, 0, 1, 1) && ggml_graph_node(g, 0) == a, "EXT-45: a move to where it is");
    ggml_reset(ctx);
}

/* EXT-46: what the first nodes of a match read dies there, and lies untouched until the last. */

static struct ggml_tensor * dying[3];

static void dies_early(void) {
    dying[0] = ggml_sqr(ctx, in(0));
    dying[1] = ggml_scale(ctx, in(1), 2);
    dying[2] = ggml_sqr(ctx, in(2));
    struct ggml_tensor * a = ggml_mul(ctx, dying[0], dying[1]);
    struct ggml_tensor * b = ggml_scale(ctx, a, 0.5f);
    struct ggml_tensor * c = ggml_add(ctx, b, dying[2]);
    struct ggml_tensor * d = ggml_scale(ctx, c, 3);
    k.graph = ggml_new_graph_custom(ctx, 64, false);
    for (int i = 0; i < 3; i++) {
        ggml_build_forward_expand(k.graph, dying[i]);
    }
    finish(named(ggml_sqr(ctx, ggml_scale(ctx, d, 2)), "after"));
    ggml_set_name(k.out[0]->src[0], "behind");
    k.first = a;
    k.n     = 4;
}

static int lost;

/* Writes the result first, then looks whether what was read is still there. */
static void spoil(const struct ggml_ext_run * run, struct probe * p) {
    const struct ggml_ext_step * s    = run->step;
    struct ggml_tensor *         last = s->nodes[s->n_nodes - 1];
    (void) p;
    float kept[3][64];
    for (int i = 0; i < s->n_srcs; i++) {
        memcpy(kept[i], s->srcs[i]->data, sizeof kept[i]);
    }
    memset(last->data, 0xFF, ggml_nbytes(last));
    for (int i = 0; i < s->n_srcs; i++) {
        lost += memcmp(kept[i], s->srcs[i]->data, sizeof kept[i]) != 0;
    }
}

static void stays(struct team * t) {
    struct probe rule = { .name = "rule", .match = propose, .in_execute = spoil };
    ggml_backend_sched_t s = team_sched(t, false);
    CHECK(run(t, s, dies_early, want), SAY("EXT-46: unfused"));
    lost = 0;
    CHECK(probe_register(&rule, t->dev), SAY("EXT-46: a rule for four of nine nodes"));
    watch_reset();
    CHECK(run(t, s, dies_early, have) && rule.n_execute == 1 && rule.n_srcs == 3, SAY("EXT-46: fused"));
    CHECK(lost == 0 && rule.overlap == 0, SAY("EXT-46, EXT-44: all that is read is there until the result is (%d lost, overlap %llu)"), lost, (unsigned long long) rule.overlap);
    CHECK(memcmp(want, have, sizeof want) == 0, SAY("EXT-46, EXT-49: bit for bit"));
    if (t->fake) {
        int n = 0, optimized = 0;
        for (int i = 0; i < watched.n_graphs; i++) {
            n += watched.n_nodes[i];
        }
        for (int i = 0; i < watched.n_optimized; i++) {
            optimized += watched.optimized_nodes[i];
        }
        CHECK(watched.n_graphs == 2 && n == 5 && watched.n_nodes[0] == 3 && watched.n_nodes[1] == 2, SAY("EXT-46: native code computes the ranges around it (%d, %d nodes)"), watched.n_graphs, n);
        CHECK(strcmp(watched.first[1], "behind") == 0, SAY("EXT-46: and begins behind it with '%s'"), watched.first[1]);
        CHECK(watched.n_optimized == 2 && optimized == 5 && strcmp(watched.optimized[1], "behind") == 0, SAY("EXT-46: native optimisation sees the same (%d, %d nodes)"), watched.n_optimized, optimized);
    }
    ggml_backend_sched_free(s);
    probe_end(&rule, "EXT-46");
}

/* EXT-47: intermediates that are large beside what is read and what comes out. */

static void wide(void) {
    struct ggml_tensor * x = k.in[0] = input("x", 256, 1), * w = k.in[1] = input("w", 256, 1);
    struct ggml_tensor * a = ggml_repeat_4d(ctx, x, 256, 64, 1, 1);
    finish(ggml_sum_rows(ctx, ggml_scale(ctx, ggml_mul(ctx, a, w), 2)));
    k.first = a;
    k.n     = 4;
}

static void sizes(struct team * t) {
    struct probe rule = { .name = "rule", .match = propose };
    ggml_backend_sched_t s = team_sched(t, false);
    CHECK(run(t, s, wide, want), SAY("EXT-47: unfused"));
    const size_t unfused = ggml_backend_sched_get_buffer_size(s, t->main);
    ggml_backend_sched_free(s);
    s = team_sched(t, false);
    CHECK(probe_register(&rule, t->dev) && run(t, s, wide, have) && rule.n_execute == 1 && rule.n_nodes == 4, SAY("EXT-47: fused"));
    const size_t fused = ggml_backend_sched_get_buffer_size(s, t->main);
    CHECK(unfused >= 65536 && fused < 4096, SAY("EXT-47: takes memory for its ends alone (%zu, %zu)"), fused, unfused);
    CHECK(memcmp(want, have, sizeof want) == 0, SAY("EXT-47, EXT-49: bit for bit"));
    /* the same shapes without the fusion, and with it again: the assignments of one are not the other's */
    for (int i = 0; i < 4; i++) {
        rule.off         = i % 2 == 0;
        const int before = rule.n_execute;
        CHECK(run(t, s, wide, have) && memcmp(want, have, sizeof want) == 0 && rule.n_execute == before + !rule.off, SAY("EXT-47: %s, in the same scheduler"), rule.off ? "unfused" : "fused");
        CHECK(ggml_backend_sched_get_buffer_size(s, t->main) >= (rule.off ? unfused : fused), SAY("EXT-47: with the memory that it takes"));
    }
    ggml_backend_sched_free(s);
    probe_end(&rule, "EXT-47");
}

/* EXT-48 */

static int seen, asked_for;

static bool watch(struct ggml_tensor * t, bool ask, void * data) {
    (void) data;
    asked_for += ask;
    seen += !ask && t->data != NULL;
    return true;
}

static void where(struct team * t) {
    struct probe rule = { .name = "rule", .match = propose }, single = { .name = "single", .op = GGML_OP_ADD };
    ggml_backend_sched_t s = team_sched(t, false);
    CHECK(run(t, s, dies_early, want), SAY("EXT-48: unfused"));
    CHECK(probe_register(&rule, t->dev) && probe_register(&single, t->dev), SAY("EXT-48: a rule, and a kernel for one of its nodes"));
    CHECK(run(t, s, dies_early, have) && rule.n_execute == 1 && single.n_execute == 0, SAY("EXT-48: one copy, no callback: fused"));

    ggml_backend_sched_reset(s);
    seen = asked_for = 0;
    int matched      = rule.n_match;
    ggml_backend_sched_set_eval_callback(s, watch, NULL);
    CHECK(run(t, s, dies_early, have) && memcmp(want, have, sizeof want) == 0, SAY("EXT-48: with a callback"));
    CHECK(seen == ggml_graph_n_nodes(k.graph) && asked_for == seen, SAY("EXT-48: every node is shown, with its data (%d)"), seen);
    CHECK(rule.n_execute == 1 && rule.n_match == matched && single.n_execute == 1, SAY("EXT-48: nothing is fused, kernels for single nodes run"));
    ggml_backend_sched_free(s);

    s                = team_sched(t, true);
    const int copies = ggml_backend_sched_get_n_copies(s);
    CHECK(copies > 1, SAY("EXT-48: %d copies"), copies);
    for (int i = 0; i < 3; i++) {
        CHECK(run(t, s, dies_early, have) && memcmp(want, have, sizeof want) == 0, SAY("EXT-48: several copies: run %d"), i);
    }
    CHECK(rule.n_execute == 1 && rule.n_match == matched && single.n_execute == 4, SAY("EXT-48: nothing is fused, kernels for single nodes run (%d)"), single.n_execute);
    ggml_backend_sched_free(s);

    ggml_reset(ctx);
    memset(&k, 0, sizeof k);
    dies_early();
    ggml_backend_buffer_t b = ggml_backend_alloc_ctx_tensors(ctx, t->main);
    for (int i = 0; i < 3; i++) {
        fill(k.in[i], i + 1);
    }
    CHECK(ggml_backend_graph_compute(t->main, k.graph) == GGML_STATUS_SUCCESS && rule.n_execute == 1 && rule.n_match == matched && single.n_execute == 5, SAY("EXT-48: direct computation fuses nothing, kernels for single nodes run"));
    CHECK(memcmp(k.out[0]->data, want[0], ggml_nbytes(k.out[0])) == 0, SAY("EXT-48: its result"));
    ggml_backend_buffer_free(b);
    probe_end(&rule, "EXT-48");
    probe_end(&single, "EXT-48");
}

/* Public report 22: two backends whose memory is the host's, the same graph three times, with extensions on both. */

static struct ggml_tensor * across[5];

static void crossing(void) {
    across[0]               = ggml_sqr(ctx, in(0));
    across[1]               = ggml_scale(ctx, across[0], 2);
    across[2]               = ggml_add(ctx, across[1], in(1));
    across[3]               = ggml_scale(ctx, across[2], 0.5f);
    across[4]               = ggml_sqr(ctx, across[3]);
    k.on_cpu[0]             = across[2];
    k.on_cpu[1]             = across[3];
    finish(across[4]);
}

static void report_22(void) {
    struct team * t      = &fusion_teams[1];
    struct probe  pair   = { .name = "dev.pair", .pattern = { GGML_OP_SQR, GGML_OP_SCALE } }, host = { .name = "cpu.pair", .pattern = { GGML_OP_ADD, GGML_OP_SCALE } };
    struct probe  single = { .name = "dev.sqr", .op = GGML_OP_SQR };
    for (int with = 0; with < 2; with++) {
        if (with) {
            CHECK(probe_register(&pair, t->dev) && probe_register(&host, fake_cpu()) && probe_register(&single, t->dev), "report 22: rules on both");
        }
        ggml_backend_sched_t s = team_sched(t, false);
        for (int round = 0; round < 2; round++) {
            ggml_backend_sched_reset(s);
            CHECK(fusion_alloc(t, s, crossing), "report 22, EXT-35: alloc %d", round);
            for (int i = 0; i < 3; i++) {
                CHECK(fusion_compute(s, with ? have : want) && (!with || memcmp(want, have, sizeof want) == 0), "report 22, EXT-35: compute %d of 3, the same each time", i + 1);
            }
        }
        ggml_backend_sched_free(s);
    }
    CHECK(pair.n_execute == 6 && host.n_execute == 6 && single.n_execute == 6, "report 22: each backend's own (%d, %d, %d)", pair.n_execute, host.n_execute, single.n_execute);
    CHECK(probe_live(&pair) == 0 && pair.n_prepare == 2, "report 22, EXT-35: prepared once for each allocation");
    probe_end(&pair, "report 22");
    probe_end(&host, "report 22");
    probe_end(&single, "report 22");
}

/* Public report 30: norm and product, and chains of sums. Each norm has its own eps. */

static float norm_eps(int i) { return i ? 10.0f : 1e-5f; }

static struct ggml_tensor *norms[2], *scaled[2];

static void norm_graph(void) {
    for (int i = 0; i < 2; i++) {
        struct ggml_tensor * w = k.in[2 + i] = input(i ? "w1" : "w0", 16, 1);
        norms[i]  = ggml_rms_norm(ctx, in(i), norm_eps(i));
        scaled[i] = ggml_mul(ctx, norms[i], w);
    }
    k.graph = ggml_new_graph_custom(ctx, 64, false);
    ggml_build_forward_expand(k.graph, scaled[0]);
    ggml_build_forward_expand(k.graph, scaled[1]);
    k.n = 2;
}
static void norm_mul(void) { norm_graph(), finish(scaled[0]), finish(scaled[1]), k.first = norms[1]; }
static void norm_mul_first(void) { norm_graph(), finish(scaled[0]), finish(scaled[1]), k.first = norms[0]; }
static void norm_user(void) { norm_graph(), finish(scaled[0]), finish(scaled[1]), finish(ggml_scale(ctx, norms[1], 2)), k.first = norms[1]; }
static void norm_output(void) { norm_graph(), finish(scaled[0]), finish(scaled[1]), finish(norms[1]), k.first = norms[1]; }
static void norm_viewed(void) { norm_graph(), finish(scaled[0]), finish(scaled[1]), finish(ggml_cont(ctx, ggml_view_1d(ctx, norms[1], 16, 64))), k.first = norms[1]; }
static void norm_alias(void) {
    /* the weights are the first row of what is normed, and the product is written over it */
    struct ggml_tensor * x = ggml_scale(ctx, in(0), 1);
    norms[0]               = ggml_rms_norm(ctx, x, 1e-5f);
    scaled[0]              = ggml_mul(ctx, norms[0], ggml_view_1d(ctx, x, 16, 0));
    k.graph                = ggml_new_graph_custom(ctx, 64, false);
    ggml_build_forward_expand(k.graph, scaled[0]->src[1]);
    finish(scaled[0]);
    k.first = norms[0];
    k.n     = 2;
}

static struct ggml_tensor * sums[3];

static void sum_graph(void) {
    sums[0] = ggml_add(ctx, in(0), in(1));
    sums[1] = ggml_add(ctx, sums[0], in(2));
    sums[2] = ggml_add(ctx, sums[1], in(3));
    k.first = sums[0];
    k.n     = 3;
}
static void sum_chain(void) { sum_graph(), finish(sums[2]); }
static void sum_user(void) { sum_graph(), finish(sums[2]), finish(ggml_sqr(ctx, sums[1])); }
static void sum_alias(void) {
    /* x + p, written over p, + p: the second sum reads what the first has written */
    sums[0] = ggml_add(ctx, in(0), in(1));
    sums[1] = ggml_add_inplace(ctx, sums[0], in(2));
    sums[2] = ggml_add(ctx, sums[1], sums[1]);
    finish(sums[2]);
    k.first = sums[0];
    k.n     = 3;
}

static void report_30(void) {
    const double near = 1e-6;
    fusion_case_near("report 30: norm and product, the second of two", norm_mul, NULL, near);
    fusion_case_near("report 30: norm and product, the first of two", norm_mul_first, NULL, near);
    fusion_case_near("report 30: another user of the norm", norm_user, "read from outside the match", near);
    fusion_case_near("report 30: the norm is an output", norm_output, "flagged as an output", near);
    fusion_case_near("report 30: the norm is viewed", norm_viewed, "read from outside the match", near);
    fusion_case_near("report 30: weights alias what is normed", norm_alias, NULL, near);
    fusion_case("report 30: a chain of sums", sum_chain, NULL);
    fusion_case("report 30: another user in a chain of sums", sum_user, "read from outside the match");
    fusion_case("report 30: a chain of sums with an alias", sum_alias, NULL);
}

int main(void) {
    fusion_open();
    delays_alone();
    for (int i = 0; i < 2; i++) {
        struct team * t = &fusion_teams[i];
        asking(t);
        optimizing(t);
        stays(t);
        sizes(t);
        where(t);
    }
    report_22();
    report_30();
    return fusion_close();
}
