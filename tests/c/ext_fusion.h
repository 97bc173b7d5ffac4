/* A graph in which one match is proposed; computed without and with the rule, on the CPU alone and on another device before it. */
#ifndef EXT_FUSION_H
#define EXT_FUSION_H

#include "ext_util.h"

enum { TENSORS = 8, BYTES = 4096 };

/* The graph at hand. */
static struct match_case {
    struct ggml_cgraph * graph;
    struct ggml_tensor * first;           /* the match begins there */
    int                  n;               /* and has so many nodes */
    struct ggml_tensor * in[TENSORS];     /* filled before each computation, by number */
    struct ggml_tensor * out[TENSORS];    /* compared */
    struct ggml_tensor * owner;           /* the node of the match that holds the result's storage, if it is another than the last */
    struct ggml_tensor * on_cpu[TENSORS]; /* nodes that a team of two computes on the CPU */
    bool                 garbage;         /* there is nothing to compare */
} k;

static struct fake fusion_fake;
static struct team fusion_teams[2];

static int propose(struct ggml_cgraph * g, int first, struct probe * p) {
    const struct ggml_tensor * t = ggml_graph_node(g, first);
    p->wrong += t->data != NULL && !t->view_src && t->buffer == NULL;
    return t == k.first ? k.n : 0;
}

static bool fusion_compute(ggml_backend_sched_t s, char result[TENSORS][BYTES]) {
    for (int i = 0; i < TENSORS && k.in[i]; i++) {
        fill(k.in[i], i + 1);
    }
    if (ggml_backend_sched_graph_compute(s, k.graph) != GGML_STATUS_SUCCESS) {
        return false;
    }
    memset(result, 0, TENSORS * BYTES);
    for (int i = 0; i < TENSORS && k.out[i]; i++) {
        ggml_backend_tensor_get(k.out[i], result[i], 0, ggml_nbytes(k.out[i]));
    }
    return true;
}

static bool fusion_alloc(struct team * t, ggml_backend_sched_t s, void (*build)(void)) {
    ggml_reset(ctx);
    memset(&k, 0, sizeof k);
    build();
    for (int i = 0; t->fake && i < ggml_graph_n_nodes(k.graph); i++) {
        struct ggml_tensor * node = ggml_graph_node(k.graph, i);
        ggml_backend_t       to   = t->main;
        for (int j = 0; j < TENSORS; j++) {
            to = k.on_cpu[j] == node ? t->list[1] : to;
        }
        ggml_backend_sched_set_tensor_backend(s, node, to);
    }
    return ggml_backend_sched_alloc_graph(s, k.graph);
}

/* Whether the explained plan has `text`. */
static CHECK_UNUSED bool explained(ggml_backend_sched_t s, const char * text) {
    const size_t size = ggml_ext_explain(s, GGML_EXT_EXPLAIN_TEXT, NULL, 0) + 1;
    char *       all  = malloc(size);
    all[0]            = 0;
    ggml_ext_explain(s, GGML_EXT_EXPLAIN_TEXT, all, size);
    const bool found = strstr(all, text) != NULL;
    if (!found) {
        printf("# no '%s' in:\n", text);
        for (const char * line = all; *line;) {
            const int n = (int) strcspn(line, "\n");
            printf("#   %.*s\n", n, line);
            line += n + (line[n] == '\n');
        }
    }
    free(all);
    return found;
}

/* Largest difference of f32 results relative to what is expected. */
static double fusion_difference(char want[TENSORS][BYTES], char have[TENSORS][BYTES]) {
    double worst = 0;
    for (int i = 0; i < TENSORS && k.out[i]; i++) {
        const float *a = (const float *) want[i], *b = (const float *) have[i];
        for (int64_t j = 0; j < ggml_nelements(k.out[i]); j++) {
            worst = fmax(worst, fabs((double) a[j] - b[j]) / fmax(1e-3, fabs(a[j])));
        }
    }
    return worst;
}

/* Computes the graph unfused and with the proposal. `refused`: part of the reason; NULL: it is accepted. `tolerance`: relative; 0: the
 * same bits. */
static CHECK_UNUSED void fusion_case_near(const char * name, void (*build)(void), const char * refused, double tolerance) {
    static char want[TENSORS][BYTES], have[TENSORS][BYTES];
    for (int i = 0; i < 2; i++) {
        struct team * t   = &fusion_teams[i];
        struct probe rule = { .name = "rule", .match = propose };
        size_t       size[2] = { 0, 0 };
        for (int with = 0; with < 2; with++) {
            if (with && !probe_register(&rule, t->dev)) {
                CHECK(false, "%s: registered", name);
            }
            ggml_backend_sched_t s    = team_sched(t, false);
            bool                 good = fusion_alloc(t, s, build);
            size[with]                = ggml_backend_sched_get_buffer_size(s, t->main);
            for (int again = 0; good && again < 2; again++) {
                good = fusion_compute(s, with ? have : want);
            }
            CHECK(good, "%s: %s: computed %s the rule", name, t->name, with ? "with" : "without");
            if (!with || !good) {
                ggml_backend_sched_free(s);
                continue;
            }
            const bool same = k.garbage || (tolerance == 0 ? memcmp(want, have, sizeof want) == 0 : fusion_difference(want, have) <= tolerance);
            CHECK(same, "%s: %s: EXT-49: %s as without it (worst difference %g)", name, t->name, tolerance == 0 ? "bit for bit" : "the same", tolerance == 0 ? 0.0 : fusion_difference(want, have));
            if (refused) {
                CHECK(rule.n_execute == 0 && rule.n_match > 0, "%s: %s: refused", name, t->name);
                CHECK(explained(s, refused), "%s: %s: because '%s'", name, t->name, refused);
                CHECK(size[0] == size[1], "%s: %s: and every node has its memory", name, t->name);
            } else {
                int at = 0, bad = 0, placed = 0;
                while (at < ggml_graph_n_nodes(k.graph) && ggml_graph_node(k.graph, at) != k.first) {
                    at++;
                }
                for (int j = 0; j < k.n; j++) {
                    const struct ggml_tensor * node = ggml_graph_node(k.graph, at + j);
                    const bool                 kept = j == k.n - 1 || node == k.owner;
                    bad += !kept && (node->data != NULL || node->buffer != NULL);
                    placed += kept && node->data != NULL;
                }
                CHECK(rule.n_execute == 2 && rule.n_nodes == k.n, "%s: %s: accepted, %d nodes (%d, %d)", name, t->name, k.n, rule.n_execute, rule.n_nodes);
                CHECK(bad == 0 && placed == 1 + (k.owner != NULL), "%s: %s: EXT-47: what is fused has no memory, the result has (%d, %d)", name, t->name, bad, placed);
                /* the result does not take the place of what is read, as a node by itself may */
                const size_t most = size[0] + GGML_PAD(ggml_nbytes(ggml_graph_node(k.graph, at + k.n - 1)), 64);
                CHECK(size[1] <= most, "%s: %s: EXT-47: the buffer is larger by no more than the result (%zu, %zu)", name, t->name, size[0], size[1]);
            }
            ggml_backend_sched_free(s);
        }
        probe_end(&rule, name);
    }
}

static CHECK_UNUSED void fusion_case(const char * name, void (*build)(void), const char * refused) { fusion_case_near(name, build, refused, 0); }

static CHECK_UNUSED void fusion_open(void) {
    check_quiet();
    ctx_open();
    fusion_teams[0] = team_cpu();
    fusion_teams[1] = team_fake(&fusion_fake, "OTHER");
}

static CHECK_UNUSED int fusion_close(void) {
    team_free(&fusion_teams[0]);
    team_free(&fusion_teams[1]);
    ggml_free(ctx);
    return check_done();
}

#endif
