#!/usr/bin/env bash
# Makes the environment (once), then runs lint, types and tests.
#   --fast    leaves out the tests marked slow
#   --lowest  in an environment of its own: the lowest versions that pyproject.toml allows (torch from constraints.txt; BERTKIT_LOWEST_TORCH=2.10.0 downloads that one)
set -euo pipefail
cd "$(dirname "$0")/.."
source recipes/environment.sh
fast=(); lowest=
for argument in "$@"; do
  case $argument in
    --fast) fast=(-m "not slow") ;;
    --lowest) lowest=1 ;;
    *) echo "usage: bash tests/run.sh [--fast] [--lowest]" >&2; exit 2 ;;
  esac
done
if [ -n "$lowest" ]; then make_environment .venv-lowest lowest; else make_environment .venv dev; fi
export HF_HUB_OFFLINE=1
unset PYTHONDONTWRITEBYTECODE  # or every process that a test starts compiles bertkit, and each of pytest's all tests
"$BERTKIT_PYTHON" -m ruff check .
"$BERTKIT_PYTHON" -m ruff format --check .
[ -n "$lowest" ] || "$BERTKIT_PYTHON" -m mypy
# A process a core (8 at most: each takes up to 2 GB), each with one thread, and the tests of a file in one process: they share its runs.
OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} "$BERTKIT_PYTHON" -m pytest --numprocesses logical --maxprocesses 8 --dist loadfile "${fast[@]}"
