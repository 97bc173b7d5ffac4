/* Training: contexts with fixed graphs and with graphs given for each evaluation, both optimizers, periods, two backends. */
#include "opt.h"

static const enum ggml_opt_optimizer_type optimizers[] = { GGML_OPT_OPTIMIZER_TYPE_ADAMW, GGML_OPT_OPTIMIZER_TYPE_SGD };

static void converge(enum model_kind kind, enum ggml_opt_optimizer_type optimizer) {
    const char * name = ggml_opt_optimizer_name(optimizer);
    const char * what = kind == LINEAR ? "regression" : "classifier";
    struct model m = model_make(kind, 8);
    ggml_opt_dataset_t data = model_data(kind, 1);
    ggml_opt_context_t opt = ggml_opt_init(model_params(&m, optimizer));
    if (!CHECK(opt != NULL, "%s, %s: a context", what, name)) {
        return;
    }
    CHECK(ggml_opt_static_graphs(opt) && ggml_opt_context_optimizer_type(opt) == optimizer, "%s, %s: what it is", what, name);
    CHECK(ggml_opt_inputs(opt) == m.inputs && ggml_opt_outputs(opt) == m.outputs && ggml_opt_labels(opt) && ggml_opt_loss(opt), "%s, %s: tensors", what, name);
    CHECK((ggml_opt_pred(opt) != NULL) == (kind == CLASSES) && (ggml_opt_ncorrect(opt) != NULL) == (kind == CLASSES), "%s, %s: predictions", what, name);
    ggml_opt_result_t first = ggml_opt_result_init(), last = ggml_opt_result_init();
    ggml_opt_epoch(opt, data, NULL, first, 0, NULL, NULL);
    for (int epoch = 0; epoch < 200; epoch++) {
        ggml_opt_dataset_shuffle(opt, data, -1);
        ggml_opt_epoch(opt, data, NULL, NULL, -1, NULL, NULL);
    }
    ggml_opt_epoch(opt, data, NULL, last, 0, NULL, NULL);
    double before, after, unc, accuracy;
    ggml_opt_result_loss(first, &before, NULL);
    ggml_opt_result_loss(last, &after, &unc);
    ggml_opt_result_accuracy(last, &accuracy, NULL);
    CHECK(before > 0.3 && after < (kind == LINEAR ? 1e-4 : 0.15) && unc >= 0, "%s, %s: the loss falls: %g, %g +- %g", what, name, before, after, unc);
    int64_t n;
    ggml_opt_result_ndata(last, &n);
    CHECK(n == N_DATA, "%s, %s: all data", what, name);
    if (kind == CLASSES) {
        CHECK(accuracy > 0.95, "%s, %s: accuracy %g", what, name, accuracy);
        int32_t pred[N_DATA];
        int right = 0;
        ggml_opt_result_pred(last, pred);
        for (int i = 0; i < N_DATA; i += 8) {
            float x[16], y[24];
            ggml_opt_dataset_get_batch_host(data, x, sizeof x, y, i / 8);
            for (int k = 0; k < 8; k++) {
                right += pred[i + k] >= 0 && pred[i + k] < 3 && y[3 * k + pred[i + k]] == 1;
            }
        }
        CHECK(right == (int) lround(accuracy * N_DATA), "%s, %s: %d predictions are right", what, name, right);
    } else {
        float w[3];
        model_get(&m, w);
        CHECK(fabsf(w[0] - 2) < 0.05f && fabsf(w[1] + 3) < 0.05f && fabsf(w[2] - 0.5f) < 0.05f, "%s, %s: %g %g %g", what, name, (double) w[0], (double) w[1], (double) w[2]);
        CHECK(isnan(accuracy), "%s, %s: no accuracy", what, name);
    }
    ggml_opt_result_free(first);
    ggml_opt_result_free(last);
    ggml_opt_free(opt);
    ggml_opt_dataset_free(data);
    model_free(&m);
}

