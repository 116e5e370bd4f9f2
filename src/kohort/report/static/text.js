// Every name in the data was chosen by some client. It reaches the page as text only: nothing is made from markup, and
// what a reader would not see (control and direction characters) is shown by its number. Plotly reads some markup in
// its labels, so what goes there is escaped first.

const data = JSON.parse(document.getElementById("data").textContent);
const SHORT = 60, SHORT_LABEL = 26, LONGEST_TITLE = 40000;
const HIDDEN = /[\p{C}\p{Zl}\p{Zp}]/gu;

const byId = id => document.getElementById(id);
const names = new Intl.Collator("en", { numeric: true });
const text = number => number == null ? null : data.strings[number];

function visible(whole) {
  if (whole == null) return "–";
  if (whole === "") return "(empty)";
  return whole.replace(HIDDEN, one => `⟨U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

// The middle of long names goes: hosts and numbers are at the end.
function shortened(whole, most) {
  const shown = [...visible(whole == null ? whole : whole.slice(0, 4 * most) + (whole.length > 8 * most ? whole.slice(-4 * most) : whole.slice(4 * most)))];
  if (shown.length <= most) return shown.join("");
  const end = Math.floor(most / 3);
  return `${shown.slice(0, most - end - 1).join("")}…${shown.slice(-end).join("")}`;
}

const label = number => shortened(text(number), SHORT);
const escaped = shown => shown.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const plotLabel = (number, most = innerWidth < 720 ? 13 : SHORT_LABEL) => escaped(shortened(text(number), most));
const plotText = number => escaped(shortened(text(number), SHORT));

function make(tag, className, ...inside) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...inside);
  return element;
}

// A string of the log in an element of its own; the whole of it is in the title.
function told(number, tag = "span", className = "text") {
  const element = make(tag, className, label(number)), whole = visible(text(number));
  if (element.textContent !== whole) element.title = whole.slice(0, LONGEST_TITLE);
  return element;
}

const badge = is => { const one = make("span", "badge", is || "–"); one.dataset.is = is; return one; };
const number = value => value == null ? "–" : value.toLocaleString("en");
const several = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
const percent = share => share == null ? "–" : `${(100 * share).toFixed(share < .1 && share > 0 ? 1 : 0)} %`;

function time(at) {
  if (at == null) return "–";
  const moment = new Date(at);
  if (Number.isNaN(moment.getTime())) return String(at);
  return moment.toISOString().replace("T", " ").replace(/(\.000)?Z$/, "").replace(/\.(\d+)$/, ".$1");
}

const minute = at => time(at).slice(0, 16);

function duration(seconds) {
  if (seconds == null) return "–";
  for (const [unit, name] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= 1.5 * unit) return `${(seconds / unit).toFixed(1)} ${name}`;
  }
  return `${seconds < 10 ? Math.round(10 * seconds) / 10 : Math.round(seconds)} s`;
}

function bytes(count) {
  if (count == null) return "–";
  let size = count;
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (size < 1024) return `${unit === "B" ? size : size.toFixed(1)} ${unit}`;
    size /= 1024;
  }
  return `${size.toFixed(1)} TiB`;
}

// A line over time as it was packed: digits of five bits, the lowest first, each but the last with a sixth; a sign is the
// lowest bit of all. A point is a step without a value, a star says how often the value before it comes again.
const DIGITS = Object.fromEntries([..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"].map((digit, n) => [digit, n]));

function unpacked(line) {
  if (line == null) return null;
  const whole = [];
  let at = 0;
  const next = () => {
    let value = 0, scale = 1, digit;
    do {
      digit = DIGITS[line[at++]];
      value += (digit & 31) * scale;
      scale *= 32;
    } while (digit & 32);
    return value;
  };
  while (at < line.length) {
    if (line[at] === ".") {
      whole.push(null);
      at++;
    } else if (line[at] === "*") {
      at++;
      const last = whole[whole.length - 1];
      for (let times = next(); times > 0; times--) whole.push(last);
    } else {
      const value = next();
      whole.push(value % 2 ? -(value + 1) / 2 : value / 2);
    }
  }
  return whole;
}

// From differences to values; what is not known is passed over.
function summed(line) {
  let sum = 0;
  return line && line.map(value => value == null ? null : (sum += value));
}

function seriesOf(name, g) {
  if (name === "seconds") return unpacked(data.series.steps_behind[g])?.map(steps => steps == null ? null : steps * data.axis.step / 1000) ?? null;
  const line = unpacked(data.series[name][g]);
  return name === "lag" || name === "committed" ? summed(line) : line;
}

const stepTimes = Array.from({ length: data.axis.bins }, (_, n) => data.axis.start + n * data.axis.step);
const stepEnds = stepTimes.map(at => at + data.axis.step);
const axisEnd = Math.max(stepEnds[stepEnds.length - 1], data.axis.start + 1);
