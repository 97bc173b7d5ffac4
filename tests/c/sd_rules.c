/* Builders of ggml-sd.h: registration on the first call, shapes of results, every rule that a caller can break (SD-1 to SD-7); what the
 * CPU refuses. Computing is in sd_compute.c, numbers are in tests/reference/tests/sd. */
#include "check.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"

static struct ggml_context * ctx;
static ggml_backend_t        cpu;
static ggml_backend_dev_t    dev;

static struct ggml_tensor * make(enum ggml_type type, int64_t a, int64_t b, int64_t c, int64_t d) {
    return ggml_new_tensor_4d(ctx, type, a, b, c, d);
}
static struct ggml_tensor * f32(int64_t a, int64_t b) { return make(GGML_TYPE_F32, a, b, 1, 1); }
static struct ggml_tensor * i8(int64_t a, int64_t b) { return make(GGML_TYPE_I8, a, b, 1, 1); }
static struct ggml_tensor * f8(int64_t a, int64_t b) { return make(GGML_TYPE_F8_E4M3, a, b, 1, 1); }
/* rows that do not follow each other */
static struct ggml_tensor * gaps(enum ggml_type type, int64_t a, int64_t b) {
    struct ggml_tensor * t = make(type, a + 4, b, 1, 1);
    return ggml_view_2d(ctx, t, a, b, t->nb[1], 0);
}

static bool is(const struct ggml_tensor * t, enum ggml_type type, int64_t a, int64_t b, int64_t c, int64_t d) {
    return t && t->type == type && t->ne[0] == a && t->ne[1] == b && t->ne[2] == c && t->ne[3] == d && ggml_is_contiguous(t) &&
           t->op == GGML_OP_CUSTOM && !t->view_src;
}

/* The call answers NULL with an error that has the texts. */
#define REFUSED(call, name, ...)                                                                     \
    do {                                                                                             \
        struct ggml_tensor * made_ = NULL;                                                           \
        CHECK_ERROR(made_ = (call), GGML_EXT_CODE_BAD_SHAPE, name, __VA_ARGS__, NULL); \
        CHECK(made_ == NULL, "%s: NULL", name);                                                      \
    } while (0)
#define IS_NULL(call, name)                                                                           \
    do {                                                                                              \
        struct ggml_tensor * made_ = NULL;                                                            \
        CHECK_ERROR(made_ = (call), GGML_EXT_CODE_NULL_ARGUMENT, name, "NULL", NULL);  \
        CHECK(made_ == NULL, "%s: NULL", name);                                                       \
    } while (0)

/* Nodes by the operator's name, with sources and attributes that no builder makes. */
#define MADE(name, attrs, ...)                                                                                              \
    ggml_ext_op_create(ctx, name, (struct ggml_tensor *[]){ __VA_ARGS__ }, sizeof((struct ggml_tensor *[]){ __VA_ARGS__ }) / sizeof(void *), \
                       &(attrs), sizeof(attrs))

static struct ggml_tensor * f16(int64_t a, int64_t b) { return make(GGML_TYPE_F16, a, b, 1, 1); }

static void first_call(void) {
    struct ggml_tensor * x = f32(8, 2), *src[2] = { x, x };
    check_log_errors = 0;
    CHECK(!ggml_ext_op_create(ctx, "sd.modulate.v1", src, 2, NULL, 0) && check_error_code() == GGML_EXT_CODE_UNKNOWN_NAME,
          "nothing is registered unasked");
    struct ggml_tensor * y = ggml_sd_modulate(ctx, x, NULL, x);
    CHECK(y && strcmp(ggml_ext_op_name(y), "sd.modulate.v1") == 0, "the first builder registers");
    CHECK(ggml_backend_dev_supports_op(dev, y), "and its kernels");
    CHECK(ggml_ext_op_create(ctx, "sd.modulate.v1", src, 2, NULL, 0) != NULL, "nodes can be made by the name too");
    CHECK(ggml_sd_register_extensions(dev) && ggml_sd_register_extensions(NULL), "again: all is there");
}

static void quantize(void) {
    CHECK(is(ggml_quantize_i8_convrot(ctx, make(GGML_TYPE_F32, 512, 5, 13, 1), 256), GGML_TYPE_I8, 512, 69, 1, 1), "SD-3: shape");
    CHECK(is(ggml_quantize_i8_convrot(ctx, f32(4, 3), 4), GGML_TYPE_I8, 4, 7, 1, 1), "SD-3: scales of short rows");
    IS_NULL(ggml_quantize_i8_convrot(ctx, NULL, 4), "SD-3: no activation");
    REFUSED(ggml_quantize_i8_convrot(ctx, make(GGML_TYPE_F16, 8, 2, 1, 1), 4), "SD-3: F16", "sd.quantize_i8_convrot.v1", "F32", "F16");
    REFUSED(ggml_quantize_i8_convrot(ctx, gaps(GGML_TYPE_F32, 8, 2), 4), "SD-3: gaps", "contiguous");
    REFUSED(ggml_quantize_i8_convrot(ctx, f32(8, 2), 0), "SD-3: group 0", "power of 4");
    REFUSED(ggml_quantize_i8_convrot(ctx, f32(8, 2), -4), "SD-3: group -4", "power of 4");
    REFUSED(ggml_quantize_i8_convrot(ctx, f32(8, 2), 8), "SD-3: group 8", "power of 4");
    REFUSED(ggml_quantize_i8_convrot(ctx, f32(8, 2), 16), "SD-3: group 16 of 8", "divide");
    REFUSED(ggml_quantize_i8_convrot(ctx, f32(0, 2), 1), "SD-3: no elements", "elements");
    REFUSED(ggml_quantize_i8_convrot(ctx, f32(8, 2), 2), "SD-3: group 2", "power of 4");
    REFUSED(ggml_quantize_i8_convrot(ctx, f32(252, 2), 64), "SD-3: group 64 of 252", "divide", "252");
    REFUSED(ggml_quantize_i8_convrot(ctx, ggml_permute(ctx, f32(8, 8), 1, 0, 2, 3), 4), "SD-3: permuted", "contiguous");
    const int32_t four = 4;
    REFUSED(MADE("sd.quantize_i8_convrot.v1", four, f32(8, 2), f32(8, 2)), "SD-3: two sources", "sd.quantize_i8_convrot.v1", "one source");
    for (int group = 1; group <= 1024; group *= 4) {
        struct ggml_tensor * q = ggml_quantize_i8_convrot(ctx, f32(1024, 2), group);
        CHECK(q && ggml_backend_dev_supports_op(dev, q) == (group <= 256), "SD-3: group %d %s on the CPU", group, group <= 256 ? "is" : "is not");
    }
}

static void linear(void) {
    struct ggml_tensor *w = i8(256, 12), *s = f32(12, 1), *b = f32(12, 1);
    struct ggml_tensor *x = make(GGML_TYPE_F32, 256, 5, 3, 2), *p = ggml_quantize_i8_convrot(ctx, x, 256);
    struct ggml_tensor *q = i8(256, 5), *qs = f32(5, 1);
    CHECK(is(ggml_mul_mat_i8_tensorwise(ctx, w, x, s, b, 256), GGML_TYPE_F32, 12, 5, 3, 2), "SD-2: shape of F32");
    CHECK(is(ggml_mul_mat_i8_tensorwise(ctx, w, p, s, b, 256), GGML_TYPE_F32, 12, 5, 3, 2), "SD-2: shape of packed");
    CHECK(is(ggml_mul_mat_i8_tensorwise(ctx, w, ggml_cont(ctx, p), s, b, 256), GGML_TYPE_F32, 12, 5, 3, 2), "SD-2: shape of a copy");
    CHECK(is(ggml_mul_mat_i8_tensorwise_scaled(ctx, w, q, s, b, 0, qs), GGML_TYPE_F32, 12, 5, 1, 1), "SD-2: shape of I8");
    CHECK(is(ggml_mul_mat_i8_tensorwise(ctx, w, x, NULL, NULL, 0), GGML_TYPE_F32, 12, 5, 3, 2), "SD-2: no scale, no bias, no rotation");
    CHECK(is(ggml_mul_mat_i8_tensorwise(ctx, i8(256, 0), x, NULL, NULL, 0), GGML_TYPE_F32, 0, 5, 3, 2), "SD-2: no outputs");
    IS_NULL(ggml_mul_mat_i8_tensorwise(ctx, NULL, x, s, b, 256), "SD-2: no weight");
    IS_NULL(ggml_mul_mat_i8_tensorwise(ctx, w, NULL, s, b, 256), "SD-2: no input");
    REFUSED(ggml_mul_mat_i8_tensorwise(ctx, i8(0, 12), f32(0, 5), s, b, 0), "SD-2: no elements", "elements");
    REFUSED(ggml_mul_mat_i8_tensorwise(ctx, f32(256, 12), x, s, b, 256), "SD-2: F32 weight", "sd.linear_i8.v1", "weight", "I8");
    REFUSED(ggml_mul_mat_i8_tensorwise(ctx, gaps(GGML_TYPE_I8, 256, 12), x, s, b, 256), "SD-2: weight with gaps", "weight", "contiguous");
    REFUSED(ggml_mul_mat_i8_tensorwise(ctx, make(GGML_TYPE_I8, 256, 12, 2, 1), x, s, b, 256), "SD-2: weight of 3 dimensions", "two dimensions");
    REFUSED(ggml_mul_mat_i8_tensorwise(ctx, w, make(GGML_TYPE_F16, 256, 5, 1, 1), s, b, 256), "SD-2: F16 input", "input", "F32");
    REFUSED(ggml_mul_mat_i8_tensorwise(ctx, w, gaps(GGML_TYPE_F32, 256, 5), s, b, 256), "SD-2: input with gaps", "input", "contiguous");
    REFUSED(ggml_mul_mat_i8_tensorwise(ctx, w, f32(252, 5), s, b, 4), "SD-2: rows of another length", "252", "256");
    REFUSED(ggml_mul_mat_i8_tensorwise(ctx, w, x, s, b, 32), "SD-2: group 32", "power of 4");
    REFUSED(ggml_mul_mat_i8_tensorwise(ctx, w, x, s, b, -1), "SD-2: group -1", "power of 4");
    REFUSED(ggml_mul_mat_i8_tensorwise(ctx, w, x, s, b, 1024), "SD-2: group 1024 of 256", "divide");
    REFUSED(ggml_mul_mat_i8_tensorwise(ctx, w, x, f32(1, 1), b, 256), "SD-2: one scale", "weight_scale", "12");
    REFUSED(ggml_mul_mat_i8_tensorwise(ctx, w, x, make(GGML_TYPE_F16, 12, 1, 1, 1), b, 256), "SD-2: F16 scales", "weight_scale", "F32");
    REFUSED(ggml_mul_mat_i8_tensorwise(ctx, w, x, gaps(GGML_TYPE_F32, 4, 3), b, 256), "SD-2: scales with gaps", "weight_scale", "contiguous");
    REFUSED(ggml_mul_mat_i8_tensorwise(ctx, w, x, s, f32(13, 1), 256), "SD-2: long bias", "bias", "12");
    REFUSED(ggml_mul_mat_i8_tensorwise(ctx, w, x, s, gaps(GGML_TYPE_F32, 4, 3), 256), "SD-2: bias with gaps", "bias", "contiguous");
    REFUSED(ggml_mul_mat_i8_tensorwise(ctx, w, p, s, b, 64), "SD-2: another group", "256", "64");
    REFUSED(ggml_mul_mat_i8_tensorwise(ctx, w, p, s, b, 0), "SD-2: packed without a group", "256");
    REFUSED(ggml_mul_mat_i8_tensorwise(ctx, w, i8(256, 33), s, b, 256), "SD-2: I8 from nowhere", "ggml_quantize_i8_convrot");
    REFUSED(ggml_mul_mat_i8_tensorwise(ctx, i8(512, 12), p, s, b, 256), "SD-2: packed rows of another length", "packed");
    REFUSED(ggml_mul_mat_i8_tensorwise_scaled(ctx, w, q, s, b, 0, f32(4, 1)), "SD-2: too few input scales", "input_scale", "5");
    REFUSED(ggml_mul_mat_i8_tensorwise_scaled(ctx, w, x, s, b, 0, f32(30, 1)), "SD-2: input scales for F32", "input", "I8");
    REFUSED(ggml_mul_mat_i8_tensorwise_scaled(ctx, w, q, s, b, 0, f16(5, 1)), "SD-2: F16 input scales", "input_scale", "F32");
    REFUSED(ggml_mul_mat_i8_tensorwise_scaled(ctx, w, q, s, b, 0, gaps(GGML_TYPE_F32, 1, 5)), "SD-2: input scales with gaps", "input_scale", "contiguous");
    REFUSED(ggml_mul_mat_i8_tensorwise_scaled(ctx, w, gaps(GGML_TYPE_I8, 256, 5), s, b, 0, qs), "SD-2: I8 input with gaps", "input", "contiguous");
    REFUSED(ggml_mul_mat_i8_tensorwise_scaled(ctx, w, i8(255, 5), s, b, 0, qs), "SD-2: I8 rows of another length", "255", "256");
    REFUSED(ggml_mul_mat_i8_tensorwise_scaled(ctx, w, q, s, b, 1024, qs), "SD-2: group 1024 of I8", "divide");
    REFUSED(ggml_mul_mat_i8_tensorwise(ctx, make(GGML_TYPE_I8, 256, 12, 1, 2), x, s, b, 256), "SD-2: weight of 4 dimensions", "two dimensions");
    REFUSED(ggml_mul_mat_i8_tensorwise(ctx, w, x, f32(13, 1), b, 256), "SD-2: long scales", "weight_scale", "12", "13");
    REFUSED(ggml_mul_mat_i8_tensorwise(ctx, w, x, s, f32(1, 1), 256), "SD-2: one bias", "bias", "12");
    REFUSED(ggml_mul_mat_i8_tensorwise(ctx, w, x, s, f16(12, 1), 256), "SD-2: F16 bias", "bias", "F32");
    REFUSED(ggml_mul_mat_i8_tensorwise(ctx, w, x, s, b, 2), "SD-2: group 2", "power of 4");
    CHECK(is(ggml_mul_mat_i8_tensorwise(ctx, w, x, make(GGML_TYPE_F32, 1, 12, 1, 1), b, 256), GGML_TYPE_F32, 12, 5, 3, 2), "SD-2: scales of [1, N]");
    CHECK(is(ggml_mul_mat_i8_tensorwise(ctx, w, ggml_view_tensor(ctx, p), s, b, 256), GGML_TYPE_F32, 12, 5, 3, 2), "SD-2: shape of a view of packed");
    for (int group = 0; group <= 1024; group = group ? group * 4 : 1) {
        struct ggml_tensor * y = ggml_mul_mat_i8_tensorwise(ctx, i8(1024, 2), f32(1024, 2), NULL, NULL, group);
        CHECK(y && ggml_backend_dev_supports_op(dev, y) == (group <= 256), "SD-2: group %d %s on the CPU", group, group <= 256 ? "is" : "is not");
    }
    /* attributes that no builder makes */
    REFUSED(ggml_mul_mat_i8_tensorwise(ctx, w, ggml_view_2d(ctx, ggml_quantize_i8_convrot(ctx, f32(256, 60), 256), 256, 33, 256, 256), s, b, 256), "SD-2: a part of a packed activation", "ggml_quantize_i8_convrot");
    struct { int32_t group, form, has, reserved; int64_t rows[3]; } a = { 256, 7, 0, 0, { 0 } };
    struct ggml_tensor * src[3] = { w, x, s };
    REFUSED(ggml_ext_op_create(ctx, "sd.linear_i8.v1", src, 2, &a, sizeof a), "SD-2: form 7", "form 7");
    a.form = 0;
    a.has  = 8;
    REFUSED(ggml_ext_op_create(ctx, "sd.linear_i8.v1", src, 2, &a, sizeof a), "SD-2: odd bits", "mean nothing");
    a.has = 0;
    REFUSED(ggml_ext_op_create(ctx, "sd.linear_i8.v1", src, 3, &a, sizeof a), "SD-2: a source too many", "2 sources");
    a.rows[0] = 5;
    REFUSED(ggml_ext_op_create(ctx, "sd.linear_i8.v1", src, 2, &a, sizeof a), "SD-2: rows of F32", "packed");
    a.form    = 1;
    src[1]    = p;
    a.rows[0] = INT64_MAX;
    a.rows[1] = a.rows[2] = 2;
    REFUSED(ggml_ext_op_create(ctx, "sd.linear_i8.v1", src, 2, &a, sizeof a), "SD-2: more rows than there can be", "no rows");
    a.rows[0] = -5;
    REFUSED(ggml_ext_op_create(ctx, "sd.linear_i8.v1", src, 2, &a, sizeof a), "SD-2: rows below 0", "no rows");
    a.rows[0] = 5, a.rows[1] = 3, a.rows[2] = 2;
    CHECK(is(MADE("sd.linear_i8.v1", a, w, p), GGML_TYPE_F32, 12, 5, 3, 2), "SD-2: packed rows are known by their shape");
    CHECK(is(MADE("sd.linear_i8.v1", a, w, i8(256, 33)), GGML_TYPE_F32, 12, 5, 3, 2), "SD-2: and need no producer");
    REFUSED(MADE("sd.linear_i8.v1", a, w, i8(256, 34)), "SD-2: a packed row too many", "packed", "33", "34");
    REFUSED(MADE("sd.linear_i8.v1", a, w, i8(256, 32)), "SD-2: a packed row too few", "packed", "33", "32");
    REFUSED(MADE("sd.linear_i8.v1", a, w, make(GGML_TYPE_I8, 256, 11, 3, 1)), "SD-2: packed rows of three dimensions", "packed");
    REFUSED(MADE("sd.linear_i8.v1", a, w, gaps(GGML_TYPE_I8, 256, 33)), "SD-2: packed with gaps", "input", "contiguous");
    REFUSED(MADE("sd.linear_i8.v1", a, w, f32(256, 33)), "SD-2: packed F32", "input", "I8");
    a.rows[0] = 6;
    REFUSED(MADE("sd.linear_i8.v1", a, w, p), "SD-2: other rows than are packed", "packed");
    a.rows[0] = 5, a.group = 0;
    REFUSED(MADE("sd.linear_i8.v1", a, w, p), "SD-2: packed, group 0", "group size");
    a.group = 256, a.reserved = 1;
    REFUSED(MADE("sd.linear_i8.v1", a, w, p), "SD-2: odd bits behind", "mean nothing");
    a.reserved = 0, a.has = 3;
    CHECK(is(MADE("sd.linear_i8.v1", a, w, p, s, b), GGML_TYPE_F32, 12, 5, 3, 2), "SD-2: weight_scale, then bias");
    REFUSED(MADE("sd.linear_i8.v1", a, w, p, s), "SD-2: a source too few", "4 sources");
    a.form = -1, a.has = 0, a.rows[0] = a.rows[1] = a.rows[2] = 0;
    REFUSED(MADE("sd.linear_i8.v1", a, w, x), "SD-2: form -1", "form -1");
}

static void linear_w4(void) {
    const int a4 = GGML_W4_CONVROT_KIND_W4A4, a8 = GGML_W4_CONVROT_KIND_W4A8;
    struct ggml_tensor *w = i8(128, 12), *s = f32(12, 1), *b = f32(12, 1), *book = f32(16, 1), *rel = f8(16, 12);
    struct ggml_tensor *x = make(GGML_TYPE_F32, 256, 5, 3, 2), *p = ggml_quantize_i8_convrot(ctx, x, 64);
    struct ggml_tensor * y = ggml_mul_mat_w4_convrot(ctx, w, x, s, NULL, NULL, b, a4, 64);
    CHECK(is(y, GGML_TYPE_F32, 12, 5, 3, 2), "SD-4: shape of W4A4");
    CHECK(y && is(y->src[1], GGML_TYPE_I8, 256, 33, 1, 1), "SD-4: an F32 input gets a node that quantises it");
    CHECK(is(ggml_mul_mat_w4_convrot(ctx, w, p, s, NULL, NULL, NULL, a4, 64), GGML_TYPE_F32, 12, 5, 3, 2), "SD-4: shape of packed");
    CHECK(is(ggml_mul_mat_w4_convrot(ctx, w, p, book, s, rel, b, a8, 64), GGML_TYPE_F32, 12, 5, 3, 2), "SD-4: shape of W4A8");
    IS_NULL(ggml_mul_mat_w4_convrot(ctx, NULL, p, s, NULL, NULL, b, a4, 64), "SD-4: no weight");
    IS_NULL(ggml_mul_mat_w4_convrot(ctx, w, NULL, s, NULL, NULL, b, a4, 64), "SD-4: no input");
    IS_NULL(ggml_mul_mat_w4_convrot(ctx, w, p, NULL, NULL, NULL, b, a4, 64), "SD-4: no scales");
    IS_NULL(ggml_mul_mat_w4_convrot(ctx, w, p, book, NULL, rel, b, a8, 64), "SD-4: no s_channel");
    IS_NULL(ggml_mul_mat_w4_convrot(ctx, w, p, book, s, NULL, b, a8, 64), "SD-4: no s_rel");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, w, p, s, NULL, NULL, b, 0, 64), "SD-4: kind 0", "sd.linear_w4_convrot.v1", "kind 0");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, w, p, s, NULL, NULL, b, 3, 64), "SD-4: kind 3", "kind 3");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, w, p, s, s, NULL, b, a4, 64), "SD-4: s_channel of W4A4", "W4A8");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, w, p, s, NULL, rel, b, a4, 64), "SD-4: s_rel of W4A4", "W4A8");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, f32(128, 12), p, s, NULL, NULL, b, a4, 64), "SD-4: F32 weight", "weight", "I8");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, gaps(GGML_TYPE_I8, 128, 12), p, s, NULL, NULL, b, a4, 64), "SD-4: weight with gaps", "contiguous");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, make(GGML_TYPE_I8, 128, 12, 1, 2), p, s, NULL, NULL, b, a4, 64), "SD-4: weight of 4 dimensions", "two dimensions");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, i8(256, 12), p, s, NULL, NULL, b, a4, 64), "SD-4: rows of another length", "256", "512");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, w, make(GGML_TYPE_F16, 256, 5, 1, 1), s, NULL, NULL, b, a4, 64), "SD-4: F16 input", "F32");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, w, p, f32(16, 1), NULL, NULL, b, a4, 64), "SD-4: scales of another number", "weight_scales", "12");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, w, p, s, s, rel, b, a8, 64), "SD-4: table of 12", "weight_scales", "16");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, w, p, book, f32(11, 1), rel, b, a8, 64), "SD-4: s_channel of 11", "s_channel", "12");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, w, p, book, s, i8(16, 12), b, a8, 64), "SD-4: s_rel of I8", "s_rel", "F8_E4M3");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, w, p, book, s, f8(12, 16), b, a8, 64), "SD-4: s_rel of another shape", "s_rel");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, w, p, s, NULL, NULL, f32(11, 1), a4, 64), "SD-4: short bias", "bias", "12");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, w, p, s, NULL, NULL, b, a4, 16), "SD-4: another group", "64", "16");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, w, x, s, NULL, NULL, b, a4, 0), "SD-4: group 0", "power of 4");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, w, x, s, NULL, NULL, b, a4, 1024), "SD-4: group 1024 of 256", "divide");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, w, i8(256, 33), s, NULL, NULL, b, a4, 64), "SD-4: I8 from nowhere", "ggml_quantize_i8_convrot");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, w, x, s, NULL, NULL, b, a4, 8), "SD-4: group 8", "power of 4");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, w, x, s, NULL, NULL, b, a4, -1), "SD-4: group -1", "power of 4");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, make(GGML_TYPE_I8, 128, 12, 2, 1), p, s, NULL, NULL, b, a4, 64), "SD-4: weight of 3 dimensions", "two dimensions");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, w, p, f16(12, 1), NULL, NULL, b, a4, 64), "SD-4: F16 scales", "weight_scales", "F32");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, w, p, gaps(GGML_TYPE_F32, 4, 3), NULL, NULL, b, a4, 64), "SD-4: scales with gaps", "weight_scales", "contiguous");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, w, p, f16(16, 1), s, rel, b, a8, 64), "SD-4: F16 table", "weight_scales", "F32");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, w, p, s, NULL, NULL, f16(12, 1), a4, 64), "SD-4: F16 bias", "bias", "F32");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, w, p, s, NULL, NULL, gaps(GGML_TYPE_F32, 4, 3), a4, 64), "SD-4: bias with gaps", "bias", "contiguous");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, w, p, book, s, rel, f32(13, 1), a8, 64), "SD-4: long bias of W4A8", "bias", "12");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, w, p, book, f16(12, 1), rel, b, a8, 64), "SD-4: F16 s_channel", "s_channel", "F32");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, w, p, book, gaps(GGML_TYPE_F32, 4, 3), rel, b, a8, 64), "SD-4: s_channel with gaps", "s_channel", "contiguous");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, w, p, book, s, gaps((enum ggml_type) 43, 16, 12), b, a8, 64), "SD-4: s_rel with gaps", "s_rel", "contiguous");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, w, p, book, s, make((enum ggml_type) 44, 16, 12, 1, 1), b, a8, 64), "SD-4: s_rel of F8_E5M2", "s_rel", "F8_E4M3");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, w, gaps(GGML_TYPE_F32, 256, 5), s, NULL, NULL, b, a4, 64), "SD-4: input with gaps", "contiguous");
    REFUSED(ggml_mul_mat_w4_convrot(ctx, i8(0, 12), f32(0, 5), s, NULL, NULL, b, a4, 64), "SD-4: no elements", "elements");
    for (int kind = a4; kind <= a8; kind++) {
        for (int group = 1; group <= 1024; group *= 4) {
            struct ggml_tensor * z = kind == a4 ? ggml_mul_mat_w4_convrot(ctx, i8(512, 12), f32(1024, 2), s, NULL, NULL, b, kind, group)
                                                : ggml_mul_mat_w4_convrot(ctx, i8(512, 12), f32(1024, 2), book, s, f8(64, 12), b, kind, group);
            CHECK(z && ggml_backend_dev_supports_op(dev, z) == (group <= 256), "SD-4: kind %d, group %d %s on the CPU", kind, group, group <= 256 ? "is" : "is not");
        }
    }
    struct { int32_t group, kind, has_bias, reserved; int64_t rows[3]; } at = { 64, a4, 0, 0, { 5, 3, 2 } };
    CHECK(is(MADE("sd.linear_w4_convrot.v1", at, w, p, s), GGML_TYPE_F32, 12, 5, 3, 2), "SD-4: by its name");
    REFUSED(MADE("sd.linear_w4_convrot.v1", at, w, p, s, b), "SD-4: a source too many", "3 sources");
    at.has_bias = 2;
    REFUSED(MADE("sd.linear_w4_convrot.v1", at, w, p, s, b), "SD-4: two biases", "mean nothing");
    at.has_bias = 0, at.reserved = 4;
    REFUSED(MADE("sd.linear_w4_convrot.v1", at, w, p, s), "SD-4: odd bits", "mean nothing");
    at.reserved = 0, at.rows[0] = 6;
    REFUSED(MADE("sd.linear_w4_convrot.v1", at, w, p, s), "SD-4: other rows than are packed", "packed");
    at.rows[0] = -5;
    REFUSED(MADE("sd.linear_w4_convrot.v1", at, w, p, s), "SD-4: rows below 0", "no rows");
    at.rows[0] = 5, at.kind = a8;
    REFUSED(MADE("sd.linear_w4_convrot.v1", at, w, p, book, rel), "SD-4: a source too few", "5 sources");
    CHECK(is(MADE("sd.linear_w4_convrot.v1", at, w, p, book, rel, s), GGML_TYPE_F32, 12, 5, 3, 2), "SD-4: s_rel, then s_channel");
    struct ggml_tensor * odd = f32(24, 5);
    REFUSED(ggml_mul_mat_w4_convrot(ctx, i8(12, 12), odd, book, s, f8(1, 12), b, a8, 4), "SD-4: W4A8 rows of 24", "16");
}

