/* Files of the gguf format. Written by tools/headers from the Rust definitions; do not edit. */

#ifndef GGUF_H
#define GGUF_H

#include "ggml.h"

#define GGUF_MAGIC "GGUF"
#define GGUF_VERSION 3
#define GGUF_KEY_GENERAL_ALIGNMENT "general.alignment"
#define GGUF_DEFAULT_ALIGNMENT 32


/* Type of a value in a gguf file. */
enum gguf_type {
  GGUF_TYPE_UINT8 = 0,
  GGUF_TYPE_INT8 = 1,
  GGUF_TYPE_UINT16 = 2,
  GGUF_TYPE_INT16 = 3,
  GGUF_TYPE_UINT32 = 4,
  GGUF_TYPE_INT32 = 5,
  GGUF_TYPE_FLOAT32 = 6,
  GGUF_TYPE_BOOL = 7,
  GGUF_TYPE_STRING = 8,
  GGUF_TYPE_ARRAY = 9,
  GGUF_TYPE_UINT64 = 10,
  GGUF_TYPE_INT64 = 11,
  GGUF_TYPE_FLOAT64 = 12,
  GGUF_TYPE_COUNT = 13,
};

/* A gguf file in memory; opaque. */
struct gguf_context;

/* How a gguf file is opened. */
struct gguf_init_params {
  /* Make the tensors without reading their data. */
  bool no_alloc;
  /* Where to put a new context with the tensors; NULL: none is made. */
  struct ggml_context **ctx;
};

/* Reads up to `len` bytes at `offset` into `output` and returns how many were read. */
typedef size_t (*gguf_reader_callback_t)(void *userdata, void *output, uint64_t offset, size_t len);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/* A file without pairs and tensors. */
struct gguf_context *gguf_init_empty(void);

/* Reads a file from the stream's position. NULL with an error (position and broken rule) when it is no sound gguf file. */
struct gguf_context *gguf_init_from_file_ptr(FILE *file, struct gguf_init_params params);

/* Reads a file. NULL with an error (position and broken rule) when it cannot be read or is no sound gguf file. */
struct gguf_context *gguf_init_from_file(const char *fname, struct gguf_init_params params);

/* Reads a file that is in memory; the memory is not needed afterwards. */
struct gguf_context *gguf_init_from_buffer(const void *data, size_t size, struct gguf_init_params params);

/* Reads a file of at most `max_expected_size` bytes through a callback, at most `max_chunk_read` bytes at once (0: no limit). */
struct gguf_context *gguf_init_from_callback(gguf_reader_callback_t callback,
                                             void *userdata,
                                             size_t max_chunk_read,
                                             uint64_t max_expected_size,
                                             struct gguf_init_params params);

/* Frees a file; NULL is no change. A context that was made with it stays. */
void gguf_free(struct gguf_context *ctx);

/* Name of a type of values; NULL for what is none. */
const char *gguf_type_name(enum gguf_type type);

/* Version of the format. */
uint32_t gguf_get_version(const struct gguf_context *ctx);

/* Alignment of tensor data, bytes. */
size_t gguf_get_alignment(const struct gguf_context *ctx);

/* Where tensor data starts in the file that was read, bytes. */
size_t gguf_get_data_offset(const struct gguf_context *ctx);

/* How many pairs there are. */
int64_t gguf_get_n_kv(const struct gguf_context *ctx);

/* Number of the pair with that key; -1 when there is none. */
int64_t gguf_find_key(const struct gguf_context *ctx, const char *key);

/* Key of a pair, valid until the pair is removed or replaced. */
const char *gguf_get_key(const struct gguf_context *ctx, int64_t key_id);

/* Type of a pair's value. */
enum gguf_type gguf_get_kv_type(const struct gguf_context *ctx, int64_t key_id);

/* Type of the elements of a pair whose value is an array. */
enum gguf_type gguf_get_arr_type(const struct gguf_context *ctx, int64_t key_id);

/* Value of a pair of that very type. */
uint8_t gguf_get_val_u8(const struct gguf_context *ctx, int64_t key_id);

/* Value of a pair of that very type. */
int8_t gguf_get_val_i8(const struct gguf_context *ctx, int64_t key_id);

/* Value of a pair of that very type. */
uint16_t gguf_get_val_u16(const struct gguf_context *ctx, int64_t key_id);

/* Value of a pair of that very type. */
int16_t gguf_get_val_i16(const struct gguf_context *ctx, int64_t key_id);

/* Value of a pair of that very type. */
uint32_t gguf_get_val_u32(const struct gguf_context *ctx, int64_t key_id);

/* Value of a pair of that very type. */
int32_t gguf_get_val_i32(const struct gguf_context *ctx, int64_t key_id);

/* Value of a pair of that very type. */
float gguf_get_val_f32(const struct gguf_context *ctx, int64_t key_id);

/* Value of a pair of that very type. */
uint64_t gguf_get_val_u64(const struct gguf_context *ctx, int64_t key_id);

/* Value of a pair of that very type. */
int64_t gguf_get_val_i64(const struct gguf_context *ctx, int64_t key_id);

/* Value of a pair of that very type. */
double gguf_get_val_f64(const struct gguf_context *ctx, int64_t key_id);

/* Value of a pair of that very type. */
bool gguf_get_val_bool(const struct gguf_context *ctx, int64_t key_id);

