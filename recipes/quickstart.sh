#!/usr/bin/env bash
# The main job on a bare machine: makes an environment (once), installs bertkit, and runs `bertkit quickstart [TEXT]`.
#   bash recipes/quickstart.sh            on the text of Python's own help
#   bash recipes/quickstart.sh my.txt     on a text of yours: UTF-8, blank lines between documents, at least 9 of them
# Some minutes on 2 cores after the installation; no network after it.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
make_environment .venv run
HF_HUB_OFFLINE=1 exec "$BERTKIT_PYTHON" -m bertkit quickstart "$@"
