/* ggml's RPC module: a server in a second process over the library's CPU, a client here that computes through the network on
 * loopback; the server killed in mid-work. argv: the module; or "server", the module, an endpoint. */
#include "graphs.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void (*start_server_t)(const char * endpoint, const char * cache_dir, size_t n_threads, size_t n_devices, ggml_backend_dev_t * devices);
typedef ggml_backend_reg_t (*add_server_t)(const char * endpoint);

static int server(const char * module, const char * endpoint) {
    ggml_backend_reg_t reg = ggml_backend_load(module);
    start_server_t     f   = reg ? (start_server_t) ggml_backend_reg_get_proc_address(reg, "ggml_backend_rpc_start_server") : NULL;
    if (!f) {
        return 3;
    }
    ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    f(endpoint, NULL, 2, 1, &device);
    return 4; /* it only ends when it cannot begin */
}

/* A port of loopback that nobody uses. */
static int free_port(void) {
    int                s = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t          n = sizeof a;
    bind(s, (struct sockaddr *) &a, sizeof a);
    getsockname(s, (struct sockaddr *) &a, &n);
    close(s);
    return ntohs(a.sin_port);
}

static bool answers(int port) {
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t) port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    for (int i = 0; i < 200; i++) {
        int  s  = socket(AF_INET, SOCK_STREAM, 0);
        bool ok = connect(s, (struct sockaddr *) &a, sizeof a) == 0;
        close(s);
        if (ok) {
            return true;
        }
        usleep(50000);
    }
    return false;
}

static pid_t start_server(const char * self, const char * module, const char * endpoint) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(2, 1); /* its lines are not the test's */
        execl(self, self, "server", module, endpoint, (char *) NULL);
        _exit(127);
    }
    return child;
}

static void operators(ggml_backend_t remote, ggml_backend_t local) {
    for (size_t i = 0; i < N_OP_CASES; i++) {
        int64_t n = 0, m = 0;
        float * a = computed(remote, &op_cases[i], 7, &n);
        float * b = computed(local, &op_cases[i], 7, &m);
        CHECK(a && b && n == m && memcmp(a, b, (size_t) n * sizeof *a) == 0, "%s: the same bits as here", op_cases[i].name);
        free(a);
        free(b);
    }
}

/* Bytes go there and back whole, in part, and from one tensor there to another. */
static void data(ggml_backend_t remote) {
    ctx_t    c = new_context();
    tensor_t a = t2(c, F32, 100, 7), b = t2(c, F32, 100, 7), here = t2(c, F32, 100, 7);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_buffer(remote, 3 * ggml_nbytes(a) + 1024);
    CHECK(buffer && !ggml_backend_buffer_is_host(buffer), "memory there");
    ggml_backend_buffer_t own = ggml_backend_alloc_buffer(remote, 4096);
    struct ggml_tallocr   t   = ggml_tallocr_new(buffer);
    CHECK(ggml_tallocr_alloc(&t, a) == GGML_STATUS_SUCCESS && ggml_tallocr_alloc(&t, b) == GGML_STATUS_SUCCESS, "tensors there");
    float x[700], y[700];
    for (int i = 0; i < 700; i++) {
        x[i] = (float) i;
    }
    ggml_backend_tensor_set(a, x, 0, sizeof x);
    ggml_backend_tensor_get(a, y, 0, sizeof y);
    CHECK(memcmp(x, y, sizeof x) == 0, "there and back");
    ggml_backend_tensor_memset(a, 0, 400, 400);
    ggml_backend_tensor_get(a, y, 396, 8);
    CHECK(y[0] == 99 && y[1] == 0, "set to zero in part");
    ggml_backend_tensor_copy(a, b);
    ggml_backend_tensor_get(b, y, 0, sizeof y);
    memset(x + 100, 0, 400);
    CHECK(memcmp(x, y, sizeof x) == 0, "copied there");
    ggml_backend_buffer_t host = ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), 4096);
    struct ggml_tallocr   h    = ggml_tallocr_new(host);
    ggml_tallocr_alloc(&h, here);
    ggml_backend_tensor_copy(b, here);
    CHECK(memcmp(x, here->data, sizeof x) == 0, "copied to here");
    ggml_backend_buffer_clear(buffer, 0);
    ggml_backend_tensor_get(b, y, 0, 4);
    CHECK(y[0] == 0, "cleared");
    ggml_backend_buffer_free(host);
    ggml_backend_buffer_free(own);
    ggml_backend_buffer_free(buffer);
    ggml_free(c);
}

