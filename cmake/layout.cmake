# usage: cmake -DFROM=libggml.so -DTO=folder -DVERSION=x.y.z -P layout.cmake
#
# Copies the library to its full name and makes the links to it. libggml-base and libggml-cpu are the same library:
# build files of clients look for the three names, and prebuilt backend modules name libggml-base.so.0.
string(REGEX MATCH "^[0-9]+" major "${VERSION}")
file(MAKE_DIRECTORY "${TO}")
execute_process(COMMAND "${CMAKE_COMMAND}" -E copy_if_different "${FROM}" "${TO}/libggml.so.${VERSION}" RESULT_VARIABLE failed)
if(failed)
    message(FATAL_ERROR "ggml: ${FROM} could not be copied")
endif()
foreach(name ggml ggml-base ggml-cpu)
    foreach(link "lib${name}.so.${major}" "lib${name}.so")
        file(CREATE_LINK "libggml.so.${VERSION}" "${TO}/${link}" SYMBOLIC)
    endforeach()
endforeach()