/* Trains for some batches; graphs built once or for each. */
static void train(enum model_kind kind, enum ggml_opt_optimizer_type optimizer, bool fixed, int batch, int period, int passes, float * out) {
    struct model m = model_make(kind, batch);
    ggml_opt_dataset_t data = model_data(kind, 1);
    struct ggml_opt_params p = model_params(&m, optimizer);
    p.opt_period = period;
    if (!fixed) {
        p.ctx_compute = NULL;
        p.inputs = p.outputs = NULL;
    }
    ggml_opt_context_t opt = ggml_opt_init(p);
    CHECK(opt && ggml_opt_static_graphs(opt) == fixed, "a context");
    for (int i = 0; i < passes; i++) {
        struct ggml_context * ctx = fixed ? NULL : opt_compute_context();
        bool backward = i % 5 != 3; /* forward passes in between change nothing */
        if (!fixed) {
            struct ggml_cgraph * gf = ggml_new_graph_custom(ctx, GGML_DEFAULT_GRAPH_SIZE, true);
            struct ggml_tensor * y = model_outputs(&m, ctx);
            ggml_build_forward_expand(gf, y);
            ggml_opt_prepare_alloc(opt, ctx, gf, m.inputs, y);
        }
        ggml_opt_alloc(opt, backward);
        ggml_opt_dataset_get_batch(data, ggml_opt_inputs(opt), ggml_opt_labels(opt), i % (N_DATA / batch));
        ggml_opt_eval(opt, NULL);
        ggml_free(ctx);
    }
    model_get(&m, out);
    ggml_opt_free(opt);
    ggml_opt_dataset_free(data);
    model_free(&m);
}

static void fixed_or_given(void) {
    for (int o = 0; o < 2; o++) {
        for (int period = 1; period <= 3; period++) {
            float a[64], b[64];
            struct model m = { .kind = CLASSES };
            train(CLASSES, optimizers[o], true, 6, period, 20, a);
            train(CLASSES, optimizers[o], false, 6, period, 20, b);
            CHECK(memcmp(a, b, (size_t) model_size(&m) * sizeof(float)) == 0, "%s, period %d: graphs built once and each time give the same bits", ggml_opt_optimizer_name(optimizers[o]), period);
        }
    }
}

static float distance(const float * a, const float * b, int n) {
    float d = 0;
    for (int i = 0; i < n; i++) {
        d = fmaxf(d, fabsf(a[i] - b[i]));
    }
    return d;
}

/* Two batches of 8 that make one step are one batch of 16. */
static void periods(enum model_kind kind) {
    float half[64], whole[64], start[64];
    struct model m = model_make(kind, 8);
    model_get(&m, start);
    for (int o = 0; o < 2; o++) {
        for (int period = 1; period <= 2; period++) {
            struct model n = model_make(kind, 16 / period);
            ggml_opt_dataset_t data = model_data(kind, 1);
            struct ggml_opt_params p = model_params(&n, optimizers[o]);
            p.opt_period = period;
            ggml_opt_context_t opt = ggml_opt_init(p);
            for (int i = 0; i < 3; i++) {
                ggml_opt_epoch(opt, data, NULL, NULL, -1, NULL, NULL);
            }
            model_get(&n, period == 1 ? whole : half);
            ggml_opt_free(opt);
            ggml_opt_dataset_free(data);
            model_free(&n);
        }
        float moved = distance(start, whole, model_size(&m)), apart = distance(half, whole, model_size(&m));
        CHECK(moved > 0.05f && apart < 1e-4f, "%s: a period of two is a batch of twice the size: moved %g, apart %g", ggml_opt_optimizer_name(optimizers[o]), (double) moved, (double) apart);
    }
    model_free(&m);
}

