/* Quantised formats by their numbers: how far rows come back, on data of every kind; dot products against f64; what a row holds
 * that it should not; and the table of what the CPU does with a format. */
#include "check.h"
#include "ggml-cpu.h"

#include <math.h>

enum { N = 2048, TYPES = 45 };

static const char * name_of(int t) { return ggml_type_name((enum ggml_type) t); }

static bool quantised(int t) { return ggml_type_size((enum ggml_type) t) > 0 && ggml_is_quantized((enum ggml_type) t); }

/* Repeatable numbers: uniform, and the sum of twelve of them as a normal one. */
static uint64_t state = 1;
static double   uniform(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double) (state >> 11) / 9007199254740992.0;
}
static double normal(void) {
    double s = -6;
    for (int i = 0; i < 12; i++) {
        s += uniform();
    }
    return s;
}

/* Root mean square error on normal numbers, relative, that a format stays under: what was measured and a fifth. */
static double bound(int t) {
    switch (t) {
    case GGML_TYPE_Q8_0: case GGML_TYPE_Q8_1: case GGML_TYPE_Q8_K: return 0.008;
    case GGML_TYPE_Q6_K: return 0.022;
    case GGML_TYPE_Q5_0: case GGML_TYPE_Q5_1: case GGML_TYPE_Q5_K: return 0.05;
    case GGML_TYPE_Q4_0: case GGML_TYPE_Q4_1: case GGML_TYPE_Q4_K: return 0.11;
    case GGML_TYPE_IQ4_NL: case GGML_TYPE_IQ4_XS: return 0.09;
    case GGML_TYPE_NVFP4: return 0.12;
    case GGML_TYPE_MXFP4: return 0.14;
    case GGML_TYPE_Q3_K: case GGML_TYPE_IQ3_S: return 0.21;
    case GGML_TYPE_IQ3_XXS: return 0.25;
    case GGML_TYPE_Q2_K: case GGML_TYPE_IQ2_S: return 0.35;
    case GGML_TYPE_IQ2_XS: case GGML_TYPE_IQ2_XXS: return 0.45;
    case GGML_TYPE_IQ1_M: case GGML_TYPE_IQ1_S: return 0.6;
    case GGML_TYPE_Q1_0: return 0.72;
    case GGML_TYPE_Q2_0: return 0.85;
    default: return 0.95; /* three values for the largest of a block: most of normal data becomes zero, and nothing but zeros is 1 */
    }
}

/* Encodes, with the files' quantiser or else the conversion of products' other operand; false when there is neither. */
static bool encode(int t, const float * x, void * to, const float * weights) {
    const enum ggml_type type = (enum ggml_type) t;
    if (type == GGML_TYPE_Q8_1 || type == GGML_TYPE_Q8_K) {
        const struct ggml_type_traits_cpu * f = ggml_get_type_traits_cpu(type);
        if (!f || !f->from_float) {
            return false;
        }
        f->from_float(x, to, N);
        return true;
    }
    return ggml_quantize_chunk(type, x, to, 0, 1, N, weights) == ggml_row_size(type, N);
}

/* q8_1 and q8_K have no decoder in the interface. */
static void decode(int t, const uint8_t * from, float * y) {
    const struct ggml_type_traits * f = ggml_get_type_traits((enum ggml_type) t);
    if (f->to_float) {
        f->to_float(from, y, N);
        return;
    }
    const int block = (int) f->blck_size;
    for (int i = 0; i < N; i++) {
        const uint8_t * b = from + (size_t) (i / block) * f->type_size;
        float           d;
        ggml_fp16_t     h;
        memcpy(&d, b, 4);
        memcpy(&h, b, 2);
        y[i] = (t == GGML_TYPE_Q8_K ? d : ggml_fp16_to_fp32(h)) * (float) (int8_t) b[4 + i % block];
    }
}

static double rms(const float * x, const float * y) {
    double e = 0, s = 0;
    for (int i = 0; i < N; i++) {
        e += ((double) x[i] - y[i]) * ((double) x[i] - y[i]);
        s += (double) x[i] * x[i];
    }
    return s > 0 ? sqrt(e / s) : sqrt(e);
}

static int not_finite(const float * y) {
    int n = 0;
    for (int i = 0; i < N; i++) {
        n += !isfinite(y[i]);
    }
    return n;
}

static float    x[N], y[N], z[N], weights[N];
static uint8_t  to[N * 8], other[N * 8];

enum kind { NORMAL, CONSTANT, TINY, SUBNORMAL, HUGE_ONES, MIXED, SOME_NAN, ALL_NAN, SOME_INF, ALL_INF, KINDS };
static const char * const kinds[KINDS] = { "normal", "constant", "tiny", "subnormal", "huge", "of mixed size", "some NaN", "all NaN", "some infinite", "all infinite" };

static void fill(enum kind kind) {
    for (int i = 0; i < N; i++) {
        switch (kind) {
        case NORMAL: x[i] = (float) normal(); break;
        case CONSTANT: x[i] = -0.7f; break;
        case TINY: x[i] = 1e-30f * (float) normal(); break;
        case SUBNORMAL: x[i] = 1e-41f * (float) normal(); break;
        case HUGE_ONES: x[i] = 3e38f * (i % 3 ? 1.0f : -1.0f); break;
        case MIXED: x[i] = (float) (normal() * pow(10, i / 32 % 60 - 35)); break;
        case SOME_NAN: x[i] = i % 97 == 13 ? NAN : (float) normal(); break;
        case ALL_NAN: x[i] = NAN; break;
        case SOME_INF: x[i] = i % 301 == 13 ? (i % 2 ? INFINITY : -INFINITY) : (float) normal(); break;
        default: x[i] = i % 2 ? INFINITY : -INFINITY; break;
        }
    }
}

static void errors(int t) {
    const bool needs = ggml_quantize_requires_imatrix((enum ggml_type) t);
    for (int k = 0; k < KINDS; k++) {
        for (int w = needs ? 1 : 0; w < 4; w++) { /* none, even, zeros, of mixed size */
            fill((enum kind) k);
            for (int i = 0; i < N; i++) {
                weights[i] = w == 1 ? 1.0f : w == 2 ? 0.0f : powf(10, (float) (i % 40 - 20));
            }
            if (!CHECK(encode(t, x, to, w ? weights : NULL), "%s, %s, weights %d", name_of(t), kinds[k], w)) {
                continue;
            }
            decode(t, to, y);
            CHECK(not_finite(y) == 0, "%s, %s, weights %d: finite (%d are not)", name_of(t), kinds[k], w, not_finite(y));
            if (t != GGML_TYPE_Q8_1) { /* which upstream's check does not know */
                CHECK(ggml_validate_row_data((enum ggml_type) t, to, ggml_row_size((enum ggml_type) t, N)), "%s, %s, weights %d: the row is valid", name_of(t), kinds[k], w);
            }
            const double e = rms(x, y);
            if (k == NORMAL && w < 2) {
                CHECK(e < bound(t) && e > bound(t) / 16, "%s, %s, weights %d: error %.4f", name_of(t), kinds[k], w, e);
            } else if (k == CONSTANT && w < 2) {
                CHECK(e < bound(t), "%s, %s, weights %d: error %.4f", name_of(t), kinds[k], w, e);
            } else if (k == TINY || k == SUBNORMAL || k == ALL_NAN) {
                double far = 0;
                for (int i = 0; i < N; i++) {
                    far = fmax(far, fabs((double) y[i] - (k == ALL_NAN ? 0 : x[i])));
                }
                CHECK(far < 1e-28, "%s, %s, weights %d: near (%g)", name_of(t), kinds[k], w, far);
            }
            if (k == SOME_NAN || k == SOME_INF) {
                /* what is no number counts as another: the bytes are those of a row with that one */
                for (int i = 0; i < N; i++) {
                    x[i] = isnan(x[i]) ? 0 : isinf(x[i]) ? copysignf(3.40282347e38f, x[i]) : x[i];
                }
                encode(t, x, other, w ? weights : NULL);
                CHECK(memcmp(to, other, ggml_row_size((enum ggml_type) t, N)) == 0, "%s, %s, weights %d: as a number", name_of(t), kinds[k], w);
            }
        }
    }
}

/* The dot product of a format with its other operand, against f64 on what both stand for. */
static void dots(int t) {
    const struct ggml_type_traits_cpu * f = ggml_get_type_traits_cpu((enum ggml_type) t);
    if (!CHECK(f && (f->vec_dot || t == GGML_TYPE_Q8_1 || t == GGML_TYPE_Q8_K), "%s: a dot product", name_of(t)) || !f->vec_dot) {
        return;
    }
    const int u = (int) f->vec_dot_type;
    for (int i = 0; i < N; i++) {
        weights[i] = 1;
    }
    for (int round = 0; round < 3; round++) {
        fill(NORMAL);
        CHECK(encode(t, x, to, weights), "%s: left operand", name_of(t));
        fill(round == 2 ? CONSTANT : NORMAL);
        CHECK(encode(u, x, other, NULL), "%s: right operand", name_of(t));
        decode(t, to, y);
        decode(u, other, z);
        for (int n = (int) ggml_blck_size((enum ggml_type) t); n <= N; n = n < N ? N : N + 1) {
            double want = 0, size = 0;
            float  got = NAN;
            for (int i = 0; i < n; i++) {
                want += (double) y[i] * z[i];
                size += fabs((double) y[i] * z[i]);
            }
            f->vec_dot(n, &got, 0, to, 0, other, 0, 1);
            /* q8_1 carries a sum of codes in half precision */
            CHECK(fabs(got - want) <= (u == GGML_TYPE_Q8_1 ? 1e-3 : 4e-6) * size + 1e-30, "%s, %d elements: %g, not %g", name_of(t), n, got, want);
        }
    }
    /* the least and the greatest code on the right, which a quantiser never writes together, is exact */
    if (u == GGML_TYPE_Q8_0) {
        for (int code = -128; code <= 127; code += 255) {
            const ggml_fp16_t one = ggml_fp32_to_fp16(1);
            const int         n   = (int) ggml_blck_size((enum ggml_type) t);
            for (int i = 0; i < n / 32; i++) {
                memcpy(other + 34 * i, &one, 2);
                memset(other + 34 * i + 2, code, 32);
            }
            double want = 0;
            float  got  = NAN;
            for (int i = 0; i < n; i++) {
                want += (double) y[i] * code;
            }
            f->vec_dot(n, &got, 0, to, 0, other, 0, 1);
            CHECK(fabs(got - want) <= 1e-6 * fabs(want) + 1e-4, "%s: with codes of %d: %g, not %g", name_of(t), code, got, want);
        }
    }
    if (t == GGML_TYPE_Q8_0) {
        const ggml_fp16_t one = ggml_fp32_to_fp16(1);
        float             got = 0;
        memcpy(to, &one, 2), memset(to + 2, -128, 32);
        memcpy(other, &one, 2), memset(other + 2, -128, 32);
        f->vec_dot(32, &got, 0, to, 0, other, 0, 1);
        CHECK(got == 32.0f * 128 * 128, "-128 times -128, 32 times: %g", got);
    }
    float got = 7;
    f->vec_dot(0, &got, 0, to, 0, other, 0, 1);
    CHECK(got == 0, "%s: no elements: %g", name_of(t), got);
    if (ggml_blck_size((enum ggml_type) t) > 1) {
        CHECK_ERROR(f->vec_dot(17, &got, 0, to, 0, other, 0, 1), GGML_EXT_CODE_BAD_ARGUMENT, "a part of a block", "vec_dot");
    }
}

