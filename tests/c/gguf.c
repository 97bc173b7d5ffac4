/* gguf files: every type written and read back, by every way of reading; shortened and changed ones; wrong questions. */
#include "check.h"
#include "gguf_file.h"
#include "ggml-backend.h"
#include "gguf.h"

#include <unistd.h>

static char out_path[1000];

static struct gguf_context * every_type(void) {
    struct gguf_context * g = gguf_init_empty();
    gguf_set_val_u8(g, "u8", 200);
    gguf_set_val_i8(g, "i8", -100);
    gguf_set_val_u16(g, "u16", 60000);
    gguf_set_val_i16(g, "i16", -30000);
    gguf_set_val_u32(g, "u32", 4000000000u);
    gguf_set_val_i32(g, "i32", -2000000000);
    gguf_set_val_f32(g, "f32", 1.5f);
    gguf_set_val_u64(g, "u64", UINT64_MAX);
    gguf_set_val_i64(g, "i64", INT64_MIN);
    gguf_set_val_f64(g, "f64", -2.25);
    gguf_set_val_bool(g, "bool", true);
    gguf_set_val_str(g, "str", "text \xc3\xa4");
    static const uint64_t numbers[8] = { 1, 2, 3, UINT64_MAX, 0, 0, 0, 0 };
    const enum gguf_type  types[]    = { GGUF_TYPE_UINT8, GGUF_TYPE_INT8, GGUF_TYPE_UINT16, GGUF_TYPE_INT16, GGUF_TYPE_UINT32, GGUF_TYPE_INT32, GGUF_TYPE_FLOAT32, GGUF_TYPE_UINT64, GGUF_TYPE_INT64, GGUF_TYPE_FLOAT64 };
    for (int i = 0; i < 10; i++) {
        char key[32];
        snprintf(key, sizeof key, "array.%d", types[i]);
        gguf_set_arr_data(g, key, types[i], numbers, 4);
    }
    gguf_set_arr_data(g, "array.bool", GGUF_TYPE_BOOL, (const char[]){ 1, 0, 1 }, 3);
    gguf_set_arr_str(g, "array.str", (const char *[]){ "a", "", "ccc" }, 3);
    gguf_set_arr_data(g, "array.empty", GGUF_TYPE_UINT32, numbers, 0);
    return g;
}

static bool same_pairs(const struct gguf_context * g) {
    bool ok = gguf_get_n_kv(g) == 25;
    ok = ok && gguf_get_val_u8(g, gguf_find_key(g, "u8")) == 200 && gguf_get_val_i8(g, gguf_find_key(g, "i8")) == -100;
    ok = ok && gguf_get_val_u16(g, gguf_find_key(g, "u16")) == 60000 && gguf_get_val_i16(g, gguf_find_key(g, "i16")) == -30000;
    ok = ok && gguf_get_val_u32(g, gguf_find_key(g, "u32")) == 4000000000u && gguf_get_val_i32(g, gguf_find_key(g, "i32")) == -2000000000;
    ok = ok && gguf_get_val_f32(g, gguf_find_key(g, "f32")) == 1.5f && gguf_get_val_f64(g, gguf_find_key(g, "f64")) == -2.25;
    ok = ok && gguf_get_val_u64(g, gguf_find_key(g, "u64")) == UINT64_MAX && gguf_get_val_i64(g, gguf_find_key(g, "i64")) == INT64_MIN;
    ok = ok && gguf_get_val_bool(g, gguf_find_key(g, "bool")) && strcmp(gguf_get_val_str(g, gguf_find_key(g, "str")), "text \xc3\xa4") == 0;
    const int64_t a = gguf_find_key(g, "array.10"), s = gguf_find_key(g, "array.str"), b = gguf_find_key(g, "array.bool"), e = gguf_find_key(g, "array.empty");
    ok = ok && gguf_get_kv_type(g, a) == GGUF_TYPE_ARRAY && gguf_get_arr_type(g, a) == GGUF_TYPE_UINT64 && gguf_get_arr_n(g, a) == 4;
    ok = ok && ((const uint64_t *) gguf_get_arr_data(g, a))[3] == UINT64_MAX && (uintptr_t) gguf_get_arr_data(g, a) % 8 == 0;
    ok = ok && gguf_get_arr_type(g, s) == GGUF_TYPE_STRING && gguf_get_arr_n(g, s) == 3 && strcmp(gguf_get_arr_str(g, s, 2), "ccc") == 0 && gguf_get_arr_str(g, s, 1)[0] == 0;
    ok = ok && gguf_get_arr_n(g, b) == 3 && ((const char *) gguf_get_arr_data(g, b))[2] == 1;
    ok = ok && gguf_get_arr_n(g, e) == 0 && gguf_get_arr_type(g, e) == GGUF_TYPE_UINT32;
    return ok;
}

struct memory { const uint8_t * data; size_t size, calls, limit; };
static size_t from_memory(void * user, void * output, uint64_t offset, size_t len) {
    struct memory * m = user;
    m->calls++;
    if (m->limit && m->calls > m->limit) {
        return 0;
    }
    if (offset >= m->size) {
        return 0;
    }
    const size_t n = len < m->size - offset ? len : (size_t) (m->size - offset);
    memcpy(output, m->data + offset, n);
    return n;
}

static void round_trip(void) {
    struct gguf_context * g = every_type();
    CHECK(same_pairs(g), "every type is set");
    struct ggml_context * ctx = ggml_init((struct ggml_init_params){ 1 << 16, NULL, false });
    const enum ggml_type  types[] = { GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q4_0, GGML_TYPE_Q6_K, GGML_TYPE_I8, GGML_TYPE_I64 };
    for (int i = 0; i < 6; i++) {
        struct ggml_tensor * t = ggml_new_tensor_2d(ctx, types[i], 256, i + 1);
        ggml_format_name(t, "tensor.%d", i);
        memset(t->data, i + 1, ggml_nbytes(t));
        gguf_add_tensor(g, t);
    }
    struct ggml_tensor * none = ggml_set_name(ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 4, 0), "nothing");
    gguf_add_tensor(g, none);
    CHECK_ERROR(gguf_add_tensor(g, none), GGML_EXT_CODE_NONE, "a name twice", "nothing");
    CHECK(gguf_get_n_tensors(g) == 7 && gguf_find_tensor(g, "tensor.3") == 3 && gguf_find_tensor(g, "zz") == -1, "tensors are added");
    CHECK(gguf_write_to_file(g, out_path, false), "written");
    const size_t meta = gguf_get_meta_size(g);

    size_t    size  = 0;
    uint8_t * bytes = slurp(out_path, &size);
    CHECK(size > meta && memcmp(bytes, "GGUF", 4) == 0, "file of %zu bytes, %zu of meta data", size, meta);
    uint8_t * head = malloc(meta + 16);
    memset(head, 0xA5, meta + 16);
    gguf_get_meta_data(g, head);
    CHECK(memcmp(head, bytes, meta) == 0 && head[meta] == 0xA5, "meta data is the head of the file");
    free(head);
    FILE * f = tmpfile();
    fwrite("some bytes before", 1, 17, f);
    CHECK(gguf_write_to_file_ptr(g, f, false) && (size_t) ftell(f) == size + 17, "written to a stream that is not at its start");

    for (int way = 0; way < 6; way++) {
        struct ggml_context *   tensors = NULL;
        struct gguf_init_params p       = { way % 2, &tensors };
        struct memory           m       = { bytes, size, 0, 0 };
        struct gguf_context *   r       = NULL;
        switch (way) {
        case 0: case 1: r = gguf_init_from_file(out_path, p); break;
        case 2: r = gguf_init_from_buffer(bytes, size, p); break;
        case 3: r = gguf_init_from_callback(from_memory, &m, 7, size, p); break;
        case 4: r = gguf_init_from_callback(from_memory, &m, 0, size, p); break;
        case 5: fseek(f, 17, SEEK_SET); r = gguf_init_from_file_ptr(f, p); break;
        }
        if (!CHECK(r != NULL, "way %d: read", way)) {
            continue;
        }
        CHECK(same_pairs(r), "way %d: pairs", way);
        CHECK(gguf_get_version(r) == GGUF_VERSION && gguf_get_alignment(r) == GGUF_DEFAULT_ALIGNMENT, "way %d: version and alignment", way);
        CHECK(gguf_get_data_offset(r) == meta + (way == 5 ? 17 : 0) || gguf_get_data_offset(r) == meta, "way %d: data at %zu", way, gguf_get_data_offset(r));
        CHECK(gguf_get_n_tensors(r) == 7 && tensors != NULL, "way %d: tensors", way);
        for (int i = 0; i < 6; i++) {
            char name[32];
            snprintf(name, sizeof name, "tensor.%d", i);
            struct ggml_tensor * t = ggml_get_tensor(tensors, name);
            bool ok = t && t->type == types[i] && t->ne[0] == 256 && t->ne[1] == i + 1;
            ok = ok && gguf_get_tensor_type(r, i) == types[i] && gguf_get_tensor_size(r, i) == ggml_nbytes(t) && strcmp(gguf_get_tensor_name(r, i), name) == 0 && gguf_get_tensor_ne(r, i)[1] == i + 1;
            ok = ok && bytes[meta + gguf_get_tensor_offset(r, i)] == i + 1 && gguf_get_tensor_offset(r, i) % GGUF_DEFAULT_ALIGNMENT == 0;
            if (way % 2 == 0) {
                ok = ok && t->data && ((uint8_t *) t->data)[0] == i + 1 && ((uint8_t *) t->data)[ggml_nbytes(t) - 1] == i + 1;
            } else {
                ok = ok && t->data == NULL;
            }
            CHECK(ok, "way %d: tensor %d", way, i);
        }
        gguf_free(r);
        ggml_free(tensors);
    }
    fclose(f);

    /* every shorter file is refused, and every byte changed is survived */
    int refused = 0, ends = 0;
    for (size_t n = 0; n < size; n += n < meta ? 1 : 97) {
        struct ggml_context *   tensors = NULL;
        struct gguf_context *   r       = gguf_init_from_buffer(bytes, n, (struct gguf_init_params){ false, &tensors });
        refused += r == NULL && tensors == NULL;
        ends++;
        gguf_free(r);
        ggml_free(tensors);
    }
    CHECK(refused == ends, "%d of %d shorter files are refused", refused, ends);
    for (size_t n = 0; n < meta; n++) {
        for (int k = 0; k < 3; k++) {
            const uint8_t was = bytes[n];
            bytes[n]          = k == 0 ? 0xFF : k == 1 ? 0 : (uint8_t) (was ^ 0x80);
            struct ggml_context * tensors = NULL;
            struct gguf_context * r       = gguf_init_from_buffer(bytes, size, (struct gguf_init_params){ false, &tensors });
            gguf_free(r);
            ggml_free(tensors);
            bytes[n] = was;
        }
    }
    CHECK(true, "every byte of the meta data changed in three ways");
    for (size_t limit = 1; limit < 60; limit++) {
        struct memory         m = { bytes, size, 0, limit };
        struct ggml_context * tensors = NULL;
        struct gguf_context * r = gguf_init_from_callback(from_memory, &m, 64, size, (struct gguf_init_params){ false, &tensors });
        if (r) {
            CHECK(m.calls <= limit, "a callback that gave up after %zu", limit);
        }
        gguf_free(r);
        ggml_free(tensors);
    }
    free(bytes);

    /* changes */
    CHECK(gguf_remove_key(g, "u8") == 0 && gguf_find_key(g, "u8") == -1 && gguf_remove_key(g, "u8") == -1 && gguf_get_n_kv(g) == 24, "a pair is removed");
    gguf_set_val_i64(g, "str", 7);
    CHECK(gguf_get_n_kv(g) == 24 && gguf_get_val_i64(g, 23) == 7 && strcmp(gguf_get_key(g, 23), "str") == 0, "a pair is replaced and becomes the last");
    struct gguf_context * other = gguf_init_empty();
    gguf_set_val_u32(other, "i8", 5);
    gguf_set_kv(other, g);
    CHECK(gguf_get_n_kv(other) == 24 && gguf_get_kv_type(other, gguf_find_key(other, "i8")) == GGUF_TYPE_INT8, "pairs are merged");
    gguf_set_kv(other, other);
    CHECK(gguf_get_n_kv(other) == 24, "pairs of itself");
    gguf_free(other);
    gguf_set_tensor_type(g, "tensor.0", GGML_TYPE_F16);
    CHECK(gguf_get_tensor_size(g, 0) == 512 && gguf_get_tensor_offset(g, 1) == 512, "a smaller type: the others move");
    CHECK_ERROR(gguf_set_tensor_type(g, "zz", GGML_TYPE_F16), GGML_EXT_CODE_NONE, "type of no tensor", "zz");
    CHECK_ERROR(gguf_set_tensor_type(g, "tensor.0", (enum ggml_type) 999), GGML_EXT_CODE_NONE, "no type", "tensor.0");
    CHECK_ERROR(gguf_set_tensor_data(g, "zz", g), GGML_EXT_CODE_NONE, "data of no tensor", "zz");
    /* a type for which the tensor has not enough bytes, and no other data */
    gguf_set_tensor_type(g, "tensor.0", GGML_TYPE_I64);
    bool written = true;
    CHECK_ERROR(written = gguf_write_to_file(g, out_path, false), GGML_EXT_CODE_NONE, "a tensor with fewer bytes than its type now wants", "tensor.0");
    CHECK(!written, "a tensor with fewer bytes than its type now wants: false");
    int64_t data[256];
    memset(data, 0x11, sizeof data);
    gguf_set_tensor_data(g, "tensor.0", data);
    CHECK(gguf_write_to_file(g, out_path, false), "with data of its own it is written");
    CHECK(gguf_write_to_file(g, out_path, true), "meta data only");
    CHECK_ERROR(written = gguf_write_to_file(g, "/no/such/folder/file", false), GGML_EXT_CODE_IO, "a file that cannot be made", "/no/such/folder");
    CHECK(!written, "a file that cannot be made: false");
    CHECK(!gguf_write_to_file(g, "/dev/full", false), "a full disk");
    FILE * full = fopen("/dev/full", "wb");
    const bool to_full = gguf_write_to_file_ptr(g, full, false);
    CHECK(!to_full || fclose(full) != 0, "a full disk, as a stream");
    gguf_free(g);

    /* tensors that do not lie as they should */
    g                      = gguf_init_empty();
    struct ggml_tensor * p = ggml_set_name(ggml_transpose(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 8, 4)), "transposed");
    gguf_add_tensor(g, p);
    written = gguf_write_to_file(g, out_path, false);
    CHECK(!written || gguf_get_n_tensors(g) == 0, "a transposed tensor is not written as if it were contiguous");
    gguf_free(g);
    g = gguf_init_empty();
    struct ggml_tensor * gaps = ggml_set_name(ggml_view_2d(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 8, 4), 2, 4, 32, 0), "gaps");
    gguf_add_tensor(g, gaps);
    written = gguf_write_to_file(g, out_path, false);
    CHECK(!written || gguf_get_n_tensors(g) == 0, "nor one with gaps");
    gguf_free(g);
    g = gguf_init_empty();
    ggml_set_no_alloc(ctx, true);
    gguf_add_tensor(g, ggml_set_name(ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 8), "without data"));
    CHECK_ERROR(written = gguf_write_to_file(g, out_path, false), GGML_EXT_CODE_NONE, "a tensor without data", "without data");
    CHECK(!written && gguf_write_to_file(g, out_path, true), "a tensor without data: false, and its meta data is written");
    gguf_free(g);
    ggml_free(ctx);
}

