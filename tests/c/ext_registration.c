/* Registration of operators, kernels and rules: EXT-1 to EXT-9; scopes: ABI-6. */
#include "ext_util.h"

#include <pthread.h>
#include <stdatomic.h>

#define OP "test.affine.v1"

static struct team  cpu, dev;
static struct fake  fake_dev;

static struct probe kernel_of(const char * name, enum ggml_op op) {
    struct probe p = { .name = name, .op = op };
    p.op_name      = op == GGML_OP_CUSTOM ? OP : NULL;
    return p;
}

static ggml_backend_buffer_t made[64];
static int                   n_made;

/* The tensors made so far are gone. */
static void fresh(void) {
    while (n_made > 0) {
        ggml_backend_buffer_free(made[--n_made]);
    }
    ggml_reset(ctx);
}

/* One node over an input, allocated and computed directly; what the backend answers. */
static enum ggml_status compute_one(struct team * t, struct ggml_tensor * x, struct ggml_tensor * y) {
    struct ggml_cgraph * g = graph_of(y);
    made[n_made++]         = ggml_backend_alloc_ctx_tensors(ctx, t->main);
    fill(x, 1);
    ggml_backend_tensor_memset(y, 0, 0, ggml_nbytes(y));
    return ggml_backend_graph_compute(t->main, g);
}

static bool is_affine(struct ggml_tensor * y, float scale, float shift) {
    for (int64_t i = 0; i < ggml_nelements(y); i++) {
        if (got(y, i) != value(i, 1) * scale + shift) {
            return false;
        }
    }
    return true;
}

/* EXT-1, EXT-2, EXT-3 */

static void devices(void) {
    struct probe a = kernel_of("same.name", GGML_OP_CUSTOM), b = a, again = a;
    CHECK(probe_register(&a, dev.dev), "EXT-1: a kernel on one device");
    struct ggml_tensor * x = input("x", 8, 2), * y = named(affine(OP, x, 2, 1), "y");
    CHECK(ggml_backend_dev_supports_op(dev.dev, y) && !ggml_backend_dev_supports_op(cpu.dev, y), "EXT-1: it is that device's alone");
    CHECK(probe_register(&b, cpu.dev), "EXT-1: another device may have one of the same name");
    CHECK(ggml_backend_dev_supports_op(cpu.dev, y), "EXT-1: and has it then");
    CHECK(compute_one(&cpu, x, y) == GGML_STATUS_SUCCESS && a.n_execute == 0 && b.n_execute == 1, "EXT-1: each device runs its own (%d, %d)", a.n_execute, b.n_execute);
    CHECK(is_affine(y, 2, 1), "EXT-1: result");
    /* a backend comes and goes, the device's registrations stay */
    ggml_backend_free(cpu.main);
    cpu.main = cpu.list[0] = ggml_backend_cpu_init();
    fresh();
    x = input("x", 8, 2);
    y = affine(OP, x, 3, 0);
    CHECK(compute_one(&cpu, x, y) == GGML_STATUS_SUCCESS && b.n_execute == 2 && is_affine(y, 3, 0), "EXT-1: another backend of the device");

    struct probe taken = kernel_of("same.name", GGML_OP_SQR);
    FAILS(!probe_register(&again, cpu.dev), GGML_EXT_CODE_NAME_TAKEN, "same.name", NULL, "EXT-3: a second registration of the name", "CPU");
    FAILS(!probe_register(&taken, cpu.dev), GGML_EXT_CODE_NAME_TAKEN, "same.name", NULL, "EXT-3: for another operator");
    FAILS(!affine_register(OP), GGML_EXT_CODE_NAME_TAKEN, OP, NULL, "EXT-3: a second operator of the name");
    fresh();
    x = input("x", 8, 2);
    y = affine(OP, x, 3, 0);
    CHECK(compute_one(&cpu, x, y) == GGML_STATUS_SUCCESS && b.n_execute == 3 && again.n_supports + taken.n_supports == 0, "EXT-3: the live one is untouched");
    probe_end(&a, "EXT-1");
    probe_end(&b, "EXT-1");
    CHECK(probe_register(&again, cpu.dev), "EXT-3: released, the name is free");
    probe_end(&again, "EXT-3");
    fresh();
}

