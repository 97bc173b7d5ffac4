/* The functions that take a variable number of arguments, which Rust cannot define, and the callback that one of
 * them reports to. */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct ggml_tensor;
typedef void (*ggml_abort_callback_t)(const char * error_message);

/* As enum ggml_log_level. */
typedef void (*ggml_log_callback)(unsigned level, const char * text, void * user_data);

extern void                 ggml_log_get(ggml_log_callback * callback, void ** user_data);
extern struct ggml_tensor * ggml_set_name(struct ggml_tensor * tensor, const char * name);

static _Atomic(ggml_abort_callback_t) abort_callback;

ggml_abort_callback_t ggml_set_abort_callback(ggml_abort_callback_t callback) {
    return atomic_exchange(&abort_callback, callback);
}

void ggml_abort(const char * file, int line, const char * fmt, ...) {
    char text[2048];
    int  n = snprintf(text, sizeof text, "%s:%d: ", file, line);
    n      = n < 0 ? 0 : n;
    if ((size_t) n < sizeof text && fmt) {
        va_list args;
        va_start(args, fmt);
        vsnprintf(text + n, sizeof text - (size_t) n, fmt, args);
        va_end(args);
    }
    ggml_abort_callback_t callback = atomic_load(&abort_callback);
    if (callback) {
        callback(text);
    } else {
        fprintf(stderr, "%s\n", text);
    }
    abort();
}

struct ggml_tensor * ggml_format_name(struct ggml_tensor * tensor, const char * fmt, ...) {
    char text[4096];
    if (!fmt) {
        return ggml_set_name(tensor, NULL);
    }
    text[0] = 0; /* what a format that fails leaves behind */
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return ggml_set_name(tensor, text);
}

/* A line of a module's log; level: enum ggml_log_level. */
void ggml_log_internal(unsigned level, const char * fmt, ...) {
    if (!fmt) {
        return;
    }
    char    room[512];
    char *  text = room;
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    const int n = vsnprintf(room, sizeof room, fmt, args);
    if (n >= (int) sizeof room) {
        char * longer = malloc((size_t) n + 1);
        if (longer) { /* else the line is cut */
            vsnprintf(longer, (size_t) n + 1, fmt, again);
            text = longer;
        }
    }
    va_end(again);
    va_end(args);
    if (n >= 0) {
        ggml_log_callback callback;
        void *            user_data;
        ggml_log_get(&callback, &user_data);
        callback(level, text, user_data);
    }
    if (text != room) {
        free(text);
    }
}
