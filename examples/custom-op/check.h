/* The library's checks of the three registrations. */
#ifndef EXAMPLE_CHECK_H
#define EXAMPLE_CHECK_H

#include "ggml-ext.h"

/* Prints a line for each registration; false: one of them failed. */
bool check_all(ggml_backend_t cpu);

#endif
