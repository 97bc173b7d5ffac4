/* Graphs prepared once and computed many times; the plain way of computing; what is known of the machine's memory; contexts and graphs
 * as text; what modules call. */
#include "fake_device.h"
#include "nmse.h"
#include "ggml/src/ggml-impl.h"
#include "ggml-threading.h"

#include <pthread.h>
#include <unistd.h>

struct work {
    struct ggml_context * ctx;
    struct ggml_tensor *  x, * w, * image, * kernel, * y, * z;
    struct ggml_cgraph *  graph;
    ggml_backend_buffer_t buffer;
};

static float value(int i, int seed) { return (float) ((i * 37 + seed * 101) % 199) / 100.0f - 1.0f; }

static void fill(struct ggml_tensor * t, int seed) {
    const int64_t n = ggml_nelements(t);
    float *       x = malloc((size_t) n * sizeof *x);
    void *        d = malloc(ggml_nbytes(t));
    for (int64_t i = 0; i < n; i++) {
        x[i] = value((int) i, seed);
    }
    ggml_quantize_chunk(t->type == GGML_TYPE_F32 ? GGML_TYPE_F16 : t->type, x, d, 0, ggml_nrows(t), t->ne[0], NULL);
    ggml_backend_tensor_set(t, t->type == GGML_TYPE_F32 ? (void *) x : d, 0, ggml_nbytes(t));
    free(x);
    free(d);
}

/* Attention-like products, a softmax and a convolution, on the CPU. */
static struct work new_work(ggml_backend_t backend) {
    struct work w = { .ctx = ggml_init((struct ggml_init_params){ 1 << 20, NULL, true }) };
    w.x           = ggml_new_tensor_2d(w.ctx, GGML_TYPE_F32, 256, 30);
    w.w           = ggml_new_tensor_2d(w.ctx, GGML_TYPE_Q4_0, 256, 64);
    w.image       = ggml_new_tensor_4d(w.ctx, GGML_TYPE_F32, 24, 20, 16, 1);
    w.kernel      = ggml_new_tensor_4d(w.ctx, GGML_TYPE_F16, 3, 3, 16, 8);
    w.y           = ggml_soft_max(w.ctx, ggml_gelu(w.ctx, ggml_mul_mat(w.ctx, w.w, w.x)));
    w.z           = ggml_conv_2d(w.ctx, w.kernel, w.image, 1, 1, 1, 1, 1, 1);
    w.graph       = ggml_new_graph(w.ctx);
    ggml_set_output(w.y);
    ggml_set_output(w.z);
    ggml_build_forward_expand(w.graph, w.y);
    ggml_build_forward_expand(w.graph, w.z);
    w.buffer = ggml_backend_alloc_ctx_tensors(w.ctx, backend);
    fill(w.w, 2);
    fill(w.kernel, 3);
    fill(w.image, 4);
    return w;
}
static void end_work(struct work * w) {
    ggml_backend_buffer_free(w->buffer);
    ggml_free(w->ctx);
}

static float * copy_of(const struct ggml_tensor * t) {
    float * out = malloc(ggml_nbytes(t));
    ggml_backend_tensor_get(t, out, 0, ggml_nbytes(t));
    return out;
}

static int  asked;
static bool abort_later(void * data) { (void) data; return asked++ >= 1; }

