/* ABI-5: ggml_ext_check on an override of ADD, right and wrong in one way at a time: each fault is found by the case that is for it. */
#include "ext_check_util.h"

enum fault {
    NONE,
    PAST_END,      /* one number behind the result is written */
    BEFORE,        /* one before it */
    WRITES_INPUT,
    METADATA,      /* a flag of an input is set */
    NO_STRIDES,
    NO_GAPS,       /* rows are taken to lie one behind the other, though an element may be anywhere in them */
    NO_NAN,
    NO_INF,
    FLUSHES,       /* denormal numbers are 0 */
    NO_HUGE,       /* through numbers of another format */
    COPIES_FIRST,  /* the result is written before all is read */
    RESTRICT,      /* two inputs are taken to be two tensors */
    NOT_PREFERRED,
    REFUSES,
    NOT_EMPTY,     /* fails without elements */
    ADDS_UP,       /* to what is in the result */
    ADDS_SCRATCH,  /* what is in scratch counts */
    SCRATCH_PAST,
    SCRATCH_BEFORE,
    KEEPS_SCRATCH, /* it is filled in the first execution and read in the later ones */
    CACHES,        /* the first result is the result of a plan */
    ADDRESSES,     /* of prepare are used in execute */
    ADDRESS_IN,    /* of an input */
    ASKS_LESS,     /* for scratch, while memory is measured */
    NEEDS_DATA,    /* in prepare */
    LEAKS,
    KEEPS_COUNT,   /* leaks, and counts it */
    FAILS,
};

struct add {
    enum fault fault;
    int64_t    live;
};

struct state {
    const struct ggml_tensor * t;
    void *                     result, * src;
    float *                    kept;
    bool                       again;
};

static bool supports(const struct ggml_ext_step * step, void * data) {
    const struct add *         k = data;
    const struct ggml_tensor * t = step->nodes[0];
    if (k->fault == REFUSES) {
        return ggml_ext_refuse("not today");
    }
    return f32s(step) && (ggml_are_same_shape(t->src[0], t->src[1]) || ggml_ext_refuse("no broadcast"));
}

static bool preferred(const struct ggml_ext_step * step, void * data) {
    (void) step;
    return ((struct add *) data)->fault != NOT_PREFERRED || ggml_ext_refuse("better not");
}

static enum ggml_status prepare(const struct ggml_ext_step * step, struct ggml_ext_prepared * out, void * data) {
    struct add * k = data;
    if (k->fault == NEEDS_DATA && !step->srcs[0]->data) {
        ggml_ext_refuse("there are no data");
        return GGML_STATUS_FAILED;
    }
    struct state * s = calloc(1, sizeof *s);
    s->t             = step->nodes[0];
    s->result        = s->t->data;
    s->src           = step->srcs[0]->data;
    k->live++;
    out->state          = s;
    out->workspace_size = k->fault == ASKS_LESS && !step->srcs[0]->data ? 4 : 40;
    return GGML_STATUS_SUCCESS;
}

static void destroy(void * state, void * data) {
    struct state * s = state;
    struct add *   k = data;
    free(s->kept);
    if (k->fault == KEEPS_COUNT) {
        free(s);
        return;
    }
    k->live--;
    if (k->fault != LEAKS) {
        free(s);
    }
}

static float sum(enum fault fault, float a, float b) {
    const float c = a + b;
    switch (fault) {
        case NO_NAN: return isnan(a) || isnan(b) ? 0 : c;
        case NO_INF: return isinf(c) ? copysignf(3e38f, c) : c;
        case FLUSHES: return fpclassify(c) == FP_SUBNORMAL ? 0 : c;
        case NO_HUGE: return fabsf(c) > 65504 && isfinite(c) ? copysignf(INFINITY, c) : c;
        default: return c;
    }
}