/* Strings of a description are copied; callbacks get the data that was registered. */
static void copies(void) {
    char         name[32] = "copied.name", op[32] = OP;
    struct probe p        = kernel_of(name, GGML_OP_CUSTOM);
    p.op_name             = op;
    CHECK(probe_register(&p, cpu.dev), "EXT-2: registered before anything is asked");
    memset(name, '#', sizeof name - 1);
    memset(op, '#', sizeof op - 1);
    p.name                 = "copied.name";
    struct ggml_tensor * x = input("x", 4, 1), * y = affine(OP, x, 5, 0);
    CHECK(ggml_backend_dev_supports_op(cpu.dev, y) && p.n_supports == 1, "EXT-2: the capability query sees it");
    CHECK(compute_one(&cpu, x, y) == GGML_STATUS_SUCCESS && p.n_execute == 1 && is_affine(y, 5, 0), "EXT-2: callbacks get their data, names are copied");
    GGML_EXT_INIT(ggml_ext_counters, c);
    CHECK(ggml_ext_counters(cpu.dev, "copied.name", &c) && c.ran == 1, "EXT-2: it goes by the name it had");
    probe_end(&p, "EXT-2");
    fresh();
}

/* EXT-4 */

static struct {
    int                  n_src;
    struct ggml_tensor * src[2];
    char                 attrs[GGML_EXT_MAX_ATTR_SIZE];
    bool                 preset, aligned;
    void *               data;
} asked;

static bool ask_infer(struct ggml_tensor * const * src, int n_src, const void * attrs, struct ggml_ext_output * out, void * data) {
    asked.n_src = n_src;
    for (int i = 0; i < n_src && i < 2; i++) {
        asked.src[i] = src[i];
    }
    memcpy(asked.attrs, attrs, sizeof asked.attrs);
    asked.aligned = (uintptr_t) attrs % 8 == 0;
    asked.preset  = out->struct_size == sizeof *out && out->type == GGML_TYPE_F32 && out->ne[0] == 1 && out->ne[1] == 1 && out->ne[2] == 1 && out->ne[3] == 1;
    asked.data    = data;
    out->type     = GGML_TYPE_F16;
    out->ne[0]    = 6;
    out->ne[2]    = 5;
    return true;
}