static void modulate(void) {
    struct ggml_tensor *x = make(GGML_TYPE_F32, 8, 6, 4, 2), *c = make(GGML_TYPE_F32, 8, 1, 4, 1);
    CHECK(is(ggml_sd_modulate(ctx, x, c, c), GGML_TYPE_F32, 8, 6, 4, 2), "SD-5: shape");
    struct ggml_tensor * y = ggml_sd_modulate(ctx, ggml_permute(ctx, x, 1, 0, 2, 3), NULL, f32(1, 1));
    CHECK(is(y, GGML_TYPE_F32, 6, 8, 4, 2), "SD-5: of a permuted x");
    y = ggml_sd_modulate(ctx, x, c, f32(8, 1));
    CHECK(y && y->src[0] == x && y->src[1]->ne[2] == 1 && y->src[2] == c, "SD-5: sources are x, scale, shift");
    IS_NULL(ggml_sd_modulate(ctx, NULL, c, c), "SD-5: no x");
    IS_NULL(ggml_sd_modulate(ctx, x, c, NULL), "SD-5: no scale");
    REFUSED(ggml_sd_modulate(ctx, x, c, f32(3, 1)), "SD-5: scale of 3", "sd.modulate.v1", "scale", "repeated");
    REFUSED(ggml_sd_modulate(ctx, x, f32(16, 1), c), "SD-5: shift of 16", "shift", "repeated");
    REFUSED(ggml_sd_modulate(ctx, make(GGML_TYPE_F16, 8, 6, 1, 1), NULL, f32(8, 1)), "SD-5: F16", "x", "F32");
    REFUSED(ggml_sd_modulate(ctx, x, NULL, make(GGML_TYPE_F16, 8, 1, 1, 1)), "SD-5: F16 scale", "scale", "F32");
    REFUSED(ggml_sd_modulate(ctx, x, f16(8, 1), c), "SD-5: F16 shift", "shift", "F32");
    REFUSED(ggml_sd_modulate(ctx, x, c, make(GGML_TYPE_F32, 8, 1, 3, 1)), "SD-5: scale of 3 planes", "scale", "repeated");
    REFUSED(ggml_sd_modulate(ctx, x, c, make(GGML_TYPE_F32, 8, 1, 4, 3)), "SD-5: scale of 3 volumes", "scale", "repeated");
    REFUSED(ggml_sd_modulate(ctx, x, c, make(GGML_TYPE_F32, 8, 4, 4, 2)), "SD-5: scale of 4 rows", "scale", "repeated");
    CHECK(is(ggml_sd_modulate(ctx, x, f32(4, 2), make(GGML_TYPE_F32, 2, 3, 2, 1)), GGML_TYPE_F32, 8, 6, 4, 2), "SD-5: every dimension is repeated");
    const char nothing[1] = { 0 };
    struct ggml_tensor * src[4] = { x, c, c, c };
    REFUSED(ggml_ext_op_create(ctx, "sd.modulate.v1", src, 1, nothing, 0), "SD-5: one source", "two or three");
    REFUSED(ggml_ext_op_create(ctx, "sd.modulate.v1", src, 4, nothing, 0), "SD-5: four sources", "two or three");
}

