/* What this library has beyond ggml: errors as text. Written by tools/headers from the Rust definitions; do not edit. */

#ifndef GGML_EXT_H
#define GGML_EXT_H

#include "ggml.h"


/* What kind of rule was broken. */
enum ggml_ext_code {
  /* Nothing failed yet on this thread. */
  GGML_EXT_CODE_NONE = 0,
  /* A required pointer was NULL. */
  GGML_EXT_CODE_NULL_ARGUMENT = 1,
  /* A value is outside what the function takes. */
  GGML_EXT_CODE_BAD_ARGUMENT = 2,
  /* Shapes, strides or formats that the operator cannot take. */
  GGML_EXT_CODE_BAD_SHAPE = 3,
  /* Memory, or room in a context or graph, ran out. */
  GGML_EXT_CODE_OUT_OF_MEMORY = 4,
  /* No kernel takes the node. */
  GGML_EXT_CODE_NO_KERNEL = 5,
  /* A tensor without data was to be computed or copied. */
  GGML_EXT_CODE_NOT_ALLOCATED = 6,
  /* A file breaks its format. */
  GGML_EXT_CODE_BAD_FILE = 7,
  /* The operating system refused. */
  GGML_EXT_CODE_IO = 8,
  /* A backend reported a failure, or a module cannot be used. */
  GGML_EXT_CODE_BACKEND = 9,
  /* A fault of the library itself; the call had no effect that can be relied on. */
  GGML_EXT_CODE_INTERNAL = 10,
};

/* The last failure on a thread. */
struct ggml_ext_error {
  /* Bytes of this structure, set by the caller; members beyond it are not written. */
  size_t struct_size;
  /* A `ggml_ext_code`. */
  int32_t code;
  /* One sentence: what failed, where, which rule. Valid until the next failing call on this thread. */
  const char *text;
  /* The registration concerned, or NULL. */
  const char *registration;
  /* The tensor concerned, or NULL; to be compared, not read: it may be gone. */
  const struct ggml_tensor *node;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 The last failure on the calling thread. `out->struct_size` is set by the caller; false: nothing failed yet, or `out` is NULL.
 The text is valid until the next failing call on this thread.
 */
bool ggml_ext_last_error(struct ggml_ext_error *out);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif
