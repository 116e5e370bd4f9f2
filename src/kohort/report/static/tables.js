// A table that can be sorted, searched and paged. Columns: title, of(row) (what it is sorted by), show(row) (text or an
// element; by default what it is sorted by), isNumber, search(row) (text that is looked into).

class Sheet {
  constructor(place, columns, { rows = [], pageSize = 15, empty = "Nothing.", sort = null, isDescending = false, isSearched = true, onShown = null } = {}) {
    Object.assign(this, { columns, rows, pageSize, empty, sort, isDescending, onShown });
    this.page = 0;
    this.wanted = "";
    this.head = make("tr", "");
    this.body = make("tbody", "");
    this.nothing = make("p", "empty", empty);
    this.table = make("table", "", make("thead", "", this.head), this.body);
    this.shown = make("span", "");
    this.previous = make("button", "", "Previous");
    this.next = make("button", "", "Next");
    this.find = make("input", "");
    Object.assign(this.find, { type: "search", placeholder: "Search", autocomplete: "off", spellcheck: false });
    this.find.setAttribute("aria-label", "Search this table");
    this.pager = make("div", "pager", ...(isSearched ? [this.find] : []), this.shown, this.previous, this.next);
    place.replaceChildren(make("div", "sheet", this.table, this.nothing), this.pager);
    columns.forEach((column, at) => {
      const button = make("button", "", column.title);
      button.type = "button";
      button.addEventListener("click", () => this.sortBy(at));
      if (column.hint) button.title = column.hint;
      this.head.append(make("th", column.isNumber ? "number" : "", button));
    });
    this.previous.addEventListener("click", () => { this.page -= 1; this.render(); });
    this.next.addEventListener("click", () => { this.page += 1; this.render(); });
    this.find.addEventListener("input", () => { this.wanted = this.find.value.toLowerCase(); this.page = 0; this.render(); });
    this.isSearched = isSearched;
    this.render();
  }

  sortBy(at) {
    this.isDescending = this.sort === at ? !this.isDescending : Boolean(this.columns[at].isNumber);
    this.sort = at;
    this.page = 0;
    this.render();
  }

  setRows(rows) {
    this.rows = rows;
    this.page = 0;
    this.render();
  }

  found() {
    const fits = row => this.columns.some(column => String((column.search ?? column.of)(row) ?? "").toLowerCase().includes(this.wanted));
    const rows = this.wanted ? this.rows.filter(fits) : [...this.rows];
    if (this.sort == null) return rows;
    const { of, isNumber } = this.columns[this.sort], sign = this.isDescending ? -1 : 1;
    const compare = isNumber ? (one, other) => (one ?? -Infinity) - (other ?? -Infinity) || 0 : (one, other) => names.compare(one ?? "", other ?? "");
    return rows.sort((one, other) => sign * compare(of(one), of(other)));
  }

  render() {
    const found = this.found(), pages = Math.max(Math.ceil(found.length / this.pageSize), 1);
    this.page = Math.min(Math.max(this.page, 0), pages - 1);
    const first = this.page * this.pageSize, shown = found.slice(first, first + this.pageSize);
    this.body.replaceChildren(...shown.map(row => {
      const line = make("tr", "", ...this.columns.map(({ of, show, isNumber }) => {
        const cell = show ? show(row) : of(row);
        return make("td", isNumber ? "number" : "", cell ?? "–");
      }));
      if (this.decorate) this.decorate(line, row);
      return line;
    }));
    this.table.hidden = !shown.length;
    this.nothing.hidden = shown.length > 0;
    this.nothing.textContent = this.rows.length ? "Nothing fits what you are looking for." : this.empty;
    this.shown.textContent = found.length ? `${number(first + 1)}–${number(first + shown.length)} of ${number(found.length)}` : "";
    this.pager.hidden = this.rows.length <= Math.min(this.pageSize, 5) && !this.wanted;
    this.previous.hidden = this.next.hidden = pages < 2;
    this.previous.disabled = this.page === 0;
    this.next.disabled = this.page >= pages - 1;
    [...this.head.children].forEach((head, at) => {
      if (at === this.sort) head.setAttribute("aria-sort", this.isDescending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    if (this.onShown) this.onShown(shown, first, found.length);
  }
}

// Columns of strings of the log, given as what finds their number in a row.
const nameColumn = (title, of) => ({ title, of: row => text(of(row)), show: row => told(of(row)) });
const wordColumn = (title, of) => ({ title, of: row => (text(of(row)) ?? "").replaceAll("_", " ") });
const numberColumn = (title, of, show = number) => ({ title, of, show: row => show(of(row)), isNumber: true });

// A row of buttons of which one is pressed.
function choose(place, choices, chosen, onChosen) {
  place.replaceChildren(...choices.map(([key, title]) => {
    const chip = make("button", "chip", title);
    chip.type = "button";
    chip.dataset.key = key;
    chip.setAttribute("aria-pressed", key === chosen);
    chip.addEventListener("click", () => {
      for (const one of place.children) one.setAttribute("aria-pressed", one === chip);
      onChosen(key);
    });
    return chip;
  }));
}