static void plans(void) {
    ggml_backend_t cpu = ggml_backend_cpu_init();
    struct work    w   = new_work(cpu);
    ggml_backend_cpu_set_n_threads(cpu, 2);
    ggml_backend_graph_plan_t plan = ggml_backend_graph_plan_create(cpu, w.graph);
    CHECK(plan != NULL, "a plan");
    for (int time = 0; time < 4; time++) {
        fill(w.x, 10 + time);
        CHECK(ggml_backend_graph_compute(cpu, w.graph) == GGML_STATUS_SUCCESS, "time %d: the graph", time);
        float * y = copy_of(w.y), * z = copy_of(w.z);
        ggml_backend_tensor_memset(w.y, 0, 0, ggml_nbytes(w.y));
        ggml_backend_tensor_memset(w.z, 0, 0, ggml_nbytes(w.z));
        ggml_backend_cpu_set_n_threads(cpu, 1 + time % 3);
        CHECK(ggml_backend_graph_plan_compute(cpu, plan) == GGML_STATUS_SUCCESS, "time %d: the plan", time);
        CHECK(memcmp(y, w.y->data, ggml_nbytes(w.y)) == 0 && memcmp(z, w.z->data, ggml_nbytes(w.z)) == 0, "time %d: the same bits", time);
        free(y);
        free(z);
    }
    /* storage elsewhere: the plan is prepared again */
    void * elsewhere = aligned_alloc(64, (ggml_nbytes(w.y) + 63) / 64 * 64);
    void * before    = w.y->data;
    memset(elsewhere, 0, ggml_nbytes(w.y));
    w.y->data = elsewhere;
    CHECK(ggml_backend_graph_plan_compute(cpu, plan) == GGML_STATUS_SUCCESS && memcmp(elsewhere, before, ggml_nbytes(w.y)) == 0, "the result lies elsewhere now");
    w.y->data = NULL;
    CHECK_ERROR(CHECK(ggml_backend_graph_plan_compute(cpu, plan) == GGML_STATUS_FAILED, "no memory: a status"), GGML_EXT_CODE_NOT_ALLOCATED, "no memory", "no memory");
    w.y->data = before;
    CHECK(ggml_backend_graph_plan_compute(cpu, plan) == GGML_STATUS_SUCCESS, "it goes on");
    free(elsewhere);
    ggml_backend_cpu_set_abort_callback(cpu, abort_later, NULL);
    CHECK(ggml_backend_graph_plan_compute(cpu, plan) == GGML_STATUS_ABORTED, "the abort callback ends it");
    ggml_backend_cpu_set_abort_callback(cpu, NULL, NULL);

    /* through the table: another graph in the place of the first */
    struct work other = new_work(cpu);
    fill(other.x, 50);
    cpu->iface.graph_plan_update(cpu, plan, other.graph);
    CHECK(ggml_backend_graph_plan_compute(cpu, plan) == GGML_STATUS_SUCCESS, "the plan of another graph");
    float * y = copy_of(other.y);
    CHECK(ggml_backend_graph_compute(cpu, other.graph) == GGML_STATUS_SUCCESS && memcmp(y, other.y->data, ggml_nbytes(other.y)) == 0, "computes that one");
    free(y);
    end_work(&other);
    ggml_backend_graph_plan_free(cpu, plan);
    ggml_backend_graph_plan_free(cpu, NULL);

    CHECK_ERROR(plan = ggml_backend_graph_plan_create(cpu, NULL), GGML_EXT_CODE_NULL_ARGUMENT, "no graph", "ggml_backend_graph_plan_create");
    CHECK(plan == NULL, "no graph: no plan");
    CHECK_ERROR(CHECK(ggml_backend_graph_plan_compute(cpu, NULL) == GGML_STATUS_FAILED, "no plan: a status"), GGML_EXT_CODE_NULL_ARGUMENT, "no plan", "ggml_backend_graph_plan_compute");
    struct ggml_tensor * bad  = ggml_add(w.ctx, w.x, w.image);
    struct ggml_cgraph * none = ggml_new_graph(w.ctx);
    ggml_build_forward_expand(none, bad);
    CHECK_ERROR(plan = ggml_backend_graph_plan_create(cpu, none), GGML_EXT_CODE_NONE, "a graph of impossible arguments", "ggml_add");
    CHECK(plan == NULL, "a graph of impossible arguments: no plan");
    plan = ggml_backend_graph_plan_create(cpu, w.graph);
    CHECK_ERROR(cpu->iface.graph_plan_update(cpu, plan, none), GGML_EXT_CODE_NONE, "another graph that is impossible", "graph_plan_update", "ggml_add");
    CHECK_ERROR(cpu->iface.graph_plan_update(cpu, plan, NULL), GGML_EXT_CODE_NULL_ARGUMENT, "no other graph", "graph_plan_update");
    const float first = *(float *) w.y->data;
    ggml_backend_tensor_memset(w.y, 0, 0, ggml_nbytes(w.y));
    CHECK(ggml_backend_graph_plan_compute(cpu, plan) == GGML_STATUS_SUCCESS && *(float *) w.y->data == first && first != 0, "the plan is the former one");
    ggml_backend_graph_plan_free(cpu, plan);
    end_work(&w);

    struct fake f;
    fake_make(&f, "other");
    ggml_backend_t foreign = ggml_backend_dev_init(&f.device, NULL);
    CHECK_ERROR(plan = ggml_backend_graph_plan_create(foreign, none), GGML_EXT_CODE_BACKEND, "a backend without plans", "other");
    CHECK(plan == NULL, "a backend without plans: none");
    ggml_backend_free(foreign);
    ggml_backend_free(cpu);
}

