# What all ways to submit have in common. Each sets `submit` to the words of its own, and calls `go`.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dry_run=no
if [ "${1:-}" = --dry-run ]; then
    dry_run=yes
    shift
fi
arguments=("$@")

# What the pipeline asks of any session.
session=(
    --conf spark.sql.session.timeZone=UTC
    --conf spark.sql.execution.arrow.pyspark.enabled=true
    --conf "spark.sql.shuffle.partitions=${SHUFFLE_PARTITIONS:-200}"
)

# A log in a store: what it takes to get in is handed on, if it is set here. `driver_environment` is the prefix of the
# settings that a driver in the cluster gets its environment from.
hand_on() {
    local name
    for name in AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_REGION AWS_ENDPOINT_URL; do
        if [ -n "${!name:-}" ]; then
            session+=(--conf "spark.executorEnv.$name=${!name}")
            [ -z "${driver_environment:-}" ] || session+=(--conf "$driver_environment.$name=${!name}")
        fi
    done
}

go() {
    if [ ${#arguments[@]} -eq 0 ]; then
        echo "usage: $0 [--dry-run] SOURCE --out DIR [options of kohort pipeline]" >&2
        exit 2
    fi
    hand_on
    local command=("${SPARK_SUBMIT:-spark-submit}" "${submit[@]}" "${session[@]}" "$application" "${arguments[@]}")
    if [ "$dry_run" = yes ]; then
        # Nothing secret is shown.
        printf '%q ' "${command[@]}" | sed -E 's/(SECRET_ACCESS_KEY|SESSION_TOKEN)=[^ ]*/\1=.../g'
        echo
    else
        exec "${command[@]}"
    fi
}
