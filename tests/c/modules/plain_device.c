/* A backend module as others make them: two devices with memory of their own, whose code knows SQR and ADD of f32 and nothing of
 * ggml-ext.h. Device 0 has memory that the host reads; the addresses on device 1 are none of the host's. A node of GGML_OP_CUSTOM that
 * comes to it is called as the ordinary callback that it looks like. */
#include "ggml-backend-impl.h"
#include "ggml-backend.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "plain_device.h"

static struct plain_counts counts;

static const char * const names[2] = { "PLAIN0", "PLAIN1" };

static struct ggml_backend_buffer_type bufts[2];
static struct ggml_backend_device      devices[2];
static struct ggml_backend_reg         reg;
static uint8_t                         guid[16] = "plain module";

static int number(const void * context) { return (int) (intptr_t) context; }

/* memory */

struct piece {
    char * memory;
    char * base; /* what tensors take for its address */
};

static struct piece * piece_of(ggml_backend_buffer_t b) { return b->context; }

static char * real(const struct ggml_tensor * t) {
    ggml_backend_buffer_t b = t->view_src ? t->view_src->buffer : t->buffer;
    return piece_of(b)->memory + ((char *) t->data - piece_of(b)->base);
}

static void free_buffer(ggml_backend_buffer_t b) {
    counts.buffers--;
    free(piece_of(b)->memory);
    free(b->context);
}
static void * base(ggml_backend_buffer_t b) { return piece_of(b)->base; }
static void   fill(ggml_backend_buffer_t b, struct ggml_tensor * t, uint8_t value, size_t offset, size_t size) { (void) b; memset(real(t) + offset, value, size); }
static void   set(ggml_backend_buffer_t b, struct ggml_tensor * t, const void * data, size_t offset, size_t size) { (void) b; memcpy(real(t) + offset, data, size); }
static void   get(ggml_backend_buffer_t b, const struct ggml_tensor * t, void * data, size_t offset, size_t size) { (void) b; memcpy(data, real(t) + offset, size); }
static void   clear(ggml_backend_buffer_t b, uint8_t value) { memset(piece_of(b)->memory, value, b->size); }

static const char * buft_name(ggml_backend_buffer_type_t t) { return names[number(t->context)]; }
static ggml_backend_buffer_t alloc(ggml_backend_buffer_type_t t, size_t size) {
    static uintptr_t next = (uintptr_t) 1 << 40;
    struct piece *   p    = malloc(sizeof *p);
    p->memory             = aligned_alloc(64, (size + 127) / 64 * 64);
    p->base               = number(t->context) ? (char *) next : p->memory;
    next += (size + 0xFFFFF) & ~(uintptr_t) 0xFFFFF;
    memset(p->memory, 0xFF, size);
    counts.buffers++;
    counts.allocations++;
    const struct ggml_backend_buffer_i functions = { .free_buffer = free_buffer, .get_base = base, .memset_tensor = fill, .set_tensor = set, .get_tensor = get, .clear = clear };
    return ggml_backend_buffer_init(t, functions, p, size);
}
static size_t alignment(ggml_backend_buffer_type_t t) { (void) t; return 64; }
static bool   is_host(ggml_backend_buffer_type_t t) { return number(t->context) == 0; }

/* backend */

static const char * backend_name(ggml_backend_t b) { return names[number(b->device->context)]; }
static void         backend_free(ggml_backend_t b) { free(b); }

static float element(const struct ggml_tensor * t, const int64_t i[4]) {
    size_t at = 0;
    for (int d = 0; d < 4; d++) {
        at += (size_t) (i[d] % t->ne[d]) * t->nb[d];
    }
    float x;
    memcpy(&x, real(t) + at, sizeof x);
    return x;
}

static void compute_node(struct ggml_tensor * t) {
    int64_t i[4];
    for (i[3] = 0; i[3] < t->ne[3]; i[3]++) {
        for (i[2] = 0; i[2] < t->ne[2]; i[2]++) {
            for (i[1] = 0; i[1] < t->ne[1]; i[1]++) {
                for (i[0] = 0; i[0] < t->ne[0]; i[0]++) {
                    const float x = element(t->src[0], i), y = t->op == GGML_OP_ADD ? x + element(t->src[1], i) : x * x;
                    memcpy(real(t) + (size_t) i[0] * t->nb[0] + (size_t) i[1] * t->nb[1] + (size_t) i[2] * t->nb[2] + (size_t) i[3] * t->nb[3], &y, sizeof y);
                }
            }
        }
    }
}

static enum ggml_status compute(ggml_backend_t b, struct ggml_cgraph * g) {
    (void) b;
    counts.graphs++;
    for (int i = 0; i < ggml_graph_n_nodes(g); i++) {
        struct ggml_tensor * t = ggml_graph_node(g, i);
        counts.nodes++;
        switch (t->op) {
            case GGML_OP_NONE: case GGML_OP_VIEW: case GGML_OP_RESHAPE: case GGML_OP_PERMUTE: case GGML_OP_TRANSPOSE: break;
            case GGML_OP_SQR: case GGML_OP_ADD: compute_node(t); break;
            case GGML_OP_CUSTOM: {
                void (*function)(struct ggml_tensor * dst, int ith, int nth, void * data);
                memcpy(&function, t->op_params, sizeof function);
                counts.custom++;
                function(t, 0, 1, NULL);
                break;
            }
            default: return GGML_STATUS_FAILED;
        }
    }
    return GGML_STATUS_SUCCESS;
}

/* device */

static const char * dev_name(ggml_backend_dev_t d) { return names[number(d->context)]; }
static const char * description(ggml_backend_dev_t d) { (void) d; return "plain loops"; }
static void         memory(ggml_backend_dev_t d, size_t * free_, size_t * total) { (void) d; *free_ = *total = (size_t) 1 << 30; }
static enum ggml_backend_dev_type type(ggml_backend_dev_t d) { (void) d; return GGML_BACKEND_DEVICE_TYPE_GPU; }
static void props(ggml_backend_dev_t d, struct ggml_backend_dev_props * p) {
    memset(p, 0, sizeof *p);
    p->name        = dev_name(d);
    p->description = description(d);
    p->type        = type(d);
    memory(d, &p->memory_free, &p->memory_total);
}
static ggml_backend_t init(ggml_backend_dev_t d, const char * params) {
    (void) params;
    ggml_backend_t b = calloc(1, sizeof *b);
    b->guid          = (ggml_guid_t) &guid;
    b->iface         = (struct ggml_backend_i){ .get_name = backend_name, .free = backend_free, .graph_compute = compute };
    b->device        = d;
    return b;
}
static ggml_backend_buffer_type_t dev_buft(ggml_backend_dev_t d) { return &bufts[number(d->context)]; }
static bool supports_op(ggml_backend_dev_t d, const struct ggml_tensor * op) {
    (void) d;
    switch (op->op) {
        case GGML_OP_NONE: case GGML_OP_VIEW: case GGML_OP_RESHAPE: case GGML_OP_PERMUTE: case GGML_OP_TRANSPOSE: return true;
        case GGML_OP_CUSTOM: return true;
        case GGML_OP_SQR: case GGML_OP_ADD: return op->type == GGML_TYPE_F32 && op->src[0]->type == GGML_TYPE_F32;
        default: return false;
    }
}
static bool supports_buft(ggml_backend_dev_t d, ggml_backend_buffer_type_t t) { return t == dev_buft(d); }

/* registry entry */

static const char *       reg_name(ggml_backend_reg_t r) { (void) r; return "PLAIN"; }
static size_t             reg_count(ggml_backend_reg_t r) { (void) r; return 2; }
static ggml_backend_dev_t reg_dev(ggml_backend_reg_t r, size_t i) { (void) r; return i < 2 ? &devices[i] : NULL; }

static struct plain_counts * plain_counts(void) { return &counts; }

static void * proc(ggml_backend_reg_t r, const char * name) {
    (void) r;
    union { plain_counts_t function; void * address; } u = { .function = plain_counts };
    return strcmp(name, "plain_counts") == 0 ? u.address : NULL;
}

int ggml_backend_score(void);
int ggml_backend_score(void) { return 1; }

ggml_backend_reg_t ggml_backend_init(void);
ggml_backend_reg_t ggml_backend_init(void) {
    for (int i = 0; i < 2; i++) {
        void * context = (void *) (intptr_t) i;
        bufts[i] = (struct ggml_backend_buffer_type){ .iface = { .get_name = buft_name, .alloc_buffer = alloc, .get_alignment = alignment, .is_host = is_host }, .device = &devices[i], .context = context };
        devices[i] = (struct ggml_backend_device){
            .iface = { .get_name = dev_name, .get_description = description, .get_memory = memory, .get_type = type, .get_props = props,
                       .init_backend = init, .get_buffer_type = dev_buft, .supports_op = supports_op, .supports_buft = supports_buft },
            .reg = &reg, .context = context,
        };
    }
    reg = (struct ggml_backend_reg){ .api_version = GGML_BACKEND_API_VERSION, .iface = { .get_name = reg_name, .get_device_count = reg_count, .get_device = reg_dev, .get_proc_address = proc } };
    return &reg;
}
