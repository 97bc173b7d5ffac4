/* A device made of several CPUs: what it computes is what one computes, however weights are divided. */
#include "nmse.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-backend-impl.h"
#include "ggml-cpu.h"

#define F32 GGML_TYPE_F32
typedef struct ggml_tensor *  T;
typedef struct ggml_context * C;

static int n_devices; /* of the device that is being tested */

/* "name@AXIS:a,b,c;times*d,e,f": segments of pieces for each device; without @: whole on each. */
static struct ggml_backend_meta_split_state split_of(const struct ggml_tensor * t, void * userdata) {
    struct ggml_backend_meta_split_state s;
    memset(&s, 0, sizeof s);
    s.axis        = GGML_BACKEND_SPLIT_AXIS_MIRRORED;
    s.n_segments  = 1;
    s.nr[0]       = 1;
    ++*(int *) userdata;
    const char * p = strchr(t->name, '@');
    if (!p) {
        return s;
    }
    s.axis       = (enum ggml_backend_meta_split_axis) strtol(p + 1, (char **) &p, 10);
    s.n_segments = 0;
    while (*p == ':' || *p == ';') {
        long n = strtol(p + 1, (char **) &p, 10);
        s.nr[s.n_segments] = 1;
        if (*p == '*') {
            s.nr[s.n_segments] = (uint32_t) n;
            n                  = strtol(p + 1, (char **) &p, 10);
        }
        int device = 0;
        s.ne[s.n_segments * (uint32_t) n_devices + (uint32_t) device++] = n;
        while (*p == ',') {
            s.ne[s.n_segments * (uint32_t) n_devices + (uint32_t) device++] = strtol(p + 1, (char **) &p, 10);
        }
        s.n_segments++;
    }
    return s;
}

static int                asked;
static ggml_backend_dev_t device_of(int n) {
    ggml_backend_dev_t all[16];
    for (int i = 0; i < 16; i++) {
        all[i] = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    }
    n_devices = n;
    return ggml_backend_meta_device(all, (size_t) n, split_of, &asked);
}

/* weights live longer than a graph; `x` is its input */
struct model {
    C weights, graph;
    T x, y;
};

static T weight(C c, enum ggml_type type, int64_t a, int64_t b, const char * name) {
    T t = ggml_new_tensor_2d(c, type, a, b);
    ggml_set_name(t, name);
    return t;
}
static T input(struct model * m, int64_t a, int64_t b) {
    m->x = ggml_new_tensor_2d(m->graph, F32, a, b);
    ggml_set_name(m->x, "x");
    ggml_set_input(m->x);
    return m->x;
}

static void rows(struct model * m) { m->y = ggml_mul_mat(m->graph, weight(m->weights, F32, 64, 48, "w@1:16,32"), input(m, 64, 5)); }
static void columns(struct model * m) { m->y = ggml_mul_mat(m->graph, weight(m->weights, F32, 64, 48, "w@0:40,24"), ggml_mul_mat(m->graph, weight(m->weights, F32, 32, 64, "v@1:40,24"), input(m, 32, 5))); }
static void nothing(struct model * m) { m->y = ggml_mul_mat(m->graph, weight(m->weights, F32, 64, 48, "w@0:64,0"), ggml_silu(m->graph, ggml_mul_mat(m->graph, weight(m->weights, F32, 32, 64, "v@1:64,0"), input(m, 32, 5)))); }

static void feed_forward(struct model * m, enum ggml_type type) {
    C g = m->graph;
    T x = input(m, 128, 6);
    T n = ggml_mul(g, ggml_rms_norm(g, x, 1e-6f), weight(m->weights, F32, 128, 1, "norm"));
    T gate = ggml_mul_mat(g, weight(m->weights, type, 128, 256, "gate@1:96,160"), n);
    T up   = ggml_add(g, ggml_mul_mat(g, weight(m->weights, type, 128, 256, "up@1:96,160"), n), weight(m->weights, F32, 256, 1, "bias@0:96,160"));
    T down = ggml_mul_mat(g, weight(m->weights, type, 256, 128, "down@0:96,160"), ggml_mul(g, ggml_silu(g, gate), up));
    m->y   = ggml_add(g, down, x);
}
static void feed_forward_f32(struct model * m) { feed_forward(m, F32); }
static void feed_forward_f16(struct model * m) { feed_forward(m, GGML_TYPE_F16); }
static void feed_forward_q8(struct model * m) { feed_forward(m, GGML_TYPE_Q8_0); }

/* 6 heads of 16, 3 of keys and values, over a cache of 12 tokens, the last 4 of which are new */
static void attention(struct model * m, bool flash, bool fused) {
    C g = m->graph;
    T x = input(m, 96, 4);
    T q, k, v;
    if (fused) {
        T all = ggml_mul_mat(g, weight(m->weights, F32, 96, 192, "qkv@1:64,32;2*32,16"), x);
        q     = ggml_view_3d(g, all, 16, 6, 4, 64, all->nb[1], 0);
        k     = ggml_view_3d(g, all, 16, 3, 4, 64, all->nb[1], 96 * 4);
        v     = ggml_view_2d(g, all, 48, 4, all->nb[1], 144 * 4);
    } else {
        q = ggml_reshape_3d(g, ggml_mul_mat(g, weight(m->weights, F32, 96, 96, "q@1:64,32"), x), 16, 6, 4);
        k = ggml_reshape_3d(g, ggml_mul_mat(g, weight(m->weights, F32, 96, 48, "k@1:32,16"), x), 16, 3, 4);
        v = ggml_mul_mat(g, weight(m->weights, F32, 96, 48, "v@1:32,16"), x);
    }
    T at = weight(m->weights, GGML_TYPE_I32, 4, 1, "positions");
    q    = ggml_rope(g, q, at, 16, GGML_ROPE_TYPE_NEOX);
    k    = ggml_rope(g, k, at, 16, GGML_ROPE_TYPE_NEOX);
    T keys = weight(m->weights, GGML_TYPE_F16, 48, 12, "keys@0:32,16"), values = weight(m->weights, GGML_TYPE_F16, 48, 12, "values@0:32,16");
    T store_k = ggml_cpy(g, ggml_reshape_2d(g, k, 48, 4), ggml_view_2d(g, keys, 48, 4, keys->nb[1], 8 * keys->nb[1]));
    T store_v = ggml_cpy(g, v, ggml_view_2d(g, values, 48, 4, values->nb[1], 8 * values->nb[1]));
    /* what is read depends on what was stored by the graph's order: see new_model() */
    ggml_set_output(store_k);
    ggml_set_output(store_v);
    T K = ggml_permute(g, ggml_view_3d(g, keys, 16, 3, 12, 16 * 2, keys->nb[1], 0), 0, 2, 1, 3);
    T V = ggml_permute(g, ggml_view_3d(g, values, 16, 3, 12, 16 * 2, values->nb[1], 0), 0, 2, 1, 3);
    q   = ggml_permute(g, q, 0, 2, 1, 3);
    T o;
    if (flash) {
        o = ggml_flash_attn_ext(g, q, K, V, NULL, 0.25f, 0, 0);
        o = ggml_reshape_2d(g, o, 96, 4);
    } else {
        T kq = ggml_soft_max_ext(g, ggml_mul_mat(g, K, q), NULL, 0.25f, 0);
        T vt = ggml_cont(g, ggml_transpose(g, V));
        o    = ggml_mul_mat(g, vt, kq);
        o    = ggml_cont_2d(g, ggml_permute(g, o, 0, 2, 1, 3), 96, 4);
    }
    m->y = ggml_mul_mat(g, weight(m->weights, F32, 96, 80, "o@0:64,32"), o);
}
static void attention_flash(struct model * m) { attention(m, true, false); }
static void attention_soft_max(struct model * m) { attention(m, false, false); }
static void attention_fused(struct model * m) { attention(m, true, true); }

static const struct {
    const char * name;
    void (*build)(struct model *);
    double limit;
} models[] = {
    { "product by rows", rows, 1e-12 },
    { "product by columns", columns, 1e-11 },
    { "a device without a part", nothing, 1e-11 },
    { "feed forward f32", feed_forward_f32, 1e-11 },
    { "feed forward f16", feed_forward_f16, 1e-6 },
    { "feed forward q8_0", feed_forward_q8, 1e-4 },
    { "attention", attention_flash, 1e-6 },
    { "attention by products", attention_soft_max, 1e-6 },
    { "attention, queries, keys and values in one", attention_fused, 1e-6 },
};
enum { N_MODELS = sizeof models / sizeof *models };

