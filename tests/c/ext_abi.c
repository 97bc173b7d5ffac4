/* What crosses the border of ggml-ext.h: structures by their size (ABI-1), errors (ABI-2), promises of a registration (ABI-7). */
#include "ext_util.h"

#include <pthread.h>
#include <stddef.h>

static struct team cpu;

static struct probe kernel_of(const char * name) { return (struct probe){ .name = name, .op = GGML_OP_SQR }; }

/* ABI-1 */

/* A description in a larger structure, as a newer header has it. */
struct newer {
    struct ggml_ext_kernel_desc now;
    uint64_t                    later[4];
};

static bool register_sized(struct probe * p, size_t size, uint64_t later) {
    struct newer n;
    memset(&n, 0, sizeof n);
    p->device         = cpu.dev;
    n.now             = probe_desc(p);
    n.now.struct_size = size;
    n.later[3]        = later;
    return ggml_ext_register_kernel(cpu.dev, &n.now);
}

static void sizes(void) {
    const size_t now = sizeof(struct ggml_ext_kernel_desc);
    struct probe p   = kernel_of("sized");
    FAILS(!register_sized(&p, 0, 0), GGML_EXT_CODE_BAD_STRUCT, NULL, NULL, "ABI-1: struct_size not set", "ggml_ext_kernel_desc", "struct_size is 0");
    FAILS(!register_sized(&p, now - 1, 0), GGML_EXT_CODE_BAD_STRUCT, NULL, NULL, "ABI-1: shorter than the first version", "ggml_ext_kernel_desc");
    FAILS(!register_sized(&p, sizeof(struct newer), 1), GGML_EXT_CODE_BAD_STRUCT, "sized", NULL, "ABI-1: a member that the library does not know is set", "ggml_ext_kernel_desc");
    FAILS(!register_sized(&p, SIZE_MAX, 0), GGML_EXT_CODE_BAD_STRUCT, NULL, NULL, "ABI-1: a size that is none", "ggml_ext_kernel_desc");
    FAILS(!ggml_ext_register_kernel(cpu.dev, NULL), GGML_EXT_CODE_NULL_ARGUMENT, NULL, NULL, "ABI-1: no structure", "ggml_ext_kernel_desc");
    CHECK(register_sized(&p, sizeof(struct newer), 0), "ABI-1: a newer structure with zeros means what it meant before");
    probe_end(&p, "ABI-1");
    struct {
        struct ggml_ext_op_desc now;
        uint64_t                later;
    } op;
    memset(&op, 0, sizeof op);
    op.now.name  = "test.sized.v1";
    op.now.infer = affine_infer;
    FAILS(!ggml_ext_register_op(&op.now), GGML_EXT_CODE_BAD_STRUCT, NULL, NULL, "ABI-1: an operator without struct_size", "ggml_ext_op_desc");
    op.now.struct_size = sizeof op;
    op.later           = 7;
    FAILS(!ggml_ext_register_op(&op.now), GGML_EXT_CODE_BAD_STRUCT, "test.sized.v1", NULL, "ABI-1: an operator with a member of tomorrow", "ggml_ext_op_desc");
    op.later = 0;
    CHECK(ggml_ext_register_op(&op.now), "ABI-1: an operator in a newer structure");
    FAILS(!ggml_ext_register_op(NULL), GGML_EXT_CODE_NULL_ARGUMENT, NULL, NULL, "ABI-1: no operator", "ggml_ext_op_desc");

    /* what the library writes: as far as the caller's structure goes */
    struct ggml_ext_error e;
    memset(&e, 0x77, sizeof e);
    e.struct_size = offsetof(struct ggml_ext_error, text);
    CHECK(ggml_ext_last_error(&e) && e.code == GGML_EXT_CODE_NULL_ARGUMENT && e.struct_size == offsetof(struct ggml_ext_error, text), "ABI-1: an older structure gets its members");
    CHECK((uintptr_t) e.text == UINTPTR_MAX / 255 * 0x77 && (uintptr_t) e.node == UINTPTR_MAX / 255 * 0x77, "ABI-1: and nothing behind it is written");
    struct {
        struct ggml_ext_error now;
        uint64_t              later;
    } more;
    memset(&more, 0x77, sizeof more);
    more.now.struct_size = sizeof more;
    CHECK(ggml_ext_last_error(&more.now) && more.now.text && more.now.node == NULL && more.later == UINT64_MAX / 255 * 0x77, "ABI-1: members of a newer structure are left alone");
    e.struct_size = 0;
    CHECK(!ggml_ext_last_error(&e) && !ggml_ext_last_error(NULL), "ABI-1: no structure for an error");
    CHECK(probe_register(&p, cpu.dev), "ABI-1: a registration");
    struct ggml_ext_counters c;
    memset(&c, 0x77, sizeof c);
    c.struct_size = offsetof(struct ggml_ext_counters, fused_nodes);
    CHECK(ggml_ext_counters(cpu.dev, "sized", &c) && c.selected == 0 && c.ran == 0 && c.fused_nodes == UINT64_MAX / 255 * 0x77, "ABI-1: older counters");
    c.struct_size = 0;
    FAILS(!ggml_ext_counters(cpu.dev, "sized", &c), GGML_EXT_CODE_BAD_STRUCT, "sized", NULL, "ABI-1: counters without struct_size");
    FAILS(!ggml_ext_counters(cpu.dev, "sized", NULL), GGML_EXT_CODE_NULL_ARGUMENT, "sized", NULL, "ABI-1: no counters");
    FAILS(!ggml_ext_counters(cpu.dev, "nobody", &c), GGML_EXT_CODE_UNKNOWN_NAME, "nobody", NULL, "ABI-2: counters of nobody", "CPU");
    probe_end(&p, "ABI-1");
    const uint64_t features = GGML_EXT_FEATURE_FUSION | GGML_EXT_FEATURE_SKIP_ALLOC | GGML_EXT_FEATURE_SCOPES | GGML_EXT_FEATURE_COUNTERS;
    CHECK(ggml_ext_api_version() == GGML_EXT_API_VERSION && (ggml_ext_features() & features) == features, "ABI-1: version %u, features %#llx", ggml_ext_api_version(), (unsigned long long) ggml_ext_features());
}

