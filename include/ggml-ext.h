/* Operators, kernels and fusion rules of the application's own; errors as text. Written by tools/headers from the Rust definitions; do not edit. */

#ifndef GGML_EXT_H
#define GGML_EXT_H

#include "ggml.h"
#include "ggml-backend.h"
/*
 Words. Device: where work runs, ggml_backend_dev_t. Node: a tensor with an operator, in a graph. Step: what one launch computes, one
 node or the consecutive nodes of a fusion. Plan: the steps of an allocated graph on one backend, native code between them. Shapes are
 low to high.

 A kernel in four callbacks:
   supports    can it compute this step rightly? metadata only
   prepare     host state and the bytes of scratch memory (optional)
   execute     computes it; tensors have their addresses, scratch memory is there
   destroy     gives the state back (optional)
 A fusion rule has match as well: how many consecutive nodes, from this one on, one launch can replace. The library then checks that
 nothing else needs what disappears, leaves it out of memory, and calls execute once for all of them.

 Rules that hold everywhere:
 - struct_size comes first in every structure; GGML_EXT_INIT sets it. A structure of a newer caller is refused if it has members set that
   the library does not know; members that an older caller does not have read as zero, and zero means what it meant before.
 - Names are copied. Callbacks and user data must live until the registration is released, or for ever, and until every plan made with
   them is gone. They may be called from any thread, never under a lock of the library's.
 - Register before devices are asked what they support and before graphs are allocated. The scheduler keeps what it has chosen: when
   registrations, metadata or the answers of callbacks change, the graph is to be allocated anew; a plan that no longer holds is an error.
 - Nothing aborts. false, NULL or a status other than success means that ggml_ext_last_error has the reason, with the node and the
   registration; the log has it too. A failing step ends its graph, and nothing is tried in its place.
 - Where: ggml_backend_graph_compute and the scheduler use kernels for single nodes; fusion takes place in the scheduler, with one copy
   of the pipeline and without an evaluation callback. ggml_graph_compute and ggml_backend_graph_plan_* use none.
 - Never intercepted: views and nodes that write into given storage. A registered operator's result is contiguous, in memory of its own.
 - An override of a built-in operator keeps its numbers, and its aliasing: where the operator may work in place, the result may lie over
   a source (overlap says so).

 Environment, read when a graph is allocated or a device is asked; names have commas between, * is all of them:
   GGML_EXT_FORBID=NAMES    as if not registered
   GGML_EXT_FORCE=NAMES     before all others, rules and kernels, and before native code, wherever it supports the step; still only
                            what is legal. FORBID goes before FORCE
   GGML_EXT_PROFILE=1       step times, as ggml_ext_set_profiling(true); read once
   GGML_EXT_EXPLAIN=FILE    each graph that a scheduler allocates is explained there (ggml_ext_explain): appended as text, as a JSON line
                            if FILE ends in .json, the last one alone if it ends in .dot; the same twice in a row once; while steps are
                            timed, after its first computation. Memory measurements are not. If it cannot be written, the log has a
                            warning, once
 */

#ifdef __cplusplus
/* A structure, all zero but for its struct_size: GGML_EXT_INIT(ggml_ext_kernel_desc, desc); */
#define GGML_EXT_INIT(type, name) struct type name = {}; name.struct_size = sizeof(struct type)
#else
#define GGML_EXT_INIT(type, name) struct type name = { .struct_size = sizeof(struct type) }
#endif



/* Version of this interface. Members are only ever appended to its structures, and zero means what it meant before. */
#define GGML_EXT_API_VERSION 1

/* Bytes of attributes that an operator may have. */
#define GGML_EXT_MAX_ATTR_SIZE 40

/* Tensors that one step may read from outside itself. */
#define GGML_EXT_MAX_STEP_SRC 64

/* Bit of `ggml_ext_features`: consecutive nodes are fused in scheduler execution. */
#define GGML_EXT_FEATURE_FUSION 1

/* Bit of `ggml_ext_features`: what a fusion does not need gets no memory. */
#define GGML_EXT_FEATURE_SKIP_ALLOC 2

/* Bit of `ggml_ext_features`: plans are explained. */
#define GGML_EXT_FEATURE_EXPLAIN 4

/* Bit of `ggml_ext_features`: `ggml_ext_check` is there. */
#define GGML_EXT_FEATURE_CHECK 8

/* Bit of `ggml_ext_features`: registrations can be released. */
#define GGML_EXT_FEATURE_SCOPES 16

/* Bit of `ggml_ext_features`: counters and step times. */
#define GGML_EXT_FEATURE_COUNTERS 32

/*
 Flag of a registration: `execute` only enqueues device work that can be replayed, and decides nothing by tensor contents; what it
 sets up lazily is there after the first execution.
 */
#define GGML_EXT_KERNEL_CAPTURE_SAFE 1

/*
 Flag of a registration: recorded work depends on tensor metadata, addresses, the device and immutable data only, so that it may be
 replayed by a rebuilt plan. Needs `GGML_EXT_KERNEL_CAPTURE_SAFE`.
 */
#define GGML_EXT_KERNEL_REPLAY_REUSABLE 2

/* Flag of a registration: a promise that the result has the same bits for any number of threads. `ggml_ext_check` holds it to that. */
#define GGML_EXT_KERNEL_DETERMINISTIC 4

/* Forms of an explained plan. */
enum ggml_ext_explain_format {
  /* Lines of text. */
  GGML_EXT_EXPLAIN_TEXT = 0,
  /* One JSON object. */
  GGML_EXT_EXPLAIN_JSON = 1,
  /* A graph for Graphviz. */
  GGML_EXT_EXPLAIN_DOT = 2,
};

/* How a case of `ggml_ext_check` ended. */
enum ggml_ext_check_outcome {
  /* As it must be. */
  GGML_EXT_CHECK_PASSED = 0,
  /* Not as it must be; the text says why. */
  GGML_EXT_CHECK_FAILED = 1,
  /* It shows nothing about this registration; the text says why. */
  GGML_EXT_CHECK_NOT_APPLICABLE = 2,
  /* Found out and not judged, since nothing is promised; the text says what. */
  GGML_EXT_CHECK_NOTED = 3,
};

/* What kind of rule was broken. */
enum ggml_ext_code {
  /* Nothing failed yet on this thread. */
  GGML_EXT_CODE_NONE = 0,
  /* A required pointer was NULL. */
  GGML_EXT_CODE_NULL_ARGUMENT = 1,
  /* A value is outside what the function takes. */
  GGML_EXT_CODE_BAD_ARGUMENT = 2,
  /* Shapes, strides or formats that the operator cannot take. */
  GGML_EXT_CODE_BAD_SHAPE = 3,
  /* Memory, or room in a context or graph, ran out. */
  GGML_EXT_CODE_OUT_OF_MEMORY = 4,
  /* No kernel takes the node. */
  GGML_EXT_CODE_NO_KERNEL = 5,
  /* A tensor without data was to be computed or copied. */
  GGML_EXT_CODE_NOT_ALLOCATED = 6,
  /* A file breaks its format. */
  GGML_EXT_CODE_BAD_FILE = 7,
  /* The operating system refused. */
  GGML_EXT_CODE_IO = 8,
  /* A backend reported a failure, or a module cannot be used. */
  GGML_EXT_CODE_BACKEND = 9,
  /* A fault of the library itself; the call had no effect that can be relied on. */
  GGML_EXT_CODE_INTERNAL = 10,
  /* A registration of that name is live. */
  GGML_EXT_CODE_NAME_TAKEN = 11,
  /* Nothing of that name is registered. */
  GGML_EXT_CODE_UNKNOWN_NAME = 12,
  /* A structure is shorter than its first version, or has members set that this library does not know. */
  GGML_EXT_CODE_BAD_STRUCT = 13,
  /* The plan was made before metadata, a policy or a registration changed: allocate the graph anew. */
  GGML_EXT_CODE_STALE_PLAN = 14,
  /* A plan, or a query on another thread, uses the registration. */
  GGML_EXT_CODE_IN_USE = 15,
  /* A callback called what may not be called from it. */
  GGML_EXT_CODE_RE_ENTERED = 16,
  /* A callback failed or answered what cannot be. */
  GGML_EXT_CODE_CALLBACK = 17,
  /* A fusion or a move would change a result. */
  GGML_EXT_CODE_NOT_LEGAL = 18,
  /* A registration does not do what it must, `ggml_ext_check`. */
  GGML_EXT_CODE_CHECK_FAILED = 19,
};