/* The table as upstream fills it. */
static void table(void) {
    for (int t = 0; t < TYPES; t++) {
        const struct ggml_type_traits_cpu * f = ggml_get_type_traits_cpu((enum ggml_type) t);
        if (!CHECK(f != NULL, "type %d: what the CPU does", t)) {
            continue;
        }
        int other_type = GGML_TYPE_F32;
        bool from = true, dot = true;
        switch (t) {
        case GGML_TYPE_F32: break;
        case GGML_TYPE_F16: case GGML_TYPE_BF16: other_type = t; break;
        case GGML_TYPE_Q4_0: case GGML_TYPE_Q5_0: case GGML_TYPE_Q8_0: case GGML_TYPE_Q1_0: case GGML_TYPE_Q2_0: case GGML_TYPE_IQ4_NL:
        case GGML_TYPE_MXFP4: case GGML_TYPE_NVFP4: other_type = GGML_TYPE_Q8_0; break;
        case GGML_TYPE_Q4_1: case GGML_TYPE_Q5_1: other_type = GGML_TYPE_Q8_1; break;
        case GGML_TYPE_Q8_1: other_type = GGML_TYPE_Q8_1, dot = false; break;
        case GGML_TYPE_Q2_K: case GGML_TYPE_Q3_K: case GGML_TYPE_Q4_K: case GGML_TYPE_Q5_K: case GGML_TYPE_Q6_K: case GGML_TYPE_IQ4_XS:
        case GGML_TYPE_TQ1_0: case GGML_TYPE_TQ2_0: other_type = GGML_TYPE_Q8_K; break;
        case GGML_TYPE_IQ1_S: case GGML_TYPE_IQ1_M: case GGML_TYPE_IQ2_XXS: case GGML_TYPE_IQ2_XS: case GGML_TYPE_IQ2_S:
        case GGML_TYPE_IQ3_XXS: case GGML_TYPE_IQ3_S: other_type = GGML_TYPE_Q8_K, from = false; break;
        case GGML_TYPE_Q8_K: case GGML_TYPE_I32: dot = false; break;
        default: from = dot = false; break;
        }
        const bool rows = dot || t == GGML_TYPE_Q8_1;
        CHECK((f->from_float != NULL) == from && (f->vec_dot != NULL) == dot && (int) f->vec_dot_type == other_type && f->nrows == (rows ? 1 : 0),
              "type %d (%s): conversion %d, product %d with type %d, rows %d", t, name_of(t), f->from_float != NULL, f->vec_dot != NULL, (int) f->vec_dot_type, (int) f->nrows);
    }
    CHECK_ERROR((void) ggml_get_type_traits_cpu((enum ggml_type) -1), GGML_EXT_CODE_BAD_ARGUMENT, "no type", "ggml_get_type_traits_cpu");
    CHECK(ggml_get_type_traits_cpu((enum ggml_type) 1000) == NULL, "no type 1000");
}

/* Rows of plain numbers, single products and several rows at once. */
static void plain(void) {
    enum { K = 67 };
    float       a[K * 2], back[K], s[8];
    int32_t     whole[K];
    ggml_fp16_t h[K];
    ggml_bf16_t b[K];
    for (int i = 0; i < K * 2; i++) {
        a[i] = (float) (i - 30) * 1.25f;
    }
    ggml_cpu_fp32_to_fp32(a, back, K);
    ggml_cpu_fp32_to_i32(a, whole, K);
    ggml_cpu_fp32_to_fp16(a, h, K);
    ggml_cpu_fp32_to_bf16(a, b, K);
    int wrong = memcmp(a, back, sizeof back) != 0;
    for (int i = 0; i < K; i++) {
        wrong += whole[i] != (int32_t) a[i] || h[i] != ggml_fp32_to_fp16(a[i]) || b[i].bits != ggml_fp32_to_bf16(a[i]).bits;
    }
    ggml_cpu_fp16_to_fp32(h, back, K);
    for (int i = 0; i < K; i++) {
        wrong += back[i] != ggml_fp16_to_fp32(h[i]);
    }
    ggml_cpu_bf16_to_fp32(b, back, K);
    for (int i = 0; i < K; i++) {
        wrong += back[i] != ggml_bf16_to_fp32(b[i]);
    }
    CHECK(wrong == 0, "rows of plain numbers: %d wrong", wrong);
    const float odd[3] = { NAN, 3e9f, -3e9f };
    ggml_cpu_fp32_to_i32(odd, whole, 3);
    CHECK(whole[0] == 0 && whole[1] == INT32_MAX && whole[2] == INT32_MIN, "what is no whole number");
    ggml_get_type_traits_cpu(GGML_TYPE_F32)->vec_dot(K, s, 2, a, sizeof(float) * K, a, sizeof(float) * K, 2);
    double want[4] = { 0 };
    for (int i = 0; i < K; i++) {
        want[0] += (double) a[i] * a[i], want[1] += (double) a[K + i] * a[i], want[3] += (double) a[K + i] * a[K + i];
    }
    CHECK(fabs(s[0] - want[0]) < 1e-5 * want[0] && fabs(s[1] - want[1]) < 0.1 && s[2] == s[1] && fabs(s[3] - want[3]) < 1e-5 * want[3], "two rows with two: %g %g %g %g", s[0], s[1], s[2], s[3]);
}

/* Scales that are no numbers are found, wherever a format has them. */
static void validation(void) {
    fill(NORMAL);
    for (int i = 0; i < N; i++) {
        weights[i] = 1;
    }
    for (int t = 0; t < TYPES; t++) {
        if (!quantised(t) || t == GGML_TYPE_NVFP4 || t == GGML_TYPE_Q8_1) { /* every byte of nvfp4's scales is a number */
            continue;
        }
        const enum ggml_type type = (enum ggml_type) t;
        const size_t         size = ggml_row_size(type, N), block = ggml_type_size(type);
        encode(t, x, to, weights);
        CHECK(ggml_validate_row_data(type, to, size) && ggml_validate_row_data(type, to, 0), "%s: a good row", name_of(t));
        memset(to + size - block, 0xff, block);
        CHECK_ERROR((void) ggml_validate_row_data(type, to, size), GGML_EXT_CODE_BAD_ARGUMENT, name_of(t), "ggml_validate_row_data", "NaN");
        CHECK(!ggml_validate_row_data(type, to, size), "%s: a bad block", name_of(t));
        CHECK(block == 1 || !ggml_validate_row_data(type, to, size - 1), "%s: a part of a block", name_of(t));
    }
    const float bad[4] = { 1, 2, INFINITY, 3 };
    CHECK(!ggml_validate_row_data(GGML_TYPE_F32, bad, sizeof bad) && ggml_validate_row_data(GGML_TYPE_F32, bad, 8), "an infinity in f32");
    CHECK(ggml_validate_row_data(GGML_TYPE_I32, bad, sizeof bad) && !ggml_validate_row_data((enum ggml_type) -1, bad, 4) && !ggml_validate_row_data(GGML_TYPE_F32, NULL, 4), "whole numbers; no type; NULL");
    const uint8_t eight[4] = { 0x7e, 0x7f, 0x7b, 0x7c };
    CHECK(ggml_validate_row_data(GGML_TYPE_F8_E4M3, eight, 1) && !ggml_validate_row_data(GGML_TYPE_F8_E4M3, eight + 1, 1), "f8_e4m3");
    CHECK(ggml_validate_row_data(GGML_TYPE_F8_E5M2, eight + 2, 1) && !ggml_validate_row_data(GGML_TYPE_F8_E5M2, eight + 3, 1), "f8_e5m2");
}

/* The 8-bit floats beyond upstream's formats: read only. */
static void eight_bits(void) {
    int wrong = 0;
    for (int t = GGML_TYPE_F8_E4M3; t <= GGML_TYPE_F8_E5M2; t++) {
        const enum ggml_type            type = (enum ggml_type) t;
        const struct ggml_type_traits * f    = ggml_get_type_traits(type);
        CHECK(f && f->to_float && !f->from_float_ref && f->blck_size == 1 && f->type_size == 1 && !f->is_quantized, "%s: read only", name_of(t));
        CHECK(strcmp(name_of(t), t == GGML_TYPE_F8_E4M3 ? "f8_e4m3" : "f8_e5m2") == 0, "type %d: %s", t, name_of(t));
        uint8_t all[256];
        float   v[256];
        for (int i = 0; i < 256; i++) {
            all[i] = (uint8_t) i;
        }
        f->to_float(all, v, 256);
        for (int i = 0; i < 256; i++) {
            const int   digits = t == GGML_TYPE_F8_E4M3 ? 3 : 2, bias = t == GGML_TYPE_F8_E4M3 ? 7 : 15, e = (i & 127) >> digits, m = i & ((1 << digits) - 1);
            const bool  nan  = t == GGML_TYPE_F8_E4M3 ? (i & 127) == 127 : e == 31 && m;
            const float size = e == 0 ? ldexpf((float) m, 1 - bias - digits) : ldexpf((float) ((1 << digits) + m), e - bias - digits);
            const float want = (i & 128 ? -1.0f : 1.0f) * (t == GGML_TYPE_F8_E5M2 && e == 31 ? INFINITY : size);
            wrong += nan ? !isnan(v[i]) : v[i] != want || !!signbit(v[i]) != (i >> 7);
        }
        CHECK(ggml_quantize_chunk(type, v, all, 0, 1, 32, NULL) == 0, "%s: no quantiser", name_of(t));
    }
    CHECK(wrong == 0, "8-bit floats: %d of 512 wrong", wrong);
}

int main(void) {
    check_quiet();
    table();
    plain();
    eight_bits();
    for (int t = 0; t < TYPES; t++) {
        if (quantised(t)) {
            errors(t);
            dots(t);
        }
    }
    validation();
    ggml_quantize_free();
    return check_done();
}
