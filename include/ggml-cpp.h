/* Owning pointers for C++: what a function of ggml made is freed when the pointer goes. */

#ifndef GGML_CPP_H
#define GGML_CPP_H

#ifndef __cplusplus
#    error "ggml-cpp.h is for C++"
#endif

#include "ggml.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "gguf.h"

#include <memory>

struct ggml_context_deleter        { void operator()(struct ggml_context * p)  const { ggml_free(p); } };
struct gguf_context_deleter        { void operator()(struct gguf_context * p)  const { gguf_free(p); } };
struct ggml_gallocr_deleter        { void operator()(ggml_gallocr_t p)         const { ggml_gallocr_free(p); } };
struct ggml_backend_deleter        { void operator()(ggml_backend_t p)         const { ggml_backend_free(p); } };
struct ggml_backend_buffer_deleter { void operator()(ggml_backend_buffer_t p)  const { ggml_backend_buffer_free(p); } };
struct ggml_backend_event_deleter  { void operator()(ggml_backend_event_t p)   const { ggml_backend_event_free(p); } };
struct ggml_backend_sched_deleter  { void operator()(ggml_backend_sched_t p)   const { ggml_backend_sched_free(p); } };

typedef std::unique_ptr<struct ggml_context, ggml_context_deleter>               ggml_context_ptr;
typedef std::unique_ptr<struct gguf_context, gguf_context_deleter>               gguf_context_ptr;
typedef std::unique_ptr<struct ggml_gallocr, ggml_gallocr_deleter>               ggml_gallocr_ptr;
typedef std::unique_ptr<struct ggml_backend, ggml_backend_deleter>               ggml_backend_ptr;
typedef std::unique_ptr<struct ggml_backend_buffer, ggml_backend_buffer_deleter> ggml_backend_buffer_ptr;
typedef std::unique_ptr<struct ggml_backend_event, ggml_backend_event_deleter>   ggml_backend_event_ptr;
typedef std::unique_ptr<struct ggml_backend_sched, ggml_backend_sched_deleter>   ggml_backend_sched_ptr;

#endif
