/* Events: a device that counts what reaches it, and handles that are none. */
#include "check.h"
#include "ggml-backend-impl.h"
#include "ggml-backend.h"

static int made, freed, waited_by_host, recorded, waited_by_backend;

static ggml_backend_event_t event_new(ggml_backend_dev_t d) {
    ggml_backend_event_t e = calloc(1, sizeof *e);
    if (e) {
        e->device = d;
        made++;
    }
    return e;
}
static void event_free(ggml_backend_dev_t d, ggml_backend_event_t e) {
    (void) d;
    freed++;
    free(e);
}
static void event_synchronize(ggml_backend_dev_t d, ggml_backend_event_t e) { waited_by_host += e->device == d; }
static void event_record(ggml_backend_t b, ggml_backend_event_t e) { recorded += e->device == b->device; }
static void event_wait(ggml_backend_t b, ggml_backend_event_t e) { waited_by_backend += e->device == b->device; }

static const char * dev_name(ggml_backend_dev_t d) { (void) d; return "counting"; }
static const char * backend_name(ggml_backend_t b) { (void) b; return "counting"; }

int main(void) {
    check_quiet();
    struct ggml_backend_device device = {
        .iface = { .get_name = dev_name, .event_new = event_new, .event_free = event_free, .event_synchronize = event_synchronize },
    };
    struct ggml_backend backend = {
        .iface  = { .get_name = backend_name, .event_record = event_record, .event_wait = event_wait },
        .device = &device,
    };

    ggml_backend_event_t e = ggml_backend_event_new(&device);
    CHECK(e != NULL && made == 1, "event_new");
    ggml_backend_event_record(e, &backend);
    CHECK(recorded == 1, "event_record");
    ggml_backend_event_wait(&backend, e);
    CHECK(waited_by_backend == 1, "event_wait");
    ggml_backend_event_synchronize(e);
    CHECK(waited_by_host == 1, "event_synchronize");
    ggml_backend_event_free(e);
    CHECK(freed == 1, "event_free");

    CHECK_ERROR(ggml_backend_event_record(NULL, &backend), GGML_EXT_CODE_NULL_ARGUMENT, "record: no event", "ggml_backend_event_record");
    CHECK_ERROR(ggml_backend_event_wait(&backend, NULL), GGML_EXT_CODE_NULL_ARGUMENT, "wait: no event", "ggml_backend_event_wait");
    CHECK_ERROR(ggml_backend_event_synchronize(NULL), GGML_EXT_CODE_NULL_ARGUMENT, "synchronize: no event", "ggml_backend_event_synchronize");
    CHECK(recorded == 1 && waited_by_backend == 1 && waited_by_host == 1, "nothing of these reached the device");

    ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), 100);
    CHECK(ggml_backend_buffer_get_max_size(buffer) >= 1u << 30, "buffer_get_max_size");
    ggml_backend_buffer_free(buffer);
    return check_done();
}
