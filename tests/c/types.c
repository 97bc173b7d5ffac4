/* Formats: facts, conversions of rows, and encoding of rows that are zero, tiny, huge or no numbers. */
#include "check.h"
#include "ggml-cpu.h"

#include <math.h>

static bool removed(int t) { return ggml_type_size((enum ggml_type) t) == 0; }

static void facts(void) {
    int known = 0;
    for (int t = 0; t < GGML_TYPE_COUNT; t++) {
        const struct ggml_type_traits * f = ggml_get_type_traits((enum ggml_type) t);
        CHECK(f != NULL, "type %d: facts", t);
        if (removed(t)) {
            CHECK(f->type_size == 0 && ggml_blck_size((enum ggml_type) t) >= 0, "type %d is none", t);
            continue;
        }
        known++;
        const int64_t block = ggml_blck_size((enum ggml_type) t);
        CHECK(f->blck_size == block && f->type_size == ggml_type_size((enum ggml_type) t) && f->is_quantized == ggml_is_quantized((enum ggml_type) t), "type %d: facts agree", t);
        CHECK(strcmp(f->type_name, ggml_type_name((enum ggml_type) t)) == 0 && strlen(f->type_name) > 0, "type %d: %s", t, f->type_name);
        CHECK(block >= 1 && ggml_row_size((enum ggml_type) t, 3 * block) == 3 * f->type_size && ggml_row_size((enum ggml_type) t, 0) == 0, "type %d: size of a row", t);
        CHECK(fabs(ggml_type_sizef((enum ggml_type) t) - (double) f->type_size / (double) block) < 1e-6, "type %d: size of an element", t);
        if (block > 1) {
            size_t n = 1;
            CHECK_ERROR(n = ggml_row_size((enum ggml_type) t, block + 1), GGML_EXT_CODE_NONE, "a row of a block and a bit", "ggml_row_size");
            CHECK(n == 0, "type %d: a row of a block and a bit: 0", t);
        }
        CHECK(ggml_row_size((enum ggml_type) t, INT64_MAX / block * block) == 0 || (double) f->type_size / (double) block <= 2, "type %d: a row that is too long", t);
        CHECK(ggml_row_size((enum ggml_type) t, -block) == 0, "type %d: a row of a negative length", t);
    }
    CHECK(known >= 21, "%d formats", known);
    const int none[] = { -1, GGML_TYPE_COUNT, 1000, INT32_MAX, INT32_MIN };
    for (int i = 0; i < 5; i++) {
        const enum ggml_type t = (enum ggml_type) none[i];
        CHECK(ggml_get_type_traits(t) == NULL, "type %d: no facts", none[i]);
        CHECK(ggml_type_size(t) == 0 && ggml_blck_size(t) == 0 && ggml_row_size(t, 32) == 0 && !ggml_is_quantized(t) && strcmp(ggml_type_name(t), "NONE") == 0, "type %d", none[i]);
        CHECK(ggml_quantize_chunk(t, (float[]){ 0 }, (char[64]){ 0 }, 0, 1, 1, NULL) == 0 && !ggml_quantize_requires_imatrix(t), "type %d: no encoding", none[i]);
        ggml_quantize_init(t);
    }
    CHECK(ggml_ftype_to_ggml_type(GGML_FTYPE_MOSTLY_Q8_0) == GGML_TYPE_Q8_0 && ggml_ftype_to_ggml_type(GGML_FTYPE_MOSTLY_Q4_K) == GGML_TYPE_Q4_K && ggml_ftype_to_ggml_type(GGML_FTYPE_UNKNOWN) == GGML_TYPE_COUNT, "formats of files");
    for (int op = -1; op <= GGML_OP_COUNT; op++) {
        if (!ggml_op_name((enum ggml_op) op) || !ggml_op_symbol((enum ggml_op) op)) {
            CHECK(false, "operator %d has a name", op);
        }
    }
    CHECK(strcmp(ggml_op_name(GGML_OP_MUL_MAT), "MUL_MAT") == 0 && strcmp(ggml_unary_op_name(GGML_UNARY_OP_SILU), "SILU") == 0 && strcmp(ggml_glu_op_name(GGML_GLU_OP_SWIGLU), "SWIGLU") == 0, "names of operators");
    CHECK(ggml_unary_op_name((enum ggml_unary_op) 99) && ggml_glu_op_name((enum ggml_glu_op) -5), "names of none");
}

static void halves(void) {
    int wrong = 0;
    for (int h = 0; h < 0x10000; h++) {
        const float f    = ggml_fp16_to_fp32((ggml_fp16_t) h);
        const bool  nan  = (h & 0x7c00) == 0x7c00 && (h & 0x3ff);
        const int   e    = h >> 10 & 31, m = h & 0x3ff;
        const float want = (h & 0x8000 ? -1.0f : 1.0f) * (e == 31 ? INFINITY : e ? ldexpf((float) (1024 + m), e - 25) : ldexpf((float) m, -24));
        wrong += nan ? !isnan(f) || !isnan(ggml_fp16_to_fp32(ggml_fp32_to_fp16(f))) : f != want || ggml_fp32_to_fp16(f) != h;
        const float b = ggml_bf16_to_fp32((ggml_bf16_t){ (uint16_t) h });
        uint32_t    bits;
        memcpy(&bits, &b, 4);
        wrong += bits != (uint32_t) h << 16 && !isnan(b);
        wrong += isnan(b) ? !isnan(ggml_bf16_to_fp32(ggml_fp32_to_bf16(b))) : ggml_fp32_to_bf16(b).bits != h;
    }
    CHECK(wrong == 0, "every half and bf16 there and back: %d wrong", wrong);
    /* rounding, by rows of every length, so that the ends of vectors are met */
    enum { MAX = 67 };
    float    in[MAX], out[MAX + 1];
    for (int i = 0; i < MAX; i++) {
        in[i] = (float) (i - 20) * 1.0009765f * (i % 3 ? 1 : 1e-7f) * (i % 17 ? 1 : 1e5f);
    }
    in[5] = INFINITY, in[6] = -INFINITY, in[7] = NAN, in[8] = 65519.9f, in[9] = 65520, in[10] = 1e-8f, in[11] = -0.0f;
    for (int n = 0; n <= MAX; n++) {
        ggml_fp16_t h[MAX + 1];
        ggml_bf16_t b[MAX + 1];
        memset(h, 0x77, sizeof h);
        memset(b, 0x77, sizeof b);
        ggml_fp32_to_fp16_row(in, h, n);
        ggml_fp32_to_bf16_row(in, b, n);
        wrong = h[n] != 0x7777 || b[n].bits != 0x7777;
        for (int i = 0; i < n; i++) {
            wrong += h[i] != ggml_fp32_to_fp16(in[i]) || b[i].bits != ggml_fp32_to_bf16(in[i]).bits;
        }
        out[n] = 42;
        ggml_fp16_to_fp32_row(h, out, n);
        for (int i = 0; i < n; i++) {
            const float one = ggml_fp16_to_fp32(h[i]);
            wrong += memcmp(&out[i], &one, 4) != 0 && !(isnan(out[i]) && isnan(one));
        }
        ggml_bf16_to_fp32_row(b, out, n);
        wrong += out[n] != 42;
        ggml_fp32_to_bf16_row_ref(in, b, n);
        for (int i = 0; i < n; i++) {
            wrong += b[i].bits != ggml_fp32_to_bf16(in[i]).bits;
        }
        if (wrong) {
            CHECK(false, "rows of %d: %d wrong", n, wrong);
        }
    }
    CHECK(true, "rows of 0 to %d as single numbers", MAX);
    CHECK(ggml_fp32_to_fp16(65520) == 0x7c00 && ggml_fp32_to_fp16(65519.9f) == 0x7bff && ggml_fp32_to_fp16(1.00048828125f) == 0x3c00 && ggml_fp32_to_fp16(1.00146484375f) == 0x3c02, "halves: ties to even");
    ggml_fp32_to_fp16_row(NULL, NULL, 0);
    ggml_fp32_to_fp16_row(in, (ggml_fp16_t *) out, -5);
}

enum { ROW = 512, ROWS = 3, GUARD = 64 };

/* Cases 33 and 35 of the public reports: rows that make scales of 0, infinity or none. */
static void rows(int t) {
    static const char * const names[] = { "zeros", "tiny", "denormal", "one tiny value", "alternating", "huge", "one NaN", "all NaN", "inf", "minus inf", "one large among small", "constant" };
    const enum ggml_type type = (enum ggml_type) t;
    const size_t         size = ggml_row_size(type, ROW);
    float *              in   = malloc(sizeof(float) * ROW * ROWS);
    float *              back = malloc(sizeof(float) * ROW * ROWS);
    uint8_t *            to   = malloc(size * ROWS + GUARD);
    float *              im   = malloc(sizeof(float) * ROW);
    const bool needs = ggml_quantize_requires_imatrix(type);
    for (int kind = 0; kind < 12; kind++) {
        for (int weights = needs; weights < 3; weights++) { /* none, ones, zeros */
            for (int i = 0; i < ROW * ROWS; i++) {
                switch (kind) {
                case 0: in[i] = 0; break;
                case 1: in[i] = 1e-11f * (float) (i % 5 - 2); break;
                case 2: in[i] = 1e-42f * (float) (i % 7 - 3); break;
                case 3: in[i] = i % ROW == 100 ? 1e-11f : 0; break;
                case 4: in[i] = i % 2 ? 1.0f : -1.0f; break;
                case 5: in[i] = 3e38f * (float) (i % 3 - 1); break;
                case 6: in[i] = i == 40 ? NAN : (float) (i % 9 - 4); break;
                case 7: in[i] = NAN; break;
                case 8: in[i] = i == 40 ? INFINITY : (float) (i % 9 - 4); break;
                case 9: in[i] = -INFINITY; break;
                case 10: in[i] = i % ROW == 300 ? 60000 : 0.001f * (float) (i % 9 - 4); break;
                default: in[i] = 0.7f; break;
                }
            }
            for (int i = 0; i < ROW; i++) {
                im[i] = weights == 2 ? 0 : 1;
            }
            memset(to, 0xA5, size * ROWS + GUARD);
            const size_t n = ggml_quantize_chunk(type, in, to, 0, ROWS, ROW, weights ? im : NULL);
            if (n == 0 && kind == 0) {
                /* plain numbers other than floats, the formats that only products convert to, and those that are only read */
                const bool none = t == GGML_TYPE_F8_E4M3 || t == GGML_TYPE_F8_E5M2 || t == GGML_TYPE_I8 || t == GGML_TYPE_I16 || t == GGML_TYPE_I32 || t == GGML_TYPE_I64 || t == GGML_TYPE_F64 || t == GGML_TYPE_Q8_1 || t == GGML_TYPE_Q8_K;
                CHECK(none, "%s has no quantiser", ggml_type_name(type));
                goto out;
            }
            if (!CHECK(n == size * ROWS, "%s, %s, weights %d: %zu bytes", ggml_type_name(type), names[kind], weights, n)) {
                continue;
            }
            bool whole = true;
            for (int i = 0; i < GUARD; i++) {
                whole = whole && to[size * ROWS + (size_t) i] == 0xA5;
            }
            CHECK(whole, "%s, %s: nothing behind the rows", ggml_type_name(type), names[kind]);
            const struct ggml_type_traits * f = ggml_get_type_traits(type);
            if (!f->to_float) {
                continue;
            }
            f->to_float(to, back, ROW * ROWS);
            int nans = 0, infinite = 0;
            for (int i = 0; i < ROW * ROWS; i++) {
                nans += isnan(back[i]);
                infinite += isinf(back[i]);
            }
            if (kind <= 4 || kind >= 10) {
                double far = 0;
                for (int i = 0; i < ROW * ROWS; i++) {
                    far = fmax(far, fabs((double) back[i] - in[i]));
                }
                CHECK(nans == 0 && infinite == 0, "%s, %s, weights %d: finite (%d NaN, %d inf)", ggml_type_name(type), names[kind], weights, nans, infinite);
                if (kind <= 3) {
                    CHECK(far <= 1e-10, "%s, %s, weights %d: near (%g)", ggml_type_name(type), names[kind], weights, far);
                }
                if ((kind == 4 || kind == 11) && weights < 2) {
                    CHECK(far <= (t == GGML_TYPE_IQ2_XXS ? 0.75 : 0.5), "%s, %s, weights %d: near (%g)", ggml_type_name(type), names[kind], weights, far);
                }
            } else if (ggml_is_quantized(type) && (kind == 6 || kind == 8)) {
                /* one bad number spoils its block at most: the other rows are sound */
                int spoilt = 0;
                for (int i = ROW; i < ROW * ROWS; i++) {
                    spoilt += !isfinite(back[i]) || fabsf(back[i] - in[i]) > 6;
                }
                CHECK(spoilt == 0, "%s, %s: other rows are sound (%d spoilt)", ggml_type_name(type), names[kind], spoilt);
            }
        }
    }
    /* part by part is as all at once */
    for (int i = 0; i < ROW * ROWS; i++) {
        in[i] = (float) ((i * 7919) % 2003 - 1001) / 300.0f;
    }
    uint8_t * parts = malloc(size * ROWS);
    ggml_quantize_chunk(type, in, to, 0, ROWS, ROW, needs ? im : NULL);
    for (int r = ROWS - 1; r >= 0; r--) {
        ggml_quantize_chunk(type, in, parts, (int64_t) r * ROW, 1, ROW, needs ? im : NULL);
    }
    CHECK(memcmp(parts, to, size * ROWS) == 0, "%s: row by row is as all at once", ggml_type_name(type));
    free(parts);
    const int64_t bad[][3] = { { 1, 1, ROW }, { 0, -1, ROW }, { 0, 1, -ROW }, { -ROW, 1, ROW }, { 0, INT64_MAX, ROW }, { INT64_MAX - 511, 1, ROW }, { 0, 1, 17 }, { 0, 1, 0 } };
    for (int i = 0; i < 8; i++) {
        if (i == 6 && ggml_blck_size(type) == 1) {
            continue;
        }
        CHECK(ggml_quantize_chunk(type, in, to, bad[i][0], bad[i][1], bad[i][2], im) == 0, "%s: bad numbers %d", ggml_type_name(type), i);
    }
    CHECK(ggml_quantize_chunk(type, NULL, to, 0, 1, ROW, NULL) == 0 && ggml_quantize_chunk(type, in, NULL, 0, 1, ROW, NULL) == 0, "%s: NULL", ggml_type_name(type));
    CHECK(ggml_quantize_chunk(type, in, to, 0, 0, ROW, im) == 0, "%s: no rows", ggml_type_name(type));
out:
    free(im);
    free(to);
    free(back);
    free(in);
}

int main(void) {
    check_quiet();
    facts();
    halves();
    for (int t = 0; t < GGML_TYPE_COUNT; t++) {
        if (!removed(t)) {
            rows(t);
        }
    }
    ggml_quantize_free();
    return check_done();
}
