/* Contexts: sizes, memory of the caller's, names, and what happens when one is full. */
#include "check.h"

#define N_GUARD 64

static struct ggml_context * make(size_t size, void * buffer, bool no_alloc) {
    struct ggml_init_params p = { size, buffer, no_alloc };
    return ggml_init(p);
}

static void sizes(void) {
    const size_t sizes[] = { 0, 1, 15, 16, 17, 1000, 1 << 20 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct ggml_context * ctx = make(sizes[i], NULL, false);
        CHECK(ctx != NULL, "init %zu", sizes[i]);
        CHECK(ggml_get_mem_size(ctx) >= sizes[i], "init %zu: size", sizes[i]);
        CHECK(ggml_used_mem(ctx) == 0, "init %zu: nothing in use", sizes[i]);
        CHECK(ggml_get_mem_buffer(ctx) != NULL, "init %zu: buffer", sizes[i]);
        ggml_free(ctx);
    }
    const size_t large[] = { SIZE_MAX, SIZE_MAX - 15, SIZE_MAX / 2, (size_t) 1 << 60 };
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        struct ggml_context * ctx = (void *) 1;
        CHECK_ERROR(ctx = make(large[i], NULL, false), GGML_EXT_CODE_OUT_OF_MEMORY, "init of more than there is", "ggml_init");
        CHECK(ctx == NULL, "init %zu: NULL", large[i]);
    }
    ggml_free(NULL);
}

static void own_buffer(void) {
    static _Alignas(64) uint8_t memory[4096 + N_GUARD];
    memset(memory, 0xA5, sizeof memory);
    struct ggml_context * ctx = make(4096, memory, false);
    CHECK(ctx != NULL && ggml_get_mem_buffer(ctx) == memory, "own buffer is used");
    int n = 0;
    struct ggml_tensor * t;
    do {
        t = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 7);
        n++;
    } while (t->data != NULL && n < 100);
    CHECK(n > 3 && n < 20, "own buffer: full after %d tensors", n);
    bool whole = true;
    for (int i = 0; i < N_GUARD; i++) {
        whole = whole && memory[4096 + i] == 0xA5;
    }
    CHECK(whole, "own buffer: nothing behind it is written");
    ggml_free(ctx);
    CHECK_ERROR(ctx = make(4000, memory + 1, false), GGML_EXT_CODE_BAD_ARGUMENT, "own buffer not aligned", "16");
    CHECK(ctx == NULL, "own buffer not aligned: NULL");
    /* a size that is no multiple of the alignment: the end is not overrun */
    memset(memory, 0xA5, sizeof memory);
    ctx = make(1001, memory, false);
    for (int i = 0; i < 10; i++) {
        ggml_new_tensor_1d(ctx, GGML_TYPE_I8, 1);
    }
    whole = true;
    for (size_t i = 1001; i < sizeof memory; i++) {
        whole = whole && memory[i] == 0xA5;
    }
    CHECK(whole, "own buffer of an odd size: nothing behind it is written");
    ggml_free(ctx);
    memset(memory, 0xA5, sizeof memory);
    ctx = make(0, memory, false);
    ggml_new_tensor_1d(ctx, GGML_TYPE_I8, 1);
    whole = true;
    for (size_t i = 0; i < sizeof memory; i++) {
        whole = whole && memory[i] == 0xA5;
    }
    CHECK(whole, "own buffer of size 0: nothing is written");
    ggml_free(ctx);
}

static void overfill(void) {
    struct ggml_context * ctx = make(4 * ggml_tensor_overhead(), NULL, true);
    struct ggml_tensor *  t[8];
    for (int i = 0; i < 4; i++) {
        t[i] = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 3, 5);
    }
    CHECK(ggml_used_mem(ctx) == 4 * ggml_tensor_overhead(), "overfill: exactly four tensors fit");
    CHECK_ERROR(t[4] = ggml_add(ctx, t[0], t[1]), GGML_EXT_CODE_OUT_OF_MEMORY, "overfill by a node", "ggml_add", "full");
    printf("# %s\n", check_error_text());
    CHECK(t[4] != NULL, "overfill: there is a stand-in");
    CHECK(t[4]->ne[0] == 3 && t[4]->ne[1] == 5, "overfill: the stand-in has the shape");
    t[5] = ggml_mul(ctx, t[4], t[2]);
    CHECK(t[5] != NULL, "overfill: nodes on the stand-in");
    CHECK(ggml_new_graph(ctx) == NULL, "overfill: no room for a graph");
    ggml_build_forward_expand(NULL, t[5]);
    void * b = (void *) 1;
    CHECK_ERROR(b = ggml_new_buffer(ctx, 1), GGML_EXT_CODE_OUT_OF_MEMORY, "overfill by a buffer", "ggml_new_buffer");
    CHECK(b == NULL, "overfill: no room for a buffer");
    CHECK(ggml_get_next_tensor(ctx, t[4]) == NULL, "overfill: the stand-in is in no list");
    CHECK(ggml_used_mem(ctx) == 4 * ggml_tensor_overhead(), "overfill: nothing more in use");

    ggml_reset(ctx);
    CHECK(ggml_used_mem(ctx) == 0 && ggml_get_first_tensor(ctx) == NULL, "reset empties");
    CHECK_ERROR(ggml_get_next_tensor(ctx, NULL), GGML_EXT_CODE_NULL_ARGUMENT, "next of NULL", "ggml_get_next_tensor");
    t[0] = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 3, 5);
    CHECK(ggml_get_first_tensor(ctx) == t[0] && !ggml_is_view(t[0]), "reset: room again");
    ggml_free(ctx);

    /* many at once: stand-ins are not kept in the arena */
    ctx = make(0, NULL, true);
    bool all = true;
    for (int i = 0; i < 1000; i++) {
        all = all && ggml_new_tensor_1d(ctx, GGML_TYPE_F32, i) != NULL;
    }
    CHECK(all, "a thousand stand-ins in a context without room");
    ggml_free(ctx);
}

