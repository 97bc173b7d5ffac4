/* What a program needs of a graph's inside: leafs, consumer counts, copies over other tensors, segments, ranges. Written by tools/headers from the Rust definitions; do not edit. */

#ifndef GGML_GRAPH_H
#define GGML_GRAPH_H

#include "ggml.h"
#include "ggml-backend.h"


#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/* Leafs in the graph: tensors that it reads and does not compute. */
int ggml_graph_n_leafs(const struct ggml_cgraph *cgraph);

/* Leaf `i`; -1 is the last one. NULL for an index out of range. */
struct ggml_tensor *ggml_graph_leaf(const struct ggml_cgraph *cgraph, int i);

/*
 Appends `tensor` to the leafs as it stands: the graph does not look whether it has it, records no consumers for it, and leaves
 what it is computed from alone. With `ggml_graph_add_node` this makes a graph of a part of another one.
 False, and the graph is as before, when it has no room (`ggml_graph_size` is for nodes and for leafs each) or is a view.
 */
bool ggml_graph_append_leaf(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor);

/*
 How many times the graph counted `tensor` as a source of its nodes. In a view, and after `ggml_graph_copy_use_counts`, that
 includes consumers outside of it. -1 when there is no record: the graph has not seen the tensor, or does not count.
 */
int ggml_graph_use_count(const struct ggml_cgraph *cgraph, const struct ggml_tensor *tensor);

/*
 Makes `dst` the graph `src` over other tensors: `to[i]` takes the place of `from[i]`, for `n_pairs` pairs. Nodes and leafs keep
 their order, and each copy has the consumer count that its original has in `src`, for a view that of the whole graph. What
 `dst` held before is gone.

 The tensors in `to` are the caller's: made by the caller, who also points their sources and views at copies and gives them
 storage, before or after; they are not looked at here. Every node and every leaf needs a partner, its own or itself. A view reads
 tensors that are neither: pairs for them carry their counts over. Pairs of tensors that `src` does not know are allowed.

 False, and `dst` is as before: a node or leaf has no partner, a tensor is in two pairs, a pair is NULL, `src` has gradients, or
 `dst` has no room: its size is for nodes and for leafs each, and must be at least half the pairs too. `*missing` (`missing` may be
 NULL) is then the original that lacks a copy of its own, or NULL if it is not about one tensor. `ggml_ext_last_error` has it too.
 */
bool ggml_graph_copy_mapped(const struct ggml_cgraph *src,
                            struct ggml_cgraph *dst,
                            struct ggml_tensor *const *from,
                            struct ggml_tensor *const *to,
                            int n_pairs,
                            struct ggml_tensor **missing);

/*
 Gives the nodes and leafs of `segment`, a graph made of a part of `original`, the consumer counts that they have in `original`, so
 that a backend fuses in the segment what it would fuse in the whole and keeps what another segment reads.

 False, and `segment` is as before: a node of the segment is not in `original` (`ggml_ext_last_error` names it), `original` does
 not count, or `segment` has no counts of its own. A leaf that `original` does not know gets no count.
 */
bool ggml_graph_copy_use_counts(const struct ggml_cgraph *original,
                                struct ggml_cgraph *segment);

/*
 Computes nodes `i0` up to but not including `i1` of a graph whose tensors are allocated, and waits. The graph's consumer counts
 hold, so a backend fuses nothing that nodes outside the range read. An empty range is no work; one that leaves the graph is
 `GGML_STATUS_FAILED`.
 */
enum ggml_status ggml_backend_graph_compute_range(ggml_backend_t backend, struct ggml_cgraph *cgraph, int i0, int i1);

/* As `ggml_backend_graph_compute_range`, without waiting where the backend works on its own. */
enum ggml_status ggml_backend_graph_compute_range_async(ggml_backend_t backend, struct ggml_cgraph *cgraph, int i0, int i1);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif
