/* Names that ggml's own modules import and no program should: encoders, hash sets. */
#include "check.h"
#include "ggml-cpu.h"
#include "ggml/src/ggml-impl.h"
#include "ggml/src/ggml-quants.h"

#define N 512

static float x[N];

/* An encoder by its own name writes what the tables of formats say. */
static void encoder(enum ggml_type type, void (*encode)(const float *, void *, int64_t)) {
    static uint8_t                  got[N * 8], want[N * 8];
    const struct ggml_type_traits * f    = ggml_get_type_traits(type);
    const size_t                    size = ggml_row_size(type, N);
    memset(got, 0xAA, sizeof got);
    memset(want, 0x55, sizeof want);
    encode(x, got, N);
    /* q8_K is no format of files: only the CPU's table has an encoder */
    (f->from_float_ref ? f->from_float_ref : ggml_get_type_traits_cpu(type)->from_float)(x, want, N);
    CHECK(size > 0 && memcmp(got, want, size) == 0, "%s: the bytes of its table", f->type_name);
    CHECK(got[size] == 0xAA, "%s: none beyond them", f->type_name);
}

static void encoders(void) {
    for (int i = 0; i < N; i++) {
        x[i] = (float) ((i * 37 + i * i * 11) % 401) / 64.0f - 3.0f;
    }
    encoder(GGML_TYPE_Q1_0, quantize_row_q1_0_ref);
    encoder(GGML_TYPE_Q2_0, quantize_row_q2_0_ref);
    encoder(GGML_TYPE_Q4_0, quantize_row_q4_0_ref);
    encoder(GGML_TYPE_Q4_1, quantize_row_q4_1_ref);
    encoder(GGML_TYPE_Q5_0, quantize_row_q5_0_ref);
    encoder(GGML_TYPE_Q5_1, quantize_row_q5_1_ref);
    encoder(GGML_TYPE_Q8_0, quantize_row_q8_0_ref);
    encoder(GGML_TYPE_Q8_1, quantize_row_q8_1_ref);
    encoder(GGML_TYPE_MXFP4, quantize_row_mxfp4_ref);
    encoder(GGML_TYPE_NVFP4, quantize_row_nvfp4_ref);
    encoder(GGML_TYPE_Q2_K, quantize_row_q2_K_ref);
    encoder(GGML_TYPE_Q3_K, quantize_row_q3_K_ref);
    encoder(GGML_TYPE_Q4_K, quantize_row_q4_K_ref);
    encoder(GGML_TYPE_Q5_K, quantize_row_q5_K_ref);
    encoder(GGML_TYPE_Q6_K, quantize_row_q6_K_ref);
    encoder(GGML_TYPE_Q8_K, quantize_row_q8_K_ref);
    encoder(GGML_TYPE_TQ1_0, quantize_row_tq1_0_ref);
    encoder(GGML_TYPE_TQ2_0, quantize_row_tq2_0_ref);
    encoder(GGML_TYPE_IQ4_NL, quantize_row_iq4_nl_ref);

    static uint8_t got[N * 2], want[N * 2];
    const size_t   size = ggml_row_size(GGML_TYPE_IQ4_XS, N);
    CHECK(quantize_iq4_xs(x, got, 1, N, NULL) == size, "quantize_iq4_xs: bytes");
    CHECK(ggml_quantize_chunk(GGML_TYPE_IQ4_XS, x, want, 0, 1, N, NULL) == size && memcmp(got, want, size) == 0, "quantize_iq4_xs: the bytes of ggml_quantize_chunk");
}

static void sets(void) {
    const size_t sizes[] = { 0, 1, 2, 3, 100, 5000 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CHECK(ggml_hash_size(sizes[i]) >= sizes[i], "ggml_hash_size(%zu)", sizes[i]);
    }
    CHECK(ggml_hash_size(SIZE_MAX) == 0, "ggml_hash_size: too large a set");
    ggml_bitset_t bits[4] = { 0 };
    ggml_bitset_set(bits, 37);
    CHECK(ggml_bitset_get(bits, 37) && !ggml_bitset_get(bits, 36) && !ggml_bitset_get(bits, 38), "ggml_bitset_set");
}

int main(void) {
    encoders();
    sets();
    return check_done();
}
