/* What extensions cost: a launch against a native node, planning with rules, and a plan that is used again. */
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml-ext.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REQUIRE(x)                                                             \
    do {                                                                       \
        if (!(x)) {                                                            \
            GGML_EXT_INIT(ggml_ext_error, error);                              \
            ggml_ext_last_error(&error);                                       \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #x, error.text ? error.text : ""); \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

/* Every allocation of the process, counted. */
extern void * __libc_malloc(size_t);
extern void * __libc_calloc(size_t, size_t);
extern void * __libc_realloc(void *, size_t);
extern void * __libc_memalign(size_t, size_t);
static atomic_long allocations;
void * malloc(size_t n) { atomic_fetch_add(&allocations, 1); return __libc_malloc(n); }
void * calloc(size_t n, size_t size) { atomic_fetch_add(&allocations, 1); return __libc_calloc(n, size); }
void * realloc(void * p, size_t n) { atomic_fetch_add(&allocations, 1); return __libc_realloc(p, n); }
int posix_memalign(void ** to, size_t alignment, size_t n) {
    atomic_fetch_add(&allocations, 1);
    return (*to = __libc_memalign(alignment, n)) ? 0 : 12;
}

/* Time of this thread's own: what else the machine does counts only by the caches. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

/* f32 a + b of equal shapes, as an override of ADD. */
static bool add_supports(const struct ggml_ext_step * step, void * data) {
    (void) data;
    const struct ggml_tensor * t = step->nodes[0];
    return t->type == GGML_TYPE_F32 && t->src[0]->type == GGML_TYPE_F32 && t->src[1]->type == GGML_TYPE_F32 &&
           ggml_are_same_shape(t->src[0], t->src[1]) && ggml_is_contiguous(t) && ggml_is_contiguous(t->src[0]) &&
           ggml_is_contiguous(t->src[1]);
}
static enum ggml_status add_execute(const struct ggml_ext_run * run, void * data) {
    (void) data;
    const struct ggml_tensor * t = run->step->nodes[0];
    const float * a = t->src[0]->data, * b = t->src[1]->data;
    float *       y = t->data;
    for (int64_t i = 0, n = ggml_nelements(t); i < n; i++) {
        y[i] = a[i] + b[i];
    }
    return GGML_STATUS_SUCCESS;
}
static bool every_second(const struct ggml_ext_step * step, void * data) {
    (void) data;
    return step->nodes[0]->name[0] == 'x';
}

struct graph {
    struct ggml_context * ctx;
    struct ggml_cgraph *  graph;
};

/* A chain of n additions of ne elements; every second node is called x. */
static struct graph chain(int n, int64_t ne) {
    struct ggml_init_params params = { (size_t) (n + 8) * ggml_tensor_overhead() + ggml_graph_overhead_custom((size_t) n + 8, false) + 4096, NULL, true };
    struct graph g = { ggml_init(params), NULL };
    REQUIRE(g.ctx);
    struct ggml_tensor * a = ggml_new_tensor_1d(g.ctx, GGML_TYPE_F32, ne), * t = a;
    struct ggml_tensor * b = ggml_new_tensor_1d(g.ctx, GGML_TYPE_F32, ne);
    ggml_set_input(a);
    ggml_set_input(b);
    for (int i = 0; i < n; i++) {
        t = ggml_add(g.ctx, t, b);
        ggml_format_name(t, "%c%d", i % 2 ? 'x' : 'n', i);
    }
    ggml_set_output(t);
    g.graph = ggml_new_graph_custom(g.ctx, (size_t) n + 8, false);
    REQUIRE(g.graph);
    ggml_build_forward_expand(g.graph, t);
    return g;
}

/* Nanoseconds of one computation, the best of many. */
static double compute_ns(ggml_backend_sched_t sched, struct ggml_cgraph * graph, int rounds, long * allocated) {
    ggml_backend_sched_reset(sched);
    REQUIRE(ggml_backend_sched_alloc_graph(sched, graph));
    REQUIRE(ggml_backend_sched_graph_compute(sched, graph) == GGML_STATUS_SUCCESS);
    double best = 1e30;
    long   before = atomic_load(&allocations);
    for (int i = 0; i < rounds; i++) {
        double start = now();
        enum ggml_status status = ggml_backend_sched_graph_compute(sched, graph);
        double ns = now() - start;
        REQUIRE(status == GGML_STATUS_SUCCESS);
        best = ns < best ? ns : best;
    }
    *allocated = atomic_load(&allocations) - before;
    return best;
}

static void launches(ggml_backend_dev_t device, int threads) {
    enum { NODES = 1000, NE = 16, ROUNDS = 3000 };
    ggml_backend_t backend = ggml_backend_dev_init(device, NULL);
    REQUIRE(backend);
    ggml_backend_cpu_set_n_threads(backend, threads);
    ggml_backend_sched_t sched = ggml_backend_sched_new(&backend, NULL, 1, NODES, false, true);
    REQUIRE(sched);
    struct graph g = chain(NODES, NE);
    long allocated[3];
    double ns[3] = { 0 };
    ns[0] = compute_ns(sched, g.graph, ROUNDS, &allocated[0]);
    for (int i = 1; i < 3; i++) {
        GGML_EXT_INIT(ggml_ext_kernel_desc, desc);
        desc.name = "bench.add";
        desc.op = GGML_OP_ADD;
        desc.supports = add_supports;
        desc.preferred = i == 2 ? every_second : NULL;
        desc.execute = add_execute;
        ggml_backend_sched_reset(sched);
        REQUIRE(ggml_ext_register_kernel(device, &desc));
        ns[i] = compute_ns(sched, g.graph, ROUNDS, &allocated[i]);
        ggml_backend_sched_reset(sched);
        REQUIRE(ggml_ext_release(device, "bench.add"));
    }
    /* the same again, for a fair order */
    long   again;
    double native = compute_ns(sched, g.graph, ROUNDS, &again);
    ns[0] = native < ns[0] ? native : ns[0];
    printf("%d thread%s, %d nodes of %d elements, ns a node: native %.1f, all launches %.1f (%+.1f), every second a launch %.1f (%+.1f a launch)\n",
           threads, threads == 1 ? "" : "s", NODES, NE, ns[0] / NODES, ns[1] / NODES, (ns[1] - ns[0]) / NODES, ns[2] / NODES,
           (ns[2] - ns[0]) / (NODES / 2));
    printf("  allocations in %d computations: native %ld, all launches %ld, every second %ld\n", ROUNDS, allocated[0], allocated[1], allocated[2]);
    ggml_backend_sched_free(sched);
    ggml_backend_free(backend);
    ggml_free(g.ctx);
}

/* A rule as rules are: it looks at operators, edges and shapes of two nodes. It pairs additions at places that divide by its number. */
static int pairs(struct ggml_cgraph * graph, int first, void * data) {
    if (first + 2 > ggml_graph_n_nodes(graph)) {
        return 0;
    }
    const struct ggml_tensor * a = ggml_graph_node(graph, first), * b = ggml_graph_node(graph, first + 1);
    if (a->op != GGML_OP_ADD || b->op != GGML_OP_ADD || b->src[0] != a || a->ne[0] != b->ne[0] || a->type != b->type) {
        return 0;
    }
    return first % (int) (size_t) data == 0 ? 2 : 0;
}
static enum ggml_status no_execute(const struct ggml_ext_run * run, void * data) {
    (void) run;
    (void) data;
    return GGML_STATUS_FAILED;
}

/* Fills the caches with something else. */
static void cool(void) {
    enum { BYTES = 96 << 20 };
    static char * other;
    if (other == NULL) {
        REQUIRE(other = malloc(BYTES));
    }
    for (int i = 0; i < BYTES; i += 64) {
        other[i]++;
    }
}

/* Planning and allocating, the best of some rounds. Warm: what the last round left in the caches is there, which a graph of 5,000 nodes
 * gains from and one of 100,000 does not. Cold: for neither. */
static double plan_ns(ggml_backend_sched_t sched, struct ggml_cgraph * graph, int rounds, bool cold) {
    double best = 1e30;
    for (int i = 0; i < rounds; i++) {
        if (cold) {
            cool();
        }
        double start = now();
        ggml_backend_sched_reset(sched);
        bool good = ggml_backend_sched_alloc_graph(sched, graph);
        double ns = now() - start;
        REQUIRE(good);
        best = ns < best ? ns : best;
        /* a new graph each time, as far as the allocator is concerned */
        for (int k = 0; k < ggml_graph_n_nodes(graph); k++) {
            struct ggml_tensor * t = ggml_graph_node(graph, k);
            t->data = NULL;
            t->buffer = NULL;
        }
    }
    ggml_backend_sched_reset(sched);
    return best;
}

enum { RULES = 50 };

/* Registers the rules. */
static void add_rules(ggml_backend_dev_t device, int n) {
    char name[32];
    for (int i = 0; i < n; i++) {
        GGML_EXT_INIT(ggml_ext_kernel_desc, desc);
        snprintf(name, sizeof name, "bench.rule%d", i);
        desc.name = name;
        desc.execute = no_execute;
        desc.match = pairs;
        desc.user_data = (void *) (size_t) (i == 0 ? 3 : i + 5); /* some match often, most hardly ever */
        REQUIRE(ggml_ext_register_kernel(device, &desc));
    }
}

static void planning(ggml_backend_dev_t device) {
    enum { SMALL = 5000, LARGE = 100000 };
    ggml_backend_t backend = ggml_backend_dev_init(device, NULL);
    ggml_backend_sched_t sched = ggml_backend_sched_new(&backend, NULL, 1, LARGE, false, true);
    REQUIRE(backend && sched);
    struct graph small = chain(SMALL, 16), large = chain(LARGE, 16);
    double plain[2][2], ruled[2][2];
    for (int cold = 0; cold < 2; cold++) {
        plain[cold][0] = plan_ns(sched, small.graph, 40, cold);
        plain[cold][1] = plan_ns(sched, large.graph, 10, cold);
    }
    char name[32];
    add_rules(device, RULES);
    for (int cold = 0; cold < 2; cold++) {
        ruled[cold][0] = plan_ns(sched, small.graph, 40, cold);
        ruled[cold][1] = plan_ns(sched, large.graph, 10, cold);
    }
    for (int cold = 0; cold < 2; cold++) {
        double * p = plain[cold], * r = ruled[cold];
        printf("planning and allocating a chain, caches %s, ms: %d nodes %.3f, %d nodes %.2f (%.1f times)\n", cold ? "cold" : "warm", SMALL, p[0] / 1e6, LARGE, p[1] / 1e6, p[1] / p[0]);
        printf("  with %d rules asked about every node: %d nodes %.3f, %d nodes %.2f (%.1f times)\n", RULES, SMALL, r[0] / 1e6, LARGE, r[1] / 1e6, r[1] / r[0]);
    }
    for (int i = 0; i < RULES; i++) {
        snprintf(name, sizeof name, "bench.rule%d", i);
        REQUIRE(ggml_ext_release(device, name));
    }
    ggml_backend_sched_free(sched);
    ggml_backend_free(backend);
    ggml_free(small.ctx);
    ggml_free(large.ctx);
}

/* Plans a chain of `n` nodes `rounds` times: for who counts instructions. */
static void plan_only(ggml_backend_dev_t device, int n, int rounds) {
    ggml_backend_t       backend = ggml_backend_dev_init(device, NULL);
    ggml_backend_sched_t sched   = ggml_backend_sched_new(&backend, NULL, 1, (size_t) n, false, true);
    REQUIRE(backend && sched);
    struct graph g = chain(n, 16);
    add_rules(device, RULES);
    plan_ns(sched, g.graph, rounds, false);
    ggml_backend_sched_free(sched);
    ggml_backend_free(backend);
    ggml_free(g.ctx);
}

int main(int argc, char ** argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    REQUIRE(device);
    if (argc == 3) {
        plan_only(device, atoi(argv[1]), atoi(argv[2]));
        return 0;
    }
    launches(device, 1);
    launches(device, 2);
    planning(device);
    return 0;
}
