"""The notebook, its cells executed one after the other in the Spark that the tests share."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.golden_sets import ROOT
from tests.slow import slow

NOTEBOOK = Path(__file__).parent.parent.parent / "examples/notebook/questions.ipynb"


@slow
def test_the_notebook_answers_its_three_questions(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KOHORT_LOG", str(ROOT / "kafka-2.6.3-ibp-2.6"))
    notebook = json.loads(NOTEBOOK.read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    names: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            exec("".join(cell["source"]), names)
    assert names["spark"] is spark
    shown = capsys.readouterr().out
    assert "offset_commit" in shown
    lags = {row["group"]: row["messages"] for row in names["who_lags"].collect()}
    assert lags
    assert all(messages > 0 for messages in lags.values())
    causes = {row["cause"] for row in names["why"].collect()}
    assert {"first_generation", "member_joined"} & causes
    assert names["what_expires"].count() > 0
    assert "simple_group" in shown
