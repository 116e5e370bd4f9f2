"""Writes `docs/groups.md`: what `kohort groups` does, with the commands' own options."""

import inspect

from docs.options import options
from kohort.cli.groups import groups

INTRO = """# Groups of a running cluster

<!-- written by `python -m docs` from the commands' options -->

`kohort groups` looks at consumer groups and changes them, in any Kafka: Apache Kafka 2.6 and 4.x are tried by
`make test-kafka`, kohort itself by `make test`. Words and columns are those of `kafka-consumer-groups`; no Java is
needed.

```
$ kohort groups list --bootstrap localhost:9092 --state
GROUP        STATE
billing      Empty
old-billing  Empty
$ kohort groups describe --bootstrap localhost:9092 --group billing
Consumer group 'billing' has no active members.

GROUP    TOPIC   PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG  CONSUMER-ID  HOST  CLIENT-ID
billing  orders  0          10              30              20   -            -     -
billing  orders  1          3               7               4    -            -     -
```

Other offsets are shown first, and set when `--execute` is there:

```
$ kohort groups reset --bootstrap localhost:9092 --group billing --all-topics --shift-by -5
GROUP    TOPIC   PARTITION  NEW-OFFSET  CURRENT-OFFSET  STATUS
billing  orders  0          5           10              Dry run
billing  orders  1          0           3               Dry run
kohort: warning: new offset (-2) is lower than earliest offset of 'orders-1': it becomes 0
kohort: nothing was changed: --execute does it
$ kohort groups reset --bootstrap localhost:9092 --group billing --topic orders:0 --to-latest --execute
GROUP    TOPIC   PARTITION  NEW-OFFSET  CURRENT-OFFSET  STATUS
billing  orders  0          30          10              Successful
```

The offsets of groups go into a file, and come back:

```
$ kohort groups export --bootstrap localhost:9092 --all-groups --out offsets.csv
kohort: 3 offsets, 2 groups: written to offsets.csv
$ kohort groups delete --bootstrap localhost:9092 --group old-billing
Deletion of requested consumer groups ('old-billing') was successful.
$ kohort groups import offsets.csv --bootstrap localhost:9092 --execute
GROUP        TOPIC   PARTITION  NEW-OFFSET  CURRENT-OFFSET  STATUS
billing      orders  0          30          30              Successful
billing      orders  1          3           3               Successful
old-billing  orders  0          1           -               Successful
$ kohort groups delete-offsets --bootstrap localhost:9092 --group billing --topic orders:1
TOPIC   PARTITION  STATUS
orders  1          Successful
```

- **Groups of consumers** are meant by `list` and `--all-groups`, of both protocols (`Classic` and `Consumer`), and
  those that only ever had offsets committed. Groups of Connect and the like are shown by `describe --group`.
- **Groups with members** are refused for `reset`, `import` and `delete`, and so does Kafka. A group is reset whole or
  not at all: if one of its partitions cannot be, it is left as it is and the row says why. What the cluster itself
  refuses is told by row.
- **An offset that the log does not hold** becomes the nearest one that it does, with a warning. A time behind the last
  record is the end of the log. `--to-current` is the end where a group has no offset.
- **CSV** is what `kafka-consumer-groups --reset-offsets --from-file` reads: no heading; `topic,partition,offset` of one
  `--group`, else the group in front. Names stand in it as they are; those that a spreadsheet would take for formulas
  are warned of, those with line breaks are left out and the exit code is 1. **JSON** holds every name, metadata and
  leader epochs; an import takes the metadata but no leader epochs, which belong to the cluster that gave them.
- **On a terminal** names are shown with escapes in place of what would move it, and long ones are cut. `--format json`
  has all of it, in ASCII. There are no colours.
- A file is written whole or not at all. `--command-config` is described in [pipeline.md](pipeline.md#a-live-cluster).

Exit codes: 0 done, 1 something was refused or failed (a line says what), 2 wrong usage.

`describe --format json` has `groups`, by their ids, and `offsets` with `lag`, under the names of `kohort state`;
`list`, `reset`, `import`, `delete` and `delete-offsets` have a list of rows.
"""


def page() -> str:
    """The whole of `docs/groups.md`."""
    parts = [INTRO]
    for name, command in groups.commands.items():
        first, _, rest = inspect.cleandoc(command.help or "").partition("\n")
        more = rest.partition("\b\n")[0].strip()
        parts.append(f"## kohort groups {name}\n\n{first}\n" + (f"\n{more}\n" if more else ""))
        parts.append("\n".join(options(command, f"groups {name}")))
    return "\n".join(parts).rstrip("\n") + "\n"
