#!/usr/bin/env bash
# Pretrains the small Chinese BERT that the Chinese tasks of tasks.py start from: mini (4 layers of 256) with google's Chinese
# vocabulary, on Chinese Wikipedia, nine tenths of the steps at 128 tokens and one at 512, so that long texts find their positions.
#
# Command:  bash recipes/bench/chinese_model.sh DATA [--steps 2500] [--output runs/zh-mini] [other flags of `bertkit pretrain`]
#           DATA has corpora/zhwiki-train.txt, corpora/zhwiki-valid.txt and vocab/bert-base-chinese-vocab.txt.
# Hardware: one core of a CPU or more (OMP_NUM_THREADS); PYTHON names the interpreter.
# Time:     about an hour on one core with AVX2, for 7.8 million tokens.
# Expected: a model folder, and the losses on the validation file in its metrics.json. The same command again goes on.
set -euo pipefail
data=${1:?name the folder that has corpora/ and vocab/}
shift
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PYTHONPATH="$here/../..${PYTHONPATH:+:$PYTHONPATH}"
exec "${PYTHON:-python3}" -m bertkit pretrain --corpus "$data/corpora/zhwiki-train.txt" --valid "$data/corpora/zhwiki-valid.txt" \
  --tokenizer "$data/vocab/bert-base-chinese-vocab.txt" --size mini --phases 128:0.9,512:0.1 --precision fp32 \
  --steps 2500 --batch-size 32 --lr 1e-3 --output runs/zh-mini "$@"
