# Builds the library with cargo, as target ggml-cargo, and lays it out under the names that clients look for.
# Sets ggml_lib_dir and ggml_library.
set(ggml_cargo_hints "$ENV{HOME}/.cargo/bin")
if(DEFINED ENV{CARGO_HOME})
    list(PREPEND ggml_cargo_hints "$ENV{CARGO_HOME}/bin")
endif()
find_program(GGML_CARGO cargo HINTS ${ggml_cargo_hints})
if(NOT GGML_CARGO)
    message(FATAL_ERROR "ggml: cargo was not found; install Rust (https://rustup.rs) or set GGML_CARGO")
endif()

set(ggml_cargo_args build --lib --manifest-path "${CMAKE_CURRENT_SOURCE_DIR}/Cargo.toml" --package ggml-oxide
    --profile "${GGML_CARGO_PROFILE}" --target-dir "${GGML_CARGO_TARGET_DIR}")
set(ggml_cargo_out "${GGML_CARGO_TARGET_DIR}")
if(GGML_CARGO_TARGET)
    list(APPEND ggml_cargo_args --target "${GGML_CARGO_TARGET}")
    string(APPEND ggml_cargo_out "/${GGML_CARGO_TARGET}")
endif()
if(GGML_CARGO_PROFILE STREQUAL "dev")
    string(APPEND ggml_cargo_out "/debug")
else()
    string(APPEND ggml_cargo_out "/${GGML_CARGO_PROFILE}")
endif()

set(ggml_lib_dir "${CMAKE_CURRENT_BINARY_DIR}/lib")
set(ggml_library "${ggml_lib_dir}/libggml.so.${PROJECT_VERSION}")
set(ggml_layout "${CMAKE_CURRENT_SOURCE_DIR}/cmake/layout.cmake")

# Always run: cargo knows best what is out of date, and says so in a fraction of a second. A flag of the surrounding
# build (a client's own cargo build script) must not reach this one.
add_custom_target(ggml-cargo ALL
    COMMAND "${CMAKE_COMMAND}" -E env --unset=CARGO_ENCODED_RUSTFLAGS "GGML_MAX_NAME=${ggml_max_name}"
            "GGML_BACKEND_DIR=${GGML_BACKEND_DIR}"
            "${GGML_CARGO}" ${ggml_cargo_args}
    COMMAND "${CMAKE_COMMAND}" "-DFROM=${ggml_cargo_out}/libggml.so" "-DTO=${ggml_lib_dir}"
            "-DVERSION=${PROJECT_VERSION}" -P "${ggml_layout}"
    BYPRODUCTS "${ggml_library}"
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
    COMMENT "Building libggml with cargo"
    USES_TERMINAL
    VERBATIM)
