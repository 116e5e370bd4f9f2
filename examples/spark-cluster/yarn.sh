#!/usr/bin/env bash
# kohort pipeline on YARN: HADOOP_CONF_DIR=/etc/hadoop/conf ./yarn.sh SOURCE --out DIR
# The driver runs in the cluster. SOURCE and DIR must be the same for all machines: a mounted file system, or for SOURCE a store.
. "$(dirname "$0")/common.sh"

application=$here/pipeline.py
submit=(
    --master yarn
    --deploy-mode cluster
    --archives "${ENVIRONMENT:-environment.tar.gz}#environment"
    --conf spark.executorEnv.PYTHONPATH=environment
    --conf spark.yarn.appMasterEnv.PYTHONPATH=environment
    --conf "spark.pyspark.python=${WORKER_PYTHON:-python3}"
    --num-executors "${EXECUTORS:-8}"
    --executor-cores "${EXECUTOR_CORES:-4}"
    --executor-memory "${EXECUTOR_MEMORY:-4g}"
    --conf "spark.executor.memoryOverhead=${PYTHON_MEMORY:-8g}"
)
driver_environment=spark.yarn.appMasterEnv
go
