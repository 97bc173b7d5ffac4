/* Devices, buffers, backends and the scheduler. Written by tools/headers from the Rust definitions; do not edit. */

#ifndef GGML_BACKEND_H
#define GGML_BACKEND_H

#include "ggml.h"
#include "ggml-alloc.h"

struct ggml_backend_buffer_type;
struct ggml_backend;
struct ggml_backend_event;
struct ggml_backend_reg;
struct ggml_backend_device;
struct ggml_backend_sched;


/* Devices that one can be made of. */
#define GGML_BACKEND_META_MAX_DEVICES 16

/* What a buffer holds; the scheduler reads it. */
enum ggml_backend_buffer_usage {
  GGML_BACKEND_BUFFER_USAGE_ANY = 0,
  GGML_BACKEND_BUFFER_USAGE_WEIGHTS = 1,
  GGML_BACKEND_BUFFER_USAGE_COMPUTE = 2,
};

/* Kind of a device. */
enum ggml_backend_dev_type {
  GGML_BACKEND_DEVICE_TYPE_CPU = 0,
  GGML_BACKEND_DEVICE_TYPE_GPU = 1,
  GGML_BACKEND_DEVICE_TYPE_IGPU = 2,
  GGML_BACKEND_DEVICE_TYPE_ACCEL = 3,
  GGML_BACKEND_DEVICE_TYPE_META = 4,
};

/* How a tensor is divided over the devices that another one is made of. */
enum ggml_backend_meta_split_axis {
  GGML_BACKEND_SPLIT_AXIS_0 = 0,
  GGML_BACKEND_SPLIT_AXIS_1 = 1,
  GGML_BACKEND_SPLIT_AXIS_2 = 2,
  GGML_BACKEND_SPLIT_AXIS_3 = 3,
  GGML_BACKEND_SPLIT_AXIS_MIRRORED = 10,
  GGML_BACKEND_SPLIT_AXIS_PARTIAL = 11,
  GGML_BACKEND_SPLIT_AXIS_NONE = 98,
  GGML_BACKEND_SPLIT_AXIS_UNKNOWN = 99,
};

/* Runs graphs on several backends; opaque. */
struct ggml_backend_sched;

/* Handle of a device. */
typedef struct ggml_backend_device *ggml_backend_dev_t;

/* Handle of an event. */
typedef struct ggml_backend_event *ggml_backend_event_t;

/* Handle of a graph that a backend prepared. */
typedef void *ggml_backend_graph_plan_t;

/* What a device can do. */
struct ggml_backend_dev_caps {
  /* Work runs while the caller goes on. */
  bool async;
  /* It has pinned host memory. */
  bool host_buffer;
  /* It makes buffers of the caller's memory. */
  bool buffer_from_host_ptr;
  /* It has events. */
  bool events;
  /* Files may be mapped and used in place. */
  bool mmap_support;
};

/* Facts about a device. */
struct ggml_backend_dev_props {
  /* Short name. */
  const char *name;
  /* What it is. */
  const char *description;
  /* Bytes free now. */
  size_t memory_free;
  /* Bytes in all. */
  size_t memory_total;
  /* Kind. */
  enum ggml_backend_dev_type type;
  /* Bus address in lower case, or NULL. */
  const char *device_id;
  /* What it can do. */
  struct ggml_backend_dev_caps caps;
};

/* Handle of a registry entry. */
typedef struct ggml_backend_reg *ggml_backend_reg_t;

/* Handle of a scheduler. */
typedef struct ggml_backend_sched *ggml_backend_sched_t;

/* Called by the scheduler: with `ask` to learn whether the caller wants to see `t`; without, to show it. False stops. */
typedef bool (*ggml_backend_sched_eval_callback)(struct ggml_tensor *t, bool ask, void *user_data);

