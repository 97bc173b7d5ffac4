/* Norms with the element-by-element nodes that follow them in diffusion models, each in one pass over a row:
 *
 *   fusion.rms_norm_mul       rms(x) * w
 *   fusion.rms_norm_modulate  v + v * s, where v = rms(x) * w       (a transformer's modulation)
 *   fusion.rms_norm_gate      (rms(x) * w) * g                      (its gates)
 *   fusion.norm_mul_add       norm(x) * w + b                       (layer norm)
 *
 * Results have the bits of the nodes by themselves: each value is rounded where the nodes round it, and rows are added up in the order
 * of crates/cpu/src/ops/vec/reduce.rs. If that changes, this has to; the run says so by pictures that differ. */
#include "rules.h"

#include <math.h>
#include <string.h>

enum { LANES = 16, SUM_BLOCK = 1024, MAX_ROW = 4096, WINDOW = 64 };

enum kind { RMS_MUL, RMS_MODULATE, RMS_GATE, NORM_MUL_ADD, N_KINDS };

static const struct shape {
    const char * name;
    enum ggml_op norm;
    int          n_nodes;
    int32_t      priority;
} SHAPES[N_KINDS] = {
    [RMS_MUL]      = { "fusion.rms_norm_mul", GGML_OP_RMS_NORM, 2, 0 },
    [RMS_MODULATE] = { "fusion.rms_norm_modulate", GGML_OP_RMS_NORM, 4, 2 },
    [RMS_GATE]     = { "fusion.rms_norm_gate", GGML_OP_RMS_NORM, 3, 1 },
    [NORM_MUL_ADD] = { "fusion.norm_mul_add", GGML_OP_NORM, 3, 0 },
};

static struct rule {
    enum kind                  kind;
    ggml_ext_cpu_parallel_v1_t parallel;
} rules[N_KINDS];

/* which nodes */

static const struct ggml_tensor * at(struct ggml_cgraph * graph, int i) {
    return i < ggml_graph_n_nodes(graph) ? ggml_graph_node(graph, i) : NULL;
}

static bool reads(const struct ggml_tensor * t, enum ggml_op op, const struct ggml_tensor * a) {
    return t && t->op == op && t->src[0] == a && t->src[1] != a;
}

/* Whether node `first` begins the pattern, if what follows the first multiplication began at node `next_at`. */
static bool is_pattern(struct ggml_cgraph * graph, enum kind kind, int first, int next_at) {
    const struct ggml_tensor * norm = at(graph, first);
    const struct ggml_tensor * mul  = at(graph, first + 1);
    if (!norm || norm->op != SHAPES[kind].norm || !reads(mul, GGML_OP_MUL, norm)) {
        return false;
    }
    const struct ggml_tensor * next = at(graph, next_at);
    switch (kind) {
        case RMS_MUL: return true;
        case RMS_GATE: return reads(next, GGML_OP_MUL, mul);
        case NORM_MUL_ADD: return reads(next, GGML_OP_ADD, mul);
        case RMS_MODULATE: {
            const struct ggml_tensor * sum = at(graph, next_at + 1);
            return reads(next, GGML_OP_MUL, mul) && reads(sum, GGML_OP_ADD, mul) && sum->src[1] == next;
        }
        default: return false;
    }
}

static int match(struct ggml_cgraph * graph, int first, void * user_data) {
    const struct rule * rule = user_data;
    return is_pattern(graph, rule->kind, first, first + 2) ? SHAPES[rule->kind].n_nodes : 0;
}

/* What the second multiplication multiplies by is computed between the norm and it: the norm has to wait for it. */
static void optimize(struct ggml_cgraph * graph, void * user_data) {
    const struct rule * rule = user_data;
    const int           n    = ggml_graph_n_nodes(graph);
    for (int first = 0; first + 2 < n; first++) {
        if (!is_pattern(graph, RMS_MUL, first, 0)) {
            continue;
        }
        for (int scale = first + 2; scale < n && scale < first + WINDOW; scale++) {
            if (is_pattern(graph, rule->kind, first, scale)) {
                if (scale > first + 2) {
                    ggml_ext_graph_delay(graph, first, 2, scale); /* may be refused: then nothing is fused here */
                }
                break;
            }
        }
    }
}

static bool has_rows(const struct ggml_tensor * t) {
    return t->type == GGML_TYPE_F32 && t->nb[0] == sizeof(float);
}

/* What v is multiplied by or added to: one row for all, or one of several in turn. */
static bool is_row_of(const struct ggml_tensor * t, const struct ggml_tensor * like) {
    return has_rows(t) && t->ne[0] == like->ne[0];
}

static bool supports(const struct ggml_ext_step * step, void * user_data) {
    const struct rule *        rule = user_data;
    const struct ggml_tensor * out  = step->nodes[step->n_nodes - 1];
    const struct ggml_tensor * x    = step->nodes[0]->src[0];
    if (!has_rows(x) || !has_rows(out) || !ggml_are_same_shape(x, out)) {
        return ggml_ext_refuse("source and result must be F32, of one shape, with the elements of a row side by side");
    }
    if (rule->kind == NORM_MUL_ADD && x->ne[0] > MAX_ROW) {
        return ggml_ext_refuse("rows are too long");
    }
    if (!is_row_of(step->nodes[1]->src[1], out) || (step->n_nodes > 2 && !is_row_of(step->nodes[2]->src[1], out))) {
        return ggml_ext_refuse("factors and bias must be F32 and have rows of the same length");
    }
    /* A row is read before it is written, and other rows are other memory, but a shifted overlap would be a fault. */
    for (int i = 1; i < step->n_srcs; i++) {
        if (step->overlap >> i & 1) {
            return ggml_ext_refuse("the result lies over a factor");
        }
    }
    return true;
}

/* numbers */

static inline float fused(float a, float b, float c) {
#if defined(__FMA__) || defined(__aarch64__)
    return fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

static double tree(const float * v) {
    double d[LANES];
    for (int i = 0; i < LANES; i++) {
        d[i] = v[i];
    }
    for (int half = LANES / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; i++) {
            d[i] += d[i + half];
        }
    }
    return d[0];
}

enum term { PLAIN, SQUARE };

/* Sum of x - from, or of its square: four accumulators of 16 lanes, folded into f64 every 1024 values. */
static inline double sum(enum term term, float from, const float * x, int64_t n) {
    double total = 0;
    for (int64_t start = 0; start < n; start += SUM_BLOCK) {
        const int64_t end       = start + SUM_BLOCK < n ? start + SUM_BLOCK : n;
        float         acc[4][LANES] = { { 0 } };
        int64_t       i         = start;
        for (int k = 0; i + LANES <= end; i += LANES, k = (k + 1) & 3) {
            for (int l = 0; l < LANES; l++) {
                const float d = x[i + l] - from;
                acc[k][l]     = term == SQUARE ? fused(d, d, acc[k][l]) : acc[k][l] + x[i + l];
            }
        }
        for (int l = 0; i < end; i++, l++) {
            const float d = x[i] - from;
            acc[3][l]     = term == SQUARE ? fused(d, d, acc[3][l]) : acc[3][l] + x[i];
        }
        for (int l = 0; l < LANES; l++) {
            acc[0][l] = (acc[0][l] + acc[1][l]) + (acc[2][l] + acc[3][l]);
        }
        total += tree(acc[0]);
    }
    return total;
}

struct scale {
    float mean, factor;
};

static struct scale rms(const float * x, int64_t n, float eps) {
    const double mean = sum(SQUARE, 0, x, n) / (double) n;
    return (struct scale){ 0, (float) (1.0 / sqrt(mean + (double) eps)) };
}

/* Of ordinary numbers; what is beyond f32 on the way gives infinities and NaN here. */
static struct scale centred(const float * x, int64_t n, float eps) {
    const double mean  = sum(PLAIN, 0, x, n) / (double) n;
    const float  m     = (float) mean;
    const double shift = mean - (double) m;
    const double m2    = fmax(sum(SQUARE, m, x, n) - (double) n * shift * shift, 0);
    return (struct scale){ m, (float) (1.0 / sqrt(m2 / (double) n + (double) eps)) };
}

/* rows */

static inline float * row(const struct ggml_tensor * t, int64_t i1, int64_t i2, int64_t i3) {
    return (float *) ((char *) t->data + (size_t) i1 * t->nb[1] + (size_t) i2 * t->nb[2] + (size_t) i3 * t->nb[3]);
}

