/* A device made in C through ggml-backend-impl.h: memory and kernels are the CPU's, everything else is its own. Failures are
 * made to order. */
#ifndef FAKE_DEVICE_H
#define FAKE_DEVICE_H

#include "check.h"
#include "ggml-alloc.h"
#include "ggml-backend-impl.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"

struct fake {
    const char * name;
    bool         host_memory;   /* whether it says that its memory is the host's */
    bool         has_events;
    int          fail_alloc_at; /* number of the allocation that fails, from 1; 0: none */
    int          fail_init_at;  /* number of the tensor whose preparation fails */
    int          fail_compute;  /* number of the graph that fails */
    size_t       max_size;      /* of a buffer; 0: no limit */
    enum ggml_op only_op;       /* the one operator that it computes; GGML_OP_COUNT: all of the CPU's */
    /* counted */
    int n_alloc, n_init, n_compute, n_live, n_copies_in, n_async;

    struct ggml_backend_buffer_type buft;
    struct ggml_backend_device      device;
    struct ggml_backend_reg         reg;
};

static ggml_backend_dev_t fake_cpu(void) { return ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU); }

/* buffers */
static void   fake_free_buffer(ggml_backend_buffer_t b) {
    ((struct fake *) b->buft->context)->n_live--;
    free(b->context);
}
static void * fake_base(ggml_backend_buffer_t b) { return b->context; }
static enum ggml_status fake_init_tensor(ggml_backend_buffer_t b, struct ggml_tensor * t) {
    struct fake * f = b->buft->context;
    (void) t;
    return ++f->n_init == f->fail_init_at ? GGML_STATUS_FAILED : GGML_STATUS_SUCCESS;
}
static void fake_memset(ggml_backend_buffer_t b, struct ggml_tensor * t, uint8_t value, size_t offset, size_t size) {
    (void) b;
    memset((char *) t->data + offset, value, size);
}
static void fake_set(ggml_backend_buffer_t b, struct ggml_tensor * t, const void * data, size_t offset, size_t size) {
    ((struct fake *) b->buft->context)->n_copies_in++;
    memcpy((char *) t->data + offset, data, size);
}
static void fake_get(ggml_backend_buffer_t b, const struct ggml_tensor * t, void * data, size_t offset, size_t size) {
    (void) b;
    memcpy(data, (const char *) t->data + offset, size);
}
static void fake_clear(ggml_backend_buffer_t b, uint8_t value) { memset(b->context, value, b->size); }

/* buffer type */
static const char * fake_buft_name(ggml_backend_buffer_type_t t) { return ((struct fake *) t->context)->name; }
static ggml_backend_buffer_t fake_alloc(ggml_backend_buffer_type_t t, size_t size) {
    struct fake * f = t->context;
    if (++f->n_alloc == f->fail_alloc_at || (f->max_size && size > f->max_size)) {
        return NULL;
    }
    void * memory = aligned_alloc(64, (size + 63) / 64 * 64 + 64);
    if (!memory) {
        return NULL;
    }
    memset(memory, 0xFF, size); /* NaNs: what is read before it was written shows */
    f->n_live++;
    const struct ggml_backend_buffer_i functions = {
        .free_buffer = fake_free_buffer, .get_base = fake_base, .init_tensor = fake_init_tensor, .memset_tensor = fake_memset,
        .set_tensor = fake_set, .get_tensor = fake_get, .clear = fake_clear,
    };
    return ggml_backend_buffer_init(t, functions, memory, size);
}
static size_t fake_alignment(ggml_backend_buffer_type_t t) { (void) t; return 64; }
static size_t fake_max_size(ggml_backend_buffer_type_t t) {
    struct fake * f = t->context;
    return f->max_size ? f->max_size : SIZE_MAX;
}
static bool fake_buft_is_host(ggml_backend_buffer_type_t t) { return ((struct fake *) t->context)->host_memory; }

