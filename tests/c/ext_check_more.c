/* ABI-5, ABI-7, EXT-49: ggml_ext_check on a registered operator that uses threads, on a fusion, on numbers of the author's own, on
 * another device; and what it says to parameters that are wrong. */
#include "ext_check_util.h"

#include "fake_device.h"

/* test.row_sum.v1: the sum of each row, in double precision, on all threads */

enum row_fault { ROWS, SLICES, DRIFTS, NOT_ZERO };

struct row_sum {
    enum row_fault fault;
    int            n_runs;
};

struct share {
    const struct ggml_tensor * x;
    struct ggml_tensor *       y;
    float                      part[GGML_MAX_N_THREADS];
    enum row_fault             fault;
    bool                       backwards;
};

static bool row_infer(struct ggml_tensor * const * src, int n_src, const void * attrs, struct ggml_ext_output * out, void * data) {
    (void) attrs;
    (void) data;
    if (n_src != 1 || src[0]->type != GGML_TYPE_F32) {
        return ggml_ext_refuse("one f32 source");
    }
    memcpy(out->ne, src[0]->ne, sizeof out->ne);
    out->ne[0] = 1;
    return true;
}

static bool row_supports(const struct ggml_ext_step * step, void * data) {
    (void) data;
    return f32s(step);
}

/* Each row by one thread, whichever it is. */
static void rows_task(int ith, int nth, void * data) {
    struct share *             s = data;
    const struct ggml_tensor * x = s->x;
    for (int64_t r = ith; r < ggml_nelements(s->y); r += nth) {
        const int64_t i1 = r % x->ne[1], i2 = r / x->ne[1] % x->ne[2], i3 = r / x->ne[1] / x->ne[2];
        double        sum = s->fault == NOT_ZERO && x->ne[0] == 0 ? 1 : 0;
        for (int64_t i = 0; i < x->ne[0]; i++) {
            sum += *at(x, s->backwards ? x->ne[0] - 1 - i : i, i1, i2, i3);
        }
        *at(s->y, 0, i1, i2, i3) = s->fault == DRIFTS && s->backwards && sum != 0 ? nextafterf((float) sum, INFINITY) : (float) sum;
    }
}

/* Each row by all threads: how it rounds hangs on their number. */
static void slices_task(int ith, int nth, void * data) {
    struct share *             s = data;
    const struct ggml_tensor * x = s->x;
    s->part[ith]                 = 0;
    for (int64_t i = x->ne[0] * ith / nth; i < x->ne[0] * (ith + 1) / nth; i++) {
        s->part[ith] += *at(x, i, 0, 0, 0);
    }
    if (ith == 0) {
        s->part[GGML_MAX_N_THREADS - 1] = (float) nth;
    }
}

static enum ggml_status row_execute(const struct ggml_ext_run * run, void * data) {
    struct row_sum *     k = data;
    struct ggml_tensor * y = run->step->nodes[0];
    struct share         s = { .x = y->src[0], .y = y, .fault = k->fault, .backwards = k->fault == DRIFTS && k->n_runs++ % 2 };
    if (k->fault != SLICES) {
        return ggml_ext_cpu_parallel_v1(run->backend, rows_task, &s);
    }
    EACH(y) {
        struct ggml_tensor row = *y->src[0];
        row.data               = at(&row, 0, i1, i2, i3);
        s.x                    = &row;
        const enum ggml_status status = ggml_ext_cpu_parallel_v1(run->backend, slices_task, &s);
        if (status != GGML_STATUS_SUCCESS) {
            return status;
        }
        AT(y) = 0;
        for (int t = 0; t < (int) s.part[GGML_MAX_N_THREADS - 1]; t++) {
            AT(y) += s.part[t];
        }
    }
    return GGML_STATUS_SUCCESS;
}

static struct ggml_tensor * row_build(struct ggml_context * ctx, uint64_t seed, void * data) {
    (void) data;
    struct ggml_tensor * x = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, 997, 2 + (int64_t) seed, 3);
    return ggml_ext_op_create(ctx, "test.row_sum.v1", &x, 1, NULL, 0);
}

static struct ggml_tensor * row_reference(struct ggml_context * ctx, struct ggml_tensor * const * in, int n, uint64_t seed, void * data) {
    (void) seed;
    (void) data;
    return n == 1 && ggml_is_contiguous(in[0]) ? ggml_sum_rows(ctx, in[0]) : NULL;
}

