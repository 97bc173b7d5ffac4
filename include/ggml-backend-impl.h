/* The tables of functions that a backend module fills in. Written by tools/headers from the Rust definitions; do not edit. */

#ifndef GGML_BACKEND_IMPL_H
#define GGML_BACKEND_IMPL_H

#include "ggml-backend.h"


/* Version of the interface of backend modules: value of `ggml_backend_reg.api_version`. */
#define GGML_BACKEND_API_VERSION 3

/* Functions of a buffer; those marked optional may be NULL. */
struct ggml_backend_buffer_i {
  /* Optional. */
  void (*free_buffer)(ggml_backend_buffer_t buffer);
  void *(*get_base)(ggml_backend_buffer_t buffer);
  /* Optional. */
  enum ggml_status (*init_tensor)(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor);
  void (*memset_tensor)(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, uint8_t value, size_t offset, size_t size);
  void (*set_tensor)(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, const void *data, size_t offset, size_t size);
  void (*get_tensor)(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor, void *data, size_t offset, size_t size);
  /* Optional: row by row. */
  void (*set_tensor_2d)(ggml_backend_buffer_t buffer,
                        struct ggml_tensor *tensor,
                        const void *data,
                        size_t offset,
                        size_t size,
                        size_t n_copies,
                        size_t stride_tensor,
                        size_t stride_data);
  /* Optional: row by row. */
  void (*get_tensor_2d)(ggml_backend_buffer_t buffer,
                        const struct ggml_tensor *tensor,
                        void *data,
                        size_t offset,
                        size_t size,
                        size_t n_copies,
                        size_t stride_tensor,
                        size_t stride_data);
  /* Optional: false means that the library copies through the host. */
  bool (*cpy_tensor)(ggml_backend_buffer_t buffer, const struct ggml_tensor *src, struct ggml_tensor *dst);
  void (*clear)(ggml_backend_buffer_t buffer, uint8_t value);
  /* Optional: forget what `init_tensor` made. */
  void (*reset)(ggml_backend_buffer_t buffer);
};

/* Functions of a buffer type; those marked optional may be NULL. */
struct ggml_backend_buffer_type_i {
  const char *(*get_name)(ggml_backend_buffer_type_t buft);
  ggml_backend_buffer_t (*alloc_buffer)(ggml_backend_buffer_type_t buft, size_t size);
  /* Optional: one buffer for tensors that belong together. */
  ggml_backend_buffer_t (*alloc_buffer_n)(ggml_backend_buffer_type_t buft, struct ggml_tensor **tensors, int n_tensors);
  size_t (*get_alignment)(ggml_backend_buffer_type_t buft);
  /* Optional: no limit. */
  size_t (*get_max_size)(ggml_backend_buffer_type_t buft);
  /* Optional: the size of the data. */
  size_t (*get_alloc_size)(ggml_backend_buffer_type_t buft, const struct ggml_tensor *tensor);
  /* Optional: the sum of the single sizes. */
  size_t (*get_alloc_size_n)(ggml_backend_buffer_type_t buft, struct ggml_tensor **tensors, int n_tensors);
  /* Optional: not host memory. */
  bool (*is_host)(ggml_backend_buffer_type_t buft);
};

/* A kind of memory of a device. */
struct ggml_backend_buffer_type {
  /* Functions. */
  struct ggml_backend_buffer_type_i iface;
  /* The device it belongs to; NULL: memory of the host. */
  ggml_backend_dev_t device;
  /* For the functions. */
  void *context;
};

/* A piece of a device's memory. */
struct ggml_backend_buffer {
  /* Functions. */
  struct ggml_backend_buffer_i iface;
  /* Kind of memory. */
  ggml_backend_buffer_type_t buft;
  /* For the functions. */
  void *context;
  /* Bytes. */
  size_t size;
  /* What it holds. */
  enum ggml_backend_buffer_usage usage;
};

/* How a backend's `graph_optimize` tells the allocator that a tensor must live longer. */
struct ggml_backend_graph_optimize_params {
  /* Keep `tensor` allocated until `until` was computed. */
  void (*add_alloc_dep)(void *user_data, struct ggml_tensor *tensor, struct ggml_tensor *until);
  /* For `add_alloc_dep`. */
  void *user_data;
};

