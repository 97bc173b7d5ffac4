# cmake --install: headers, library, CMake package, pkg-config file.
set(ggml_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/ggml")

configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/ggml-config.cmake.in" "${CMAKE_CURRENT_BINARY_DIR}/ggml-config.cmake"
    INSTALL_DESTINATION "${ggml_package_dir}"
    PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/ggml-config-version.cmake" COMPATIBILITY SameMajorVersion)

file(RELATIVE_PATH ggml_pc_prefix "/p/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/p")
configure_file("${CMAKE_CURRENT_LIST_DIR}/ggml.pc.in" "${CMAKE_CURRENT_BINARY_DIR}/ggml.pc" @ONLY)

# `cmake -B build && cmake --install build` works too: what was not built yet is built now.
install(CODE "
    if(NOT EXISTS \"${ggml_library}\")
        execute_process(COMMAND \"${CMAKE_COMMAND}\" --build \"${CMAKE_BINARY_DIR}\" --target ggml-cargo RESULT_VARIABLE failed)
        if(failed)
            message(FATAL_ERROR \"ggml: cargo failed\")
        endif()
    endif()")
install(DIRECTORY "${ggml_include_dir}/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(DIRECTORY "${ggml_lib_dir}/" DESTINATION "${CMAKE_INSTALL_LIBDIR}" USE_SOURCE_PERMISSIONS)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/ggml-config.cmake" "${CMAKE_CURRENT_BINARY_DIR}/ggml-config-version.cmake"
    DESTINATION "${ggml_package_dir}")
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/ggml.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
