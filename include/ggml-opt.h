/* Training: datasets, gradients, optimizers, results. Written by tools/headers from the Rust definitions; do not edit. */

#ifndef GGML_OPT_H
#define GGML_OPT_H

#include "ggml.h"
#include "ggml-backend.h"


/* What is made as small as it can be. */
enum ggml_opt_loss_type {
  GGML_OPT_LOSS_TYPE_MEAN = 0,
  GGML_OPT_LOSS_TYPE_SUM = 1,
  GGML_OPT_LOSS_TYPE_CROSS_ENTROPY = 2,
  GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR = 3,
};

/* How much is computed: results; gradients too; a step of the optimizer too. */
enum ggml_opt_build_type {
  GGML_OPT_BUILD_TYPE_FORWARD = 10,
  GGML_OPT_BUILD_TYPE_GRAD = 20,
  GGML_OPT_BUILD_TYPE_OPT = 30,
};

/* How a step is made of gradients. */
enum ggml_opt_optimizer_type {
  GGML_OPT_OPTIMIZER_TYPE_ADAMW = 0,
  GGML_OPT_OPTIMIZER_TYPE_SGD = 1,
  GGML_OPT_OPTIMIZER_TYPE_COUNT = 2,
};

/* What is trained, and how; opaque. */
struct ggml_opt_context;

/* Data and labels to train on; opaque. */
struct ggml_opt_dataset;

/* Losses and predictions of the batches so far; opaque. */
struct ggml_opt_result;

/* Handle of a dataset. */
typedef struct ggml_opt_dataset *ggml_opt_dataset_t;

/* Handle of an optimization context. */
typedef struct ggml_opt_context *ggml_opt_context_t;

/* Settings of AdamW. */
struct ggml_opt_adamw_params {
  /* Learning rate, above 0. */
  float alpha;
  /* Share of the first moment that is kept, 0 to 1. */
  float beta1;
  /* Share of the second moment that is kept, 0 to 1. */
  float beta2;
  /* Keeps the division finite. */
  float eps;
  /* Weight decay, 0 to 1. */
  float wd;
};

/* Settings of stochastic gradient descent. */
struct ggml_opt_sgd_params {
  /* Learning rate, above 0. */
  float alpha;
  /* Weight decay, 0 to 1. */
  float wd;
};

/* Settings of the optimizers, of which one is used. */
struct ggml_opt_optimizer_params {
  /* Of AdamW. */
  struct ggml_opt_adamw_params adamw;
  /* Of stochastic gradient descent. */
  struct ggml_opt_sgd_params sgd;
};

/* Asked for the settings before each step. */
typedef struct ggml_opt_optimizer_params (*ggml_opt_get_optimizer_params)(void *userdata);

/* What `ggml_opt_init` is told. */
struct ggml_opt_params {
  /* Computes the graphs. */
  ggml_backend_sched_t backend_sched;
  /* With `inputs` and `outputs`: graphs are built here once. NULL: `ggml_opt_prepare_alloc` gives a new graph for each evaluation. */
  struct ggml_context *ctx_compute;
  /* What data go into: [ne_datapoint, ndata_batch]. */
  struct ggml_tensor *inputs;
  /* What is compared with the labels: [ne_label, ndata_batch]. */
  struct ggml_tensor *outputs;
  /* What is made small. */
  enum ggml_opt_loss_type loss_type;
  /* How much there is room for. */
  enum ggml_opt_build_type build_type;
  /* Backward passes whose gradients are summed up for one step. */
  int32_t opt_period;
  /* Asked for the settings of the optimizer. */
  ggml_opt_get_optimizer_params get_opt_pars;
  /* Handed to `get_opt_pars`. */
  void *get_opt_pars_ud;
  /* How steps are made. */
  enum ggml_opt_optimizer_type optimizer;
};

/* Handle of a result. */
typedef struct ggml_opt_result *ggml_opt_result_t;

/* Called after each batch of an epoch: `ibatch` of `ibatch_max` are done, the first began at `t_start_us`. */
typedef void (*ggml_opt_epoch_callback)(bool train,
                                        ggml_opt_context_t opt_ctx,
                                        ggml_opt_dataset_t dataset,
                                        ggml_opt_result_t result,
                                        int64_t ibatch,
                                        int64_t ibatch_max,
                                        int64_t t_start_us);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 A dataset of `ndata` datapoints of `ne_datapoint` elements of format `type_data`, and as many labels of `ne_label` elements of
 format `type_label`; no labels if `ne_label` is 0. Datapoints are shuffled and copied in shards of `ndata_shard`; what does not fill a
 shard at the end is not used. NULL when there can be none or no memory for it.
 */
