/* The registrations of custom-op as a shared library. All other names in it stay inside (C_VISIBILITY_PRESET in CMakeLists.txt), so
 * that two plugins may have functions of the same name. */
#include "plugin.h"

__attribute__((visibility("default"))) bool example_plugin_load(ggml_backend_dev_t device, ggml_ext_scope_t scope);

bool example_plugin_load(ggml_backend_dev_t device, ggml_ext_scope_t scope) {
    /* a library older than the header that this was compiled with: better no kernels than wrong ones */
    return ggml_ext_api_version() >= GGML_EXT_API_VERSION && example_register(device, scope);
}
