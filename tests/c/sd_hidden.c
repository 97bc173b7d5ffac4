/* A program that declares functions of these names itself. */
#define GGML_NO_SD_BUILDERS
#include "check.h"

static struct ggml_tensor * ggml_rope_apply(struct ggml_context * ctx, struct ggml_tensor * a, int other) {
    (void) ctx;
    return other == 3 ? a : NULL;
}

int main(void) {
    struct ggml_context * ctx = ggml_init((struct ggml_init_params){ .mem_size = 1 << 16, .no_alloc = true });
    struct ggml_tensor *  a   = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4);
    CHECK(ggml_rope_apply(ctx, a, 3) == a, "GGML_NO_SD_BUILDERS: the program's own function of the name");
    ggml_free(ctx);
    return check_done();
}
