/* What the tests of ggml_ext_check share: elements by strides, registrations, and what a check found. */
#ifndef EXT_CHECK_UTIL_H
#define EXT_CHECK_UTIL_H

#include "check.h"

#include "ggml-backend.h"
#include "ggml-cpu.h"

#include <math.h>

/* Element of `t` at these places, by its strides. */
static CHECK_UNUSED float * at(const struct ggml_tensor * t, int64_t i0, int64_t i1, int64_t i2, int64_t i3) {
    return (float *) ((char *) t->data + (size_t) i0 * t->nb[0] + (size_t) i1 * t->nb[1] + (size_t) i2 * t->nb[2] + (size_t) i3 * t->nb[3]);
}

/* for each element of `t` */
#define EACH(t)                                        \
    for (int64_t i3 = 0; i3 < (t)->ne[3]; i3++)        \
        for (int64_t i2 = 0; i2 < (t)->ne[2]; i2++)    \
            for (int64_t i1 = 0; i1 < (t)->ne[1]; i1++) \
                for (int64_t i0 = 0; i0 < (t)->ne[0]; i0++)
#define AT(t) (*at((t), i0, i1, i2, i3))

static CHECK_UNUSED bool f32s(const struct ggml_ext_step * step) {
    bool good = step->nodes[step->n_nodes - 1]->type == GGML_TYPE_F32;
    for (int i = 0; i < step->n_srcs; i++) {
        good = good && step->srcs[i]->type == GGML_TYPE_F32;
    }
    return good || ggml_ext_refuse("f32 only");
}

static ggml_backend_t     cpu;
static ggml_backend_dev_t dev;

static CHECK_UNUSED void begin(void) {
    check_quiet();
    cpu = ggml_backend_cpu_init();
    dev = ggml_backend_get_device(cpu);
}

/* What a check found: names of cases, each with a space behind it. */
static struct found {
    char failed[1000], passed[1000], not_applicable[1000], noted[1000];
    char texts[8000]; /* of those that did not pass */
    bool good;
    struct ggml_ext_check_report report;
} found;

static void add_name(char * list, size_t size, const char * name) {
    const size_t n = strlen(list);
    snprintf(list + n, size - n, "%s ", name);
}

static CHECK_UNUSED void on_case(const struct ggml_ext_check_case * c, void * data) {
    (void) data;
    char * lists[] = { found.passed, found.failed, found.not_applicable, found.noted };
    add_name(lists[c->outcome], sizeof found.failed, c->name);
    if (c->outcome != GGML_EXT_CHECK_PASSED) {
        const size_t n = strlen(found.texts);
        snprintf(found.texts + n, sizeof found.texts - n, "# %s: %s\n", c->name, c->text);
    }
}

/* Checks the registration `name`. */
static CHECK_UNUSED bool check_it(const char * name, struct ggml_ext_check_params * params) {
    memset(&found, 0, sizeof found);
    found.report.struct_size = sizeof found.report;
    params->on_case          = on_case;
    found.good               = ggml_ext_check(cpu, name, params, &found.report);
    return found.good;
}

static CHECK_UNUSED bool has(const char * list, const char * name) {
    char word[100];
    snprintf(word, sizeof word, "%s ", name);
    for (const char * p = list; (p = strstr(p, word)) != NULL; p++) {
        if (p == list || p[-1] == ' ') {
            return true;
        }
    }
    return false;
}

/* Everything passed that shows something, and these show nothing. */
static CHECK_UNUSED void expect_good(const char * what, const char * not_applicable) {
    const struct ggml_ext_check_report * r = &found.report;
    const int before = check_failures;
    CHECK(found.good && !*found.failed, "%s: no case fails%s%s", what, *found.failed ? ", but " : "", found.failed);
    CHECK(!strcmp(found.not_applicable, not_applicable), "%s: without a say is '%s'", what, found.not_applicable);
    CHECK(r->n_failed == 0 && r->n_passed + r->n_not_applicable + r->n_noted == r->n_cases && r->n_runs > 10 && !r->text,
          "%s: the report's numbers", what);
    if (check_failures != before) {
        printf("%s", found.texts);
    }
}

/* Just these cases fail, and the error says which is first. */
static CHECK_UNUSED void expect_bad(const char * what, const char * failed) {
    const struct ggml_ext_check_report * r = &found.report;
    const int before = check_failures;
    CHECK(!found.good && !strcmp(found.failed, failed), "%s: '%s' fails, and is '%s'", what, failed, found.failed);
    CHECK(check_error_code() == GGML_EXT_CODE_CHECK_FAILED && r->n_failed > 0 && r->text && r->failed_case &&
              strstr(check_error_text(), r->text) && strstr(check_error_text(), r->failed_case) && !strncmp(failed, r->failed_case, strlen(r->failed_case)),
          "%s: the error says so", what);
    if (check_failures != before || getenv("TEST_VERBOSE")) {
        printf("%s", found.texts);
    }
}

#endif