static void no_alloc(void) {
    struct ggml_context * ctx = make(1 << 16, NULL, false);
    struct ggml_tensor *  t   = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4);
    CHECK(!ggml_get_no_alloc(ctx) && t->data != NULL && (uintptr_t) t->data % GGML_MEM_ALIGN == 0, "data in the arena");
    ggml_set_no_alloc(ctx, true);
    CHECK(ggml_get_no_alloc(ctx) && ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 1 << 30)->data == NULL, "no data");
    CHECK(ggml_get_max_tensor_size(ctx) == (size_t) 4 << 30, "largest tensor");
    ggml_set_no_alloc(ctx, false);
    CHECK_ERROR(t = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 1 << 30), GGML_EXT_CODE_OUT_OF_MEMORY, "data that does not fit", "ggml_new_tensor_1d");
    ggml_free(ctx);
}

static void names(void) {
    struct ggml_context * ctx = make(1 << 16, NULL, true);
    struct ggml_tensor *  a   = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4);
    struct ggml_tensor *  b   = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4);
    CHECK(ggml_get_name(a)[0] == 0, "no name at first");
    CHECK(ggml_set_name(a, "first") == a && strcmp(ggml_get_name(a), "first") == 0, "set_name");
    CHECK(ggml_format_name(b, "second-%d-%s", 7, "x") == b && strcmp(ggml_get_name(b), "second-7-x") == 0, "format_name");
    CHECK(ggml_get_tensor(ctx, "first") == a && ggml_get_tensor(ctx, "second-7-x") == b, "get_tensor");
    CHECK(ggml_get_tensor(ctx, "third") == NULL && ggml_get_tensor(ctx, NULL) == NULL, "get_tensor: none");
    char text[3 * GGML_MAX_NAME];
    memset(text, 'n', sizeof text);
    text[sizeof text - 1] = 0;
    ggml_set_name(a, text);
    CHECK(strlen(ggml_get_name(a)) == GGML_MAX_NAME - 1, "a long name is cut");
    ggml_format_name(b, "%s", text);
    CHECK(strlen(ggml_get_name(b)) == GGML_MAX_NAME - 1 && b->extra == NULL, "a long formatted name is cut");
    ggml_set_name(a, "");
    CHECK(ggml_get_name(a)[0] == 0, "an empty name");
    char self[] = "self";
    ggml_set_name(a, self);
    ggml_format_name(a, "%s+1", ggml_get_name(a));
    CHECK(strcmp(ggml_get_name(a), "self+1") == 0, "a name made of itself");
    ggml_set_name(a, ggml_get_name(a) + 2);
    CHECK(strcmp(ggml_get_name(a), "lf+1") == 0, "a name that is a part of itself");
    CHECK(ggml_get_first_tensor(ctx) == a && ggml_get_next_tensor(ctx, a) == b && ggml_get_next_tensor(ctx, b) == NULL, "order of making");
    ggml_free(ctx);
}

static void views(void) {
    struct ggml_context * ctx = make(1 << 16, NULL, false);
    struct ggml_tensor *  a   = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 8, 4);
    struct ggml_tensor *  v   = ggml_view_2d(ctx, a, 8, 2, a->nb[1], 2 * a->nb[1]);
    CHECK(v->view_src == a && v->data == (char *) a->data + 64 && v->view_offs == 64, "a view at the end");
    struct ggml_tensor * w = ggml_view_1d(ctx, v, 4, 16);
    CHECK(w->view_src == a && w->view_offs == 80 && w->data == (char *) a->data + 80, "a view of a view");
    CHECK_ERROR(v = ggml_view_1d(ctx, a, 33, 0), GGML_EXT_CODE_BAD_SHAPE, "a view too long", "ggml_view_1d");
    CHECK_ERROR(v = ggml_view_1d(ctx, a, 1, 128), GGML_EXT_CODE_BAD_SHAPE, "a view behind the end", "ggml_view_1d");
    CHECK_ERROR(v = ggml_view_1d(ctx, a, 1, SIZE_MAX), GGML_EXT_CODE_BAD_SHAPE, "a view at SIZE_MAX", "ggml_view_1d");
    CHECK_ERROR(v = ggml_view_2d(ctx, a, 8, 2, SIZE_MAX / 2, 0), GGML_EXT_CODE_BAD_SHAPE, "a view with a huge stride", "ggml_view_2d");
    CHECK_ERROR(v = ggml_view_4d(ctx, a, INT64_MAX, INT64_MAX, 2, 2, 4, 4, 4, 0), GGML_EXT_CODE_BAD_SHAPE, "a view of too many", "ggml_view_4d");
    CHECK_ERROR(v = ggml_view_1d(ctx, a, -1, 0), GGML_EXT_CODE_BAD_SHAPE, "a view of -1", "ggml_view_1d");
    CHECK(v->data == NULL || v->view_src == NULL, "the stand-in is no view of the memory");
    v = ggml_view_1d(ctx, a, 0, 128);
    CHECK(v->view_src == a && ggml_is_empty(v), "an empty view at the end");
    ggml_free(ctx);
}

int main(void) {
    struct ggml_ext_error e = { sizeof e, 0, NULL, NULL, NULL };
    CHECK(!ggml_ext_last_error(&e), "no error at first");
    check_quiet();
    sizes();
    own_buffer();
    overfill();
    no_alloc();
    names();
    views();
    return check_done();
}