static void wrong_questions(void) {
    struct gguf_context * g = every_type();
    const int64_t         ids[] = { -1, 25, INT64_MAX, INT64_MIN };
    for (int i = 0; i < 4; i++) {
        const int64_t id = ids[i];
        check_log_errors = 0;
        bool ok = gguf_get_key(g, id) == NULL && gguf_get_kv_type(g, id) == GGUF_TYPE_COUNT && gguf_get_arr_type(g, id) == GGUF_TYPE_COUNT && gguf_get_val_u8(g, id) == 0 && gguf_get_val_i8(g, id) == 0 && gguf_get_val_u16(g, id) == 0 && gguf_get_val_i16(g, id) == 0;
        ok = ok && gguf_get_val_u32(g, id) == 0 && gguf_get_val_i32(g, id) == 0 && gguf_get_val_f32(g, id) == 0 && gguf_get_val_u64(g, id) == 0 && gguf_get_val_i64(g, id) == 0 && gguf_get_val_f64(g, id) == 0 && !gguf_get_val_bool(g, id);
        ok = ok && gguf_get_val_str(g, id) == NULL && gguf_get_val_data(g, id) == NULL && gguf_get_arr_n(g, id) == 0 && gguf_get_arr_data(g, id) == NULL && gguf_get_arr_str(g, id, 0) == NULL;
        CHECK(ok && check_log_errors >= 18, "pair %lld: %d errors", (long long) id, check_log_errors);
        check_log_errors = 0;
        ok = gguf_get_tensor_offset(g, id) == 0 && gguf_get_tensor_name(g, id) == NULL && gguf_get_tensor_ne(g, id) == NULL && gguf_get_tensor_type(g, id) == GGML_TYPE_COUNT && gguf_get_tensor_size(g, id) == 0;
        CHECK(ok && check_log_errors == 5, "tensor %lld: %d errors", (long long) id, check_log_errors);
    }
    CHECK_ERROR(CHECK(gguf_get_val_u8(g, gguf_find_key(g, "str")) == 0, "another type: 0"), GGML_EXT_CODE_NONE, "another type", "gguf_get_val_u8");
    CHECK_ERROR(CHECK(gguf_get_val_str(g, gguf_find_key(g, "u8")) == NULL, "no string: NULL"), GGML_EXT_CODE_NONE, "no string", "gguf_get_val_str");
    CHECK_ERROR(CHECK(gguf_get_val_u32(g, gguf_find_key(g, "array.4")) == 0, "an array: 0"), GGML_EXT_CODE_NONE, "an array", "gguf_get_val_u32");
    CHECK(gguf_get_arr_str(g, gguf_find_key(g, "array.str"), 3) == NULL && gguf_get_arr_str(g, gguf_find_key(g, "array.str"), SIZE_MAX) == NULL && gguf_get_arr_data(g, gguf_find_key(g, "array.str")) == NULL, "strings out of range");
    CHECK(gguf_type_name(GGUF_TYPE_STRING) && gguf_type_name((enum gguf_type) 13) == NULL && gguf_type_name((enum gguf_type) -1) == NULL, "names of types");
    CHECK_ERROR(gguf_set_val_u8(g, "", 1), GGML_EXT_CODE_NONE, "an empty key", "gguf_set_val_u8");
    CHECK_ERROR(gguf_set_val_str(g, "key", NULL), GGML_EXT_CODE_NONE, "a string that is NULL", "gguf_set_val_str");
    CHECK_ERROR(gguf_set_arr_data(g, "key", GGUF_TYPE_STRING, "x", 1), GGML_EXT_CODE_NONE, "strings as numbers", "gguf_set_arr_data");
    CHECK_ERROR(gguf_set_arr_data(g, "key", GGUF_TYPE_ARRAY, "x", 1), GGML_EXT_CODE_NONE, "an array of arrays", "gguf_set_arr_data");
    CHECK_ERROR(gguf_set_arr_data(g, "key", GGUF_TYPE_UINT64, NULL, 1), GGML_EXT_CODE_NONE, "numbers at NULL", "gguf_set_arr_data");
    CHECK_ERROR(gguf_set_arr_data(g, "key", GGUF_TYPE_UINT64, "x", SIZE_MAX / 4), GGML_EXT_CODE_NONE, "more numbers than there can be", "gguf_set_arr_data");
    CHECK_ERROR(gguf_set_arr_str(g, "key", (const char *[]){ "a", NULL }, 2), GGML_EXT_CODE_NONE, "a NULL among strings", "gguf_set_arr_str");
    const uint32_t bad[] = { 0, 3, 33, UINT32_MAX };
    for (int i = 0; i < 4; i++) {
        check_log_errors = 0;
        gguf_set_val_u32(g, GGUF_KEY_GENERAL_ALIGNMENT, bad[i]);
        CHECK(check_log_errors > 0 && gguf_get_alignment(g) == GGUF_DEFAULT_ALIGNMENT, "alignment %u is refused", bad[i]);
    }
    gguf_set_val_u32(g, GGUF_KEY_GENERAL_ALIGNMENT, 128);
    CHECK(gguf_get_alignment(g) == 128 && gguf_get_meta_size(g) % 128 == 0, "alignment 128");
    gguf_remove_key(g, GGUF_KEY_GENERAL_ALIGNMENT);
    CHECK(gguf_get_alignment(g) == GGUF_DEFAULT_ALIGNMENT, "the default again");
    gguf_free(g);
}

int main(void) {
    check_quiet();
    snprintf(out_path, sizeof out_path, "%s/gguf-test-%d.gguf", getenv("TESTS_OUT") ? getenv("TESTS_OUT") : "/tmp", (int) getpid());
    round_trip();
    wrong_questions();
    unlink(out_path);
    return check_done();
}
