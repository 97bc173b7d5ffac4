/* Datasets, results, settings, and what ggml-opt.h refuses. */
#include "opt.h"

enum { NE = 3, NL = 2, N = 12 };

static ggml_opt_dataset_t numbered(int shard) {
    ggml_opt_dataset_t d = ggml_opt_dataset_init(GGML_TYPE_F32, GGML_TYPE_I32, NE, NL, N, shard);
    float * x = ggml_get_data_f32(ggml_opt_dataset_data(d));
    int32_t * y = (int32_t *) ggml_get_data(ggml_opt_dataset_labels(d));
    for (int i = 0; i < N * NE; i++) {
        x[i] = (float) i;
    }
    for (int i = 0; i < N * NL; i++) {
        y[i] = 100 + i;
    }
    return d;
}

/* The numbers of the datapoints in the order of the batches; -1: torn. */
static void order(ggml_opt_dataset_t d, int batch, int * out) {
    float x[N * NE];
    int32_t y[N * NL];
    for (int i = 0; i < N / batch; i++) {
        ggml_opt_dataset_get_batch_host(d, x, (size_t) (batch * NE) * sizeof(float), y, i);
        for (int k = 0; k < batch; k++) {
            int at = (int) x[k * NE] / NE;
            bool whole = x[k * NE + 1] == x[k * NE] + 1 && y[k * NL] == 100 + at * NL && y[k * NL + 1] == y[k * NL] + 1;
            out[i * batch + k] = whole ? at : -1;
        }
    }
}

static bool is_order(const int * list, int from, int to) {
    int times[N] = { 0 };
    for (int i = from; i < to; i++) {
        if (list[i] >= from && list[i] < to) {
            times[list[i]]++;
        }
    }
    for (int i = from; i < to; i++) {
        if (times[i] != 1) {
            return false;
        }
    }
    return true;
}

static ggml_opt_context_t context(void) { return ggml_opt_init(ggml_opt_default_params(sched, GGML_OPT_LOSS_TYPE_SUM)); }

