#!/bin/sh
# Installs torchlint into .venv and lints the demonstration program in examples/.
set -eu
cd "$(dirname "$0")/.."
. scripts/python.sh

make_venv .venv "$(find_python)"
.venv/bin/python -m pip install -qq --disable-pip-version-check --editable .
echo "torchlint is installed: .venv/bin/torchlint. This is what it says about examples/digits:"
echo
# That there are findings is the point of the demonstration, so exit code 1 is a success here.
code=0
.venv/bin/torchlint check --no-cache examples/digits || code=$?
test "$code" -eq 1
