/* The registry: devices, functions by name, backends by name and kind, modules that are none. */
#include "fake_device.h"

#include <unistd.h>

static bool abort_never(void * data) { (void) data; return false; }

static void functions(ggml_backend_reg_t reg) {
    /* the names that clients ask for; those that upstream's CPU answers must be there */
    static const char * const there[] = { "ggml_backend_set_n_threads", "ggml_backend_dev_get_extra_bufts", "ggml_backend_get_features", "ggml_backend_set_abort_callback",
                                          "ggml_threadpool_new", "ggml_threadpool_free", "ggml_backend_cpu_set_threadpool",
                                          "ggml_backend_cpu_numa_init", "ggml_backend_cpu_is_numa", "ggml_backend_cpu_set_use_ref" };
    for (size_t i = 0; i < sizeof there / sizeof *there; i++) {
        CHECK(ggml_backend_reg_get_proc_address(reg, there[i]) != NULL, "function %s", there[i]);
    }
    static const char * const absent[] = { "ggml_backend_split_buffer_type", "ggml_backend_rpc_add_server", "", "ggml_backend_set_n_threads ", "no_such" };
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        CHECK(ggml_backend_reg_get_proc_address(reg, absent[i]) == NULL, "no function '%s'", absent[i]);
    }
    CHECK(ggml_backend_reg_get_proc_address(reg, NULL) == NULL && ggml_backend_reg_get_proc_address(NULL, "x") == NULL, "no function of NULL");

    ggml_backend_t cpu = ggml_backend_init_by_name("CPU", NULL);
    ((ggml_backend_set_n_threads_t) ggml_backend_reg_get_proc_address(reg, "ggml_backend_set_n_threads"))(cpu, 2);
    ((ggml_backend_set_abort_callback_t) ggml_backend_reg_get_proc_address(reg, "ggml_backend_set_abort_callback"))(cpu, abort_never, NULL);
    ggml_backend_buffer_type_t * more = ((ggml_backend_dev_get_extra_bufts_t) ggml_backend_reg_get_proc_address(reg, "ggml_backend_dev_get_extra_bufts"))(ggml_backend_reg_dev_get(reg, 0));
    int n_more = 0;
    while (more && more[n_more]) {
        CHECK(ggml_backend_buft_name(more[n_more]) != NULL, "extra buffer type %d", n_more);
        n_more++;
    }
    CHECK(true, "%d extra buffer types", n_more);
    struct ggml_backend_feature * f = ((ggml_backend_get_features_t) ggml_backend_reg_get_proc_address(reg, "ggml_backend_get_features"))(reg);
    int  n       = 0;
    bool agree   = true, known = false;
    for (; f && f[n].name; n++) {
        agree = agree && f[n].value && strlen(f[n].value) > 0 && strlen(f[n].name) > 0;
        if (strcmp(f[n].name, "AVX2") == 0) {
            known = ggml_cpu_has_avx2() == 1;
        }
    }
    CHECK(n > 0 && agree, "%d features, each with a value", n);
    CHECK(known == (ggml_cpu_has_avx2() == 1), "features agree with ggml_cpu_has_*");
    struct ggml_threadpool_params p    = ggml_threadpool_params_default(2);
    struct ggml_threadpool *      pool = ((struct ggml_threadpool * (*) (struct ggml_threadpool_params *) ) ggml_backend_reg_get_proc_address(reg, "ggml_threadpool_new"))(&p);
    CHECK(pool != NULL, "a pool through the registry");
    ((void (*)(ggml_backend_t, struct ggml_threadpool *)) ggml_backend_reg_get_proc_address(reg, "ggml_backend_cpu_set_threadpool"))(cpu, pool);
    ((void (*)(ggml_backend_t, struct ggml_threadpool *)) ggml_backend_reg_get_proc_address(reg, "ggml_backend_cpu_set_threadpool"))(cpu, NULL);
    ((void (*)(struct ggml_threadpool *)) ggml_backend_reg_get_proc_address(reg, "ggml_threadpool_free"))(pool);
    void (*numa_init)(enum ggml_numa_strategy) = (void (*)(enum ggml_numa_strategy)) ggml_backend_reg_get_proc_address(reg, "ggml_backend_cpu_numa_init");
    bool (*is_numa)(void)                      = (bool (*)(void)) ggml_backend_reg_get_proc_address(reg, "ggml_backend_cpu_is_numa");
    if (numa_init && is_numa) {
        numa_init(GGML_NUMA_STRATEGY_DISABLED);
        CHECK(!is_numa() || is_numa(), "numa can be asked");
    }
    void (*use_ref)(ggml_backend_t, bool) = (void (*)(ggml_backend_t, bool)) ggml_backend_reg_get_proc_address(reg, "ggml_backend_cpu_set_use_ref");
    if (use_ref) {
        use_ref(cpu, true);
        use_ref(cpu, false);
    }
    ggml_backend_free(cpu);
}

static void devices(void) {
    CHECK(ggml_backend_reg_count() == 1 && ggml_backend_dev_count() == 1, "the CPU alone at first");
    ggml_backend_reg_t reg = ggml_backend_reg_by_name("cpu");
    CHECK(reg && reg == ggml_backend_reg_get(0) && reg == ggml_backend_cpu_reg() && strcmp(ggml_backend_reg_name(reg), "CPU") == 0, "the CPU's entry");
    CHECK(ggml_backend_reg_get(1) == NULL && ggml_backend_reg_get(SIZE_MAX) == NULL && ggml_backend_reg_by_name("no such") == NULL && ggml_backend_reg_by_name(NULL) == NULL, "no other entry");
    ggml_backend_dev_t dev = ggml_backend_dev_get(0);
    CHECK(dev && dev == ggml_backend_reg_dev_get(reg, 0) && dev == ggml_backend_dev_by_name("Cpu") && dev == ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU), "the CPU's device");
    CHECK(ggml_backend_dev_get(1) == NULL && ggml_backend_reg_dev_get(reg, 1) == NULL && ggml_backend_dev_by_name("") == NULL && ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_GPU) == NULL, "no other device");
    CHECK(ggml_backend_dev_by_type((enum ggml_backend_dev_type) 99) == NULL, "no such kind");
    CHECK(ggml_backend_dev_backend_reg(dev) == reg && ggml_backend_reg_dev_count(reg) == 1, "device and entry");
    CHECK(strlen(ggml_backend_dev_description(dev)) > 0 && ggml_backend_dev_type(dev) == GGML_BACKEND_DEVICE_TYPE_CPU, "description: %s", ggml_backend_dev_description(dev));
    size_t free_ = 0, total = 0;
    ggml_backend_dev_memory(dev, &free_, &total);
    CHECK(free_ > 0 && total >= free_, "memory %zu of %zu", free_, total);
    struct ggml_backend_dev_props p;
    memset(&p, 0xFF, sizeof p);
    ggml_backend_dev_get_props(dev, &p);
    CHECK(strcmp(p.name, "CPU") == 0 && p.type == GGML_BACKEND_DEVICE_TYPE_CPU && p.memory_total == total && p.device_id == NULL, "props");
    CHECK(p.caps.buffer_from_host_ptr && !p.caps.events && !p.caps.async, "caps");
    CHECK(ggml_backend_dev_buffer_type(dev) == ggml_backend_cpu_buffer_type() && ggml_backend_dev_supports_buft(dev, ggml_backend_cpu_buffer_type()), "buffer type");
    CHECK(ggml_backend_event_new(dev) == NULL, "no events");

    ggml_backend_t b[5] = { ggml_backend_init_by_name("CPU", NULL), ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, NULL), ggml_backend_init_best(), ggml_backend_dev_init(dev, NULL), ggml_backend_cpu_init() };
    for (int i = 0; i < 5; i++) {
        CHECK(b[i] && ggml_backend_is_cpu(b[i]) && strcmp(ggml_backend_name(b[i]), "CPU") == 0 && ggml_backend_get_device(b[i]) == dev, "backend %d", i);
        CHECK(ggml_guid_matches(ggml_backend_guid(b[i]), ggml_backend_guid(b[0])), "backend %d: guid", i);
        CHECK(ggml_backend_get_default_buffer_type(b[i]) == ggml_backend_cpu_buffer_type() && ggml_backend_get_alignment(b[i]) >= 32 && ggml_backend_get_max_size(b[i]) > 1u << 30, "backend %d: memory", i);
    }
    for (int i = 0; i < 5; i++) {
        ggml_backend_free(b[i]);
    }
    CHECK(ggml_backend_init_by_name("no such", NULL) == NULL && ggml_backend_init_by_name(NULL, NULL) == NULL && ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_META, NULL) == NULL, "no backend");
    CHECK(!ggml_backend_is_cpu(NULL), "NULL is no CPU");
    functions(reg);
}