static void datasets(void) {
    ggml_opt_dataset_t d = numbered(1);
    struct ggml_tensor * data = ggml_opt_dataset_data(d), * labels = ggml_opt_dataset_labels(d);
    CHECK(ggml_opt_dataset_ndata(d) == N && data->ne[0] == NE && data->ne[1] == N && labels->ne[0] == NL && labels->type == GGML_TYPE_I32, "shapes");
    CHECK(ggml_backend_buffer_is_host(data->buffer), "in the host's memory");
    int list[N], again[N];
    order(d, 4, list);
    CHECK(is_order(list, 0, N) && list[0] == 0 && list[N - 1] == N - 1, "in order at first");

    ggml_opt_context_t a = context(), b = context();
    ggml_opt_dataset_shuffle(a, d, -1);
    order(d, 3, list);
    CHECK(is_order(list, 0, N) && list[0] + list[1] * 2 + list[2] * 4 != 10, "shuffled");
    ggml_opt_dataset_t e = numbered(1);
    ggml_opt_dataset_shuffle(b, e, -1);
    order(e, 4, again);
    CHECK(memcmp(list, again, sizeof list) == 0, "the same order for each new context");
    ggml_opt_dataset_shuffle(b, e, -1);
    order(e, 4, again);
    CHECK(is_order(again, 0, N) && memcmp(list, again, sizeof list) != 0, "and another one the second time");
    ggml_opt_dataset_free(e);
    e = numbered(2);
    ggml_opt_dataset_shuffle(a, e, 8);
    order(e, 4, again);
    CHECK(is_order(again, 0, 8) && again[8] == 8 && again[11] == 11, "the front alone");
    for (int i = 0; i < N; i += 2) {
        CHECK(again[i + 1] == again[i] + 1, "shards stay together");
    }
    ggml_opt_dataset_shuffle(a, e, 0);
    ggml_opt_dataset_free(e);

    struct ggml_context * ctx = ggml_init((struct ggml_init_params){ 8 * ggml_tensor_overhead(), NULL, true });
    struct ggml_tensor * to = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, NE, 4), * to_labels = ggml_new_tensor_2d(ctx, GGML_TYPE_I32, NL, 4);
    struct ggml_tensor * wrong = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, NL, 4), * few = ggml_new_tensor_2d(ctx, GGML_TYPE_I32, NL, 3);
    struct ggml_tensor * odd = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, NE - 1, 4);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, backends[0]);
    struct ggml_tensor * bare = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, NE, 4);
    ggml_opt_dataset_get_batch(d, to, to_labels, 2);
    CHECK(ggml_get_f32_nd(to, 0, 3, 0, 0) == (float) (list[11] * NE) && ggml_get_i32_nd(to_labels, 1, 0, 0, 0) == 101 + list[8] * NL, "a batch in tensors");
    const int bad = GGML_EXT_CODE_BAD_ARGUMENT, shape = GGML_EXT_CODE_BAD_SHAPE;
    CHECK_ERROR(ggml_opt_dataset_get_batch(d, to, to_labels, 3), bad, "a batch behind the last", "ggml_opt_dataset_get_batch", "no batch 3");
    CHECK_ERROR(ggml_opt_dataset_get_batch(d, to, to_labels, -1), bad, "a batch before the first", "no batch -1");
    CHECK_ERROR(ggml_opt_dataset_get_batch(d, to, to_labels, INT64_MAX), bad, "far behind", "no batch");
    CHECK_ERROR(ggml_opt_dataset_get_batch(d, to, NULL, 0), bad, "labels are left out", "has labels");
    CHECK_ERROR(ggml_opt_dataset_get_batch(d, to, wrong, 0), shape, "labels of another format", "format");
    CHECK_ERROR(ggml_opt_dataset_get_batch(d, to, few, 0), shape, "too few labels", "4 shards");
    CHECK_ERROR(ggml_opt_dataset_get_batch(d, odd, to_labels, 0), bad, "parts of datapoints", "whole number of shards");
    CHECK_ERROR(ggml_opt_dataset_get_batch(d, bare, to_labels, 0), GGML_EXT_CODE_NOT_ALLOCATED, "no memory", "no buffer");
    CHECK_ERROR(ggml_opt_dataset_get_batch(d, NULL, to_labels, 0), GGML_EXT_CODE_NULL_ARGUMENT, "no tensor", "NULL");
    CHECK_ERROR(ggml_opt_dataset_shuffle(a, d, N + 1), bad, "more than there are", "13 datapoints");
    float x[NE];
    int32_t y[NL];
    CHECK_ERROR(ggml_opt_dataset_get_batch_host(d, x, 5, y, 0), bad, "bytes of no datapoint", "5 bytes");
    CHECK_ERROR(ggml_opt_dataset_get_batch_host(d, x, 0, y, 0), bad, "no bytes", "0 bytes");
    CHECK_ERROR(ggml_opt_dataset_get_batch_host(d, x, sizeof x, NULL, 0), bad, "no place for labels", "labels");
    e = numbered(3);
    CHECK_ERROR(ggml_opt_dataset_shuffle(a, e, 4), bad, "a part of a shard", "shards of 3");
    ggml_opt_dataset_free(e);
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);

    e = ggml_opt_dataset_init(GGML_TYPE_F16, GGML_TYPE_F32, 4, 0, 10, 3);
    CHECK(e && ggml_opt_dataset_labels(e) == NULL, "without labels");
    CHECK_ERROR(ggml_opt_dataset_get_batch_host(e, x, 24, y, 0), bad, "a place for labels that are not there", "no labels");
    uint16_t h[12];
    check_log_errors = 0;
    ggml_opt_dataset_get_batch_host(e, h, sizeof h, NULL, 2);
    CHECK(check_log_errors == 0, "the last whole shard");
    CHECK_ERROR(ggml_opt_dataset_get_batch_host(e, h, sizeof h, NULL, 3), bad, "the rest fills none", "no batch 3");
    ggml_opt_dataset_free(e);

    const int64_t sizes[][4] = { { 0, 1, 4, 1 }, { 2, -1, 4, 1 }, { 2, 1, 0, 1 }, { 2, 1, 4, 0 }, { 2, 1, 4, 5 }, { INT64_MAX, 1, 4, 1 }, { 2, 1, INT64_MAX, 1 }, { INT64_MAX / 8, 1, 4, 1 } };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        ggml_opt_dataset_t none = d;
        CHECK_ERROR(none = ggml_opt_dataset_init(GGML_TYPE_F32, GGML_TYPE_F32, sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3]), GGML_EXT_CODE_NONE, "a size that cannot be", "ggml_opt_dataset_init");
        CHECK(none == NULL, "size %d: NULL", (int) i);
    }
    CHECK_ERROR(ggml_opt_dataset_init(GGML_TYPE_Q8_0, GGML_TYPE_F32, 33, 0, 4, 1), GGML_EXT_CODE_BAD_SHAPE, "parts of blocks", "33 elements");
    ggml_opt_free(a);
    ggml_opt_free(b);
    ggml_opt_dataset_free(d);
}