static void fill(T t, int seed) {
    const int64_t n = ggml_nelements(t);
    float *       x = malloc((size_t) n * sizeof *x);
    void *        d = calloc(1, ggml_nbytes(t));
    for (int64_t i = 0; i < n; i++) {
        x[i] = (float) ((i * 37 + seed * 101) % 199) / 100.0f - 1.0f;
    }
    if (t->type == F32) {
        memcpy(d, x, ggml_nbytes(t));
    } else if (t->type == GGML_TYPE_I32) {
        for (int64_t i = 0; i < n; i++) {
            ((int32_t *) d)[i] = (int32_t) i + 8;
        }
    } else {
        ggml_quantize_chunk(t->type, x, d, 0, ggml_nrows(t), t->ne[0], NULL);
    }
    ggml_backend_tensor_set(t, d, 0, ggml_nbytes(t));
    free(x);
    free(d);
}

static struct model new_model(int i, struct ggml_cgraph ** graph) {
    struct model m;
    m.weights = ggml_init((struct ggml_init_params){ 1 << 18, NULL, true });
    m.graph   = ggml_init((struct ggml_init_params){ 1 << 20, NULL, true });
    models[i].build(&m);
    ggml_set_output(m.y);
    *graph = ggml_new_graph(m.graph);
    for (T t = ggml_get_first_tensor(m.graph); t; t = ggml_get_next_tensor(m.graph, t)) {
        if (t->op == GGML_OP_CPY) {
            ggml_build_forward_expand(*graph, t);
        }
    }
    ggml_build_forward_expand(*graph, m.y);
    return m;
}