static void losses(void) {
    const enum ggml_opt_loss_type types[] = { GGML_OPT_LOSS_TYPE_MEAN, GGML_OPT_LOSS_TYPE_SUM };
    for (int i = 0; i < 2; i++) {
        struct model m = model_make(LINEAR, 4);
        struct ggml_opt_params p = model_params(&m, GGML_OPT_OPTIMIZER_TYPE_SGD);
        p.loss_type = types[i];
        p.build_type = GGML_OPT_BUILD_TYPE_GRAD;
        ggml_opt_context_t opt = ggml_opt_init(p);
        ggml_opt_result_t r = ggml_opt_result_init();
        CHECK(opt && !ggml_opt_labels(opt), "no labels");
        float x[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, w[3], g[2];
        model_get(&m, w);
        for (int k = 1; k <= 2; k++) {
            ggml_opt_alloc(opt, true);
            ggml_backend_tensor_set(m.inputs, x, 0, sizeof x);
            ggml_opt_eval(opt, r);
            /* every pass is one of gradients only: they add up */
            float share = types[i] == GGML_OPT_LOSS_TYPE_MEAN ? 0.25f : 1;
            ggml_backend_tensor_get(ggml_opt_grad_acc(opt, m.params[0]), g, 0, sizeof g);
            CHECK(g[0] == 16 * share * (float) k && g[1] == 20 * share * (float) k, "loss type %d, pass %d: gradients %g %g", types[i], k, (double) g[0], (double) g[1]);
        }
        double loss, sum = 0;
        for (int k = 0; k < 4; k++) {
            sum += (double) (w[0] * x[2 * k] + w[1] * x[2 * k + 1] + w[2]);
        }
        ggml_opt_result_loss(r, &loss, NULL);
        double want = types[i] == GGML_OPT_LOSS_TYPE_MEAN ? sum / 4 : 2 * sum;
        CHECK(fabs(loss - want) < 1e-5 * (1 + fabs(want)), "loss type %d: %g, not %g", types[i], loss, want);
        ggml_opt_reset(opt, false);
        ggml_backend_tensor_get(ggml_opt_grad_acc(opt, m.params[0]), g, 0, sizeof g);
        CHECK(g[0] == 0 && g[1] == 0, "reset");
        ggml_opt_result_free(r);
        ggml_opt_free(opt);
        model_free(&m);
    }
}

/* With reset moments a step is the first one again. */
static void reset_optimizer(void) {
    struct model m = model_make(LINEAR, 8);
    ggml_opt_dataset_t data = model_data(LINEAR, 1);
    ggml_opt_context_t opt = ggml_opt_init(model_params(&m, GGML_OPT_OPTIMIZER_TYPE_ADAMW));
    float w[3][3];
    for (int i = 0; i < 3; i++) {
        model_reset(&m);
        if (i == 2) {
            ggml_opt_reset(opt, true);
        }
        ggml_opt_alloc(opt, true);
        ggml_opt_dataset_get_batch(data, m.inputs, ggml_opt_labels(opt), i == 1);
        ggml_opt_eval(opt, NULL);
        model_get(&m, w[i]);
    }
    CHECK(memcmp(w[0], w[2], sizeof w[0]) == 0, "after a reset the first step again");
    CHECK(memcmp(w[0], w[1], sizeof w[0]) != 0, "another one before");
    ggml_opt_free(opt);
    ggml_opt_dataset_free(data);
    model_free(&m);
}

static int64_t seen_epoch, calls, evals;
static ggml_opt_context_t in_callback;

static struct ggml_opt_optimizer_params by_epoch(void * userdata) {
    seen_epoch = *(int64_t *) userdata;
    calls++;
    return fast(NULL);
}

static void count(bool is_train, ggml_opt_context_t opt, ggml_opt_dataset_t data, ggml_opt_result_t r, int64_t i, int64_t n, int64_t t_start) {
    int64_t ndata = -1;
    if (r) {
        ggml_opt_result_ndata(r, &ndata);
    }
    bool sound = i >= 1 && i <= n && n == (is_train ? 4 : 2) && ggml_opt_dataset_ndata(data) == N_DATA && ggml_opt_loss(opt) && t_start <= ggml_time_us();
    evals += sound && (!r || ndata == 8 * i);
    in_callback = opt;
    /* callbacks may use everything */
    ggml_opt_epoch_callback_progress_bar(is_train, opt, data, r, i, n, t_start);
}

static void loops(void) {
    struct model m = model_make(CLASSES, 8);
    ggml_opt_dataset_t data = model_data(CLASSES, 2);
    ggml_opt_context_t opt = ggml_opt_init(model_params(&m, GGML_OPT_OPTIMIZER_TYPE_ADAMW));
    ggml_opt_result_t r = ggml_opt_result_init();
    ggml_opt_epoch(opt, data, NULL, r, 32, count, count);
    CHECK(evals == 6 && in_callback == opt, "an epoch of four batches and two");
    ggml_opt_free(opt);
    ggml_opt_result_free(r);
    model_free(&m);

    for (int silent = 0; silent < 2; silent++) {
        m = model_make(CLASSES, 8);
        calls = 0;
        float before[64], after[64];
        model_get(&m, before);
        ggml_opt_fit(sched, m.ctx_compute, m.inputs, m.outputs, data, GGML_OPT_LOSS_TYPE_CROSS_ENTROPY, GGML_OPT_OPTIMIZER_TYPE_SGD, by_epoch, 3, 16, 0.34f, silent);
        model_get(&m, after);
        /* two thirds less one step of the 48 go into steps of 16: one for each epoch */
        CHECK(seen_epoch == 3 && calls == 3, "fit: %d steps in %d epochs", (int) calls, (int) seen_epoch);
        CHECK(distance(before, after, model_size(&m)) > 0, "fit: it learns");
        model_free(&m);
    }
    ggml_opt_dataset_free(data);
}

/* Two models on one scheduler, in turns: each is trained as if it were alone. */
static void one_scheduler(void) {
    float alone[64], together[64];
    struct model m[2];
    ggml_opt_context_t opt[2];
    ggml_opt_dataset_t data = model_data(CLASSES, 1);
    for (int round = 0; round < 2; round++) {
        for (int k = 0; k <= round; k++) {
            m[k] = model_make(CLASSES, 8);
            opt[k] = ggml_opt_init(model_params(&m[k], GGML_OPT_OPTIMIZER_TYPE_ADAMW));
        }
        for (int i = 0; i < 6; i++) {
            for (int k = 0; k <= round; k++) {
                ggml_opt_alloc(opt[k], true);
                ggml_opt_dataset_get_batch(data, m[k].inputs, ggml_opt_labels(opt[k]), i);
                ggml_opt_eval(opt[k], NULL);
            }
        }
        model_get(&m[0], round == 0 ? alone : together);
        if (round == 1) {
            /* what was allocated first is gone when the other is */
            ggml_opt_alloc(opt[0], true);
            ggml_opt_alloc(opt[1], true);
            int before = check_log_errors;
            CHECK_ERROR(ggml_opt_eval(opt[0], NULL), GGML_EXT_CODE_BAD_ARGUMENT, "another graph in between", "ggml_opt_eval", "another graph");
            check_log_errors = before;
        }
        for (int k = 0; k <= round; k++) {
            ggml_opt_free(opt[k]);
            model_free(&m[k]);
        }
    }
    CHECK(memcmp(alone, together, (size_t) (N_IN * N_HIDDEN + N_HIDDEN + N_HIDDEN * N_CLASSES + N_CLASSES) * sizeof(float)) == 0, "two models on one scheduler");
    ggml_opt_dataset_free(data);
}

int main(void) {
    check_quiet();
    for (int n = 1; n <= 2; n++) {
        opt_start(n);
        for (int o = 0; o < 2; o++) {
            converge(LINEAR, optimizers[o]);
            converge(CLASSES, optimizers[o]);
        }
        fixed_or_given();
        periods(LINEAR);
        periods(CLASSES);
        losses();
        reset_optimizer();
        evals = 0;
        loops();
        one_scheduler();
        opt_end(n);
    }
    CHECK(check_log_errors == 0, "no error was logged: %s", check_error_text());
    return check_done();
}
