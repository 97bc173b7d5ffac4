/* ABI-3 and ABI-4: an allocated graph is explained, as text, as JSON and for Graphviz, on demand and into a file; the environment forces
 * and forbids; counters and step times. Explanations are read back: JSON by explain_json.py. */
#include "ext_util.h"

#include <unistd.h>

enum { N = 16, FORMATS = 3 };

static const char * const FORMAT[FORMATS] = { "text", "JSON", "DOT" };

/* an override, one that does not prefer itself, a kernel of an operator, and a rule with scratch memory */
static struct probe scale = { .name = "t.scale", .op = GGML_OP_SCALE, .priority = 7 };
static struct probe add   = { .name = "t.add", .op = GGML_OP_ADD, .not_preferred = true, .why = "the device adds as well" };
static struct probe own   = { .name = "t.affine", .op = GGML_OP_CUSTOM, .op_name = "test.affine.v1" };
static struct probe fuse  = { .name = "t.mul_add", .pattern = { GGML_OP_MUL, GGML_OP_ADD }, .match_op = GGML_OP_MUL, .workspace = 4096 };
static struct probe * const PROBES[] = { &scale, &add, &own, &fuse };
enum { N_PROBES = sizeof PROBES / sizeof *PROBES };

static struct ggml_tensor *x, *y, *m1, *m2, *out;
static struct ggml_cgraph * graph;

/* 0 scale -> 1 affine -> 2 mul, 3 add: fused -> 4 mul, 5 add: not, the product is read again -> 6 add */
static void build(void) {
    ctx_open();
    x                      = input("x", N, 2);
    y                      = input("y", N, 2);
    struct ggml_tensor * s = named(ggml_scale(ctx, x, 2.0f), "scaled");
    struct ggml_tensor * a = named(affine("test.affine.v1", s, 3.0f, 1.0f), "shifted");
    m1                     = named(ggml_mul(ctx, a, y), "product");
    struct ggml_tensor * b = named(ggml_add(ctx, m1, x), "sum");
    m2                     = named(ggml_mul(ctx, b, y), "again");
    struct ggml_tensor * c = named(ggml_add(ctx, m2, x), "more");
    out                    = named(ggml_add(ctx, c, m2), "out");
    graph                  = graph_of(out);
}

/* The graph anew, with memory: a tensor that had some keeps it. */
static bool again(struct team * t, ggml_backend_sched_t s) {
    ggml_backend_sched_reset(s);
    ggml_free(ctx);
    build();
    return team_alloc(t, s, graph);
}

static void fill_inputs(void) {
    fill(x, 1);
    fill(y, 2);
}

static float want(int64_t i) {
    const float vx = value(i, 1), vy = value(i, 2);
    const float again = ((vx * 2.0f * 3.0f + 1.0f) * vy + vx) * vy;
    return again + vx + again;
}

static bool right(void) {
    bool good = true;
    for (int64_t i = 0; i < ggml_nelements(out); i++) {
        good &= fabsf(got(out, i) - want(i)) <= 1e-4f * fmaxf(1.0f, fabsf(want(i)));
    }
    return good;
}

static bool compute(ggml_backend_sched_t s) {
    fill_inputs();
    return ggml_backend_sched_graph_compute(s, graph) == GGML_STATUS_SUCCESS && right();
}

/* The whole explanation; the caller frees it. */
static char * explained(ggml_backend_sched_t s, enum ggml_ext_explain_format format) {
    const size_t n    = ggml_ext_explain(s, format, NULL, 0);
    char *       text = malloc(n + 1);
    text[0]           = '\0';
    if (n == 0 || ggml_ext_explain(s, format, text, n + 1) != n || strlen(text) != n) {
        CHECK(false, "ABI-3: %s is as long as was measured", FORMAT[format]);
    }
    return text;
}

#define SAYS(text, name, ...) says(text, __FILE__, __LINE__, name, (const char *[]){ __VA_ARGS__, NULL })