static enum ggml_status execute(const struct ggml_ext_run * run, void * data) {
    struct add *         k  = data;
    const enum fault     f  = k->fault;
    struct ggml_tensor * y  = run->step->nodes[0];
    struct ggml_tensor   a  = *y->src[0], b = *y->src[1];
    struct state *       s  = run->state;
    const int64_t        n  = ggml_nelements(y);
    float *              ws = ggml_backend_buffer_get_base(run->workspace);
    float                more = 0;
    if (f == FAILS || (f == NOT_EMPTY && n == 0)) {
        ggml_ext_refuse("it does not go");
        return GGML_STATUS_FAILED;
    }
    if (run->workspace_size < 40 && f != ASKS_LESS) {
        return GGML_STATUS_FAILED;
    }
    if (f == METADATA) {
        y->src[1]->flags |= GGML_TENSOR_FLAG_LOSS;
    }
    if (f == NO_STRIDES || f == NO_GAPS) {
        for (int d = f == NO_GAPS; d < 4; d++) {
            a.nb[d] = y->nb[d];
            b.nb[d] = y->nb[d];
        }
    }
    if (f == ADDRESSES && !s->result) {
        abort(); /* what it does in earnest */
    }
    if (f == ADDRESS_IN && !s->src) {
        abort();
    }
    struct ggml_tensor to = *y;
    if (f == ADDRESSES) {
        to.data = s->result;
    }
    if (f == ADDRESS_IN) {
        a.data = s->src;
    }
    if (f == COPIES_FIRST) {
        EACH(&to) AT(&to) = AT(&b);
        EACH(&to) AT(&to) += AT(&a);
        return GGML_STATUS_SUCCESS;
    }
    if (f == ADDS_SCRATCH) {
        more = ws[3];
    }
    if (f == KEEPS_SCRATCH) {
        if (!s->again) {
            ws[0]    = 1;
            s->again = true;
        }
        more = ws[0] - 1;
    }
    const bool twice = f == RESTRICT && a.data == b.data;
    EACH(&to) {
        const float x = sum(f, AT(&a), twice ? 0 : AT(&b));
        AT(&to) = f == ADDS_UP ? AT(&to) + x : more != 0 ? x + more : x;
        if (f == WRITES_INPUT) {
            AT(&a) = x;
        }
    }
    if (f == CACHES) {
        if (s->kept) {
            memcpy(to.data, s->kept, ggml_nbytes(y));
        } else {
            s->kept = malloc(ggml_nbytes(y) + 1);
            memcpy(s->kept, to.data, ggml_nbytes(y));
        }
    }
    if (f == PAST_END && n > 0) {
        ((float *) to.data)[n] = 1;
    }
    if (f == BEFORE && n > 0) {
        ((float *) to.data)[-1] = 1;
    }
    if (f == SCRATCH_PAST || f == SCRATCH_BEFORE) {
        ws[f == SCRATCH_PAST ? 10 : -1] = 1;
    }
    return GGML_STATUS_SUCCESS;
}

static struct ggml_tensor * build(struct ggml_context * ctx, uint64_t seed, void * data) {
    (void) data;
    struct ggml_tensor * a = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, 9, 5 + (int64_t) seed, 3, 2);
    struct ggml_tensor * b = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, 9, 5 + (int64_t) seed, 3, 2);
    return ggml_add(ctx, a, b);
}

static int64_t live(void * data) { return ((struct add *) data)->live; }

static bool check_add(struct add * k, const char * leave_out) {
    GGML_EXT_INIT(ggml_ext_kernel_desc, desc);
    desc.name      = "test_add";
    desc.op        = GGML_OP_ADD;
    desc.user_data = k;
    desc.supports  = supports;
    desc.preferred = preferred;
    desc.prepare   = prepare;
    desc.execute   = execute;
    desc.destroy   = destroy;
    CHECK(ggml_ext_register_kernel_ex(dev, &desc, GGML_EXT_KERNEL_DETERMINISTIC), "registered");
    GGML_EXT_INIT(ggml_ext_check_params, params);
    params.build     = build;
    params.user_data = k;
    params.leave_out = leave_out;
    params.live      = k->fault == KEEPS_COUNT ? live : NULL;
    const bool good  = check_it("test_add", &params);
    CHECK(ggml_ext_release(dev, "test_add"), "no plan is left");
    return good;
}