/* Computed by other code: nearly the same, and other bits somewhere; the same again by the same code. */
static void plain(void) {
    ggml_backend_t cpu = ggml_backend_cpu_init();
    struct work    w   = new_work(cpu);
    fill(w.x, 5);
    ggml_backend_graph_plan_t plan = ggml_backend_graph_plan_create(cpu, w.graph);
    float *                   y[4], * z[4];
    for (int i = 0; i < 4; i++) {
        ggml_backend_cpu_set_use_ref(cpu, i % 2 == 1);
        ggml_backend_cpu_set_n_threads(cpu, i < 2 ? 2 : 1);
        CHECK((i < 2 ? ggml_backend_graph_compute(cpu, w.graph) : ggml_backend_graph_plan_compute(cpu, plan)) == GGML_STATUS_SUCCESS, "%s, time %d", i % 2 ? "plain" : "fast", i);
        y[i] = copy_of(w.y);
        z[i] = copy_of(w.z);
    }
    const int64_t n = ggml_nelements(w.y), m = ggml_nelements(w.z);
    CHECK(nmse(y[1], y[0], n) < 5e-4 && nmse(z[1], z[0], m) < 1e-6, "plain and fast agree: %g, %g", nmse(y[1], y[0], n), nmse(z[1], z[0], m));
    if (ggml_cpu_has_avx2()) {
        CHECK(memcmp(y[0], y[1], ggml_nbytes(w.y)) != 0, "they are different code: bits differ");
    }
    CHECK(memcmp(y[0], y[2], ggml_nbytes(w.y)) == 0 && memcmp(z[0], z[2], ggml_nbytes(w.z)) == 0, "fast again: the same bits, by plan or graph, on any threads");
    CHECK(memcmp(y[1], y[3], ggml_nbytes(w.y)) == 0 && memcmp(z[1], z[3], ggml_nbytes(w.z)) == 0, "plain again: the same bits");

    struct ggml_cplan p = ggml_graph_plan(w.graph, 2, NULL);
    p.use_ref           = true;
    p.work_data         = malloc(p.work_size + 64);
    CHECK(ggml_graph_compute(w.graph, &p) == GGML_STATUS_SUCCESS && memcmp(w.y->data, y[1], ggml_nbytes(w.y)) == 0, "ggml_graph_compute with use_ref: plain");
    free(p.work_data);
    for (int i = 0; i < 4; i++) {
        free(y[i]);
        free(z[i]);
    }
    ggml_backend_graph_plan_free(cpu, plan);
    CHECK_ERROR(ggml_backend_cpu_set_use_ref(NULL, true), GGML_EXT_CODE_NONE, "no backend", "ggml_backend_cpu_set_use_ref");
    end_work(&w);
    ggml_backend_free(cpu);
}

static int nodes_of_memory(void) {
    int  n = 0;
    char path[100];
    while (snprintf(path, sizeof path, "/sys/devices/system/node/node%d", n), access(path, F_OK) == 0) {
        n++;
    }
    return n;
}

static void numa(void) {
    CHECK(!ggml_is_numa(), "not known before it was asked for");
    CHECK_ERROR(ggml_numa_init((enum ggml_numa_strategy) 77), GGML_EXT_CODE_NONE, "no such strategy", "77");
    ggml_numa_init(GGML_NUMA_STRATEGY_DISTRIBUTE);
    CHECK(ggml_is_numa() == (nodes_of_memory() > 1), "what the system says: %d", ggml_is_numa());
    ggml_numa_init(GGML_NUMA_STRATEGY_DISABLED);
    CHECK(ggml_is_numa() == (nodes_of_memory() > 1), "the first call counts");
}

static char   lines[4000];
static void keep(enum ggml_log_level level, const char * text, void * user_data) {
    (void) user_data;
    const size_t n = strlen(lines);
    snprintf(lines + n, sizeof lines - n, "%d|%s", (int) level, text);
}