/* Functions of a backend; those marked optional may be NULL. */
struct ggml_backend_i {
  const char *(*get_name)(ggml_backend_t backend);
  void (*free)(ggml_backend_t backend);
  /* Optional. */
  void (*set_tensor_async)(ggml_backend_t backend, struct ggml_tensor *tensor, const void *data, size_t offset, size_t size);
  /* Optional. */
  void (*get_tensor_async)(ggml_backend_t backend, const struct ggml_tensor *tensor, void *data, size_t offset, size_t size);
  /* Optional. */
  void (*set_tensor_2d_async)(ggml_backend_t backend,
                              struct ggml_tensor *tensor,
                              const void *data,
                              size_t offset,
                              size_t size,
                              size_t n_copies,
                              size_t stride_tensor,
                              size_t stride_data);
  /* Optional. */
  void (*get_tensor_2d_async)(ggml_backend_t backend,
                              const struct ggml_tensor *tensor,
                              void *data,
                              size_t offset,
                              size_t size,
                              size_t n_copies,
                              size_t stride_tensor,
                              size_t stride_data);
  /* Optional: false means that the library synchronises and copies. */
  bool (*cpy_tensor_async)(ggml_backend_t backend_src, ggml_backend_t backend_dst, const struct ggml_tensor *src, struct ggml_tensor *dst);
  /* Optional: nothing to wait for. */
  void (*synchronize)(ggml_backend_t backend);
  /* Optional. */
  ggml_backend_graph_plan_t (*graph_plan_create)(ggml_backend_t backend, const struct ggml_cgraph *cgraph);
  /* Optional. */
  void (*graph_plan_free)(ggml_backend_t backend, ggml_backend_graph_plan_t plan);
  /* Optional. */
  void (*graph_plan_update)(ggml_backend_t backend, ggml_backend_graph_plan_t plan, const struct ggml_cgraph *cgraph);
  /* Optional. */
  enum ggml_status (*graph_plan_compute)(ggml_backend_t backend, ggml_backend_graph_plan_t plan);
  enum ggml_status (*graph_compute)(ggml_backend_t backend, struct ggml_cgraph *cgraph);
  /* Optional. */
  void (*event_record)(ggml_backend_t backend, ggml_backend_event_t event);
  /* Optional. */
  void (*event_wait)(ggml_backend_t backend, ggml_backend_event_t event);
  /* Optional: may reorder the nodes. */
  void (*graph_optimize)(ggml_backend_t backend, struct ggml_cgraph *cgraph, struct ggml_backend_graph_optimize_params *params);
};

/* A stream of work on a device. */
struct ggml_backend {
  /* Names the kind of backend. */
  ggml_guid_t guid;
  /* Functions. */
  struct ggml_backend_i iface;
  /* Where it runs. */
  ggml_backend_dev_t device;
  /* For the functions. */
  void *context;
};

/* Functions of a device; those marked optional may be NULL. */
struct ggml_backend_device_i {
  const char *(*get_name)(ggml_backend_dev_t dev);
  const char *(*get_description)(ggml_backend_dev_t dev);
  void (*get_memory)(ggml_backend_dev_t dev, size_t *free, size_t *total);
  enum ggml_backend_dev_type (*get_type)(ggml_backend_dev_t dev);
  void (*get_props)(ggml_backend_dev_t dev, struct ggml_backend_dev_props *props);
  ggml_backend_t (*init_backend)(ggml_backend_dev_t dev, const char *params);
  ggml_backend_buffer_type_t (*get_buffer_type)(ggml_backend_dev_t dev);
  /* Optional. */
  ggml_backend_buffer_type_t (*get_host_buffer_type)(ggml_backend_dev_t dev);
  /* Optional. */
  ggml_backend_buffer_t (*buffer_from_host_ptr)(ggml_backend_dev_t dev, void *ptr, size_t size, size_t max_tensor_size);
  bool (*supports_op)(ggml_backend_dev_t dev, const struct ggml_tensor *op);
  bool (*supports_buft)(ggml_backend_dev_t dev, ggml_backend_buffer_type_t buft);
  /* Optional: never worth it. */
  bool (*offload_op)(ggml_backend_dev_t dev, const struct ggml_tensor *op);
  /* Optional. */
  ggml_backend_event_t (*event_new)(ggml_backend_dev_t dev);
  /* Optional. */
  void (*event_free)(ggml_backend_dev_t dev, ggml_backend_event_t event);
  /* Optional. */
  void (*event_synchronize)(ggml_backend_dev_t dev, ggml_backend_event_t event);
};

/* Something that computes. */
struct ggml_backend_device {
  /* Functions. */
  struct ggml_backend_device_i iface;
  /* The registry entry it came with. */
  ggml_backend_reg_t reg;
  /* For the functions. */
  void *context;
};

/* A point in a backend's stream. */
struct ggml_backend_event {
  /* The device it belongs to. */
  struct ggml_backend_device *device;
  /* For the device. */
  void *context;
};