/* One graph over both devices, allocated once and computed with new inputs, then another: the module keeps the last graph. */
static void scheduler(ggml_backend_t remote, ggml_backend_t local) {
    ggml_backend_t       both[2] = { remote, local };
    ggml_backend_sched_t sched   = ggml_backend_sched_new(both, NULL, 2, 256, false, true);
    ggml_backend_sched_t alone   = ggml_backend_sched_new(both + 1, NULL, 1, 256, false, true);
    for (int shape = 0; shape < 3; shape++) {
        ctx_t    c[2];
        tensor_t x[2], w[2], y[2];
        for (int i = 0; i < 2; i++) {
            ggml_backend_sched_t s = i ? alone : sched;
            c[i] = new_context();
            x[i] = t2(c[i], F32, 64, 5 + shape);
            w[i] = t2(c[i], F32, 64, 64);
            ggml_set_input(x[i]);
            ggml_set_input(w[i]);
            tensor_t middle = ggml_mul_mat(c[i], w[i], x[i]);
            tensor_t more   = shape == 1 ? ggml_silu(c[i], middle) : ggml_gelu(c[i], middle);
            y[i]            = ggml_add(c[i], more, x[i]);
            ggml_set_output(y[i]);
            if (!i) {
                ggml_backend_sched_set_tensor_backend(s, middle, remote);
                ggml_backend_sched_set_tensor_backend(s, more, local);
                ggml_backend_sched_set_tensor_backend(s, y[i], remote);
            }
            struct ggml_cgraph * g = ggml_new_graph_custom(c[i], 64, false);
            ggml_build_forward_expand(g, y[i]);
            CHECK(ggml_backend_sched_alloc_graph(s, g), "%s, graph %d: allocated", i ? "alone" : "both", shape);
            for (int time = 0; time < 3; time++) {
                fill(x[i], 5 + (uint32_t) time);
                fill(w[i], 9);
                CHECK(ggml_backend_sched_graph_compute(s, g) == GGML_STATUS_SUCCESS, "%s, graph %d, time %d: computed", i ? "alone" : "both", shape, time);
            }
        }
        float * a = floats(y[0]);
        float * b = floats(y[1]);
        CHECK(memcmp(a, b, ggml_nbytes(y[0])) == 0, "graph %d: the same bits as here alone", shape);
        free(a);
        free(b);
        ggml_backend_sched_reset(sched);
        ggml_backend_sched_reset(alone);
        ggml_free(c[0]);
        ggml_free(c[1]);
    }
    ggml_backend_sched_free(sched);
    ggml_backend_sched_free(alone);
}

static int out_of_child;
static void tell(const char * text) {
    if (write(out_of_child, text, strlen(text)) < 0) {
        _exit(9);
    }
}

/* What a client sees whose server ends while it computes. ggml's module has no answer for that but ggml_abort, which the
 * application hears of by its callback: the library cannot make a status of it. */
