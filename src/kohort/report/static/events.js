// Single things: open transactions, jumps, what changed between two times, and what could not be read.

function transactionsPlot() {
  const rows = data.transactions.open.slice(0, 20);
  if (!rows.length) return "No transaction is open, so no offset waits for the end of one.";
  const labels = rows.map(row => plotLabel(row[0])), end = Math.max(data.run.at, ...rows.map(row => row[2] ?? 0));
  const bars = rows.map((row, n) => [n, row[2] ?? data.axis.start, end, `<b>${plotText(row[0])}</b><br>producer ${row[1]}<br>${several(row[3], "offset")}`, PALETTE[6]]);
  return { traces: [spans(bars)], layout: { height: 90 + 24 * rows.length, xaxis: timeAxis({ range: [Math.min(data.axis.start, ...rows.map(row => row[2] ?? end)), Math.max(end, axisEnd)] }), yaxis: rowAxis(labels) } };
}

const JUMP_KINDS = { rewind: ["back", 5, "triangle-down"], reset_to_earliest: ["to the start", 3, "triangle-down-open"], skip: ["ahead", 2, "triangle-up"], reset_to_latest: ["to the end", 0, "triangle-up-open"] };

function jumpsPlot() {
  const rows = data.jumps.rows.filter(row => row[3] != null && row[6]);
  if (!rows.length) return "No committed offset jumped: each went on from the one before it, no faster than before.";
  const traces = Object.entries(JUMP_KINDS).map(([kind, [name, n, symbol]]) => {
    const of = rows.filter(row => text(row[7]) === kind);
    return { type: "scatter", mode: "markers", name, x: of.map(row => row[3]), y: of.map(row => Math.abs(row[6])), marker: { size: 10, symbol, color: PALETTE[n], line: { width: 1.2, color: PALETTE[n] } }, customdata: of.map(row => [plotText(row[0]), `${plotText(row[1])}-${row[2]}`, number(row[4]), number(row[5])]), hovertemplate: `<b>%{customdata[0]}</b><br>%{customdata[1]}<br>%{customdata[2]} → %{customdata[3]}<br>%{x}<extra>${name}</extra>` };
  }).filter(trace => trace.x.length);
  const first = Math.min(...rows.map(row => row[3])), last = Math.max(...rows.map(row => row[3])), edge = (Math.max(last, axisEnd) - Math.min(first, data.axis.start)) / 60;
  return { traces, layout: { height: 300, xaxis: timeAxis({ range: [Math.min(first, data.axis.start) - edge, Math.max(last, axisEnd) + edge] }), yaxis: { type: "log", dtick: 1, title: { text: "messages" } }, showlegend: true, legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 } } };
}

const CHANGES = { ahead: ["went ahead", 0], same: ["stayed", 9], new: ["are new", 2], back: ["went back", 5], gone: ["are gone", 1] };

function differencePlot() {
  const counts = new Map(data.difference.counts.map(([what, count, of]) => [text(what), [count, of]]));
  if (!counts.size) return "There were no offsets at either time.";
  const kinds = Object.keys(CHANGES).filter(what => counts.has(what));
  return { traces: [{ type: "bar", orientation: "h", y: kinds.map((_, n) => n), x: kinds.map(what => counts.get(what)[0]), text: kinds.map(what => `${number(counts.get(what)[0])} offsets of ${several(counts.get(what)[1], "group")}`), textposition: "auto", marker: { color: kinds.map(what => PALETTE[CHANGES[what][1]]) }, hovertemplate: "%{text}<extra></extra>", showlegend: false }],
    layout: { height: 90 + 36 * kinds.length, xaxis: { title: { text: "offsets" }, rangemode: "tozero" }, yaxis: rowAxis(kinds.map(what => CHANGES[what][0])) } };
}

