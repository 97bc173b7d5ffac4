/* Buffers: reading, writing and copying ranges of tensors, and the ranges that are refused. */
#include "fake_device.h"

static struct ggml_context * ctx;

#define SAME(t, ...) same(t, (const float[]){ __VA_ARGS__ }, sizeof((const float[]){ __VA_ARGS__ }) / 4)
static bool same(struct ggml_tensor * t, const float * want, size_t n) {
    float * have = malloc(n * 4);
    ggml_backend_tensor_get(t, have, 0, n * 4);
    const bool equal = memcmp(have, want, n * 4) == 0;
    free(have);
    return equal;
}

static void ranges(ggml_backend_buffer_type_t type, const char * name) {
    struct ggml_tensor *  before = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 16);
    struct ggml_tensor *  t      = ggml_set_name(ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 4, 4), "middle");
    struct ggml_tensor *  after  = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 16);
    ggml_backend_buffer_t b      = ggml_backend_alloc_ctx_tensors_from_buft(ctx, type);
    ggml_backend_buffer_clear(b, 0);
    const float numbers[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
    float       out[16];
    ggml_backend_tensor_set(t, numbers, 0, sizeof numbers);
    ggml_backend_tensor_get(t, out, 0, sizeof out);
    CHECK(memcmp(out, numbers, sizeof out) == 0, "%s: set and get", name);
    ggml_backend_tensor_set(t, numbers, 60, 4);
    CHECK(SAME(t, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 1), "%s: the last element", name);
    ggml_backend_tensor_memset(t, 0, 0, 16);
    CHECK(SAME(t, 0, 0, 0, 0, 5, 6, 7, 8), "%s: memset of a row", name);
    /* a column, in and out */
    ggml_backend_tensor_set_2d(t, numbers, 4, 4, 4, 16, 8);
    CHECK(SAME(t, 0, 1, 0, 0, 5, 3, 7, 8, 9, 5, 11, 12, 13, 7, 15, 1), "%s: set_2d of a column", name);
    ggml_backend_tensor_get_2d(t, out, 4, 4, 4, 16, 4);
    CHECK(out[0] == 1 && out[1] == 3 && out[2] == 5 && out[3] == 7, "%s: get_2d of a column", name);
    check_log_errors = 0;
    ggml_backend_tensor_set_2d(t, NULL, 0, 0, 4, 16, 8);
    ggml_backend_tensor_set(t, NULL, 0, 0);
    ggml_backend_tensor_get_2d(t, out, 0, 4, 0, 16, 8);
    CHECK(check_log_errors == 0, "%s: nothing to move is no error", name);

    ggml_backend_tensor_set(t, numbers, 0, sizeof numbers);
    const struct { size_t offset, size; } bad[] = { { 0, 65 }, { 64, 1 }, { 61, 4 }, { SIZE_MAX, 1 }, { SIZE_MAX, 2 }, { 1, SIZE_MAX }, { SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 1 } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_ERROR(ggml_backend_tensor_set(t, numbers, bad[i].offset, bad[i].size), GGML_EXT_CODE_BAD_ARGUMENT, "set of a range that leaves the tensor", "middle", "ggml_backend_tensor_set");
        CHECK_ERROR(ggml_backend_tensor_get(t, out, bad[i].offset, bad[i].size), GGML_EXT_CODE_BAD_ARGUMENT, "get of a range that leaves the tensor", "middle", "ggml_backend_tensor_get");
        CHECK_ERROR(ggml_backend_tensor_memset(t, 9, bad[i].offset, bad[i].size), GGML_EXT_CODE_BAD_ARGUMENT, "memset of a range that leaves the tensor", "middle", "ggml_backend_tensor_memset");
    }
    const struct { size_t offset, size, n, stride; } bad2[] = { { 0, 4, 5, 16 }, { 0, 16, 4, 17 }, { 0, 4, SIZE_MAX, 16 }, { 0, 4, 2, SIZE_MAX }, { 0, 4, SIZE_MAX / 2 + 2, 2 }, { 64, 1, 1, 0 }, { 0, 65, 1, 0 } };
    for (size_t i = 0; i < sizeof bad2 / sizeof *bad2; i++) {
        CHECK_ERROR(ggml_backend_tensor_set_2d(t, numbers, bad2[i].offset, bad2[i].size, bad2[i].n, bad2[i].stride, 4), GGML_EXT_CODE_BAD_ARGUMENT, "set_2d that leaves the tensor", "middle");
        CHECK_ERROR(ggml_backend_tensor_get_2d(t, out, bad2[i].offset, bad2[i].size, bad2[i].n, bad2[i].stride, 4), GGML_EXT_CODE_BAD_ARGUMENT, "get_2d that leaves the tensor", "middle");
    }
    CHECK_ERROR(ggml_backend_tensor_set(t, NULL, 0, 4), GGML_EXT_CODE_NULL_ARGUMENT, "set from NULL", "");
    CHECK_ERROR(ggml_backend_tensor_get(t, NULL, 0, 4), GGML_EXT_CODE_NULL_ARGUMENT, "get into NULL", "");
    float zeros[16] = { 0 };
    CHECK(memcmp(numbers, (ggml_backend_tensor_get(t, out, 0, 64), out), 64) == 0, "%s: refused writes changed nothing", name);
    CHECK(same(before, zeros, 16) && same(after, zeros, 16), "%s: nor the neighbours", name);
    CHECK(strcmp(ggml_backend_buffer_name(b), ggml_backend_buft_name(type)) == 0 && ggml_backend_buffer_get_type(b) == type, "%s: name and type", name);
    CHECK(ggml_backend_buffer_get_size(b) >= 192 && ggml_backend_buffer_get_alloc_size(b, t) >= 64, "%s: sizes", name);
    CHECK(ggml_backend_buffer_get_usage(b) == GGML_BACKEND_BUFFER_USAGE_ANY, "%s: usage at first", name);
    ggml_backend_buffer_reset(b);
    ggml_backend_buffer_free(b);
    ggml_reset(ctx);
}