/* Registrations that are released together, `ggml_ext_scope_new`. */
struct ggml_ext_scope;

/* The last failure on a thread. */
struct ggml_ext_error {
  /* Bytes of this structure, set by the caller; members beyond it are not written. */
  size_t struct_size;
  /* A `ggml_ext_code`. */
  int32_t code;
  /* One sentence: what failed, where, which rule. Valid until the next failing call on this thread. */
  const char *text;
  /* The registration concerned, or NULL. */
  const char *registration;
  /* The tensor concerned, or NULL; to be compared, not read: it may be gone. */
  const struct ggml_tensor *node;
};

/* Metadata of an operator's result: contiguous, in memory of its own. */
struct ggml_ext_output {
  /* Set by the library. */
  size_t struct_size;
  /* Format; F32 unless `infer` sets another. */
  enum ggml_type type;
  /* Elements of each dimension, low to high; 1 unless `infer` sets them. */
  int64_t ne[GGML_MAX_DIMS];
};

/* A scope. */
typedef struct ggml_ext_scope *ggml_ext_scope_t;

/* An operator: what `ggml_ext_op_create` makes nodes of. */
struct ggml_ext_op_desc {
  /* `sizeof(struct ggml_ext_op_desc)`. */
  size_t struct_size;
  /* Unique in the process, of the form `vendor.op.v1`. Copied. */
  const char *name;
  /* Bytes of the attributes, at most `GGML_EXT_MAX_ATTR_SIZE`. Attributes are plain values, never addresses: tensors are sources. */
  size_t attr_size;
  /*
   Sets format and shape of the result from metadata and attributes. `src` has `n_src` tensors, none of them NULL; `attrs` is
   aligned to 8 bytes. False refuses, with a text by `ggml_ext_refuse`; the answer depends on nothing but the arguments.
   */
  bool (*infer)(struct ggml_tensor *const *src, int n_src, const void *attrs, struct ggml_ext_output *out, void *user_data);
  /* For `infer`. */
  void *user_data;
  /* Releases the operator with others; NULL: it stays for ever. */
  ggml_ext_scope_t scope;
};

/* What one launch computes: one node, or the consecutive nodes of a fusion. */
struct ggml_ext_step {
  /* Set by the library. */
  size_t struct_size;
  /* Where it is to run. */
  ggml_backend_dev_t device;
  /*
   The nodes in order; the last is the result. Of a fusion the others have no data and no buffer, unless one of them holds the
   result's storage.
   */
  struct ggml_tensor *const *nodes;
  /* At least 1. */
  int n_nodes;
  /* How many tensors the step reads from outside itself, at most `GGML_EXT_MAX_STEP_SRC`. */
  int n_srcs;
  /* Those, each once, in the order in which the nodes name them. */
  struct ggml_tensor *const *srcs;
  /*
   Bit `i`: bytes of `srcs[i]` and of the result are in the same place. In `execute` it says what is so. Before, in `supports`,
   `preferred` and `prepare`, it says what can become so: the result of a node that the allocator may place over a source (an override
   of a built-in operator that may work in place), or the inner node that holds a fusion's result; a result that is a view or a copy into
   given storage. A fresh result of a fusion or of a registered operator overlaps nothing that the step reads.
   */
  uint64_t overlap;
};