/* The texts are there, in this order. */
static void says(const char * text, const char * file, int line, const char * name, const char ** parts) {
    const char * at = text;
    for (; *parts; parts++) {
        const char * found = strstr(at, *parts);
        const int    n     = (int) strcspn(*parts, "\n");
        if (!check_that(found != NULL, "it is there, behind what is asked for before", file, line, "%s: '%.*s'", name, n, *parts)) {
            fprintf(stderr, "%s\n", text);
            return;
        }
        at = found + strlen(*parts);
    }
}

static bool put_file(const char * path, const char * text) {
    FILE *     f    = fopen(path, "wb");
    const bool good = f && fputs(text, f) >= 0 && fputc('\n', f) != EOF;
    return f && fclose(f) == 0 && good;
}

static char * get_file(const char * path) {
    FILE * f    = fopen(path, "rb");
    char * text = calloc(1, 1 << 20);
    if (f) {
        text[fread(text, 1, (1 << 20) - 1, f)] = '\0';
        fclose(f);
    }
    return text;
}

/* explain_json.py finds no fault; `totals`: what it is to find. */
static bool json_holds(const char * path, const char * totals) {
    char         command[512];
    const char * root = getenv("TESTS_ROOT");
    snprintf(command, sizeof command, "python3 '%s/tests/c/explain_json.py' %s %s >&2", root ? root : ".", path, totals);
    fflush(NULL);
    return system(command) == 0;
}

static void register_all(void) {
    for (int i = 0; i < N_PROBES; i++) {
        PROBES[i]->device              = fake_cpu();
        struct ggml_ext_kernel_desc d  = probe_desc(PROBES[i]);
        const uint32_t              on = PROBES[i] == &fuse ? GGML_EXT_KERNEL_DETERMINISTIC : 0;
        CHECK(ggml_ext_register_kernel_ex(fake_cpu(), &d, on), "'%s' is registered", PROBES[i]->name);
    }
}

static void content(ggml_backend_sched_t s) {
    char * text = explained(s, GGML_EXT_EXPLAIN_TEXT);
    SAYS(text, "ABI-3: text",
         "plan: 1 split, 7 nodes in 4 steps: 3 launches for 4 nodes (1 fusion for 2 nodes), 1 native range of 3 nodes\n",
         "memory: 1 node without (128 bytes), 4096 bytes of workspace; registrations refused: 3\n",
         "split 0: 7 nodes on backend CPU, device CPU\n", "workspace: 4096 bytes, for t.mul_add\n",
         "step 0: kernel t.scale, 1 node; priority 7\n", "0  SCALE", "f32 [16, 2]", "\"scaled\"\n", "reads \"x\"\n",
         "step 1: kernel t.affine, 1 node\n", "1  test.affine.v1", "\"shifted\"\n", "reads \"scaled\" (node 0)\n",
         "step 2: fusion t.mul_add, 2 nodes; workspace 4096 bytes; deterministic\n", "2  MUL", "\"product\", no memory\n", "3  ADD", "\"sum\"\n",
         "reads \"shifted\" (node 1), \"y\", \"x\"\n", "step 3: native code, 3 nodes\n", "4  MUL", "\"again\"\n",
         "not t.mul_add for 2 nodes: node 4 is read from outside the match", "5  ADD", "not t.add: the device adds as well\n", "6  ADD", "\"out\", output\n",
         "not t.add: the device adds as well\n");
    CHECK(!strstr(text, "STALE") && !strstr(text, "time:") && !strstr(text, "GGML_EXT_"), "ABI-3: text: nothing else");
    free(text);

    text = explained(s, GGML_EXT_EXPLAIN_JSON);
    CHECK(!strchr(text, '\n'), "ABI-3: JSON is one line");
    CHECK(put_file("plan.json", text) && json_holds("plan.json", "nodes=7 launches=3 fusions=1 fused_nodes=2 skipped=1 skipped_bytes=128 "
                                                                 "workspace=4096 refused=3 native_nodes=3 mean_ns=0 lines=1"),
          "ABI-3: JSON holds to its schema");
    SAYS(text, "ABI-3: JSON", "\"kind\":\"fusion\",\"launch\":{\"registration\":\"t.mul_add\",\"priority\":0,\"flags\":[\"deterministic\"],\"forced\":false,\"workspace\":4096",
         "\"name\":\"product\",\"op\":\"MUL\",\"type\":\"f32\",\"ne\":[16,2,1,1],\"bytes\":128,\"owns\":true,\"computed\":true,\"output\":false,\"skipped\":true",
         "\"tried\":[{\"registration\":\"t.add\",\"nodes\":1,\"reason\":\"the device adds as well\"}]");
    free(text);

    text = explained(s, GGML_EXT_EXPLAIN_DOT);
    SAYS(text, "ABI-3: DOT", "digraph plan {\n", "<B>t.mul_add</B>", "STYLE=\"dashed\"", "product", "native code", "the device adds as well", "s0_2 -> s0_3", "}\n");
    free(text);
}

