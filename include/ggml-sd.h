/* stable-diffusion.cpp's operators: custom nodes of ggml-ext.h, registered on request. Written by tools/headers from the Rust definitions; do not edit. */

#ifndef GGML_SD_H
#define GGML_SD_H

#include "ggml.h"
/*
 Nodes made here are custom nodes: a registered operator's, with what ggml-ext.h says of those. NULL, with an error by
 ggml_ext_last_error, when a rule is broken.

 ggml.h includes this header, since programs written for the ggml of stable-diffusion.cpp look for the builders there. A program that
 has functions of these names itself defines GGML_NO_SD_BUILDERS before it includes ggml.h.
 */
struct ggml_backend_device;


/* How `ggml_sage_attn` computes. */
enum ggml_sage_attn_mode {
  /* The best way that the device has. */
  GGML_SAGE_ATTN_AUTO = 0,
  /* Products with the values in 8 bits. */
  GGML_SAGE_ATTN_2 = 1,
  /* The same with short sums. */
  GGML_SAGE_ATTN_2_PLUS_PLUS = 2,
};

/* What 4-bit weights are. */
enum ggml_w4_convrot_kind {
  /* Integers from -8 to 7, a scale for each row. */
  GGML_W4_CONVROT_KIND_W4A4 = 1,
  /* Numbers of a table of 16, a scale for each row and one for each 16 elements. */
  GGML_W4_CONVROT_KIND_W4A8 = 2,
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Registers these operators in the process, and their kernels on a CPU device; `device` NULL: on all CPU devices. The first call of
 a builder below does so too, with NULL. What the application has registered under one of the names is left to it, so register
 your own first. False, with an error: such a name was met (its builder answers NULL from then on; everything else is registered),
 or there are no kernels for the device. Not from a callback of ggml-ext.h.
 */
bool ggml_sd_register_extensions(struct ggml_backend_device *device);

/*
 `sd.quantize_i8_convrot.v1`: rotates the rows of `a` and rounds them to 8-bit integers with a scale for each row.

 `a`: F32 [K, ...], contiguous, R rows. `group_size`: a power of 4 that divides K; the CPU rotates at most 256 together; 1 rotates
 nothing. Result: I8 [K, R rounded up to a multiple of 4 + ceil(4 R / K)]: R rows of integers, rows of zeros, then R scales as F32,
 K times the rounded number of rows bytes from the start.

 A group of G is multiplied with 1/sqrt(G) times the Kronecker power of the matrix with -1 on its second diagonal and 1 elsewhere.
 The scale is the largest magnitude of the row divided by 127; integers are rounded to even, NaN becomes 0.
 */
struct ggml_tensor *ggml_quantize_i8_convrot(struct ggml_context *ctx,
                                      struct ggml_tensor *a,
                                      int group_size);

/*
 `sd.linear_i8.v1`: a linear layer with 8-bit weights.

 `weight`: I8 [K, N], contiguous. `input`: F32 [K, M, B2, B3], contiguous, which is rotated and rounded as by
 `ggml_quantize_i8_convrot`; or what that function gave with the same group size. `weight_scale`: F32, N elements, or NULL for 1.
 `bias`: F32, N elements, or NULL. `convrot_group_size`: a power of 4 that divides K; 0: nothing is rotated.
 Result: F32 [N, M, B2, B3].

 Sums of products are exact, in 32 bits; then they are multiplied with the row's scale and the weight's scale, and the bias is
 added, each step rounded to F32.
 */
struct ggml_tensor *ggml_mul_mat_i8_tensorwise(struct ggml_context *ctx,
                                        struct ggml_tensor *weight,
                                        struct ggml_tensor *input,
                                        struct ggml_tensor *weight_scale,
                                        struct ggml_tensor *bias,
                                        int convrot_group_size);

/*
 As `ggml_mul_mat_i8_tensorwise`, with an input that was rounded before: I8 [K, M, B2, B3], contiguous, and `input_scale`: F32, one
 element for each row. `input_scale` NULL: the same as that function.
 */
struct ggml_tensor *ggml_mul_mat_i8_tensorwise_scaled(struct ggml_context *ctx,
                                               struct ggml_tensor *weight,
                                               struct ggml_tensor *input,
                                               struct ggml_tensor *weight_scale,
                                               struct ggml_tensor *bias,
                                               int convrot_group_size,
                                               struct ggml_tensor *input_scale);

/*
 `sd.linear_w4_convrot.v1`: a linear layer with 4-bit weights and 8-bit activations.

 `weight`: I8 [K/2, N], contiguous: element 2j in the low half of byte j, 2j + 1 in the high one. `kind`: a `enum ggml_w4_convrot_kind`.
 `input`: F32 [K, M, B2, B3], contiguous, for which a node of `ggml_quantize_i8_convrot` is made; or what that function gave with
 the same group size. `bias`: F32, N elements, or NULL. `convrot_group_size`: a power of 4 that divides K. Result: F32 [N, M, B2, B3].

 W4A4: halves are integers from -8 to 7; `weight_scales`: F32, N elements; `s_channel` and `s_rel` are NULL. As
 `ggml_mul_mat_i8_tensorwise` from there. W4A8: halves are numbers of elements of `weight_scales`, F32 of 16; `s_channel`: F32, N
 elements; `s_rel`: F8_E4M3 [K/16, N], contiguous. A weight is the table's element times the product of both scales; on the CPU
 products are added up in order, as F32.
 */
struct ggml_tensor *ggml_mul_mat_w4_convrot(struct ggml_context *ctx,
                                     struct ggml_tensor *weight,
                                     struct ggml_tensor *input,
                                     struct ggml_tensor *weight_scales,
                                     struct ggml_tensor *s_channel,
                                     struct ggml_tensor *s_rel,
                                     struct ggml_tensor *bias,
                                     int kind,
                                     int convrot_group_size);

/*
 `sd.modulate.v1`: `x + x * scale + shift`, each step rounded to F32. `x`, `scale`, `shift`: F32 with any strides; `scale` and
 `shift` are repeated to the shape of `x`; `shift` NULL: `x + x * scale`. Result: F32, of the shape of `x`, contiguous.
 */
struct ggml_tensor *ggml_sd_modulate(struct ggml_context *ctx, struct ggml_tensor *x, struct ggml_tensor *shift, struct ggml_tensor *scale);

/*
 `sd.rope_apply.v1`: multiplies pairs of channels with matrices.

 `a`: F32 [D, heads, tokens, batch], any strides, D even. `pe`: F32 [2, 2, P, tokens], any strides, P at most D/2: for each pair and
 token a matrix, cos, -sin, sin, cos in the order of memory. `interleaved`: pairs are channels 2j and 2j + 1, and any matrix will
 do; else j and j + P, and only cos and sin are read. Channels from 2P on stay. Products and sums are rounded to F32 each.
 Result: F32 [D, tokens, heads * batch].
 */
struct ggml_tensor *ggml_rope_apply(struct ggml_context *ctx,
                             struct ggml_tensor *a,
                             struct ggml_tensor *pe,
                             bool interleaved);

/*
 `sd.sage_attn.v1`: attention with 8-bit queries and keys. No device of this library computes it.

 `q`: F32 [D, Lq, Hq, B], `k`: F32 [D, Lk, Hk, B], `v`: F16 [D, Lk, Hk, B], all contiguous, Hq a multiple of Hk. `scale`: finite,
 above 0. Result: F32 [D, Hq, Lq, B].
 */
struct ggml_tensor *ggml_sage_attn(struct ggml_context *ctx,
                            struct ggml_tensor *q,
                            struct ggml_tensor *k,
                            struct ggml_tensor *v,
                            float scale,
                            enum ggml_sage_attn_mode mode);

/*
 `sd.sol_attn.v1`: attention that looks closely at blocks of keys that matter and at summaries of the others. No device of this
 library computes it.

 `q`, `k`, `v`: F32 [128, T, H, B], contiguous, T above 0. `scale`: finite, above 0. `tau`: finite. Result: F32 [128, H, T, B].
 */
struct ggml_tensor *ggml_sol_attn(struct ggml_context *ctx, struct ggml_tensor *q, struct ggml_tensor *k, struct ggml_tensor *v, float scale, float tau);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif
