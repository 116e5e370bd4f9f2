"""`kohort pipeline` as an application for spark-submit: its arguments are those of the command."""

import sys

from pyspark.sql import SparkSession

from kohort.cli.main import main

SparkSession.builder.appName("kohort").getOrCreate()  # the session that spark-submit has configured
sys.argv.insert(1, "pipeline")
main()
