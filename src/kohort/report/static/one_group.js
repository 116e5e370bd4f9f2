// One group: facts, lag and status, produced and consumed, who was there when, who owned what, its partitions.

const CAUSE_COLOURS = { member_joined: 2, member_left: 5, members_changed: 1, members_restarted: 3, static_member_replaced: 6, subscription_changed: 4, same_members: 9 };
let rebalanceSheet, partitionSheet;

const detailOf = (what, g = chosen.g) => data.detail[what][g] ?? [];
const isDetailed = g => g < data.groups.detailed;
const notDetailed = () => `Members and partitions are told of the ${data.groups.detailed} groups that matter most; kohort report --group tells them of any.`;

function oneLagPlot() {
  const lag = seriesOf("lag", chosen.g), seconds = seriesOf("seconds", chosen.g), status = seriesOf("status", chosen.g);
  if (!lag && !status) return "This group has committed nothing in the time that is drawn here.";
  const traces = [];
  if (lag) {
    traces.push({ type: "scatter", mode: "lines", name: "messages", x: stepEnds, y: lag, line: { color: PALETTE[0], width: 2, shape: "hv" }, fill: "tozeroy", fillcolor: "rgba(47,143,134,.14)", hovertemplate: "%{y:,} messages<br>%{x}<extra></extra>" });
    traces.push({ type: "scatter", mode: "lines", name: "minutes", x: stepEnds, y: seconds.map(value => value == null ? null : value / 60), yaxis: "y2", line: { color: PALETTE[1], width: 1.6, dash: "dot", shape: "hv" }, hovertemplate: "%{y:,.4~r} min<br>%{x}<extra></extra>" });
  }
  if (status) traces.push(strip([status], { y: [0], yaxis: "y3", ygap: 0 }));
  return { traces, layout: {
    height: 330, margin: { l: 8, r: 64, t: 10, b: 16 }, xaxis: timeAxis({ anchor: "y3" }), yaxis: { domain: [.16, 1], rangemode: "tozero", title: { text: "messages", font: { color: PALETTE[0] } } },
    yaxis2: { overlaying: "y", side: "right", tickmode: "auto", rangemode: "tozero", showgrid: false, title: { text: "minutes", font: { color: PALETTE[1] } } },
    yaxis3: { domain: [0, .07], visible: false, fixedrange: true }, showlegend: false,
  } };
}

function consumedPlot() {
  const committed = seriesOf("committed", chosen.g), lag = seriesOf("lag", chosen.g);
  if (!committed || committed.filter(value => value != null).length < 2) return "Less than two steps with an offset: nothing to compare.";
  const rate = line => line.map((value, n) => n && value != null && line[n - 1] != null ? Math.max(value - line[n - 1], 0) / (data.axis.step / 1000) : null);
  const ends = committed.map((value, n) => value == null ? null : value + lag[n]);
  if (!rate(ends).some(value => value > 0)) return "Nothing was produced or consumed from one step to the next, as far as is known.";
  return { traces: [
    { type: "scatter", mode: "lines", name: "produced", x: stepEnds, y: rate(ends), line: { color: PALETTE[2], width: 1.6, shape: "hv" }, hovertemplate: "produced %{y:,.3~r} a second<br>%{x}<extra></extra>" },
    { type: "scatter", mode: "lines", name: "consumed", x: stepEnds, y: rate(committed), line: { color: PALETTE[0], width: 1.6, shape: "hv" }, hovertemplate: "consumed %{y:,.3~r} a second<br>%{x}<extra></extra>" },
  ], layout: { height: 260, xaxis: timeAxis(), yaxis: { rangemode: "tozero", title: { text: "messages a second" } }, legend: { orientation: "h", y: 1.12, x: 0 } } };
}

// Members that came back under the same client id share a row; those that were there at the same time do not.
function memberRows() {
  const lanes = [];
  const rows = detailOf("members").map(([client, host, member, instance, start, end]) => {
    const key = instance ?? client;
    let at = lanes.findIndex(lane => lane.key === key && lane.end <= start);
    if (at < 0) at = lanes.push({ key, end: 0 }) - 1;
    lanes[at].end = end;
    return { at, client, host, member, instance, start, end };
  });
  return { lanes, rows };
}

