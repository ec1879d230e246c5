#!/usr/bin/env bash
# Everything that only a GPU can show, in one go: right in bf16 and fp16, kernels beside the formula, speed and memory.
#
# Command:  bash recipes/bench/gpu.sh [--corpus text.txt --tokenizer vocab.txt] [--output runs/gpu] [--dry]
#           and, to measure fine-tuning and prediction too, --model runs/mnli --data MNLI/ [--task mnli]
# Hardware: one or two CUDA GPUs with torch 2.10 or later; datasets and evaluate are not needed. PYTHON names the interpreter.
# Time:     under 8 minutes. --dry: half a minute on a CPU, tiny sizes, to see that everything runs.
# Expected: OUTPUT/figures.jsonl, each line with "ok": true; else exit code 7. OUTPUT/PART.log has a part's own words.
#
# Each part is a process of its own with a limit, most important first: one that fails or hangs hides no other.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PYTHONPATH="$here/../..${PYTHONPATH:+:$PYTHONPATH}" HF_HUB_OFFLINE=1 PYTHONUNBUFFERED=1
output=runs/gpu dry= given=() previous=
for argument in "$@"; do
  [ "$previous" = --output ] && output=$argument
  [ "$argument" = --dry ] && dry=1
  previous=$argument
  given+=("$argument")
done
mkdir -p "$output" || exit 5
: > "$output/figures.jsonl"
python=${PYTHON:-python3}
if [ -n "$dry" ]; then exec "$python" "$here/gpu.py" "${given[@]}"; fi
status=0
while read -r part limit; do
  timeout --kill-after=5 "$limit" "$python" "$here/gpu.py" "$part" "${given[@]}" 2> "$output/$part.log" < /dev/null
  code=$?
  if [ "$code" != 0 ] && [ "$code" != 7 ]; then  # 124, 137: stopped at its limit
    echo "{\"part\": \"$part\", \"ok\": false, \"error\": \"ended with code $code; its limit was $limit seconds\"}" | tee -a "$output/figures.jsonl"
  fi
  [ "$code" = 0 ] || status=7
done <<'PARTS'
environment 30
product 15
attention 30
overflow 30
speed128 50
speed512 45
curves 50
beside 60
waits 20
vocabulary 15
dropped 35
tuning 40
processes 50
PARTS
exit $status
