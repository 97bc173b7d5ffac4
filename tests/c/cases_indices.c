/* Case 18 of the public reports, llama.cpp#27283, #9354: indices that point outside, with pages that cannot be touched before and behind
   each tensor. The graph fails with a text, the process lives, and the result's neighbours are what they were. */
#include "check.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"

#include <sys/mman.h>

enum { PAGE = 4096, COLS = 16, ROWS = 64, N = 32 };

static struct ggml_context * ctx;
static ggml_backend_t        cpu;

/* A page of memory between two that cannot be touched; a tensor of f32 [COLS, ROWS] fills it. */
struct page {
    char *                whole;
    ggml_backend_buffer_t buffer;
};

static struct page page(void) {
    struct page p;
    p.whole = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p.whole == MAP_FAILED || mprotect(p.whole + PAGE, PAGE, PROT_READ | PROT_WRITE) != 0) {
        exit(2);
    }
    p.buffer = ggml_backend_cpu_buffer_from_ptr(p.whole + PAGE, PAGE);
    return p;
}

static void place(struct page * p, struct ggml_tensor * t) {
    memset(p->whole + PAGE, 1, PAGE);
    if (!t->view_src && !CHECK(ggml_backend_tensor_alloc(p->buffer, t, p->whole + 2 * PAGE - ggml_nbytes(t)) == GGML_STATUS_SUCCESS, "%zu bytes are placed", ggml_nbytes(t))) {
        exit(2);
    }
}

static const char * const names[] = { "get_rows", "get_rows_back", "set_rows", "mul_mat_id", "add_id" };

/* Operator `op` with index `at` of N that is `bad`. */
static void outside(struct page pages[4], int op, enum ggml_type type, int at, int64_t bad, int threads) {
    struct ggml_tensor * a   = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, COLS, ROWS);
    struct ggml_tensor * b   = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, COLS, N);
    struct ggml_tensor * ids = ggml_new_tensor_1d(ctx, type, N), * out = NULL;
    switch (op) {
    case 0: out = ggml_get_rows(ctx, a, ids); break;
    case 1: out = ggml_get_rows_back(ctx, b, ids, a); break;
    case 2: out = ggml_set_rows(ctx, a, b, ids); break;
    case 3: out = ggml_mul_mat_id(ctx, ggml_reshape_3d(ctx, a, COLS, 1, ROWS), ggml_reshape_3d(ctx, b, COLS, 1, N), ggml_reshape_2d(ctx, ids, 1, N)); break;
    default: out = ggml_add_id(ctx, ggml_reshape_3d(ctx, b, COLS, 1, N), a, ggml_reshape_2d(ctx, ids, 1, N)); break;
    }
    place(&pages[0], a);
    place(&pages[1], b);
    place(&pages[2], ids);
    place(&pages[3], out);
    struct ggml_cgraph * g = ggml_new_graph_custom(ctx, 16, false);
    ggml_build_forward_expand(g, out);
    for (int i = 0; i < ggml_graph_n_nodes(g); i++) {
        struct ggml_tensor * n = ggml_graph_node(g, i);
        if (n->view_src && !n->buffer) {
            ggml_backend_view_init(n);
        }
    }
    for (int i = 0; i < N; i++) {
        const int64_t id = i == at ? bad : (i * 7) % ROWS;
        if (type == GGML_TYPE_I64) {
            ((int64_t *) ids->data)[i] = id;
        } else {
            ((int32_t *) ids->data)[i] = (int32_t) id;
        }
    }
    ggml_backend_cpu_set_n_threads(cpu, threads);
    const bool sound = bad >= 0 && bad < ROWS;
    const enum ggml_status status = ggml_backend_graph_compute(cpu, g);
    CHECK((status == GGML_STATUS_SUCCESS) == sound, "%s, %s, %d threads: index %lld at %d", names[op], ggml_type_name(type), threads, (long long) bad, at);
    if (!sound) {
        CHECK(status == GGML_STATUS_FAILED && strlen(check_error_text()) > 10, "%s: the text: %s", names[op], check_error_text());
    }
    /* what lies in the pages before the tensors is what was put there */
    bool whole = true;
    for (int k = 0; k < 4; k++) {
        const struct ggml_tensor * t = (struct ggml_tensor *[]){ a, b, ids, out }[k];
        for (const char * c = pages[k].whole + PAGE; !t->view_src && c < (const char *) t->data; c++) {
            whole = whole && *c == 1;
        }
    }
    CHECK(whole, "%s: nothing is written before a tensor", names[op]);
    ggml_reset(ctx);
}

int main(void) {
    check_quiet();
    ctx = ggml_init((struct ggml_init_params){ 1 << 16, NULL, true });
    cpu = ggml_backend_cpu_init();
    struct page pages[4] = { page(), page(), page(), page() };
    const int64_t bad[]  = { 3, -1, ROWS, 20 + ROWS, 999999, INT32_MIN, INT32_MAX, (int64_t) 1 << 32, INT64_MIN, INT64_MAX };
    for (int op = 0; op < 5; op++) {
        for (int i = 0; i < 10; i++) {
            for (int at = 0; at < N; at += N - 1) {
                for (int threads = 1; threads < 4; threads += 2) {
                    if (i < 7) {
                        outside(pages, op, GGML_TYPE_I32, at, bad[i], threads);
                    }
                    if (op == 2) {
                        outside(pages, op, GGML_TYPE_I64, at, bad[i], threads);
                    }
                }
            }
        }
    }
    for (int k = 0; k < 4; k++) {
        ggml_backend_buffer_free(pages[k].buffer);
        munmap(pages[k].whole, 3 * PAGE);
    }
    ggml_backend_free(cpu);
    ggml_free(ctx);
    return check_done();
}