/* What `prepare` answers. */
struct ggml_ext_prepared {
  /* Set by the library. */
  size_t struct_size;
  /* Bytes of scratch memory that `execute` needs. All steps of a plan share one piece, as large as the largest request. */
  size_t workspace_size;
  /* For `execute`, given back by `destroy`. May be NULL. */
  void *state;
};

/* One execution of a step. */
struct ggml_ext_run {
  /* Set by the library. */
  size_t struct_size;
  /* The step; tensors have their addresses now. */
  const struct ggml_ext_step *step;
  /* The backend, whose work is to be kept in order. */
  ggml_backend_t backend;
  /* Scratch memory of the backend, NULL when the step asked for none. What it holds is lost between steps. */
  ggml_backend_buffer_t workspace;
  /* Bytes of it that the step asked for. */
  size_t workspace_size;
  /* What `prepare` made. */
  void *state;
};

/*
 A kernel for single nodes, a fusion rule, or both, on one device.

 Callbacks but `execute` look at metadata only: they read no data, launch nothing, and may be called from any thread. A callback
 says why it refuses or fails by `ggml_ext_refuse`.
 */
struct ggml_ext_kernel_desc {
  /* `sizeof(struct ggml_ext_kernel_desc)`. */
  size_t struct_size;
  /* Unique on the device; letters, digits, '.', '_' and '-'. Copied. */
  const char *name;
  /*
   Single nodes of this operator are offered to `supports`. `GGML_OP_NONE`: none, the registration is a fusion rule only.
   `GGML_OP_CUSTOM` goes with `op_name`.
   */
  enum ggml_op op;
  /* Name of the registered operator; NULL with a built-in one. Copied. */
  const char *op_name;
  /* Higher is asked first; equal: first registered, first asked. */
  int32_t priority;
  /* For rules: `match` is only asked about nodes of this operator. `GGML_OP_NONE`: all nodes. `GGML_OP_CUSTOM`: all registered ones. */
  enum ggml_op match_op;
  /* For the callbacks. */
  void *user_data;
  /* Whether the kernel computes the step rightly. Required with `op`; for a rule NULL means that `match` has decided. */
  bool (*supports)(const struct ggml_ext_step *step, void *user_data);
  /* Whether the kernel is to run although the device can compute the node itself. NULL: yes. */
  bool (*preferred)(const struct ggml_ext_step *step, void *user_data);
  /*
   Makes the host's state for a step and says how much scratch memory it needs. It may run when only memory is measured: it
   launches nothing and allocates nothing on the device. NULL: no state, no scratch.
   */
  enum ggml_status (*prepare)(const struct ggml_ext_step *step, struct ggml_ext_prepared *out, void *user_data);
  /*
   Computes the step, in the order of the backend's work. Required. Any other answer than success ends the graph and goes to the
   caller; nothing is tried in its place.
   */
  enum ggml_status (*execute)(const struct ggml_ext_run *run, void *user_data);
  /* Gives back what `prepare` made: once for each `prepare` that succeeded. NULL: nothing to do. */
  void (*destroy)(void *state, void *user_data);
  /*
   A rule: how many nodes of `graph`, from node `first` on, one launch replaces; below 2: none. The library then checks that nothing
   else needs what disappears; mathematics, formats, shapes and layouts are the rule's to answer for. NULL: no rule.
   */
  int (*match)(struct ggml_cgraph *graph, int first, void *user_data);
  /* A rule: brings nodes together before rules are asked, by `ggml_ext_graph_delay` alone. NULL: nothing. */
  void (*optimize)(struct ggml_cgraph *graph, void *user_data);
  /* Releases the registration with others; NULL: it stays for ever. */
  ggml_ext_scope_t scope;
};

