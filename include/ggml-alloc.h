/* Allocators of tensors and graphs. Written by tools/headers from the Rust definitions; do not edit. */

#ifndef GGML_ALLOC_H
#define GGML_ALLOC_H

#include "ggml.h"

struct ggml_backend_buffer_type;
struct ggml_backend;


/* Allocates graphs; opaque. */
struct ggml_gallocr;

/* Handle of a buffer. */
typedef struct ggml_backend_buffer *ggml_backend_buffer_t;

/* Places tensors in a buffer one behind the other. */
struct ggml_tallocr {
  /* Where. */
  ggml_backend_buffer_t buffer;
  /* Start of the buffer. */
  void *base;
  /* Alignment of the buffer, bytes. */
  size_t alignment;
  /* Bytes used. */
  size_t offset;
};

/* Handle of a graph allocator. */
typedef struct ggml_gallocr *ggml_gallocr_t;

/* Handle of a buffer type. */
typedef struct ggml_backend_buffer_type *ggml_backend_buffer_type_t;

/* Handle of a backend (a stream of work on a device). */
typedef struct ggml_backend *ggml_backend_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/* An allocator that places tensors one behind the other in `buffer`. */
struct ggml_tallocr ggml_tallocr_new(ggml_backend_buffer_t buffer);

/* Places `tensor`. `GGML_STATUS_ALLOC_FAILED`: it does not fit and is left as it was. */
enum ggml_status ggml_tallocr_alloc(struct ggml_tallocr *talloc, struct ggml_tensor *tensor);

/* A graph allocator with one buffer of type `buft`, freed by `ggml_gallocr_free`. */
ggml_gallocr_t ggml_gallocr_new(ggml_backend_buffer_type_t buft);

/* A graph allocator with `n_bufs` buffers; buffers of one type share their memory. */
ggml_gallocr_t ggml_gallocr_new_n(ggml_backend_buffer_type_t *bufts, int n_bufs);

/* Frees an allocator and its buffers; tensors in them have no data any more. NULL is ignored. */
void ggml_gallocr_free(ggml_gallocr_t galloc);

/*
 Lays the buffer out for `graph`, so that allocating it, or a graph of the same shape whose tensors are no larger, needs no
 more memory. The graph's tensors are not touched. False: the memory cannot be had; a later call may succeed.
 */
bool ggml_gallocr_reserve(ggml_gallocr_t galloc, struct ggml_cgraph *graph);

/* As `ggml_gallocr_reserve`, with the number of the buffer for each node and each leaf; NULL: buffer 0. */
bool ggml_gallocr_reserve_n(ggml_gallocr_t galloc, struct ggml_cgraph *graph, const int *node_buffer_ids, const int *leaf_buffer_ids);

/* Writes to `sizes`, for each buffer, the bytes that `ggml_gallocr_reserve_n` would lay out. Nothing is allocated; zeros on failure. */
void ggml_gallocr_reserve_n_size(ggml_gallocr_t galloc,
                                 struct ggml_cgraph *graph,
                                 const int *node_buffer_ids,
                                 const int *leaf_buffer_ids,
                                 size_t *sizes);

/*
 Tensors that get no memory from `ggml_gallocr_reserve*` and `ggml_gallocr_alloc_graph` from now on, in the place of those named
 before; `n_tensors` 0: none. They are the inner results of steps that run as one: whoever reads a skipped tensor, itself or
 through a view, computes it from what its node reads, and that node is not run. So
 - what a skipped tensor is computed from keeps its memory until the last reader of the skipped tensor was computed, through
   any number of skipped tensors;
 - a node that reads a skipped tensor, or a view of one, never takes the memory of a source, nor does the owner of the memory
   that it writes into: a fresh result overlaps nothing that it is computed from;
 - `data` and `buffer` of skipped tensors, and of views of them, stay NULL.

 A skipped tensor that has data already keeps them and is like any other. Allocating a graph fails, with a text naming the
 tensors, where an input or output is skipped or views a skipped one, and where a node that is not skipped writes into a
 skipped one. A plan holds for graphs in which the same positions are skipped, whatever the addresses. The tensors are not
 looked at here and the list is not kept. False: an argument is NULL or negative, or memory is short; then none is skipped.
 */
bool ggml_gallocr_set_skipped_tensors(ggml_gallocr_t galloc, struct ggml_tensor *const *tensors, int n_tensors);

/*
 Gives every tensor of the graph that has no data its place. An allocator with one buffer lays it out anew when the graph is
 not the one it was laid out for; with several buffers that is an error: call `ggml_gallocr_reserve_n` first.
 */
bool ggml_gallocr_alloc_graph(ggml_gallocr_t galloc, struct ggml_cgraph *graph);

/* Bytes of a buffer; 0 when it shares the memory of an earlier one. */
size_t ggml_gallocr_get_buffer_size(ggml_gallocr_t galloc, int buffer_id);

/* Whether the allocator may let the operator write over one of its sources. */
bool ggml_op_can_inplace(enum ggml_op op);

/*
 A buffer for all tensors of the context that have no data yet, which get their places in it. NULL when there is none such, or,
 with an error, when the memory cannot be had; then nothing is left allocated.
 */
struct ggml_backend_buffer *ggml_backend_alloc_ctx_tensors_from_buft(struct ggml_context *ctx, ggml_backend_buffer_type_t buft);

/* Bytes that `ggml_backend_alloc_ctx_tensors_from_buft` would allocate; 0 on failure. */
size_t ggml_backend_alloc_ctx_tensors_from_buft_size(struct ggml_context *ctx, ggml_backend_buffer_type_t buft);

/* As `ggml_backend_alloc_ctx_tensors_from_buft`, in the memory that the backend works in. */
struct ggml_backend_buffer *ggml_backend_alloc_ctx_tensors(struct ggml_context *ctx, ggml_backend_t backend);

/* One buffer for those of the tensors that have no data yet, which get their places in it; NULL as for a context's tensors. */
ggml_backend_buffer_t ggml_backend_buft_alloc_buffer_n(ggml_backend_buffer_type_t buft, struct ggml_tensor **tensors, int n_tensors);

/* Bytes that `ggml_backend_buft_alloc_buffer_n` would allocate; 0 on failure. */
size_t ggml_backend_buft_get_alloc_size_n(ggml_backend_buffer_type_t buft, struct ggml_tensor **tensors, int n_tensors);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif
