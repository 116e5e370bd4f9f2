# Everything runs from a clean clone with nothing but Python 3.11+ and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: audit hostile help system install test test-slow test-store test-spark test-kafka test-clients oracle check behaviours model soak simulate fuzz kill-test mutate nightly docs site demo bench load clean

help:              ## what can be made
	@sed -n 's/^\([a-z-]*\):.*##/\1\t/p' $(MAKEFILE_LIST) | expand -t 16

system:            ## Debian's packages without which some tests are skipped: Chromium, PostgreSQL (as root)
	{ command -v chromium && command -v /usr/lib/postgresql/*/bin/postgres; } >/dev/null || \
		{ apt-get update -qq && apt-get install -qq --no-install-recommends chromium postgresql; }

install: $(VENV)/installed  ## the environment in .venv, with every extra

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kohort needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	PIP_CONSTRAINT=constraints.txt $(BIN)/pip install --quiet --disable-pip-version-check --editable '.[spark,dev]'
	$(BIN)/python -m compileall -q src
	$(BIN)/python -c 'import kohort.broker.commit_transcoder, kohort.records.fold_kernels'
	touch $@

test: install check behaviours ## lint, types, layers, documents and every test
	$(BIN)/pytest -n 3 --dist loadgroup -m 'not alone and not slow and not nightly'
	$(BIN)/pytest -m alone

test-slow: install ## what make test has no time for: the demo's story, following a log, Ctrl-C, tutorials with Spark
	$(BIN)/pytest -n 2 --dist loadgroup -m slow

STORE_TESTS := aiokafka configs create_partitions create_topics delete_topics describe_cluster fetch kafka_python \
	librdkafka librdkafka_transactions list_offsets long_names metadata offset_fetch pipelining produce \
	produce_in_transactions short_way topic_ids
test-store: install ## the broker's tests once more, with a PostgreSQL database in the place of files
	KOHORT_TEST_STORE=1 $(BIN)/pytest -n 2 --dist loadgroup $(STORE_TESTS:%=tests/broker/test_%.py)

# pyspark 4.0 is the oldest that is supported; what is in .venv is the newest.
OLDEST_SPARK := 4.0.0
SPARK_VENV   := .venv-spark-$(OLDEST_SPARK)

$(SPARK_VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(SPARK_VENV)
	grep -v '^pyspark==\|^py4j==' constraints.txt > $(SPARK_VENV)/constraints.txt
	PIP_CONSTRAINT=$(SPARK_VENV)/constraints.txt $(SPARK_VENV)/bin/pip install --quiet --disable-pip-version-check \
		--editable '.[spark,dev]' pyspark==$(OLDEST_SPARK)
	touch $@

# A server that speaks S3; what it depends on does not fit to what kohort does.
S3_SERVER := .venv-moto/bin/moto_server

$(S3_SERVER):
	$(PYTHON) -m venv .venv-moto
	.venv-moto/bin/pip install --quiet --disable-pip-version-check 'moto[s3,server]==5.2.5'
	touch $@

test-spark: install $(SPARK_VENV)/installed $(S3_SERVER) ## Spark: the oldest pyspark, Delta and Iceberg, a cluster of two workers, a store
	KOHORT_TEST_FORMATS=1 $(SPARK_VENV)/bin/pytest -m 'not nightly' tests/spark
	KOHORT_TEST_CLUSTER=1 KOHORT_TEST_S3=$(S3_SERVER) $(BIN)/pytest -m 'not nightly' tests/spark tests/examples/test_spark_cluster.py

test-kafka: install $(SPARK_VENV)/installed ## beside Apache Kafka itself (needs Java and Maven)
	$(BIN)/pytest tests_kafka

test-clients: install ## real clients in Java, Go and JavaScript (needs Java, Maven, Go, Node)
	$(BIN)/pytest -n 2 -rs tests_clients

oracle: install    ## the same requests to Apache Kafka 2.6.3 and to kohort, compared (needs Java and Maven)
	$(BIN)/python -m oracle

check: install     ## lint, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

behaviours: install ## which of Kafka's own test cases are shown by ours; are the documents fresh
	$(BIN)/python -m docs.behaviours
	$(BIN)/python -m docs --check

docs: install      ## write the documents that are generated
	$(BIN)/python -m docs

site: install      ## the documentation as a site that opens from disk, in build/site
	$(BIN)/mkdocs build --strict --quiet

audit: install     ## the dependencies: pinned, fitting together, and nothing known against them (as far as can be asked)
	$(BIN)/python -m tests.audit

hostile: install   ## floods, slow-loris, bombs and lies against a broker, while a group of real consumers keeps its generation
	$(BIN)/python -m tests.hostile

SECONDS ?= 600
model: install     ## the coordinator against its model for SECONDS (600), with ever new examples
	KOHORT_MODEL_SECONDS=$(SECONDS) $(BIN)/pytest -n 0 -s tests/group -k many_lives

soak: install      ## a broker with 500 groups, transactions, compaction and expiry for SECONDS (600): does anything grow (needs Go)
	$(BIN)/python -m tests.soak $(SECONDS)

SEEDS ?= 20000
simulate: install  ## SEEDS (20,000) runs of the whole broker in a simulated world, with crashes and faults
	$(BIN)/python -m tests.simulation 0-$(SEEDS)

KILLS ?= 200
kill-test: install ## KILLS (200) times SIGKILL to a broker in the middle of commits and transactions
	$(BIN)/python -m tests.killing $(KILLS)

FUZZ_SECONDS ?= 300
fuzz: install      ## FUZZ_SECONDS (300) of coverage-guided fuzzing for each reader of foreign bytes
	$(BIN)/python -m tests.fuzzing --seconds $(FUZZ_SECONDS)

MUTANTS ?= 150
mutate: install    ## MUTANTS (150) small changes to log, replay and groups: how many of them do the quick tests notice
	$(BIN)/python -m tests.mutation --count $(MUTANTS)

nightly: install   ## what takes long: 20,000 seeds, every bug put back, crashes in crashes, 200 kills, fuzzing
	$(BIN)/python -m tests.nightly

demo: install      ## a broker, a story told by real clients, and the report that finds it in the log
	$(BIN)/kohort demo

bench: install     ## speed and memory, as ratios in one run (beside Kafka and kfake: needs Java, Maven and Go)
	$(BIN)/python -m bench

load: install      ## 2,000 connections and 1,000 groups that heartbeat for a minute (needs Go)
	$(BIN)/python -m bench --load

clean:             ## forget the environment and caches
	rm -rf tests_clients/.build
	rm -rf $(VENV) .venv-spark-* .venv-moto .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