static void check_rows(enum row_fault fault, uint32_t flags, double max_nmse) {
    struct row_sum k = { .fault = fault };
    GGML_EXT_INIT(ggml_ext_kernel_desc, desc);
    desc.name      = "test_rows";
    desc.op        = GGML_OP_CUSTOM;
    desc.op_name   = "test.row_sum.v1";
    desc.user_data = &k;
    desc.supports  = row_supports;
    desc.execute   = row_execute;
    CHECK(ggml_ext_register_kernel_ex(dev, &desc, flags), "registered");
    GGML_EXT_INIT(ggml_ext_check_params, params);
    params.build     = row_build;
    params.reference = row_reference;
    params.user_data = &k;
    params.max_nmse  = max_nmse;
    check_it("test_rows", &params);
    CHECK(ggml_ext_release(dev, "test_rows"), "no plan is left");
}

#define NO_FUSION "fusion.consumer fusion.output fusion.view fusion.alias "

static void rows(void) {
    GGML_EXT_INIT(ggml_ext_op_desc, op);
    op.name  = "test.row_sum.v1";
    op.infer = row_infer;
    CHECK(ggml_ext_register_op(&op), "the operator");
    const char * silent = "unfused same_input inplace " NO_FUSION "state workspace ";
    check_rows(ROWS, GGML_EXT_KERNEL_DETERMINISTIC, 1e-10);
    expect_good("an operator of one's own", silent);
    CHECK(!*found.noted, "nothing to note about it");
    check_rows(SLICES, GGML_EXT_KERNEL_DETERMINISTIC, 1e-10);
    expect_bad("a promise broken by the number of threads", "threads ");
    check_rows(SLICES, 0, 1e-10);
    expect_good("the same, nothing promised", silent);
    CHECK(!strcmp(found.noted, "threads ") && found.report.n_noted == 1, "it is noted, and is '%s'", found.noted);
    check_rows(DRIFTS, GGML_EXT_KERNEL_DETERMINISTIC, 1e-10);
    expect_bad("a promise broken from run to run", "again threads ");
    check_rows(DRIFTS, 0, 1e-10);
    CHECK(found.good && has(found.noted, "again"), "the same, nothing promised: noted, and is '%s'", found.noted);
    check_rows(NOT_ZERO, 0, 1e-10);
    expect_bad("the sum of nothing is not 0", "empty ");
    check_rows(DRIFTS, 0, 1e-16);
    CHECK(!found.good && has(found.failed, "contents"), "the tolerance counts: '%s'", found.failed);
}

/* y = x * s * w + b, three nodes at once */

enum fuse_fault { RIGHT, ONE_ROUNDING, SHORT_WRONG, WRITES_INNER, NEVER, INPUT_GAPS };

static bool fuse_is(struct ggml_cgraph * g, int first, int n) {
    const enum ggml_op ops[] = { GGML_OP_SCALE, GGML_OP_MUL, GGML_OP_ADD };
    if (first + n > ggml_graph_n_nodes(g)) {
        return false;
    }
    for (int i = 0; i < n; i++) {
        const struct ggml_tensor * t = ggml_graph_node(g, first + i);
        if (t->op != ops[3 - n + i] || t->type != GGML_TYPE_F32 || !ggml_are_same_shape(t, t->src[0]) || (t->src[1] && !ggml_are_same_shape(t, t->src[1])) ||
            (i && t->src[0] != ggml_graph_node(g, first + i - 1))) {
            return false;
        }
    }
    return true;
}

static int fuse_match(struct ggml_cgraph * g, int first, void * data) {
    const enum fuse_fault f = *(enum fuse_fault *) data;
    if (f == NEVER) {
        ggml_ext_refuse("no wish to");
        return 0;
    }
    return fuse_is(g, first, 3) ? 3 : f == SHORT_WRONG && fuse_is(g, first, 2) ? 2 : 0;
}

static enum ggml_status fuse_execute(const struct ggml_ext_run * run, void * data) {
    const enum fuse_fault        f    = *(enum fuse_fault *) data;
    const struct ggml_ext_step * step = run->step;
    const int                    n    = step->n_nodes;
    struct ggml_tensor *         y = step->nodes[n - 1], * m = step->nodes[n - 2], * w = m->src[1], * b = y->src[1];
    struct ggml_tensor           x = *(n == 3 ? step->nodes[0]->src[0] : m->src[0]);
    float                        s = 1;
    if (n == 3) {
        memcpy(&s, step->nodes[0]->op_params, sizeof s);
    } else {
        s = 2;
    }
    if (f == INPUT_GAPS) {
        memcpy(x.nb, y->nb, sizeof x.nb);
    }
    EACH(y) {
        const volatile float scaled = AT(&x) * s, product = scaled * AT(w);
        AT(y) = f == ONE_ROUNDING ? fmaf(scaled, AT(w), AT(b)) : product + AT(b);
    }
    if (f == WRITES_INNER) {
        m->data = y->data;
    }
    return GGML_STATUS_SUCCESS;
}