static void rope(void) {
    struct ggml_tensor *a = make(GGML_TYPE_F32, 128, 3, 7, 2), *pe = make(GGML_TYPE_F32, 2, 2, 64, 7);
    CHECK(is(ggml_rope_apply(ctx, a, pe, true), GGML_TYPE_F32, 128, 7, 6, 1), "SD-1: shape");
    CHECK(is(ggml_rope_apply(ctx, a, make(GGML_TYPE_F32, 2, 2, 48, 7), false), GGML_TYPE_F32, 128, 7, 6, 1), "SD-1: partial");
    IS_NULL(ggml_rope_apply(ctx, NULL, pe, true), "SD-1: no a");
    IS_NULL(ggml_rope_apply(ctx, a, NULL, true), "SD-1: no pe");
    REFUSED(ggml_rope_apply(ctx, make(GGML_TYPE_F16, 128, 3, 7, 2), pe, true), "SD-1: F16", "sd.rope_apply.v1", "F32");
    REFUSED(ggml_rope_apply(ctx, a, make(GGML_TYPE_F16, 2, 2, 64, 7), true), "SD-1: F16 pe", "pe", "F32");
    REFUSED(ggml_rope_apply(ctx, make(GGML_TYPE_F32, 7, 3, 7, 2), pe, true), "SD-1: odd channels", "even");
    REFUSED(ggml_rope_apply(ctx, a, make(GGML_TYPE_F32, 4, 1, 64, 7), true), "SD-1: pe of 4 by 1", "2 by 2");
    REFUSED(ggml_rope_apply(ctx, a, make(GGML_TYPE_F32, 2, 4, 64, 7), true), "SD-1: pe of 2 by 4", "2 by 2");
    REFUSED(ggml_rope_apply(ctx, a, make(GGML_TYPE_F32, 2, 2, 65, 7), true), "SD-1: more pairs than channels", "pairs");
    REFUSED(ggml_rope_apply(ctx, a, make(GGML_TYPE_F32, 2, 2, 64, 6), true), "SD-1: positions of another number", "positions");
    const int32_t two = 2;
    struct ggml_tensor * src[2] = { a, pe };
    REFUSED(ggml_ext_op_create(ctx, "sd.rope_apply.v1", src, 2, &two, sizeof two), "SD-1: interleaved 2", "interleaved");
    const int32_t minus = -1, yes = 1;
    REFUSED(MADE("sd.rope_apply.v1", minus, a, pe), "SD-1: interleaved -1", "interleaved");
    REFUSED(MADE("sd.rope_apply.v1", yes, a), "SD-1: one source", "two sources");
    REFUSED(MADE("sd.rope_apply.v1", yes, a, pe, pe), "SD-1: three sources", "two sources");
    REFUSED(ggml_rope_apply(ctx, a, make(GGML_TYPE_F32, 2, 2, 64, 8), false), "SD-1: a position too many", "positions");
    REFUSED(ggml_rope_apply(ctx, a, make(GGML_TYPE_F32, 1, 2, 64, 7), false), "SD-1: pe of 1 by 2", "2 by 2");
}

