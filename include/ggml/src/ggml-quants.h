/* Encoders by the names that ggml's own CPU module imports; no public interface. Written by tools/headers from the Rust definitions; do not edit. */

#ifndef GGML_SRC_GGML_QUANTS_H
#define GGML_SRC_GGML_QUANTS_H

#include "ggml.h"


#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/* Encodes `k` elements of q1_0, whole blocks. (Modules: CPU.) */
void quantize_row_q1_0_ref(const float *x, void *y, int64_t k);

/* Encodes `k` elements of q2_0, whole blocks. (Modules: CPU.) */
void quantize_row_q2_0_ref(const float *x, void *y, int64_t k);

/* Encodes `k` elements of q4_0, whole blocks. (Modules: CPU.) */
void quantize_row_q4_0_ref(const float *x, void *y, int64_t k);

/* Encodes `k` elements of q4_1, whole blocks. (Modules: CPU.) */
void quantize_row_q4_1_ref(const float *x, void *y, int64_t k);

/* Encodes `k` elements of q5_0, whole blocks. (Modules: CPU.) */
void quantize_row_q5_0_ref(const float *x, void *y, int64_t k);

/* Encodes `k` elements of q5_1, whole blocks. (Modules: CPU.) */
void quantize_row_q5_1_ref(const float *x, void *y, int64_t k);

/* Encodes `k` elements of q8_0, whole blocks. (Modules: CPU.) */
void quantize_row_q8_0_ref(const float *x, void *y, int64_t k);

/* Encodes `k` elements of q8_1, whole blocks. (Modules: CPU.) */
void quantize_row_q8_1_ref(const float *x, void *y, int64_t k);

/* Encodes `k` elements of mxfp4, whole blocks. (Modules: CPU.) */
void quantize_row_mxfp4_ref(const float *x, void *y, int64_t k);

/* Encodes `k` elements of nvfp4, whole blocks. (Modules: CPU.) */
void quantize_row_nvfp4_ref(const float *x, void *y, int64_t k);

/* Encodes `k` elements of q2_K, whole blocks. (Modules: CPU.) */
void quantize_row_q2_K_ref(const float *x, void *y, int64_t k);

/* Encodes `k` elements of q3_K, whole blocks. (Modules: CPU.) */
void quantize_row_q3_K_ref(const float *x, void *y, int64_t k);

/* Encodes `k` elements of q4_K, whole blocks. (Modules: CPU.) */
void quantize_row_q4_K_ref(const float *x, void *y, int64_t k);

/* Encodes `k` elements of q5_K, whole blocks. (Modules: CPU.) */
void quantize_row_q5_K_ref(const float *x, void *y, int64_t k);

/* Encodes `k` elements of q6_K, whole blocks. (Modules: CPU.) */
void quantize_row_q6_K_ref(const float *x, void *y, int64_t k);

/* Encodes `k` elements of q8_K, whole blocks. (Modules: CPU.) */
void quantize_row_q8_K_ref(const float *x, void *y, int64_t k);

/* Encodes `k` elements of tq1_0, whole blocks. (Modules: CPU.) */
void quantize_row_tq1_0_ref(const float *x, void *y, int64_t k);

/* Encodes `k` elements of tq2_0, whole blocks. (Modules: CPU.) */
void quantize_row_tq2_0_ref(const float *x, void *y, int64_t k);

/* Encodes `k` elements of iq4_nl, whole blocks. (Modules: CPU.) */
void quantize_row_iq4_nl_ref(const float *x, void *y, int64_t k);

/* `ggml_quantize_chunk` for iq4_xs, from the first element on. (Modules: CPU.) */
size_t quantize_iq4_xs(const float *src, void *dst, int64_t nrows, int64_t n_per_row, const float *imatrix);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif
