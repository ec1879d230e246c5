#!/usr/bin/env bash
#SBATCH --job-name=corpus
#SBATCH --array=1-8
#SBATCH --cpus-per-task=4
#SBATCH --mem=4G
#SBATCH --time=04:00:00
#
# Purpose:  a text too large for one machine becomes a token store, a part on each node: Slurm's array job of eight.
# Commands: bertkit tokenizer train texts/ --output vocabulary           # once; every part needs the same vocabulary
#           sbatch recipes/corpus-slurm.sh texts/ vocabulary stores/wiki
#           bertkit pretrain --corpus stores/wiki                        # the parts are one corpus
# Hardware: any node that sees the three folders; memory does not grow with the text.
# Time:     a part reads the whole text (100 MB/s and more) and tokenises its share of it (some 20 MB/s a core).
#
# A part that was stopped goes on when it is submitted again, one that is done says so, and `pretrain` names a part that
# is missing. With another --array the parts are others: give them a folder of their own.
set -euo pipefail
text=$1 vocabulary=$2 output=$3
exec ${BERTKIT:-bertkit} corpus build "$text" --tokenizer "$vocabulary" --output "$output" \
  --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" --workers "${SLURM_CPUS_PER_TASK:-1}"
