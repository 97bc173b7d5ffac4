# Sourced by the run scripts of the examples in C. Gives: build_example, and what tools/clients/common.sh gives.
. "$(dirname "${BASH_SOURCE[0]}")/../tools/clients/common.sh"

# build_example NAME [--prefix FOLDER [--build FOLDER]]: builds examples/NAME against the library that is installed in a folder, by
# default one that it is built and installed into first. Sets `build`, the folder with the programs.
build_example() {
    local name=$1 prefix='' out
    out=${GGML_CARGO_TARGET_DIR:-${CARGO_TARGET_DIR:-$root/target}}/examples
    build=$out/$name
    shift
    while [ $# -gt 0 ]; do
        case $1 in
        --prefix | --build) [ -n "${2-}" ] || fail "$1 needs a folder" ;;
        *) fail "unknown argument $1, see --help" ;;
        esac
        case $1 in
        --prefix) prefix=$(cd "$2" && pwd) ;;
        --build) build=$2 ;;
        esac
        shift 2
    done
    need g++:g++ cmake:cmake ninja:ninja-build
    if [ -z "$prefix" ]; then
        command -v cargo >/dev/null 2>&1 || fail 'cargo was not found: install Rust from https://rustup.rs'
        prefix=$out/prefix
        mkdir -p "$out"
        "$root/tools/clients/install-library" "$prefix"
    fi
    say "building examples/$name on the library in $prefix"
    # -U: what an earlier run found elsewhere is forgotten
    cmake -G Ninja -U ggml_DIR -U 'GGML_*LIBRARY' -S "$root/examples/$name" -B "$build" -DCMAKE_PREFIX_PATH="$prefix" \
        --log-level=WARNING >&2
    cmake --build "$build" >&2
}
