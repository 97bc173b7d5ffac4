/* What the tests of gguf share: a file's bytes. */
#ifndef GGUF_FILE_H
#define GGUF_FILE_H

#include "check.h"

/* All bytes of a file, to be freed; NULL when there is no such file. */
static uint8_t * slurp(const char * path, size_t * size) {
    FILE * f = fopen(path, "rb");
    if (!f) {
        return NULL;
    }
    fseek(f, 0, SEEK_END);
    *size        = (size_t) ftell(f);
    uint8_t * to = malloc(*size + 1);
    rewind(f);
    if (fread(to, 1, *size, f) != *size) {
        *size = 0;
    }
    fclose(f);
    return to;
}

#endif
