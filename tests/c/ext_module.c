/* Extensions on devices of a loaded backend module that knows nothing of them: EXT-7, EXT-20, EXT-23, EXT-31, EXT-46 to EXT-48. */
#include "ext_util.h"

#include "modules/plain_device.h"

#define OP "test.affine.v1"

static ggml_backend_reg_t    module;
static struct plain_counts * counts;
static ggml_backend_t        cpu;

/* Kernels that go through the interface of buffers, for memory that the host does not reach: they compute what ext_eval.h would, from
 * copies of the tensors. */
static bool                far_away;
static enum ggml_status far_execute(const struct ggml_ext_run * run, void * data) {
    struct probe *               p = data;
    const struct ggml_ext_step * s = run->step;
    struct ggml_tensor           copies[8], *nodes[4], *srcs[4];
    float                        memory[8][64];
    p->n_execute++;
    p->n_nodes = s->n_nodes;
    p->backend = run->backend;
    p->workspace_buffer = run->workspace;
    int n = 0;
    for (int i = 0; i < s->n_srcs; i++, n++) {
        copies[n] = *s->srcs[i];
        ggml_backend_tensor_get(s->srcs[i], memory[n], 0, ggml_nbytes(s->srcs[i]));
        copies[n].data = memory[n];
        srcs[i]        = &copies[n];
    }
    for (int i = 0; i < s->n_nodes; i++, n++) {
        copies[n] = *s->nodes[i];
        copies[n].data = i == s->n_nodes - 1 ? memory[n] : NULL;
        nodes[i]       = &copies[n];
        for (int j = 0; j < GGML_MAX_SRC; j++) {
            for (int m = 0; m < s->n_srcs; m++) {
                nodes[i]->src[j] = nodes[i]->src[j] == s->srcs[m] ? srcs[m] : nodes[i]->src[j];
            }
            for (int m = 0; m < i; m++) {
                nodes[i]->src[j] = nodes[i]->src[j] == s->nodes[m] ? nodes[m] : nodes[i]->src[j];
            }
        }
    }
    struct ggml_ext_step here = *s;
    here.nodes                = nodes;
    here.srcs                 = srcs;
    if (!eval_step(&here)) {
        return GGML_STATUS_FAILED;
    }
    ggml_backend_tensor_set(s->nodes[s->n_nodes - 1], nodes[s->n_nodes - 1]->data, 0, ggml_nbytes(s->nodes[s->n_nodes - 1]));
    return GGML_STATUS_SUCCESS;
}

static bool reg(struct probe * p, ggml_backend_dev_t dev) {
    p->device                     = dev;
    struct ggml_ext_kernel_desc d = probe_desc(p);
    d.execute                     = far_away ? far_execute : d.execute;
    return ggml_ext_register_kernel(dev, &d);
}

static struct job {
    struct ggml_tensor * w, * v, * y, * node[6];
    struct ggml_cgraph * graph;
    struct ggml_context * own;
    ggml_backend_buffer_t buffer;
} job;

