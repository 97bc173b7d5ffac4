/* A failing allocator: each allocation of a job in turn, and then all from there on, answers NULL. The job may fail and say so;
 * it may not crash, and it may not end the process where the memory asked for grows with what the caller handed in. */
#include "check.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml-opt.h"
#include "gguf.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || !defined(__GLIBC__)
int main(void) {
    check_skip("oom", "the allocator is the sanitizer's");
    CHECK(true, "nothing else");
    return check_done();
}
#else

/* Bytes from which on an allocation must be allowed to fail. Below it the standard library may end the process: small texts and
 * lists. */
enum { LARGE = 16 << 10 };
static const size_t limit = LARGE;

extern void * __libc_malloc(size_t);
extern void * __libc_calloc(size_t, size_t);
extern void * __libc_realloc(void *, size_t);
extern void * __libc_memalign(size_t, size_t);

static atomic_long  countdown = -1; /* -1: not armed */
static atomic_bool  go_on;          /* fail all from there on */
static atomic_size_t failed_size;
static size_t       least;          /* only allocations of at least this size count */

static bool fails(size_t size) {
    if (size < least) {
        return false;
    }
    long n = atomic_load(&countdown);
    if (n < 0) {
        return false;
    }
    n = atomic_fetch_sub(&countdown, 1);
    if (n > 1) {
        return false;
    }
    if (n == 1 || atomic_load(&go_on)) {
        if (n == 1 || size > atomic_load(&failed_size)) {
            atomic_store(&failed_size, size);
        }
        if (atomic_load(&go_on)) {
            atomic_store(&countdown, 1);
        }
        errno = ENOMEM;
        return true;
    }
    atomic_store(&countdown, -1);
    return false;
}

void * malloc(size_t size) { return fails(size) ? NULL : __libc_malloc(size); }
void * calloc(size_t n, size_t size) { return fails(n * size) ? NULL : __libc_calloc(n, size); }
void * realloc(void * p, size_t size) { return fails(size) ? NULL : __libc_realloc(p, size); }
void * memalign(size_t alignment, size_t size) { return fails(size) ? NULL : __libc_memalign(alignment, size); }
void * aligned_alloc(size_t alignment, size_t size) { return fails(size) ? NULL : __libc_memalign(alignment, size); }
int    posix_memalign(void ** to, size_t alignment, size_t size) {
    if (fails(size)) {
        return ENOMEM;
    }
    *to = __libc_memalign(alignment, size);
    return *to ? 0 : ENOMEM;
}

static uint8_t * file;
static size_t    file_size;

static void make_file(const char * path) {
    struct gguf_context * g     = gguf_init_empty();
    const int             n     = 20000;
    const char **         texts = malloc(sizeof *texts * (size_t) n);
    for (int i = 0; i < n; i++) {
        texts[i] = i % 2 ? "token" : "another token, longer";
    }
    gguf_set_arr_str(g, "texts", texts, (size_t) n);
    int64_t * numbers = calloc((size_t) n, 8);
    gguf_set_arr_data(g, "numbers", GGUF_TYPE_INT64, numbers, (size_t) n);
    struct ggml_context * ctx = ggml_init((struct ggml_init_params){ 4 << 20, NULL, false });
    for (int i = 0; i < 500; i++) {
        struct ggml_tensor * t = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 500);
        memset(t->data, 0, ggml_nbytes(t));
        gguf_add_tensor(g, ggml_format_name(t, "tensor.%d", i));
    }
    gguf_write_to_file(g, path, false);
    gguf_free(g);
    ggml_free(ctx);
    free(numbers);
    free(texts);
    FILE * f = fopen(path, "rb");
    file     = malloc(8 << 20);
    file_size = fread(file, 1, 8 << 20, f);
    fclose(f);
    unlink(path);
}

static void load(void) {
    struct ggml_context * ctx = NULL;
    struct gguf_context * g   = gguf_init_from_buffer(file, file_size, (struct gguf_init_params){ false, &ctx });
    if (!g && ctx) {
        _exit(9);
    }
    gguf_free(g);
    ggml_free(ctx);
}

