/* Where log lines and the text of ggml_abort go. */
#include "check.h"
#include "ggml-backend.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int  lines;
static char last[1000];
static int  cookie;

static void on_line(enum ggml_log_level level, const char * text, void * data) {
    lines += data == &cookie && level == GGML_LOG_LEVEL_ERROR;
    snprintf(last, sizeof last, "%s", text);
}

static int pipe_to_parent;
static void on_abort(const char * text) {
    if (write(pipe_to_parent, text, strlen(text)) < 0) {
        _exit(3);
    }
}

/* Runs f in a child; what it wrote to the pipe (or to stderr) comes back. Answers the wait status. */
static int in_child(void (*f)(void), char * out, size_t n, bool stderr_too) {
    int ends[2];
    if (pipe(ends)) {
        return -1;
    }
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        pipe_to_parent = ends[1];
        if (stderr_too) {
            dup2(ends[1], 2);
        }
        f();
        _exit(0);
    }
    close(ends[1]);
    size_t  have = 0;
    ssize_t got;
    while (have + 1 < n && (got = read(ends[0], out + have, n - 1 - have)) > 0) {
        have += (size_t) got;
    }
    out[have] = 0;
    close(ends[0]);
    int status = 0;
    waitpid(pid, &status, 0);
    return status;
}

static void with_callback(void) {
    ggml_set_abort_callback(on_abort);
    GGML_ABORT("value %d of %s", 42, "it");
}
static void without(void) { GGML_ASSERT(1 == 2); }
static void holds(void) { GGML_ASSERT(1 == 1); }
static void long_text(void) {
    static char text[20000];
    memset(text, 'x', sizeof text - 1);
    ggml_set_abort_callback(on_abort);
    ggml_abort("file", 7, "%s", text);
}
static void error_line(void) { ggml_new_tensor_1d(NULL, GGML_TYPE_F32, 1); }

/* Standard error that takes nothing: an error is still only an error. */
static void full_stderr(void) {
    const int full = open("/dev/full", O_WRONLY);
    dup2(full, 2);
    ggml_log_set(NULL, NULL);
    error_line();
    const char * text = strstr(check_error_text(), "ggml_new_tensor_1d") ? "alive" : "no text";
    if (write(pipe_to_parent, text, strlen(text)) < 0) {
        _exit(3);
    }
}
static void closed_stderr(void) {
    close(2);
    ggml_log_set(NULL, NULL);
    error_line();
    if (write(pipe_to_parent, "alive", 5) < 0) {
        _exit(3);
    }
}
/* A callback that itself makes the library report. */
static void reenter(enum ggml_log_level level, const char * text, void * data) {
    (void) level;
    (void) text;
    int * depth = data;
    if (++*depth < 3) {
        error_line();
        ggml_log_set(on_line, &cookie);
    }
}
static void reentrant(void) {
    int depth = 0;
    ggml_log_set(reenter, &depth);
    error_line();
    if (write(pipe_to_parent, "alive", 5) < 0) {
        _exit(3);
    }
}

int main(void) {
    char              out[30000];
    ggml_log_callback callback = NULL;
    void *            data     = &cookie;
    ggml_log_get(&callback, &data);
    CHECK(callback != NULL && data == NULL, "the default callback is no NULL");
    ggml_log_callback normal = callback;
    ggml_log_set(on_line, &cookie);
    ggml_log_get(&callback, &data);
    CHECK(callback == on_line && data == &cookie, "what was set comes back");
    ggml_log_get(NULL, NULL);
    error_line();
    CHECK(lines == 1 && strstr(last, "ggml_new_tensor_1d") && last[strlen(last) - 1] == '\n', "an error is one line with its end");
    CHECK(strstr(last, check_error_text()) != NULL, "the line has the error's text");

    struct ggml_ext_error e = { sizeof e, -1, NULL, NULL, NULL };
    CHECK(ggml_ext_last_error(&e) && e.code == GGML_EXT_CODE_NULL_ARGUMENT && e.text && e.registration == NULL, "last_error");
    CHECK(!ggml_ext_last_error(NULL), "last_error into NULL");
    /* a caller that was compiled for a smaller structure */
    struct ggml_ext_error small = { offsetof(struct ggml_ext_error, text), -1, (const char *) 1, (const char *) 2, (const void *) 3 };
    CHECK(ggml_ext_last_error(&small) && small.code == GGML_EXT_CODE_NULL_ARGUMENT, "last_error: a smaller structure is filled as far as it goes");
    CHECK(small.text == (const char *) 1 && small.registration == (const char *) 2 && small.node == (const void *) 3, "last_error: and no further");
    small.struct_size = 0;
    small.code        = -1;
    ggml_ext_last_error(&small);
    CHECK(small.code == -1, "last_error: a structure of size 0 is left alone");

    /* the default callback can be called, by those who put their own before it */
    int status = in_child(error_line, out, sizeof out, true);
    CHECK(WIFEXITED(status), "child with a callback");
    normal(GGML_LOG_LEVEL_DEBUG, "", NULL);
    ggml_log_set(NULL, NULL);
    status = in_child(error_line, out, sizeof out, true);
    CHECK(WIFEXITED(status) && strstr(out, "ggml_new_tensor_1d"), "without a callback lines go to standard error");

    status = in_child(with_callback, out, sizeof out, false);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "ggml_abort ends the process");
    CHECK(strstr(out, "value 42 of it") && strstr(out, "log_abort.c"), "ggml_abort: the callback gets the text: %s", out);
    status = in_child(without, out, sizeof out, true);
    CHECK(WIFSIGNALED(status) && strstr(out, "1 == 2"), "GGML_ASSERT without a callback writes to standard error");
    status = in_child(holds, out, sizeof out, true);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "GGML_ASSERT that holds does nothing");
    status = in_child(long_text, out, sizeof out, false);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && strlen(out) > 1000 && strlen(out) < 20000, "a very long text is cut");
    CHECK(ggml_set_abort_callback(on_abort) == NULL && ggml_set_abort_callback(NULL) == on_abort, "the former callback comes back");

    status = in_child(full_stderr, out, sizeof out, false);
    CHECK(WIFEXITED(status) && strcmp(out, "alive") == 0, "standard error is full: the process lives");
    status = in_child(closed_stderr, out, sizeof out, false);
    CHECK(WIFEXITED(status) && strcmp(out, "alive") == 0, "standard error is closed: the process lives");
    status = in_child(reentrant, out, sizeof out, false);
    CHECK(WIFEXITED(status) && strcmp(out, "alive") == 0, "a callback may call the library");
    return check_done();
}