static void like_snprintf(ggml_backend_sched_t s) {
    for (int f = 0; f < FORMATS; f++) {
        char *       all  = explained(s, (enum ggml_ext_explain_format) f);
        const size_t n    = strlen(all);
        bool         good = n > 0;
        for (size_t size = 0; size <= n + 2; size++) {
            /* as large as is said, so that a sanitizer sees a byte too many */
            char * dst = malloc(size + 1);
            memset(dst, 'Z', size + 1);
            good &= ggml_ext_explain(s, (enum ggml_ext_explain_format) f, dst, size) == n && dst[size] == 'Z';
            if (size > 0) {
                const size_t wrote = size - 1 < n ? size - 1 : n;
                good &= memcmp(dst, all, wrote) == 0 && dst[wrote] == '\0' && (wrote + 1 >= size || dst[wrote + 1] == 'Z');
            }
            free(dst);
        }
        CHECK(good, "ABI-3: %s is cut at every size from 0 to %zu", FORMAT[f], n + 2);
        free(all);
    }
}

/* A callback of the scheduler's. */
static bool explain_in_callback(struct ggml_tensor * t, bool ask, void * data) {
    (void) t;
    static int once;
    if (ask && once++ == 0) {
        FAILS(ggml_ext_explain(data, GGML_EXT_EXPLAIN_TEXT, NULL, 0) == 0, GGML_EXT_CODE_RE_ENTERED, NULL, NULL, "ABI-3: not from a callback");
    }
    return true;
}

static void errors(struct team * t, ggml_backend_sched_t s) {
    char c = 'Z';
    FAILS(ggml_ext_explain(NULL, GGML_EXT_EXPLAIN_TEXT, NULL, 0) == 0, GGML_EXT_CODE_NULL_ARGUMENT, NULL, NULL, "ABI-3: scheduler NULL", "ggml_ext_explain");
    FAILS(ggml_ext_explain(s, GGML_EXT_EXPLAIN_TEXT, NULL, 7) == 0, GGML_EXT_CODE_NULL_ARGUMENT, NULL, NULL, "ABI-3: destination NULL");
    FAILS(ggml_ext_explain(s, (enum ggml_ext_explain_format) 3, &c, 1) == 0 && c == 'Z', GGML_EXT_CODE_BAD_ARGUMENT, NULL, NULL, "ABI-3: no such format", "3");
    ggml_backend_sched_reset(s);
    FAILS(ggml_ext_explain(s, GGML_EXT_EXPLAIN_JSON, &c, 1) == 0 && c == 'Z', GGML_EXT_CODE_BAD_ARGUMENT, NULL, NULL, "ABI-3: after a reset", "no graph");
    ggml_free(ctx);
    build();
    CHECK(ggml_backend_sched_reserve(s, graph), "it reserves");
    FAILS(ggml_ext_explain(s, GGML_EXT_EXPLAIN_JSON, NULL, 0) == 0, GGML_EXT_CODE_BAD_ARGUMENT, NULL, NULL, "ABI-3: after a reserve", "no graph");
    ggml_backend_sched_reset(s);
    ggml_backend_sched_set_eval_callback(s, explain_in_callback, s);
    CHECK(again(t, s) && compute(s), "ABI-3: watched: right");
    char * text = explained(s, GGML_EXT_EXPLAIN_TEXT);
    SAYS(text, "ABI-3: watched: nothing is fused", "2 launches for 2 nodes (no fusion)", "kernel t.scale", "native code, 5 nodes");
    free(text);
    /* in pieces, as the callback wants to see each node, and still one run */
    ggml_ext_set_profiling(true);
    CHECK(compute(s), "ABI-4: watched and timed: right");
    ggml_ext_set_profiling(false);
    text = explained(s, GGML_EXT_EXPLAIN_JSON);
    CHECK(strstr(text, "\"runs\":1,") && !strstr(text, "\"runs\":0,") && !strstr(text, "\"runs\":2,") && !strstr(text, "\"runs\":5,"), "ABI-4: a run in pieces is one run");
    free(text);
    ggml_backend_sched_set_eval_callback(s, NULL, NULL);
    ggml_backend_sched_reset(s);
}

static void stale(struct team * t, ggml_backend_sched_t s) {
    CHECK(again(t, s), "it allocates");
    CHECK(ggml_ext_invalidate(fake_cpu(), "t.add"), "t.add is invalidated");
    char * text = explained(s, GGML_EXT_EXPLAIN_TEXT);
    SAYS(text, "ABI-3: a stale plan says so", "STALE: ", "a registration or a policy changed", "fusion t.mul_add");
    free(text);
    ggml_backend_sched_reset(s);
}

/* One allocation and computation with a switch of the environment; the text, which the caller frees. */
static char * with_env(struct team * t, ggml_backend_sched_t s, const char * variable, const char * names) {
    setenv(variable, names, 1);
    CHECK(again(t, s) && compute(s), "ABI-3: %s=%s: right", variable, names);
    char * text = explained(s, GGML_EXT_EXPLAIN_TEXT);
    char * json = explained(s, GGML_EXT_EXPLAIN_JSON);
    CHECK(put_file("env.json", json) && json_holds("env.json", ""), "ABI-3: %s=%s: JSON", variable, names);
    free(json);
    unsetenv(variable);
    ggml_backend_sched_reset(s);
    return text;
}

static void environment(struct team * t, ggml_backend_sched_t s) {
    char * text = with_env(t, s, "GGML_EXT_FORBID", "nobody, t.mul_add ,t.scale");
    SAYS(text, "ABI-3: forbidden", "GGML_EXT_FORBID names t.scale, t.mul_add\n", "step 0: native code, 1 node\n", "\"scaled\"\n", "not t.scale: GGML_EXT_FORBID names it\n",
         "kernel t.affine", "native code, 5 nodes");
    CHECK(!strstr(text, "fusion t."), "ABI-3: forbidden: nothing is fused");
    free(text);
    text = with_env(t, s, "GGML_EXT_FORCE", "t.add");
    SAYS(text, "ABI-3: forced before native code and rules", "GGML_EXT_FORCE names t.add\n", "2  MUL", "\"product\"\n",
         "not t.mul_add for 2 nodes: GGML_EXT_FORCE names 't.add', which computes one of the nodes by itself\n", "kernel t.add, 1 node; GGML_EXT_FORCE names it\n");
    free(text);
    text = with_env(t, s, "GGML_EXT_FORCE", "t.mul_add,t.add");
    SAYS(text, "ABI-3: forced rules first", "fusion t.mul_add, 2 nodes; GGML_EXT_FORCE names it", "kernel t.add, 1 node; GGML_EXT_FORCE names it\n");
    free(text);

    /* a node that only a forbidden kernel computes */
    setenv("GGML_EXT_FORBID", "*", 1);
    FAILS(!again(t, s), GGML_EXT_CODE_NO_KERNEL, NULL, EXT_ANY, "ABI-3: all are forbidden: the operator's node has nobody", "test.affine.v1", "'t.affine' on device 'CPU': GGML_EXT_FORBID names it");
    unsetenv("GGML_EXT_FORBID");
    own.off = true;
    own.why = "only on Sundays";
    FAILS(!again(t, s), GGML_EXT_CODE_NO_KERNEL, NULL, EXT_ANY, "ABI-3: its only kernel refuses", "'t.affine' on device 'CPU': only on Sundays");
    own.off = false;
    CHECK(again(t, s) && compute(s), "ABI-3: without the switch as before");
    ggml_backend_sched_reset(s);
}

