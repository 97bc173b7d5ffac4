/* A program that is newer than this library's builders: it has functions of the same names with other parameters, visible to all
 * libraries of the process, and operators of the same versioned names, registered first. Neither side calls the other's. */
#define GGML_NO_SD_BUILDERS
#include "check.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"

#include <dlfcn.h>

/* the program's own builders */

static int n_built, n_inferred, n_executed;

struct ggml_tensor * ggml_quantize_i8_convrot(struct ggml_context * ctx, struct ggml_tensor * a, int group, double shift);
struct ggml_tensor * ggml_quantize_i8_convrot(struct ggml_context * ctx, struct ggml_tensor * a, int group, double shift) {
    n_built++;
    const int32_t attrs[2] = { group, (int32_t) shift };
    return ggml_ext_op_create(ctx, "sd.quantize_i8_convrot.v1", &a, 1, attrs, sizeof attrs);
}
struct ggml_tensor * ggml_mul_mat_i8_tensorwise(struct ggml_context * ctx, int group, struct ggml_tensor * const * all, struct ggml_tensor * input_scale);
struct ggml_tensor * ggml_mul_mat_i8_tensorwise(struct ggml_context * ctx, int group, struct ggml_tensor * const * all, struct ggml_tensor * input_scale) {
    n_built++;
    struct ggml_tensor * src[2] = { all[0], input_scale };
    const int32_t attrs[2]      = { group, 1 };
    return ggml_ext_op_create(ctx, "sd.linear_i8.v1", src, 2, attrs, sizeof attrs);
}
int ggml_rope_apply(void);
int ggml_rope_apply(void) {
    n_built++;
    return 3;
}
double ggml_sage_attn = 0.5; /* not even a function */

/* and operators: a copy of the first source, times the first attribute */

static bool infer(struct ggml_tensor * const * src, int n_src, const void * attrs, struct ggml_ext_output * out, void * user_data) {
    (void) attrs;
    (void) user_data;
    n_inferred++;
    out->type = GGML_TYPE_F32;
    memcpy(out->ne, src[0]->ne, sizeof out->ne);
    return n_src > 0;
}
static bool supports(const struct ggml_ext_step * step, void * user_data) {
    (void) user_data;
    return step->n_nodes == 1;
}
static enum ggml_status execute(const struct ggml_ext_run * run, void * user_data) {
    (void) user_data;
    n_executed++;
    struct ggml_tensor * node = run->step->nodes[0];
    int32_t              attrs[2];
    if (!ggml_ext_op_attrs(node, attrs, sizeof attrs)) {
        return GGML_STATUS_FAILED;
    }
    for (int64_t i = 0; i < ggml_nelements(node); i++) {
        ((float *) node->data)[i] = (float) attrs[0] * ((const float *) node->src[0]->data)[i];
    }
    return GGML_STATUS_SUCCESS;
}

static const char * const names[] = { "sd.quantize_i8_convrot.v1", "sd.linear_i8.v1", "sd.linear_w4_convrot.v1", "sd.modulate.v1", "sd.rope_apply.v1", "sd.sage_attn.v1", "sd.sol_attn.v1" };

