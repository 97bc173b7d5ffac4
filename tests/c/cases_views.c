/* Case 39 of the public reports, turboquant#268: what reads and writes tensors, on views that have gaps. The rule: offsets and sizes
   count bytes from the view's first element on, gaps included; a range ends with the last element; not a byte outside it changes. */
#include "fake_device.h"

enum { W = 12, H = 7, D = 3, BYTES = W * H * D };

static struct ggml_context * ctx;
static uint8_t               have[BYTES], want[BYTES];

/* Views of bytes [W, H, D], by shape, strides and offset. */
static const struct view { const char * name; int64_t ne[3]; size_t nb1, nb2, offset; } views[] = {
    { "a row", { W, 1, 1 }, W, W, 2 * W },
    { "rows with gaps", { 5, 4, 1 }, W, W * H, W + 3 },
    { "planes with gaps", { 5, 3, 2 }, W, W * H, W * H + 1 },
    { "planes of whole rows", { W, 3, 3 }, W, W * H, W },
    { "every second row", { W, 3, 1 }, 2 * W, W * H, 0 },
    { "a column", { 1, H, 1 }, W, W * H, 4 },
    { "the end", { 2, 2, 2 }, W, W * H, W * H + (H - 2) * W + W - 2 },
    { "rows over each other", { W, 4, 1 }, 2, W * H, 5 },
};

static bool equal(struct ggml_tensor * t) {
    ggml_backend_tensor_get(t, have, 0, BYTES);
    return memcmp(have, want, BYTES) == 0;
}

static void views_of_all_kinds(ggml_backend_buffer_type_t type, const char * where) {
    ggml_backend_t       cpu = ggml_backend_cpu_init();
    struct ggml_tensor * t   = ggml_set_name(ggml_new_tensor_3d(ctx, GGML_TYPE_I8, W, H, D), "storage");
    struct ggml_tensor * u   = ggml_new_tensor_3d(ctx, GGML_TYPE_I8, W, H, D);
    struct ggml_tensor * v[sizeof views / sizeof *views], * p[sizeof views / sizeof *views];
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        const struct view * w = &views[i];
        v[i] = ggml_set_name(ggml_view_3d(ctx, t, w->ne[0], w->ne[1], w->ne[2], w->nb1, w->nb2, w->offset), "gapped");
        p[i] = ggml_view_3d(ctx, u, w->ne[0], w->ne[1], w->ne[2], w->nb1, w->nb2, w->offset);
    }
    ggml_backend_buffer_t b = ggml_backend_alloc_ctx_tensors_from_buft(ctx, type);
    CHECK(b != NULL, "%s: memory", where);
    uint8_t data[BYTES], out[BYTES];
    for (int i = 0; i < BYTES; i++) {
        data[i] = (uint8_t) (100 + i % 50);
    }
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        const struct view * w    = &views[i];
        const size_t        size = (size_t) (w->ne[0] - 1) + (size_t) (w->ne[1] - 1) * w->nb1 + (size_t) (w->ne[2] - 1) * w->nb2 + 1;
        CHECK(ggml_nbytes(v[i]) == size, "%s, %s: %zu bytes", where, w->name, size);
        for (int how = 0; how < 6; how++) {
            for (size_t from = 0; from < size; from += 1 + size / 5) {
                const size_t n = how == 5 ? size : (size - from + 1) / 2;
                for (int k = 0; k < BYTES; k++) {
                    want[k] = (uint8_t) (k % 90);
                }
                ggml_backend_tensor_set(t, want, 0, BYTES);
                ggml_backend_tensor_set(u, data, 0, BYTES);
                uint8_t * at = want + w->offset + (how == 5 ? 0 : from);
                memcpy(at, data, n);
                switch (how) {
                case 0: ggml_backend_tensor_set(v[i], data, from, n); break;
                case 1: ggml_backend_tensor_set_async(cpu, v[i], data, from, n), ggml_backend_synchronize(cpu); break;
                case 2: memset(at, 7, n), ggml_backend_tensor_memset(v[i], 7, from, n); break;
                case 3: ggml_backend_tensor_set_2d(v[i], data, from, n, 1, 1000, 1000); break;
                case 4: /* every second byte of the range */
                    for (size_t k = 0; k < n; k++) {
                        at[k] = k % 2 ? (uint8_t) ((w->offset + from + k) % 90) : data[k / 2];
                    }
                    ggml_backend_tensor_set_2d(v[i], data, from, 1, (n + 1) / 2, 2, 1);
                    break;
                default: /* a copy to a view of the same layout takes the gaps along */
                    memcpy(at, data + w->offset, n);
                    ggml_backend_tensor_copy(p[i], v[i]);
                    break;
                }
                if (!equal(t)) {
                    int first = 0;
                    while (have[first] == want[first]) {
                        first++;
                    }
                    CHECK(false, "%s, %s, how %d, %zu from %zu: byte %d is %d, not %d", where, w->name, how, n, from, first, have[first], want[first]);
                }
                /* and what is read is that range, nothing behind it is written */
                memset(out, 0xA5, sizeof out);
                ggml_backend_tensor_get(v[i], out, from, (size - from) / 2);
                bool right = memcmp(out, want + w->offset + from, (size - from) / 2) == 0;
                for (size_t k = (size - from) / 2; k < BYTES; k++) {
                    right = right && out[k] == 0xA5;
                }
                if (!right) {
                    CHECK(false, "%s, %s: get of %zu from %zu", where, w->name, (size - from) / 2, from);
                }
            }
        }
        /* one byte more than there is: an error, and no change */
        memcpy(want, have, BYTES);
        check_log_errors = 0;
        ggml_backend_tensor_set(v[i], data, 0, size + 1);
        ggml_backend_tensor_set(v[i], data, size, 1);
        ggml_backend_tensor_memset(v[i], 9, 1, size);
        ggml_backend_tensor_set_2d(v[i], data, 0, 1, 2, size, 1);
        ggml_backend_tensor_get(v[i], out, 0, size + 1);
        CHECK(check_log_errors == 5 && strstr(check_error_text(), "gapped"), "%s, %s: ranges behind the last element are errors (%d)", where, w->name, check_log_errors);
        CHECK(equal(t), "%s, %s: the neighbours are what they were", where, w->name);
    }
    /* tensors of other strides are no copies of each other */
    check_log_errors = 0;
    memcpy(want, have, BYTES);
    ggml_backend_tensor_copy(p[1], v[2]);
    CHECK(check_log_errors == 1 && equal(t), "%s: a copy to another layout is an error", where);
    ggml_backend_buffer_free(b);
    ggml_backend_free(cpu);
    ggml_reset(ctx);
}

int main(void) {
    check_quiet();
    ctx = ggml_init((struct ggml_init_params){ 1 << 16, NULL, true });
    struct fake f;
    fake_make(&f, "far");
    views_of_all_kinds(ggml_backend_cpu_buffer_type(), "CPU");
    views_of_all_kinds(&f.buft, "far");
    CHECK(f.n_live == 0, "all freed");
    ggml_free(ctx);
    return check_done();
}
