// Plots are drawn when they come near to what is on the screen, and again when the colours change.

const plots = new Map();      // id → how it is made: { make, isDrawn }
const PALETTE = ["#2f8f86", "#c77a1c", "#5a7fd0", "#b4508f", "#7a9a2b", "#c9534d", "#7d6bc4", "#3f9ec4", "#a3843c", "#6f7d79"];
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const heat = () => [[0, colour("card")], [.001, colour("heat-low")], [.5, colour("heat-mid")], [1, colour("heat-high")]];
const isNarrow = () => innerWidth < 720;

function statusColours() {
  return { NOTFOUND: colour("none-soft"), OK: colour("good"), WARN: colour("warn"), REWIND: "#8a6bd1", STALL: "#d9803b", STOP: colour("bad") };
}

function layoutOf(more) {
  const font = { color: colour("text"), size: isNarrow() ? 11 : 12, family: "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif" };
  const axis = { gridcolor: colour("line"), zerolinecolor: colour("line"), linecolor: colour("line"), automargin: true };
  const { xaxis = {}, yaxis = {}, ...rest } = more;
  const others = Object.fromEntries(Object.entries(rest).filter(([key]) => /^[xy]axis\d/.test(key)).map(([key, of]) => [key, { ...axis, ...of }]));
  return {
    font, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { l: 8, r: 26, t: 10, b: 16 }, height: 320,
    hoverlabel: { align: "left", namelength: -1, bgcolor: colour("card"), bordercolor: colour("line"), font: { color: colour("text") } },
    legend: { orientation: "h", y: -.18, x: 0 }, dragmode: isNarrow() ? false : "zoom", bargap: .25,
    ...rest, ...others, xaxis: { ...axis, ...xaxis }, yaxis: { ...axis, ...yaxis },
  };
}

// All times are UTC; plotly takes milliseconds for that.
const timeAxis = more => ({ type: "date", range: [data.axis.start, axisEnd], ...more });
const CONFIG = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"], showTips: false };

// `make` gives { traces, layout, onClick } or a sentence that says why there is nothing to draw.
function plot(id, make) {
  plots.set(id, { make, isDrawn: false });
  seen.observe(byId(id));
}

const isThere = () => typeof Plotly !== "undefined";

function draw(id) {
  const one = plots.get(id), place = byId(id), made = one.make();
  one.isDrawn = true;
  const isEmpty = typeof made === "string";
  place.classList.toggle("is-empty", isEmpty);
  if (isEmpty) {
    if (place.classList.contains("js-plotly-plot")) Plotly.purge(place);
    place.textContent = made;
    place.style.height = "";
    return;
  }
  if (!place.classList.contains("js-plotly-plot")) place.replaceChildren();
  const layout = layoutOf(made.layout);
  place.style.height = `${layout.height + 18}px`;
  Plotly.react(place, made.traces, layout, CONFIG);
  if (made.onClick) {
    place.removeAllListeners("plotly_click");
    place.on("plotly_click", made.onClick);
  }
}

const seen = new IntersectionObserver(entries => {
  for (const { isIntersecting, target } of entries) {
    if (isIntersecting && isThere() && !plots.get(target.id).isDrawn) draw(target.id);
  }
}, { rootMargin: "500px" });

// Plotly is the last thing in the file, so that text is there while a browser still reads that.
addEventListener("DOMContentLoaded", () => {
  for (const id of plots.keys()) {
    seen.unobserve(byId(id));
    seen.observe(byId(id));
  }
});

// What is shown already is drawn anew, the rest when somebody gets there.
function again(...ids) {
  for (const id of ids.length ? ids : plots.keys()) {
    const one = plots.get(id);
    if (one.isDrawn) draw(id);
  }
}

function drawAll() {
  for (const [id, one] of plots) if (!one.isDrawn) draw(id);
}

// Rows from top to bottom, with names that are not taken for numbers or each other.
const rowAxis = (labels, more) => ({
  tickmode: "array", tickvals: labels.map((_, n) => n), ticktext: labels, range: [labels.length - .5, -.5], showgrid: false, zeroline: false, ...more,
});

// A heat map of one status for each row and step.
function strip(rows, more) {
  const colours = statusColours(), count = data.statuses.length;
  const scale = data.statuses.flatMap((name, n) => [[n / count, colours[name]], [(n + 1) / count, colours[name]]]);
  return {
    type: "heatmap", x: stepTimes, z: rows, zmin: -.5, zmax: count - .5, colorscale: scale, showscale: false, ygap: 1, hoverongaps: false,
    text: rows.map(row => row.map(at => at == null ? "" : data.statuses[at])), hovertemplate: "%{text}<br>%{x}<extra></extra>", ...more,
  };
}

// Bars from one time to another: rows of [row, from, until, text, colour].
function spans(rows, more) {
  return {
    type: "bar", orientation: "h", y: rows.map(row => row[0]), base: rows.map(row => row[1]), x: rows.map(row => Math.max(row[2] - row[1], 1)),
    customdata: rows.map(row => [row[3], minute(row[1]), minute(row[2])]), width: .72,
    hovertemplate: "%{customdata[0]}<br>%{customdata[1]} – %{customdata[2]}<extra></extra>",
    marker: { color: rows.map(row => row[4]), line: { width: .5, color: colour("card") } }, showlegend: false, ...more,
  };
}