/* How often what happened to a registration. */
struct ggml_ext_counters {
  /* Bytes of this structure, set by the caller; members beyond it are not written. */
  size_t struct_size;
  /* Steps of plans that it was chosen for. */
  uint64_t selected;
  /* Launches. */
  uint64_t ran;
  /* Nodes that its launches replaced, where they were more than one. */
  uint64_t fused_nodes;
  /* Nodes and matches that it was asked about and that came to nothing: `supports` or `preferred` said no, or the match was not legal. */
  uint64_t refused;
  /* Callbacks that failed: `prepare`, `execute`, a `match` that leaves the graph. */
  uint64_t errors;
  /* Nanoseconds of the calling thread in `execute`, while profiling was on. */
  uint64_t ns;
};

/* What `ggml_ext_cpu_parallel_v1` runs on each of `nth` threads. */
typedef void (*ggml_ext_cpu_task_t)(int ith, int nth, void *user_data);

/* A case of `ggml_ext_check`. */
struct ggml_ext_check_case {
  /* Set by the library. */
  size_t struct_size;
  /* Its name, as in the list at `ggml_ext_check`. */
  const char *name;
  /* How it ended. */
  enum ggml_ext_check_outcome outcome;
  /* How often the registration ran for it. */
  uint32_t n_runs;
  /* Why, or "". Valid during the call. */
  const char *text;
};

/* What `ggml_ext_check` is to check, and against what. `build` and `struct_size` are enough. */
struct ggml_ext_check_params {
  /* `sizeof(struct ggml_ext_check_params)`. */
  size_t struct_size;
  /*
   Builds a small graph in `ctx` that has the operator or the pattern in it, and answers its result. Inputs are made by
   `ggml_new_tensor_*`, anew in each call, and are best read by the operator itself. It is called often. The same seed gives the same
   graph, other seeds may give other shapes. It may find that a tensor it makes has another layout than it asked for, no
   elements, or is one that it made before; what cannot be built like that is answered with NULL and is no failure. Required.
   */
  struct ggml_tensor *(*build)(struct ggml_context *ctx, uint64_t seed, void *user_data);
  /*
   Builds the same from other operators: `inputs` are tensors as `build` made them, in that order, contiguous. It gives the
   result that the registration must have. NULL: the graph of `build` is computed without the registration, which is what an
   override and a fusion are to be compared with.
   */
  struct ggml_tensor *(*reference)(struct ggml_context *ctx, struct ggml_tensor *const *inputs, int n_inputs, uint64_t seed, void *user_data);
  /*
   Writes the elements of input number `index` to `data`: contiguous, in the format and shape that `input` has (its strides do not
   matter here), `size` bytes. False, or NULL: numbers from -1 to 1, integers 0 and 1, at random. An input that it fills is left
   out of the cases with special numbers. The same arguments give the same elements; the seed may be another than that of `build`.
   */
  bool (*fill)(const struct ggml_tensor *input, int index, uint64_t seed, void *data, size_t size, void *user_data);
  /* Told of each case when all are done. NULL: nobody. */
  void (*on_case)(const struct ggml_ext_check_case *done, void *user_data);
  /* How many states of `prepare` have not been given back to `destroy`. NULL: the memory in use is looked at, where that can be done. */
  int64_t (*live)(void *user_data);
  /*
   The normalised squared error, `sum((a - b)^2) / sum(b^2)`, that results may have; 0: they are the same bit for bit (any NaN is
   like any other).
   */
  double max_nmse;
  /* Seeds 1 to this are tried in the plain case; 0: 3. */
  uint32_t n_seeds;
  /* Threads of the CPU that are tried, from 1 on; 0: 3. */
  uint32_t n_threads;
  /* Names of cases that are left out, with commas between; a name stands for all cases that begin with it and a dot. NULL: none. */
  const char *leave_out;
  /* For the callbacks. */
  void *user_data;
};

/* What `ggml_ext_check` found. */
struct ggml_ext_check_report {
  /* Bytes of this structure, set by the caller; members beyond it are not written. */
  size_t struct_size;
  /* Cases. */
  uint32_t n_cases;
  /* Cases that passed. */
  uint32_t n_passed;
  /* Cases that failed. */
  uint32_t n_failed;
  /* Cases that show nothing about this registration. */
  uint32_t n_not_applicable;
  /* Cases that found something that is not judged. */
  uint32_t n_noted;
  /* How often the registration ran. */
  uint32_t n_runs;
  /* The first case that failed, or NULL. Valid, as `text` is, until the next check on this thread. */
  const char *failed_case;
  /* Why it failed, or NULL. */
  const char *text;
};

/*
 `skip_alloc` of a backend, found by `ggml_backend_reg_get_proc_address` under the name `ggml_backend_skip_alloc`: whether the backend's
 own code computes node number `node` of `graph` within a later node, and leaves its data untouched, so that the scheduler need not
 allocate it. `graph` is what the backend will be given to compute in one call, after its own reordering. The library asks for every
 node, and allocates it all the same when something else needs it.
 */
typedef bool (*ggml_backend_skip_alloc_t)(ggml_backend_t backend, const struct ggml_cgraph *graph, int node);

/* `ggml_ext_cpu_parallel_v1`, as `ggml_backend_reg_get_proc_address` of the CPU gives it: runs a function on a CPU backend's threads. */
typedef enum ggml_status (*ggml_ext_cpu_parallel_v1_t)(ggml_backend_t backend, ggml_ext_cpu_task_t task, void *user_data);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/* Version of the interface that the library implements: `GGML_EXT_API_VERSION` of its header. */
uint32_t ggml_ext_api_version(void);

/* What the library has: `GGML_EXT_FEATURE_` bits. */
uint64_t ggml_ext_features(void);

/*
 The last failure on the calling thread. `out->struct_size` is set by the caller; false: nothing failed yet, or `out` is NULL.
 The texts are valid until the next failing call on this thread.
 */
bool ggml_ext_last_error(struct ggml_ext_error *out);

/*
 Says why the callback that is running refuses or fails; `text` is copied and goes into error texts and explained plans. Always
 false, so that a callback can `return ggml_ext_refuse("...")`.
 */
bool ggml_ext_refuse(const char *text);

/*
 Registers an operator in the process. False, with an error: the name is taken or not of the form `vendor.op.v1`, there are too many
 bytes of attributes, or `infer` is NULL. Not from a callback.
 */
bool ggml_ext_register_op(const struct ggml_ext_op_desc *desc);

/*
 A node of a registered operator: an ordinary tensor with `n_src` sources, at most `GGML_MAX_SRC`, none of them NULL. The attributes
 are copied; `attr_size` must be what the operator was registered with. NULL, with an error, when there is no such operator, a
 source could not be built, `infer` refuses, or the context is full.
 */
struct ggml_tensor *ggml_ext_op_create(struct ggml_context *ctx,
                                const char *name,
                                struct ggml_tensor *const *src,
                                int n_src,
                                const void *attrs,
                                size_t attr_size);

/* The name of the registered operator that `node` is of; NULL for other nodes. */
const char *ggml_ext_op_name(const struct ggml_tensor *node);

/*
 Copies the attributes of a node of a registered operator to `dst`. False, with an error: it is no such node, or `size` is not the
 operator's.
 */
bool ggml_ext_op_attrs(const struct ggml_tensor *node, void *dst, size_t size);

/*
 Registers a kernel or a fusion rule on a device, with `GGML_EXT_KERNEL_` flags. False, with an error: the name is live on the device,
 a required callback is NULL, or a member is not what it may be. Register before the device is asked what it supports and before
 graphs are allocated; plans that the registration concerns are stale after it. Not from a callback.
 */
bool ggml_ext_register_kernel_ex(ggml_backend_dev_t device,
                                 const struct ggml_ext_kernel_desc *desc,
                                 uint32_t flags);

/* `ggml_ext_register_kernel_ex` without flags. */
bool ggml_ext_register_kernel(ggml_backend_dev_t device, const struct ggml_ext_kernel_desc *desc);