static struct ggml_tensor * fuse_build(struct ggml_context * ctx, uint64_t seed, void * data) {
    (void) data;
    struct ggml_tensor * in[3];
    for (int i = 0; i < 3; i++) {
        in[i] = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, 8 + (int64_t) seed, 6, 2);
    }
    return ggml_add(ctx, ggml_mul(ctx, ggml_scale(ctx, in[0], 1.7f), in[1]), in[2]);
}

static void check_fusion(enum fuse_fault fault, double max_nmse) {
    GGML_EXT_INIT(ggml_ext_kernel_desc, desc);
    desc.name      = "test_fuse";
    desc.user_data = &fault;
    desc.match     = fuse_match;
    desc.execute   = fuse_execute;
    CHECK(ggml_ext_register_kernel_ex(dev, &desc, GGML_EXT_KERNEL_DETERMINISTIC), "registered");
    GGML_EXT_INIT(ggml_ext_check_params, params);
    params.build     = fuse_build;
    params.user_data = &fault;
    params.max_nmse  = max_nmse;
    check_it("test_fuse", &params);
    CHECK(ggml_ext_release(dev, "test_fuse"), "no plan is left");
}

static void fusion(void) {
    check_fusion(RIGHT, 0);
    expect_good("EXT-49: a fusion that is right", "inplace state workspace ");
    check_fusion(ONE_ROUNDING, 0);
    CHECK(!found.good && has(found.failed, "plain") && has(found.failed, "unfused"), "EXT-49: one rounding where there are three: '%s'", found.failed);
    check_fusion(ONE_ROUNDING, 1e-10);
    expect_good("EXT-49: the same, with a tolerance", "inplace state workspace ");
    check_fusion(SHORT_WRONG, 0);
    expect_bad("EXT-49: wrong where a node has other readers", "fusion.consumer fusion.output fusion.view fusion.alias ");
    check_fusion(WRITES_INNER, 0);
    CHECK(!found.good && has(found.failed, "metadata"), "a node that was left out is written to: '%s'", found.failed);
    check_fusion(INPUT_GAPS, 0);
    /* SCALE itself takes no other gaps */
    expect_bad("strides of an input ignored", "layout.rows ");
    check_fusion(NEVER, 0);
    expect_bad("a rule that matches nothing", "chosen ");
    CHECK(strstr(check_error_text(), "no wish to"), "with its reason: %s", check_error_text());
}

/* GET_ROWS: numbers of rows are the author's */

static bool fill_rows(const struct ggml_tensor * t, int index, uint64_t seed, void * to, size_t size, void * data) {
    int32_t * ids = to;
    if (*(bool *) data || index != 1 || t->type != GGML_TYPE_I32) {
        return false;
    }
    for (size_t i = 0; i < size / sizeof *ids; i++) {
        ids[i] = (int32_t) ((i * 5 + seed) % 7);
    }
    return true;
}

static enum ggml_status rows_execute(const struct ggml_ext_run * run, void * data) {
    struct ggml_tensor * y = run->step->nodes[0];
    (void) data;
    EACH(y) {
        const int32_t id = *(int32_t *) ((char *) y->src[1]->data + (size_t) i1 * y->src[1]->nb[0] + (size_t) i2 * y->src[1]->nb[1] + (size_t) i3 * y->src[1]->nb[2]);
        AT(y)            = *at(y->src[0], i0, id, i2, i3);
    }
    return GGML_STATUS_SUCCESS;
}

static bool rows_supports(const struct ggml_ext_step * step, void * data) {
    (void) data;
    return step->nodes[0]->src[0]->type == GGML_TYPE_F32;
}

static struct ggml_tensor * rows_build(struct ggml_context * ctx, uint64_t seed, void * data) {
    struct ggml_tensor * a = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 6, 7);
    struct ggml_tensor * b = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, 10 + (int64_t) seed);
    (void) data;
    return ggml_get_rows(ctx, a, b);
}

