/* What the processor can do at most, by so many threads at once: multiplying 8-bit integers, copying and reading memory. */
#ifndef ROOF_H
#define ROOF_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#    include <immintrin.h>
#endif

enum { ROOF_THREADS = 64 };

/* Work of a thread; the answer is its operations or bytes. */
typedef double (*roof_work)(char * a, char * b, size_t size);

#if defined(__x86_64__)
/* Sums in registers, independent of each other: nothing but products can be in the way. */
#    define ROOF_SUMS(D) D(0) D(1) D(2) D(3) D(4) D(5) D(6) D(7) D(8) D(9) D(10) D(11)
#    define ROOF_KERNEL(name, features, vector, set1, dot)                                                                              \
        __attribute__((target(features))) static double name(char * m, char * n, size_t size) {                                        \
            (void) m;                                                                                                                  \
            (void) n;                                                                                                                  \
            (void) size;                                                                                                               \
            enum { ROUNDS = 400000 };                                                                                                  \
            const vector a = set1(3), b = set1(5);                                                                                     \
            vector       c[12];                                                                                                        \
            for (int i = 0; i < 12; i++) {                                                                                             \
                c[i] = a;                                                                                                              \
            }                                                                                                                          \
            vector c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3], c4 = c[4], c5 = c[5], c6 = c[6], c7 = c[7], c8 = c[8], c9 = c[9],        \
                   c10 = c[10], c11 = c[11];                                                                                           \
            for (int i = 0; i < ROUNDS; i++) {                                                                                         \
                ROOF_SUMS(dot)                                                                                                         \
                __asm__ volatile("" : "+v"(c0), "+v"(c1), "+v"(c2), "+v"(c3), "+v"(c4), "+v"(c5), "+v"(c6), "+v"(c7), "+v"(c8),         \
                                 "+v"(c9), "+v"(c10), "+v"(c11));                                                                      \
            }                                                                                                                          \
            return ROUNDS * 12.0 * 2 * sizeof(vector);                                                                                 \
        }
#    define ROOF_512(n) c##n = _mm512_dpbusd_epi32(c##n, a, b);
#    define ROOF_256(n) c##n = _mm256_add_epi32(c##n, _mm256_madd_epi16(a, b));
ROOF_KERNEL(roof_vnni, "avx512f,avx512vnni", __m512i, _mm512_set1_epi8, ROOF_512)
/* Without VNNI products are of 16 bits: half as many in a register. */
ROOF_KERNEL(roof_avx2_bytes, "avx2", __m256i, _mm256_set1_epi8, ROOF_256)
static double roof_avx2(char * a, char * b, size_t size) {
    return roof_avx2_bytes(a, b, size) / 2;
}
#endif

/* The roof of this processor, NULL: none is known for it. */
static roof_work roof_products(const char ** name) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512vnni")) {
        *name = "VNNI, 512 bits";
        return roof_vnni;
    }
    if (__builtin_cpu_supports("avx2")) {
        *name = "AVX2, 16 bits";
        return roof_avx2;
    }
#endif
    *name = "none";
    return NULL;
}

static double roof_copy(char * a, char * b, size_t size) {
    memcpy(b, a, size);
    __asm__ volatile("" : : "r"(b) : "memory");
    return 2.0 * (double) size;
}

/* Eight places at a time and a line of each ahead: more than one after the other. */
static double roof_read(char * a, char * b, size_t size) {
    (void) b;
    enum { PLACES = 8, LONG = 4096 };
    uint64_t sum[8] = { 0 };
    for (char * block = a; block + PLACES * LONG <= a + size; block += PLACES * LONG) {
        for (size_t i = 0; i < LONG; i += 64) {
            for (size_t j = 0; j < PLACES; j++) {
                uint64_t v[8];
                memcpy(v, block + j * LONG + i, 64);
                __builtin_prefetch(block + (PLACES + j) * LONG + i, 0, 2);
                for (int l = 0; l < 8; l++) {
                    sum[l] += v[l];
                }
            }
        }
    }
    __asm__ volatile("" : : "r"(sum) : "memory");
    return (double) (size / (PLACES * LONG) * (PLACES * LONG));
}

struct roof_team {
    roof_work  work;
    size_t     size;
    atomic_int ready, go;
    int        n;
};

struct roof_one {
    struct roof_team * team;
    char *             memory;
    double             done;
    pthread_t          id;
};

static void * roof_thread(void * data) {
    struct roof_one *  one  = data;
    struct roof_team * team = one->team;
    atomic_fetch_add(&team->ready, 1);
    while (!atomic_load(&team->go)) {
    }
    one->done = team->work(one->memory, one->memory + team->size, team->size);
    return NULL;
}

/* What n threads do per microsecond, together, from the first start to the last end: the best of some rounds, as for the kernels. */
static double roof(roof_work work, int n, size_t size, int rounds) {
    static struct roof_one one[ROOF_THREADS];
    double                 best = 0;
    n                           = n < 1 ? 1 : n > ROOF_THREADS ? ROOF_THREADS : n;
    for (int i = 0; i < n; i++) {
        one[i].memory = size ? malloc(2 * size) : NULL;
        if (size && !one[i].memory) {
            fprintf(stderr, "no memory\n");
            exit(1);
        }
        if (size) {
            memset(one[i].memory, 1, 2 * size);
        }
    }
    for (int r = 0; r < rounds; r++) {
        struct roof_team team = { work, size, 0, 0, n };
        for (int i = 0; i < n; i++) {
            one[i].team = &team;
            if (pthread_create(&one[i].id, NULL, roof_thread, &one[i]) != 0) {
                fprintf(stderr, "no thread\n");
                exit(1);
            }
        }
        while (atomic_load(&team.ready) < n) {
        }
        const int64_t start = ggml_time_us();
        atomic_store(&team.go, 1);
        double sum = 0;
        for (int i = 0; i < n; i++) {
            pthread_join(one[i].id, NULL);
            sum += one[i].done;
        }
        const double rate = sum / (double) (ggml_time_us() - start);
        best              = rate > best ? rate : best;
    }
    for (int i = 0; i < n; i++) {
        free(one[i].memory);
    }
    return best;
}
#endif