ggml_opt_dataset_t ggml_opt_dataset_init(enum ggml_type type_data,
                                         enum ggml_type type_label,
                                         int64_t ne_datapoint,
                                         int64_t ne_label,
                                         int64_t ndata,
                                         int64_t ndata_shard);

/* Frees a dataset and its tensors. */
void ggml_opt_dataset_free(ggml_opt_dataset_t dataset);

/* Datapoints of a dataset. */
int64_t ggml_opt_dataset_ndata(ggml_opt_dataset_t dataset);

/* The data: [ne_datapoint, ndata], in the host's memory. */
struct ggml_tensor *ggml_opt_dataset_data(ggml_opt_dataset_t dataset);

/* The labels: [ne_label, ndata], in the host's memory. NULL when there are none. */
struct ggml_tensor *ggml_opt_dataset_labels(ggml_opt_dataset_t dataset);

/*
 Shuffles the first `idata` datapoints, a whole number of shards, or all if it is negative, with the generator of `opt_ctx`. The
 order is the same for each new context, and that of ggml built with GNU's C++ library.
 */
void ggml_opt_dataset_shuffle(ggml_opt_context_t opt_ctx, ggml_opt_dataset_t dataset, int64_t idata);

/*
 Copies batch `ibatch` to `data_batch` [ne_datapoint, ndata_batch] and `labels_batch` [ne_label, ndata_batch], which are contiguous
 and of the dataset's formats. `labels_batch` is NULL if there are no labels.
 */
void ggml_opt_dataset_get_batch(ggml_opt_dataset_t dataset,
                                struct ggml_tensor *data_batch,
                                struct ggml_tensor *labels_batch,
                                int64_t ibatch);

/* Copies batch `ibatch` of `nb_data_batch` bytes of data to `data_batch`, and its labels to `labels_batch`, NULL if there are none. */
void ggml_opt_dataset_get_batch_host(ggml_opt_dataset_t dataset,
                                     void *data_batch,
                                     size_t nb_data_batch,
                                     void *labels_batch,
                                     int64_t ibatch);

/* Constant settings that suit most cases. `userdata` is not used. */
struct ggml_opt_optimizer_params ggml_opt_get_default_optimizer_params(void *userdata);

/* The settings that `userdata` points to, a `ggml_opt_optimizer_params`. */
struct ggml_opt_optimizer_params ggml_opt_get_constant_optimizer_params(void *userdata);

/*
 What `ggml_opt_init` is told if nothing else is wanted: steps of AdamW with the default settings after each backward pass, and
 graphs that are given for each evaluation.
 */
struct ggml_opt_params ggml_opt_default_params(ggml_backend_sched_t backend_sched, enum ggml_opt_loss_type loss_type);

/*
 A context for training. With `ctx_compute`, `inputs` and `outputs` its graphs are built there at once, and `inputs` and all
 parameters must have their data; without, `ggml_opt_prepare_alloc` gives a graph for each evaluation. NULL when the graph
 cannot be differentiated, or there is no room or no memory.
 */
ggml_opt_context_t ggml_opt_init(struct ggml_opt_params params);

/* Frees a context, with accumulators and moments. The parameters are the caller's. */
void ggml_opt_free(ggml_opt_context_t opt_ctx);

/* Sets gradients to 0 and begins a new period; with `optimizer` forgets moments and counts steps from 1 again. */
void ggml_opt_reset(ggml_opt_context_t opt_ctx, bool optimizer);

/* Whether the graphs were built once, by `ggml_opt_init`. */
bool ggml_opt_static_graphs(ggml_opt_context_t opt_ctx);

/* What data go into. This and the following tensors are valid until the next `ggml_opt_alloc` unless graphs were built once. */
struct ggml_tensor *ggml_opt_inputs(ggml_opt_context_t opt_ctx);

/* What the model answers. */
struct ggml_tensor *ggml_opt_outputs(ggml_opt_context_t opt_ctx);

/* What outputs are compared with; NULL for a loss without labels. */
struct ggml_tensor *ggml_opt_labels(ggml_opt_context_t opt_ctx);

/* The loss, one f32. */
struct ggml_tensor *ggml_opt_loss(ggml_opt_context_t opt_ctx);

/* The class predicted for each datapoint, i32; NULL but for cross entropy. */
struct ggml_tensor *ggml_opt_pred(ggml_opt_context_t opt_ctx);

/* How many predictions are right, one i64; NULL but for cross entropy. */
struct ggml_tensor *ggml_opt_ncorrect(ggml_opt_context_t opt_ctx);

/* What the gradient of a node of the forward pass is summed up in, or NULL. */
struct ggml_tensor *ggml_opt_grad_acc(ggml_opt_context_t opt_ctx, struct ggml_tensor *node);

/* The optimizer of a context. */
enum ggml_opt_optimizer_type ggml_opt_context_optimizer_type(ggml_opt_context_t opt_ctx);

/* "adamw", "sgd", or "undefined". */
const char *ggml_opt_optimizer_name(enum ggml_opt_optimizer_type optimizer);

/* An empty result. */
ggml_opt_result_t ggml_opt_result_init(void);

/* Frees a result. */
void ggml_opt_result_free(ggml_opt_result_t result);

/* Empties a result. */
void ggml_opt_result_reset(ggml_opt_result_t result);

/* Datapoints that went into a result. */
void ggml_opt_result_ndata(ggml_opt_result_t result, int64_t *ndata);

/*
 The loss: of a datapoint on average and the standard error of that, or for `GGML_OPT_LOSS_TYPE_SUM` of all datapoints and the
 standard deviation of batches. The second is NaN with fewer than two batches. Either pointer may be NULL.
 */
void ggml_opt_result_loss(ggml_opt_result_t result, double *loss, double *unc);

/* The predictions: one for each datapoint, as `ggml_opt_result_ndata` counts them, and none if the loss has no classes. */
void ggml_opt_result_pred(ggml_opt_result_t result, int32_t *pred);

/* The share of right predictions and its uncertainty; NaN where they are not known. Either pointer may be NULL. */
void ggml_opt_result_accuracy(ggml_opt_result_t result, double *accuracy, double *unc);

/*
 Gives a context that has no graphs of its own the forward graph of the next evaluation. All graphs of a context have the same
 parameters in the same order. `ctx_compute` takes the loss, the backward pass and the steps, and must have room for them.
 */
void ggml_opt_prepare_alloc(ggml_opt_context_t opt_ctx,
                            struct ggml_context *ctx_compute,
                            struct ggml_cgraph *gf,
                            struct ggml_tensor *inputs,
                            struct ggml_tensor *outputs);

/*
 Gives the next evaluation its memory: a forward pass, or with `backward` also gradients, and a step of the optimizer where it
 ends a period. Inputs and labels are set afterwards.
 */
void ggml_opt_alloc(ggml_opt_context_t opt_ctx, bool backward);

/*
 Computes what was allocated and adds it to `result`, which may be NULL. Only backward passes count for the period. When the
 settings are refused nothing is computed, and it can be called again.
 */
void ggml_opt_eval(ggml_opt_context_t opt_ctx, ggml_opt_result_t result);

/*
 Trains on the first `idata_split` datapoints, all if it is negative, and evaluates the others. Results may be NULL; callbacks,
 which may be NULL too, are called after each batch. Ends at the first error.
 */
void ggml_opt_epoch(ggml_opt_context_t opt_ctx,
                    ggml_opt_dataset_t dataset,
                    ggml_opt_result_t result_train,
                    ggml_opt_result_t result_eval,
                    int64_t idata_split,
                    ggml_opt_epoch_callback callback_train,
                    ggml_opt_epoch_callback callback_eval);

/* A callback for `ggml_opt_epoch` that writes a line with a bar, loss, accuracy and times to standard error. */
void ggml_opt_epoch_callback_progress_bar(bool train,
                                          ggml_opt_context_t opt_ctx,
                                          ggml_opt_dataset_t dataset,
                                          ggml_opt_result_t result,
                                          int64_t ibatch,
                                          int64_t ibatch_max,
                                          int64_t t_start_us);

/*
 Trains the model from `inputs` [ne_datapoint, ndata_batch] to `outputs` ([ne_label, ndata_batch] if there are labels) for `nepoch`
 epochs. Steps are made after `nbatch_logical` datapoints, a multiple of `ndata_batch`; a share `val_split`, from 0 to below 1, of the
 dataset is only evaluated. `get_opt_pars` is given a pointer to the number of the epoch, int64_t, from 1. `silent`: no lines on
 standard error. Ends at the first error.
 */
void ggml_opt_fit(ggml_backend_sched_t backend_sched,
                  struct ggml_context *ctx_compute,
                  struct ggml_tensor *inputs,
                  struct ggml_tensor *outputs,
                  ggml_opt_dataset_t dataset,
                  enum ggml_opt_loss_type loss_type,
                  enum ggml_opt_optimizer_type optimizer,
                  ggml_opt_get_optimizer_params get_opt_pars,
                  int64_t nepoch,
                  int64_t nbatch_logical,
                  float val_split,
                  bool silent);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif
