#include "safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HEADER = 16 << 20 };

static bool bad(const char * what) {
    fprintf(stderr, "safetensors: %s\n", what);
    return false;
}

size_t st_type_size(const char * type) {
    static const struct {
        const char * name;
        size_t       size;
    } types[] = { { "F32", 4 }, { "I32", 4 }, { "F16", 2 }, { "BF16", 2 }, { "I8", 1 }, { "U8", 1 } };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(type, types[i].name) == 0) {
            return types[i].size;
        }
    }
    return 0;
}

/* Bytes that a tensor of this type and shape has. */
static bool bytes(const struct st_tensor * t, uint64_t * size) {
    *size = st_type_size(t->type);
    for (int i = 0; i < t->n_dims; i++) {
        const uint64_t n = (uint64_t) t->shape[i];
        if (n > 0 && *size > INT64_MAX / n) {
            return false;
        }
        *size *= n;
    }
    return *size > 0 || t->n_dims > 0;
}

/* the header: an object of objects; `at` moves on over what was understood */

struct text {
    const char * at, *end;
};

static void space(struct text * t) {
    while (t->at < t->end && strchr(" \t\r\n", *t->at) && *t->at) {
        t->at++;
    }
}

static bool take(struct text * t, char c) {
    space(t);
    if (t->at >= t->end || *t->at != c) {
        return false;
    }
    t->at++;
    return true;
}

/* Names with escapes are of nobody's interest here. */
static bool string(struct text * t, char * dst, size_t room) {
    size_t n = 0;
    if (!take(t, '"')) {
        return false;
    }
    for (; t->at < t->end && *t->at != '"'; t->at++) {
        if (*t->at == '\\' || (unsigned char) *t->at < ' ' || n + 1 >= room) {
            return false;
        }
        dst[n++] = *t->at;
    }
    dst[n] = 0;
    return take(t, '"');
}

static bool number(struct text * t, int64_t * value) {
    space(t);
    *value = 0;
    const char * start = t->at;
    for (; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++) {
        if (*value > (INT64_MAX - 9) / 10) {
            return false;
        }
        *value = *value * 10 + (*t->at - '0');
    }
    return t->at > start;
}

/* A list of at most `room` numbers; how many, or -1. */
static int numbers(struct text * t, int64_t * list, int room) {
    int n = 0;
    if (!take(t, '[')) {
        return -1;
    }
    if (take(t, ']')) {
        return 0;
    }
    do {
        if (n == room || !number(t, &list[n++])) {
            return -1;
        }
    } while (take(t, ','));
    return take(t, ']') ? n : -1;
}

/* An object whose values are strings. */
static bool metadata(struct text * t) {
    char key[ST_NAME], value[4096];
    if (!take(t, '{')) {
        return false;
    }
    if (take(t, '}')) {
        return true;
    }
    do {
        if (!string(t, key, sizeof key) || !take(t, ':') || !string(t, value, sizeof value)) {
            return false;
        }
    } while (take(t, ','));
    return take(t, '}');
}

static bool entry(struct text * t, struct st_tensor * e) {
    char    key[16];
    int64_t place[2];
    int     seen = 0;
    if (!take(t, '{')) {
        return false;
    }
    do {
        if (!string(t, key, sizeof key) || !take(t, ':')) {
            return false;
        }
        if (strcmp(key, "dtype") == 0) {
            seen |= string(t, e->type, sizeof e->type) && st_type_size(e->type) ? 1 : 8;
        } else if (strcmp(key, "shape") == 0) {
            e->n_dims = numbers(t, e->shape, ST_DIMS);
            seen |= e->n_dims >= 0 ? 2 : 8;
        } else if (strcmp(key, "data_offsets") == 0) {
            seen |= numbers(t, place, 2) == 2 ? 4 : 8;
        } else {
            return false;
        }
    } while (seen < 8 && take(t, ','));
    if (seen != 7 || !take(t, '}') || place[0] > place[1]) {
        return false;
    }
    e->offset = (uint64_t) place[0];
    e->size   = (uint64_t) (place[1] - place[0]);
    return true;
}

static bool header(struct st_file * f, struct text t, uint64_t n_data) {
    int room = 0;
    if (!take(&t, '{')) {
        return bad("the header is no object");
    }
    const bool empty = take(&t, '}');
    for (bool more = !empty; more; more = take(&t, ',')) {
        struct st_tensor e = { 0 };
        uint64_t         size;
        if (!string(&t, e.name, sizeof e.name) || !take(&t, ':')) {
            return bad("a name in the header cannot be read");
        }
        if (strcmp(e.name, "__metadata__") == 0) {
            if (!metadata(&t)) {
                return bad("the metadata cannot be read");
            }
            continue;
        }
        if (!entry(&t, &e)) {
            return bad("a tensor's entry in the header cannot be read");
        }
        if (!bytes(&e, &size) || size != e.size || e.offset > n_data || e.size > n_data - e.offset) {
            return bad("a tensor's place does not fit its shape or the file");
        }
        if (f->n == room) {
            room                    = room ? 2 * room : 64;
            struct st_tensor * list = realloc(f->tensors, (size_t) room * sizeof *list);
            if (!list) {
                return bad("there is no memory for the header");
            }
            f->tensors = list;
        }
        f->tensors[f->n++] = e;
    }
    if (!empty && !take(&t, '}')) {
        return bad("the header does not end");
    }
    space(&t);
    return t.at == t.end || bad("there is something behind the header");
}

bool st_open(struct st_file * f, const char * path) {
    unsigned char length[8];
    uint64_t      n = 0, size;
    memset(f, 0, sizeof *f);
    f->file = fopen(path, "rb");
    if (!f->file || fseek(f->file, 0, SEEK_END) != 0 || ftell(f->file) < 8) {
        return bad("the file cannot be read");
    }
    size = (uint64_t) ftell(f->file);
    if (fseek(f->file, 0, SEEK_SET) != 0 || fread(length, 1, 8, f->file) != 8) {
        return bad("the file cannot be read");
    }
    for (int i = 8; i-- > 0;) {
        n = n << 8 | length[i];
    }
    if (n < 2 || n > MAX_HEADER || n > size - 8) {
        return bad("the header is longer than the file, or than can be");
    }
    char *     text = malloc(n);
    const bool ok   = text && fread(text, 1, n, f->file) == n && header(f, (struct text){ text, text + n }, size - 8 - n);
    free(text);
    f->data = 8 + n;
    return ok;
}

const struct st_tensor * st_find(const struct st_file * f, const char * name) {
    for (int i = 0; i < f->n; i++) {
        if (strcmp(f->tensors[i].name, name) == 0) {
            return &f->tensors[i];
        }
    }
    return NULL;
}

bool st_read(const struct st_file * f, const struct st_tensor * t, uint64_t from, void * dst, size_t size) {
    if (from > t->size || size > t->size - from) {
        return bad("a part of a tensor is outside of it");
    }
    return (fseek(f->file, (long) (f->data + t->offset + from), SEEK_SET) == 0 && fread(dst, 1, size, f->file) == size)
        || bad("the data cannot be read");
}

void st_close(struct st_file * f) {
    if (f->file) {
        fclose(f->file);
    }
    free(f->tensors);
    memset(f, 0, sizeof *f);
}

bool st_create(struct st_file * f, const char * path, struct st_tensor * tensors, int n) {
    uint64_t at   = 0;
    char *   text = malloc((size_t) n * (ST_NAME + 200) + 16), *to = text;
    memset(f, 0, sizeof *f);
    if (!text) {
        return bad("there is no memory for the header");
    }
    *to++ = '{';
    for (int i = 0; i < n; i++) {
        struct st_tensor * t = &tensors[i];
        if (!bytes(t, &t->size)) {
            free(text);
            return bad("a tensor cannot be that large");
        }
        t->offset = at;
        at += t->size;
        to += sprintf(to, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", i ? "," : "", t->name, t->type);
        for (int d = 0; d < t->n_dims; d++) {
            to += sprintf(to, "%s%" PRId64, d ? "," : "", t->shape[d]);
        }
        to += sprintf(to, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", t->offset, at);
    }
    *to++ = '}';
    while ((to - text) % 8) {
        *to++ = ' ';
    }
    const uint64_t length = (uint64_t) (to - text);
    unsigned char  start[8];
    for (int i = 0; i < 8; i++) {
        start[i] = (unsigned char) (length >> 8 * i);
    }
    f->file       = fopen(path, "wb");
    const bool ok = f->file && fwrite(start, 1, 8, f->file) == 8 && fwrite(text, 1, length, f->file) == length;
    free(text);
    f->data = at; /* what remains to be written */
    return ok || bad("the file cannot be written");
}

bool st_write(struct st_file * f, const void * data, size_t size) {
    if (size > f->data) {
        return bad("more data than tensors");
    }
    f->data -= size;
    return fwrite(data, 1, size, f->file) == size || bad("the file cannot be written");
}

bool st_finish(struct st_file * f) {
    const bool whole = f->data == 0 || bad("fewer data than tensors");
    const bool ok    = fclose(f->file) == 0 || bad("the file cannot be written");
    f->file          = NULL;
    return whole && ok;
}
