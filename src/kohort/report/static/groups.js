// All groups: the table, what is drawn of them over time, and those that are furthest behind.

const columnsOf = data.groups.columns;
const groups = columnsOf.name.map((name, g) => ({ g, name, ...Object.fromEntries(Object.keys(columnsOf).map(key => [key, columnsOf[key][g]])) }));
const chosen = { text: "", statuses: new Set(), states: new Set(), g: 0, mode: "commits", unit: "lag" };
let drawnGroups = [], firstDrawn = 0, foundGroups = 0, groupSheet;

const GROUP_COLUMNS = [
  { title: "Group", of: row => text(row.name), show: row => {
    const name = told(row.name, "button", "name");
    name.type = "button";
    name.addEventListener("click", () => { pickGroup(row.g); byId("one-group").scrollIntoView(); });
    return name;
  } },
  { title: "Status", of: row => data.statuses.indexOf(row.status), show: row => row.status ? badge(row.status) : "–", isNumber: true, hint: "Burrow's, of the worst partition" },
  { title: "State", of: row => text(row.state), show: row => badge(text(row.state)) },
  numberColumn("Lag", row => row.lag),
  numberColumn("Lag, time", row => row.lag_seconds, duration),
  numberColumn("Members", row => row.members),
  numberColumn("Rebalances", row => row.rebalances),
  numberColumn("Offsets", row => row.offsets),
  numberColumn("Commits", row => row.commits),
  numberColumn("Bytes", row => row.bytes, bytes),
  numberColumn("Last commit", row => row.last_commit, minute),
  { ...numberColumn("Lost", row => row.lost), hint: "Messages that were deleted before the group had read them", isRare: true },
  { ...numberColumn("Expiring", row => row.expiring), hint: "Offsets that expire within 24 hours", isRare: true },
  { ...numberColumn("Pending", row => row.pending), hint: "Offsets in open transactions", isRare: true },
  { ...numberColumn("Jumps", row => row.jumps), isRare: true },
].filter(column => !column.isRare || groups.some(row => column.of(row)));

function wantedGroups() {
  const wanted = chosen.text.toLowerCase();
  return groups.filter(row => (!chosen.statuses.size || chosen.statuses.has(row.status))
    && (!chosen.states.size || chosen.states.has(text(row.state)))
    && (!wanted || (text(row.name) ?? "").toLowerCase().includes(wanted)));
}

function filterGroups() {
  groupSheet.setRows(wantedGroups());
}

function filterChips(place, values, set) {
  const counts = new Map();
  for (const value of values) if (value) counts.set(value, (counts.get(value) ?? 0) + 1);
  place.replaceChildren(...[...counts].sort((one, other) => other[1] - one[1]).map(([value, count]) => {
    const chip = make("button", "chip", `${value} `, make("b", "", number(count)));
    chip.type = "button";
    chip.dataset.key = value;
    chip.setAttribute("aria-pressed", set.has(value));
    chip.addEventListener("click", () => {
      if (!set.delete(value)) set.add(value);
      chip.setAttribute("aria-pressed", set.has(value));
      filterGroups();
    });
    return chip;
  }));
}

const MODES = {
  commits: { title: "Commits", series: "commits", note: "How many commits each group made.", shown: number },
  lag: { title: "Lag", series: "lag", note: "How many messages each group was behind.", shown: number },
  status: { title: "Burrow's status", series: "status", note: "The worst that Burrow would have said in each step: OK, WARN (it falls behind), REWIND (it went back), STALL (commits without progress), STOP (no commits any more)." },
  rebalances: { title: "Rebalances", series: "rebalances", note: "How often each group rebalanced.", shown: number },
};

function rasterPlot() {
  if (!drawnGroups.length) return groups.length ? "No group fits what you are looking for." : "There is no group in this log.";
  const { series, shown } = MODES[chosen.mode], rows = drawnGroups.map(row => seriesOf(series, row.g) ?? Array(data.axis.bins).fill(null));
  const labels = drawnGroups.map(row => plotLabel(row.name)), height = Math.max(180, 74 + 19 * labels.length);
  const layout = { height, xaxis: timeAxis({ showgrid: false }), yaxis: rowAxis(labels, { ticklen: 4 }), dragmode: isNarrow() ? false : "zoom" };
  const onClick = told => { const row = drawnGroups[told.points[0].pointIndex[0]]; if (row) { pickGroup(row.g); byId("one-group").scrollIntoView(); } };
  const full = drawnGroups.map(row => plotText(row.name));
  if (chosen.mode === "status") return { traces: [strip(rows, { customdata: rows.map((row, n) => row.map(() => full[n])), hovertemplate: "<b>%{customdata}</b><br>%{text}<br>%{x}<extra></extra>" })], layout, onClick };
  const values = rows.map(row => row.map(value => value == null ? null : Math.log10(1 + value)));
  const most = Math.max(1, ...rows.flat().filter(value => value != null));
  const ticks = [0, 1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9].filter(value => value <= most * 2);
  return {
    traces: [{
      type: "heatmap", x: stepTimes, z: values, zmin: 0, zmax: Math.log10(1 + most), colorscale: heat(), ygap: 1, hoverongaps: false,
      customdata: rows.map((row, n) => row.map(value => [full[n], value == null ? "" : shown(value)])),
      hovertemplate: `<b>%{customdata[0]}</b><br>%{customdata[1]} ${chosen.mode === "lag" ? "messages behind" : chosen.mode}<br>%{x}<extra></extra>`,
      showscale: !isNarrow(), colorbar: { thickness: 10, outlinewidth: 0, tickvals: ticks.map(value => Math.log10(1 + value)), ticktext: ticks.map(number), len: Math.min(1, 260 / height) },
    }],
    layout, onClick,
  };
}

function lagPlot() {
  const unit = chosen.unit, isTime = unit === "seconds";
  const worst = groups.filter(row => data.series.lag[row.g]).sort((one, other) => isTime
    ? (other.lag_seconds ?? 0) - (one.lag_seconds ?? 0) : other.lag - one.lag).slice(0, 10).filter(row => seriesOf(unit, row.g).some(value => value > 0));
  if (!worst.length) return "No group was behind at any time that is drawn here.";
  const traces = worst.map((row, n) => ({
    type: "scatter", mode: "lines", x: stepEnds, y: seriesOf(unit, row.g).map(value => value == null ? null : isTime ? value / 60 : value), name: plotLabel(row.name), line: { width: 1.8, color: PALETTE[n % PALETTE.length], shape: "hv" },
    hovertemplate: `<b>${plotText(row.name)}</b><br>%{y:,.4~r}${isTime ? " min" : " messages"}<br>%{x}<extra></extra>`,
  }));
  return { traces, layout: { height: 360, xaxis: timeAxis(), yaxis: { rangemode: "tozero", title: { text: isTime ? "minutes behind" : "messages behind" } } } };
}

function showGroups() {
  filterChips(byId("statuses"), groups.map(row => row.status), chosen.statuses);
  filterChips(byId("states"), groups.map(row => text(row.state)), chosen.states);
  byId("find").addEventListener("input", () => { chosen.text = byId("find").value; filterGroups(); });
  groupSheet = new Sheet(byId("groups-table"), GROUP_COLUMNS, {
    rows: groups, isSearched: false, empty: "There is no group in this log.",
    onShown: (shown, first, found) => {
      [drawnGroups, firstDrawn, foundGroups] = [shown, first, found];
      rasterNote();
      if (plots.has("plot-raster")) again("plot-raster");
    },
  });
  groupSheet.decorate = (line, row) => line.setAttribute("aria-selected", row.g === chosen.g);
  choose(byId("raster-modes"), Object.entries(MODES).map(([key, { title }]) => [key, title]), chosen.mode, key => { chosen.mode = key; rasterNote(); again("plot-raster"); });
  plot("plot-raster", rasterPlot);
  choose(byId("lag-modes"), [["lag", "Messages"], ["seconds", "Time"]], chosen.unit, key => { chosen.unit = key; again("plot-lag"); });
  plot("plot-lag", lagPlot);
  byId("lag-note").textContent = data.run.ends === "furthest_group"
    ? "Nothing tells where the topics ended, so the furthest commit of any group stands in for the end: lag is at least this."
    : "Between what is known of a topic's end, the furthest commit of any group stands in for it. Time is that since the next message to read was there, exact to a step.";
}

function rasterNote() {
  const rest = foundGroups > drawnGroups.length ? ` The groups are those in the table above, ${number(firstDrawn + 1)}–${number(firstDrawn + drawnGroups.length)} of ${number(foundGroups)}.` : "";
  const old = data.axis.earlier ? ` ${several(data.axis.earlier, "record")} from before ${minute(data.axis.start)} are not drawn (--from-time draws them).` : "";
  byId("raster-note").textContent = `${MODES[chosen.mode].note} A step is ${duration(data.axis.step / 1000)}.${rest}${old}`;
}