function membersPlot() {
  if (!isDetailed(chosen.g)) return notDetailed();
  const { lanes, rows } = memberRows(), rebalances = detailOf("rebalances");
  if (!rows.length && !rebalances.length) return "The log holds no generation of this group: it commits offsets without being a member of anything.";
  const labels = ["rebalances", ...lanes.map(lane => plotLabel(lane.key))];
  const bars = rows.map(row => [row.at + 1, row.start, row.end, `<b>${plotText(row.client)}</b> ${plotText(row.host)}<br>${plotText(row.member)}${row.instance == null ? "" : "<br>static"}`, PALETTE[row.at % PALETTE.length]]);
  const marks = {
    type: "scatter", mode: "markers", x: rebalances.map(row => row[0]), y: rebalances.map(() => 0), showlegend: false,
    marker: { symbol: "line-ns", size: 13, line: { width: 2, color: rebalances.map(row => PALETTE[CAUSE_COLOURS[text(row[2])] ?? 7]) } },
    customdata: rebalances.map(row => [number(row[1]), plotText(row[3]), number(row[7])]),
    hovertemplate: "generation %{customdata[0]}<br>%{customdata[1]}<br>%{customdata[2]} partitions moved<br>%{x}<extra></extra>",
  };
  const starts = rows.map(row => row.start), from = Math.min(data.axis.start, ...starts.filter(at => at >= data.axis.start));
  return { traces: [spans(bars), marks], layout: { height: Math.max(150, 70 + 22 * labels.length), xaxis: timeAxis({ range: [from, axisEnd] }), yaxis: rowAxis(labels), barmode: "overlay" } };
}

function ownersPlot() {
  if (!isDetailed(chosen.g)) return notDetailed();
  const owners = detailOf("owners");
  if (!owners.length) return "The log does not tell which partitions the members of this group own.";
  const rowOf = new Map(), colourOf = new Map();
  const bars = owners.map(([topic, partition, client, start, end]) => {
    const key = `${topic} ${partition}`;
    if (!rowOf.has(key)) rowOf.set(key, [rowOf.size, `${plotLabel(topic, 18)}-${partition}`]);
    if (!colourOf.has(client)) colourOf.set(client, colourOf.size);
    return [rowOf.get(key)[0], start, end, `<b>${plotText(topic)}-${partition}</b><br>${plotText(client)}`, PALETTE[colourOf.get(client) % PALETTE.length]];
  });
  const labels = [...rowOf.values()].map(([, shown]) => shown);
  const legend = [...colourOf].slice(0, 12).map(([client, n]) => ({ type: "bar", x: [null], y: [null], name: plotLabel(client), marker: { color: PALETTE[n % PALETTE.length] }, showlegend: true }));
  return { traces: [spans(bars), ...legend], layout: { height: Math.max(170, 90 + 20 * labels.length), xaxis: timeAxis(), yaxis: rowAxis(labels), barmode: "overlay", legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 } } };
}

function partitionsPlot() {
  if (!isDetailed(chosen.g)) return notDetailed();
  const rows = detailOf("commits");
  if (!rows.length) return "This group has committed nothing in the time that is drawn here.";
  const labels = rows.map(([topic, partition]) => `${plotLabel(topic, 18)}-${partition}`), values = rows.map(row => unpacked(row[2]));
  return { traces: [{ type: "heatmap", x: stepTimes, z: values, colorscale: heat(), zmin: 0, ygap: 1, hoverongaps: false, showscale: false, customdata: values.map((row, n) => row.map(() => labels[n])), hovertemplate: "<b>%{customdata}</b><br>%{z:,} commits<br>%{x}<extra></extra>" }],
    layout: { height: Math.max(130, 70 + 19 * labels.length), xaxis: timeAxis({ showgrid: false }), yaxis: rowAxis(labels) } };
}

const fact = (title, shown) => make("span", "", `${title} `, shown instanceof Node ? make("b", "", shown) : make("b", "", shown));

