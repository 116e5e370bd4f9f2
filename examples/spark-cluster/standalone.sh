#!/usr/bin/env bash
# kohort pipeline on a standalone cluster: MASTER=spark://HOST:7077 ./standalone.sh SOURCE --out DIR
# The driver runs here, in the Python that has kohort: Spark's standalone clusters run no drivers in Python.
# Paths are absolute, for they must be the same for all machines.
. "$(dirname "$0")/common.sh"

application=$here/pipeline.py
archive=$(realpath -m "${ENVIRONMENT:-environment.tar.gz}")
submit=(
    --master "${MASTER:?set MASTER to spark://HOST:7077}"
    --archives "$archive#environment"
    --conf spark.executorEnv.PYTHONPATH=environment
    --executor-memory "${EXECUTOR_MEMORY:-4g}"
)
if [ "$dry_run" = no ] && [ ${#arguments[@]} -gt 0 ]; then
    # The driver plans in processes that look for packages where workers do: in a directory of where they run.
    place=${archive%.tar.gz}.unpacked
    if [ ! "$place/environment" -nt "$archive" ]; then
        rm -rf "$place"
        mkdir -p "$place/environment.partial"
        tar -xzf "$archive" -C "$place/environment.partial"
        touch "$place/environment.partial"
        mv "$place/environment.partial" "$place/environment"
    fi
    cd "$place"
fi
go