static void objects(void) {
    struct ggml_context * c = ggml_init((struct ggml_init_params){ 1 << 16, NULL, true });
    ggml_new_tensor_1d(c, GGML_TYPE_F32, 3);
    ggml_new_graph_custom(c, 16, false);
    ggml_log_set(keep, NULL);
    lines[0] = 0;
    ggml_print_objects(c);
    int n = 0;
    for (const char * p = lines; (p = strstr(p, " - object ")); p++) {
        n++;
    }
    CHECK(n == 2 && strstr(lines, ": tensor, offset 32, ") && strstr(lines, ": graph, offset "), "the objects of a context: %s", lines);
    lines[0] = 0;
    ggml_print_objects(NULL);
    ggml_print_object(NULL);
    CHECK(lines[0] == 0, "nothing of nothing");
    ggml_free(c);

    lines[0] = 0;
    ggml_log_internal(GGML_LOG_LEVEL_WARN, "%s %d\n", "a line of a module", 7);
    GGML_LOG_INFO("%1500d|\n", 3);
    char * end = strstr(lines, "3|\n");
    CHECK(strncmp(lines, "3|a line of a module 7\n2|", 25) == 0 && end && end - lines > 1500, "lines of modules, short and long");
    ggml_log_internal(GGML_LOG_LEVEL_WARN, NULL);
    check_quiet();
}

/* Just enough of Graphviz's language: quoted text is skipped, brackets match, statements end. */
static bool parses(const char * text, int * boxes, int * arrows) {
    int depth = 0, square = 0;
    *boxes = *arrows = 0;
    for (const char * p = text; *p; p++) {
        if (*p == '"') {
            for (p++; *p && *p != '"'; p++) {
                if (*p == '\\' && p[1]) {
                    p++;
                } else if (*p == '\n') {
                    return false;
                }
            }
            if (!*p) {
                return false;
            }
        } else if (p[0] == '-' && p[1] == '>') {
            ++*arrows;
        } else {
            depth += (*p == '{') - (*p == '}');
            square += (*p == '[') - (*p == ']');
            *boxes += strncmp(p, "fillcolor", 9) == 0;
            if (depth < 0 || square < 0 || square > 1 || (depth == 0 && *p == ';')) {
                return false;
            }
        }
    }
    return depth == 0 && square == 0 && strncmp(text, "digraph ", 8) == 0;
}

static void picture(void) {
    struct ggml_context * c = ggml_init((struct ggml_init_params){ 1 << 20, NULL, true });
    struct ggml_tensor *  x = ggml_new_tensor_2d(c, GGML_TYPE_F32, 8, 4), * w = ggml_new_tensor_2d(c, GGML_TYPE_F16, 8, 5);
    ggml_set_name(x, "x \"quoted\" \\ back\nnew line");
    ggml_set_param(w);
    struct ggml_tensor * y = ggml_soft_max(c, ggml_mul_mat(c, w, x));
    ggml_set_output(y);
    struct ggml_cgraph * g = ggml_new_graph(c);
    ggml_build_forward_expand(g, y);
    ggml_graph_dump_dot(NULL, g, "plans.dot");
    FILE * f = fopen("plans.dot", "r");
    char   text[8000] = "";
    if (CHECK(f != NULL, "the file is there")) {
        text[fread(text, 1, sizeof text - 1, f)] = 0;
        fclose(f);
    }
    int boxes = 0, arrows = 0;
    CHECK(parses(text, &boxes, &arrows), "it is Graphviz's language");
    CHECK(boxes == 4 && arrows == 3, "%d boxes and %d arrows: the tensors and the sources", boxes, arrows);
    CHECK(strstr(text, "MUL_MAT") && strstr(text, "f16 [8, 5]") && strstr(text, "quoted"), "boxes say operator, format and shape");
    CHECK(!strstr(text, "bold"), "nothing is bold");
    if (system("command -v dot >/dev/null 2>&1") == 0) {
        CHECK(system("dot -Tsvg -o /dev/null plans.dot") == 0, "dot reads it");
    }
    ggml_graph_dump_dot(g, g, "plans.dot");
    f = fopen("plans.dot", "r");
    text[f ? fread(text, 1, sizeof text - 1, f) : 0] = 0;
    CHECK(parses(text, &boxes, &arrows) && strstr(text, "bold"), "the tensors of the other graph are bold");
    if (f) {
        fclose(f);
    }
    remove("plans.dot");
    CHECK_ERROR(ggml_graph_dump_dot(NULL, g, "/no/such/folder/x.dot"), GGML_EXT_CODE_NONE, "no such folder", "/no/such/folder/x.dot");
    CHECK_ERROR(ggml_graph_dump_dot(NULL, NULL, "x.dot"), GGML_EXT_CODE_NULL_ARGUMENT, "no graph", "ggml_graph_dump_dot");
    CHECK_ERROR(ggml_graph_dump_dot(NULL, g, NULL), GGML_EXT_CODE_NULL_ARGUMENT, "no file", "filename");
    ggml_free(c);
}

