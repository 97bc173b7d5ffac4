/* What is no module for this library is refused with a text, and the process goes on. argv: the folder of broken modules. */
#include "check.h"
#include "ggml-backend.h"

#include <sys/stat.h>
#include <unistd.h>

static char        path[2000];
static const char * folder;

static const char * at(const char * name) {
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

#define REFUSED(name, ...)                                                                                  \
    do {                                                                                                    \
        ggml_backend_reg_t reg_ = (void *) 1;                                                               \
        CHECK_ERROR(reg_ = ggml_backend_load(at(name)), GGML_EXT_CODE_BACKEND, name, at(name), __VA_ARGS__); \
        CHECK(reg_ == NULL && ggml_backend_reg_count() == 1, "%s: nothing is loaded", name);                \
        printf("# %s\n", check_error_text());                                                               \
    } while (0)

int main(int argc, char ** argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: refused FOLDER\n");
        return 2;
    }
    folder = argv[1];
    check_quiet();
    REFUSED("no_entry.so", "no backend module", "ggml_backend_init");
    REFUSED("null_entry.so", "gave no entry");
    REFUSED("version_2.so", "version 2", "ggml 0.9.5 to 0.21", "this library has 3");
    REFUSED("version_9.so", "version 9", "this library has 3");
    REFUSED("no_functions.so", "leaves out get_name");
    REFUSED("score_0.so", "cannot run on this machine");
    REFUSED("missing.so", "ggml_no_such_function");
    REFUSED("size_64.so", "another GGML_MAX_NAME");
    REFUSED("size_256.so", "another GGML_MAX_NAME");
    REFUSED("size_said.so", "GGML_MAX_NAME 64", "160");
    REFUSED("size_init.so", "GGML_MAX_NAME 64", "160");
    REFUSED("cut.so", "cut short");
    REFUSED("text.so", "");
    REFUSED("empty.so", "");
    REFUSED("not_there.so", "");
    REFUSED("folder.so", "");
    REFUSED("libggml-cpu.so", "another GGML_MAX_NAME"); /* ggml's own, for another size */

    /* the variable is no other way in */
    setenv("GGML_BACKEND_PATH", at("version_2.so"), 1);
    CHECK_ERROR(ggml_backend_load_all(), GGML_EXT_CODE_BACKEND, "GGML_BACKEND_PATH", "version 2");
    unsetenv("GGML_BACKEND_PATH");
    ggml_backend_load_all_from_path(folder);
    CHECK(ggml_backend_reg_count() == 1 && ggml_backend_dev_count() == 1, "the CPU alone");

    ggml_backend_reg_t good = ggml_backend_load(at("good.so"));
    CHECK(good && strcmp(ggml_backend_reg_name(good), "BROKEN") == 0 && ggml_backend_dev_count() == 2, "the same without a fault is loaded");
    ggml_backend_unload(good);
    good = ggml_backend_load(at("good_said.so"));
    CHECK(good != NULL, "and so is one made with GGML_BACKEND_DL_IMPL");
    return check_done();
}
