/* Files of the safetensors format: a length, a header in JSON, data. */
#ifndef SAFETENSORS_H
#define SAFETENSORS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { ST_NAME = 128, ST_DIMS = 4 };

struct st_tensor {
    char     name[ST_NAME];
    char     type[8]; /* "F32", "I8", "U8" */
    int      n_dims;
    int64_t  shape[ST_DIMS]; /* as in the file: the last one is the fastest */
    uint64_t offset, size;   /* bytes; from the start of the data */
};

struct st_file {
    FILE *             file;
    uint64_t           data; /* where data begin */
    int                n;
    struct st_tensor * tensors;
};

/* Bytes of an element; 0: a type that is not known here. */
size_t st_type_size(const char * type);

/* Reads the header. Names, types, shapes and places of all tensors are checked against each other and against the length of the file.
 * False, with a line on stderr: the file cannot be read or breaks its format. */
bool                     st_open(struct st_file * f, const char * path);
const struct st_tensor * st_find(const struct st_file * f, const char * name); /* NULL, without a line: there is none */
bool                     st_read(const struct st_file * f, const struct st_tensor * t, uint64_t from, void * dst, size_t size);
void                     st_close(struct st_file * f);

/* Writes a file: all tensors first (offsets are found here), then their data, one after the other. */
bool st_create(struct st_file * f, const char * path, struct st_tensor * tensors, int n);
bool st_write(struct st_file * f, const void * data, size_t size);
bool st_finish(struct st_file * f);

#endif
