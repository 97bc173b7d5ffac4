/* ggml-sd.h and an application with definitions of its own: names that it has taken stay its own, and it is told. */
#include "check.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"

#include <string.h>

static int n_own;

static bool infer(struct ggml_tensor * const * src, int n_src, const void * attrs, struct ggml_ext_output * out, void * user_data) {
    (void) attrs;
    (void) user_data;
    n_own++;
    memcpy(out->ne, src[0]->ne, sizeof out->ne);
    return n_src == 1 || ggml_ext_refuse("one source");
}
static bool supports(const struct ggml_ext_step * step, void * user_data) {
    (void) step;
    (void) user_data;
    return ggml_ext_refuse("nothing");
}
static enum ggml_status execute(const struct ggml_ext_run * run, void * user_data) {
    (void) run;
    (void) user_data;
    return GGML_STATUS_FAILED;
}

int main(void) {
    check_quiet();
    struct ggml_context * ctx = ggml_init((struct ggml_init_params){ .mem_size = 1 << 20, .no_alloc = true });
    ggml_backend_t        cpu = ggml_backend_cpu_init();
    ggml_backend_dev_t    dev = ggml_backend_get_device(cpu);

    GGML_EXT_INIT(ggml_ext_op_desc, op);
    op.name      = "sd.modulate.v1";
    op.attr_size = 4;
    op.infer     = infer;
    CHECK(ggml_ext_register_op(&op), "the application's own operator");
    GGML_EXT_INIT(ggml_ext_kernel_desc, kernel);
    kernel.name     = "sd.rope_apply.cpu";
    kernel.op       = GGML_OP_SQR;
    kernel.supports = supports;
    kernel.execute  = execute;
    CHECK(ggml_ext_register_kernel(dev, &kernel), "the application's own kernel");

    for (int time = 0; time < 2; time++) {
        bool all = true;
        CHECK_ERROR(all = ggml_sd_register_extensions(dev), GGML_EXT_CODE_NAME_TAKEN, "taken names", "sd.modulate.v1", "sd.rope_apply.cpu", NULL);
        CHECK(!all, "taken names: false");
        CHECK_ERROR(all = ggml_sd_register_extensions(NULL), GGML_EXT_CODE_NAME_TAKEN, "taken names, all devices", "sd.modulate.v1", NULL);
        CHECK(!all, "taken names, all devices: false");
    }
    struct ggml_tensor * x = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, 64, 4, 3, 1), *y = x;
    CHECK_ERROR(y = ggml_sd_modulate(ctx, x, NULL, x), GGML_EXT_CODE_NAME_TAKEN, "the builder of a taken name", "ggml_sd_modulate", "sd.modulate.v1", NULL);
    CHECK(y == NULL && n_own == 0, "the builder of a taken name: NULL, and the application is not asked");
    const int attrs = 7;
    CHECK(ggml_ext_op_create(ctx, "sd.modulate.v1", &x, 1, &attrs, sizeof attrs) != NULL && n_own == 1, "the application's operator is its own");
    y = ggml_quantize_i8_convrot(ctx, x, 64);
    CHECK(y && ggml_backend_dev_supports_op(dev, y), "the others are there, with their kernels");
    y = ggml_rope_apply(ctx, x, ggml_new_tensor_4d(ctx, GGML_TYPE_F32, 2, 2, 32, 3), true);
    CHECK(y && !ggml_backend_dev_supports_op(dev, y), "a taken kernel's name leaves the operator without one");

    /* the library's names cannot be taken any more */
    op.name = "sd.linear_i8.v1";
    check_log_errors = 0;
    CHECK(!ggml_ext_register_op(&op) && check_error_code() == GGML_EXT_CODE_NAME_TAKEN, "who comes later is refused");

    ggml_backend_free(cpu);
    ggml_free(ctx);
    return check_done();
}