static void operators(void) {
    static const char * const bad[] = { "", "affine", "test.affine", "affine.v1", "test.affine.1", "test..v1", "test.affine.v", "test.affine.v1x", ".affine.v1", "test.a b.v1", "test.\xc3\xa4.v1" };
    GGML_EXT_INIT(ggml_ext_op_desc, d);
    d.infer = ask_infer;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char test[64];
        snprintf(test, sizeof test, "EXT-4: name '%s'", bad[i]);
        d.name = bad[i];
        FAILS(!ggml_ext_register_op(&d), GGML_EXT_CODE_BAD_ARGUMENT, EXT_NOT_LOOKED_AT, NULL, test, bad[i]);
    }
    d.name = NULL;
    FAILS(!ggml_ext_register_op(&d), GGML_EXT_CODE_NULL_ARGUMENT, NULL, NULL, "EXT-4: no name", "name");
    d.name      = "test.large.v1";
    d.attr_size = GGML_EXT_MAX_ATTR_SIZE + 1;
    FAILS(!ggml_ext_register_op(&d), GGML_EXT_CODE_BAD_ARGUMENT, "test.large.v1", NULL, "EXT-4: too many bytes of attributes", "41", "40");
    d.attr_size = GGML_EXT_MAX_ATTR_SIZE;
    d.infer     = NULL;
    FAILS(!ggml_ext_register_op(&d), GGML_EXT_CODE_NULL_ARGUMENT, "test.large.v1", NULL, "EXT-4: no infer", "infer");
    d.infer     = ask_infer;
    d.user_data = &asked;
    CHECK(ggml_ext_register_op(&d), "EXT-4: as many bytes of attributes as there can be");

    char attrs[GGML_EXT_MAX_ATTR_SIZE];
    for (size_t i = 0; i < sizeof attrs; i++) {
        attrs[i] = (char) (i + 1);
    }
    struct ggml_tensor * src[2] = { input("a", 3, 1), input("b", 9, 4) };
    struct ggml_tensor * t      = ggml_ext_op_create(ctx, "test.large.v1", src, 2, attrs, sizeof attrs);
    CHECK(t && asked.n_src == 2 && asked.src[0] == src[0] && asked.src[1] == src[1] && asked.data == &asked, "EXT-4: infer sees the sources and its data");
    CHECK(asked.preset && asked.aligned && memcmp(asked.attrs, attrs, sizeof attrs) == 0, "EXT-4: and the attributes, aligned, and a result that is set up");
    CHECK(t && t->type == GGML_TYPE_F16 && t->ne[0] == 6 && t->ne[1] == 1 && t->ne[2] == 5 && t->ne[3] == 1, "EXT-4: infer says what the result is");
    CHECK(t && t->src[0] == src[0] && t->src[1] == src[1] && t->src[2] == NULL, "EXT-5: all inputs are in src");
    CHECK(t && ggml_is_contiguous(t) && t->view_src == NULL && t->data == NULL && t->buffer == NULL, "EXT-5: one contiguous result in memory of its own");
    CHECK(t && t->op == GGML_OP_CUSTOM && strcmp(ggml_ext_op_name(t), "test.large.v1") == 0, "EXT-5, EXT-7: an ordinary tensor of GGML_OP_CUSTOM");
    struct ggml_cgraph * g = graph_of(t);
    CHECK(ggml_graph_n_nodes(g) == 1 && ggml_graph_node(g, 0) == t, "EXT-5: a graph takes it as any node");

    /* EXT-6: attributes */
    char back[GGML_EXT_MAX_ATTR_SIZE] = { 0 };
    memset(attrs, 0, sizeof attrs);
    CHECK(ggml_ext_op_attrs(t, back, sizeof back) && back[0] == 1 && back[39] == 40, "EXT-6: attributes are copied when the node is made");
    CHECK(memcmp((const char *) t->op_params + sizeof t->op_params - sizeof back, back, sizeof back) == 0, "EXT-6: they lie in op_params behind what GGML_OP_CUSTOM uses");
    struct ggml_tensor * ordinary = ggml_sqr(ctx, src[0]);
    FAILS(!ggml_ext_op_attrs(t, back, 8), GGML_EXT_CODE_BAD_ARGUMENT, "test.large.v1", t, "EXT-6: another number of bytes", "8", "40");
    FAILS(!ggml_ext_op_attrs(ordinary, back, 8), GGML_EXT_CODE_BAD_ARGUMENT, NULL, ordinary, "EXT-6: a node that has none");
    FAILS(!ggml_ext_op_attrs(t, NULL, sizeof back), GGML_EXT_CODE_NULL_ARGUMENT, "test.large.v1", t, "EXT-6: no place for them");
    /* a copy of the graph elsewhere has them: they are values */
    ggml_backend_buffer_t          buffer = ggml_backend_alloc_ctx_tensors(ctx, cpu.main);
    struct ggml_backend_graph_copy copy   = ggml_backend_graph_copy(dev.main, g);
    struct ggml_tensor *           there  = copy.graph ? ggml_graph_node(copy.graph, 0) : NULL;
    memset(back, 0, sizeof back);
    CHECK(there && there != t && ggml_ext_op_attrs(there, back, sizeof back) && back[39] == 40, "EXT-6: a copied graph has the same attributes");
    ggml_backend_graph_copy_free(copy);
    ggml_backend_buffer_free(buffer);
    fresh();
}

/* EXT-5: what cannot be made */

static int infer_answer;