static void settings(void) {
    struct ggml_opt_optimizer_params p = ggml_opt_get_default_optimizer_params(NULL);
    CHECK(p.adamw.alpha == 0.001f && p.adamw.beta1 == 0.9f && p.adamw.beta2 == 0.999f && p.adamw.eps == 1e-8f && p.adamw.wd == 0 && p.sgd.alpha == 1e-3f && p.sgd.wd == 0, "default settings");
    p.sgd.wd = 0.5f;
    CHECK(ggml_opt_get_constant_optimizer_params(&p).sgd.wd == 0.5f, "constant settings");
    CHECK_ERROR(p = ggml_opt_get_constant_optimizer_params(NULL), GGML_EXT_CODE_NULL_ARGUMENT, "no settings", "NULL");
    struct ggml_opt_params o = ggml_opt_default_params(sched, GGML_OPT_LOSS_TYPE_MEAN);
    CHECK(o.backend_sched == sched && !o.ctx_compute && !o.inputs && !o.outputs && o.loss_type == GGML_OPT_LOSS_TYPE_MEAN && o.build_type == GGML_OPT_BUILD_TYPE_OPT && o.opt_period == 1 && o.get_opt_pars == ggml_opt_get_default_optimizer_params && o.optimizer == GGML_OPT_OPTIMIZER_TYPE_ADAMW, "default parameters");
    CHECK(strcmp(ggml_opt_optimizer_name(GGML_OPT_OPTIMIZER_TYPE_ADAMW), "adamw") == 0 && strcmp(ggml_opt_optimizer_name(GGML_OPT_OPTIMIZER_TYPE_SGD), "sgd") == 0 && strcmp(ggml_opt_optimizer_name((enum ggml_opt_optimizer_type) 7), "undefined") == 0, "names");
}

static struct ggml_opt_optimizer_params given;
static struct ggml_opt_optimizer_params give(void * userdata) {
    (void) userdata;
    return given;
}

/* Settings from a callback that first evaluates itself, once. */
static ggml_opt_context_t inside;
static struct model *     inside_model;
static float              inside_after[3];
static struct ggml_opt_optimizer_params give_after_eval(void * userdata) {
    if (inside) {
        ggml_opt_context_t opt = inside;
        inside = NULL;
        ggml_opt_eval(opt, NULL);
        model_get(inside_model, inside_after);
    }
    return ggml_opt_get_default_optimizer_params(userdata);
}