static void attention(void) {
    struct ggml_tensor *q = make(GGML_TYPE_F32, 64, 10, 6, 2), *k = make(GGML_TYPE_F32, 64, 20, 3, 2), *v = make(GGML_TYPE_F16, 64, 20, 3, 2);
    struct ggml_tensor * y = ggml_sage_attn(ctx, q, k, v, 0.125f, GGML_SAGE_ATTN_AUTO);
    CHECK(is(y, GGML_TYPE_F32, 64, 6, 10, 2), "SD-6: shape");
    CHECK(y && !ggml_backend_dev_supports_op(dev, y), "SD-6: not on the CPU");
    const enum ggml_sage_attn_mode a = GGML_SAGE_ATTN_AUTO;
    IS_NULL(ggml_sage_attn(ctx, NULL, k, v, 1, a), "SD-6: no q");
    REFUSED(ggml_sage_attn(ctx, v, k, v, 1, a), "SD-6: F16 q", "sd.sage_attn.v1", "q", "F32");
    REFUSED(ggml_sage_attn(ctx, q, v, v, 1, a), "SD-6: F16 k", "k", "F32");
    REFUSED(ggml_sage_attn(ctx, q, k, k, 1, a), "SD-6: F32 v", "v", "F16");
    REFUSED(ggml_sage_attn(ctx, ggml_permute(ctx, q, 0, 2, 1, 3), k, v, 1, a), "SD-6: permuted q", "contiguous");
    REFUSED(ggml_sage_attn(ctx, make(GGML_TYPE_F32, 32, 10, 6, 2), k, v, 1, a), "SD-6: other channels", "channels");
    REFUSED(ggml_sage_attn(ctx, q, k, make(GGML_TYPE_F16, 64, 21, 3, 2), 1, a), "SD-6: k and v differ", "same");
    REFUSED(ggml_sage_attn(ctx, make(GGML_TYPE_F32, 64, 10, 5, 2), k, v, 1, a), "SD-6: 5 heads among 3", "heads");
    REFUSED(ggml_sage_attn(ctx, make(GGML_TYPE_F32, 64, 10, 6, 1), k, v, 1, a), "SD-6: batches", "batches");
    const float bad[] = { 0, -1, 1.0f / 0.0f, 0.0f / 0.0f };
    for (int i = 0; i < 4; i++) {
        REFUSED(ggml_sage_attn(ctx, q, k, v, bad[i], a), "SD-6: scale", "scale");
    }
    REFUSED(ggml_sage_attn(ctx, q, k, v, 1, (enum ggml_sage_attn_mode) 3), "SD-6: mode 3", "mode 3");
    REFUSED(ggml_sage_attn(ctx, q, k, v, 1, (enum ggml_sage_attn_mode) -1), "SD-6: mode -1", "mode -1");
    for (int mode = GGML_SAGE_ATTN_AUTO; mode <= GGML_SAGE_ATTN_2_PLUS_PLUS; mode++) {
        struct ggml_tensor * z = ggml_sage_attn(ctx, q, k, v, 1, (enum ggml_sage_attn_mode) mode);
        CHECK(z && !ggml_backend_dev_supports_op(dev, z), "SD-6: mode %d is no mode of the CPU", mode);
    }
    IS_NULL(ggml_sage_attn(ctx, q, NULL, v, 1, a), "SD-6: no k");
    IS_NULL(ggml_sage_attn(ctx, q, k, NULL, 1, a), "SD-6: no v");
    REFUSED(ggml_sage_attn(ctx, q, gaps(GGML_TYPE_F32, 64, 20), v, 1, a), "SD-6: k with gaps", "k", "contiguous");
    REFUSED(ggml_sage_attn(ctx, q, k, ggml_permute(ctx, v, 0, 2, 1, 3), 1, a), "SD-6: permuted v", "v", "contiguous");
    struct ggml_tensor *k0 = make(GGML_TYPE_F32, 64, 20, 0, 2), *v0 = make(GGML_TYPE_F16, 64, 20, 0, 2);
    REFUSED(ggml_sage_attn(ctx, q, k0, v0, 1, a), "SD-6: no heads of k", "heads");
    const struct { float scale; int32_t mode; } sage = { 1, 0 };
    REFUSED(MADE("sd.sage_attn.v1", sage, q, k, v, q), "SD-6: a mask", "three sources");

    struct ggml_tensor * t = make(GGML_TYPE_F32, 128, 10, 6, 2);
    y = ggml_sol_attn(ctx, t, t, t, 0.1f, -1);
    CHECK(is(y, GGML_TYPE_F32, 128, 6, 10, 2), "SD-7: shape");
    CHECK(y && !ggml_backend_dev_supports_op(dev, y), "SD-7: not on the CPU");
    IS_NULL(ggml_sol_attn(ctx, t, t, NULL, 1, 1), "SD-7: no v");
    REFUSED(ggml_sol_attn(ctx, q, q, q, 1, 1), "SD-7: 64 channels", "sd.sol_attn.v1", "128");
    REFUSED(ggml_sol_attn(ctx, t, make(GGML_TYPE_F32, 128, 10, 3, 2), t, 1, 1), "SD-7: other heads", "k", "same");
    REFUSED(ggml_sol_attn(ctx, t, t, make(GGML_TYPE_F16, 128, 10, 6, 2), 1, 1), "SD-7: F16 v", "v", "F32");
    struct ggml_tensor * none = make(GGML_TYPE_F32, 128, 0, 6, 2);
    REFUSED(ggml_sol_attn(ctx, none, none, none, 1, 1), "SD-7: no tokens", "token");
    for (int i = 0; i < 4; i++) {
        REFUSED(ggml_sol_attn(ctx, t, t, t, bad[i], 1), "SD-7: scale", "scale");
    }
    REFUSED(ggml_sol_attn(ctx, t, t, t, 1, bad[2]), "SD-7: tau", "tau");
    REFUSED(ggml_sol_attn(ctx, t, t, t, 1, bad[3]), "SD-7: tau NaN", "tau");
    IS_NULL(ggml_sol_attn(ctx, NULL, t, t, 1, 1), "SD-7: no q");
    IS_NULL(ggml_sol_attn(ctx, t, NULL, t, 1, 1), "SD-7: no k");
    REFUSED(ggml_sol_attn(ctx, t, t, make(GGML_TYPE_F32, 128, 11, 6, 2), 1, 1), "SD-7: other tokens", "v", "same");
    REFUSED(ggml_sol_attn(ctx, t, make(GGML_TYPE_F32, 128, 10, 6, 1), t, 1, 1), "SD-7: other batches", "k", "same");
    REFUSED(ggml_sol_attn(ctx, make(GGML_TYPE_F16, 128, 10, 6, 2), t, t, 1, 1), "SD-7: F16 q", "q", "F32");
    REFUSED(ggml_sol_attn(ctx, t, make(GGML_TYPE_F16, 128, 10, 6, 2), t, 1, 1), "SD-7: F16 k", "k", "F32");
    REFUSED(ggml_sol_attn(ctx, gaps(GGML_TYPE_F32, 128, 10), t, t, 1, 1), "SD-7: q with gaps", "q", "contiguous");
    const struct { float scale, tau; } sol = { 1, 1 };
    REFUSED(MADE("sd.sol_attn.v1", sol, t, t, t, t), "SD-7: a mask", "three sources");
}

/* What no kernel takes cannot be computed: by the backend, by a scheduler; the error names the operator and the node, and nothing is written. */
static void not_here(int which, const char * title, const char * op) {
    struct ggml_tensor *w = i8(1024, 4), *x = f32(1024, 3), *t = make(GGML_TYPE_F32, 128, 4, 2, 1), *y = NULL;
    switch (which) {
    case 0: y = ggml_quantize_i8_convrot(ctx, x, 1024); break;
    case 1: y = ggml_mul_mat_i8_tensorwise(ctx, w, x, NULL, NULL, 1024); break;
    case 2: y = ggml_mul_mat_w4_convrot(ctx, i8(512, 4), x, f32(4, 1), NULL, NULL, NULL, GGML_W4_CONVROT_KIND_W4A4, 1024); break;
    case 3: y = ggml_sage_attn(ctx, t, t, make(GGML_TYPE_F16, 128, 4, 2, 1), 1, GGML_SAGE_ATTN_AUTO); break;
    default: y = ggml_sol_attn(ctx, t, t, t, 1, 1); break;
    }
    ggml_set_name(y, "lost");
    ggml_set_output(y);
    struct ggml_cgraph * g = ggml_new_graph(ctx);
    ggml_build_forward_expand(g, y);
    CHECK(!ggml_backend_dev_supports_op(dev, y), "%s: supports_op says no", title);
    ggml_backend_sched_t s  = ggml_backend_sched_new(&cpu, NULL, 1, 64, false, false);
    bool                 ok = true;
    CHECK_ERROR(ok = ggml_backend_sched_alloc_graph(s, g) && ggml_backend_sched_graph_compute(s, g) == GGML_STATUS_SUCCESS, GGML_EXT_CODE_NO_KERNEL, title, op, NULL);
    CHECK(!ok, "%s: not in a scheduler", title);
    ggml_backend_sched_free(s);
    for (struct ggml_tensor * i = ggml_get_first_tensor(ctx); i; i = ggml_get_next_tensor(ctx, i)) {
        i->data   = NULL;
        i->buffer = NULL;
    }
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, cpu);
    memset(ggml_backend_buffer_get_base(buffer), 0x5A, ggml_backend_buffer_get_size(buffer));
    enum ggml_status status = GGML_STATUS_SUCCESS;
    CHECK_ERROR(status = ggml_backend_graph_compute(cpu, g), GGML_EXT_CODE_NO_KERNEL, title, op, NULL);
    bool untouched = status != GGML_STATUS_SUCCESS;
    for (size_t i = 0; i < ggml_nbytes(y); i++) {
        untouched = untouched && ((const char *) y->data)[i] == 0x5A;
    }
    CHECK(untouched, "%s: not by the backend, and nothing is written", title);
    ggml_backend_buffer_free(buffer);
    ggml_reset(ctx);
}

/* A result of another format or shape, or with gaps, than was built: no kernel takes it. */
static void other_results(void) {
    struct ggml_tensor *w = i8(64, 12), *x = f32(64, 5), *q = make(GGML_TYPE_F32, 64, 5, 3, 2), *pe = make(GGML_TYPE_F32, 2, 2, 32, 3);
    struct ggml_tensor * nodes[] = {
        ggml_quantize_i8_convrot(ctx, x, 64),
        ggml_mul_mat_i8_tensorwise(ctx, w, x, NULL, NULL, 64),
        ggml_mul_mat_w4_convrot(ctx, i8(32, 12), x, f32(12, 1), NULL, NULL, NULL, GGML_W4_CONVROT_KIND_W4A4, 64),
        ggml_sd_modulate(ctx, x, NULL, x),
        ggml_rope_apply(ctx, q, pe, true),
    };
    for (int i = 0; i < 5; i++) {
        struct ggml_tensor * t = nodes[i];
        const struct ggml_tensor was = *t;
        CHECK(ggml_backend_dev_supports_op(dev, t), "%s: as it was built", ggml_ext_op_name(t));
        for (int how = 0; how < 4; how++) {
            switch (how) {
            case 0: t->ne[1]++, t->nb[2] += t->nb[1], t->nb[3] = t->nb[2] * (size_t) t->ne[2]; break;
            case 1: t->ne[0] /= 2, t->ne[1] *= 2, t->nb[1] /= 2; break;
            case 2: t->nb[1] += 64, t->nb[2] = t->nb[1] * (size_t) t->ne[1], t->nb[3] = t->nb[2] * (size_t) t->ne[2]; break;
            default: t->type = t->type == GGML_TYPE_I8 ? GGML_TYPE_F8_E4M3 : GGML_TYPE_I32; break;
            }
            CHECK(!ggml_backend_dev_supports_op(dev, t), "%s: another result, %d", ggml_ext_op_name(t), how);
            *t = was;
        }
    }
}

/* A refusal leaves nothing behind in the context, and sources as they were. */
static void leaves_nothing(void) {
    struct ggml_tensor *w = i8(64, 12), *w4 = i8(32, 12), *x = f32(64, 5), *h = f16(64, 5), *v = f32(12, 1), *bad = f32(13, 1), *rel = f8(4, 12), *book = f32(16, 1);
    struct ggml_tensor *p = ggml_quantize_i8_convrot(ctx, x, 64), *q = make(GGML_TYPE_F32, 64, 5, 3, 2), *pe = make(GGML_TYPE_F32, 2, 2, 33, 3);
    const int    a4 = GGML_W4_CONVROT_KIND_W4A4, a8 = GGML_W4_CONVROT_KIND_W4A8;
    const size_t used = ggml_used_mem(ctx);
    const struct ggml_tensor was[] = { *w, *x, *p, *q };
    const bool   refused[] = {
        !ggml_quantize_i8_convrot(ctx, x, 128),
        !ggml_mul_mat_i8_tensorwise(ctx, w, x, bad, NULL, 64),
        !ggml_mul_mat_i8_tensorwise(ctx, w, p, v, bad, 64),
        !ggml_mul_mat_i8_tensorwise_scaled(ctx, w, w, NULL, NULL, 0, bad),
        !ggml_mul_mat_w4_convrot(ctx, w4, x, bad, NULL, NULL, v, a4, 64),
        !ggml_mul_mat_w4_convrot(ctx, w, x, v, NULL, NULL, v, a4, 64),
        !ggml_mul_mat_w4_convrot(ctx, NULL, x, v, NULL, NULL, v, a4, 64),
        !ggml_mul_mat_w4_convrot(ctx, w4, x, v, NULL, rel, v, a4, 64),
        !ggml_mul_mat_w4_convrot(ctx, w4, x, book, NULL, rel, v, a8, 64),
        !ggml_mul_mat_w4_convrot(ctx, w4, x, book, bad, rel, v, a8, 64),
        !ggml_mul_mat_w4_convrot(ctx, w4, x, book, v, rel, v, 5, 64),
        !ggml_mul_mat_w4_convrot(ctx, w4, h, v, NULL, NULL, v, a4, 64),
        !ggml_sd_modulate(ctx, x, bad, x),
        !ggml_rope_apply(ctx, q, pe, true),
        !ggml_sage_attn(ctx, q, q, q, 1, GGML_SAGE_ATTN_AUTO),
        !ggml_sol_attn(ctx, q, q, q, 1, 1),
    };
    const int n = (int) (sizeof refused / sizeof *refused);
    int all = 0;
    for (int i = 0; i < n; i++) {
        all += refused[i];
    }
    CHECK(all == n && ggml_used_mem(ctx) == used, "SD-1 to SD-7: %d of %d refused, and the context holds what it held (%zu, %zu bytes)", all, n, ggml_used_mem(ctx), used);
    CHECK(!memcmp(&was[0], w, sizeof *w) && !memcmp(&was[1], x, sizeof *x) && !memcmp(&was[2], p, sizeof *p) && !memcmp(&was[3], q, sizeof *q), "SD-1 to SD-7: sources are as they were");
}

int main(void) {
    check_quiet();
    ctx = ggml_init((struct ggml_init_params){ .mem_size = 16 << 20, .no_alloc = true });
    cpu = ggml_backend_cpu_init();
    dev = ggml_backend_get_device(cpu);
    ggml_backend_cpu_set_n_threads(cpu, 2);
    first_call();
    quantize();
    linear();
    linear_w4();
    modulate();
    rope();
    other_results();
    leaves_nothing();
    ggml_reset(ctx);
    attention();
    ggml_reset(ctx);
    not_here(0, "SD-3: groups of 1024", "sd.quantize_i8_convrot.v1");
    not_here(1, "SD-2: groups of 1024", "sd.linear_i8.v1");
    not_here(2, "SD-4: groups of 1024", "sd.quantize_i8_convrot.v1");
    not_here(3, "SD-6: sage attention", "sd.sage_attn.v1");
    not_here(4, "SD-7: sol attention", "sd.sol_attn.v1");
    ggml_backend_free(cpu);
    ggml_free(ctx);
    return check_done();
}
