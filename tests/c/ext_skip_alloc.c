/* EXT-47: a backend that fuses by its own code says which nodes it leaves out, and the scheduler allocates no memory for them; unless
 * something else needs them. */
#include "ext_util.h"
#include "ggml-ext.h"

enum { NE = 1 << 16 };

static struct fake dev;
static int         asked, left_out;

/* The device fuses SQR into the ADD behind it. */
static bool skip_alloc(ggml_backend_t backend, const struct ggml_cgraph * graph, int node) {
    struct ggml_tensor * t = ggml_graph_node((struct ggml_cgraph *) graph, node);
    asked++;
    return backend->device == &dev.device && t->op == GGML_OP_SQR;
}

static enum ggml_status compute(ggml_backend_t backend, struct ggml_cgraph * graph) {
    (void) backend;
    for (int k = 0; k < ggml_graph_n_nodes(graph); k++) {
        struct ggml_tensor * t = ggml_graph_node(graph, k);
        if (t->op == GGML_OP_SQR) {
            const float * x = t->src[0]->data;
            left_out += t->data == NULL;
            for (int i = 0; t->data != NULL && i < NE; i++) {
                ((float *) t->data)[i] = x[i] * x[i];
            }
        } else if (t->op == GGML_OP_ADD) {
            const struct ggml_tensor * a = t->src[0];
            const float *              x = a->data != NULL ? a->data : a->src[0]->data, *b = t->src[1]->data;
            for (int i = 0; i < NE; i++) {
                ((float *) t->data)[i] = (a->data != NULL ? x[i] : x[i] * x[i]) + b[i];
            }
        } else if (!CHECK(t->op == GGML_OP_VIEW || t->op == GGML_OP_RESHAPE, "only what the device supports comes to it")) {
            return GGML_STATUS_FAILED;
        }
    }
    return GGML_STATUS_SUCCESS;
}

static bool supports(ggml_backend_dev_t d, const struct ggml_tensor * op) {
    (void) d;
    return op->op == GGML_OP_SQR || op->op == GGML_OP_ADD || op->op == GGML_OP_NONE || op->op == GGML_OP_RESHAPE;
}

static bool   offers = true;
static void * proc(ggml_backend_reg_t reg, const char * name) {
    (void) reg;
    union { ggml_backend_skip_alloc_t function; void * address; } u = { .function = skip_alloc };
    return offers && strcmp(name, "ggml_backend_skip_alloc") == 0 ? u.address : NULL;
}

static ggml_backend_t init(ggml_backend_dev_t d, const char * params) {
    ggml_backend_t backend = fake_init_backend(d, params);
    backend->iface.graph_compute = compute;
    return backend;
}

enum extra { NOTHING, CONSUMER, OUTPUT, FAR_CONSUMER, NO_OFFER };

/* y = x * x + b; the bytes of the device's buffer. */
static size_t run(enum extra extra, bool expect) {
    static const char * const names[] = { "alone", "a consumer of a view on another backend", "an output", "a consumer on another backend", "not offered" };
    struct ggml_init_params params = { 1 << 20, NULL, true };
    struct ggml_context *   ctx = ggml_init(params), *own = ggml_init(params);
    struct ggml_tensor *    x = ggml_new_tensor_1d(own, GGML_TYPE_F32, NE), *b = ggml_new_tensor_1d(own, GGML_TYPE_F32, NE);
    ggml_backend_buffer_t   buffer = ggml_backend_alloc_ctx_tensors_from_buft(own, &dev.buft);
    ggml_backend_buffer_set_usage(buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    struct ggml_tensor * square = ggml_sqr(ctx, x), *y = ggml_add(ctx, square, b), *z = NULL;
    struct ggml_cgraph * graph = ggml_new_graph(ctx);
    ggml_set_output(y);
    ggml_build_forward_expand(graph, y);
    if (extra == CONSUMER) {
        z = ggml_cos(ctx, ggml_reshape_1d(ctx, square, NE));
    } else if (extra == FAR_CONSUMER) {
        z = ggml_cos(ctx, square);
    } else if (extra == OUTPUT) {
        ggml_set_output(square);
    }
    if (z) {
        ggml_set_output(z);
        ggml_build_forward_expand(graph, z);
    }
    offers = extra != NO_OFFER;
    asked = left_out = 0;
    ggml_backend_t backends[2] = { ggml_backend_dev_init(&dev.device, NULL), ggml_backend_cpu_init() };
    ggml_backend_sched_t sched = ggml_backend_sched_new(backends, NULL, 2, 64, false, false);
    ggml_backend_sched_set_tensor_backend(sched, square, backends[0]);
    ggml_backend_sched_set_tensor_backend(sched, y, backends[0]);
    if (z) {
        ggml_backend_sched_set_tensor_backend(sched, z, backends[1]);
    }
    CHECK(ggml_backend_sched_alloc_graph(sched, graph), "%s: allocated", names[extra]);
    CHECK((square->data == NULL && square->buffer == NULL) == expect, "EXT-47: %s: the square %s", names[extra], expect ? "has no memory" : "has memory");
    CHECK((asked > 0) == (extra != NO_OFFER), "%s: the backend is asked", names[extra]);
    static float in[NE], add[NE], out[NE];
    for (int i = 0; i < NE; i++) {
        in[i]  = (float) (i % 100) - 50;
        add[i] = (float) (i % 7);
    }
    ggml_backend_tensor_set(x, in, 0, sizeof in);
    ggml_backend_tensor_set(b, add, 0, sizeof add);
    CHECK(ggml_backend_sched_graph_compute(sched, graph) == GGML_STATUS_SUCCESS, "%s: computed", names[extra]);
    CHECK(left_out == (expect ? 1 : 0), "%s: the device %s it", names[extra], expect ? "leaves out" : "computes");
    ggml_backend_tensor_get(y, out, 0, sizeof out);
    int wrong = 0;
    for (int i = 0; i < NE; i++) {
        wrong += out[i] != in[i] * in[i] + add[i];
    }
    CHECK(wrong == 0, "%s: the result is right", names[extra]);
    size_t size = ggml_backend_sched_get_buffer_size(sched, backends[0]);
    ggml_backend_sched_free(sched);
    ggml_backend_free(backends[0]);
    ggml_backend_free(backends[1]);
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
    ggml_free(own);
    return size;
}

int main(void) {
    check_quiet();
    fake_make(&dev, "fusing");
    dev.reg.iface.get_proc_address    = proc;
    dev.device.iface.init_backend     = init;
    dev.device.iface.supports_op      = supports;
    size_t fused = run(NOTHING, true), plain = run(NO_OFFER, false);
    CHECK(fused > 0 && fused <= plain, "EXT-47: the buffer is not larger for it: %zu, %zu", fused, plain);
    run(CONSUMER, false);
    run(OUTPUT, false);
    run(FAR_CONSUMER, false);
    return check_done();
}