/* Where two kernels are for the same operator, the switches go before priority. */
static void order(struct team * t, ggml_backend_sched_t s) {
    struct probe other = { .name = "t.scale_other", .op = GGML_OP_SCALE, .priority = -3 };
    CHECK(probe_register(&other, fake_cpu()), "a second kernel for SCALE");
    char * text = with_env(t, s, "GGML_EXT_FORCE", "t.scale_other");
    SAYS(text, "ABI-3: forced before one of higher priority", "kernel t.scale_other, 1 node; GGML_EXT_FORCE names it; priority -3\n");
    free(text);
    other.off = true;
    other.why = "not this one";
    text      = with_env(t, s, "GGML_EXT_FORCE", "t.scale_other");
    SAYS(text, "ABI-3: forced where it supports the node only", "kernel t.scale, 1 node; priority 7\n", "not t.scale_other: not this one\n");
    free(text);
    probe_end(&other, "order");
}

static int  warnings;
static char warning[512];

static void count_warnings(enum ggml_log_level level, const char * text, void * data) {
    (void) data;
    check_log_errors += level == GGML_LOG_LEVEL_ERROR;
    if (level == GGML_LOG_LEVEL_WARN) {
        warnings++;
        snprintf(warning, sizeof warning, "%s", text);
    }
}

static void into_file(struct team * t, ggml_backend_sched_t s, const char * path, const char * first, const char * second) {
    unlink(path);
    ggml_backend_sched_reset(s);
    ggml_free(ctx);
    build();
    setenv("GGML_EXT_EXPLAIN", path, 1);
    size_t size = 0;
    ggml_backend_sched_reserve_size(s, graph, &size);
    CHECK(ggml_backend_sched_reserve(s, graph) && access(path, F_OK) != 0, "ABI-3: %s: measuring and reserving are not explained", path);
    CHECK(again(t, s), "it allocates");
    char * text = get_file(path);
    SAYS(text, "ABI-3: into a file", first);
    ggml_backend_sched_reset(s);
    CHECK(again(t, s), "it allocates");
    char * same = get_file(path);
    CHECK(strcmp(text, same) == 0, "ABI-3: %s: the same plan is explained once", path);
    free(same);
    setenv("GGML_EXT_FORBID", "t.mul_add", 1);
    CHECK(again(t, s), "it allocates");
    unsetenv("GGML_EXT_FORBID");
    same = get_file(path);
    SAYS(same, "ABI-3: another plan", second);
    const bool appended = strncmp(text, same, strlen(text)) == 0 && strlen(same) > strlen(text);
    CHECK(appended == !strstr(path, ".dot"), "ABI-3: %s: %s", path, appended ? "appended" : "replaced");
    free(same);
    free(text);
    ggml_backend_sched_reset(s);
    unsetenv("GGML_EXT_EXPLAIN");
}

static void files(struct team * t, ggml_backend_sched_t s) {
    into_file(t, s, "plans.txt", "plan: 1 split", "split 0: 7 nodes on backend CPU, device CPU\n  GGML_EXT_FORBID names t.mul_add\n");
    into_file(t, s, "plans.json", "{\"version\":1", "\"forbidden\":[\"t.mul_add\"]");
    CHECK(json_holds("plans.json", "lines=2 fusions=0 nodes=7"), "ABI-3: a file of JSON lines");
    into_file(t, s, "plans.dot", "<B>t.mul_add</B>", "digraph plan {\n");
    char * text = get_file("plans.dot");
    CHECK(!strstr(text, "t.mul_add"), "ABI-3: the last graph alone");
    free(text);
    ggml_log_set(count_warnings, NULL);
    check_log_errors = 0;
    setenv("GGML_EXT_EXPLAIN", "no/such/folder/plans.txt", 1);
    for (int i = 0; i < 3; i++) {
        CHECK(again(t, s) && compute(s), "ABI-3: a file that cannot be written harms nothing");
        ggml_backend_sched_reset(s);
    }
    unsetenv("GGML_EXT_EXPLAIN");
    warning[strcspn(warning, "\n")] = '\0';
    CHECK(warnings == 1 && check_log_errors == 0 && strstr(warning, "no/such/folder/plans.txt"), "ABI-3: it is one warning: %d, %s", warnings, warning);
    check_quiet();
}