static void numbers(void) {
    bool none = false;
    GGML_EXT_INIT(ggml_ext_kernel_desc, desc);
    desc.name     = "test_get_rows";
    desc.op       = GGML_OP_GET_ROWS;
    desc.supports = rows_supports;
    desc.execute  = rows_execute;
    CHECK(ggml_ext_register_kernel(dev, &desc), "registered");
    GGML_EXT_INIT(ggml_ext_check_params, params);
    params.build     = rows_build;
    params.fill      = fill_rows;
    params.user_data = &none;
    check_it("test_get_rows", &params);
    expect_good("numbers of the author's own", "unfused layout.planes layout.permuted same_input inplace " NO_FUSION "state workspace ");
    CHECK(ggml_ext_release(dev, "test_get_rows"), "no plan is left");
}

static struct ggml_tensor * zeros_build(struct ggml_context * ctx, uint64_t seed, void * data) {
    struct ggml_tensor * t = rows_build(ctx, seed, data);
    return ggml_scale(ctx, ggml_mul(ctx, t, t), 0);
}

/* another device, which cannot compute the node by itself */

static enum ggml_status scale_execute(const struct ggml_ext_run * run, void * data) {
    struct ggml_tensor * y = run->step->nodes[0];
    float                s;
    memcpy(&s, y->op_params, sizeof s);
    EACH(y) AT(y) = AT(y->src[0]) * s;
    float * ws = ggml_backend_buffer_get_base(run->workspace);
    ws[*(bool *) data ? 16 : 15] = 1;
    return GGML_STATUS_SUCCESS;
}

static enum ggml_status scale_prepare(const struct ggml_ext_step * step, struct ggml_ext_prepared * out, void * data) {
    (void) step;
    (void) data;
    out->workspace_size = 64;
    return GGML_STATUS_SUCCESS;
}

static struct ggml_tensor * scale_build(struct ggml_context * ctx, uint64_t seed, void * data) {
    (void) data;
    return ggml_scale(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 30, 3 + (int64_t) seed), 2.5f);
}

static int64_t no_states(void * data) {
    (void) data;
    return 0;
}

static void device(void) {
    static struct fake f;
    bool               past = false;
    fake_make(&f, "other");
    f.only_op     = GGML_OP_ADD;
    cpu           = fake_init_backend(&f.device, NULL);
    GGML_EXT_INIT(ggml_ext_kernel_desc, desc);
    desc.name      = "test_scale";
    desc.op        = GGML_OP_SCALE;
    desc.user_data = &past;
    desc.supports  = rows_supports;
    desc.prepare   = scale_prepare;
    desc.execute   = scale_execute;
    CHECK(ggml_ext_register_kernel(&f.device, &desc), "registered");
    GGML_EXT_INIT(ggml_ext_check_params, params);
    params.build = scale_build;
    params.live  = no_states;
    check_it("test_scale", &params);
    expect_good("another device, against the CPU", "unfused threads layout.planes layout.permuted layout.transposed same_input " NO_FUSION);
    past = true;
    check_it("test_scale", &params);
    expect_bad("its scratch", "workspace ");
    CHECK(ggml_ext_release(&f.device, "test_scale"), "no plan is left");
    ggml_backend_free(cpu);
    CHECK(f.n_live == 0, "no memory is left: %d buffers", f.n_live);
}

/* parameters */

static struct ggml_tensor * no_build(struct ggml_context * ctx, uint64_t seed, void * data) {
    (void) ctx;
    (void) seed;
    (void) data;
    ggml_ext_refuse("nothing to build");
    return NULL;
}

static struct ggml_tensor * leaf_build(struct ggml_context * ctx, uint64_t seed, void * data) {
    (void) seed;
    (void) data;
    return ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4);
}

static struct ggml_tensor * nested_build(struct ggml_context * ctx, uint64_t seed, void * data) {
    GGML_EXT_INIT(ggml_ext_check_params, params);
    params.build = fuse_build;
    *(bool *) data |= ggml_ext_check(cpu, "test_scale", &params, NULL) || check_error_code() == GGML_EXT_CODE_CHECK_FAILED;
    *(bool *) data |= ggml_ext_release(dev, "test_scale");
    return scale_build(ctx, seed, NULL);
}