static bool odd_infer(struct ggml_tensor * const * src, int n_src, const void * attrs, struct ggml_ext_output * out, void * data) {
    (void) src, (void) n_src, (void) attrs, (void) data;
    switch (infer_answer) {
        case 1: out->ne[1] = -1; break;
        case 2: out->ne[0] = INT64_MAX, out->ne[1] = 3; break;
        case 3: out->type = (enum ggml_type) 99; break;
        case 4: out->type = GGML_TYPE_Q4_0, out->ne[0] = 33; break;
        case 5: out->type = (enum ggml_type) -7; break;
        case 6: return ggml_ext_refuse("seven is not a size");
        case 7: return ggml_ext_refuse(NULL);
    }
    return true;
}

static void refused(void) {
    GGML_EXT_INIT(ggml_ext_op_desc, d);
    d.name  = "test.odd.v1";
    d.infer = odd_infer;
    CHECK(ggml_ext_register_op(&d), "EXT-5: an operator without attributes");
    struct ggml_tensor * x = input("x", 4, 1), * many[GGML_MAX_SRC + 1];
    for (int i = 0; i <= GGML_MAX_SRC; i++) {
        many[i] = x;
    }
    const struct affine a = { 1, 2 };
    CHECK(ggml_ext_op_create(ctx, "test.odd.v1", many, GGML_MAX_SRC, NULL, 0) && ggml_ext_op_create(ctx, "test.odd.v1", NULL, 0, NULL, 0), "EXT-5: as many sources as there can be, and none");
    FAILS(!ggml_ext_op_create(ctx, "test.odd.v1", many, GGML_MAX_SRC + 1, NULL, 0), GGML_EXT_CODE_BAD_ARGUMENT, "test.odd.v1", NULL, "EXT-5: one source too many", "11", "10");
    FAILS(!ggml_ext_op_create(ctx, "test.odd.v1", many, -1, NULL, 0), GGML_EXT_CODE_BAD_ARGUMENT, "test.odd.v1", NULL, "EXT-5: -1 sources", "-1");
    FAILS(!ggml_ext_op_create(ctx, "test.odd.v1", NULL, 1, NULL, 0), GGML_EXT_CODE_NULL_ARGUMENT, "test.odd.v1", NULL, "EXT-5: no list", "list of sources");
    FAILS(!ggml_ext_op_create(ctx, "test.nobody.v1", &x, 1, NULL, 0), GGML_EXT_CODE_UNKNOWN_NAME, "test.nobody.v1", NULL, "EXT-5: an unknown name");
    FAILS(!ggml_ext_op_create(ctx, NULL, &x, 1, NULL, 0), GGML_EXT_CODE_NULL_ARGUMENT, NULL, NULL, "EXT-5: no name");
    FAILS(!ggml_ext_op_create(NULL, OP, &x, 1, &a, sizeof a), GGML_EXT_CODE_NULL_ARGUMENT, OP, NULL, "EXT-5: no context", "context");
    FAILS(!ggml_ext_op_create(ctx, OP, &x, 1, &a, sizeof a - 1), GGML_EXT_CODE_BAD_ARGUMENT, OP, NULL, "EXT-5: a wrong attribute size", "7", "8");
    FAILS(!ggml_ext_op_create(ctx, OP, &x, 1, NULL, sizeof a), GGML_EXT_CODE_NULL_ARGUMENT, OP, NULL, "EXT-5: no attributes", "attributes");
    many[1] = NULL;
    FAILS(!ggml_ext_op_create(ctx, OP, many, 2, &a, sizeof a), GGML_EXT_CODE_NULL_ARGUMENT, OP, NULL, "EXT-5: a source that is NULL", "source 1");
    many[1] = ggml_add(ctx, input("p", 3, 1), input("q", 2, 1));
    FAILS(!ggml_ext_op_create(ctx, OP, many, 2, &a, sizeof a), GGML_EXT_CODE_BAD_SHAPE, OP, NULL, "EXT-5: a source that could not be built", "source 1");
    struct ggml_tensor * half = ggml_new_tensor_1d(ctx, GGML_TYPE_F16, 4);
    FAILS(!ggml_ext_op_create(ctx, OP, &half, 1, &a, sizeof a), GGML_EXT_CODE_BAD_SHAPE, OP, NULL, "EXT-5: infer refuses with its reason", "affine takes one f32 source");
    static const char * const odd[] = { "negative size", "bytes past 2^63", "no format", "part of a block", "a negative format" };
    for (infer_answer = 1; infer_answer <= 5; infer_answer++) {
        char test[64];
        snprintf(test, sizeof test, "EXT-5: infer answers what cannot be: %s", odd[infer_answer - 1]);
        FAILS(!ggml_ext_op_create(ctx, "test.odd.v1", &x, 1, NULL, 0), GGML_EXT_CODE_CALLBACK, "test.odd.v1", NULL, test, "infer");
    }
    infer_answer = 6;
    FAILS(!ggml_ext_op_create(ctx, "test.odd.v1", &x, 1, NULL, 0), GGML_EXT_CODE_BAD_SHAPE, "test.odd.v1", NULL, "EXT-5: ggml_ext_refuse", "seven is not a size");
    infer_answer = 7;
    FAILS(!ggml_ext_op_create(ctx, "test.odd.v1", &x, 1, NULL, 0), GGML_EXT_CODE_BAD_SHAPE, "test.odd.v1", NULL, "EXT-5: without a reason", "refuses");
    infer_answer                = 0;
    struct ggml_context * small = ggml_init((struct ggml_init_params){ ggml_tensor_overhead(), NULL, true });
    struct ggml_tensor *  last  = ggml_new_tensor_1d(small, GGML_TYPE_F32, 4);
    FAILS(!ggml_ext_op_create(small, "test.odd.v1", &last, 1, NULL, 0), GGML_EXT_CODE_OUT_OF_MEMORY, "test.odd.v1", NULL, "EXT-5: a context that is full");
    ggml_free(small);
    fresh();
}