static struct ggml_ext_counters counters(const struct probe * p) {
    GGML_EXT_INIT(ggml_ext_counters, c);
    CHECK(ggml_ext_counters(fake_cpu(), p->name, &c), "ABI-4: counters of '%s'", p->name);
    return c;
}

#define COUNTS(p, before, s, r, f, no, e)                                                                                                       \
    do {                                                                                                                                        \
        const struct ggml_ext_counters c = counters(p), b = (before);                                                                           \
        CHECK(c.selected - b.selected == (s) && c.ran - b.ran == (r) && c.fused_nodes - b.fused_nodes == (f) && c.refused - b.refused == (no) && \
                  c.errors - b.errors == (e),                                                                                                   \
              "ABI-4: '%s': selected %d, ran %d, fused nodes %d, refused %d, errors %d", (p)->name, (int) (c.selected - b.selected),            \
              (int) (c.ran - b.ran), (int) (c.fused_nodes - b.fused_nodes), (int) (c.refused - b.refused), (int) (c.errors - b.errors));        \
    } while (0)

static void count(struct team * t, ggml_backend_sched_t s) {
    struct ggml_ext_counters before[N_PROBES];
    for (int i = 0; i < N_PROBES; i++) {
        before[i] = counters(PROBES[i]);
    }
    CHECK(again(t, s) && compute(s) && compute(s) && compute(s), "three computations");
    COUNTS(&scale, before[0], 1, 3, 0, 0, 0);
    COUNTS(&add, before[1], 0, 0, 0, 2, 0);
    COUNTS(&own, before[2], 1, 3, 0, 0, 0);
    COUNTS(&fuse, before[3], 1, 3, 6, 1, 0);
    CHECK(counters(&scale).ns == before[0].ns && counters(&fuse).ns == before[3].ns, "ABI-4: no times without profiling");
    ggml_backend_sched_reset(s);
    /* what is asked elsewhere or never is not counted */
    before[0] = counters(&scale);
    before[1] = counters(&add);
    CHECK(ggml_backend_supports_op(t->main, out), "a device is asked");
    setenv("GGML_EXT_FORBID", "t.add,t.scale", 1);
    CHECK(again(t, s), "it allocates");
    unsetenv("GGML_EXT_FORBID");
    ggml_backend_sched_reset(s);
    COUNTS(&add, before[1], 0, 0, 0, 0, 0);
    COUNTS(&scale, before[0], 0, 0, 0, 0, 0);
    /* failures */
    before[3]            = counters(&fuse);
    fuse.fail_prepare_at = fuse.n_prepare + 1;
    FAILS(!again(t, s), GGML_EXT_CODE_CALLBACK, "t.mul_add", EXT_ANY, "ABI-4: prepare fails");
    COUNTS(&fuse, before[3], 1, 0, 0, 1, 1);
    ggml_backend_sched_reset(s);
    before[3]            = counters(&fuse);
    fuse.fail_execute_at = fuse.n_execute + 1;
    CHECK(again(t, s), "it allocates");
    FAILS(ggml_backend_sched_graph_compute(s, graph) != GGML_STATUS_SUCCESS, GGML_EXT_CODE_CALLBACK, "t.mul_add", EXT_ANY, "ABI-4: execute fails");
    COUNTS(&fuse, before[3], 1, 1, 2, 1, 1);
    char * text = explained(s, GGML_EXT_EXPLAIN_TEXT);
    SAYS(text, "ABI-3: after a failure too", "fusion t.mul_add");
    free(text);
    ggml_backend_sched_reset(s);
    GGML_EXT_INIT(ggml_ext_counters, c);
    FAILS(!ggml_ext_counters(fake_cpu(), "t.nobody", &c), GGML_EXT_CODE_UNKNOWN_NAME, "t.nobody", NULL, "ABI-4: counters of nobody");
    c = (struct ggml_ext_counters){ .struct_size = offsetof(struct ggml_ext_counters, ran), .ran = 99 };
    CHECK(ggml_ext_counters(fake_cpu(), "t.scale", &c) && c.selected > 0 && c.ran == 99, "ABI-4: members that an older caller lacks are not written");
}