static void parameters(void) {
    static bool past, released;
    GGML_EXT_INIT(ggml_ext_kernel_desc, desc);
    desc.name      = "test_scale";
    desc.op        = GGML_OP_SCALE;
    desc.user_data = &past;
    desc.supports  = rows_supports;
    desc.prepare   = scale_prepare;
    desc.execute   = scale_execute;
    CHECK(ggml_ext_register_kernel(dev, &desc), "registered");
    GGML_EXT_INIT(ggml_ext_check_params, p);
    GGML_EXT_INIT(ggml_ext_check_report, r);
    p.build = scale_build;
    CHECK(ggml_ext_check(cpu, "test_scale", &p, &r) && r.n_failed == 0 && r.n_cases == 31, "a sound call");
    CHECK(ggml_ext_check(cpu, "test_scale", &p, NULL), "a report is not needed");
    CHECK_ERROR(CHECK(!ggml_ext_check(NULL, "test_scale", &p, &r), "no backend"), GGML_EXT_CODE_NULL_ARGUMENT, "no backend", "backend");
    CHECK_ERROR(CHECK(!ggml_ext_check(cpu, NULL, &p, &r), "no name"), GGML_EXT_CODE_NULL_ARGUMENT, "no name", "name");
    CHECK_ERROR(CHECK(!ggml_ext_check(cpu, "test_scale", NULL, &r), "no parameters"), GGML_EXT_CODE_NULL_ARGUMENT, "no parameters", "params");
    CHECK_ERROR(CHECK(!ggml_ext_check(cpu, "nobody", &p, &r), "unknown"), GGML_EXT_CODE_UNKNOWN_NAME, "an unknown name", "nobody");
    CHECK(r.n_cases == 0, "a report of nothing");
    p.struct_size -= 8;
    CHECK_ERROR(CHECK(!ggml_ext_check(cpu, "test_scale", &p, &r), "size"), GGML_EXT_CODE_BAD_STRUCT, "a short structure", "struct_size");
    p.struct_size = 0;
    CHECK_ERROR(CHECK(!ggml_ext_check(cpu, "test_scale", &p, &r), "size"), GGML_EXT_CODE_BAD_STRUCT, "no size", "struct_size");
    p.struct_size = sizeof p;
    r.struct_size = 0;
    CHECK_ERROR(CHECK(!ggml_ext_check(cpu, "test_scale", &p, &r), "size"), GGML_EXT_CODE_BAD_STRUCT, "no size of the report", "report");
    r.struct_size = sizeof r;
    p.leave_out   = "special,nothing_like_it";
    CHECK_ERROR(CHECK(!ggml_ext_check(cpu, "test_scale", &p, &r), "case"), GGML_EXT_CODE_BAD_ARGUMENT, "an unknown case", "nothing_like_it");
    p.leave_out = NULL;
    p.max_nmse  = -1;
    CHECK_ERROR(CHECK(!ggml_ext_check(cpu, "test_scale", &p, &r), "nmse"), GGML_EXT_CODE_BAD_ARGUMENT, "an error below 0", "max_nmse");
    p.max_nmse = 0;
    p.build    = NULL;
    CHECK_ERROR(CHECK(!ggml_ext_check(cpu, "test_scale", &p, &r), "build"), GGML_EXT_CODE_NULL_ARGUMENT, "no build", "build");
    p.build = no_build;
    CHECK_ERROR(CHECK(!ggml_ext_check(cpu, "test_scale", &p, &r), "build"), GGML_EXT_CODE_BAD_ARGUMENT, "build of nothing", "nothing to build");
    p.build = leaf_build;
    CHECK_ERROR(CHECK(!ggml_ext_check(cpu, "test_scale", &p, &r), "build"), GGML_EXT_CODE_BAD_ARGUMENT, "build of an input", "nothing computes");
    p.build     = nested_build;
    p.user_data = &released;
    CHECK(ggml_ext_check(cpu, "test_scale", &p, &r) && !released, "a check in a check, and a release, are refused");
    p.build = zeros_build;
    CHECK(!ggml_ext_check(cpu, "test_scale", &p, &r) && r.text && strstr(r.text, "fill"), "zeros show nothing");
    p.build = scale_build;
    CHECK(ggml_ext_release(dev, "test_scale"), "released");

    desc.name     = "test_no_reference";
    desc.op       = GGML_OP_CUSTOM;
    desc.op_name  = "test.row_sum.v1";
    CHECK(ggml_ext_register_kernel(dev, &desc), "registered");
    p.build = row_build;
    CHECK_ERROR(CHECK(!ggml_ext_check(cpu, "test_no_reference", &p, &r), "reference"), GGML_EXT_CODE_NO_KERNEL, "nothing to compare with", "reference");
    CHECK(ggml_ext_release(dev, "test_no_reference"), "released");
}

int main(void) {
    begin();
    rows();
    fusion();
    numbers();
    parameters();
    ggml_backend_free(cpu);
    device();
    return check_done();
}