/* Weights on the device, so that the scheduler wants their nodes there. */
static void weights(ggml_backend_t backend) {
    job.own    = ggml_init((struct ggml_init_params){ 1 << 12, NULL, true });
    job.w      = named(ggml_new_tensor_2d(job.own, GGML_TYPE_F32, 8, 4), "w");
    job.v      = named(ggml_new_tensor_2d(job.own, GGML_TYPE_F32, 8, 4), "v");
    job.buffer = ggml_backend_alloc_ctx_tensors(job.own, backend);
    ggml_backend_buffer_set_usage(job.buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    fill(job.w, 1);
    fill(job.v, 2);
}

/* y = affine((w^2 + v) * 3, 2, 1) + v */
static void build(void) {
    ggml_reset(ctx);
    job.node[0] = named(ggml_sqr(ctx, job.w), "sqr");
    job.node[1] = named(ggml_add(ctx, job.node[0], job.v), "add");
    job.node[2] = named(ggml_scale(ctx, job.node[1], 3), "scale");
    job.node[3] = named(affine(OP, job.node[2], 2, 1), "affine");
    job.y = job.node[4] = named(ggml_add(ctx, job.node[3], job.v), "y");
    job.graph           = graph_of(job.y);
}

static bool right(void) {
    for (int64_t i = 0; i < 32; i++) {
        const float w = value(i, 1), v = value(i, 2);
        if (got(job.y, i) != (w * w + v) * 3 * 2 + 1 + v) {
            return false;
        }
    }
    return true;
}

static void device(int i) {
    ggml_backend_dev_t dev     = ggml_backend_reg_dev_get(module, (size_t) i);
    ggml_backend_t     backend = ggml_backend_dev_init(dev, NULL);
    const char *       name    = ggml_backend_dev_name(dev);
    ggml_backend_t     list[2] = { backend, cpu };
    far_away                   = i == 1;
    weights(backend);
    build();
    CHECK(backend && ggml_backend_dev_supports_op(dev, job.node[0]) && !ggml_backend_dev_supports_op(dev, job.node[2]), "%s: what the module can do by itself", name);
    CHECK(!ggml_backend_dev_supports_op(dev, job.node[3]) && !ggml_ext_dev_supports_native_op(dev, job.node[3]), "EXT-7: %s: it says yes to every GGML_OP_CUSTOM, the query does not", name);

    /* EXT-7: nobody computes the marker */
    ggml_backend_buffer_t b = ggml_backend_alloc_ctx_tensors(ctx, backend);
    FAILS(ggml_backend_graph_compute(backend, job.graph) == GGML_STATUS_FAILED, GGML_EXT_CODE_NO_KERNEL, NULL, EXT_ANY, "EXT-7: computed directly, without a kernel", i ? "PLAIN1" : "PLAIN0");
    ggml_backend_buffer_free(b);
    ggml_backend_sched_t s = ggml_backend_sched_new(list, NULL, 2, 64, false, false);
    build();
    FAILS(!ggml_backend_sched_alloc_graph(s, job.graph), GGML_EXT_CODE_NO_KERNEL, NULL, job.node[3], "EXT-7: by the scheduler, without a kernel");
    CHECK(counts->custom == 0 && counts->graphs == 0, "EXT-7: %s: the module has seen nothing", name);

    /* EXT-20, EXT-23: kernels for single nodes */
    struct probe scale = { .name = "module.scale", .op = GGML_OP_SCALE, .workspace = 256 }, own = { .name = "module.affine", .op = GGML_OP_CUSTOM, .op_name = OP };
    CHECK(reg(&scale, dev) && reg(&own, dev), "EXT-20: %s: kernels on a device that is not ours", name);
    CHECK(ggml_backend_dev_supports_op(dev, job.node[2]) && ggml_backend_dev_supports_op(dev, job.node[3]) && !ggml_ext_dev_supports_native_op(dev, job.node[2]), "EXT-23, EXT-24: %s: count in its capability query", name);
    ggml_backend_sched_reset(s);
    build();
    const int  made  = counts->allocations;
    const bool alloc = ggml_backend_sched_alloc_graph(s, job.graph);
    int        here  = 0;
    for (int n = 0; n < 5; n++) {
        here += ggml_backend_sched_get_tensor_backend(s, job.node[n]) == backend;
    }
    CHECK(alloc && here == 5, "EXT-23: %s: the scheduler places all nodes there (%d)", name, here);
    CHECK(counts->allocations == made + 2, "EXT-31: %s: memory for the graph and scratch memory are the module's (%d)", name, counts->allocations - made);
    for (int again = 1; again <= 2; again++) {
        counts->nodes = counts->graphs = 0;
        CHECK(ggml_backend_sched_graph_compute(s, job.graph) == GGML_STATUS_SUCCESS && right(), "EXT-23: %s: and the result is right (%d)", name, again);
        CHECK(scale.n_execute == again && own.n_execute == again && scale.backend == backend && scale.workspace_buffer && ggml_backend_buffer_get_type(scale.workspace_buffer) == ggml_backend_dev_buffer_type(dev), "EXT-32: %s: kernels get backend and scratch memory", name);
        CHECK(counts->graphs == 2 && counts->nodes == 3 && counts->custom == 0, "EXT-7, EXT-46: %s: the module computes the three nodes around (%d graphs, %d nodes, %d custom)", name, counts->graphs, counts->nodes, counts->custom);
    }
    const size_t unfused = ggml_backend_sched_get_buffer_size(s, backend);
    ggml_backend_sched_free(s);

    /* fusion */
    struct probe rule = { .name = "module.rule", .pattern = { GGML_OP_ADD, GGML_OP_SCALE, GGML_OP_CUSTOM } };
    CHECK(reg(&rule, dev), "EXT-40: %s: a rule", name);
    s = ggml_backend_sched_new(list, NULL, 2, 64, false, false);
    build();
    counts->nodes = counts->graphs = 0;
    CHECK(ggml_backend_sched_graph_compute(s, job.graph) == GGML_STATUS_SUCCESS && right(), "EXT-40, EXT-49: %s: fused", name);
    CHECK(rule.n_execute == 1 && rule.n_nodes == 3 && scale.n_execute == 2 && own.n_execute == 2, "EXT-40: %s: three nodes by one launch", name);
    CHECK(counts->nodes == 2 && counts->graphs == 2 && counts->custom == 0, "EXT-46: %s: the module computes the rest (%d nodes)", name, counts->nodes);
    CHECK(!job.node[1]->data && !job.node[1]->buffer && !job.node[2]->data && !job.node[2]->buffer && job.node[3]->data, "EXT-47: %s: what is fused has no memory", name);
    CHECK(ggml_backend_sched_get_buffer_size(s, backend) <= unfused, "EXT-47: %s: the buffer is no larger", name);
    ggml_backend_sched_free(s);

    /* EXT-48: directly, single nodes alone */
    build();
    b = ggml_backend_alloc_ctx_tensors(ctx, backend);
    CHECK(ggml_backend_graph_compute(backend, job.graph) == GGML_STATUS_SUCCESS && right(), "EXT-48: %s: computed directly", name);
    CHECK(rule.n_execute == 1 && scale.n_execute == 3 && own.n_execute == 3 && counts->custom == 0, "EXT-48: %s: by kernels for single nodes", name);
    ggml_backend_buffer_free(b);

    /* EXT-7: nodes that are not computed are not shown either */
    ggml_reset(ctx);
    struct ggml_tensor * none = named(affine(OP, ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 0, 4), 1, 1), "no elements");
    struct ggml_tensor * sqr  = ggml_sqr(ctx, job.w);
    struct ggml_cgraph * g    = graph_of(none);
    ggml_set_output(sqr);
    ggml_build_forward_expand(g, sqr);
    struct ggml_tensor * last = affine(OP, sqr, 1, 1);
    ggml_set_output(last);
    ggml_build_forward_expand(g, last);
    last->flags &= ~GGML_TENSOR_FLAG_COMPUTE;
    b = ggml_backend_alloc_ctx_tensors(ctx, backend);
    CHECK(ggml_backend_graph_compute(backend, g) == GGML_STATUS_SUCCESS && counts->custom == 0 && own.n_execute == 3 && got(sqr, 3) == value(3, 1) * value(3, 1), "EXT-7: %s: an empty node, and one that is not to be computed", name);
    ggml_backend_buffer_free(b);

    probe_end(&scale, name);
    probe_end(&own, name);
    probe_end(&rule, name);
    ggml_backend_buffer_free(job.buffer);
    ggml_free(job.own);
    ggml_backend_free(backend);
    ggml_reset(ctx);
    CHECK(counts->buffers == 0, "%s: no buffer is left", name);
    memset(counts, 0, sizeof *counts);
}