static void profile(struct team * t, ggml_backend_sched_t s) {
    const uint64_t before = counters(&fuse).ns, other = counters(&add).ns;
    unlink("timed.txt");
    setenv("GGML_EXT_EXPLAIN", "timed.txt", 1);
    ggml_ext_set_profiling(true);
    CHECK(again(t, s) && access("timed.txt", F_OK) != 0, "ABI-4: a timed plan is written when it ran");
    CHECK(compute(s) && compute(s), "two computations");
    char * text = get_file("timed.txt");
    SAYS(text, "ABI-4: in the file", "time: ", "kernel t.scale, 1 node; priority 7; ", "native code, 3 nodes; ");
    CHECK(!strstr(text, "runs)") && !strstr(strstr(text, "plan: ") + 1, "plan: "), "ABI-4: in the file once, after the first run");
    free(text);
    unsetenv("GGML_EXT_EXPLAIN");
    text = explained(s, GGML_EXT_EXPLAIN_TEXT);
    SAYS(text, "ABI-4: times of each step", "time: ", "kernel t.scale", "(mean of 2 runs)\n", "kernel t.affine", "(mean of 2 runs)\n", "fusion t.mul_add",
         "(mean of 2 runs)\n", "native code, 3 nodes; ", "(mean of 2 runs)\n");
    free(text);
    text = explained(s, GGML_EXT_EXPLAIN_JSON);
    CHECK(put_file("timed.json", text) && json_holds("timed.json", "nodes=7"), "ABI-4: times in JSON");
    SAYS(text, "ABI-4: runs in JSON", "\"runs\":2", "\"runs\":2", "\"runs\":2", "\"runs\":2");
    CHECK(!strstr(text, "\"ns\":0"), "ABI-4: each step took its time");
    free(text);
    CHECK(counters(&fuse).ns > before && counters(&add).ns == other, "ABI-4: nanoseconds of the registration that ran");
    ggml_ext_set_profiling(false);
    const uint64_t after = counters(&fuse).ns;
    CHECK(compute(s) && counters(&fuse).ns == after, "ABI-4: and none when it is off again");
    ggml_backend_sched_reset(s);
}

/* A graph of two backends, the second without registrations. */
static void splits(bool parallel) {
    struct fake            f = { .only_op = GGML_OP_COUNT };
    struct team            t = team_fake(&f, "fake");
    ggml_backend_sched_t   s = team_sched(&t, parallel);
    build();
    for (int i = 0; i < 2; i++) {
        ggml_backend_sched_set_tensor_backend(s, ggml_graph_node(graph, i), t.list[1]);
    }
    f.host_memory = false;
    for (int i = 2; i < ggml_graph_n_nodes(graph); i++) {
        ggml_backend_sched_set_tensor_backend(s, ggml_graph_node(graph, i), t.main);
    }
    CHECK(ggml_backend_sched_alloc_graph(s, graph) && compute(s), "ABI-3: two backends: right");
    char * text = explained(s, GGML_EXT_EXPLAIN_TEXT);
    SAYS(text, "ABI-3: two backends", "plan: 2 splits, 7 nodes in 3 steps: 2 launches for 2 nodes", "split 0: 2 nodes on backend CPU, device CPU\n", "kernel t.affine",
         "split 1: 5 nodes on backend fake, device fake\n", "copied from backend CPU: \"shifted\" (split 0, CPU, node 1), 128 bytes\n", "step 2: native code, 5 nodes\n");
    free(text);
    text = explained(s, GGML_EXT_EXPLAIN_JSON);
    CHECK(put_file("splits.json", text) && json_holds("splits.json", "splits=2 nodes=7"), "ABI-3: two backends in JSON");
    free(text);
    text = explained(s, GGML_EXT_EXPLAIN_DOT);
    SAYS(text, "ABI-3: two backends in DOT", "cluster_0", "backend CPU", "cluster_1", "backend fake", "s0_1 -> s1_0 [style=dashed, label=\" copied\"]");
    free(text);
    ggml_backend_sched_free(s);
    team_free(&t);
    ggml_free(ctx);
}