static void server_killed(const char * self, const char * module) {
    char endpoint[40];
    int  port = free_port(), pipe_fd[2];
    snprintf(endpoint, sizeof endpoint, "127.0.0.1:%d", port);
    pid_t server = start_server(self, module, endpoint);
    CHECK(answers(port), "a server to be killed");
    if (pipe(pipe_fd) != 0) {
        CHECK(false, "pipe");
        return;
    }
    fflush(stdout);
    pid_t client = fork();
    if (client == 0) {
        out_of_child = pipe_fd[1];
        ggml_set_abort_callback(tell);
        signal(SIGPIPE, SIG_IGN); /* else writing to a server that is gone ends the client without a word */
        ggml_backend_reg_t reg    = ggml_backend_load(module);
        ggml_backend_reg_t remote = ((add_server_t) ggml_backend_reg_get_proc_address(reg, "ggml_backend_rpc_add_server"))(endpoint);
        ggml_backend_t     b      = ggml_backend_dev_init(ggml_backend_reg_dev_get(remote, 0), NULL);
        int64_t            n;
        if (!computed(b, &op_cases[0], 1, &n)) {
            _exit(8);
        }
        kill(server, SIGKILL);
        usleep(200000);
        float * x = computed(b, &op_cases[0], 1, &n);
        _exit(x ? 7 : 0); /* 7: a result from nobody */
    }
    close(pipe_fd[1]);
    char text[400] = "";
    int  got       = 0, n, status = 0;
    while ((n = (int) read(pipe_fd[0], text + got, sizeof text - 1 - (size_t) got)) > 0) {
        got += n;
    }
    close(pipe_fd[0]);
    waitpid(client, &status, 0);
    const bool failed  = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    const bool aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && strstr(text, "RPC server crashed");
    CHECK(failed || aborted, "the server ends: %s", failed ? "a status" : aborted ? "the module ends the client by ggml_abort, and says why" : text);
    if (!failed && !aborted) {
        printf("# wait status %d\n", status);
    }
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
}

int main(int argc, char ** argv) {
    if (argc == 4 && strcmp(argv[1], "server") == 0) {
        return server(argv[2], argv[3]);
    }
    if (argc != 2) {
        fprintf(stderr, "usage: rpc MODULE | rpc server MODULE ENDPOINT\n");
        return 2;
    }
    server_killed(argv[0], argv[1]); /* first: it forks */

    char endpoint[40];
    int  port = free_port();
    snprintf(endpoint, sizeof endpoint, "127.0.0.1:%d", port);
    pid_t child = start_server(argv[0], argv[1], endpoint);
    CHECK(answers(port), "the server answers at %s", endpoint);

    ggml_backend_reg_t reg = ggml_backend_load(argv[1]);
    if (!CHECK(reg && strcmp(ggml_backend_reg_name(reg), "RPC") == 0 && ggml_backend_reg_dev_count(reg) == 0, "loaded: no device at first")) {
        return check_done();
    }
    add_server_t add = (add_server_t) ggml_backend_reg_get_proc_address(reg, "ggml_backend_rpc_add_server");
    CHECK(add && ggml_backend_reg_get_proc_address(reg, "no such function") == NULL, "functions by name");
    ggml_backend_reg_t remote = add(endpoint);
    if (!CHECK(remote != NULL, "a server there")) {
        return check_done();
    }
    ggml_backend_register(remote);
    CHECK(ggml_backend_reg_count() == 3 && ggml_backend_dev_count() == 2, "its device is listed");
    ggml_backend_dev_t dev = ggml_backend_dev_by_name("RPC0");
    CHECK(dev && dev == ggml_backend_dev_get(1), "by name");
    size_t available = 0, total = 0, here_total = 0;
    ggml_backend_dev_memory(dev, &available, &total);
    ggml_backend_dev_memory(ggml_backend_dev_get(0), &available, &here_total);
    CHECK(total == here_total && total > 0, "memory %zu: what the server's device has", total);
    CHECK(ggml_backend_dev_type(dev) == GGML_BACKEND_DEVICE_TYPE_GPU && strstr(ggml_backend_dev_description(dev), endpoint), "kind and description: %s", ggml_backend_dev_description(dev));

    ggml_backend_t there = ggml_backend_dev_init(dev, NULL), here = ggml_backend_cpu_init();
    CHECK(there && ggml_backend_get_device(there) == dev, "a backend");
    data(there);
    operators(there, here);
    scheduler(there, here);
    ggml_backend_free(there);
    ggml_backend_free(here);
    ggml_backend_unload(reg);
    CHECK(ggml_backend_reg_count() == 1 && ggml_backend_dev_count() == 1, "unloaded: the devices of its servers go along");
    CHECK(kill(child, 0) == 0 && waitpid(child, NULL, WNOHANG) == 0, "the server goes on");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return check_done();
}
