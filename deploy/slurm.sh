#!/bin/bash
# A class graded by a Slurm array: eight shards, then their union. The class's folder and the course lie on a disk that
# all nodes see. From the class's folder:
#
#   id=$(sbatch --parsable --export=ALL,COURSE=/path/to/course /path/to/course/deploy/slurm.sh)
#   sbatch --dependency=afterok:$id --wrap "/path/to/course/.venv/bin/autograder merge shards/*-of-8"
#
# A shard that failed or ran out of time is sent again by its number (sbatch --array=3 ...) and goes on where it was;
# the count stays 8, for it is written here and not taken from the array.

#SBATCH --job-name=decoding-grade
#SBATCH --array=1-8
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=4
#SBATCH --mem-per-cpu=2G
#SBATCH --time=02:00:00
#SBATCH --output=grade-%A-%a.log

set -euo pipefail

: "${COURSE:?name the folder of the course: sbatch --export=ALL,COURSE=/path/to/course ...}"

exec "$COURSE/.venv/bin/autograder" grade --shard "$SLURM_ARRAY_TASK_ID/8" --workers "$SLURM_CPUS_PER_TASK"