/* Names that mean something to every form. */
static void hostile(struct team * t, ggml_backend_sched_t s) {
    const char * name = "a\"b\\c\n<&>'\xff\x01\xc3\xa9\xe2\x80\xae\xe2\x80\xa8}";
    build();
    named(m1, name);
    named(x, name);
    CHECK(team_alloc(t, s, graph) && compute(s), "a strange name: right");
    char * text = explained(s, GGML_EXT_EXPLAIN_TEXT);
    SAYS(text, "ABI-3: a strange name in text", "\"a\\\"b\\\\c\\n<&>'\\xff\\u{1}\xc3\xa9\\u{202e}\\u{2028}}\"");
    free(text);
    text = explained(s, GGML_EXT_EXPLAIN_JSON);
    CHECK(put_file("hostile.json", text) && json_holds("hostile.json", "nodes=7"), "ABI-3: a strange name in JSON");
    SAYS(text, "ABI-3: a strange name in JSON", "\"name\":\"a\\\"b\\\\c\\n<&>'\xef\xbf\xbd\\u0001\xc3\xa9\xe2\x80\xae\\u2028}\"");
    free(text);
    text = explained(s, GGML_EXT_EXPLAIN_DOT);
    SAYS(text, "ABI-3: a strange name in DOT", "a&quot;b\\c &lt;&amp;&gt;&#39;");
    free(text);
    ggml_backend_sched_reset(s);
    ggml_free(ctx);
}

/* Nothing is registered: there is still a graph to explain. */
static void nothing(struct team * t, ggml_backend_sched_t s) {
    ctx_open();
    x   = input("x", N, 2);
    out = named(ggml_sqr(ctx, named(ggml_view_1d(ctx, x, N, 0), "part")), "out");
    graph = graph_of(out);
    CHECK(team_alloc(t, s, graph), "it allocates");
    char * text = explained(s, GGML_EXT_EXPLAIN_TEXT);
    SAYS(text, "ABI-3: nothing registered", "plan: 1 split, 2 nodes in 1 step: 0 launches for 0 nodes", "native code, 2 nodes\n", "VIEW", "\"part\", computes nothing\n", "SQR", "\"out\", output\n");
    free(text);
    ggml_ext_set_profiling(true);
    CHECK(ggml_backend_sched_graph_compute(s, graph) == GGML_STATUS_SUCCESS, "it computes");
    ggml_ext_set_profiling(false);
    text = explained(s, GGML_EXT_EXPLAIN_JSON);
    CHECK(put_file("nothing.json", text) && json_holds("nothing.json", "launches=0 nodes=2") && strstr(text, "\"runs\":1,"), "ABI-4: nothing registered: the time of native code");
    free(text);
    ggml_backend_sched_reset(s);
    ggml_free(ctx);
}

int main(void) {
    check_quiet();
    unsetenv("GGML_EXT_FORBID");
    unsetenv("GGML_EXT_FORCE");
    unsetenv("GGML_EXT_EXPLAIN");
    unsetenv("GGML_EXT_PROFILE");
    CHECK(ggml_ext_features() & GGML_EXT_FEATURE_EXPLAIN && ggml_ext_features() & GGML_EXT_FEATURE_COUNTERS, "ABI-1: the library says that it has this");
    struct team          t = team_cpu();
    ggml_backend_sched_t s = team_sched(&t, false);
    nothing(&t, s);
    CHECK(affine_register("test.affine.v1"), "an operator");
    register_all();
    build();
    CHECK(team_alloc(&t, s, graph), "it allocates");
    content(s);
    CHECK(compute(s), "it computes");
    content(s);
    like_snprintf(s);
    errors(&t, s);
    stale(&t, s);
    environment(&t, s);
    order(&t, s);
    files(&t, s);
    count(&t, s);
    profile(&t, s);
    ggml_free(ctx);
    hostile(&t, s);
    splits(false);
    splits(true);
    ggml_backend_sched_free(s);
    for (int i = 0; i < N_PROBES; i++) {
        probe_end(PROBES[i], "end");
    }
    team_free(&t);
    return check_done();
}