static bool never_supports(const struct ggml_ext_step * step, void * data) {
    (void) step;
    (void) data;
    return false;
}
static enum ggml_status never_execute(const struct ggml_ext_run * run, void * data) {
    (void) run;
    (void) data;
    return GGML_STATUS_FAILED;
}

int main(void) {
    char path[1000];
    check_quiet();
    ctx_open();
    snprintf(path, sizeof path, "%s/lib/plain_device.so", getenv("TESTS_OUT") ? getenv("TESTS_OUT") : ".");
    module = ggml_backend_load(path);
    if (CHECK(module != NULL && ggml_backend_reg_dev_count(module) == 2, "a module is loaded: %s", path)) {
        union { void * address; plain_counts_t function; } u = { .address = ggml_backend_reg_get_proc_address(module, "plain_counts") };
        counts = u.function();
        cpu    = ggml_backend_cpu_init();
        CHECK(affine_register(OP), "an operator");
        device(0);
        device(1);
        ggml_backend_free(cpu);
        GGML_EXT_INIT(ggml_ext_kernel_desc, left);
        left.name     = "left.behind";
        left.op       = GGML_OP_SQR;
        left.supports = never_supports;
        left.execute  = never_execute;
        CHECK(ggml_ext_register_kernel(ggml_backend_reg_dev_get(module, 0), &left), "a registration is left on its device");
        ggml_backend_unload(module);
        CHECK(ggml_backend_dev_by_name("PLAIN0") == NULL, "the module is unloaded");
        /* the loader may put it where it was: its devices must not have what the former ones had */
        module = ggml_backend_load(path);
        if (CHECK(module != NULL, "it is loaded again")) {
            GGML_EXT_INIT(ggml_ext_counters, counters);
            CHECK_ERROR(ggml_ext_counters(ggml_backend_reg_dev_get(module, 0), "left.behind", &counters), GGML_EXT_CODE_UNKNOWN_NAME, "ABI-6: registrations go with the module", "left.behind");
            ggml_backend_unload(module);
        }
    }
    ggml_free(ctx);
    return check_done();
}
