/* A diffusion transformer in 8 bits: what comes out, against F32 and against the rounding that 8 bits are. See `run --help`. */
#define _POSIX_C_SOURCE 200809L
#include "ggml-cpu.h"
#include "model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static float * numbers(const struct ggml_tensor * t) {
    float * data = malloc(ggml_nbytes(t));
    if (data) {
        ggml_backend_tensor_get(t, data, 0, ggml_nbytes(t));
    }
    return data;
}

static double squares(const float * a, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += (double) a[i] * a[i];
    }
    return sum;
}

/* The root of the mean squared difference, relative to `b`; NaN where a number is none, or there is no memory. */
static double difference(const struct ggml_tensor * ta, const struct ggml_tensor * tb) {
    float *       a = numbers(ta), *b = numbers(tb);
    const int64_t n   = ggml_nelements(tb);
    double        sum = a && b ? 0 : NAN;
    for (int64_t i = 0; a && b && i < n; i++) {
        sum += ((double) a[i] - b[i]) * ((double) a[i] - b[i]);
    }
    sum = a && b ? sqrt(sum / squares(b, n)) : NAN;
    free(a);
    free(b);
    return sum;
}

/* The error of a linear layer by calculation. Rounding to steps of s makes errors of variance s^2 / 12 that know nothing of each other:
 * of activations, s_x, times the squared length of a weight's row, and of weights, s_w, times that of an activation's. */
static double expected(const struct probe * p) {
    const int64_t k = p->x->ne[0], rows = ggml_nrows(p->x), n = p->layer->i8->ne[1], padded = (rows + 3) / 4 * 4;
    float *       x = numbers(p->x), *w = numbers(p->layer->rounded), *y = numbers(p->plain), *sw = numbers(p->layer->scale);
    float *       sx = malloc((size_t) rows * sizeof *sx);
    double        e  = NAN;
    if (x && w && y && sw && sx) {
        ggml_backend_tensor_get(p->packed, sx, (size_t) (k * padded), (size_t) rows * sizeof *sx);
        const double mean_sw = squares(sw, n) / (double) n, mean_sx = squares(sx, rows) / (double) rows;
        const double mean_x = squares(x, k * rows) / (double) rows, mean_w = squares(w, k * n) / (double) n;
        e = sqrt((mean_sx / 12 * mean_w + mean_sw / 12 * mean_x) / (squares(y, n * rows) / (double) (n * rows)));
    }
    free(x);
    free(w);
    free(y);
    free(sw);
    free(sx);
    return e;
}

/* Integers that rounding at a tie, or within an F32 error of one, takes to the other side: one step in some 10,000 elements. */
#define SAME 5e-4

static bool check_layers(const struct model * m, ggml_backend_t backend) {
    static struct run r;
    bool              ok = run_new(&r, m, backend, CHECK, true) && run_compute(&r);
    double            worst = 0, least = 1e9, most = 0;
    printf("-- linear layers, each on the input that it has in 8 bits; relative to F32\n");
    printf("   %-32s %12s %9s %9s %26s\n", "layer", "K x N", "error", "expected", "against the same rounding");
    for (int i = 0; ok && i < r.b.n_probes; i++) {
        const struct probe * p = &r.b.probes[i];
        const double error = difference(p->int8, p->plain), want = expected(p), same = difference(p->int8, p->round);
        printf("   %-32s %6lld x %5lld %8.3f%% %8.3f%% %26.1e\n", p->layer->name, (long long) p->x->ne[0], (long long) p->int8->ne[0], 100 * error,
               100 * want, same);
        worst = same > worst || isnan(same) ? same : worst;
        least = error / want < least ? error / want : least;
        most  = error / want > most || isnan(error / want) ? error / want : most;
    }
    printf("   error / expected error: %.3f to %.3f (0.95 to 1.05 is asked for); against the same rounding: at most %.1e (%.0e)\n", least, most, worst,
           SAME);
    run_free(&r);
    return ok && least > 0.95 && most < 1.05 && worst < SAME;
}

