#!/usr/bin/env python3
"""Writes a C program that calls every public function with arguments that are NULL, zero, negative or not a number.

usage: null_args.py PREPROCESSED > null_args.c

PREPROCESSED is what the C preprocessor makes of all headers (cc -E -P). Each function is called in a child process: once with
zeros alone, once with sound objects and zeros as numbers, once for each pointer with that one NULL and the others sound, and
with numbers of -1, of the least value, and not a number. A call may refuse and report; a child that a signal ends has failed.
"""
import re
import sys

# The text of ggml_abort ends the process: that is what it is for (log_abort.c).
LEFT_OUT = {"ggml_abort"}

# Sound arguments that only one function takes, by its name and the parameter's index.
ITS_OWN = {("ggml_aligned_free", 0): "ggml_aligned_malloc(64)"}

# Sound objects by type. What is not here is NULL always.
OBJECTS = {
    "struct ggml_context *": "ctx",
    "struct ggml_tensor *": "t",
    "struct ggml_cgraph *": "graph",
    "struct ggml_tensor **": "list",
    "struct gguf_context *": "file",
    "struct ggml_threadpool *": "pool",
    "ggml_threadpool_t": "pool",
    "struct ggml_threadpool_params *": "&pool_params",
    "struct ggml_cplan *": "&plan",
    "struct ggml_tallocr *": "&place",
    "struct ggml_hash_set *": "&set",
    "struct ggml_ext_error *": "&error",
    "struct ggml_backend_dev_props *": "&props",
    "ggml_backend_t": "cpu",
    "ggml_backend_t *": "backends",
    "ggml_backend_dev_t": "dev",
    "ggml_backend_reg_t": "reg",
    "ggml_backend_buffer_t": "buffer",
    "ggml_backend_buffer_type_t": "buft",
    "ggml_backend_buffer_type_t *": "bufts",
    "ggml_backend_sched_t": "sched",
    "ggml_gallocr_t": "galloc",
    "char *": '"name"',
    "char **": "texts",
    "float *": "numbers",
    "int *": "numbers",
    "size_t *": "numbers",
    "int64_t *": "numbers",
    "ggml_fp16_t *": "numbers",
    "ggml_bf16_t *": "numbers",
    "void *": "numbers",
    "void **": "numbers",
    "ggml_guid_t": "&guid",
    "ggml_custom1_op_t": "custom1",
    "ggml_custom2_op_t": "custom2",
    "ggml_custom3_op_t": "custom3",
    "ggml_custom_op_t": "custom",
    "enum ggml_op *": "numbers",
}
POINTER_TYPES = {
    "ggml_backend_eval_callback", "ggml_log_callback", "ggml_abort_callback", "ggml_abort_callback_t", "ggml_backend_sched_eval_callback",
    "gguf_reader_callback_t", "ggml_backend_event_t", "ggml_backend_graph_plan_t", "ggml_ext_cpu_task_t",
}
INTEGERS = {"int", "int32_t", "uint32_t", "int64_t", "uint64_t", "size_t", "uint8_t", "int8_t", "uint16_t", "int16_t", "ggml_fp16_t"}


def declarations(text):
    """(name, [parameter types]) of each function that is declared."""
    text = re.sub(r"#[^\n]*", "", text)
    depth, flat = 0, []
    for c in text:  # bodies of structures and inline functions go
        if c == "{":
            depth += 1
        elif c == "}":
            depth -= 1
            if depth == 0:
                flat.append(" ")
        elif depth == 0:
            flat.append(c)
    seen = set()
    for statement in "".join(flat).split(";"):
        statement = " ".join(statement.split())
        if not statement or statement.startswith("typedef") or " static inline " in f" {statement} ":
            continue
        statement = re.sub(r"__attribute__\s*\(\(.*?\)\)\)?|__asm__\s*\([^)]*\)", "", statement)
        m = re.search(r"\b((?:ggml|gguf|quantize)_\w+)\s*\((?!\s*\*)(.*)\)\s*$", statement)
        if m and m.group(1) not in seen:
            seen.add(m.group(1))
            # commas inside the parentheses of a function pointer separate nothing here
            params = [p.strip() for p in re.split(r",(?![^()]*\))", m.group(2))]
            yield m.group(1), [] if params in ([""], ["void"]) else [kind(p) for p in params]