/* The result on a backend, or on it and the CPU through the scheduler; NULL: not computed. `times` graphs, the last one counts. */
static float * computed(int i, ggml_backend_t backend, bool sched, int64_t * n, int times) {
    struct ggml_cgraph *  g;
    struct model          m = new_model(i, &g);
    ggml_backend_buffer_t w = ggml_backend_alloc_ctx_tensors(m.weights, backend);
    if (!w) {
        return NULL;
    }
    ggml_backend_buffer_set_usage(w, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    int seed = 1;
    for (T t = ggml_get_first_tensor(m.weights); t; t = ggml_get_next_tensor(m.weights, t)) {
        fill(t, seed++);
    }
    float *              y   = NULL;
    ggml_backend_t       cpu = ggml_backend_cpu_init(), both[2] = { backend, cpu };
    ggml_backend_sched_t s   = ggml_backend_sched_new(both, NULL, 2, 256, false, true);
    ggml_gallocr_t       a   = ggml_gallocr_new(ggml_backend_get_default_buffer_type(backend));
    bool                 ok  = sched ? ggml_backend_sched_alloc_graph(s, g) : ggml_gallocr_alloc_graph(a, g);
    for (int time = 0; ok && time < times; time++) {
        fill(m.x, 90 + times - time);
        ok = (sched ? ggml_backend_sched_graph_compute(s, g) : ggml_backend_graph_compute(backend, g)) == GGML_STATUS_SUCCESS;
    }
    if (ok) {
        *n = ggml_nelements(m.y);
        y  = malloc(ggml_nbytes(m.y));
        ggml_backend_tensor_get(m.y, y, 0, ggml_nbytes(m.y));
    }
    ggml_gallocr_free(a);
    ggml_backend_sched_free(s);
    ggml_backend_free(cpu);
    ggml_backend_buffer_free(w);
    ggml_free(m.graph);
    ggml_free(m.weights);
    return y;
}

static void same_as_one(void) {
    ggml_backend_t two = ggml_backend_dev_init(device_of(2), NULL), one = ggml_backend_cpu_init();
    for (int i = 0; i < N_MODELS; i++) {
        for (int sched = 0; sched < 2; sched++) {
            int64_t n = 0, m = 0;
            float * a = computed(i, two, sched, &n, 2);
            float * b = computed(i, one, false, &m, 2);
            if (CHECK(a && b && n == m, "%s%s: computed", models[i].name, sched ? ", scheduled" : "")) {
                const double e = nmse(a, b, n);
                CHECK(e <= models[i].limit, "%s%s: as on one device: %g", models[i].name, sched ? ", scheduled" : "", e);
            }
            free(a);
            free(b);
        }
    }
    CHECK(asked > 0, "the application was asked how to divide");
    ggml_backend_free(two);
    ggml_backend_free(one);
}

static void facts(void) {
    ggml_backend_dev_t dev = device_of(2);
    CHECK(dev && dev == device_of(2) && dev != device_of(3), "the same arguments give the same device");
    device_of(2);
    CHECK(strcmp(ggml_backend_dev_name(dev), "Meta(CPU,CPU)") == 0 && strncmp(ggml_backend_dev_description(dev), "Meta(", 5) == 0, "name and description: %s", ggml_backend_dev_description(dev));
    CHECK(ggml_backend_dev_type(dev) == GGML_BACKEND_DEVICE_TYPE_META && ggml_backend_dev_backend_reg(dev) == NULL, "type");
    size_t available, total, own, own_total;
    ggml_backend_dev_memory(dev, &available, &total);
    ggml_backend_dev_memory(ggml_backend_dev_get(0), &own, &own_total);
    CHECK(total == 2 * own_total, "memory of both");
    struct ggml_backend_dev_props p;
    ggml_backend_dev_get_props(dev, &p);
    CHECK(p.type == GGML_BACKEND_DEVICE_TYPE_META && p.memory_total == total && !p.caps.events, "props");
    ggml_backend_t b = ggml_backend_dev_init(dev, NULL), cpu = ggml_backend_cpu_init();
    CHECK(b && ggml_backend_is_meta(b) && !ggml_backend_is_meta(cpu) && !ggml_backend_is_meta(NULL), "a backend");
    CHECK(ggml_backend_meta_n_backends(b) == 2 && ggml_backend_meta_n_backends(cpu) == 0, "of two");
    CHECK(ggml_backend_is_cpu(ggml_backend_meta_simple_backend(b, 1)) && ggml_backend_meta_simple_backend(b, 2) == NULL, "which can be had");
    ggml_backend_buffer_type_t t = ggml_backend_dev_buffer_type(dev);
    CHECK(ggml_backend_buft_is_meta(t) && !ggml_backend_buft_is_meta(ggml_backend_cpu_buffer_type()) && !ggml_backend_buft_is_host(t), "memory that is not the host's");
    CHECK(ggml_backend_dev_supports_buft(dev, t) && !ggml_backend_dev_supports_buft(dev, ggml_backend_cpu_buffer_type()) && !ggml_backend_dev_supports_buft(ggml_backend_dev_get(0), t), "it uses its own memory alone");
    ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(t, 1000);
    CHECK(ggml_backend_buffer_is_meta(buffer) && ggml_backend_buffer_get_size(buffer) == 1000 && ggml_backend_buffer_get_base(buffer), "a buffer");
    ggml_backend_meta_buffer_set_usage(buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    CHECK_ERROR(ggml_backend_meta_buffer_set_usage(NULL, GGML_BACKEND_BUFFER_USAGE_WEIGHTS), GGML_EXT_CODE_NONE, "no buffer", "ggml_backend_meta_buffer_set_usage");
    ggml_backend_buffer_free(buffer);
    ggml_backend_free(b);
    ggml_backend_free(cpu);
    static const struct { enum ggml_backend_meta_split_axis axis; const char * name; } names[] = {
        { GGML_BACKEND_SPLIT_AXIS_0, "0" }, { GGML_BACKEND_SPLIT_AXIS_3, "3" }, { GGML_BACKEND_SPLIT_AXIS_MIRRORED, "MIRRORED" },
        { GGML_BACKEND_SPLIT_AXIS_PARTIAL, "PARTIAL" }, { GGML_BACKEND_SPLIT_AXIS_NONE, "NONE" }, { (enum ggml_backend_meta_split_axis) 55, "UNKNOWN" },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CHECK(strcmp(ggml_backend_meta_split_axis_name(names[i].axis), names[i].name) == 0, "axis %s", names[i].name);
    }
    ggml_backend_dev_t none = NULL;
    CHECK_ERROR(dev = ggml_backend_meta_device(NULL, 0, split_of, NULL), GGML_EXT_CODE_NONE, "no devices", "ggml_backend_meta_device");
    CHECK(dev == NULL, "no devices: NULL");
    CHECK_ERROR(dev = ggml_backend_meta_device(&none, 1, split_of, NULL), GGML_EXT_CODE_NONE, "a device that is NULL", "ggml_backend_meta_device");
    CHECK_ERROR(dev = ggml_backend_meta_device(&none, 17, split_of, NULL), GGML_EXT_CODE_NONE, "too many devices", "ggml_backend_meta_device", "17 devices");
}

/* Bytes to and from tensors that are divided, whole and in any part. */
static void data(void) {
    ggml_backend_t b = ggml_backend_dev_init(device_of(3), NULL);
    static const char * const names[] = { "m", "a@0:32,64,32", "b@1:3,0,4", "c@1:1,1,1;2*1,0,1", "d@2:1,0,1", "e@0:32,32,0;0,32,32" };
    for (int type = 0; type < 2; type++) {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            C c = ggml_init((struct ggml_init_params){ 1 << 14, NULL, true });
            T t = ggml_new_tensor_3d(c, type ? GGML_TYPE_Q8_0 : F32, 128, 7, 2);
            ggml_set_name(t, names[i]);
            ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(c, b);
            if (!CHECK(buffer && ggml_backend_buffer_is_meta(buffer), "%s: placed", names[i])) {
                continue;
            }
            const size_t    n = ggml_nbytes(t);
            unsigned char * x = malloc(n), * y = malloc(n);
            for (size_t k = 0; k < n; k++) {
                x[k] = (unsigned char) (k * 7 + k / 256);
            }
            ggml_backend_tensor_set(t, x, 0, n);
            ggml_backend_tensor_get(t, y, 0, n);
            CHECK(memcmp(x, y, n) == 0, "%s: there and back", names[i]);
            bool part = true;
            for (size_t k = 0; k < 200; k++) {
                const size_t from = (k * 131) % n, size = (k * 97) % (n - from);
                for (size_t j = 0; j < size; j++) {
                    x[from + j] = (unsigned char) (x[from + j] + k);
                }
                ggml_backend_tensor_set(t, x + from, from, size);
                memset(y, 0, n);
                ggml_backend_tensor_get(t, y + from, from, size);
                part = part && memcmp(x + from, y + from, size) == 0;
            }
            ggml_backend_tensor_get(t, y, 0, n);
            CHECK(part && memcmp(x, y, n) == 0, "%s: any bytes of it", names[i]);
            ggml_backend_tensor_memset(t, 9, 100, 1500);
            memset(x + 100, 9, 1500);
            ggml_backend_tensor_get(t, y, 0, n);
            CHECK(memcmp(x, y, n) == 0, "%s: set to one value in part", names[i]);
            ggml_backend_buffer_clear(buffer, 0);
            ggml_backend_tensor_get(t, y, 0, n);
            memset(x, 0, n);
            CHECK(memcmp(x, y, n) == 0, "%s: cleared", names[i]);
            free(x);
            free(y);
            ggml_backend_buffer_free(buffer);
            ggml_free(c);
        }
    }
    ggml_backend_free(b);
}

static char lines[2000];
static void keep_line(enum ggml_log_level level, const char * text, void * user_data) {
    (void) level;
    (void) user_data;
    const size_t n = strlen(lines);
    snprintf(lines + n, sizeof lines - n, "%.*s; ", (int) strcspn(text, "\n"), text);
}

static void faults(void) {
    ggml_backend_t b = ggml_backend_dev_init(device_of(2), NULL);
    static const struct { const char * name, * text; } bad[] = {
        { "w@1:10,10", "20 long in all" }, { "w@0:10,22", "whole blocks" }, { "w@1:-1,49", "negative" }, { "w@7:1,1", "no division" },
        { "w@1:1000000*1000000,0", "too long" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        C c = ggml_init((struct ggml_init_params){ 1 << 14, NULL, true });
        weight(c, GGML_TYPE_Q8_0, 32, 48, bad[i].name);
        ggml_backend_buffer_t buffer = NULL;
        lines[0]         = 0;
        check_log_errors = 0;
        ggml_log_set(keep_line, NULL);
        buffer = ggml_backend_alloc_ctx_tensors(c, b);
        CHECK(buffer == NULL && strstr(lines, bad[i].text), "%s: refused: %s", bad[i].name, lines);
        check_quiet();
        ggml_free(c);
    }
    /* an operator that needs whole rows of what is divided along them */
    for (int k = 0; k < 3; k++) {
        C weights = ggml_init((struct ggml_init_params){ 1 << 14, NULL, true }), g = ggml_init((struct ggml_init_params){ 1 << 18, NULL, true });
        T w = weight(weights, F32, 64, 48, "w@1:16,32"), x = ggml_new_tensor_2d(g, F32, 64, 5);
        ggml_set_input(x);
        T y = ggml_mul_mat(g, w, x);
        T z = k == 0 ? ggml_norm(g, y, 1e-5f) : k == 1 ? ggml_conv_2d(g, ggml_new_tensor_4d(g, F32, 3, 3, 1, 1), ggml_reshape_4d(g, y, 48, 5, 1, 1), 1, 1, 1, 1, 1, 1) : ggml_add(g, ggml_scale(g, ggml_new_tensor_2d(g, F32, 48, 5), 2), y);
        ggml_set_name(z, "the node");
        struct ggml_cgraph * graph = ggml_new_graph(g);
        ggml_build_forward_expand(graph, z);
        ggml_backend_buffer_t wb = ggml_backend_alloc_ctx_tensors(weights, b);
        ggml_gallocr_t        a  = ggml_gallocr_new(ggml_backend_get_default_buffer_type(b));
        check_log_errors = 0;
        const bool allocated = ggml_gallocr_alloc_graph(a, graph);
        const bool ran       = allocated && ggml_backend_graph_compute(b, graph) == GGML_STATUS_SUCCESS;
        CHECK(!ran && check_log_errors > 0, "a node that cannot be divided (%d): %s", k, check_error_text());
        CHECK(k == 1 || strstr(check_error_text(), "'the node'"), "it is named (%d)", k);
        ggml_gallocr_free(a);
        ggml_backend_buffer_free(wb);
        ggml_free(weights);
        ggml_free(g);
    }
    ggml_backend_free(b);
}

/* A callback of what is computed cannot begin more, and what is computed goes on. */
static ggml_backend_t       again_on;
static struct ggml_cgraph * again_graph;
static int                  again_refused;
static void again(struct ggml_tensor * dst, const struct ggml_tensor * a, int ith, int nth, void * userdata) {
    (void) ith, (void) nth, (void) userdata;
    memcpy(dst->data, a->data, ggml_nbytes(dst));
    again_refused += ggml_backend_graph_compute(again_on, again_graph) == GGML_STATUS_FAILED && check_error_code() == GGML_EXT_CODE_RE_ENTERED;
}

static void from_a_callback(void) {
    ggml_backend_t b = ggml_backend_dev_init(device_of(2), NULL);
    C              g = ggml_init((struct ggml_init_params){ 1 << 18, NULL, true });
    T              x = ggml_new_tensor_1d(g, F32, 8);
    ggml_set_input(x);
    T y = ggml_scale(g, ggml_map_custom1(g, x, again, 1, NULL), 2);
    again_on    = b;
    again_graph = ggml_new_graph(g);
    ggml_build_forward_expand(again_graph, y);
    ggml_gallocr_t a = ggml_gallocr_new(ggml_backend_get_default_buffer_type(b));
    CHECK(ggml_gallocr_alloc_graph(a, again_graph), "a graph with a callback: placed");
    float v[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, w[8] = { 0 };
    ggml_backend_tensor_set(x, v, 0, sizeof v);
    CHECK(ggml_backend_graph_compute(b, again_graph) == GGML_STATUS_SUCCESS && again_refused == 2, "a graph from a callback is refused on each device (%d)", again_refused);
    ggml_backend_tensor_get(y, w, 0, sizeof w);
    CHECK(w[0] == 2 && w[7] == 16, "the graph whose callback it was goes on");
    ggml_gallocr_free(a);
    ggml_free(g);
    ggml_backend_free(b);
}

int main(void) {
    check_quiet();
    facts();
    data();
    same_as_one();
    faults();
    from_a_callback();
    return check_done();
}
