/* One lock for the process, which backend modules take while they fill in tables. Written by tools/headers from the Rust definitions; do not edit. */

#ifndef GGML_THREADING_H
#define GGML_THREADING_H

#include "ggml.h"


#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/* Enters the section that one thread at a time can be in; waits for another. A thread that is inside may enter again. */
void ggml_critical_section_start(void);

/* Leaves it, as many times as it was entered. An error for a thread that is not inside. */
void ggml_critical_section_end(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif
