/* What the example registers. custom-op links it in; plugin makes a shared library of it. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include "ggml-ext.h"

/* An operator that ggml does not have: y = L * tanh(x / L), where L, one for each channel (dimension 0), is `factor` times the root
 * mean square of the channel over all rows, and not below `least`. */
#define EXAMPLE_SOFTCLIP "example.softclip.v1"

/* Its attributes: plain values, copied into the node. */
struct example_softclip_attrs {
    float factor;
    float least;
};

/* Names of the registrations on the device: of the kernel for it, of a kernel in place of ggml's own SILU where tensors are small, and
 * of a fusion of MUL, MUL, ADD. */
#define EXAMPLE_SOFTCLIP_CPU "example.softclip_cpu"
#define EXAMPLE_SILU_CPU     "example.silu_cpu"
#define EXAMPLE_BLEND_CPU    "example.blend_cpu"

/* A node of the operator. NULL, with an error (ggml_ext_last_error), when it refuses. */
struct ggml_tensor * example_softclip(struct ggml_context * ctx, struct ggml_tensor * x, float factor, float least);

/* Registers all of it for a CPU device, in `scope`. False, with the reason on stderr: release the scope, some may be registered. */
bool example_register(ggml_backend_dev_t device, ggml_ext_scope_t scope);

#endif
