// The page as a whole: colours, the summary, and what leads where.

const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)");
let theme = "auto";

function applyTheme() {
  root.dataset.theme = theme === "auto" ? (dark.matches ? "dark" : "light") : theme;
  byId("theme").textContent = { auto: "◐ auto", light: "☀ light", dark: "☾ dark" }[theme];
}

function showSummary() {
  byId("sentences").append(...data.summary.map(sentence => {
    const link = make("a", "", ...sentence.parts.map(part => typeof part === "string" ? part : told(part.s, "span", "told")));
    link.href = `#${sentence.to}`;
    link.addEventListener("click", () => {
      if (sentence.g != null) pickGroup(sentence.g);
      if (sentence.filter) {
        chosen.statuses = new Set([sentence.filter]);
        filterChips(byId("statuses"), groups.map(row => row.status), chosen.statuses);
        filterGroups();
      }
      if (sentence.sort) groupSheet.sortBy(GROUP_COLUMNS.findIndex(column => column.title === "Lost"));
    });
    const line = make("li", "", link);
    line.dataset.tone = sentence.tone;
    return line;
  }));
  const only = data.run.only.length ? `Only ${several(data.run.only.length, "group")} of the log. ` : "";
  const cut = data.groups.total > groups.length ? `The page has the ${number(groups.length)} groups of ${number(data.groups.total)} that matter most; sums are of all. ` : "";
  byId("scope").textContent = `${only}${cut}All times are UTC. From ${visible(text(data.run.source)).slice(0, 200)}, ${several(data.run.records, "record")}, as of ${time(data.run.at)}; made by kohort ${data.run.version}.`;
  byId("about").textContent = `as of ${minute(data.run.at)} UTC`;
  document.title = `kohort report · ${minute(data.run.at)}`;
}

function showNav() {
  byId("nav").append(...[...document.querySelectorAll("main > section")].map(section => {
    const link = make("a", "", section.querySelector("h2").textContent);
    link.href = `#${section.id}`;
    return link;
  }));
}

applyTheme();
byId("theme").addEventListener("click", () => {
  theme = { auto: root.dataset.theme === "dark" ? "light" : "dark", light: dark.matches ? "dark" : "auto", dark: dark.matches ? "auto" : "light" }[theme];
  applyTheme();
  showStripLegend();
  again();
});
dark.addEventListener("change", () => { applyTheme(); showStripLegend(); again(); });
addEventListener("beforeprint", drawAll);
let wasNarrow = isNarrow();
addEventListener("resize", () => { if (wasNarrow !== isNarrow()) { wasNarrow = isNarrow(); again(); } });

showNav();
showGroups();
showOneGroup();
showTopic();
showEvents();
showSummary();
root.dataset.ready = "yes";