static void save(void) {
    struct ggml_context * ctx = NULL;
    struct gguf_context * g   = gguf_init_from_buffer(file, file_size, (struct gguf_init_params){ false, &ctx });
    struct gguf_context * h   = gguf_init_empty();
    if (g && h) {
        gguf_set_kv(h, g);
        for (struct ggml_tensor * t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
            if (gguf_find_tensor(g, t->name) >= 0) {
                gguf_add_tensor(h, t);
            }
        }
        void * meta = malloc(gguf_get_meta_size(h) + 1);
        if (meta) {
            gguf_get_meta_data(h, meta);
        }
        free(meta);
        gguf_write_to_file(h, "/dev/null", false);
    }
    gguf_free(h);
    gguf_free(g);
    ggml_free(ctx);
}

/* A chain of n nodes with a leaf each. */
static struct ggml_cgraph * chain(struct ggml_context * ctx, int n) {
    struct ggml_tensor * t = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 64);
    for (int i = 0; i < n; i++) {
        t = ggml_add(ctx, t, ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 64));
    }
    struct ggml_cgraph * g = ggml_new_graph_custom(ctx, (size_t) n + 8, false);
    if (g) {
        ggml_build_forward_expand(g, t);
    }
    return g;
}

static void build(void) {
    struct ggml_context * ctx = ggml_init((struct ggml_init_params){ 3 << 20, NULL, true });
    if (ctx) {
        chain(ctx, 3000);
        chain(ctx, 1500); /* does not fit: stand-ins */
        ggml_free(ctx);
    }
}

static void allocate(void) {
    struct ggml_context * ctx = ggml_init((struct ggml_init_params){ 8 << 20, NULL, true });
    struct ggml_cgraph *  g   = ctx ? chain(ctx, 3000) : NULL;
    ggml_gallocr_t        a   = g ? ggml_gallocr_new(ggml_backend_cpu_buffer_type()) : NULL;
    if (a && ggml_gallocr_alloc_graph(a, g) && !ggml_graph_node(g, -1)->data) {
        _exit(9);
    }
    ggml_gallocr_free(a);
    ggml_free(ctx);
    ctx = ggml_init((struct ggml_init_params){ 8 << 20, NULL, true });
    if (ctx) {
        chain(ctx, 3000);
        ggml_backend_buffer_free(ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_cpu_buffer_type()));
        ggml_free(ctx);
    }
}

static void schedule(void) {
    struct ggml_context * ctx = ggml_init((struct ggml_init_params){ 8 << 20, NULL, true });
    struct ggml_cgraph *  g   = ctx ? chain(ctx, 3000) : NULL;
    ggml_backend_t        b[2] = { ggml_backend_cpu_init(), ggml_backend_cpu_init() };
    if (g && b[0] && b[1]) {
        ggml_backend_sched_t s = ggml_backend_sched_new(b, NULL, 2, 4096, false, false);
        if (s) {
            ggml_backend_sched_set_tensor_backend(s, ggml_graph_node(g, 100), b[1]);
            ggml_backend_sched_reserve(s, g);
            if (ggml_backend_sched_alloc_graph(s, g)) {
                ggml_backend_sched_graph_compute(s, g);
            }
            ggml_backend_sched_free(s);
        }
    }
    ggml_backend_free(b[0]);
    ggml_backend_free(b[1]);
    ggml_free(ctx);
}

static void compute(void) {
    struct ggml_context * ctx = ggml_init((struct ggml_init_params){ 1 << 20, NULL, true });
    ggml_backend_t        cpu = ggml_backend_cpu_init();
    if (ctx && cpu) {
        ggml_backend_cpu_set_n_threads(cpu, 2);
        struct ggml_tensor * x  = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 256, 96);
        struct ggml_tensor * y  = ggml_mul_mat(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_Q4_0, 256, 256), x);
        y                       = ggml_mul_mat(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_F16, 256, 256), y);
        y                       = ggml_mul_mat(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_Q6_K, 256, 256), y);
        struct ggml_tensor * q  = ggml_reshape_4d(ctx, ggml_cont(ctx, ggml_soft_max(ctx, y)), 64, 96, 4, 1);
        struct ggml_tensor * k  = ggml_cast(ctx, q, GGML_TYPE_F16);
        y                       = ggml_flash_attn_ext(ctx, q, k, k, NULL, 0.125f, 0, 0);
        struct ggml_tensor * im = ggml_reshape_4d(ctx, ggml_cont(ctx, y), 32, 32, 24, 1);
        im                      = ggml_conv_2d(ctx, ggml_new_tensor_4d(ctx, GGML_TYPE_F16, 3, 3, 24, 32), im, 1, 1, 1, 1, 1, 1);
        im                      = ggml_conv_2d_direct(ctx, ggml_new_tensor_4d(ctx, GGML_TYPE_F16, 3, 3, 32, 32), im, 1, 1, 1, 1, 1, 1);
        im                      = ggml_conv_transpose_2d_p0(ctx, ggml_new_tensor_4d(ctx, GGML_TYPE_F16, 2, 2, 8, 32), im, 2);
        im                      = ggml_argsort(ctx, ggml_group_norm(ctx, im, 4, 1e-5f), GGML_SORT_ORDER_ASC);
        struct ggml_cgraph *  g = ggml_new_graph_custom(ctx, 64, false);
        ggml_build_forward_expand(g, im);
        ggml_backend_buffer_t b = ggml_backend_alloc_ctx_tensors(ctx, cpu);
        if (b) {
            ggml_backend_buffer_clear(b, 0);
            for (int i = 0; i < 2; i++) {
                ggml_backend_graph_compute(cpu, g);
            }
            struct ggml_cplan plan = ggml_graph_plan(g, 2, NULL);
            plan.work_data         = malloc(plan.work_size + 1);
            if (plan.work_data) {
                ggml_graph_compute(g, &plan);
            }
            free(plan.work_data);
        }
        ggml_backend_buffer_free(b);
    }
    ggml_backend_free(cpu);
    ggml_free(ctx);
}

/* A chain of parameters, one step of training. */
static void train(void) {
    enum { N = 400, BATCH = 64 };
    struct ggml_context * ctx = ggml_init((struct ggml_init_params){ 1 << 20, NULL, true });
    struct ggml_context * graphs = ggml_init((struct ggml_init_params){ 4 << 20, NULL, true });
    ggml_opt_dataset_t    data = ggml_opt_dataset_init(GGML_TYPE_F32, GGML_TYPE_F32, 64, 64, 2 * BATCH, 1);
    ggml_backend_t        cpu = ggml_backend_cpu_init();
    ggml_backend_sched_t  s = cpu ? ggml_backend_sched_new(&cpu, NULL, 1, 2048, false, false) : NULL;
    ggml_backend_buffer_t b = NULL;
    if (ctx && graphs && data && s) {
        struct ggml_opt_params p = ggml_opt_default_params(s, GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR);
        p.ctx_compute = graphs;
        p.inputs = p.outputs = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 64, BATCH);
        for (int i = 0; i < N; i++) {
            struct ggml_tensor * w = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 1);
            ggml_set_param(w);
            p.outputs = ggml_add(graphs, p.outputs, w);
        }
        b = ggml_backend_alloc_ctx_tensors(ctx, cpu);
        if (b) {
            ggml_backend_buffer_clear(b, 0);
            ggml_opt_context_t opt = ggml_opt_init(p);
            ggml_opt_result_t  r = ggml_opt_result_init();
            if (opt) {
                ggml_opt_epoch(opt, data, r, r, BATCH, NULL, NULL);
            }
            ggml_opt_result_free(r);
            ggml_opt_free(opt);
        }
    }
    ggml_backend_buffer_free(b);
    ggml_backend_sched_free(s);
    ggml_backend_free(cpu);
    ggml_opt_dataset_free(data);
    ggml_free(graphs);
    ggml_free(ctx);
}

static void quantize(void) {
    const int n = 256 * 256;
    float *   x = malloc(sizeof *x * (size_t) n);
    void *    y = malloc(sizeof *x * (size_t) n);
    if (x && y) {
        for (int i = 0; i < n; i++) {
            x[i] = (float) (i % 31);
        }
        const enum ggml_type types[] = { GGML_TYPE_F16, GGML_TYPE_Q4_0, GGML_TYPE_Q5_1, GGML_TYPE_Q8_0, GGML_TYPE_Q2_K, GGML_TYPE_Q3_K, GGML_TYPE_Q6_K };
        for (int i = 0; i < 7; i++) {
            ggml_quantize_chunk(types[i], x, y, 0, 1, n, NULL);
        }
    }
    free(x);
    free(y);
}

/* Runs the job with allocation k failing. Answers the wait status; `reached` says whether there was a k-th. */
struct outcome { int status; bool reached; size_t size; char text[6000]; };
static struct outcome try_one(void (*job)(void), long k, bool all) {
    struct outcome o = { 0 };
    int            ends[2], err[2];
    if (pipe(ends) || pipe(err)) {
        exit(2);
    }
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(err[1], 2);
        close(ends[0]);
        close(err[0]);
        alarm(60);
        ggml_log_set(check_count_line, NULL);
        atomic_store(&failed_size, 0);
        atomic_store(&go_on, all);
        atomic_store(&countdown, k);
        job();
        atomic_store(&countdown, -1);
        const size_t size = atomic_load(&failed_size);
        if (write(ends[1], &size, sizeof size) < 0) {
            _exit(3);
        }
        _exit(0);
    }
    close(ends[1]);
    close(err[1]);
    size_t  n = 0;
    ssize_t got;
    while (n + 1 < sizeof o.text && (got = read(err[0], o.text + n, sizeof o.text - 1 - n)) > 0) {
        n += (size_t) got;
    }
    o.text[n] = 0;
    close(err[0]);
    if (read(ends[0], &o.size, sizeof o.size) != sizeof o.size) {
        /* it ended before: Rust says how large the allocation was */
        const char * at = strstr(o.text, "memory allocation of ");
        o.size          = at ? (size_t) strtoull(at + 21, NULL, 10) : 0;
        o.reached       = true;
    } else {
        o.reached = o.size != 0;
    }
    close(ends[0]);
    waitpid(pid, &o.status, 0);
    return o;
}

static void run(const char * name, void (*job)(void), size_t from, long stride) {
    least          = from;
    long tried = 0, small = 0, large = 0, crashed = 0;
    size_t       worst = 0;
    char         text[400] = "";
    for (long k = 1; k < 100000; k += stride) {
        bool reached = false;
        for (int all = 0; all < 2; all++) {
            const struct outcome o = try_one(job, k, all);
            reached                = reached || o.reached;
            if (!o.reached || o.status == 0) {
                continue;
            }
            /* ended by Rust's handler, or by glibc, which cannot make a thread's variables */
            const bool refused = strstr(o.text, "memory allocation of ") || strstr(o.text, "Fatal glibc error");
            if (!refused) {
                crashed++;
                snprintf(text, sizeof text, "k %ld: %.350s", k, o.text);
            } else if (o.size >= limit) {
                large++;
                if (getenv("OOM_BACKTRACE")) {
                    printf("# %s, k %ld: %s\n", name, k, o.text);
                }
                worst = o.size > worst ? o.size : worst;
            } else {
                small++;
            }
        }
        if (!reached) {
            break;
        }
        tried++;
    }
    CHECK(tried > 0, "%s: %ld allocations made to fail", name, tried);
    CHECK(crashed == 0, "%s: no crash (%s)", name, text);
    CHECK(large == 0, "%s: %ld large allocations end the process, up to %zu bytes", name, large, worst);
    if (small) {
        printf("# %s: %ld allocations below %zu bytes end the process\n", name, small, limit);
    }
}

int main(void) {
    char path[1000];
    check_quiet();
    /* what the process makes once is made now */
    ggml_backend_free(ggml_backend_init_best());
    ggml_get_type_traits(GGML_TYPE_Q4_0);
    snprintf(path, sizeof path, "%s/oom-%d.gguf", getenv("TESTS_OUT") ? getenv("TESTS_OUT") : "/tmp", (int) getpid());
    make_file(path);
    setenv("RUST_BACKTRACE", getenv("OOM_BACKTRACE") ? "1" : "0", 1); /* to find the place: OOM_BACKTRACE=1, one job's number */
    const char * only = getenv("OOM_BACKTRACE");
    const struct { const char * name; void (*job)(void); long stride; } jobs[] = {
        { "load a file", load, 41 }, { "save a file", save, 41 }, { "build a graph", build, 499 },
        { "allocate a graph", allocate, 97 }, { "schedule a graph", schedule, 7 }, { "compute a graph", compute, 7 },
        { "quantize", quantize, 0 }, { "train a model", train, 97 },
    };
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        char name[100];
        if (only && (size_t) atoi(only) != i) {
            continue;
        }
        jobs[i].job();
        snprintf(name, sizeof name, "%s, large allocations", jobs[i].name);
        run(name, jobs[i].job, LARGE, 1);
        if (jobs[i].stride) {
            snprintf(name, sizeof name, "%s, all allocations", jobs[i].name);
            run(name, jobs[i].job, 0, jobs[i].stride);
        }
    }
    free(file);
    return check_done();
}
#endif
