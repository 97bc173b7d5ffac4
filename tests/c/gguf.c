/* gguf files: every type written and read back, by every way of reading, and broken files, each of which is refused with an
 * error that says where and why. */
#include "check.h"
#include "ggml-backend.h"
#include "gguf.h"

#include <dirent.h>
#include <limits.h>
#include <sys/resource.h>
#include <unistd.h>

static char out_path[1000];

static struct gguf_init_params meta_only(void) { return (struct gguf_init_params){ true, NULL }; }

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

static uint8_t * slurp(const char * path, size_t * size) {
    FILE * f = fopen(path, "rb");
    if (!f) {
        return NULL;
    }
    fseek(f, 0, SEEK_END);
    *size        = (size_t) ftell(f);
    uint8_t * to = malloc(*size + 1);
    rewind(f);
    if (fread(to, 1, *size, f) != *size) {
        *size = 0;
    }
    fclose(f);
    return to;
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

/* Writing a file by hand. */
struct bytes { uint8_t at[4096]; size_t n; };
static void put(struct bytes * b, const void * data, size_t n) {
    memcpy(b->at + b->n, data, n);
    b->n += n;
}
#define PUT(b, type, value) put(b, &(type){ value }, sizeof(type))
static void head(struct bytes * b, uint64_t n_tensors, uint64_t n_kv) {
    b->n = 0;
    put(b, "GGUF", 4);
    PUT(b, uint32_t, 3);
    PUT(b, uint64_t, n_tensors);
    PUT(b, uint64_t, n_kv);
}
static void name(struct bytes * b, const char * text) {
    PUT(b, uint64_t, strlen(text));
    put(b, text, strlen(text));
}

/* NULL (or, where told so, a sound file), an error text with the position and the rule, and no large allocation. */
static void refused(struct bytes * b, const char * what, const char * rule) {
    struct ggml_context * tensors = NULL;
    for (int no_alloc = 0; no_alloc < 2; no_alloc++) {
        check_log_errors        = 0;
        struct gguf_context * g = gguf_init_from_buffer(b->at, b->n, (struct gguf_init_params){ no_alloc, &tensors });
        CHECK(g == NULL && tensors == NULL, "%s: refused", what);
        CHECK(check_log_errors == 1 && check_error_code() == GGML_EXT_CODE_BAD_FILE, "%s: reported once (code %d)", what, check_error_code());
        gguf_free(g);
    }
    CHECK(strstr(check_error_text(), "at byte") || strstr(check_error_text(), "offset"), "%s: the text says where: %s", what, check_error_text());
    if (rule) {
        CHECK(strstr(check_error_text(), rule) != NULL, "%s: the text has '%s': %s", what, rule, check_error_text());
    }
    FILE * f = fopen(out_path, "wb");
    fwrite(b->at, 1, b->n, f);
    fclose(f);
    CHECK(gguf_init_from_file(out_path, meta_only()) == NULL, "%s: refused as a file", what);
}

static void tensor(struct bytes * b, const char * n, uint32_t dims, const int64_t * ne, uint32_t type, uint64_t offset) {
    name(b, n);
    PUT(b, uint32_t, dims);
    for (uint32_t i = 0; i < dims; i++) {
        PUT(b, int64_t, ne[i]);
    }
    PUT(b, uint32_t, type);
    PUT(b, uint64_t, offset);
}

static void reports(void) {
    static const int64_t one[4] = { 1, 1, 1, 1 };
    struct bytes b;
    char         what[100];
    /* no address space for what a file only claims */
    const struct rlimit space = { (rlim_t) 4 << 30, (rlim_t) 4 << 30 };
    (void) space;

    /* row 10: the very file of the report */
    static const char base64[] = "R0dVRgMAAAABAAAAAAAAAAAAAAAAAAAAAQAAAAAAAAB0AgAAAAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    b.n = 0;
    for (size_t i = 0, bits = 0, have = 0; base64[i] && base64[i] != '='; i++) {
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        bits                       = bits << 6 | (size_t) (strchr(digits, base64[i]) - digits);
        have += 6;
        if (have >= 8) {
            have -= 8;
            b.at[b.n++] = (uint8_t) (bits >> have);
        }
    }
    CHECK(b.n == 65, "row 10: 65 bytes");
    struct ggml_context * tensors = NULL;
    struct gguf_context * g       = gguf_init_from_buffer(b.at, b.n, (struct gguf_init_params){ false, &tensors });
    CHECK(!g || (gguf_get_n_tensors(g) == 1 && gguf_get_tensor_size(g, 0) == 0), "row 10: NULL or a sound empty tensor");
    gguf_free(g);
    ggml_free(tensors);

    /* row 11: tensors without elements are accepted */
    const int64_t zeros[][4] = { { 4, 0, 1, 1 }, { 1, 0, 1, 1 }, { 0, 0, 0, 0 }, { 0, 7, 1, 1 } };
    for (int i = 0; i < 4; i++) {
        for (uint32_t dims = 2; dims <= 4; dims += 2) {
            head(&b, 2, 0);
            tensor(&b, "zero", dims, zeros[i], GGML_TYPE_F32, 0);
            tensor(&b, "one", 1, one, GGML_TYPE_F32, 0);
            b.n = (b.n + 31) / 32 * 32;
            put(&b, "\x00\x00\x80\x3f", 4);
            memset(b.at + b.n, 0, 28);
            b.n += 28;
            tensors = NULL;
            g       = gguf_init_from_buffer(b.at, b.n, (struct gguf_init_params){ false, &tensors });
            CHECK(g && tensors && gguf_get_tensor_size(g, 0) == 0, "row 11: [%lld,%lld] is accepted", (long long) zeros[i][0], (long long) zeros[i][1]);
            if (tensors) {
                struct ggml_tensor * z = ggml_get_tensor(tensors, "zero"), * o = ggml_get_tensor(tensors, "one");
                CHECK(z && ggml_is_empty(z) && z->ne[1] == zeros[i][1] && o && o->data && *(float *) o->data == 1.0f, "row 11: its shape, and the tensor after it");
            }
            gguf_free(g);
            ggml_free(tensors);
        }
    }
    /* row 12: a key of length 0, all types of values */
    for (uint32_t type = 0; type < 14; type++) {
        head(&b, 0, 1);
        name(&b, "");
        PUT(&b, uint32_t, type);
        memset(b.at + b.n, 0, 32);
        b.n += 32;
        snprintf(what, sizeof what, "row 12: empty key, type %u", type);
        refused(&b, what, "key");
    }
    /* row 14 and its kind: products that overflow */
    const struct { int64_t ne[4]; uint32_t type; } shapes[] = {
        { { INT64_MAX, 2, 1, 1 }, GGML_TYPE_I8 }, { { INT64_MAX, 1, 1, 1 }, GGML_TYPE_F32 }, { { INT64_MAX, 1, 1, 1 }, GGML_TYPE_I8 }, { { (int64_t) 1 << 32, (int64_t) 1 << 32, 1, 1 }, GGML_TYPE_I8 },
        { { (int64_t) 1 << 31, (int64_t) 1 << 31, 1, 1 }, GGML_TYPE_F64 }, { { -1, 1, 1, 1 }, GGML_TYPE_F32 }, { { INT64_MIN, 1, 1, 1 }, GGML_TYPE_F32 }, { { 4, -4, 1, 1 }, GGML_TYPE_F32 },
        { { 33, 1, 1, 1 }, GGML_TYPE_Q4_0 }, { { 32, 1, 1, 1 }, GGML_TYPE_Q4_K }, { { 0, INT64_MAX, INT64_MAX, 1 }, GGML_TYPE_F32 }, { { INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX }, GGML_TYPE_I8 },
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        head(&b, 1, 0);
        tensor(&b, "big", 4, shapes[i].ne, shapes[i].type, 0);
        memset(b.at + b.n, 0, 128);
        b.n += 128;
        snprintf(what, sizeof what, "row 14: shape %zu", i);
        if (i == 10) {
            gguf_free(gguf_init_from_buffer(b.at, b.n, meta_only())); /* no elements: may be either */
            continue;
        }
        if (i == 2) { /* a size that there can be: only the data is missing */
            tensors = NULL;
            CHECK_ERROR(g = gguf_init_from_buffer(b.at, b.n, (struct gguf_init_params){ false, &tensors }), GGML_EXT_CODE_BAD_FILE, "row 14: data that is not there", "at byte", "9223372036854775");
            CHECK(g == NULL && tensors == NULL, "row 14: data that is not there: refused");
            continue;
        }
        refused(&b, what, "big");
    }
    /* row 16: numbers of tensors and pairs, and sums of sizes */
    const uint64_t counts[] = { (uint64_t) 1 << 60, UINT64_MAX, (uint64_t) 1 << 63, UINT64_MAX / 432 + 1, 1000000000 };
    for (int i = 0; i < 5; i++) {
        head(&b, counts[i], 0);
        memset(b.at + b.n, 0, 64);
        b.n += 64;
        snprintf(what, sizeof what, "row 16: %llu tensors", (unsigned long long) counts[i]);
        refused(&b, what, NULL);
        head(&b, 0, counts[i]);
        memset(b.at + b.n, 1, 64);
        b.n += 64;
        snprintf(what, sizeof what, "row 16: %llu pairs", (unsigned long long) counts[i]);
        refused(&b, what, NULL);
        head(&b, 0, 1);
        name(&b, "k");
        PUT(&b, uint32_t, GGUF_TYPE_STRING);
        PUT(&b, uint64_t, counts[i]);
        snprintf(what, sizeof what, "row 16: a string of %llu bytes", (unsigned long long) counts[i]);
        refused(&b, what, NULL);
        head(&b, 0, 1);
        PUT(&b, uint64_t, counts[i]);
        snprintf(what, sizeof what, "row 16: a key of %llu bytes", (unsigned long long) counts[i]);
        refused(&b, what, NULL);
        for (uint32_t type = 0; type < 13; type++) {
            head(&b, 0, 1);
            name(&b, "k");
            PUT(&b, uint32_t, GGUF_TYPE_ARRAY);
            PUT(&b, uint32_t, type);
            PUT(&b, uint64_t, counts[i]);
            memset(b.at + b.n, 0, 16);
            b.n += 16;
            snprintf(what, sizeof what, "row 16: an array of %llu of type %u", (unsigned long long) counts[i], type);
            refused(&b, what, "k");
        }
    }
    const int64_t half[4] = { (int64_t) 1 << 61, 1, 1, 1 };
    head(&b, 9, 0);
    for (uint64_t i = 0; i < 9; i++) {
        snprintf(what, sizeof what, "part%llu", (unsigned long long) i);
        tensor(&b, what, 1, half, GGML_TYPE_I8, i << 61);
    }
    memset(b.at + b.n, 0, 64);
    b.n += 64;
    refused(&b, "row 16: sizes that sum to more than 2^64", "part");
    /* row 17 */
    for (uint32_t dims = 5; dims; dims = dims < 100 ? dims * 3 : dims == UINT32_MAX ? 0 : UINT32_MAX) {
        head(&b, 1, 0);
        name(&b, "t");
        PUT(&b, uint32_t, dims);
        memset(b.at + b.n, 1, 512);
        b.n += 512;
        snprintf(what, sizeof what, "row 17: %u dimensions", dims);
        refused(&b, what, "t");
    }
    const uint32_t types[] = { 4, 5, 31, 36, GGML_TYPE_COUNT + 500, 0x7fffffff, 0xffffffff, 0x80000000 };
    for (int i = 0; i < 8; i++) {
        head(&b, 1, 0);
        tensor(&b, "typed", 1, one, types[i], 0);
        memset(b.at + b.n, 0, 64);
        b.n += 64;
        snprintf(what, sizeof what, "row 17: type %u", types[i]);
        refused(&b, what, "typed");
        head(&b, 0, 1);
        name(&b, "typed");
        PUT(&b, uint32_t, types[i] < 13 ? 13 : types[i]);
        memset(b.at + b.n, 0, 64);
        b.n += 64;
        snprintf(what, sizeof what, "row 17: value type %u", types[i]);
        refused(&b, what, "typed");
    }
    /* names, offsets, versions */
    char long_name[GGML_MAX_NAME + 1];
    memset(long_name, 'n', GGML_MAX_NAME);
    long_name[GGML_MAX_NAME] = 0;
    head(&b, 1, 0);
    tensor(&b, long_name, 1, one, 0, 0);
    b.n += 64;
    refused(&b, "a name that is too long", NULL);
    head(&b, 2, 0);
    tensor(&b, "same", 1, one, 0, 0);
    tensor(&b, "same", 1, one, 0, 32);
    b.n += 128;
    refused(&b, "a name twice", "same");
    head(&b, 0, 2);
    for (int i = 0; i < 2; i++) {
        name(&b, "same");
        PUT(&b, uint32_t, GGUF_TYPE_UINT8);
        PUT(&b, uint8_t, 1);
    }
    refused(&b, "a key twice", "same");
    const uint64_t offsets[] = { 1, 64, UINT64_MAX, (uint64_t) 1 << 63 };
    for (int i = 0; i < 4; i++) {
        head(&b, 1, 0);
        tensor(&b, "there", 1, one, 0, offsets[i]);
        memset(b.at + b.n, 0, 128);
        b.n += 128;
        snprintf(what, sizeof what, "data at %llu", (unsigned long long) offsets[i]);
        refused(&b, what, "there");
    }
    const uint32_t versions[] = { 0, 1, 4, 0x03000000, 0xffffffff };
    for (int i = 0; i < 5; i++) {
        head(&b, 0, 0);
        memcpy(b.at + 4, &versions[i], 4);
        snprintf(what, sizeof what, "version %u", versions[i]);
        refused(&b, what, "version");
    }
    head(&b, 0, 0);
    b.at[0] = 'g';
    refused(&b, "no gguf", NULL);
    b.n = 0;
    refused(&b, "no bytes", NULL);
    const uint32_t alignments[] = { 0, 3, 0x80000000, 24 };
    for (int i = 0; i < 4; i++) {
        head(&b, 0, 1);
        name(&b, GGUF_KEY_GENERAL_ALIGNMENT);
        PUT(&b, uint32_t, GGUF_TYPE_UINT32);
        PUT(&b, uint32_t, alignments[i]);
        if (alignments[i] == 0x80000000) {
            gguf_free(gguf_init_from_buffer(b.at, b.n, meta_only())); /* a power of two: may be either */
            continue;
        }
        snprintf(what, sizeof what, "alignment %u", alignments[i]);
        refused(&b, what, "alignment");
    }
    head(&b, 0, 1);
    name(&b, GGUF_KEY_GENERAL_ALIGNMENT);
    PUT(&b, uint32_t, GGUF_TYPE_STRING);
    name(&b, "32");
    refused(&b, "alignment that is text", "alignment");
    head(&b, 0, 1);
    name(&b, "nested");
    PUT(&b, uint32_t, GGUF_TYPE_ARRAY);
    PUT(&b, uint32_t, GGUF_TYPE_ARRAY);
    PUT(&b, uint64_t, 1);
    b.n += 64;
    refused(&b, "arrays of arrays", "nested");
    head(&b, 0, 1);
    name(&b, "flag");
    PUT(&b, uint32_t, GGUF_TYPE_BOOL);
    PUT(&b, uint8_t, 77);
    g = gguf_init_from_buffer(b.at, b.n, meta_only());
    CHECK(!g || gguf_get_val_bool(g, 0) == true || gguf_get_val_bool(g, 0) == false, "a bool of 77 is no trap");
    gguf_free(g);

    /* what is no file */
    CHECK_ERROR(CHECK(gguf_init_from_file("/no/such/file", meta_only()) == NULL, "no file: NULL"), GGML_EXT_CODE_IO, "no file", "/no/such/file");
    CHECK(gguf_init_from_file("/", meta_only()) == NULL, "a folder");
    CHECK(gguf_init_from_file("", meta_only()) == NULL && gguf_init_from_file(NULL, meta_only()) == NULL, "no name");
    CHECK(gguf_init_from_file("/dev/zero", meta_only()) == NULL && gguf_init_from_file("/dev/null", meta_only()) == NULL, "devices");
    CHECK(gguf_init_from_buffer(NULL, 100, meta_only()) == NULL && gguf_init_from_file_ptr(NULL, meta_only()) == NULL && gguf_init_from_callback(NULL, NULL, 0, 100, meta_only()) == NULL, "NULL");
    int ends[2];
    if (pipe(ends) == 0) {
        FILE * f = fdopen(ends[0], "rb");
        close(ends[1]);
        CHECK(gguf_init_from_file_ptr(f, meta_only()) == NULL, "a pipe");
        fclose(f);
    }
}

/* A callback that says more than it was asked for, or lies about the size. */
static size_t too_much(void * user, void * output, uint64_t offset, size_t len) { (void) user; (void) offset; memset(output, 'G', len); return len + 1000; }
static size_t all_of(void * user, void * output, uint64_t offset, size_t len) { (void) user; (void) offset; memset(output, 'G', len); return SIZE_MAX; }

static void callbacks(void) {
    CHECK(gguf_init_from_callback(too_much, NULL, 16, 1000, meta_only()) == NULL, "a callback that answers too much");
    CHECK(gguf_init_from_callback(all_of, NULL, 0, UINT64_MAX, meta_only()) == NULL, "a callback that answers SIZE_MAX");
}

/* All files of a folder: none may end the process. */
static void folder(const char * sub, bool sound) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", getenv("TESTS_ROOT") ? getenv("TESTS_ROOT") : ".", sub);
    DIR * dir = opendir(path);
    if (!dir) {
        CHECK(false, "folder %s is there", sub);
        return;
    }
    int            n = 0, read = 0, gguf = 0;
    struct dirent * e;
    while ((e = readdir(dir))) {
        char file[PATH_MAX + 300];
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        size_t    size;
        uint8_t * bytes = e->d_name[0] == '.' ? NULL : slurp(file, &size);
        if (!bytes) {
            continue;
        }
        n++;
        for (int no_alloc = 0; no_alloc < 2; no_alloc++) {
            struct ggml_context * tensors = NULL;
            struct gguf_context * g       = gguf_init_from_file(file, (struct gguf_init_params){ no_alloc, &tensors });
            if (g) {
                read += !no_alloc;
                for (int64_t i = 0; i < gguf_get_n_tensors(g); i++) {
                    struct ggml_tensor * t = ggml_get_tensor(tensors, gguf_get_tensor_name(g, i));
                    if (!t || (!no_alloc && gguf_get_tensor_size(g, i) > 0 && (!t->data || ggml_nbytes(t) != gguf_get_tensor_size(g, i)))) {
                        CHECK(false, "%s: tensor %lld", file, (long long) i);
                    }
                }
            } else if (tensors) {
                CHECK(false, "%s: refused, but made a context", file);
            }
            gguf_free(g);
            ggml_free(tensors);
        }
        gguf_free(gguf_init_from_buffer(bytes, size, meta_only()));
        const size_t len = strlen(file);
        gguf += len > 5 && strcmp(file + len - 5, ".gguf") == 0;
        free(bytes);
    }
    closedir(dir);
    CHECK(n > 0 && (!sound || (gguf > 0 && read == gguf)), "%s: %d files, %d of them sound", sub, n, read);
}

int main(void) {
    check_quiet();
    snprintf(out_path, sizeof out_path, "%s/gguf-test-%d.gguf", getenv("TESTS_OUT") ? getenv("TESTS_OUT") : "/tmp", (int) getpid());
    round_trip();
    wrong_questions();
    reports();
    callbacks();
    folder("tests/data/gguf", true);
    folder("fuzz/corpus/gguf", false);
    unlink(out_path);
    return check_done();
}
