# Targets for a project that holds this one: ggml, ggml-base, ggml-cpu, and the same under ggml::.
foreach(name ggml ggml-base ggml-cpu)
    add_library(${name} SHARED IMPORTED GLOBAL)
    set_target_properties(${name} PROPERTIES
        IMPORTED_LOCATION "${ggml_library}"
        IMPORTED_SONAME "libggml.so.${PROJECT_VERSION_MAJOR}"
        INTERFACE_INCLUDE_DIRECTORIES "${ggml_include_dir}")
    add_dependencies(${name} ggml-cargo)
    add_library(ggml::${name} ALIAS ${name})
endforeach()
add_library(ggml-all INTERFACE)
target_link_libraries(ggml-all INTERFACE ggml ggml-base ggml-cpu)
add_library(ggml::all ALIAS ggml-all)

# What the package's config file sets, for clients that read it either way.
set(GGML_VERSION "${PROJECT_VERSION}" CACHE INTERNAL "")
set(GGML_INCLUDE_DIR "${ggml_include_dir}" CACHE INTERNAL "")
set(GGML_LIB_DIR "${ggml_lib_dir}" CACHE INTERNAL "")
