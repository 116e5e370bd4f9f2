"""`--command-config`: how to get into a cluster, in a file as Kafka's own tools take it."""

from pathlib import Path

from kohort.log.security import read_properties

COMMAND_CONFIG_HELP = (
    "How to get into a cluster: a file of settings (security.protocol=SASL_SSL, ...) as Kafka's tools take it."
)


def client_settings(path: Path | None) -> dict[str, str]:
    """The settings in a file, under the names that the data source has for them."""
    return {} if path is None else {f"kafka.{name}": value for name, value in read_properties(path).items()}