/* backend */
static uint8_t      fake_guid[16] = "a fake device's";
static const char * fake_backend_name(ggml_backend_t b) { return ((struct fake *) b->device->context)->name; }
static void         fake_backend_free(ggml_backend_t b) {
    ggml_backend_free(b->context);
    free(b);
}
static enum ggml_status fake_compute(ggml_backend_t b, struct ggml_cgraph * g) {
    struct fake * f = b->device->context;
    return ++f->n_compute == f->fail_compute ? GGML_STATUS_FAILED : ggml_backend_graph_compute(b->context, g);
}

/* device */
static const char * fake_dev_name(ggml_backend_dev_t d) { return ((struct fake *) d->context)->name; }
static const char * fake_dev_description(ggml_backend_dev_t d) { (void) d; return "a device made by a test"; }
static void         fake_dev_memory(ggml_backend_dev_t d, size_t * free_, size_t * total) { (void) d; *free_ = 1000; *total = 2000; }
static enum ggml_backend_dev_type fake_dev_type(ggml_backend_dev_t d) { (void) d; return GGML_BACKEND_DEVICE_TYPE_GPU; }
static void fake_dev_props(ggml_backend_dev_t d, struct ggml_backend_dev_props * p) {
    memset(p, 0, sizeof *p);
    p->name        = fake_dev_name(d);
    p->description = fake_dev_description(d);
    p->type        = fake_dev_type(d);
    fake_dev_memory(d, &p->memory_free, &p->memory_total);
}
static ggml_backend_t fake_init_backend(ggml_backend_dev_t d, const char * params) {
    if (params && strcmp(params, "refuse") == 0) {
        return NULL;
    }
    ggml_backend_t b = calloc(1, sizeof *b);
    b->guid          = (ggml_guid_t) &fake_guid;
    b->iface         = (struct ggml_backend_i){ .get_name = fake_backend_name, .free = fake_backend_free, .graph_compute = fake_compute };
    b->device        = d;
    b->context       = ggml_backend_dev_init(fake_cpu(), NULL);
    return b;
}
static ggml_backend_buffer_type_t fake_dev_buft(ggml_backend_dev_t d) { return &((struct fake *) d->context)->buft; }
static bool fake_supports_op(ggml_backend_dev_t d, const struct ggml_tensor * op) {
    struct fake * f = d->context;
    return (f->only_op == GGML_OP_COUNT || op->op == f->only_op || op->op == GGML_OP_NONE) && ggml_backend_dev_supports_op(fake_cpu(), op);
}
static bool fake_supports_buft(ggml_backend_dev_t d, ggml_backend_buffer_type_t t) { return t == fake_dev_buft(d); }

/* registry entry */
static const char *       fake_reg_name(ggml_backend_reg_t r) { return ((struct fake *) r->context)->name; }
static size_t             fake_reg_count(ggml_backend_reg_t r) { (void) r; return 1; }
static ggml_backend_dev_t fake_reg_dev(ggml_backend_reg_t r, size_t i) { return i == 0 ? &((struct fake *) r->context)->device : NULL; }

static CHECK_UNUSED void fake_make(struct fake * f, const char * name) {
    memset(f, 0, sizeof *f);
    f->name    = name;
    f->only_op = GGML_OP_COUNT;
    f->buft    = (struct ggml_backend_buffer_type){
           .iface = { .get_name = fake_buft_name, .alloc_buffer = fake_alloc, .get_alignment = fake_alignment, .get_max_size = fake_max_size, .is_host = fake_buft_is_host },
           .device = &f->device, .context = f,
    };
    f->device = (struct ggml_backend_device){
        .iface = { .get_name = fake_dev_name, .get_description = fake_dev_description, .get_memory = fake_dev_memory, .get_type = fake_dev_type,
                   .get_props = fake_dev_props, .init_backend = fake_init_backend, .get_buffer_type = fake_dev_buft,
                   .supports_op = fake_supports_op, .supports_buft = fake_supports_buft },
        .reg = &f->reg, .context = f,
    };
    f->reg = (struct ggml_backend_reg){
        .api_version = GGML_BACKEND_API_VERSION,
        .iface       = { .get_name = fake_reg_name, .get_device_count = fake_reg_count, .get_device = fake_reg_dev },
        .context     = f,
    };
}

#endif