static int    inside, most, entered;
static void * enter(void * arg) {
    (void) arg;
    for (int i = 0; i < 500; i++) {
        ggml_critical_section_start();
        ggml_critical_section_start(); /* the one inside may enter again */
        inside++;
        most = inside > most ? inside : most;
        entered++;
        inside--;
        ggml_critical_section_end();
        ggml_critical_section_end();
    }
    return NULL;
}

static void of_modules(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        pthread_create(&threads[i], NULL, enter, NULL);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK(most == 1 && entered == 2000, "the critical section holds one thread at a time");
    CHECK_ERROR(ggml_critical_section_end(), GGML_EXT_CODE_NONE, "leaving what was not entered", "ggml_critical_section_end");

    char * p = ggml_aligned_malloc(1001);
    CHECK(p && (uintptr_t) p % 64 == 0, "memory at a cache line");
    memset(p, 1, 1001);
    ggml_aligned_free(p, 1001);
    CHECK(ggml_aligned_malloc(0) == NULL, "no bytes: NULL");
    CHECK_ERROR(p = ggml_aligned_malloc(SIZE_MAX / 2), GGML_EXT_CODE_OUT_OF_MEMORY, "too much", "ggml_aligned_malloc");
    CHECK(p == NULL, "too much: NULL");
    ggml_aligned_free(NULL, 0);

    CHECK(ggml_op_alloc_size_may_expand(GGML_OP_MUL_MAT) && ggml_op_alloc_size_may_expand(GGML_OP_FLASH_ATTN_EXT) && !ggml_op_alloc_size_may_expand(GGML_OP_ADD), "operators that may need more memory than their data");

    ggml_backend_buffer_t parts[2] = { ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), 100), ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), 28) };
    ggml_backend_buffer_t both     = ggml_backend_multi_buffer_alloc_buffer(parts, 2);
    CHECK(both && ggml_backend_buffer_is_multi_buffer(both) && !ggml_backend_buffer_is_multi_buffer(parts[0]) && !ggml_backend_buffer_is_multi_buffer(NULL), "a buffer of two");
    CHECK(ggml_backend_buffer_get_size(both) == 128, "of their bytes");
    ggml_backend_multi_buffer_set_usage(both, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    CHECK(ggml_backend_buffer_get_usage(parts[1]) == GGML_BACKEND_BUFFER_USAGE_WEIGHTS, "its usage is theirs");
    CHECK_ERROR(ggml_backend_multi_buffer_set_usage(parts[0], GGML_BACKEND_BUFFER_USAGE_WEIGHTS), GGML_EXT_CODE_NONE, "a plain buffer", "made of several");
    ggml_backend_buffer_clear(both, 9);
    CHECK(((char *) ggml_backend_buffer_get_base(parts[1]))[27] == 9, "cleared together");
    ggml_backend_buffer_free(both);
    ggml_backend_buffer_t none = NULL;
    CHECK_ERROR(both = ggml_backend_multi_buffer_alloc_buffer(&none, 1), GGML_EXT_CODE_NONE, "a part that is NULL", "none of them NULL");
    CHECK(both == NULL && ggml_backend_multi_buffer_alloc_buffer(NULL, 0) == NULL, "no parts: no buffer");

    ggml_backend_t        cpu = ggml_backend_cpu_init();
    struct ggml_context * c   = ggml_init((struct ggml_init_params){ 1 << 16, NULL, true });
    struct ggml_tensor *  a = ggml_new_tensor_1d(c, GGML_TYPE_F32, 9), * b = ggml_new_tensor_1d(c, GGML_TYPE_F32, 9), * d = ggml_new_tensor_1d(c, GGML_TYPE_F32, 8);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(c, cpu);
    fill(a, 1);
    CHECK(ggml_backend_buffer_copy_tensor(a, b) && memcmp(a->data, b->data, 36) == 0, "copied by the buffer");
    CHECK_ERROR(CHECK(!ggml_backend_buffer_copy_tensor(a, d), "another shape: false"), GGML_EXT_CODE_NONE, "another shape", "same layout");
    ggml_backend_buffer_free(buffer);
    ggml_free(c);
    ggml_backend_free(cpu);
}

int main(void) {
    check_quiet();
    plans();
    plain();
    numa();
    objects();
    picture();
    of_modules();
    return check_done();
}
