/* A block by itself: its plan, and what each fusion rule saves. */
#define _POSIX_C_SOURCE 200809L
#include "ggml-cpu.h"
#include "model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The rules of ggml-sd.h. A rule is switched off by its name in GGML_EXT_FORBID, which is read when a graph is allocated. */
static const char * const rules[] = { "sd.rms_norm_mul_rope.cpu", "sd.rms_norm_mul_convrot.cpu", "sd.linear_swiglu_convrot.cpu",
                                      "sd.modulate_convrot.cpu", "sd.swiglu_convrot.cpu" };
static const char * const what[]  = { "RMS_NORM, MUL, rope_apply", "RMS_NORM, MUL, modulate, quantise", "linear, linear, SWIGLU, quantise",
                                      "modulate, quantise", "SWIGLU, quantise" };

enum { RULES = sizeof rules / sizeof *rules, CASES = RULES + 2, MAX_ROUNDS = 101 };

struct bench_case {
    const char * name;
    struct run   run;
    double       ms[MAX_ROUNDS], cpu_ms[MAX_ROUNDS];
    size_t       memory;
};

/* Forbids all rules (0), all but one (1 to RULES), none. */
static void forbid(int number) {
    char names[256] = "";
    for (int i = 0; number <= RULES && i < RULES; i++) {
        if (i != number - 1) {
            strcat(strcat(names, names[0] ? "," : ""), rules[i]);
        }
    }
    setenv("GGML_EXT_FORBID", names, 1);
}

static char * explain(ggml_backend_sched_t sched, enum ggml_ext_explain_format format) {
    const size_t n    = ggml_ext_explain(sched, format, NULL, 0);
    char *       text = n > 0 ? malloc(n + 1) : NULL;
    if (!text || ggml_ext_explain(sched, format, text, n + 1) != n) {
        failed("ggml_ext_explain");
        free(text);
        return NULL;
    }
    return text;
}

/* A number of the explained plan's totals. */
static long long total(const char * json, const char * key) {
    char         quoted[48];
    const char * at = strstr(json, "\"totals\"");
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    at = at ? strstr(at, quoted) : NULL;
    return at ? strtoll(at + strlen(quoted), NULL, 10) : -1;
}

static int by_value(const void * a, const void * b) {
    const double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

static float * result(const struct run * r) {
    float * data = malloc(ggml_nbytes(r->result));
    if (data) {
        ggml_backend_tensor_get(r->result, data, 0, ggml_nbytes(r->result));
    }
    return data;
}

static bool print_cases(struct bench_case * cases, int rounds) {
    float * plain = result(&cases[0].run);
    bool    ok    = plain != NULL;
    printf("   %-36s %6s %9s %8s %14s %16s %11s %8s %15s\n", "fusions", "nodes", "launches", "fused", "no memory, KB", "compute buffer, KB",
           "median, ms", "best", "least work, ms");
    for (int i = 0; ok && i < CASES; i++) {
        struct bench_case * c    = &cases[i];
        char *              json = explain(c->run.sched, GGML_EXT_EXPLAIN_JSON);
        float *             mine = result(&c->run);
        ok                       = json && mine;
        if (ok) {
            qsort(c->ms, (size_t) rounds, sizeof *c->ms, by_value);
            qsort(c->cpu_ms, (size_t) rounds, sizeof *c->cpu_ms, by_value);
            printf("   %-36s %6lld %9lld %8lld %14lld %18zu %11.2f %8.2f %15.2f\n", c->name, total(json, "nodes"), total(json, "launches"),
                   total(json, "fused_nodes"), total(json, "skipped_bytes") / 1024, c->memory / 1024, c->ms[rounds / 2], c->ms[0],
                   c->cpu_ms[0]);
            if (memcmp(plain, mine, ggml_nbytes(c->run.result)) != 0) {
                printf("   the result differs from that without fusions\n");
                ok = false;
            }
        }
        free(json);
        free(mine);
    }
    free(plain);
    return ok;
}

bool bench_block(const struct model * m, ggml_backend_t backend, int rounds) {
    static struct bench_case cases[CASES];
    bool                     ok = true;
    memset(cases, 0, sizeof cases);
    rounds = rounds > MAX_ROUNDS ? MAX_ROUNDS : rounds;
    for (int i = 0; i < CASES; i++) {
        cases[i].name = i == 0 ? "none" : i <= RULES ? what[i - 1] : "all";
        forbid(i);
        ok              = run_new(&cases[i].run, m, backend, INT8, false) && run_compute(&cases[i].run) && ok;
        cases[i].memory = ok ? ggml_backend_sched_get_buffer_size(cases[i].run.sched, backend) : 0;
    }
    unsetenv("GGML_EXT_FORBID");
    /* one after the other, again and again: what the machine does besides meets all alike */
    for (int r = 0; ok && r < rounds; r++) {
        for (int i = 0; ok && i < CASES; i++) {
            const int64_t start = ggml_time_us();
            const clock_t work  = clock();
            ok                  = run_compute(&cases[i].run);
            cases[i].ms[r]      = (double) (ggml_time_us() - start) / 1000;
            cases[i].cpu_ms[r]  = (double) (clock() - work) * 1000 / CLOCKS_PER_SEC;
        }
    }
    if (ok) {
        char * text = explain(cases[CASES - 1].run.sched, GGML_EXT_EXPLAIN_TEXT);
        ok          = text != NULL;
        printf("-- the plan of a block, all fusions\n%s", ok ? text : "");
        printf("-- a block, %d runs of each, in turn; work: processor time of all threads\n", rounds);
        free(text);
        ok = ok && print_cases(cases, rounds);
        ok = ok && (cases[CASES - 1].memory < cases[0].memory || (printf("   fusions save no memory\n"), false));
        for (int i = 0; ok && i < RULES; i++) {
            GGML_EXT_INIT(ggml_ext_counters, n);
            ok = ggml_ext_counters(ggml_backend_get_device(backend), rules[i], &n) || failed(rules[i]);
            printf("   %-36s chosen for %llu steps, %llu launches for %llu nodes, %llu errors\n", rules[i], (unsigned long long) n.selected,
                   (unsigned long long) n.ran, (unsigned long long) n.fused_nodes, (unsigned long long) n.errors);
            ok = ok && (n.fused_nodes > 0 || (printf("   it fused nothing\n"), false));
        }
    }
    for (int i = 0; i < CASES; i++) {
        run_free(&cases[i].run);
    }
    return ok;
}