/* ABI-2: errors belong to their thread. What each function says is checked where the function is. */

static void * other_thread(void * arg) {
    bool * good = arg;
    GGML_EXT_INIT(ggml_ext_error, e);
    good[0] = !ggml_ext_last_error(&e);
    ggml_ext_release(cpu.dev, "of.the.other");
    good[1] = ext_error().code == GGML_EXT_CODE_UNKNOWN_NAME && strcmp(ext_error().registration, "of.the.other") == 0;
    return NULL;
}

static void errors(void) {
    pthread_t thread;
    bool      good[2] = { false, false };
    ggml_ext_release(cpu.dev, NULL);
    pthread_create(&thread, NULL, other_thread, good);
    pthread_join(thread, NULL);
    CHECK(good[0] && good[1] && ext_error().code == GGML_EXT_CODE_NULL_ARGUMENT, "ABI-2: each thread has its own last error");
    const char * text = ext_error().text;
    CHECK(ggml_ext_api_version() == 1 && ext_error().text == text, "ABI-2: calls that do not fail leave it");
    CHECK(!ggml_ext_refuse("x") && !ggml_ext_refuse(NULL), "ABI-2: ggml_ext_refuse outside of a callback does nothing");
    FAILS(!ggml_ext_invalidate(NULL, NULL), GGML_EXT_CODE_NULL_ARGUMENT, NULL, NULL, "ABI-2: no device");
    FAILS(!ggml_ext_invalidate(cpu.dev, "nobody"), GGML_EXT_CODE_UNKNOWN_NAME, "nobody", NULL, "ABI-2: an unknown registration");
    FAILS(!ggml_ext_dev_supports_native_op(NULL, NULL), GGML_EXT_CODE_NULL_ARGUMENT, NULL, NULL, "ABI-2: no device, no node");
    FAILS(!ggml_ext_dev_supports_native_op(cpu.dev, NULL), GGML_EXT_CODE_NULL_ARGUMENT, NULL, NULL, "ABI-2: no node");
    FAILS(!ggml_ext_register_kernel(NULL, NULL), GGML_EXT_CODE_NULL_ARGUMENT, NULL, NULL, "ABI-2: no device to register on");
    ggml_ext_set_profiling(true);
    ggml_ext_set_profiling(false);
}

/* ABI-7 */

static void promises(void) {
    struct probe                p = kernel_of("promise");
    struct ggml_ext_kernel_desc d;
    p.device = cpu.dev;
    d        = probe_desc(&p);
    FAILS(!ggml_ext_register_kernel_ex(cpu.dev, &d, 1u << 31), GGML_EXT_CODE_BAD_ARGUMENT, "promise", NULL, "ABI-7: a flag that the library does not know", "flags");
    FAILS(!ggml_ext_register_kernel_ex(cpu.dev, &d, GGML_EXT_KERNEL_REPLAY_REUSABLE), GGML_EXT_CODE_BAD_ARGUMENT, "promise", NULL, "CUR-2, ABI-7: one that needs another", "CAPTURE_SAFE");
    CHECK(ggml_ext_register_kernel_ex(cpu.dev, &d, GGML_EXT_KERNEL_DETERMINISTIC | GGML_EXT_KERNEL_CAPTURE_SAFE | GGML_EXT_KERNEL_REPLAY_REUSABLE), "CUR-1, ABI-7: a kernel that promises the same bits for any number of threads, and that it can be recorded");
    float first[64];
    int   differ = 0;
    for (int n = 1; n <= 7; n++) {
        struct ggml_tensor * w = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 96, 32), * x = input("x", 96, 2);
        struct ggml_tensor * y = ggml_sqr(ctx, ggml_soft_max(ctx, ggml_rms_norm(ctx, ggml_mul_mat(ctx, w, x), 1e-5f)));
        ggml_backend_buffer_t b = ggml_backend_alloc_ctx_tensors(ctx, cpu.main);
        fill(w, 2);
        fill(x, 1);
        ggml_backend_cpu_set_n_threads(cpu.main, n);
        struct ggml_cgraph * g = graph_of(y);
        differ += ggml_backend_graph_compute(cpu.main, g) != GGML_STATUS_SUCCESS || (n > 1 && memcmp(first, y->data, sizeof first) != 0);
        if (n == 1) {
            memcpy(first, y->data, sizeof first);
        }
        ggml_backend_buffer_free(b);
        ggml_reset(ctx);
    }
    CHECK(differ == 0 && p.n_execute == 7 && first[0] == first[0], "ABI-7: native kernels and this one: the same bits for 1 to 7 threads");
    probe_end(&p, "ABI-7");
}

int main(void) {
    check_quiet();
    ctx_open();
    cpu = team_cpu();
    sizes();
    errors();
    promises();
    team_free(&cpu);
    ggml_free(ctx);
    return check_done();
}
