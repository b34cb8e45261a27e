# Sourced by the other scripts: finds a Python and makes virtual environments, also where parts of Python are missing.

# The first of $PYTHON, python3, python3.13 ... that runs and is new enough.
find_python() {
    for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11 python3.10 python; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
            command -v "$candidate"
            return 0
        fi
    done
    echo "torchlint needs Python 3.10 or newer; none was found. Name one with PYTHON=/path/to/python." >&2
    return 1
}

# make_venv FOLDER PYTHON: a virtual environment with pip, kept if it is there already. System packages are never
# touched, so it doesn't matter whether the system's Python is marked as externally managed.
make_venv() {
    if "$1/bin/python" -m pip --version >/dev/null 2>&1; then
        return 0
    fi
    rm -rf "$1"
    if "$2" -m venv "$1" >/dev/null 2>&1; then
        return 0
    fi
    # Debian keeps ensurepip, which venv needs for pip, in a package of its own. Other ways to a pip inside:
    rm -rf "$1"
    if "$2" -m pip --version >/dev/null 2>&1 && "$2" -m venv --without-pip "$1" >/dev/null 2>&1 &&
        "$2" -m pip --python "$1/bin/python" install --quiet pip >/dev/null 2>&1; then
        return 0
    fi
    rm -rf "$1"
    if "$2" -m virtualenv --quiet "$1" >/dev/null 2>&1; then
        return 0
    fi
    rm -rf "$1"
    if uv venv --quiet --seed --python "$2" "$1" >/dev/null 2>&1; then
        return 0
    fi
    rm -rf "$1"
    {
        echo "$2 can't make a virtual environment with pip: it has neither ensurepip nor pip, and there is no virtualenv"
        echo "and no uv. On Debian and Ubuntu install the missing part with:  apt install python3-venv"
        echo "or name another Python with PYTHON=/path/to/python."
    } >&2
    return 1
}
