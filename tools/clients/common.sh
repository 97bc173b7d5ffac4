# Sourced by the scripts that build clients. Gives: root, cache (shared by all checkouts), work (this checkout's folder in it),
# say, fail, need, the clients' packages.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cache=${GGML_OXIDE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ggml-oxide}
export CCACHE_DIR=${CCACHE_DIR:-$cache/ccache}
work=$cache/checkouts/$(basename "$root")-$(printf %s "$root" | cksum | cut -d ' ' -f 1)
mkdir -p "$work"
[ -d "$HOME/.cargo/bin" ] && PATH=$PATH:$HOME/.cargo/bin

say() { printf '== %s\n' "$*" >&2; }
fail() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

# need COMMAND:PACKAGE...  installs the Debian packages of the commands that are missing.
need() {
    local pair missing=()
    for pair in "$@"; do
        case ${pair%%:*} in
        venv) python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=("${pair#*:}") ;;
        *) command -v "${pair%%:*}" >/dev/null 2>&1 || missing+=("${pair#*:}") ;;
        esac
    done
    if [ ${#missing[@]} -eq 0 ]; then
        return
    fi
    local as=()
    if [ "$(id -u)" -ne 0 ]; then
        if command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
            as=(sudo)
        else
            fail "missing: install these packages as root and run again: apt-get install ${missing[*]}"
        fi
    fi
    command -v apt-get >/dev/null 2>&1 || fail "missing, and there is no apt-get here: ${missing[*]}"
    say "installing ${missing[*]}"
    "${as[@]}" apt-get update -qq >&2
    "${as[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}

# What every build of a client needs.
need_build_tools() {
    command -v cargo >/dev/null 2>&1 || fail 'cargo was not found: install Rust from https://rustup.rs'
    need g++:g++ cmake:cmake ninja:ninja-build ccache:ccache python3:python3 venv:python3-venv
}

# package_folder NAME VERSION: prints the folder of a cargo package's sources; cargo fetches it where it is missing.
package_folder() {
    local fetch=$cache/clients/fetch-$1-$2
    mkdir -p "$fetch/src"
    : > "$fetch/src/lib.rs"
    cat > "$fetch/Cargo.toml" <<T
[package]
name = "source"
version = "0.0.0"
edition = "2021"
[workspace]
[dependencies]
$1 = "=$2"
T
    cargo metadata --quiet --format-version 1 --manifest-path "$fetch/Cargo.toml" | python3 -c '
import json, os, sys
for p in json.load(sys.stdin)["packages"]:
    if p["name"] == sys.argv[1]:
        print(os.path.dirname(p["manifest_path"]))' "$1"
}

# client_facts CLIENT: sets package, version, folder (the client in it), title.
client_facts() {
    case $1 in
    sd) package=diffusion-rs-sys version=0.1.20 folder=stable-diffusion.cpp title=stable-diffusion.cpp ;;
    llama) package=llama-cpp-sys-2 version=0.1.161 folder=llama.cpp title=llama.cpp ;;
    whisper) package=whisper-rs-sys version=0.15.0 folder=whisper.cpp title=whisper.cpp ;;
    *) fail "no such client: $1" ;;
    esac
}