static void own(void) {
    struct fake f;
    fake_make(&f, "mine");
    ggml_backend_register(&f.reg);
    ggml_backend_register(&f.reg);
    CHECK(ggml_backend_reg_count() == 2 && ggml_backend_dev_count() == 2 && ggml_backend_dev_get(1) == &f.device, "registered once");
    ggml_backend_t best = ggml_backend_init_best();
    CHECK(best && !ggml_backend_is_cpu(best) && strcmp(ggml_backend_name(best), "mine") == 0, "a GPU is the best");
    CHECK_ERROR(ggml_backend_cpu_set_n_threads(best, 2), GGML_EXT_CODE_NONE, "threads of another backend", "ggml_backend_cpu_set_n_threads");
    ggml_backend_free(best);
    CHECK(!ggml_backend_dev_supports_buft(&f.device, ggml_backend_cpu_buffer_type()), "other memory");
    CHECK(ggml_backend_dev_host_buffer_type(&f.device) == NULL, "no host memory");
    CHECK(!ggml_backend_dev_offload_op(&f.device, NULL), "nothing to offload");
    ggml_backend_unload(&f.reg);
    CHECK(ggml_backend_reg_count() == 1 && ggml_backend_dev_count() == 1, "unregistered");
    CHECK_ERROR(ggml_backend_unload(&f.reg), GGML_EXT_CODE_NONE, "unregistered twice", "ggml_backend_unload");
    CHECK_ERROR(ggml_backend_unload(ggml_backend_cpu_reg()), GGML_EXT_CODE_NONE, "the CPU stays", "ggml_backend_unload");
    CHECK(ggml_backend_reg_count() == 1, "the CPU stayed");
    ggml_backend_device_register(&f.device);
    ggml_backend_device_register(&f.device);
    CHECK(ggml_backend_dev_count() == 2 && ggml_backend_dev_by_name("mine") == &f.device, "a device alone");
}

static void modules(void) {
    char path[1000];
    ggml_backend_reg_t reg = (void *) 1;
    CHECK_ERROR(reg = ggml_backend_load("/no/such/file.so"), GGML_EXT_CODE_BACKEND, "a module that is not there", "/no/such/file.so");
    CHECK(reg == NULL, "a module that is not there: NULL");
    snprintf(path, sizeof path, "%s/include/ggml.h", getenv("TESTS_ROOT") ? getenv("TESTS_ROOT") : ".");
    CHECK_ERROR(reg = ggml_backend_load(path), GGML_EXT_CODE_BACKEND, "a text file", "ggml.h");
    CHECK(reg == NULL, "a text file: NULL");
    CHECK_ERROR(reg = ggml_backend_load("libm.so.6"), GGML_EXT_CODE_BACKEND, "a library that is no module", "ggml_backend_init");
    CHECK(reg == NULL, "a library that is no module: NULL");
    CHECK_ERROR(reg = ggml_backend_load(NULL), GGML_EXT_CODE_NULL_ARGUMENT, "NULL", "ggml_backend_load");
    CHECK_ERROR(reg = ggml_backend_load(""), GGML_EXT_CODE_NONE, "no name", "");
    ggml_backend_load_all_from_path("/no/such/folder");
    ggml_backend_load_all_from_path(NULL);
    CHECK(ggml_backend_reg_count() == 1, "nothing was loaded");
    setenv("GGML_BACKEND_PATH", "/no/such/module.so", 1);
    CHECK_ERROR(ggml_backend_load_all(), GGML_EXT_CODE_BACKEND, "the module of the environment variable", "/no/such/module.so");
    unsetenv("GGML_BACKEND_PATH");
    ggml_backend_load_all();
    CHECK(ggml_backend_reg_count() == 1 && ggml_backend_reg_by_name("CPU") != NULL, "the CPU is there all the same");
}

int main(void) {
    check_quiet();
    devices();
    own();
    modules();
    return check_done();
}