/* A copy of a graph in the memory of a backend. */
struct ggml_backend_graph_copy {
  /* Holds the data; NULL: there is no copy. */
  ggml_backend_buffer_t buffer;
  /* Holds the tensors with storage of their own, and the graph. */
  struct ggml_context *ctx_allocated;
  /* Holds the views. */
  struct ggml_context *ctx_unallocated;
  /* The copy. */
  struct ggml_cgraph *graph;
};

/* Shown a node computed by one backend and by another. False stops. */
typedef bool (*ggml_backend_eval_callback)(int node_index, struct ggml_tensor *t1, struct ggml_tensor *t2, void *user_data);

/* How a tensor is divided over devices. */
struct ggml_backend_meta_split_state {
  /* Along which dimension, or how else. */
  enum ggml_backend_meta_split_axis axis;
  /*
   Along a dimension: elements of each segment for each device, all devices of segment 0 first. A segment comes
   `nr` times; all together are the dimension.
   */
  int64_t ne[256];
  /* How many times each segment comes. */
  uint32_t nr[16];
  /* Segments. */
  uint32_t n_segments;
};

/* Tells how a tensor is divided. */
typedef struct ggml_backend_meta_split_state (*ggml_backend_meta_get_split_state_t)(const struct ggml_tensor *tensor, void *userdata);

/* A feature of a backend, as text. */
struct ggml_backend_feature {
  /* Its name; NULL ends an array. */
  const char *name;
  /* Its value. */
  const char *value;
};

/* Spreads weights over devices. */
typedef ggml_backend_buffer_type_t (*ggml_backend_split_buffer_type_t)(int main_device, const float *tensor_split);

/* Sets the number of threads. */
typedef void (*ggml_backend_set_n_threads_t)(ggml_backend_t backend, int n_threads);

/* More buffer types of a device, NULL-terminated. */
typedef ggml_backend_buffer_type_t *(*ggml_backend_dev_get_extra_bufts_t)(ggml_backend_dev_t device);

/* Sets the abort callback. */
typedef void (*ggml_backend_set_abort_callback_t)(ggml_backend_t backend,
                                                  ggml_abort_callback abort_callback,
                                                  void *abort_callback_data);

/* Features, ended by an entry whose name is NULL. */
typedef struct ggml_backend_feature *(*ggml_backend_get_features_t)(ggml_backend_reg_t reg);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/* Name of a buffer type. */
const char *ggml_backend_buft_name(ggml_backend_buffer_type_t buft);

/* A buffer of at least `size` bytes, or NULL with an error when it cannot be had. Size 0 gives a buffer without memory. */
ggml_backend_buffer_t ggml_backend_buft_alloc_buffer(ggml_backend_buffer_type_t buft, size_t size);

/* Alignment of tensors in buffers of the type, bytes. */
size_t ggml_backend_buft_get_alignment(ggml_backend_buffer_type_t buft);

/* Bytes that one buffer of the type may have. */
size_t ggml_backend_buft_get_max_size(ggml_backend_buffer_type_t buft);

/* Bytes that a tensor takes in a buffer of the type, padding included. */
size_t ggml_backend_buft_get_alloc_size(ggml_backend_buffer_type_t buft, const struct ggml_tensor *tensor);

/* Whether buffers of the type are host memory in the standard layout. */
bool ggml_backend_buft_is_host(ggml_backend_buffer_type_t buft);

/* The device of a buffer type; NULL: plain memory of the host. */
ggml_backend_dev_t ggml_backend_buft_get_device(ggml_backend_buffer_type_t buft);

/* Name of a buffer, which is that of its type. */
const char *ggml_backend_buffer_name(ggml_backend_buffer_t buffer);

/* Frees a buffer and its memory; NULL is no change. */
void ggml_backend_buffer_free(ggml_backend_buffer_t buffer);

/* Address of a buffer's first byte; NULL when it has no memory. */
void *ggml_backend_buffer_get_base(ggml_backend_buffer_t buffer);

/* Bytes of a buffer. */
size_t ggml_backend_buffer_get_size(ggml_backend_buffer_t buffer);

/* Prepares a tensor whose data lies in the buffer. */
enum ggml_status ggml_backend_buffer_init_tensor(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor);

/* Alignment of tensors in the buffer, bytes. */
size_t ggml_backend_buffer_get_alignment(ggml_backend_buffer_t buffer);

/* Bytes that one buffer of this kind may have. */
size_t ggml_backend_buffer_get_max_size(ggml_backend_buffer_t buffer);

/* Bytes that a tensor takes in the buffer, padding included. */
size_t ggml_backend_buffer_get_alloc_size(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor);

/* Sets every byte of a buffer. */
void ggml_backend_buffer_clear(ggml_backend_buffer_t buffer, uint8_t value);

/* Whether a buffer is host memory in the standard layout. */
bool ggml_backend_buffer_is_host(ggml_backend_buffer_t buffer);

/* Says what a buffer holds; the scheduler keeps weights where they are. */
void ggml_backend_buffer_set_usage(ggml_backend_buffer_t buffer, enum ggml_backend_buffer_usage usage);

/* What a buffer holds. */
enum ggml_backend_buffer_usage ggml_backend_buffer_get_usage(ggml_backend_buffer_t buffer);

/* Kind of memory of a buffer. */
ggml_backend_buffer_type_t ggml_backend_buffer_get_type(ggml_backend_buffer_t buffer);

/* Forgets what was prepared for tensors of the buffer. */
void ggml_backend_buffer_reset(ggml_backend_buffer_t buffer);

/*
 Copies all of `src` to `dst`, of the same layout, between any two buffers: the bytes from the first to the last element, those
 in the gaps of a view among them.
 */
void ggml_backend_tensor_copy(const struct ggml_tensor *src, struct ggml_tensor *dst);

/* Sixteen bytes that name a backend's kind. */
ggml_guid_t ggml_backend_guid(ggml_backend_t backend);

/* Name of a backend. */
const char *ggml_backend_name(ggml_backend_t backend);

/* Frees a backend; NULL is no change. Its buffers stay. */
void ggml_backend_free(ggml_backend_t backend);

/* The memory that a backend works in. */
ggml_backend_buffer_type_t ggml_backend_get_default_buffer_type(ggml_backend_t backend);

/* A buffer of a backend's memory, or NULL with an error when it cannot be had. */
ggml_backend_buffer_t ggml_backend_alloc_buffer(ggml_backend_t backend, size_t size);

/* Alignment of tensors in a backend's memory, bytes. */
size_t ggml_backend_get_alignment(ggml_backend_t backend);

/* Bytes that one buffer of a backend may have. */
size_t ggml_backend_get_max_size(ggml_backend_t backend);

/* As `ggml_backend_tensor_set`, in the order of the backend's work; `data` stays until the backend was synchronised. */
void ggml_backend_tensor_set_async(ggml_backend_t backend, struct ggml_tensor *tensor, const void *data, size_t offset, size_t size);

/* As `ggml_backend_tensor_get`, in the order of the backend's work; `data` is filled when the backend was synchronised. */
void ggml_backend_tensor_get_async(ggml_backend_t backend, const struct ggml_tensor *tensor, void *data, size_t offset, size_t size);

/* As `ggml_backend_tensor_set_2d`, in the order of the backend's work. */
void ggml_backend_tensor_set_2d_async(ggml_backend_t backend,
                                      struct ggml_tensor *tensor,
                                      const void *data,
                                      size_t offset,
                                      size_t size,
                                      size_t n_copies,
                                      size_t stride_tensor,
                                      size_t stride_data);

/* As `ggml_backend_tensor_get_2d`, in the order of the backend's work. */
void ggml_backend_tensor_get_2d_async(ggml_backend_t backend,
                                      const struct ggml_tensor *tensor,
                                      void *data,
                                      size_t offset,
                                      size_t size,
                                      size_t n_copies,
                                      size_t stride_tensor,
                                      size_t stride_data);

/* Writes `size` bytes at `offset` of the tensor's storage. A range that leaves the tensor moves nothing and is an error. */
void ggml_backend_tensor_set(struct ggml_tensor *tensor, const void *data, size_t offset, size_t size);

/* Reads `size` bytes at `offset` of the tensor's storage. A range that leaves the tensor moves nothing and is an error. */
void ggml_backend_tensor_get(const struct ggml_tensor *tensor, void *data, size_t offset, size_t size);

/* Writes `n_copies` pieces of `size` bytes, `stride_tensor` bytes apart in the tensor and `stride_data` in `data`. */
void ggml_backend_tensor_set_2d(struct ggml_tensor *tensor,
                                const void *data,
                                size_t offset,
                                size_t size,
                                size_t n_copies,
                                size_t stride_tensor,
                                size_t stride_data);

/* Reads `n_copies` pieces of `size` bytes, `stride_tensor` bytes apart in the tensor and `stride_data` in `data`. */
void ggml_backend_tensor_get_2d(const struct ggml_tensor *tensor,
                                void *data,
                                size_t offset,
                                size_t size,
                                size_t n_copies,
                                size_t stride_tensor,
                                size_t stride_data);

/* Sets `size` bytes at `offset` of the tensor's storage. */
void ggml_backend_tensor_memset(struct ggml_tensor *tensor, uint8_t value, size_t offset, size_t size);

/* Waits for all work of a backend. */
void ggml_backend_synchronize(ggml_backend_t backend);

/*
 Computes a graph whose tensors are allocated, and waits. A node that cannot be computed is `GGML_STATUS_FAILED`, and the
 error names it; then no node has run, or a prefix has when only the data could tell.
 */
enum ggml_status ggml_backend_graph_compute(ggml_backend_t backend, struct ggml_cgraph *cgraph);

/* As `ggml_backend_graph_compute`, without waiting where the backend works on its own. */
enum ggml_status ggml_backend_graph_compute_async(ggml_backend_t backend, struct ggml_cgraph *cgraph);

/* Whether the backend's device can compute the node. */
bool ggml_backend_supports_op(ggml_backend_t backend, const struct ggml_tensor *op);

/* Whether the backend's device can use such memory. */
bool ggml_backend_supports_buft(ggml_backend_t backend, ggml_backend_buffer_type_t buft);

/* Whether the node is worth moving its weights to the backend's device. */
bool ggml_backend_offload_op(ggml_backend_t backend, const struct ggml_tensor *op);

/* Copies `src` to `dst` behind the work of `backend_src` and before further work of `backend_dst`. */
void ggml_backend_tensor_copy_async(ggml_backend_t backend_src,
                                    ggml_backend_t backend_dst,
                                    const struct ggml_tensor *src,
                                    struct ggml_tensor *dst);

/* The device that a backend runs on. */
ggml_backend_dev_t ggml_backend_get_device(ggml_backend_t backend);

/* A new event; NULL where the device has none. */
ggml_backend_event_t ggml_backend_event_new(ggml_backend_dev_t device);

/* Frees an event; NULL is no change. */
void ggml_backend_event_free(ggml_backend_event_t event);

/* Marks the event as reached when the backend's work so far is done. */
void ggml_backend_event_record(ggml_backend_event_t event, ggml_backend_t backend);

/* Waits until the event is reached. */
void ggml_backend_event_synchronize(ggml_backend_event_t event);

/* Holds further work of the backend until the event is reached. */
void ggml_backend_event_wait(ggml_backend_t backend, ggml_backend_event_t event);

/* Places an unallocated tensor at `addr` inside a buffer. */
enum ggml_status ggml_backend_tensor_alloc(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, void *addr);

/* Gives a view the storage of what it views. */
enum ggml_status ggml_backend_view_init(struct ggml_tensor *tensor);

/* A buffer over `size` bytes of the caller's memory, aligned to 32 bytes; freeing the buffer leaves the memory alone. */
ggml_backend_buffer_t ggml_backend_cpu_buffer_from_ptr(void *ptr, size_t size);

/* Memory of the host. */
ggml_backend_buffer_type_t ggml_backend_cpu_buffer_type(void);

/*
 A plan for computing the graph on the backend, freed by `ggml_backend_graph_plan_free`; NULL with an error where the backend
 has no plans. The graph's tensors stay as they are while there is the plan; the graph itself need not. Registrations
 of ggml-ext.h take no part.
 */
ggml_backend_graph_plan_t ggml_backend_graph_plan_create(ggml_backend_t backend, struct ggml_cgraph *cgraph);

/* Frees a plan of the backend; NULL is no change. */
void ggml_backend_graph_plan_free(ggml_backend_t backend, ggml_backend_graph_plan_t plan);

/* Computes a plan of the backend. */
enum ggml_status ggml_backend_graph_plan_compute(ggml_backend_t backend, ggml_backend_graph_plan_t plan);

/* Short name of a device. */
const char *ggml_backend_dev_name(ggml_backend_dev_t device);

/* What a device is. */
const char *ggml_backend_dev_description(ggml_backend_dev_t device);

/* Memory of a device, bytes: free now, in all. */
void ggml_backend_dev_memory(ggml_backend_dev_t device, size_t *free, size_t *total);

/* Kind of a device. */
enum ggml_backend_dev_type ggml_backend_dev_type(ggml_backend_dev_t device);

/* All facts about a device. */
void ggml_backend_dev_get_props(ggml_backend_dev_t device, struct ggml_backend_dev_props *props);

/* The registry entry that a device came with. */
ggml_backend_reg_t ggml_backend_dev_backend_reg(ggml_backend_dev_t device);

/* A new backend on a device, or NULL with an error. `params` depends on the device and may be NULL. */
ggml_backend_t ggml_backend_dev_init(ggml_backend_dev_t device, const char *params);

/* Memory of a device. */
ggml_backend_buffer_type_t ggml_backend_dev_buffer_type(ggml_backend_dev_t device);

/* Memory of the host that a device reaches fast; NULL where there is no such. */
ggml_backend_buffer_type_t ggml_backend_dev_host_buffer_type(ggml_backend_dev_t device);

/* A buffer over the caller's memory, or NULL with an error where the device cannot use that. */
ggml_backend_buffer_t ggml_backend_dev_buffer_from_host_ptr(ggml_backend_dev_t device,
                                                            void *ptr,
                                                            size_t size,
                                                            size_t max_tensor_size);

/* Whether a device can compute the node. Yes means that computing it gives the right result on this very layout. */
bool ggml_backend_dev_supports_op(ggml_backend_dev_t device, const struct ggml_tensor *op);

/* Whether a device can use such memory. */
bool ggml_backend_dev_supports_buft(ggml_backend_dev_t device, ggml_backend_buffer_type_t buft);

/* Whether a node is worth moving its weights to the device. */
bool ggml_backend_dev_offload_op(ggml_backend_dev_t device, const struct ggml_tensor *op);

/* Name of a registry entry. */
const char *ggml_backend_reg_name(ggml_backend_reg_t reg);

/* How many devices a registry entry has. */
size_t ggml_backend_reg_dev_count(ggml_backend_reg_t reg);

/* Device number `index` of a registry entry; NULL when there is no such. */
ggml_backend_dev_t ggml_backend_reg_dev_get(ggml_backend_reg_t reg, size_t index);

/* A function that not every backend has, by name; NULL when this one has not. */
void *ggml_backend_reg_get_proc_address(ggml_backend_reg_t reg, const char *name);

/* Adds a registry entry and its devices. */
void ggml_backend_register(ggml_backend_reg_t reg);