static void refused(const char * name, struct ggml_opt_params p, int code, const char * text) {
    ggml_opt_context_t opt = (ggml_opt_context_t) &given;
    CHECK_ERROR(opt = ggml_opt_init(p), code, name, "ggml_opt_init", text);
    CHECK(opt == NULL, "%s: NULL", name);
}

static void contexts(void) {
    const int bad = GGML_EXT_CODE_BAD_ARGUMENT, null = GGML_EXT_CODE_NULL_ARGUMENT;
    struct model m = model_make(LINEAR, 4);
    struct ggml_opt_params good = model_params(&m, GGML_OPT_OPTIMIZER_TYPE_ADAMW), p = good;
    p.backend_sched = NULL, refused("no scheduler", p, null, "scheduler"), p = good;
    p.opt_period = 0, refused("no period", p, bad, "opt_period 0"), p = good;
    p.loss_type = (enum ggml_opt_loss_type) 9, refused("an unknown loss", p, bad, "loss type 9"), p = good;
    p.build_type = (enum ggml_opt_build_type) 11, refused("an unknown build", p, bad, "build type 11"), p = good;
    p.optimizer = GGML_OPT_OPTIMIZER_TYPE_COUNT, refused("an unknown optimizer", p, bad, "optimizer 2"), p = good;
    p.get_opt_pars = NULL, refused("no callback", p, null, "get_opt_pars"), p = good;
    p.outputs = NULL, refused("no outputs", p, null, "outputs"), p = good;
    p.inputs = NULL, refused("no inputs", p, null, "inputs"), p = good;
    p.ctx_compute = NULL, refused("inputs without a context", p, bad, "ctx_compute"), p = good;
    p.inputs = m.outputs, refused("inputs without data", p, GGML_EXT_CODE_NOT_ALLOCATED, "no data"), p = good;
    p.outputs = m.inputs, refused("no parameter", p, bad, "ggml_set_param"), p = good;
    struct ggml_context * small = ggml_init((struct ggml_init_params){ 4096, NULL, true });
    p.ctx_compute = small, refused("a full context", p, GGML_EXT_CODE_OUT_OF_MEMORY, "context is full"), p = good;
    ggml_free(small);

    given = ggml_opt_get_default_optimizer_params(NULL);
    p.get_opt_pars = give;
    ggml_opt_context_t opt = ggml_opt_init(p);
    ggml_opt_dataset_t data = model_data(LINEAR, 1);
    float before[3], after[3];
    model_get(&m, before);
    CHECK_ERROR(ggml_opt_eval(opt, NULL), bad, "nothing is allocated", "ggml_opt_alloc");
    ggml_opt_alloc(opt, true);
    CHECK_ERROR(ggml_opt_alloc(opt, true), bad, "allocated twice", "ggml_opt_eval");
    ggml_opt_dataset_get_batch(data, m.inputs, ggml_opt_labels(opt), 0);
    const struct { const char * name, * text; float adamw[5]; } wrong[] = {
        { "no learning rate", "adamw.alpha 0", { 0, 0.9f, 0.9f, 0, 0 } },
        { "a negative share", "adamw.beta1 -1", { 1, -1, 0.9f, 0, 0 } },
        { "more than all", "adamw.beta2 2", { 1, 0.9f, 2, 0, 0 } },
        { "negative eps", "adamw.eps -1", { 1, 0.9f, 0.9f, -1, 0 } },
        { "too much decay", "adamw.wd 1.5", { 1, 0.9f, 0.9f, 0, 1.5f } },
        { "no number", "adamw.alpha NaN", { NAN, 0.9f, 0.9f, 0, 0 } },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memcpy(&given.adamw, wrong[i].adamw, sizeof given.adamw);
        CHECK_ERROR(ggml_opt_eval(opt, NULL), bad, wrong[i].name, "ggml_opt_eval", wrong[i].text);
    }
    model_get(&m, after);
    CHECK(memcmp(before, after, sizeof before) == 0, "refused settings change nothing");
    given = ggml_opt_get_default_optimizer_params(NULL);
    check_log_errors = 0;
    ggml_opt_eval(opt, NULL);
    model_get(&m, after);
    CHECK(check_log_errors == 0 && memcmp(before, after, sizeof before) != 0, "then it goes on");

    CHECK_ERROR(ggml_opt_prepare_alloc(opt, m.ctx_compute, NULL, m.inputs, m.outputs), bad, "graphs are there", "graphs already");
    CHECK_ERROR(ggml_opt_epoch(opt, data, NULL, NULL, 5, NULL, NULL), bad, "a part of a batch", "idata_split 5");
    CHECK_ERROR(ggml_opt_epoch(opt, data, NULL, NULL, 1000, NULL, NULL), bad, "more than all", "idata_split 1000");
    ggml_opt_dataset_t unlabelled = ggml_opt_dataset_init(GGML_TYPE_F32, GGML_TYPE_F32, N_IN, 0, 8, 1);
    CHECK_ERROR(ggml_opt_epoch(opt, unlabelled, NULL, NULL, -1, NULL, NULL), bad, "no labels to learn", "ggml_opt_epoch", "no labels");
    given.adamw.alpha = -1;
    CHECK_ERROR(ggml_opt_epoch(opt, data, NULL, NULL, -1, NULL, NULL), bad, "settings refused in an epoch", "adamw.alpha -1");
    given = ggml_opt_get_default_optimizer_params(NULL);
    check_log_errors = 0;
    ggml_opt_epoch(opt, data, NULL, NULL, -1, NULL, NULL);
    CHECK(check_log_errors == 0, "an epoch after one that broke off: %s", check_error_text());
    ggml_opt_dataset_free(unlabelled);
    ggml_opt_dataset_t other = ggml_opt_dataset_init(GGML_TYPE_F32, GGML_TYPE_F32, 3, 1, 8, 1);
    CHECK_ERROR(ggml_opt_epoch(opt, other, NULL, NULL, -1, NULL, NULL), GGML_EXT_CODE_BAD_SHAPE, "other datapoints", "3 elements");
    struct ggml_context * ctx = opt_compute_context();
    CHECK_ERROR(ggml_opt_fit(sched, ctx, m.inputs, m.outputs, data, GGML_OPT_LOSS_TYPE_SUM, GGML_OPT_OPTIMIZER_TYPE_SGD, give, 1, 6, 0, true), bad, "no multiple of a batch", "nbatch_logical 6");
    CHECK_ERROR(ggml_opt_fit(sched, NULL, m.inputs, m.outputs, data, GGML_OPT_LOSS_TYPE_SUM, GGML_OPT_OPTIMIZER_TYPE_SGD, give, 1, 4, 0, true), null, "no context", "context");
    CHECK_ERROR(ggml_opt_fit(sched, ctx, m.inputs, m.outputs, data, GGML_OPT_LOSS_TYPE_SUM, GGML_OPT_OPTIMIZER_TYPE_SGD, give, 1, 4, 1, true), bad, "nothing to train on", "val_split 1");
    ggml_free(ctx);
    ggml_opt_dataset_free(other);
    ggml_opt_free(opt);

    /* forward passes only */
    p = good;
    p.build_type = GGML_OPT_BUILD_TYPE_FORWARD;
    p.ctx_compute = opt_compute_context();
    p.outputs = model_outputs(&m, p.ctx_compute);
    opt = ggml_opt_init(p);
    CHECK_ERROR(ggml_opt_alloc(opt, true), bad, "no backward pass", "forward passes only");
    CHECK_ERROR(ggml_opt_reset(opt, false), bad, "no gradients", "forward passes only");
    CHECK(ggml_opt_grad_acc(opt, m.params[0]) == NULL, "no accumulator");
    ggml_opt_alloc(opt, false);
    ggml_opt_dataset_get_batch(data, m.inputs, ggml_opt_labels(opt), 0);
    ggml_opt_result_t r = ggml_opt_result_init();
    ggml_opt_eval(opt, r);
    double loss = 0;
    ggml_opt_result_loss(r, &loss, NULL);
    CHECK(loss > 0, "a forward pass: %g", loss);
    ggml_opt_free(opt);
    ggml_free(p.ctx_compute);

    /* an evaluation from inside the callback is the evaluation */
    model_reset(&m);
    p = good;
    p.get_opt_pars = give_after_eval;
    p.ctx_compute = opt_compute_context();
    p.outputs = model_outputs(&m, p.ctx_compute);
    inside = ggml_opt_init(p);
    inside_model = &m;
    opt = inside;
    ggml_opt_alloc(opt, true);
    ggml_opt_dataset_get_batch(data, m.inputs, ggml_opt_labels(opt), 0);
    model_get(&m, before);
    CHECK_ERROR(ggml_opt_eval(opt, NULL), bad, "evaluated by its own callback", "own callback");
    model_get(&m, after);
    CHECK(memcmp(inside_after, after, sizeof after) == 0 && memcmp(before, after, sizeof after) != 0, "evaluated by its own callback: one step");
    ggml_opt_free(opt);
    ggml_free(p.ctx_compute);

    /* graphs for each evaluation */
    p = good;
    p.ctx_compute = NULL, p.inputs = p.outputs = NULL;
    opt = ggml_opt_init(p);
    CHECK(opt && !ggml_opt_static_graphs(opt), "graphs are given");
    CHECK_ERROR(ggml_opt_alloc(opt, true), bad, "no graph", "ggml_opt_prepare_alloc");
    CHECK_ERROR(ggml_opt_epoch(opt, data, NULL, NULL, -1, NULL, NULL), bad, "no epoch", "fixed graphs");
    for (int k = 0; k < 2; k++) {
        struct model n = model_make(k == 0 ? LINEAR : CLASSES, 4);
        ctx = opt_compute_context();
        struct ggml_cgraph * gf = ggml_new_graph_custom(ctx, GGML_DEFAULT_GRAPH_SIZE, true);
        struct ggml_tensor * y = model_outputs(&n, ctx);
        ggml_build_forward_expand(gf, y);
        ggml_opt_prepare_alloc(opt, ctx, gf, n.inputs, y);
        if (k == 0) {
            ggml_opt_alloc(opt, true);
            ggml_opt_dataset_get_batch(data, n.inputs, ggml_opt_labels(opt), 0);
            ggml_opt_result_reset(r);
            ggml_opt_eval(opt, r);
            ggml_opt_result_loss(r, &loss, NULL);
            CHECK(loss > 0, "a graph that was given: %g", loss);
        } else {
            CHECK_ERROR(ggml_opt_alloc(opt, true), bad, "other parameters", "4 parameters");
            CHECK_ERROR(ggml_opt_eval(opt, r), bad, "nothing is allocated then", "ggml_opt_alloc");
        }
        ggml_free(ctx);
        model_free(&n);
    }
    ggml_opt_free(opt);
    ggml_opt_result_free(r);
    ggml_opt_dataset_free(data);
    model_free(&m);
}

/* Two steps with graphs that are given; `refused`: before and between them graphs that no step can be made of. */
static void two_steps(bool refused, float * w) {
    const int bad = GGML_EXT_CODE_BAD_ARGUMENT, full = GGML_EXT_CODE_OUT_OF_MEMORY;
    struct model m = model_make(LINEAR, 4), other = model_make(CLASSES, 4);
    ggml_opt_dataset_t data = model_data(LINEAR, 1);
    struct ggml_opt_params p = model_params(&m, GGML_OPT_OPTIMIZER_TYPE_ADAMW);
    p.ctx_compute = NULL, p.inputs = p.outputs = NULL;
    ggml_opt_context_t opt = ggml_opt_init(p);
    for (int k = refused ? 0 : 1; k < 4; k += refused ? 1 : 2) {
        struct model * n = k % 2 == 0 ? &other : &m;
        /* the first one has room for the model and the loss */
        const size_t few = ggml_graph_overhead_custom(GGML_DEFAULT_GRAPH_SIZE, true) + 12 * ggml_tensor_overhead();
        struct ggml_context * ctx = k == 0 ? ggml_init((struct ggml_init_params){ few, NULL, true }) : opt_compute_context();
        struct ggml_cgraph * gf = ggml_new_graph_custom(ctx, GGML_DEFAULT_GRAPH_SIZE, true);
        struct ggml_tensor * y = model_outputs(n, ctx);
        ggml_build_forward_expand(gf, y);
        ggml_opt_prepare_alloc(opt, ctx, gf, n->inputs, y);
        if (k % 2 == 0) {
            CHECK_ERROR(ggml_opt_alloc(opt, true), k == 0 ? full : bad, "a graph that is refused", k == 0 ? "context is full" : "4 parameters");
            CHECK_ERROR(ggml_opt_eval(opt, NULL), bad, "nothing is allocated then", "ggml_opt_alloc");
        } else {
            ggml_opt_alloc(opt, true);
            ggml_opt_dataset_get_batch(data, n->inputs, ggml_opt_labels(opt), k);
            ggml_opt_eval(opt, NULL);
        }
        ggml_free(ctx);
    }
    model_get(&m, w);
    ggml_opt_free(opt);
    ggml_opt_dataset_free(data);
    model_free(&other);
    model_free(&m);
}

static void graphs_refused_between(void) {
    float w[3], v[3];
    two_steps(false, w);
    two_steps(true, v);
    CHECK(memcmp(w, v, sizeof w) == 0, "refused graphs change no moment: %g and %g", (double) w[0], (double) v[0]);
}

static void results(void) {
    ggml_opt_result_t r = ggml_opt_result_init();
    double x = -1, unc = -1;
    int64_t n = -1;
    int32_t pred = 42;
    ggml_opt_result_ndata(r, &n);
    ggml_opt_result_loss(r, &x, &unc);
    CHECK(n == 0 && x == 0 && isnan(unc), "an empty result");
    ggml_opt_result_accuracy(r, &x, &unc);
    CHECK(isnan(x) && isnan(unc), "has no accuracy");
    ggml_opt_result_pred(r, &pred);
    CHECK(pred == 42, "and no predictions");
    ggml_opt_result_loss(r, NULL, NULL);

    /* batches of one size and kind only */
    struct model a = model_make(LINEAR, 4), b = model_make(LINEAR, 8);
    ggml_opt_dataset_t data = model_data(LINEAR, 1);
    for (int i = 0; i < 2; i++) {
        struct model * m = i == 0 ? &a : &b;
        ggml_opt_context_t opt = ggml_opt_init(model_params(m, GGML_OPT_OPTIMIZER_TYPE_SGD));
        ggml_opt_alloc(opt, false);
        ggml_opt_dataset_get_batch(data, m->inputs, ggml_opt_labels(opt), 0);
        if (i == 0) {
            ggml_opt_eval(opt, r);
            ggml_opt_result_loss(r, &x, &unc);
            CHECK(x > 0 && isnan(unc), "one batch has no uncertainty");
        } else {
            CHECK_ERROR(ggml_opt_eval(opt, r), GGML_EXT_CODE_BAD_ARGUMENT, "another size", "batches of 4");
        }
        ggml_opt_result_ndata(r, &n);
        CHECK(n == 4, "four datapoints");
        ggml_opt_free(opt);
    }
    ggml_opt_dataset_free(data);
    model_free(&a);
    model_free(&b);
    ggml_opt_result_free(r);
}

int main(void) {
    check_quiet();
    opt_start(1);
    datasets();
    settings();
    contexts();
    graphs_refused_between();
    results();
    opt_end(1);
    return check_done();
}
