# Settles GGML_MAX_NAME, and makes the headers that carry it. Sets ggml_max_name and ggml_include_dir.
#
# The value is part of the layout of ggml_tensor, so library, header and client must have the same one. A client that
# sets it with add_definitions() before add_subdirectory() is heard.
set(ggml_max_name "${GGML_MAX_NAME}")
if(NOT ggml_max_name)
    get_directory_property(ggml_definitions COMPILE_DEFINITIONS)
    foreach(definition IN LISTS ggml_definitions)
        if(definition MATCHES "^GGML_MAX_NAME=([0-9]+)$")
            set(ggml_max_name "${CMAKE_MATCH_1}")
        endif()
    endforeach()
endif()
if(NOT ggml_max_name)
    set(ggml_max_name 160)
endif()
if(NOT ggml_max_name MATCHES "^[0-9]+$" OR ggml_max_name LESS 64)
    message(FATAL_ERROR "ggml: GGML_MAX_NAME is '${ggml_max_name}', not a number of at least 64")
endif()
message(STATUS "ggml ${PROJECT_VERSION}: GGML_MAX_NAME ${ggml_max_name}")

# A copy is made even for the default value, so that every build takes the same path.
set(ggml_include_dir "${CMAKE_CURRENT_BINARY_DIR}/include")
file(GLOB_RECURSE ggml_headers CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_LIST_DIR}/../include"
     "${CMAKE_CURRENT_LIST_DIR}/../include/*.h")
set(ggml_named_max FALSE)
foreach(header IN LISTS ggml_headers)
    set(from "${CMAKE_CURRENT_LIST_DIR}/../include/${header}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${from}")
    file(READ "${from}" text)
    string(REGEX REPLACE "(\n[ \t]*#[ \t]*define[ \t]+GGML_MAX_NAME[ \t]+)[0-9]+" "\\1${ggml_max_name}" changed "${text}")
    if(changed MATCHES "define[ \t]+GGML_MAX_NAME[ \t]+${ggml_max_name}")
        set(ggml_named_max TRUE)
    endif()
    # Where the value is also compared (#if GGML_MAX_NAME != 160), the comparison follows it.
    string(REGEX REPLACE "(#[ \t]*(el)?if[^\n]*GGML_MAX_NAME[ \t]*[!=]=[ \t]*)[0-9]+" "\\1${ggml_max_name}" changed "${changed}")
    set(to "${ggml_include_dir}/${header}")
    set(present "")
    if(EXISTS "${to}")
        file(READ "${to}" present)
    endif()
    # Left alone where nothing changed: a new time stamp would compile every client again.
    if(NOT present STREQUAL changed)
        file(WRITE "${to}" "${changed}")
    endif()
endforeach()
if(NOT ggml_named_max)
    message(FATAL_ERROR "ggml: include/ggml.h defines no GGML_MAX_NAME")
endif()