function showFacts(row) {
  const facts = [
    fact("group", told(row.name)), fact("state", text(row.state)), fact("type", row.type == null ? "–" : text(row.type)),
    fact("protocol", row.protocol == null ? "–" : told(row.protocol)), fact("generation", number(row.generation)),
    fact("members", number(row.members)), fact("coordinator partition", row.coordinator == null ? "–" : String(row.coordinator)),
    fact("commits", number(row.commits)), fact("again the same", row.commits ? percent(row.idle_commits / row.commits) : "–"),
    fact("first commit", minute(row.first_commit)), fact("last commit", minute(row.last_commit)),
    ...(row.expires == null ? [] : [fact("first offset expires", minute(row.expires))]),
    ...(row.pending ? [fact("offsets in open transactions", number(row.pending))] : []),
    ...(row.jumps ? [fact("jumps", number(row.jumps))] : []),
  ];
  byId("facts").replaceChildren(...facts);
  byId("picked-status").replaceChildren(badge(row.status || text(row.state)));
  const kinds = { Removed: "This group is no more: it was deleted, or its offsets have expired." };
  byId("detail-note").textContent = kinds[text(row.state)]
    ?? (row.protocol_type == null && !row.members ? "A group without members: something commits offsets under its name (a tool, Spark, Flink), or all that it had were these." : "");
  byId("consumed-note").textContent = row.proxies
    ? "Nothing tells where all of its topics ended: what is drawn as produced is what the furthest group has read, and may be less than there was."
    : "What is drawn as produced is as far as the tables know it: ends of topics where they are known, commits of the furthest group in between.";
  const count = detailOf("rebalances").length;
  byId("members-note").textContent = isDetailed(row.g) && row.rebalances > count ? `The last ${number(count)} generations.` : "";
  byId("owners-note").textContent = "";
}

function pickGroup(g) {
  const row = groups[g];
  if (!row) return;
  chosen.g = g;
  byId("pick").value = "";
  byId("pick").placeholder = shortened(text(row.name), SHORT);
  showFacts(row);
  rebalanceSheet.setRows(detailOf("rebalances").slice().reverse());
  partitionSheet.setRows(detailOf("partitions"));
  for (const one of groupSheet.body.children) one.removeAttribute("aria-selected");
  groupSheet.render();
  again("plot-one-lag", "plot-consumed", "plot-members", "plot-owners", "plot-partitions");
}

// What the colours of the strip mean, in the colours that it has now.
function showStripLegend() {
  const colours = statusColours(), meaning = { OK: "keeps up", WARN: "falls behind", REWIND: "went back", STALL: "commits without progress", STOP: "no commits any more" };
  byId("strip-legend").replaceChildren(...Object.entries(meaning).map(([name, said]) => {
    const square = make("i", "square");
    square.style.background = colours[name];
    return make("span", "", square, make("b", "", name), ` ${said}`);
  }));
}

function showOneGroup() {
  rebalanceSheet = new Sheet(byId("rebalances-table"), [
    { title: "When", of: row => row[0], show: row => time(row[0]), isNumber: true },
    numberColumn("Generation", row => row[1]), wordColumn("Cause", row => row[2]), nameColumn("Told", row => row[3]),
    numberColumn("Joined", row => row[4]), numberColumn("Left", row => row[5]), numberColumn("Partitions", row => row[6]),
    numberColumn("Moved", row => row[7]), numberColumn("Assigned", row => row[8]), numberColumn("Revoked", row => row[9]),
    numberColumn("At most", row => row[10], duration),
  ], { pageSize: 10, empty: "No rebalance of this group is told." });
  partitionSheet = new Sheet(byId("partitions-table"), [
    nameColumn("Topic", row => row[0]), numberColumn("Partition", row => row[1]), numberColumn("Committed", row => row[2]),
    numberColumn("End", row => row[3]), numberColumn("Lag", row => row[4]), numberColumn("Lag, time", row => row[5], duration),
    numberColumn("Lost", row => row[6]), numberColumn("Last commit", row => row[7], time),
    { title: "Status", of: row => text(row[9]), show: row => row[9] == null ? "–" : badge(text(row[9])) },
    wordColumn("End from", row => row[10]), nameColumn("Text", row => row[8]),
  ], { pageSize: 12, empty: "No offset of this group is told." });
  plot("plot-one-lag", oneLagPlot);
  showStripLegend();
  plot("plot-consumed", consumedPlot);
  plot("plot-members", membersPlot);
  plot("plot-owners", ownersPlot);
  plot("plot-partitions", partitionsPlot);
  byId("pick").addEventListener("input", event => {
    const wanted = event.target.value.toLowerCase(), exact = groups.find(row => shortened(text(row.name), SHORT) === event.target.value);
    if (exact) { pickGroup(exact.g); return; }
    const near = wanted ? groups.filter(row => (text(row.name) ?? "").toLowerCase().includes(wanted)).slice(0, 50) : [];
    byId("names").replaceChildren(...near.map(row => { const one = document.createElement("option"); one.value = shortened(text(row.name), SHORT); return one; }));
  });
  byId("pick").addEventListener("change", event => {
    const wanted = event.target.value.toLowerCase(), found = wanted && groups.find(row => (text(row.name) ?? "").toLowerCase().includes(wanted));
    if (found) pickGroup(found.g);
  });
  if (groups.length) pickGroup(0);
}
