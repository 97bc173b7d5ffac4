/* The fusion rules that the probe adds to a client. */
#ifndef FUSION_RULES_H
#define FUSION_RULES_H

#include <stdbool.h>

#include "ggml-ext.h"

/* Registers all rules on a CPU device; false, with an error of the library's. */
bool rules_register(ggml_backend_dev_t device);

/* The name of rule number `i`, NULL: there are no more. */
const char * rules_name(int i);

/* The names of all but rule number `one` (-1: of all), as GGML_EXT_FORBID takes them. */
enum { RULES_NAMES = 256 };
void rules_but(int one, char names[RULES_NAMES]);

/* Launches of all rules so far. */
unsigned long long rules_launches(ggml_backend_dev_t device);

#endif
