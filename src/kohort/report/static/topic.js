// The offsets topic itself: when offsets expire, its partitions, who fills it.

const HOUR = 3600000;
const REASONS = {
  subscribed: "the group reads the topic", active_group: "the group has members", pending_transaction: "a transaction is open",
  explicit: "the commit has its own time", group_empty: "the group is empty", group_empty_commit: "the group is empty",
  unsubscribed_topic: "nobody in the group reads the topic", simple_group: "no members were ever there",
};
const healthColumn = name => data.topic.columns.indexOf(name);

function expiryPlot() {
  const hours = data.expiry.hours;
  if (!hours.length) return "No offset expires within 35 days, if everything stays as it is.";
  const first = Math.floor(data.run.at / HOUR / 24), last = Math.max(Math.floor(hours[hours.length - 1][0] / 24), first + 6);
  const days = Array.from({ length: last - first + 1 }, (_, n) => first + n), cells = days.map(() => Array(24).fill(null)), shown = days.map(() => Array(24).fill(""));
  for (const [hour, offsets, of] of hours) {
    const row = Math.floor(hour / 24) - first;
    cells[row][hour % 24] = offsets;
    shown[row][hour % 24] = `${several(offsets, "offset")} of ${several(of, "group")}`;
  }
  const labels = days.map(day => new Date(day * 24 * HOUR).toLocaleDateString("en", { timeZone: "UTC", weekday: "short", month: "short", day: "numeric" }));
  const most = Math.max(...hours.map(row => row[1]));
  return { traces: [{ type: "heatmap", z: cells, x: Array.from({ length: 24 }, (_, n) => n), text: shown, customdata: days.map((_, n) => Array(24).fill(labels[n])), xgap: 2, ygap: 2, hoverongaps: false, showscale: !isNarrow(), zmin: 0, zmax: most, colorscale: [[0, colour("warn-soft")], [1, colour("hot")]], colorbar: { thickness: 10, outlinewidth: 0, title: { text: "offsets" } }, hovertemplate: "%{customdata}, %{x}:00<br>%{text}<extra></extra>" }],
    layout: { height: 80 + 22 * days.length, xaxis: { title: { text: "hour of the day, UTC" }, tickvals: [0, 3, 6, 9, 12, 15, 18, 21], range: [-.5, 23.5], showgrid: false, zeroline: false }, yaxis: rowAxis(labels) } };
}

const HEALTH_MODES = [["bytes", "Bytes"], ["compaction_debt", "To be compacted"], ["commits", "Commits"], ["load_seconds", "Time to load"]];
const HEALTH_SHOWN = { bytes, compaction_debt: percent, commits: number, load_seconds: duration };
let healthMode = "bytes";

function healthPlot() {
  const rows = data.topic.partitions;
  if (!rows.length) return "The offsets topic holds nothing.";
  const known = new Map(rows.map(row => [row[0], row])), last = Math.max(49, ...known.keys()), wide = isNarrow() ? 5 : 10;
  const first = Math.min(0, ...known.keys()), partitions = Array.from({ length: last - first + 1 }, (_, n) => first + n), high = Math.ceil(partitions.length / wide);
  const shown = last > 999 ? rows.map(row => row[0]) : partitions;
  const cells = Array.from({ length: high }, () => Array(wide).fill(null)), labels = cells.map(row => row.map(() => "")), hover = cells.map(row => row.map(() => ""));
  const at = healthColumn(healthMode) + 1, most = Math.max(...rows.map(row => row[at] ?? 0));
  shown.slice(0, high * wide).forEach((partition, n) => {
    const row = known.get(partition), [y, x] = [Math.floor(n / wide), n % wide], of = name => row?.[healthColumn(name) + 1];
    cells[y][x] = row ? row[at] ?? 0 : null;
    labels[y][x] = String(partition);
    hover[y][x] = row ? `<b>partition ${partition}</b><br>${bytes(of("bytes"))}, ${percent(of("share"))} of all, ${(of("skew") ?? 0).toFixed(1)} × the mean<br>${number(of("commits"))} commits<br>${percent(of("compaction_debt"))} would go by compaction<br>loads in ${duration(of("load_seconds"))}` : `<b>partition ${partition}</b><br>empty`;
  });
  return { traces: [{ type: "heatmap", z: cells, text: labels, texttemplate: "%{text}", customdata: hover, hovertemplate: "%{customdata}<extra></extra>", hoverongaps: true, xgap: 3, ygap: 3, zmin: 0, zmax: most || 1, colorscale: [[0, colour("heat-low")], [.5, colour("heat-mid")], [1, colour("heat-high")]], showscale: !isNarrow(), colorbar: { thickness: 10, outlinewidth: 0, tickvals: [0, most / 2, most], ticktext: [0, most / 2, most].map(value => HEALTH_SHOWN[healthMode](healthMode === "bytes" ? Math.round(value) : value)) } }],
    layout: { height: 40 + 42 * high, xaxis: { visible: false, fixedrange: true }, yaxis: { visible: false, autorange: "reversed", fixedrange: true }, dragmode: false } };
}

