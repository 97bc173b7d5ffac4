/* The smallest test harness: each check prints "ok name" or "not ok name: why"; check_done() is the program's exit status. */
#ifndef CHECK_H
#define CHECK_H

#include "ggml.h"
#include "ggml-ext.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__)
#    define CHECK_PRINTF(a, b) __attribute__((format(printf, a, b), unused))
#    define CHECK_UNUSED __attribute__((unused))
#endif

static int check_failures;
static int check_log_errors; /* error lines that the library logged since check_quiet() */

static CHECK_UNUSED const char * check_error_text(void) {
    struct ggml_ext_error e;
    memset(&e, 0, sizeof e);
    e.struct_size = sizeof e;
    return ggml_ext_last_error(&e) && e.text ? e.text : "";
}

static CHECK_UNUSED int check_error_code(void) {
    struct ggml_ext_error e;
    memset(&e, 0, sizeof e);
    e.struct_size = sizeof e;
    return ggml_ext_last_error(&e) ? e.code : GGML_EXT_CODE_NONE;
}

/* CHECK(condition, name as printf does): true when it holds. */
#define CHECK(cond, ...) check_that((cond), #cond, __FILE__, __LINE__, __VA_ARGS__)

static CHECK_PRINTF(5, 6) bool check_that(bool ok, const char * cond, const char * file, int line, const char * name, ...) {
    va_list args;
    printf(ok ? "ok " : "not ok ");
    va_start(args, name);
    vprintf(name, args);
    va_end(args);
    if (!ok) {
        check_failures++;
        printf(": %s (%s:%d); last error: %s", cond, file, line, check_error_text());
    }
    printf("\n");
    fflush(stdout);
    return ok;
}

static CHECK_UNUSED void check_skip(const char * name, const char * why) { printf("skip %s: %s\n", name, why); }

static CHECK_UNUSED int check_done(void) { return check_failures ? EXIT_FAILURE : EXIT_SUCCESS; }

static CHECK_UNUSED void check_count_line(enum ggml_log_level level, const char * text, void * user_data) {
    (void) user_data;
    (void) text;
    check_log_errors += level == GGML_LOG_LEVEL_ERROR;
}

/* Keeps the library's error lines out of the output and counts them. */
static CHECK_UNUSED void check_quiet(void) { ggml_log_set(check_count_line, NULL); }

/* The call logged at least one error line, and the last one has each of the texts (up to NULL). */
#define CHECK_ERROR(call, code, name, ...)                                                     \
    do {                                                                                       \
        check_log_errors = 0;                                                                  \
        call;                                                                                  \
        check_error_says(code, __FILE__, __LINE__, name, (const char *[]){ __VA_ARGS__, NULL }); \
    } while (0)

static CHECK_UNUSED void check_error_says(int code, const char * file, int line, const char * name, const char ** texts) {
    check_that(check_log_errors > 0, "an error is reported", file, line, "%s", name);
    if (code != GGML_EXT_CODE_NONE) {
        check_that(check_error_code() == code, "the error has its code", file, line, "%s: code %d, have %d", name, code, check_error_code());
    }
    for (; *texts; texts++) {
        check_that(strstr(check_error_text(), *texts) != NULL, "the text says it", file, line, "%s: text has '%s'", name, *texts);
    }
}

#endif
