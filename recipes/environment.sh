# Sourced by recipes/quickstart.sh and tests/run.sh: make_environment FOLDER [run|dev|lowest] leaves its python in BERTKIT_PYTHON.
# Installs once for each content of pyproject.toml and constraints.txt, so a second call works offline.

bertkit_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

_say() { printf '%s\n' "$*" >&2; }

_find_python() {
  local name
  for name in ${BERTKIT_BASE_PYTHON:-python3.11 python3.12 python3.13 python3 python}; do
    if command -v "$name" >/dev/null 2>&1 && "$name" -c 'import sys; sys.exit(not ((3, 11) <= sys.version_info < (3, 14)))' 2>/dev/null; then
      command -v "$name"; return
    fi
  done
  _say "bertkit needs Python 3.11, 3.12 or 3.13, and none was found. Name one with BERTKIT_BASE_PYTHON=/path/to/python."
  return 4
}

_lowest() {  # the lowest versions that pyproject.toml allows, as constraints; torch is constraints.txt's unless asked for
  "$1" - "$bertkit_root" <<'P'
import os, pathlib, re, sys, tomllib
root = pathlib.Path(sys.argv[1])
lowest = [r.replace(">=", "==") for r in tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]]
torch = os.environ.get("BERTKIT_LOWEST_TORCH")
pinned = re.search(r"^torch==\S+", (root / "constraints.txt").read_text(encoding="utf-8"), re.M)
print("\n".join(r for r in lowest if not r.startswith("torch==")))
print(f"torch=={torch}" if torch else pinned.group())
P
}

make_environment() {
  local folder=$bertkit_root/$1 kind=${2:-run} base stamp constraints groups=()
  base=$(_find_python) || return
  stamp=$(cat "$bertkit_root/pyproject.toml" "$bertkit_root/constraints.txt" | cksum; "$base" -VV; echo "$kind ${BERTKIT_LOWEST_TORCH:-}")
  BERTKIT_PYTHON=$folder/bin/python
  if [ "$(cat "$folder/.$kind-ready" 2>/dev/null)" = "$stamp" ]; then return; fi
  [ -x "$BERTKIT_PYTHON" ] && "$BERTKIT_PYTHON" -c 'import pip' 2>/dev/null || "$base" -m venv --clear "$folder"
  constraints=$bertkit_root/constraints.txt
  if [ "$kind" = lowest ]; then constraints=$folder/lowest.txt; _lowest "$base" > "$constraints"; fi
  _say "Installing bertkit and what it needs into $1 (once; some minutes) …"
  # torch first and pinned: a range would let pip choose a build with gigabytes of CUDA.
  "$BERTKIT_PYTHON" -m pip install -q -U "pip>=25.1" || return 4
  "$BERTKIT_PYTHON" -m pip install -q -c "$constraints" "$(grep '^torch==' "$constraints")" || return 4
  [ "$kind" = run ] || groups=(--group "$bertkit_root/pyproject.toml:dev")
  "$BERTKIT_PYTHON" -m pip install -q -c "$constraints" -e "$bertkit_root" "${groups[@]}" || return 4
  printf '%s' "$stamp" > "$folder/.$kind-ready"
}