/* Case 39 of the public reports: a range of a view with gaps is a range of bytes of its storage. */
static void views(void) {
    struct ggml_tensor *  t = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 4, 4);
    struct ggml_tensor *  v = ggml_set_name(ggml_view_2d(ctx, t, 2, 3, t->nb[1], 20), "part"); /* columns 1, 2 of rows 1 to 3 */
    ggml_backend_buffer_t b = ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_cpu_buffer_type());
    ggml_backend_buffer_clear(b, 0);
    CHECK(v->data == (char *) t->data + 20 && v->buffer == t->buffer && ggml_nbytes(v) == 40, "a view is placed with its storage");
    const float numbers[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
    ggml_backend_tensor_set(v, numbers, 0, 8);
    CHECK(SAME(t, 0, 0, 0, 0, 0, 1, 2, 0, 0), "set of one row of a view");
    ggml_backend_tensor_set_2d(v, numbers, 0, 8, 3, t->nb[1], 8);
    CHECK(SAME(t, 0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4, 0, 0, 5, 6, 0), "set_2d of the rows of a view leaves the gaps alone");
    CHECK_ERROR(ggml_backend_tensor_set(v, numbers, 0, 44), GGML_EXT_CODE_BAD_ARGUMENT, "set behind the end of a view", "part");
    CHECK(SAME(t, 0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4, 0, 0, 5, 6, 0), "and nothing was written");
    ggml_backend_tensor_set(v, numbers, 0, 40);
    CHECK(SAME(t, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0), "a range over the gaps writes them, and not one byte more");
    ggml_backend_tensor_memset(v, 0, 32, 8);
    CHECK(SAME(t, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0), "memset of the last row of a view");
    struct ggml_tensor * p = ggml_transpose(ctx, t);
    ggml_backend_view_init(p);
    float out[16];
    ggml_backend_tensor_get(p, out, 0, 64);
    CHECK(out[5] == 1 && out[6] == 2, "a transposed tensor is read as it lies");
    ggml_backend_buffer_free(b);
    ggml_reset(ctx);
}