static const float * repeated(const struct ggml_tensor * t, int64_t i1, int64_t i2, int64_t i3) {
    return row(t, i1 % t->ne[1], i2 % t->ne[2], i3 % t->ne[3]);
}

struct job {
    const struct ggml_ext_step * step;
    enum kind                    kind;
};

static void work(int ith, int nth, void * user_data) {
    const struct job *         job  = user_data;
    struct ggml_tensor * const *node = job->step->nodes;
    const struct ggml_tensor * x = node[0]->src[0], *out = node[job->step->n_nodes - 1];
    const int64_t              n = x->ne[0], rows = ggml_nrows(x);
    float                      eps;
    memcpy(&eps, node[0]->op_params, sizeof eps);
    for (int64_t r = rows * ith / nth; r < rows * (ith + 1) / nth; r++) {
        const int64_t i1 = r % x->ne[1], i2 = r / x->ne[1] % x->ne[2], i3 = r / x->ne[1] / x->ne[2];
        const float * p = row(x, i1, i2, i3);
        const float * w = repeated(node[1]->src[1], i1, i2, i3);
        float *       o = row(out, i1, i2, i3);
        const float * s = job->kind == RMS_MUL ? NULL : repeated(node[2]->src[1], i1, i2, i3);
        const struct scale c = job->kind == NORM_MUL_ADD ? centred(p, n, eps) : rms(p, n, eps);
        switch (job->kind) {
            case RMS_MUL:
                for (int64_t i = 0; i < n; i++) {
                    o[i] = p[i] * c.factor * w[i];
                }
                break;
            case RMS_GATE:
                for (int64_t i = 0; i < n; i++) {
                    o[i] = p[i] * c.factor * w[i] * s[i];
                }
                break;
            case RMS_MODULATE:
                for (int64_t i = 0; i < n; i++) {
                    const float v = p[i] * c.factor * w[i];
                    const float u = v * s[i];
                    o[i]          = v + u;
                }
                break;
            default:
                for (int64_t i = 0; i < n; i++) {
                    const float v = (p[i] - c.mean) * c.factor * w[i];
                    o[i]          = v + s[i];
                }
        }
    }
}

static enum ggml_status execute(const struct ggml_ext_run * run, void * user_data) {
    const struct rule * rule = user_data;
    struct job          job  = { run->step, rule->kind };
    return rule->parallel(run->backend, work, &job);
}

/* registration */

bool rules_register(ggml_backend_dev_t device) {
    const ggml_ext_cpu_parallel_v1_t parallel = (ggml_ext_cpu_parallel_v1_t) ggml_backend_reg_get_proc_address(
        ggml_backend_dev_backend_reg(device), "ggml_ext_cpu_parallel_v1");
    for (int i = 0; parallel && i < N_KINDS; i++) {
        rules[i] = (struct rule){ (enum kind) i, parallel };
        GGML_EXT_INIT(ggml_ext_kernel_desc, desc);
        desc.name      = SHAPES[i].name;
        desc.priority  = SHAPES[i].priority;
        desc.match_op  = SHAPES[i].norm;
        desc.match     = match;
        desc.optimize  = i == RMS_MODULATE || i == RMS_GATE ? optimize : NULL;
        desc.supports  = supports;
        desc.execute   = execute;
        desc.user_data = &rules[i];
        if (!ggml_ext_register_kernel_ex(device, &desc, GGML_EXT_KERNEL_DETERMINISTIC)) {
            return false;
        }
    }
    return parallel != NULL;
}

const char * rules_name(int i) {
    return i >= 0 && i < N_KINDS ? SHAPES[i].name : NULL;
}

void rules_but(int one, char names[RULES_NAMES]) {
    names[0] = 0;
    for (int i = 0; i < N_KINDS; i++) {
        if (i != one) {
            strcat(strcat(names, names[0] ? "," : ""), SHAPES[i].name);
        }
    }
}

unsigned long long rules_launches(ggml_backend_dev_t device) {
    unsigned long long n = 0;
    for (int i = 0; i < N_KINDS; i++) {
        GGML_EXT_INIT(ggml_ext_counters, counters);
        if (ggml_ext_counters(device, SHAPES[i].name, &counters)) {
            n += counters.ran;
        }
    }
    return n;
}