static bool check_model(const struct model * m, ggml_backend_t backend) {
    static struct run int8, plain, round;
    bool ok = run_new(&int8, m, backend, INT8, true) && run_new(&plain, m, backend, PLAIN, true) && run_new(&round, m, backend, ROUND, true);
    ok      = ok && run_compute(&int8) && run_compute(&plain) && run_compute(&round);
    double most = 0;
    printf("-- the whole model; relative to F32\n");
    printf("   %-20s %9s %28s %10s\n", "after", "error", "of rounding by ggml's own", "apart");
    for (int i = 0; ok && i < int8.b.n_stages; i++) {
        const double mine = difference(int8.b.stages[i], plain.b.stages[i]), same = difference(round.b.stages[i], plain.b.stages[i]);
        const double apart = difference(int8.b.stages[i], round.b.stages[i]);
        printf("   %-20s %8.3f%% %27.3f%% %9.3f%%\n", int8.b.stage_names[i], 100 * mine, 100 * same, 100 * apart);
        most = mine / same > most || isnan(mine / same) ? mine / same : most;
    }
    printf("   error / that of the same rounding: at most %.3f (1.1 is asked for)\n", most);
    run_free(&int8);
    run_free(&plain);
    run_free(&round);
    return ok && most < 1.1;
}

static void no_log(enum ggml_log_level level, const char * text, void * user_data) {
    (void) level;
    (void) text;
    (void) user_data;
}

static int usage(void) {
    fprintf(stderr, "usage: sd-block [--full] [--threads N] [--seed N] FOLDER\n");
    return 2;
}

int main(int argc, char ** argv) {
    struct config c = { .width = 1024, .inner = 2816, .text_width = 512, .time_hidden = 512, .adaln = 256, .layers = 2, .refiners = 1,
                        .rows = 14, .columns = 16, .text = 32, .seed = 1 };
    const char *  folder  = NULL;
    long          threads = sysconf(_SC_NPROCESSORS_ONLN);
    bool          full    = false;
    threads               = threads < 1 ? 1 : threads > 8 ? 8 : threads;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--full") == 0) {
            full = true;
        } else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc) {
            threads = strtol(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
            c.seed = strtoull(argv[++i], NULL, 10);
        } else if (argv[i][0] != '-' && !folder) {
            folder = argv[i];
        } else {
            return usage();
        }
    }
    if (!folder || threads < 1 || threads > 512) {
        return usage();
    }
    if (full) {
        c.width = 3840, c.inner = 10240, c.text_width = 2560, c.time_hidden = 1024, c.layers = 1, c.refiners = 0, c.rows = c.columns = 32;
    }
    char f32_path[4096], int8_path[4096];
    snprintf(f32_path, sizeof f32_path, "%s/f32.safetensors", folder);
    snprintf(int8_path, sizeof int8_path, "%s/int8_convrot.safetensors", folder);

    ggml_log_set(no_log, NULL);
    static struct model m;
    ggml_backend_t      cpu = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, NULL);
    bool                ok  = cpu || failed("the CPU backend");
    if (ok) {
        ggml_backend_cpu_set_n_threads(cpu, (int) threads);
    }
    printf("-- %lld channels, %lld heads of %d, %lld inside, %d blocks, %d tokens, %ld threads\n", (long long) c.width,
           (long long) config_heads(&c), HEAD, (long long) c.inner, c.layers + 2 * c.refiners, config_tokens(&c), threads);
    /* before the device is asked what it supports */
    ok = ok && (ggml_sd_register_extensions(NULL) || failed("ggml_sd_register_extensions"));
    ok = ok && checkpoint_write(&c, f32_path, int8_path) && model_load(&m, &c, cpu, f32_path, int8_path);
    /* all of it is looked at, also after something was wrong */
    const bool good_layers = ok && check_layers(&m, cpu), good_model = ok && check_model(&m, cpu);
    const bool good_block  = ok && bench_block(&m, cpu, full ? 7 : 41);
    ok = good_layers && good_model && good_block;
    model_free(&m);
    ggml_backend_free(cpu);
    printf("%s\n", ok ? "all as it should be" : "FAILED");
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
