/* Broken gguf files: those of public reports and their kind, written by hand, and the fuzzer's. Each is refused with an error
 * that says where and which rule, and none ends the process. */
#include "check.h"
#include "gguf_file.h"
#include "ggml-backend.h"
#include "gguf.h"

#include <dirent.h>
#include <limits.h>
#include <unistd.h>

static char out_path[1000];

static struct gguf_init_params meta_only(void) { return (struct gguf_init_params){ true, NULL }; }

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
    snprintf(out_path, sizeof out_path, "%s/gguf-broken-%d.gguf", getenv("TESTS_OUT") ? getenv("TESTS_OUT") : "/tmp", (int) getpid());
    reports();
    callbacks();
    folder("tests/data/gguf", true);
    folder("fuzz/corpus/gguf", false);
    unlink(out_path);
    return check_done();
}
