#!/usr/bin/env bash
# kohort pipeline on Kubernetes: MASTER=k8s://https://HOST:6443 IMAGE=registry/kohort-spark:1 ./kubernetes.sh SOURCE --out DIR
# The environment is in the image (kubernetes/Dockerfile). DIR is on the volume of the pod template (kubernetes/pod.yaml).
. "$(dirname "$0")/common.sh"

application=local:///opt/kohort/pipeline.py
submit=(
    --master "${MASTER:?set MASTER to k8s://https://HOST:6443}"
    --deploy-mode cluster
    --name kohort
    --conf "spark.kubernetes.container.image=${IMAGE:?set IMAGE to what kubernetes/Dockerfile made}"
    --conf "spark.kubernetes.namespace=${NAMESPACE:-default}"
    --conf "spark.kubernetes.authenticate.driver.serviceAccountName=${SERVICE_ACCOUNT:-spark}"
    --conf "spark.kubernetes.driver.podTemplateFile=$here/kubernetes/pod.yaml"
    --conf "spark.kubernetes.executor.podTemplateFile=$here/kubernetes/pod.yaml"
    --conf "spark.executor.instances=${EXECUTORS:-8}"
    --conf "spark.executor.cores=${EXECUTOR_CORES:-4}"
    --conf "spark.executor.memory=${EXECUTOR_MEMORY:-4g}"
    --conf "spark.executor.memoryOverhead=${PYTHON_MEMORY:-8g}"
)
driver_environment=spark.kubernetes.driverEnv
go