/* Functions of a registry entry; those marked optional may be NULL. */
struct ggml_backend_reg_i {
  const char *(*get_name)(ggml_backend_reg_t reg);
  size_t (*get_device_count)(ggml_backend_reg_t reg);
  ggml_backend_dev_t (*get_device)(ggml_backend_reg_t reg, size_t index);
  /* Optional: functions that are not in every backend, by name. */
  void *(*get_proc_address)(ggml_backend_reg_t reg, const char *name);
};

/* A family of devices. */
struct ggml_backend_reg {
  /* `GGML_BACKEND_API_VERSION` of the module. */
  int api_version;
  /* Functions. */
  struct ggml_backend_reg_i iface;
  /* For the functions. */
  void *context;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 A buffer of `size` bytes with the given functions and `context`, freed by `ggml_backend_buffer_free`. NULL with an error
 when `buft` is NULL.
 */
ggml_backend_buffer_t ggml_backend_buffer_init(ggml_backend_buffer_type_t buft,
                                               struct ggml_backend_buffer_i iface,
                                               void *context,
                                               size_t size);

/*
 Copies `src` to `dst` by the function of `dst`'s buffer. False: it has none, or cannot, or the tensors do not match;
 `ggml_backend_tensor_copy` finds another way. (Modules: RPC, whose server copies for its clients.)
 */
bool ggml_backend_buffer_copy_tensor(const struct ggml_tensor *src, struct ggml_tensor *dst);

/*
 Whether a node of the operator may need more memory than its data on some device: `get_alloc_size` of a buffer type may
 only answer more than `ggml_nbytes` for these, and a device that is far away need only be asked about them.
 (Modules: RPC.)
 */
bool ggml_op_alloc_size_may_expand(enum ggml_op op);

/*
 One buffer of `n_buffers`, which it owns from now on: freed, cleared and reset together. NULL with an error when there are
 none, or one is NULL.
 */
ggml_backend_buffer_t ggml_backend_multi_buffer_alloc_buffer(ggml_backend_buffer_t *buffers, size_t n_buffers);

/* Whether `ggml_backend_multi_buffer_alloc_buffer` made the buffer. */
bool ggml_backend_buffer_is_multi_buffer(ggml_backend_buffer_t buffer);

/* As `ggml_backend_buffer_set_usage` for the buffers that a buffer is made of. An error for another one. */
void ggml_backend_multi_buffer_set_usage(ggml_backend_buffer_t buffer, enum ggml_backend_buffer_usage usage);

/* Whether a backend is on a device of `ggml_backend_meta_device`. */
bool ggml_backend_is_meta(ggml_backend_t backend);

/* Whether a buffer is memory of such a device. */
bool ggml_backend_buffer_is_meta(ggml_backend_buffer_t buf);

/* Whether a buffer type is that of such a device. */
bool ggml_backend_buft_is_meta(ggml_backend_buffer_type_t buft);

/* How many backends such a backend is made of; 0 for another. */
size_t ggml_backend_meta_n_backends(ggml_backend_t meta_backend);

/* One of the backends that such a backend is made of, or NULL. */
ggml_backend_t ggml_backend_meta_simple_backend(ggml_backend_t meta_backend, size_t index);

/* As `ggml_backend_buffer_set_usage` for the buffers that such a buffer is made of. An error for another one. */
void ggml_backend_meta_buffer_set_usage(ggml_backend_buffer_t buffer, enum ggml_backend_buffer_usage usage);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

/* GGML_BACKEND_DL_IMPL(function): makes a library a backend module. function: ggml_backend_reg_t (void). The second function
 * tells for which size of tensors the module was compiled; the library refuses one of another size.
 * GGML_BACKEND_DL_SCORE_IMPL(function): int (void), how well the module fits the machine, 0 not at all. Of several variants
 * of a module the one with the highest score is loaded. */
#ifdef __cplusplus
#    define GGML_BACKEND_DL_EXPORT extern "C" __attribute__((visibility("default")))
#else
#    define GGML_BACKEND_DL_EXPORT extern __attribute__((visibility("default")))
#endif
#ifdef GGML_BACKEND_DL
#    define GGML_BACKEND_DL_IMPL(function)                                       \
        GGML_BACKEND_DL_EXPORT int ggml_backend_max_name(void);                  \
        GGML_BACKEND_DL_EXPORT ggml_backend_reg_t ggml_backend_init(void);       \
        int ggml_backend_max_name(void) { return GGML_MAX_NAME; }                \
        ggml_backend_reg_t ggml_backend_init(void) { return function(); }
#    define GGML_BACKEND_DL_SCORE_IMPL(function)                                 \
        GGML_BACKEND_DL_EXPORT int ggml_backend_score(void);                     \
        int ggml_backend_score(void) { return function(); }
#else
#    define GGML_BACKEND_DL_IMPL(function)
#    define GGML_BACKEND_DL_SCORE_IMPL(function)
#endif

#endif
