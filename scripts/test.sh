#!/bin/sh
# Installs what the tests need into .venv, then runs ruff, mypy and the tests, and the light tests (no torch) under each
# of Python 3.10, 3.12 and 3.13 that is on this machine.
set -eu
cd "$(dirname "$0")/.."
. scripts/python.sh

# python_of VERSION: that interpreter, from the path or from pyenv.
python_of() {
    for candidate in "python$1" "${HOME:-}"/.pyenv/versions/"$1"*/bin/python; do
        if "$candidate" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$1')" 2>/dev/null; then
            command -v "$candidate"
            return 0
        fi
    done
    return 1
}

# Both cores of a small machine; the tests of one file share what they set up.
parallel="-n 2 --dist loadfile"

make_venv .venv "$(find_python)"
.venv/bin/python -m pip install -qq --disable-pip-version-check "pip>=25.1"
.venv/bin/python -m pip install -qq --disable-pip-version-check --editable . --group test
PATH="$PWD/.venv/bin:$PATH"
export PATH

echo "== ruff check, ruff format, mypy"
ruff check .
ruff format --check .
mypy

for version in 3.10 3.12 3.13; do
    if ! python=$(python_of "$version"); then
        echo "== SKIPPED: the light tests under Python $version, which is not on this machine"
        continue
    fi
    echo "== light tests under Python $version"
    venv=".venv/light-$version"
    make_venv "$venv" "$python"
    "$venv/bin/python" -m pip install -qq --disable-pip-version-check "pip>=25.1"
    "$venv/bin/python" -m pip install -qq --disable-pip-version-check --editable . --group light
    "$venv/bin/pytest" -m "not torch and not cuda and not slow" -p no:cacheprovider $parallel
done

echo "== tests"
pytest $parallel "$@"