/* EXT-7 */

static void custom_fn(struct ggml_tensor * dst, int ith, int nth, void * data) {
    (void) nth;
    (void) data;
    for (int64_t i = 0; ith == 0 && i < ggml_nelements(dst); i++) {
        ((float *) dst->data)[i] = 1;
    }
}

static bool takes_all(ggml_backend_dev_t d, const struct ggml_tensor * op) {
    (void) d;
    (void) op;
    return true;
}

static void marker(void) {
    struct ggml_tensor * x = input("x", 4, 1), * y = named(affine(OP, x, 2, 0), "nobody's");
    struct ggml_tensor * c = ggml_custom_4d(ctx, GGML_TYPE_F32, 4, 1, 1, 1, &x, 1, custom_fn, 1, NULL);
    CHECK(y->op == GGML_OP_CUSTOM && strcmp(ggml_ext_op_name(y), OP) == 0 && ggml_ext_op_name(c) == NULL && ggml_ext_op_name(x) == NULL && ggml_ext_op_name(NULL) == NULL, "EXT-7: the node is told from an ordinary custom node");
    CHECK(!ggml_backend_dev_supports_op(cpu.dev, y) && !ggml_ext_dev_supports_native_op(cpu.dev, y) && ggml_backend_dev_supports_op(cpu.dev, c), "EXT-7: the CPU without a kernel does not take it");
    fake_dev.device.iface.supports_op = takes_all;
    CHECK(!ggml_backend_dev_supports_op(dev.dev, y) && !ggml_ext_dev_supports_native_op(dev.dev, y) && ggml_backend_dev_supports_op(dev.dev, c), "EXT-7: nor does a device that takes every GGML_OP_CUSTOM");
    FAILS(compute_one(&cpu, x, y) == GGML_STATUS_FAILED, GGML_EXT_CODE_NO_KERNEL, NULL, y, "EXT-7: the CPU refuses to compute it", OP);
    CHECK(got(y, 0) == 0 && got(y, 3) == 0, "EXT-7: and writes nothing");
    fresh();
    x = input("x", 4, 1);
    y = named(affine(OP, x, 2, 0), "nobody's");
    watch_reset();
    FAILS(compute_one(&dev, x, y) == GGML_STATUS_FAILED, GGML_EXT_CODE_NO_KERNEL, NULL, y, "EXT-7: so does the other device", OP);
    CHECK(!watched.custom && watched.n_graphs == 0, "EXT-7: whose own code never sees the marker");
    fresh();
    for (int k = 0; k < 2; k++) {
        struct team *        t = k ? &dev : &cpu;
        ggml_backend_sched_t s = team_sched(t, false);
        x                      = input("x", 4, 1);
        y                      = named(affine(OP, x, 2, 0), "nobody's");
        struct ggml_cgraph * g = graph_of(y);
        watch_reset();
        FAILS(!ggml_backend_sched_alloc_graph(s, g), GGML_EXT_CODE_NO_KERNEL, NULL, y, k ? "EXT-7: a scheduler of two finds nobody" : "EXT-7: a scheduler finds nobody");
        CHECK(!watched.custom, "EXT-7: nobody saw it");
        ggml_backend_sched_free(s);
        fresh();
    }
    /* an empty node is computed by nobody, and not shown to anybody either */
    struct probe p = kernel_of("empty", GGML_OP_CUSTOM);
    CHECK(probe_register(&p, dev.dev), "EXT-7: a kernel on the other device");
    x = input("x", 0, 3);
    y = named(affine(OP, x, 2, 0), "empty");
    struct ggml_tensor * one = input("one", 4, 1);
    struct ggml_tensor * two = ggml_sqr(ctx, one);
    struct ggml_cgraph * g   = graph_of(y);
    ggml_set_output(two);
    ggml_build_forward_expand(g, two);
    ggml_backend_sched_t s = team_sched(&dev, false);
    watch_reset();
    CHECK(team_alloc(&dev, s, g), "EXT-7: no elements: memory");
    fill(one, 1);
    CHECK(ggml_backend_sched_graph_compute(s, g) == GGML_STATUS_SUCCESS && !watched.custom && p.n_execute == 0 && watched.n_graphs > 0, "EXT-7: no elements: nothing runs, nobody is shown the marker");
    ggml_backend_sched_free(s);
    fresh();
    probe_end(&p, "EXT-7");
    fake_dev.device.iface.supports_op = fake_supports_op;
}

/* EXT-8: nodes hold the registration itself, not its name or number. ABI-6: scopes. */

static void scopes(void) {
    ggml_ext_scope_t scope = ggml_ext_scope_new(), other = ggml_ext_scope_new();
    GGML_EXT_INIT(ggml_ext_op_desc, d);
    d.name      = "test.scoped.v1";
    d.attr_size = sizeof(struct affine);
    d.infer     = affine_infer;
    d.scope     = scope;
    CHECK(scope && other && scope != other && ggml_ext_register_op(&d), "ABI-6: an operator in a scope");
    struct probe in = kernel_of("scoped", GGML_OP_CUSTOM), out = kernel_of("other.scope", GGML_OP_CUSTOM);
    in.op_name = out.op_name = "test.scoped.v1";
    in.scope                 = scope;
    out.scope                = other;
    CHECK(probe_register(&in, cpu.dev) && probe_register(&out, dev.dev), "ABI-6: kernels in two scopes");
    FAILS(!ggml_ext_scope_release(scope), GGML_EXT_CODE_IN_USE, "test.scoped.v1", NULL, "ABI-6: a kernel of another scope is for its operator", "other.scope");
    CHECK(ggml_ext_scope_release(other), "ABI-6: that scope first");

    ggml_backend_sched_t s   = team_sched(&cpu, false);
    struct ggml_tensor * x   = input("x", 4, 1), * y = named(affine("test.scoped.v1", x, 2, 1), "old");
    struct ggml_cgraph * g   = graph_of(y);
    CHECK(ggml_backend_sched_alloc_graph(s, g), "ABI-6: a plan");
    fill(x, 1);
    FAILS(!ggml_ext_scope_release(scope), GGML_EXT_CODE_IN_USE, "scoped", NULL, "ABI-6: while a plan uses it", "plan");
    FAILS(!ggml_ext_release(cpu.dev, "scoped"), GGML_EXT_CODE_IN_USE, "scoped", NULL, "ABI-6: nor the one registration", "plan");
    CHECK(ggml_backend_sched_graph_compute(s, g) == GGML_STATUS_SUCCESS && is_affine(y, 2, 1), "ABI-6: and the plan goes on");
    ggml_backend_sched_reset(s);
    ggml_reset(ctx);
    x = input("x", 4, 1);
    y = named(affine("test.scoped.v1", x, 2, 1), "old");
    CHECK(ggml_ext_scope_release(scope), "ABI-6: after the reset it is released");
    CHECK(probe_live(&in) == 0 && in.wrong == 0, "ABI-6: with all its states");
    const int before = in.n_supports;
    CHECK(!ggml_backend_dev_supports_op(cpu.dev, y) && in.n_supports == before, "ABI-6: none of its callbacks is called after that");
    FAILS(!ggml_ext_scope_release(scope), GGML_EXT_CODE_BAD_ARGUMENT, NULL, NULL, "ABI-6: released twice", "scope");
    FAILS(!probe_register(&in, cpu.dev), GGML_EXT_CODE_UNKNOWN_NAME, "test.scoped.v1", NULL, "ABI-6: its operator is gone");
    in.op = GGML_OP_SQR, in.op_name = NULL;
    FAILS(!probe_register(&in, cpu.dev), GGML_EXT_CODE_BAD_ARGUMENT, "scoped", NULL, "ABI-6: nothing registers into a released scope", "scope");
    CHECK(strcmp(ggml_ext_op_name(y), "test.scoped.v1") == 0, "ABI-6: a node of a released operator can be read");

    d.scope = NULL;
    in      = kernel_of("scoped", GGML_OP_CUSTOM);
    in.op_name = "test.scoped.v1";
    CHECK(ggml_ext_register_op(&d) && probe_register(&in, cpu.dev), "EXT-8: the same names again");
    CHECK(!ggml_backend_dev_supports_op(cpu.dev, y), "EXT-8: a node of the old operator is not the new one's");
    g = graph_of(y);
    FAILS(!ggml_backend_sched_alloc_graph(s, g), GGML_EXT_CODE_NO_KERNEL, NULL, y, "EXT-8: nor computed by it");
    ggml_backend_sched_reset(s);
    ggml_reset(ctx);
    x = input("x", 4, 1);
    y = affine("test.scoped.v1", x, 4, 0);
    g = graph_of(y);
    CHECK(ggml_backend_sched_alloc_graph(s, g), "EXT-8: a new node is");
    fill(x, 1);
    CHECK(ggml_backend_sched_graph_compute(s, g) == GGML_STATUS_SUCCESS && is_affine(y, 4, 0), "EXT-8: its result");
    ggml_backend_sched_free(s);
    probe_end(&in, "EXT-8");
    FAILS(!ggml_ext_release(cpu.dev, "scoped"), GGML_EXT_CODE_UNKNOWN_NAME, "scoped", NULL, "ABI-6: released twice by name", "CPU");
    FAILS(!ggml_ext_release(cpu.dev, NULL), GGML_EXT_CODE_NULL_ARGUMENT, NULL, NULL, "ABI-6: no name");
    FAILS(!ggml_ext_release(NULL, "scoped"), GGML_EXT_CODE_NULL_ARGUMENT, NULL, NULL, "ABI-6: no device");
    FAILS(!ggml_ext_scope_release(NULL), GGML_EXT_CODE_NULL_ARGUMENT, NULL, NULL, "ABI-6: no scope");
    fresh();
}

/* EXT-9 */

enum { THREADS = 6, EACH = 40 };

static atomic_int same_won, same_lost, made_good, computed_good;
static atomic_bool stop;
static char        thread_names[THREADS][EACH][24];
static struct probe * thread_probes; /* THREADS x EACH, and one per thread for the contested name */

static void * registers(void * arg) {
    const int             k   = (int) (intptr_t) arg;
    struct ggml_context * own = ggml_init((struct ggml_init_params){ 1 << 18, NULL, true });
    struct ggml_tensor *  x   = ggml_new_tensor_1d(own, GGML_TYPE_F32, 4);
    for (int i = 0; i < EACH; i++) {
        struct probe * p = &thread_probes[k * (EACH + 1) + i];
        snprintf(thread_names[k][i], sizeof thread_names[k][i], "thread.%d.%d", k, i);
        *p = kernel_of(thread_names[k][i], i % 2 ? GGML_OP_SQRT : GGML_OP_CUSTOM);
        p->off = true;
        atomic_fetch_add(&made_good, probe_register(p, i % 3 ? cpu.dev : dev.dev));
        const struct affine a = { 1, (float) i };
        atomic_fetch_add(&made_good, ggml_ext_op_create(own, OP, &x, 1, &a, sizeof a) != NULL);
    }
    struct probe * same = &thread_probes[k * (EACH + 1) + EACH];
    *same               = kernel_of("contested", GGML_OP_SQRT);
    if (probe_register(same, cpu.dev)) {
        atomic_fetch_add(&same_won, 1);
    } else {
        atomic_fetch_add(&same_lost, ext_error().code == GGML_EXT_CODE_NAME_TAKEN);
    }
    ggml_free(own);
    return NULL;
}

/* An unrelated graph, again and again. */
static void * computes(void * arg) {
    (void) arg;
    struct ggml_context * own     = ggml_init((struct ggml_init_params){ 1 << 16, NULL, false });
    struct ggml_tensor *  x       = ggml_new_tensor_1d(own, GGML_TYPE_F32, 64);
    struct ggml_tensor *  y       = ggml_add(own, ggml_sqr(own, x), x);
    struct ggml_cgraph *  g       = ggml_new_graph_custom(own, 8, false);
    ggml_backend_t        backend = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(backend, 1);
    ggml_build_forward_expand(g, y);
    for (int i = 0; i < 64; i++) {
        ((float *) x->data)[i] = (float) i;
    }
    int n = 0, good = 0;
    for (; !atomic_load(&stop) || n == 0; n++) {
        good += ggml_backend_graph_compute(backend, g) == GGML_STATUS_SUCCESS && ((float *) y->data)[63] == 63 * 63 + 63;
    }
    atomic_store(&computed_good, n == good);
    ggml_backend_free(backend);
    ggml_free(own);
    return NULL;
}

static void threads(void) {
    pthread_t list[THREADS], computer;
    thread_probes = calloc(THREADS * (EACH + 1), sizeof *thread_probes);
    pthread_create(&computer, NULL, computes, NULL);
    for (int k = 0; k < THREADS; k++) {
        pthread_create(&list[k], NULL, registers, (void *) (intptr_t) k);
    }
    for (int k = 0; k < THREADS; k++) {
        pthread_join(list[k], NULL);
    }
    atomic_store(&stop, true);
    pthread_join(computer, NULL);
    CHECK(made_good == 2 * THREADS * EACH, "EXT-9: registrations and nodes from %d threads (%d of %d)", THREADS, made_good, 2 * THREADS * EACH);
    CHECK(same_won == 1 && same_lost == THREADS - 1, "EXT-9: of one name registered by all, one wins (%d, %d)", same_won, same_lost);
    CHECK(computed_good, "EXT-9: an unrelated graph is computed meanwhile");
    int there = 0, released = 0;
    for (int k = 0; k < THREADS; k++) {
        for (int i = 0; i < EACH; i++) {
            ggml_backend_dev_t d = i % 3 ? cpu.dev : dev.dev;
            GGML_EXT_INIT(ggml_ext_counters, c);
            there += ggml_ext_counters(d, thread_names[k][i], &c);
            released += ggml_ext_release(d, thread_names[k][i]);
        }
    }
    CHECK(there == THREADS * EACH && released == THREADS * EACH && ggml_ext_release(cpu.dev, "contested"), "EXT-9: all of them are there (%d), and released (%d)", there, released);
    free(thread_probes);
}

int main(void) {
    teams_open(&cpu, &dev, &fake_dev);
    CHECK(affine_register(OP), "EXT-4: an operator");
    devices();
    copies();
    operators();
    refused();
    marker();
    scopes();
    threads();
    return teams_close(&cpu, &dev);
}