/*
 Releases one registration of a device. False, with an error, while a plan uses it: a scheduler's until it is reset or freed. When
 the call is back, none of its callbacks runs any more. Not from a callback.
 */
bool ggml_ext_release(ggml_backend_dev_t device, const char *name);

/*
 A scope: operators, kernels and rules that name it in their description are released together, as a plugin's are before it is
 unloaded.
 */
ggml_ext_scope_t ggml_ext_scope_new(void);

/*
 Releases all registrations of a scope, and the scope. False, with an error, while a plan uses one of them or a kernel of another
 scope is for one of its operators; then all stay. When the call is back, no callback of the scope runs any more. Nodes of its
 operators can still be read, and are computed no more. Not from a callback.
 */
bool ggml_ext_scope_release(ggml_ext_scope_t scope);

/*
 Says that the answers of a registration's callbacks may have changed (`name` NULL: of all of the device): plans made before are
 stale, and computing them is an error until their graphs are allocated anew.
 */
bool ggml_ext_invalidate(ggml_backend_dev_t device, const char *name);

/*
 Whether the device's own code, without registrations, can compute the node. `ggml_backend_dev_supports_op` counts kernels for single
 nodes in.
 */
bool ggml_ext_dev_supports_native_op(ggml_backend_dev_t device,
                                     const struct ggml_tensor *op);

/*
 Moves the `count` nodes of `graph` from `first` on to just before node `before`, which comes after them. False, with an error,
 and nothing moved: a node between needs one of them, writes where they read or write, or has effects that are not known.
 */
bool ggml_ext_graph_delay(struct ggml_cgraph *graph, int first, int count, int before);

/* How often what happened to a registration. `out->struct_size` is set by the caller. False, with an error: there is no such. */
bool ggml_ext_counters(ggml_backend_dev_t device, const char *name, struct ggml_ext_counters *out);

/*
 Switches the timing of steps on or off, in the whole process. It is on from the start when the environment variable
 `GGML_EXT_PROFILE` is set.
 */
void ggml_ext_set_profiling(bool on);

/*
 Runs `task(ith, nth, user_data)` on each thread of a CPU backend, `ith` from 0 (the calling thread) to `nth - 1`, all at the same
 time, and returns when all are done. In `execute` these are the threads that compute the graph, so no second pool is made; they
 call nothing of the backend while they run the task. Outside of any computation they are those the backend is set to. The
 backend's abort callback is asked first: when it says stop, no task runs and the answer is `GGML_STATUS_ABORTED`.
 `GGML_STATUS_FAILED` with an error: `task` is NULL, `backend` is no CPU backend of this library, or it computes and the call does
 not come from the thread that is in `execute`; a task cannot share out again.
 */
enum ggml_status ggml_ext_cpu_parallel_v1(ggml_backend_t backend, ggml_ext_cpu_task_t task, void *user_data);

/*
 Explains the graph that a scheduler has at hand, after `ggml_backend_sched_alloc_graph` or a computation and until it is reset: for
 each node what computes it, which registrations were tried in vain and why, what gets no memory, scratch memory, what is copied
 between backends, and, while profiling is on, times. The graph and its tensors must still be there.

 As `snprintf`: answers the length of the text without its zero, and writes at most `size` bytes to `dst`, a zero at the end; with
 `dst` NULL and `size` 0 it measures. 0 with an error: there is no graph at hand, or no such format. Text is UTF-8; what of a
 tensor's name is none, or cannot be shown, is escaped.

 `GGML_EXT_EXPLAIN_JSON` is one object on one line. Keys are only added; a change that would break readers has another `version`.
 Nodes are numbered within their split, as in the texts of reasons, and steps through all splits.
 - `version`: 1.
 - `totals`: `splits`, `steps`, `nodes`, `launches`, `fusions` (launches for more than one node), `fused_nodes`, `native_ranges`,
   `native_nodes`, `skipped` (nodes without memory), `skipped_bytes` (of those that own it), `workspace` (bytes, over all backends),
   `refused` (registrations in `tried`), `mean_ns` (of one run, over all steps).
 - `splits`: list of `split` (number), `backend`, `device`, `stale` (null or why it must not run any more), `workspace` (bytes),
   `workspace_for` (a name or null), `forbidden` and `forced` (names in `GGML_EXT_FORBID` and `GGML_EXT_FORCE`), `copied`, `steps`.
 - `copied`: list of `name`, `split`, `node`, `from` (a backend), `bytes`: tensors copied from other backends before the split.
 - `steps`: list of `step` (number), `kind` ("native", "kernel", "fusion"), `launch` (null for native code), `runs` and `ns` (how
   often it was timed, nanoseconds of the calling thread in all), `nodes`.
 - `launch`: `registration`, `priority`, `flags` (of "capture_safe", "replay_reusable", "deterministic"), `forced`, `workspace`
   (bytes), `reads`: list of `name`, `split`, `node`, `overlaps` (the result lies over bytes of it).
 - `nodes`: list of `node` (number), `name`, `op`, `type`, `ne` (four numbers), `bytes`, `owns` (false: they are those of the tensor that it is a
   view of), `computed` (false for views, empty tensors, and nodes not flagged to be computed), `output`, `skipped`, `reads` (list of
   `name`, `split`, `node`), `tried`.
 - `tried`: list of `registration`, `nodes` (1 for a kernel; what `match` answered for a rule, 0 when it refused by itself), `reason`.
 - `split` and `node` of what is read are null when it is not computed in this graph.
 */
size_t ggml_ext_explain(ggml_backend_sched_t sched,
                        enum ggml_ext_explain_format format,
                        char *dst,
                        size_t size);

/*
 Checks the registration `name` of the backend's device: what it computes, against a reference, and what it must leave alone. True:
 no case failed. False, with an error: a case failed (`GGML_EXT_CODE_CHECK_FAILED`), or the check cannot be made; `report`, if it
 is not NULL, has the numbers in either case. The registration is forced in all cases but `chosen`; a case in which it cannot be
 launched shows nothing and says so. Contexts are the check's own, and so is memory, up to a few megabytes besides the tensors.

 Cases, in this order. When one of the first two fails in a way that all others would fail in, or crash in, it is the last:
 - `moved`: addresses that tensors have in prepare are not used in execute.
 - `measure`: it can be prepared before there is memory, and asks for no more scratch when there is.
 - `chosen`: it is used where nothing is forced.
 - `plain`, `unfused`: what it computes; for a fusion, against the single nodes.
 - `again`, `threads`: the same bits when run again, and on 1, 2, 3 threads. `GGML_EXT_KERNEL_DETERMINISTIC` is held to that; without
   the flag a difference is noted.
 - `contents`: one plan on other numbers.
 - `poison`: whatever was in scratch, in the result, and around the tensors.
 - `layout.offset`, `layout.rows`, `layout.planes`, `layout.permuted`, `layout.transposed`: inputs that are parts of larger tensors.
 - `empty`: dimensions of 0.
 - `special.nan`, `special.inf`, `special.tiny` (denormal numbers, zeros of both signs), `special.huge`: such numbers in the inputs.
 - `same_input`: one tensor as two inputs. `inplace`: the result over a source, where the operator may.
 - `scheduler`: in a scheduler's memory, three times.
 - `fusion.consumer`, `fusion.output`, `fusion.view`, `fusion.alias`: nodes that somebody else reads, also through a view, or that
   are outputs or lie over an input, are not fused, and results stay what they are.
 - `state`: what prepare makes is given back.
 - `guards`, `workspace`, `inputs`, `metadata`: in no run of all these is anything written but the result and scratch.
 */
bool ggml_ext_check(ggml_backend_t backend,
                    const char *name,
                    const struct ggml_ext_check_params *params,
                    struct ggml_ext_check_report *report);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif
