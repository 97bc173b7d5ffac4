#include "internal.h"

#include <stdio.h>
#include <string.h>

/* Registrations keep its address, so it must live as long as they do: as long as this code is loaded. */
static struct example_threads threads;

bool example_register(ggml_backend_dev_t device, ggml_ext_scope_t scope) {
    ggml_backend_reg_t reg  = ggml_backend_dev_backend_reg(device);
    void *             proc = reg ? ggml_backend_reg_get_proc_address(reg, "ggml_ext_cpu_parallel_v1") : NULL;
    if (!proc) {
        fprintf(stderr, "example: the device is not a CPU of a library with ggml_ext_cpu_parallel_v1\n");
        return false;
    }
    /* ISO C has no cast from an object's pointer to a function's; POSIX promises that they have the same form */
    memcpy(&threads.parallel, &proc, sizeof proc);
    if (example_register_softclip(device, scope, &threads) && example_register_silu(device, scope)
            && example_register_blend(device, scope, &threads)) {
        return true;
    }
    struct ggml_ext_error error = { .struct_size = sizeof error };
    fprintf(stderr, "example: %s\n", ggml_ext_last_error(&error) ? error.text : "no reason is known");
    return false;
}
