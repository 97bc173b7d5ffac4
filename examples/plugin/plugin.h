/* The one entry point of the plugin. */
#ifndef EXAMPLE_PLUGIN_H
#define EXAMPLE_PLUGIN_H

#include "ggml-ext.h"

/* Name and type of the entry point. It registers everything the plugin has for `device`, in `scope`, which the host has made and will
 * release before it closes the plugin. False: the scope is to be released, and the plugin closed. */
#define EXAMPLE_PLUGIN_ENTRY "example_plugin_load"
typedef bool (*example_plugin_load_t)(ggml_backend_dev_t device, ggml_ext_scope_t scope);

/* What a graph needs to know of the plugin's operator: its name and the form of its attributes. */
#include "../custom-op/example.h"

#endif