#define NO_FUSION "fusion.consumer fusion.output fusion.view fusion.alias "

/* The cases of ADD that compare a result. */
#define ALL_RESULTS                                                                                                                    \
    "moved plain again threads contents poison layout.offset layout.rows layout.planes layout.permuted layout.transposed empty "       \
    "special.nan special.inf special.tiny special.huge same_input inplace scheduler "

static void bad_without(const char * leave_out, enum fault fault, const char * what, const char * failed) {
    struct add k = { .fault = fault };
    check_add(&k, leave_out);
    expect_bad(what, failed);
}

static void bad(enum fault fault, const char * what, const char * failed) { bad_without(NULL, fault, what, failed); }

/* Whether the library can see what malloc has in use. */
static bool heap_is_seen(void) {
    struct add k = { .fault = NONE };
    check_add(&k, NULL);
    return has(found.passed, "state");
}

int main(void) {
    begin();
    CHECK(ggml_ext_features() & GGML_EXT_FEATURE_CHECK, "the feature bit");

    struct add right = { .fault = NONE };
    check_add(&right, NULL);
    const bool heap = heap_is_seen();
    expect_good("an override that is right", heap ? "unfused " NO_FUSION : "unfused " NO_FUSION "state ");

    bad(PAST_END, "a write behind the result", "guards ");
    bad(BEFORE, "a write before the result", "guards ");
    bad(WRITES_INPUT, "a write into an input", "inputs ");
    bad(METADATA, "a write into metadata", "metadata ");
    bad(NO_STRIDES, "strides ignored", "layout.rows layout.planes layout.permuted layout.transposed ");
    bad(NO_GAPS, "strides of rows ignored", "layout.rows layout.planes layout.permuted layout.transposed ");
    bad(NO_NAN, "NaN lost", "special.nan ");
    bad(NO_INF, "infinity lost", "special.inf ");
    bad(FLUSHES, "denormal numbers lost", "special.tiny ");
    bad(NO_HUGE, "large numbers lost", "special.huge ");
    bad(COPIES_FIRST, "in place wrong", "inplace scheduler ");
    bad(RESTRICT, "two inputs that are one", "same_input ");
    bad(NOT_PREFERRED, "never chosen", "chosen ");
    bad(NOT_EMPTY, "no elements", "empty ");
    bad(ADDS_UP, "the result is not initialised", "poison special.tiny inplace scheduler ");
    /* a scheduler's scratch holds anything */
    bad_without("scheduler", ADDS_SCRATCH, "scratch is read", "poison ");
    bad(SCRATCH_PAST, "a write behind scratch", "workspace ");
    bad(SCRATCH_BEFORE, "a write before scratch", "workspace ");
    bad(KEEPS_SCRATCH, "scratch is kept between runs", "again threads contents poison ");
    bad(CACHES, "the first result is kept", "contents scheduler ");
    bad(ADDRESSES, "addresses are kept", "moved ");
    bad(ADDRESS_IN, "the address of an input is kept", "moved ");
    bad(ASKS_LESS, "less scratch asked for when measured", "measure ");
    bad(NEEDS_DATA, "prepare needs data", "measure ");
    bad(KEEPS_COUNT, "states are not given back, by count", "state ");
    if (heap) {
        bad(LEAKS, "states are not given back, by memory", "state ");
    } else {
        check_skip("states are not given back, by memory", "the memory in use cannot be looked at here");
    }
    bad(FAILS, "execute fails", ALL_RESULTS);
    bad(REFUSES, "supports says no", "chosen ");
    CHECK(found.report.n_runs == 0, "never launched: no run");

    ggml_backend_free(cpu);
    return check_done();
}