function showEvents() {
  plot("plot-transactions", transactionsPlot);
  const fates = data.transactions.fates.map(([fate, count]) => `${number(count)} ${{ plain: "outside of transactions", committed: "committed in one", aborted: "aborted", open: "open" }[text(fate)] ?? text(fate)}`);
  byId("transactions-note").textContent = fates.length ? `Of all commits: ${fates.join(", ")}. An offset in an open transaction cannot be read (UNSTABLE_OFFSET_COMMIT) until that ends.` : "";
  new Sheet(byId("transactions-table"), [
    nameColumn("Group", row => row[0]), numberColumn("Producer", row => row[1], String), numberColumn("Open since", row => row[2], time),
    numberColumn("For", row => row[2] == null ? null : (data.run.at - row[2]) / 1000, duration), numberColumn("Offsets", row => row[3]), numberColumn("Topics", row => row[4]),
  ], { rows: data.transactions.open, pageSize: 10, empty: "No transaction is open." });

  plot("plot-jumps", jumpsPlot);
  const jumps = data.jumps.kinds.reduce((sum, row) => sum + row[1], 0);
  byId("jumps-note").textContent = jumps ? `${several(jumps, "jump")}${jumps > data.jumps.rows.length ? `, of which the ${number(data.jumps.rows.length)} longest are told here` : ""}. Those that went ahead did so while nobody was in the group, or faster than ever before.` : "";
  new Sheet(byId("jumps-table"), [
    nameColumn("Group", row => row[0]), nameColumn("Topic", row => row[1]), numberColumn("Partition", row => row[2]), numberColumn("When", row => row[3], time),
    numberColumn("From", row => row[4]), numberColumn("To", row => row[5]), numberColumn("Messages", row => row[6]),
    { title: "Where", of: row => JUMP_KINDS[text(row[7])]?.[0] ?? text(row[7]) }, wordColumn("Shown by", row => row[8]), nameColumn("Client", row => row[9]), nameColumn("Host", row => row[10]),
  ], { rows: data.jumps.rows, pageSize: 10, empty: "No committed offset jumped." });

  plot("plot-difference", differencePlot);
  byId("difference-note").textContent = `The offsets of all groups as they were at ${time(data.difference.earlier)} and at ${time(data.difference.later)}. kohort report --as-of A --and B compares other times.`;
  new Sheet(byId("difference-table"), [
    nameColumn("Group", row => row[0]), nameColumn("Topic", row => row[1]), numberColumn("Partition", row => row[2]), numberColumn("Then", row => row[3]),
    numberColumn("Now", row => row[4]), numberColumn("Messages", row => row[5]), { title: "What", of: row => CHANGES[text(row[6])]?.[0] ?? text(row[6]) },
  ], { rows: data.difference.rows, pageSize: 10, empty: "Nothing has changed." });

  const damaged = data.damage.count;
  byId("damage-note").textContent = damaged
    ? `${several(damaged, "place")} of the log ${damaged === 1 ? "is" : "are"} damaged; what stands there is in the table quarantine, byte by byte.`
    : `Nothing: all ${several(data.run.records, "record")} could be read.`;
  const empty = byId("damage-table"), unread = byId("unread-table");
  if (damaged) new Sheet(empty, [
    nameColumn("File", row => row[0]), numberColumn("Partition", row => row[1]), numberColumn("Byte", row => row[2]), numberColumn("Offset", row => row[3]),
    numberColumn("Records", row => row[4]), nameColumn("Why", row => row[5]),
  ], { rows: data.damage.rows, pageSize: 10 });
  if (data.damage.unread.length) new Sheet(unread, [
    wordColumn("Kind", row => row[0]), numberColumn("Key version", row => row[1]), numberColumn("Value version", row => row[2]), nameColumn("Why", row => row[3]), numberColumn("Records", row => row[4]),
  ], { rows: data.damage.unread, pageSize: 10 });
  new Sheet(byId("kinds-table"), [
    wordColumn("Kind", row => row[0]), numberColumn("Key version", row => row[1]), numberColumn("Value version", row => row[2]), numberColumn("Records", row => row[3]),
  ], { rows: data.damage.kinds, pageSize: 10, empty: "There was no record." });
}
