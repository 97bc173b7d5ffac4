// The C program as C++: the headers alone, with their names as C names.
#include "sd_client.c"