int main(void) {
    check_quiet();
    ggml_backend_t cpu = ggml_backend_cpu_init();
    for (int i = 0; i < 7; i++) {
        GGML_EXT_INIT(ggml_ext_op_desc, op);
        op.name      = names[i];
        op.attr_size = 8;
        op.infer     = infer;
        CHECK(ggml_ext_register_op(&op), "the program's %s", names[i]);
        char kernel_name[64];
        snprintf(kernel_name, sizeof kernel_name, "own.%d", i);
        GGML_EXT_INIT(ggml_ext_kernel_desc, kernel);
        kernel.name     = kernel_name;
        kernel.op       = GGML_OP_CUSTOM;
        kernel.op_name  = names[i];
        kernel.supports = supports;
        kernel.execute  = execute;
        CHECK(ggml_ext_register_kernel(ggml_backend_get_device(cpu), &kernel), "its kernel");
    }

    struct ggml_context * ctx = ggml_init((struct ggml_init_params){ .mem_size = 1 << 20 });
    struct ggml_tensor *  a   = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 64, 3);
    for (int i = 0; i < 192; i++) {
        ((float *) a->data)[i] = (float) i;
    }
    struct ggml_tensor * y = ggml_mul_mat_i8_tensorwise(ctx, 5, &a, ggml_quantize_i8_convrot(ctx, a, 2, 7.0));
    CHECK(y && n_built == 2 && n_inferred == 2 && ggml_rope_apply() == 3 && ggml_sage_attn == 0.5, "the program's own builders");
    struct ggml_cgraph * graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, y);
    CHECK(ggml_backend_graph_compute(cpu, graph) == GGML_STATUS_SUCCESS && n_executed == 2, "the program's own kernels");
    CHECK(((float *) y->data)[191] == 5 * 191, "and their numbers");

    /* the library's builders, found past the program's: they neither call the program's functions nor make its operators' nodes */
    void * library = dlopen("libggml.so.0", RTLD_NOW | RTLD_NOLOAD);
    CHECK(library != NULL, "the library is loaded");
    const char * const builders[] = { "ggml_quantize_i8_convrot", "ggml_mul_mat_i8_tensorwise", "ggml_rope_apply" };
    for (int i = 0; library && i < 3; i++) {
        CHECK(dlsym(library, builders[i]) && dlsym(library, builders[i]) != dlsym(RTLD_DEFAULT, builders[i]), "%s: the process sees the program's", builders[i]);
    }
    struct ggml_tensor * (*linear)(struct ggml_context *, struct ggml_tensor *, struct ggml_tensor *, struct ggml_tensor *, struct ggml_tensor *, int) = NULL;
    struct ggml_tensor * (*linear4)(struct ggml_context *, struct ggml_tensor *, struct ggml_tensor *, struct ggml_tensor *, struct ggml_tensor *, struct ggml_tensor *, struct ggml_tensor *, int, int) = NULL;
    struct ggml_tensor * (*rope)(struct ggml_context *, struct ggml_tensor *, struct ggml_tensor *, bool) = NULL;
    bool (*register_all)(struct ggml_backend_device *)                                                    = NULL;
    if (library) {
        *(void **) &linear       = dlsym(library, "ggml_mul_mat_i8_tensorwise");
        *(void **) &linear4      = dlsym(library, "ggml_mul_mat_w4_convrot");
        *(void **) &rope         = dlsym(library, "ggml_rope_apply");
        *(void **) &register_all = dlsym(library, "ggml_sd_register_extensions");
    }
    if (CHECK(linear && linear4 && rope && register_all, "the library's functions")) {
        const int built = n_built, inferred = n_inferred;
        struct ggml_tensor *w = ggml_new_tensor_2d(ctx, GGML_TYPE_I8, 64, 2), *pe = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, 2, 2, 32, 1);
        struct ggml_tensor *w4 = ggml_new_tensor_2d(ctx, GGML_TYPE_I8, 32, 2), *s = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 2), *n = a;
        CHECK_ERROR(n = linear(ctx, w, a, s, NULL, 64), GGML_EXT_CODE_NAME_TAKEN, "the library's linear layer", "sd.linear_i8.v1");
        CHECK(n == NULL, "the library's linear layer: none");
        CHECK_ERROR(n = linear4(ctx, w4, a, s, NULL, NULL, NULL, 1, 64), GGML_EXT_CODE_NAME_TAKEN, "the library's layer of 4 bits", "sd.quantize_i8_convrot.v1");
        CHECK(n == NULL, "the library's layer of 4 bits: none");
        CHECK_ERROR(n = rope(ctx, ggml_reshape_4d(ctx, a, 64, 3, 1, 1), pe, true), GGML_EXT_CODE_NAME_TAKEN, "the library's rotation", "sd.rope_apply.v1");
        CHECK(n == NULL, "the library's rotation: none");
        bool all = true;
        CHECK_ERROR(all = register_all(NULL), GGML_EXT_CODE_NAME_TAKEN, "registration", names[0], names[6]);
        CHECK(!all && n_built == built && n_inferred == inferred, "the library asks the program nothing");
        CHECK(ggml_backend_graph_compute(cpu, graph) == GGML_STATUS_SUCCESS && n_executed == 4, "the program's kernels stay");
        dlclose(library);
    }
    ggml_backend_free(cpu);
    ggml_free(ctx);
    return check_done();
}
