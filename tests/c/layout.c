/* Sizes and offsets that programs compiled elsewhere count on. */
#include "check.h"
#include "ggml-alloc.h"
#include "ggml-backend-impl.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml/src/ggml-impl.h"
#include "gguf.h"

#define SIZE(type, n) CHECK(sizeof(type) == (n), "sizeof " #type ": %zu", sizeof(type))
#define AT(type, member, n) CHECK(offsetof(type, member) == (n), #type "." #member ": %zu", offsetof(type, member))

int main(void) {
    CHECK(GGML_MAX_NAME == 160 || GGML_MAX_NAME == 128 || GGML_MAX_NAME == 64, "a known GGML_MAX_NAME: %d", GGML_MAX_NAME);
    SIZE(struct ggml_tensor, 256 + (GGML_MAX_NAME + 16 + 15) / 16 * 16);
    CHECK(GGML_TENSOR_SIZE == sizeof(struct ggml_tensor), "GGML_TENSOR_SIZE");
    AT(struct ggml_tensor, type, 0);
    AT(struct ggml_tensor, buffer, 8);
    AT(struct ggml_tensor, ne, 16);
    AT(struct ggml_tensor, nb, 48);
    AT(struct ggml_tensor, op, 80);
    AT(struct ggml_tensor, op_params, 84);
    AT(struct ggml_tensor, flags, 148);
    AT(struct ggml_tensor, src, 152);
    AT(struct ggml_tensor, view_src, 232);
    AT(struct ggml_tensor, view_offs, 240);
    AT(struct ggml_tensor, data, 248);
    AT(struct ggml_tensor, name, 256);
    AT(struct ggml_tensor, extra, 256 + GGML_MAX_NAME);
    CHECK(ggml_tensor_overhead() == sizeof(struct ggml_tensor) + 32, "overhead of a tensor");

    SIZE(struct ggml_cgraph, 96);
    AT(struct ggml_cgraph, size, 0);
    AT(struct ggml_cgraph, n_nodes, 4);
    AT(struct ggml_cgraph, n_leafs, 8);
    AT(struct ggml_cgraph, nodes, 16);
    AT(struct ggml_cgraph, grads, 24);
    AT(struct ggml_cgraph, grad_accs, 32);
    AT(struct ggml_cgraph, leafs, 40);
    AT(struct ggml_cgraph, use_counts, 48);
    AT(struct ggml_cgraph, visited_hash_set, 56);
    AT(struct ggml_cgraph, order, 80);
    AT(struct ggml_cgraph, uid, 88);

    SIZE(struct ggml_hash_set, 24);
    SIZE(struct ggml_init_params, 24);
    SIZE(struct ggml_type_traits, 56);
    SIZE(struct ggml_threadpool_params, 512 + 4 + 4 + 4 + 4);
    SIZE(struct ggml_cplan, 56);
    SIZE(struct ggml_type_traits_cpu, 32);
    SIZE(struct ggml_tallocr, 32);
    SIZE(struct gguf_init_params, 16);
    SIZE(struct ggml_backend_dev_caps, 5);
    SIZE(struct ggml_backend_dev_props, 56);
    SIZE(struct ggml_backend_feature, 16);
    SIZE(struct ggml_backend_buffer_type, 8 * 8 + 16);
    SIZE(struct ggml_backend_buffer, 11 * 8 + 32);
    SIZE(struct ggml_backend, 8 + 16 * 8 + 16);
    SIZE(struct ggml_backend_device, 15 * 8 + 16);
    SIZE(struct ggml_backend_reg, 8 + 4 * 8 + 8);
    CHECK(GGML_BACKEND_API_VERSION == 3, "interface version of modules");

    SIZE(enum ggml_type, 4);
    SIZE(enum ggml_op, 4);
    CHECK(GGML_OP_COUNT == 101 && GGML_TYPE_COUNT == 45 && GGUF_TYPE_COUNT == 13, "counts");

    /* what the library answers agrees with the header it was built with */
    struct ggml_context * ctx = ggml_init((struct ggml_init_params){ 4096, NULL, false });
    struct ggml_tensor *  t   = ggml_new_tensor_3d(ctx, GGML_TYPE_F16, 2, 3, 5);
    CHECK(t->type == GGML_TYPE_F16 && t->ne[0] == 2 && t->ne[1] == 3 && t->ne[2] == 5 && t->ne[3] == 1, "ne");
    CHECK(t->nb[0] == 2 && t->nb[1] == 4 && t->nb[2] == 12 && t->nb[3] == 60, "nb");
    CHECK(t->op == GGML_OP_NONE && t->flags == 0 && t->view_src == NULL && t->buffer == NULL && t->extra == NULL, "the rest is zero");
    CHECK((char *) t->data == (char *) t + sizeof *t, "data behind the tensor");
    CHECK(ggml_used_mem(ctx) == ggml_tensor_overhead() + 64, "used: tensor and padded data");
    CHECK(strcmp(ggml_version(), "") != 0 && ggml_commit() != NULL, "version %s", ggml_version());
    ggml_free(ctx);
    return check_done();
}
