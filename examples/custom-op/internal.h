/* What the kernels of the example share. */
#ifndef EXAMPLE_INTERNAL_H
#define EXAMPLE_INTERNAL_H

#include "example.h"

/* User data of all registrations: how a kernel gets at the threads that compute the graph. */
struct example_threads {
    ggml_ext_cpu_parallel_v1_t parallel;
};

/* Each registers its part; false, with an error of the library's. */
bool example_register_softclip(ggml_backend_dev_t device, ggml_ext_scope_t scope, struct example_threads * threads);
bool example_register_silu(ggml_backend_dev_t device, ggml_ext_scope_t scope);
bool example_register_blend(ggml_backend_dev_t device, ggml_ext_scope_t scope, struct example_threads * threads);

/* Row `i` of all rows. Only elements of a row lie side by side here: between rows there may be anything, as in a view. */
static inline float * row(const struct ggml_tensor * t, int64_t i) {
    const int64_t i1 = i % t->ne[1], i2 = i / t->ne[1] % t->ne[2], i3 = i / t->ne[1] / t->ne[2];
    return (float *) ((char *) t->data + (size_t) i1 * t->nb[1] + (size_t) i2 * t->nb[2] + (size_t) i3 * t->nb[3]);
}

/* Whether row() may be used. */
static inline bool has_f32_rows(const struct ggml_tensor * t) {
    return t->type == GGML_TYPE_F32 && t->nb[0] == sizeof(float);
}

/* Where the part of thread `ith` of `nth` begins, of `n` pieces of work; it ends where the next one's begins. */
static inline int64_t part(int64_t n, int ith, int nth) {
    return n * ith / nth;
}

#endif