static void copies(void) {
    struct fake f;
    fake_make(&f, "far");
    ggml_backend_buffer_type_t types[2] = { ggml_backend_cpu_buffer_type(), &f.buft };
    for (int i = 0; i < 4; i++) {
        struct ggml_context * c1 = ggml_init((struct ggml_init_params){ 4096, NULL, true });
        struct ggml_context * c2 = ggml_init((struct ggml_init_params){ 4096, NULL, true });
        struct ggml_tensor *  a  = ggml_new_tensor_1d(c1, GGML_TYPE_F32, 4);
        struct ggml_tensor *  d  = ggml_new_tensor_1d(c2, GGML_TYPE_F32, 4);
        struct ggml_tensor *  e  = ggml_new_tensor_1d(c2, GGML_TYPE_F32, 5);
        ggml_backend_buffer_t b1 = ggml_backend_alloc_ctx_tensors_from_buft(c1, types[i % 2]);
        ggml_backend_buffer_t b2 = ggml_backend_alloc_ctx_tensors_from_buft(c2, types[i / 2]);
        ggml_backend_buffer_clear(b2, 0);
        ggml_backend_tensor_set(a, (float[]){ 1, 2, 3, 4 }, 0, 16);
        ggml_backend_tensor_copy(a, d);
        CHECK(SAME(d, 1, 2, 3, 4), "copy from %d to %d", i % 2, i / 2);
        ggml_backend_tensor_copy(a, a);
        CHECK_ERROR(ggml_backend_tensor_copy(a, e), GGML_EXT_CODE_BAD_SHAPE, "copy to another shape", "ggml_backend_tensor_copy");
        CHECK(SAME(e, 0, 0, 0, 0, 0), "copy to another shape: nothing is written");
        ggml_backend_buffer_free(b1);
        ggml_backend_buffer_free(b2);
        ggml_free(c1);
        ggml_free(c2);
    }
    CHECK(f.n_live == 0, "far memory is freed");
    ggml_backend_t cpu = ggml_backend_cpu_init();
    struct ggml_tensor *  a = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4);
    struct ggml_tensor *  d = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4);
    ggml_backend_buffer_t b = ggml_backend_alloc_ctx_tensors(ctx, cpu);
    ggml_backend_tensor_set_async(cpu, a, (float[]){ 5, 6, 7, 8 }, 0, 16);
    ggml_backend_tensor_copy_async(cpu, cpu, a, d);
    float out[4];
    ggml_backend_tensor_get_async(cpu, d, out, 0, 16);
    ggml_backend_synchronize(cpu);
    CHECK(out[0] == 5 && out[3] == 8, "set, copy and get in the order of a backend's work");
    ggml_backend_tensor_set_2d_async(cpu, d, (float[]){ 1, 2 }, 0, 4, 2, 8, 4);
    ggml_backend_tensor_get_2d_async(cpu, d, out, 0, 4, 2, 8, 4);
    ggml_backend_synchronize(cpu);
    CHECK(out[0] == 1 && out[1] == 2 && SAME(d, 1, 6, 2, 8), "2d in the order of a backend's work");
    CHECK_ERROR(ggml_backend_tensor_set_async(cpu, d, out, 12, 8), GGML_EXT_CODE_BAD_ARGUMENT, "set_async that leaves the tensor", "ggml_backend_tensor_set_async");
    CHECK_ERROR(ggml_backend_tensor_get_async(cpu, d, out, 12, 8), GGML_EXT_CODE_BAD_ARGUMENT, "get_async that leaves the tensor", "ggml_backend_tensor_get_async");
    ggml_backend_buffer_free(b);
    ggml_backend_free(cpu);
    ggml_reset(ctx);
}

static void own_memory(void) {
    static _Alignas(64) uint8_t memory[256 + 64];
    memset(memory, 0xA5, sizeof memory);
    ggml_backend_buffer_t b = ggml_backend_cpu_buffer_from_ptr(memory, 256);
    CHECK(b && ggml_backend_buffer_get_base(b) == memory && ggml_backend_buffer_get_size(b) == 256 && ggml_backend_buffer_is_host(b), "from_ptr");
    struct ggml_tensor * t = ggml_new_tensor_1d(ctx, GGML_TYPE_I8, 64);
    struct ggml_tensor * u = ggml_new_tensor_1d(ctx, GGML_TYPE_I8, 64);
    CHECK(ggml_backend_tensor_alloc(b, t, memory + 192) == GGML_STATUS_SUCCESS && t->data == memory + 192 && t->buffer == b, "a tensor at the end");
    CHECK(ggml_backend_buffer_init_tensor(b, t) == GGML_STATUS_SUCCESS, "init_tensor");
    CHECK(ggml_backend_tensor_alloc(b, u, memory + 193) == GGML_STATUS_FAILED && u->data == NULL, "a tensor over the end");
    CHECK(ggml_backend_tensor_alloc(b, u, memory - 64) == GGML_STATUS_FAILED, "a tensor before the beginning");
    CHECK(ggml_backend_tensor_alloc(b, u, NULL) == GGML_STATUS_FAILED, "a tensor at NULL");
    CHECK(ggml_backend_tensor_alloc(b, t, memory) == GGML_STATUS_FAILED && t->data == memory + 192, "a tensor that has a place");
    ggml_backend_buffer_clear(b, 7);
    CHECK(memory[0] == 7 && memory[255] == 7 && memory[256] == 0xA5, "clear stays inside");
    ggml_backend_buffer_free(b);
    CHECK(memory[3] == 7, "the memory stays the caller's");
    for (int off = 1; off < 32; off++) {
        if (ggml_backend_cpu_buffer_from_ptr(memory + off, 64)) {
            CHECK(false, "from_ptr not aligned: %d", off);
        }
    }
    CHECK_ERROR(b = ggml_backend_cpu_buffer_from_ptr(memory + 8, 64), GGML_EXT_CODE_BAD_ARGUMENT, "from_ptr not aligned", "32");
    CHECK_ERROR(b = ggml_backend_cpu_buffer_from_ptr(NULL, 64), GGML_EXT_CODE_NONE, "from_ptr NULL", "ggml_backend_cpu_buffer_from_ptr");
    b = ggml_backend_cpu_buffer_from_ptr(memory, 0);
    CHECK(!b || ggml_backend_buffer_get_size(b) == 0, "from_ptr of size 0");
    ggml_backend_buffer_free(b);
    ggml_backend_dev_t dev = fake_cpu();
    b = ggml_backend_dev_buffer_from_host_ptr(dev, memory, 256, 256);
    CHECK(b && ggml_backend_buffer_get_base(b) == memory, "device: from_host_ptr");
    ggml_backend_buffer_free(b);
    CHECK_ERROR(b = ggml_backend_dev_buffer_from_host_ptr(dev, memory + 4, 252, 252), GGML_EXT_CODE_NONE, "device: from_host_ptr not aligned", "");
    CHECK(b == NULL, "device: from_host_ptr not aligned: NULL");
    struct fake f;
    fake_make(&f, "no such");
    CHECK_ERROR(b = ggml_backend_dev_buffer_from_host_ptr(&f.device, memory, 64, 64), GGML_EXT_CODE_NONE, "device that cannot", "");
    CHECK(b == NULL, "device that cannot: NULL");
    ggml_reset(ctx);
}

static void sizes(void) {
    ggml_backend_buffer_type_t type = ggml_backend_cpu_buffer_type();
    CHECK(ggml_backend_buft_is_host(type) && ggml_backend_buft_get_alignment(type) >= 32 && ggml_backend_buft_get_max_size(type) >= (size_t) 1 << 40, "the CPU's buffer type");
    ggml_backend_buffer_t b = ggml_backend_buft_alloc_buffer(type, 0);
    CHECK(b && ggml_backend_buffer_get_size(b) == 0 && ggml_backend_buffer_get_base(b) == NULL, "size 0");
    ggml_backend_buffer_clear(b, 1);
    ggml_backend_buffer_free(b);
    const size_t large[] = { SIZE_MAX, SIZE_MAX - 63, SIZE_MAX / 2, (size_t) 1 << 62 };
    for (int i = 0; i < 4; i++) {
        CHECK_ERROR(b = ggml_backend_buft_alloc_buffer(type, large[i]), GGML_EXT_CODE_OUT_OF_MEMORY, "more than there is", "CPU");
        CHECK(b == NULL, "more than there is: NULL");
    }
    b = ggml_backend_buft_alloc_buffer(type, 100);
    CHECK(b && (uintptr_t) ggml_backend_buffer_get_base(b) % ggml_backend_buffer_get_alignment(b) == 0, "aligned");
    ggml_backend_buffer_free(b);
    /* tensors without elements need no memory, but may be set and read */
    struct ggml_tensor * t = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 0, 5);
    b                      = ggml_backend_alloc_ctx_tensors_from_buft(ctx, type);
    ggml_backend_tensor_set(t, "", 0, 0);
    CHECK_ERROR(ggml_backend_tensor_set(t, "x", 0, 1), GGML_EXT_CODE_NONE, "one byte into an empty tensor", "");
    ggml_backend_buffer_free(b);
    ggml_reset(ctx);
    /* named tensors in one buffer */
    struct ggml_tensor * list[3];
    for (int i = 0; i < 3; i++) {
        list[i] = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 10);
    }
    const size_t need = ggml_backend_buft_get_alloc_size_n(type, list, 3);
    b                 = ggml_backend_buft_alloc_buffer_n(type, list, 3);
    CHECK(b && ggml_backend_buffer_get_size(b) == need && list[2]->data, "a buffer for %zu bytes of tensors", need);
    CHECK(ggml_backend_buft_alloc_buffer_n(type, list, 3) == NULL, "all of them have places now");
    CHECK(ggml_backend_buft_alloc_buffer_n(type, list, 0) == NULL && ggml_backend_buft_alloc_buffer_n(type, NULL, 2) == NULL && ggml_backend_buft_alloc_buffer_n(type, list, -1) == NULL, "no tensors");
    ggml_backend_buffer_free(b);
    ggml_reset(ctx);
}

int main(void) {
    check_quiet();
    ctx = ggml_init((struct ggml_init_params){ 1 << 20, NULL, true });
    struct fake f, h;
    fake_make(&f, "far memory");
    fake_make(&h, "host memory of a device");
    h.host_memory = true;
    ranges(ggml_backend_cpu_buffer_type(), "CPU");
    ranges(&f.buft, "far");
    ranges(&h.buft, "host");
    CHECK(f.n_live == 0 && h.n_live == 0, "all freed");
    views();
    copies();
    own_memory();
    sizes();
    ggml_free(ctx);
    return check_done();
}