/* Adds a device. */
void ggml_backend_device_register(ggml_backend_dev_t device);

/* How many registry entries there are. */
size_t ggml_backend_reg_count(void);

/* Registry entry number `index`; NULL when there is no such. */
ggml_backend_reg_t ggml_backend_reg_get(size_t index);

/* The registry entry of that name, in any case of letters; NULL when there is none. */
ggml_backend_reg_t ggml_backend_reg_by_name(const char *name);

/* How many devices there are. */
size_t ggml_backend_dev_count(void);

/* Device number `index`; NULL when there is no such. */
ggml_backend_dev_t ggml_backend_dev_get(size_t index);

/* The device of that name, in any case of letters; NULL when there is none. */
ggml_backend_dev_t ggml_backend_dev_by_name(const char *name);

/* The first device of a kind; NULL when there is none. */
ggml_backend_dev_t ggml_backend_dev_by_type(enum ggml_backend_dev_type type);

/* A backend on the device of that name; NULL when there is no such device or it refuses. */
ggml_backend_t ggml_backend_init_by_name(const char *name, const char *params);

/* A backend on the first device of a kind; NULL when there is none or it refuses. */
ggml_backend_t ggml_backend_init_by_type(enum ggml_backend_dev_type type, const char *params);

/* A backend on a GPU, else on an integrated GPU, else on the CPU. */
ggml_backend_t ggml_backend_init_best(void);

/* Loads a backend module and registers it; NULL with an error when it cannot be used. */
ggml_backend_reg_t ggml_backend_load(const char *path);

/*
 Unregisters an entry and unloads its module. Nothing of it may be in use. Kernels and rules registered on its devices are
 released; while a scheduler's plan uses one of them, the module stays, with an error.
 */
void ggml_backend_unload(ggml_backend_reg_t reg);

/*
 Loads the known backend modules beside the program and in the current folder, and the one in the environment variable
 GGML_BACKEND_PATH. The CPU is built in.
 */
void ggml_backend_load_all(void);

/* As `ggml_backend_load_all`, from one folder. */
void ggml_backend_load_all_from_path(const char *dir_path);

/*
 A scheduler over `n_backends` backends, the first of highest priority, the last that of the host. `bufts`: the memory that each
 works in, NULL for their own. `parallel`: graphs may run one behind the other, with copies of their inputs. `op_offload`: backends
 may take operators whose weights lie with the host. `graph_size` is a hint. Freed by `ggml_backend_sched_free`.
 */
ggml_backend_sched_t ggml_backend_sched_new(ggml_backend_t *backends,
                                            ggml_backend_buffer_type_t *bufts,
                                            int n_backends,
                                            size_t graph_size,
                                            bool parallel,
                                            bool op_offload);

/* Frees a scheduler and its buffers; the backends stay. NULL is ignored. */
void ggml_backend_sched_free(ggml_backend_sched_t sched);

/* Writes to `sizes`, for each backend, the bytes of the buffer that `ggml_backend_sched_reserve` would allocate; zeros on failure. */
void ggml_backend_sched_reserve_size(ggml_backend_sched_t sched, struct ggml_cgraph *measure_graph, size_t *sizes);

/* Allocates buffers for `measure_graph`, whose tensors get no places. False: the memory cannot be had. */
bool ggml_backend_sched_reserve(ggml_backend_sched_t sched, struct ggml_cgraph *measure_graph);

/* Backends of the scheduler. */
int ggml_backend_sched_get_n_backends(ggml_backend_sched_t sched);

/* Backend number `i`, or NULL for a number out of range. */
ggml_backend_t ggml_backend_sched_get_backend(ggml_backend_sched_t sched, int i);

/* Splits of the last graph. */
int ggml_backend_sched_get_n_splits(ggml_backend_sched_t sched);

/* Copies of the inputs: 1, or more for a parallel scheduler. */
int ggml_backend_sched_get_n_copies(ggml_backend_sched_t sched);

/* The memory that `backend` works in. */
ggml_backend_buffer_type_t ggml_backend_sched_get_buffer_type(ggml_backend_sched_t sched, ggml_backend_t backend);

/* Bytes of the buffer for graphs on `backend`; 0 when it shares that of an earlier one. */
size_t ggml_backend_sched_get_buffer_size(ggml_backend_sched_t sched, ggml_backend_t backend);

/* Lets `node` be computed by `backend`, until the next reset. */
void ggml_backend_sched_set_tensor_backend(ggml_backend_sched_t sched, struct ggml_tensor *node, ggml_backend_t backend);

/* The backend of `node` in the graph at hand, or NULL. */
ggml_backend_t ggml_backend_sched_get_tensor_backend(ggml_backend_sched_t sched, struct ggml_tensor *node);

/* Splits a graph without allocating it. Nodes read copies afterwards where they cannot reach their sources. */
void ggml_backend_sched_split_graph(ggml_backend_sched_t sched, struct ggml_cgraph *graph);

/* Splits a graph and gives its tensors their places. Reset the scheduler between graphs. */
bool ggml_backend_sched_alloc_graph(ggml_backend_sched_t sched, struct ggml_cgraph *graph);

/* Computes a graph, which is split and allocated first unless it was, and waits for it. */
enum ggml_status ggml_backend_sched_graph_compute(ggml_backend_sched_t sched, struct ggml_cgraph *graph);

/* As `ggml_backend_sched_graph_compute`, without waiting: results are there after `ggml_backend_sched_synchronize`. */
enum ggml_status ggml_backend_sched_graph_compute_async(ggml_backend_sched_t sched, struct ggml_cgraph *graph);

/* Waits for all backends. */
void ggml_backend_sched_synchronize(ggml_backend_sched_t sched);

/* Forgets the graph at hand and the backends chosen for tensors. Tensors of that graph have no data any more. */
void ggml_backend_sched_reset(ggml_backend_sched_t sched);

/* Sets who is asked about each node before it is computed, and shown those it wants to see; NULL: nobody. */
void ggml_backend_sched_set_eval_callback(ggml_backend_sched_t sched, ggml_backend_sched_eval_callback callback, void *user_data);

/* A copy of a graph, whose tensors have their data, in the memory of `backend`. Its buffer is NULL when it cannot be made. */
struct ggml_backend_graph_copy ggml_backend_graph_copy(ggml_backend_t backend, struct ggml_cgraph *graph);

/* Frees a copy of a graph. */
void ggml_backend_graph_copy_free(struct ggml_backend_graph_copy copy);

/*
 Computes `graph` on `backend1` and a copy of it on `backend2`, and shows both results of each node, or, after the whole graph
 ran, of the `num_test_nodes` nodes in `test_nodes`. False: it could not be copied or computed.
 */
bool ggml_backend_compare_graph_backend(ggml_backend_t backend1,
                                        ggml_backend_t backend2,
                                        struct ggml_cgraph *graph,
                                        ggml_backend_eval_callback callback,
                                        void *user_data,
                                        const struct ggml_tensor *const *test_nodes,
                                        size_t num_test_nodes);

/* Name of a way to divide a tensor. */
const char *ggml_backend_meta_split_axis_name(enum ggml_backend_meta_split_axis split_axis);

/*
 A device made of `n_devs` others, 1 to `GGML_BACKEND_META_MAX_DEVICES`, or NULL with an error. Its backend, memory and buffers are made
 of theirs. `get_split_state` is asked how each tensor is divided that is no graph's; graphs' tensors follow from them, and a
 node that cannot is an error with its name. The device lives as long as the process; the same arguments give the same one.
 */
ggml_backend_dev_t ggml_backend_meta_device(ggml_backend_dev_t *devs,
                                            size_t n_devs,
                                            ggml_backend_meta_get_split_state_t get_split_state,
                                            void *get_split_state_ud);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif
