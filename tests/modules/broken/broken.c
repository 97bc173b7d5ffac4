/* Backend modules that are none, or none for this library; KIND says what is wrong. */
#ifdef MARKED
#    define GGML_BACKEND_DL
#endif
#include "ggml-backend-impl.h"

#include <stdlib.h>

#define NO_ENTRY 0      /* no ggml_backend_init */
#define NULL_ENTRY 1    /* it gives NULL */
#define VERSION_2 2     /* ggml 0.9.5 to 0.21 */
#define VERSION_9 3     /* of the future */
#define NO_FUNCTIONS 4  /* an entry without functions */
#define SCORE_0 5       /* says that it cannot run here */
#define MISSING 6       /* calls a function that nobody has */
#define SIZE 7          /* compiled for another GGML_MAX_NAME, and does not say so */
#define SIZE_SAID 8     /* the same, made with GGML_BACKEND_DL_IMPL */
#define SIZE_INIT 9     /* the same, makes contexts */
#define GOOD 10         /* nothing is wrong */

static struct ggml_backend_reg         reg;
static struct ggml_backend_device      device;
static struct ggml_backend_buffer_type buft;

static const char * name(ggml_backend_reg_t r) { (void) r; return "BROKEN"; }
static size_t       count(ggml_backend_reg_t r) { (void) r; return 1; }
static ggml_backend_dev_t get(ggml_backend_reg_t r, size_t i) { (void) r; (void) i; return &device; }
static const char * text(ggml_backend_dev_t d) { (void) d; return "broken"; }
static enum ggml_backend_dev_type type(ggml_backend_dev_t d) { (void) d; return GGML_BACKEND_DEVICE_TYPE_CPU; }

/* A kind of memory that prepares tensors, as ggml's CPU module has them. */
static const char * buft_name(ggml_backend_buffer_type_t t) { (void) t; return "BROKEN"; }
static size_t       alignment(ggml_backend_buffer_type_t t) { (void) t; return 64; }
static void         buffer_free(ggml_backend_buffer_t b) { free(b->context); }
static void *       base(ggml_backend_buffer_t b) { return b->context; }
static enum ggml_status prepare(ggml_backend_buffer_t b, struct ggml_tensor * t) { (void) b; t->extra = NULL; return GGML_STATUS_SUCCESS; }
static ggml_backend_buffer_t alloc(ggml_backend_buffer_type_t t, size_t size) {
    struct ggml_backend_buffer_i f = { .free_buffer = buffer_free, .get_base = base, .init_tensor = prepare };
    return ggml_backend_buffer_init(t, f, aligned_alloc(64, (size + 63) / 64 * 64), size);
}
static ggml_backend_buffer_type_t * extra_bufts(ggml_backend_dev_t d) {
    (void) d;
    static ggml_backend_buffer_type_t list[2];
    buft    = (struct ggml_backend_buffer_type){ .iface = { .get_name = buft_name, .alloc_buffer = alloc, .get_alignment = alignment }, .device = &device };
    list[0] = &buft;
    return list;
}
static void * proc(ggml_backend_reg_t r, const char * n) {
    (void) r;
    union { ggml_backend_dev_get_extra_bufts_t f; void * p; } u = { .f = extra_bufts };
    return n[0] && n[13] == 'd' ? u.p : NULL; /* ggml_backend_dev_... */
}

static ggml_backend_reg_t entry(void) {
    device = (struct ggml_backend_device){ .iface = { .get_name = text, .get_description = text, .get_type = type }, .reg = &reg };
    reg    = (struct ggml_backend_reg){ .api_version = KIND == VERSION_2 ? 2 : KIND == VERSION_9 ? 9 : GGML_BACKEND_API_VERSION };
    if (KIND != NO_FUNCTIONS) {
        reg.iface = (struct ggml_backend_reg_i){ .get_name = name, .get_device_count = count, .get_device = get, .get_proc_address = proc };
    }
    return KIND == NULL_ENTRY ? NULL : &reg;
}

#if KIND == MISSING
extern void ggml_no_such_function(void);
void        broken_call(void);
void        broken_call(void) { ggml_no_such_function(); }
#endif
#if KIND == SIZE_INIT
void * broken_context(void);
void * broken_context(void) { return ggml_init((struct ggml_init_params){ 1000, NULL, true }); }
#endif
#if KIND == SCORE_0
int ggml_backend_score(void);
int ggml_backend_score(void) { return 0; }
#endif

#ifdef MARKED
GGML_BACKEND_DL_IMPL(entry)
#elif KIND == NO_ENTRY
ggml_backend_reg_t other_init(void);
ggml_backend_reg_t other_init(void) { return entry(); }
#else
ggml_backend_reg_t ggml_backend_init(void);
ggml_backend_reg_t ggml_backend_init(void) { return entry(); }
#endif