/* Value of a pair that is a string, up to its first zero; valid until the pair is removed or replaced. */
const char *gguf_get_val_str(const struct gguf_context *ctx, int64_t key_id);

/* Address of a pair's single number. */
const void *gguf_get_val_data(const struct gguf_context *ctx, int64_t key_id);

/* Elements of an array. */
size_t gguf_get_arr_n(const struct gguf_context *ctx, int64_t key_id);

/* First element of an array of numbers (bool: one byte each); NULL for strings. */
const void *gguf_get_arr_data(const struct gguf_context *ctx, int64_t key_id);

/* String number `i` of an array; NULL when there is no such. */
const char *gguf_get_arr_str(const struct gguf_context *ctx, int64_t key_id, size_t i);

/* How many tensors there are. */
int64_t gguf_get_n_tensors(const struct gguf_context *ctx);

/* Number of the tensor of that name; -1 when there is none. */
int64_t gguf_find_tensor(const struct gguf_context *ctx, const char *name);

/* Where a tensor's bytes start in the data section. */
size_t gguf_get_tensor_offset(const struct gguf_context *ctx, int64_t tensor_id);

/* Name of a tensor. */
const char *gguf_get_tensor_name(const struct gguf_context *ctx, int64_t tensor_id);

/* Shape of a tensor: four numbers, low to high. */
const int64_t *gguf_get_tensor_ne(const struct gguf_context *ctx, int64_t tensor_id);

/* Format of a tensor. */
enum ggml_type gguf_get_tensor_type(const struct gguf_context *ctx, int64_t tensor_id);

/* Bytes of a tensor. */
size_t gguf_get_tensor_size(const struct gguf_context *ctx, int64_t tensor_id);

/* Removes a pair; returns the number that it had, -1 when there was none. */
int64_t gguf_remove_key(struct gguf_context *ctx, const char *key);

/* Sets a pair, which becomes the last; one with the same key goes. */
void gguf_set_val_u8(struct gguf_context *ctx, const char *key, uint8_t val);

/* Sets a pair, which becomes the last; one with the same key goes. */
void gguf_set_val_i8(struct gguf_context *ctx, const char *key, int8_t val);

/* Sets a pair, which becomes the last; one with the same key goes. */
void gguf_set_val_u16(struct gguf_context *ctx, const char *key, uint16_t val);

/* Sets a pair, which becomes the last; one with the same key goes. */
void gguf_set_val_i16(struct gguf_context *ctx, const char *key, int16_t val);

/* Sets a pair, which becomes the last; one with the same key goes. */
void gguf_set_val_u32(struct gguf_context *ctx, const char *key, uint32_t val);

/* Sets a pair, which becomes the last; one with the same key goes. */
void gguf_set_val_i32(struct gguf_context *ctx, const char *key, int32_t val);

/* Sets a pair, which becomes the last; one with the same key goes. */
void gguf_set_val_f32(struct gguf_context *ctx, const char *key, float val);

/* Sets a pair, which becomes the last; one with the same key goes. */
void gguf_set_val_u64(struct gguf_context *ctx, const char *key, uint64_t val);

/* Sets a pair, which becomes the last; one with the same key goes. */
void gguf_set_val_i64(struct gguf_context *ctx, const char *key, int64_t val);

/* Sets a pair, which becomes the last; one with the same key goes. */
void gguf_set_val_f64(struct gguf_context *ctx, const char *key, double val);

/* Sets a pair, which becomes the last; one with the same key goes. */
void gguf_set_val_bool(struct gguf_context *ctx, const char *key, bool val);

/* Sets a pair to a string; the string is copied. */
void gguf_set_val_str(struct gguf_context *ctx, const char *key, const char *val);

/* Sets a pair to an array of `n` numbers, which are copied. */
void gguf_set_arr_data(struct gguf_context *ctx, const char *key, enum gguf_type type, const void *data, size_t n);

/* Sets a pair to an array of `n` strings, which are copied. */
void gguf_set_arr_str(struct gguf_context *ctx, const char *key, const char **data, size_t n);

/* Sets copies of all pairs of another file. */
void gguf_set_kv(struct gguf_context *ctx, const struct gguf_context *src);

/* Adds a tensor of a name that is not there yet. It stays the caller's and is read when the file is written. */
void gguf_add_tensor(struct gguf_context *ctx, const struct ggml_tensor *tensor);

/* Changes a tensor's format; the tensors behind it move. */
void gguf_set_tensor_type(struct gguf_context *ctx, const char *name, enum ggml_type type);

/* Says where a tensor's bytes are, `gguf_get_tensor_size` of them; they are read when the file is written. */
void gguf_set_tensor_data(struct gguf_context *ctx, const char *name, const void *data);

/* Writes the file, or its meta data only, to a stream. False with an error when that fails. */
bool gguf_write_to_file_ptr(const struct gguf_context *ctx, FILE *file, bool only_meta);

/* Writes the file, or its meta data only. False with an error when that fails. */
bool gguf_write_to_file(const struct gguf_context *ctx, const char *fname, bool only_meta);

/* Bytes of the meta data with its padding. */
size_t gguf_get_meta_size(const struct gguf_context *ctx);

/* Writes the meta data to `data`, which has `gguf_get_meta_size` bytes. */
void gguf_get_meta_data(const struct gguf_context *ctx, void *data);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif
