/* ggml's CPU module: loaded, asked, computed on, beside the library's own CPU; alone, in the scheduler, in its own kind of memory;
 * unloaded and loaded again. argv: the module, a folder with the modules. */
#include "graphs.h"

static void facts(ggml_backend_reg_t reg) {
    CHECK(strcmp(ggml_backend_reg_name(reg), "CPU") == 0 && reg != ggml_backend_cpu_reg(), "the module's entry");
    CHECK(ggml_backend_reg_count() == 2 && ggml_backend_dev_count() == 2 && ggml_backend_reg_dev_count(reg) == 1, "one device more");
    ggml_backend_dev_t dev = ggml_backend_reg_dev_get(reg, 0);
    CHECK(dev && dev == ggml_backend_dev_get(1) && dev != ggml_backend_dev_get(0), "the device is listed");
    CHECK(strcmp(ggml_backend_dev_name(dev), "CPU") == 0 && strlen(ggml_backend_dev_description(dev)) > 0, "name and description: %s", ggml_backend_dev_description(dev));
    CHECK(ggml_backend_dev_type(dev) == GGML_BACKEND_DEVICE_TYPE_CPU, "type");
    size_t available = 0, total = 0;
    ggml_backend_dev_memory(dev, &available, &total);
    CHECK(available > 0 && total >= available, "memory %zu of %zu", available, total);
    struct ggml_backend_dev_props p;
    ggml_backend_dev_get_props(dev, &p);
    CHECK(p.memory_total == total && p.type == GGML_BACKEND_DEVICE_TYPE_CPU, "props");
    ggml_backend_get_features_t features = (ggml_backend_get_features_t) ggml_backend_reg_get_proc_address(reg, "ggml_backend_get_features");
    CHECK(features && features(reg) && features(reg)[0].name, "functions by name: features");
    ggml_backend_t b = ggml_backend_dev_init(dev, NULL);
    CHECK(b && ggml_backend_get_device(b) == dev && strcmp(ggml_backend_name(b), "CPU") == 0, "a backend");
    CHECK(!ggml_backend_is_cpu(b), "it is not one of ours");
    CHECK(ggml_backend_supports_buft(b, ggml_backend_cpu_buffer_type()), "it uses the host's memory");
    ggml_backend_free(b);
}

static ggml_backend_t start(ggml_backend_reg_t reg) {
    ggml_backend_t b = ggml_backend_dev_init(ggml_backend_reg_dev_get(reg, 0), NULL);
    ((ggml_backend_set_n_threads_t) ggml_backend_reg_get_proc_address(reg, "ggml_backend_set_n_threads"))(b, 2);
    return b;
}

static void operators(ggml_backend_reg_t reg) {
    ggml_backend_t theirs = start(reg), ours = ggml_backend_cpu_init();
    for (size_t i = 0; i < N_OP_CASES; i++) {
        int64_t n = 0, m = 0;
        float * a = computed(theirs, &op_cases[i], 7, &n);
        float * b = computed(ours, &op_cases[i], 7, &m);
        CHECK(a && b && n == m, "%s: both compute", op_cases[i].name);
        if (a && b && n == m) {
            const double e = nmse(a, b, n);
            CHECK(e <= op_cases[i].limit, "%s: they agree within %g: %g", op_cases[i].name, op_cases[i].limit, e);
        }
        free(a);
        free(b);
    }
    ggml_backend_free(theirs);
    ggml_backend_free(ours);
}

/* Weights in the module's own kind of memory, where it keeps them in another order. */
static void own_memory(ggml_backend_reg_t reg) {
    ggml_backend_dev_t dev = ggml_backend_reg_dev_get(reg, 0);
    ggml_backend_dev_get_extra_bufts_t list = (ggml_backend_dev_get_extra_bufts_t) ggml_backend_reg_get_proc_address(reg, "ggml_backend_dev_get_extra_bufts");
    ggml_backend_buffer_type_t repack = NULL;
    for (ggml_backend_buffer_type_t * b = list ? list(dev) : NULL; b && *b; b++) {
        repack = strcmp(ggml_backend_buft_name(*b), "CPU_REPACK") == 0 ? *b : repack;
    }
    if (!repack) {
        check_skip("weights in the module's own memory", "it has none on this processor");
        return;
    }
    CHECK(!ggml_backend_buft_is_host(repack), "its own memory is not the host's layout");
    ggml_backend_t theirs = start(reg), ours = ggml_backend_cpu_init();
    float * result[2];
    int64_t n = 0;
    for (int i = 0; i < 2; i++) {
        ctx_t    weights = new_context(), c = new_context();
        tensor_t w = t2(weights, GGML_TYPE_Q4_0, 256, 64), x = t2(c, F32, 256, 9), out = ggml_mul_mat(c, w, x);
        struct ggml_cgraph * g = ggml_new_graph_custom(c, 16, false);
        ggml_build_forward_expand(g, out);
        ggml_backend_buffer_t wb = ggml_backend_alloc_ctx_tensors_from_buft(weights, i ? ggml_backend_cpu_buffer_type() : repack);
        if (i == 0) {
            CHECK(wb && w->extra, "weights are placed there and prepared");
        }
        ggml_backend_buffer_t b = ggml_backend_alloc_ctx_tensors(c, i ? ours : theirs);
        fill(w, 1);
        fill(x, 2);
        CHECK(ggml_backend_graph_compute(i ? ours : theirs, g) == GGML_STATUS_SUCCESS, "computed with weights in %s", ggml_backend_buffer_name(wb));
        result[i] = floats(out);
        n         = ggml_nelements(out);
        ggml_backend_buffer_free(b);
        ggml_backend_buffer_free(wb);
        ggml_free(weights);
        ggml_free(c);
    }
    const double e = nmse(result[0], result[1], n);
    CHECK(e < 5e-4, "the same product: %g", e);
    free(result[0]);
    free(result[1]);
    ggml_backend_free(theirs);
    ggml_backend_free(ours);
}

/* Alternating layers on the two devices; `times` computations with new inputs. */
static void scheduler(ggml_backend_reg_t reg) {
    ggml_backend_t             both[2] = { start(reg), ggml_backend_cpu_init() };
    /* in one kind of memory the first backend takes all nodes */
    ggml_backend_buffer_t      borrowed = ggml_backend_cpu_buffer_from_ptr(aligned_alloc(64, 64), 64);
    ggml_backend_buffer_type_t bufts[2] = { ggml_backend_cpu_buffer_type(), ggml_backend_buffer_get_type(borrowed) };
    ggml_backend_sched_t       sched    = ggml_backend_sched_new(both, bufts, 2, 256, false, true);
    ggml_backend_sched_t alone   = ggml_backend_sched_new(both + 1, NULL, 1, 256, false, true);
    for (int time = 0; time < 3; time++) {
        float * result[2];
        int64_t n = 0;
        for (int i = 0; i < 2; i++) {
            ggml_backend_sched_t s = i ? alone : sched;
            ctx_t    c = new_context();
            tensor_t x = t2(c, F32, 128, 10 + time), y = x;
            ggml_set_input(x);
            tensor_t w[6];
            for (int layer = 0; layer < 6; layer++) {
                w[layer] = t2(c, layer % 3 ? F32 : F16, 128, 128);
                ggml_set_input(w[layer]);
                y = ggml_soft_max(c, ggml_add(c, ggml_mul_mat(c, w[layer], y), x));
                if (!i) {
                    ggml_backend_sched_set_tensor_backend(s, y, both[layer % 2]);
                    ggml_backend_sched_set_tensor_backend(s, y->src[0], both[layer % 2]);
                }
            }
            ggml_set_output(y);
            struct ggml_cgraph * g = ggml_new_graph_custom(c, 256, false);
            ggml_build_forward_expand(g, y);
            CHECK(ggml_backend_sched_alloc_graph(s, g), "%s, time %d: allocated", i ? "alone" : "both", time);
            fill(x, 3 + (uint32_t) time);
            for (int layer = 0; layer < 6; layer++) {
                fill(w[layer], 30 + (uint32_t) layer);
            }
            CHECK(ggml_backend_sched_graph_compute(s, g) == GGML_STATUS_SUCCESS, "%s, time %d: computed", i ? "alone" : "both", time);
            if (!i) {
                CHECK(ggml_backend_sched_get_n_splits(s) >= 6, "time %d: %d splits", time, ggml_backend_sched_get_n_splits(s));
            }
            result[i] = floats(y);
            n         = ggml_nelements(y);
            ggml_backend_sched_reset(s);
            ggml_free(c);
        }
        const double e = nmse(result[0], result[1], n);
        CHECK(e < 1e-6, "time %d: both devices give what one gives: %g", time, e);
        free(result[0]);
        free(result[1]);
    }
    ggml_backend_sched_free(sched);
    ggml_backend_sched_free(alone);
    free(ggml_backend_buffer_get_base(borrowed));
    ggml_backend_buffer_free(borrowed);
    ggml_backend_free(both[0]);
    ggml_backend_free(both[1]);
}

int main(int argc, char ** argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: cpu MODULE FOLDER\n");
        return 2;
    }
    ggml_backend_reg_t reg = ggml_backend_load(argv[1]);
    if (!CHECK(reg != NULL, "loaded")) {
        return check_done();
    }
    CHECK(ggml_backend_load(argv[1]) == reg && ggml_backend_reg_count() == 2, "loaded twice is loaded once");
    facts(reg);
    operators(reg);
    own_memory(reg);
    scheduler(reg);
    ggml_backend_unload(reg);
    CHECK(ggml_backend_reg_count() == 1 && ggml_backend_dev_count() == 1, "unloaded");

    setenv("GGML_BACKEND_PATH", argv[1], 1);
    ggml_backend_load_all();
    CHECK(ggml_backend_reg_count() == 2 && ggml_backend_dev_count() == 2, "loaded again, by GGML_BACKEND_PATH");
    unsetenv("GGML_BACKEND_PATH");
    ggml_backend_t b = start(ggml_backend_reg_get(1));
    int64_t        n;
    float *        a = computed(b, &op_cases[0], 1, &n);
    CHECK(a != NULL, "it computes again");
    free(a);
    ggml_backend_free(b);

    ggml_backend_load_all_from_path(argv[2]);
    CHECK(ggml_backend_reg_by_name("RPC") != NULL, "the folder's RPC module is found");
    CHECK(ggml_backend_reg_count() == 3 && ggml_backend_dev_count() == 2, "the folder's CPU module is not: the CPU is built in");
    ggml_backend_unload(ggml_backend_reg_by_name("RPC"));
    CHECK(ggml_backend_reg_count() == 2, "the RPC module is unloaded");
    /* the CPU module stays loaded to the end of the process */
    return check_done();
}
