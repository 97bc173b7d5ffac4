/* The layout of a graph, for programs that build graphs of their own; what backend modules call. Written by tools/headers from the Rust definitions; do not edit. */

#ifndef GGML_SRC_GGML_IMPL_H
#define GGML_SRC_GGML_IMPL_H

#include "ggml.h"
#include "gguf.h"


/* Which source is visited first when a graph grows. */
enum ggml_cgraph_eval_order {
  GGML_CGRAPH_EVAL_ORDER_LEFT_TO_RIGHT = 0,
  GGML_CGRAPH_EVAL_ORDER_RIGHT_TO_LEFT = 1,
  GGML_CGRAPH_EVAL_ORDER_COUNT = 2,
};

/* One word of a bit set. */
typedef uint32_t ggml_bitset_t;

/* Open-addressed set of tensors by address, linear probing from `(address >> 4) % size`. */
struct ggml_hash_set {
  /* Slots. */
  size_t size;
  /* Which slots are taken, one bit each. */
  ggml_bitset_t *used;
  /* The tensors; only taken slots are defined. */
  struct ggml_tensor **keys;
};

/* A graph: nodes in the order in which they run, leafs that only hold data. */
struct ggml_cgraph {
  /* Room for nodes, and for leafs; zero in a view. */
  int size;
  /* Nodes in use. */
  int n_nodes;
  /* Leafs in use. */
  int n_leafs;
  /* Tensors that are computed. */
  struct ggml_tensor **nodes;
  /* Gradients by hash slot, or NULL. */
  struct ggml_tensor **grads;
  /* Accumulators of gradients by hash slot, or NULL. */
  struct ggml_tensor **grad_accs;
  /* Tensors that are not computed. */
  struct ggml_tensor **leafs;
  /* How many times each tensor is a source, by hash slot. */
  int32_t *use_counts;
  /* The tensors that the graph has seen. */
  struct ggml_hash_set visited_hash_set;
  /* Which source is visited first. */
  enum ggml_cgraph_eval_order order;
  /* Equal non-zero values promise equal graphs. */
  uint64_t uid;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/* Nodes `i0` up to but not including `i1`, sharing the graph's arrays. */
struct ggml_cgraph ggml_graph_view(struct ggml_cgraph *cgraph, int i0, int i1);

/* A number that no graph had before. */
uint64_t ggml_graph_next_uid(void);

/* Whether the `count` nodes have the given operators and only the `num_outputs` outputs are used outside them. */
bool ggml_can_fuse_subgraph_ext(const struct ggml_cgraph *cgraph,
                                const int *node_idxs,
                                int count,
                                const enum ggml_op *ops,
                                const int *outputs,
                                int num_outputs);

/* Slots of a hash set with room for `min_sz` tensors; 0 when there can be no such set. */
size_t ggml_hash_size(size_t min_sz);

/* A hash set with room for `size` tensors, freed by `ggml_hash_set_free`. Its size is 0 when there is no memory. */
struct ggml_hash_set ggml_hash_set_new(size_t size);

/* Frees what `ggml_hash_set_new` made. */
void ggml_hash_set_free(struct ggml_hash_set *hash_set);

/* Empties a hash set. */
void ggml_hash_set_reset(struct ggml_hash_set *hash_set);

/*
 Memory of `size` bytes, aligned to 64, for `ggml_aligned_free`; NULL for 0 bytes, and with an error when there is none.
 (Modules: CPU, zDNN, OpenVINO.)
 */
void *ggml_aligned_malloc(size_t size);

/* Frees what `ggml_aligned_malloc` gave; NULL is no change. `size`: as then. */
void ggml_aligned_free(void *ptr, size_t size);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#define GGML_HASHSET_FULL ((size_t) -1)
#define GGML_HASHSET_ALREADY_EXISTS ((size_t) -2)
#define GGML_BITSET_SHIFT 5
#define GGML_BITSET_MASK 31

static inline bool ggml_bitset_get(const ggml_bitset_t * bits, size_t i) {
    return (bits[i >> GGML_BITSET_SHIFT] >> (i & GGML_BITSET_MASK)) & 1u;
}

static inline void ggml_bitset_set(ggml_bitset_t * bits, size_t i) {
    bits[i >> GGML_BITSET_SHIFT] |= (ggml_bitset_t) 1u << (i & GGML_BITSET_MASK);
}

/* Slot of the tensor, or the free slot where it belongs; GGML_HASHSET_FULL: neither. */
static inline size_t ggml_hash_find(const struct ggml_hash_set * set, const struct ggml_tensor * key) {
    for (size_t step = 0, i = set->size ? ((size_t) (uintptr_t) key >> 4) % set->size : 0; step < set->size; ++step) {
        if (!ggml_bitset_get(set->used, i) || set->keys[i] == key) {
            return i;
        }
        i = i + 1 == set->size ? 0 : i + 1;
    }
    return GGML_HASHSET_FULL;
}

/* Whether the tensor is in the set. */
static inline bool ggml_hash_contains(const struct ggml_hash_set * set, struct ggml_tensor * key) {
    const size_t i = ggml_hash_find(set, key);
    return i != GGML_HASHSET_FULL && ggml_bitset_get(set->used, i);
}

/* Slot that the tensor was put in; GGML_HASHSET_ALREADY_EXISTS: it was there; GGML_HASHSET_FULL: no room. */
static inline size_t ggml_hash_insert(struct ggml_hash_set * set, struct ggml_tensor * key) {
    const size_t i = ggml_hash_find(set, key);
    if (i != GGML_HASHSET_FULL) {
        if (ggml_bitset_get(set->used, i)) {
            return GGML_HASHSET_ALREADY_EXISTS;
        }
        ggml_bitset_set(set->used, i);
        set->keys[i] = key;
    }
    return i;
}

/* How many times node number node_idx is a source in the graph. */
static inline int32_t ggml_node_get_use_count(const struct ggml_cgraph * graph, int node_idx) {
    const size_t i = ggml_hash_find(&graph->visited_hash_set, graph->nodes[node_idx]);
    return i != GGML_HASHSET_FULL && ggml_bitset_get(graph->visited_hash_set.used, i) ? graph->use_counts[i] : 0;
}

/* A line of the log: where ggml_log_set says, else to standard error. No newline is added. */
#ifdef __cplusplus
extern "C" {
#endif
GGML_ATTRIBUTE_FORMAT(2, 3)
void ggml_log_internal(enum ggml_log_level level, const char * fmt, ...);
#ifdef __cplusplus
}
#endif

#define GGML_LOG(...) ggml_log_internal(GGML_LOG_LEVEL_NONE, __VA_ARGS__)
#define GGML_LOG_DEBUG(...) ggml_log_internal(GGML_LOG_LEVEL_DEBUG, __VA_ARGS__)
#define GGML_LOG_INFO(...) ggml_log_internal(GGML_LOG_LEVEL_INFO, __VA_ARGS__)
#define GGML_LOG_WARN(...) ggml_log_internal(GGML_LOG_LEVEL_WARN, __VA_ARGS__)
#define GGML_LOG_ERROR(...) ggml_log_internal(GGML_LOG_LEVEL_ERROR, __VA_ARGS__)
#define GGML_LOG_CONT(...) ggml_log_internal(GGML_LOG_LEVEL_CONT, __VA_ARGS__)

#endif