const KINDS_OF_BYTES = [["live_bytes", "live", 0], ["superseded_bytes", "replaced by later ones", 1], ["tombstone_bytes", "tombstones", 9], ["aborted_bytes", "aborted", 5], ["open_bytes", "open", 6]];

function loudestPlot() {
  const rows = data.topic.loudest.slice(0, 15);
  if (!rows.length) return "No group has written anything.";
  const labels = rows.map(row => plotLabel(row[0]));
  const traces = KINDS_OF_BYTES.map(([key, name, n]) => {
    const at = healthColumn(key) + 1;
    return { type: "bar", orientation: "h", name, x: rows.map(row => row[at]), y: rows.map((_, place) => place), marker: { color: PALETTE[n] }, customdata: rows.map(row => [plotText(row[0]), bytes(row[at])]), hovertemplate: `<b>%{customdata[0]}</b><br>%{customdata[1]} ${name}<extra></extra>` };
  }).filter(trace => trace.x.some(value => value));
  return { traces, layout: { height: 96 + 24 * rows.length, barmode: "stack", xaxis: { tickformat: "~s", ticksuffix: "B" }, yaxis: rowAxis(labels), legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 } } };
}

function showTopic() {
  plot("plot-expiry", expiryPlot);
  const days = data.run.retention_minutes / 1440;
  byId("expiry-note").textContent = `When offsets may be forgotten, if everything stays as it is: offsets.retention.minutes of ${number(data.run.retention_minutes)} (${Number(days.toFixed(2))} days), by Kafka's own rules. Offsets: `
    + data.expiry.reasons.map(([reason, count, due]) => `${number(count)} ${due ? "expire" : "kept"}: ${REASONS[text(reason)] ?? text(reason)}`).join(" · ");
  new Sheet(byId("expiry-table"), [
    nameColumn("Group", row => row[0]), numberColumn("Offsets", row => row[1]), numberColumn("First", row => row[2], minute),
    numberColumn("Last", row => row[3], minute), numberColumn("In", row => row[2] - data.run.at, left => left <= 0 ? "now" : duration(left / 1000)),
    { title: "Because", of: row => REASONS[text(row[4])] ?? text(row[4]) },
  ], { rows: data.expiry.groups, pageSize: 10, empty: "No offset expires while everything stays as it is." });

  choose(byId("health-modes"), HEALTH_MODES, healthMode, key => { healthMode = key; again("plot-health"); });
  plot("plot-health", healthPlot);
  const topic = data.topic.topic, of = name => topic?.[healthColumn(name)];
  byId("health-note").textContent = topic ? `${number(of("records"))} records, ${bytes(of("bytes"))} uncompressed. ${percent(of("compaction_debt"))} would go by compaction. A coordinator that starts needs about ${duration(of("load_seconds"))} to read all of it.` : "";

  plot("plot-loudest", loudestPlot);
  const rest = data.topic.groups - data.topic.loudest.length;
  byId("loudest-note").textContent = `Who fills the offsets topic, by bytes.${rest > 0 ? ` ${several(rest, "other group")} together ${rest === 1 ? "has" : "have"} ${percent(Math.max(1 - data.topic.loudest.reduce((sum, row) => sum + (row[healthColumn("share") + 1] ?? 0), 0), 0))}.` : ""}`;
  const column = (title, name, show) => numberColumn(title, row => row[healthColumn(name) + 1], show);
  new Sheet(byId("loudest-table"), [
    nameColumn("Group", row => row[0]), column("Share", "share", percent), column("Bytes", "bytes", bytes), column("Commits", "commits"),
    column("An hour", "commits_per_hour", value => value == null ? "–" : number(Math.round(value))), numberColumn("Again the same", row => row[healthColumn("commits") + 1] ? row[healthColumn("idle_commits") + 1] / row[healthColumn("commits") + 1] : null, percent),
    column("To be compacted", "compaction_debt", percent), column("× the mean", "skew", value => value == null ? "–" : value.toFixed(1)),
  ], { rows: data.topic.loudest, pageSize: 10 });
}