def kind(param):
    """Type of a parameter, without its name and const."""
    if param == "...":
        return "..."
    if "(*" in param:
        return "function *"
    param = re.sub(r"\bconst\b|\brestrict\b|\b__restrict\b", "", param)
    stars = param.count("*")
    words = param.replace("*", " ").split()
    if len(words) > 1 and not (len(words) == 2 and words[0] in ("struct", "enum")):
        words = words[:-1]
    base = " ".join(words)
    return base + (" " + "*" * stars if stars else "")


def value(ty, mode, null_this):
    """An argument. mode: zero, sound, negative, least, nan, large."""
    pointer = ty.endswith("*") or ty in OBJECTS or ty in POINTER_TYPES
    if ty == "...":
        return None
    if pointer:
        found = None if null_this or mode == "zero" else OBJECTS.get(ty)
        if not found:
            return "NULL"
        return found if found.startswith("custom") else f"(void *) ({found})"
    if ty in ("float", "double"):
        return {"nan": "NAN", "negative": "-1", "least": "-INFINITY"}.get(mode, "0")
    if ty == "bool":
        return "true" if mode in ("negative", "nan") else "false"
    if ty.startswith("enum"):
        return f"({ty}) " + {"negative": "-1", "least": "INT32_MIN", "large": "INT32_MAX"}.get(mode, "0")
    if ty in INTEGERS:
        return f"({ty}) " + {"negative": "-1", "least": "INT64_MIN"}.get(mode, "0")
    return f"({ty}){{0}}"  # a structure by value


def main():
    text = open(sys.argv[1]).read()
    functions = [f for f in declarations(text) if f[0] not in LEFT_OUT]
    print(HEAD)
    table = []
    for name, params in functions:
        calls = [("zero", None), ("sound", None), ("negative", None), ("least", None), ("nan", None), ("large", None)]
        calls += [("sound", i) for i, p in enumerate(params) if p.endswith("*") or p in OBJECTS or p in POINTER_TYPES]
        cases = []
        for mode, null in calls:
            # Sizes that do not go with the memory handed over are a lie that no callee can see: then the memory is NULL too.
            lie = mode in ("negative", "least", "large") and any(p in ("size_t", "uint64_t") for p in params)
            args = [value(p, mode, i == null or (lie and p in ("void *", "float *", "char **"))) for i, p in enumerate(params)]
            args = [ITS_OWN.get((name, i), a) if a and "numbers" in a else a for i, a in enumerate(args)]
            args = [a for a in args if a is not None]
            call = f"{name}({', '.join(args)})"
            if call not in cases:
                cases.append(call)
        print(f"static void call_{name}(int k) {{\n    switch (k) {{")
        for k, call in enumerate(cases):
            print(f"    case {k}: (void) {call}; break;")
        print("    }\n}")
        table.append((name, len(cases)))
    print("static void crash(int k) { (void) k; raise(SIGSEGV); }")
    print("static const struct { const char * name; void (*call)(int); int n; } table[] = {")
    for name, n in table:
        print(f'    {{ "{name}", call_{name}, {n} }},')
    print('    { "a call that crashes", crash, 1 },')
    print("};")
    print(TAIL)


HEAD = r"""/* Written by tests/c/null_args.py. */
#include "check.h"
#include "ggml-alloc.h"
#include "ggml-backend-impl.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml-graph.h"
#include "ggml-opt.h"
#include "ggml-threading.h"
#include "ggml/src/ggml-impl.h"
#include "ggml/src/ggml-quants.h"
#include "gguf.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wnonnull"
#pragma GCC diagnostic ignored "-Wformat"
#pragma GCC diagnostic ignored "-Wformat-security"
#pragma GCC diagnostic ignored "-Wformat-zero-length"
#pragma GCC diagnostic ignored "-Woverflow"
#pragma GCC diagnostic ignored "-Wunused-value"

static struct ggml_context * ctx;
static struct ggml_tensor * t, * list[16];
static struct ggml_cgraph * graph;
static struct gguf_context * file;
static struct ggml_threadpool * pool;
static struct ggml_threadpool_params pool_params;
static struct ggml_cplan plan;
static struct ggml_tallocr place;
static struct ggml_hash_set set;
static struct ggml_ext_error error;
static struct ggml_backend_dev_props props;
static ggml_backend_t cpu, backends[16];
static ggml_backend_dev_t dev;
static ggml_backend_reg_t reg;
static ggml_backend_buffer_t buffer;
static ggml_backend_buffer_type_t buft, bufts[16];
static ggml_backend_sched_t sched;
static ggml_gallocr_t galloc;
static const char * texts[16];
static _Alignas(64) float numbers[4096];
static ggml_guid guid;
static void custom1(struct ggml_tensor * d, const struct ggml_tensor * a, int i, int n, void * u) { (void) d; (void) a; (void) i; (void) n; (void) u; }
static void custom2(struct ggml_tensor * d, const struct ggml_tensor * a, const struct ggml_tensor * b, int i, int n, void * u) { (void) b; custom1(d, a, i, n, u); }
static void custom3(struct ggml_tensor * d, const struct ggml_tensor * a, const struct ggml_tensor * b, const struct ggml_tensor * c, int i, int n, void * u) { (void) b; (void) c; custom1(d, a, i, n, u); }
static void custom(struct ggml_tensor * d, int i, int n, void * u) { (void) d; (void) i; (void) n; (void) u; }
"""

TAIL = r"""
static void objects(void) {
    ctx   = ggml_init((struct ggml_init_params){ 1 << 22, NULL, true });
    t     = ggml_set_name(ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 4, 4), "name");
    graph = ggml_new_graph_custom(ctx, 64, false);
    dev   = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    reg   = ggml_backend_reg_get(0);
    cpu   = ggml_backend_dev_init(dev, NULL);
    ggml_backend_cpu_set_n_threads(cpu, 1);
    buft   = ggml_backend_cpu_buffer_type();
    buffer = ggml_backend_alloc_ctx_tensors(ctx, cpu);
    ggml_build_forward_expand(graph, ggml_sqr(ctx, t));
    galloc = ggml_gallocr_new(buft);
    place  = ggml_tallocr_new(buffer);
    for (int i = 0; i < 16; i++) {
        list[i]     = t;
        backends[i] = cpu;
        bufts[i]    = buft;
        texts[i]    = "text";
    }
    sched = ggml_backend_sched_new(backends, NULL, 1, 64, false, false);
    file  = gguf_init_empty();
    gguf_set_val_u32(file, "name", 1);
    ggml_threadpool_params_init(&pool_params, 1);
    set               = ggml_hash_set_new(8);
    error.struct_size = sizeof error;
    plan.n_threads    = 1;
}

int main(void) {
    fflush(stdout);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        int how = 0, status = 0, from = 0;
        /* one child takes the calls in turn; where one ends it, the next child goes on behind that */
        int worst = -1;
        while (from < table[i].n) {
            int ends[2];
            if (pipe(ends)) {
                return 2;
            }
            const pid_t pid = fork();
            if (pid == 0) {
                close(ends[0]);
                const int null = open("/dev/null", O_WRONLY);
                dup2(null, 1);
                dup2(null, 2);
                check_quiet();
                alarm(20);
                for (int k = from; k < table[i].n; k++) {
                    if (write(ends[1], "x", 1) != 1) {
                        _exit(3);
                    }
                    objects(); /* anew: the last call may have freed them */
                    pool = strstr(table[i].name, "thread") ? ggml_threadpool_new(&pool_params) : NULL;
                    table[i].call(k);
                }
                _exit(0);
            }
            close(ends[1]);
            int  begun = 0;
            char c;
            while (read(ends[0], &c, 1) == 1) {
                begun++;
            }
            close(ends[0]);
            waitpid(pid, &status, 0);
            from += begun ? begun : 1;
            if (WIFSIGNALED(status)) {
                how   = WTERMSIG(status);
                worst = from - 1;
            } else if (status != 0) {
                how   = -1;
                worst = from - 1;
            }
            if (status == 0) {
                break;
            }
        }
        const bool own = strcmp(table[i].name, "a call that crashes") == 0; /* the check of this check */
        CHECK(own ? how != 0 : worst < 0, "%s: %d calls; case %d ended with %d", table[i].name, table[i].n, worst, how);
    }
    return check_done();
}
"""

main()
