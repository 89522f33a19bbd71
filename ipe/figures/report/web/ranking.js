import { html } from "../../../pages/web/dom.js";
import { SLOTS, swatch } from "./chart.js";
import { choice, savings, section } from "./controls.js";
import { shown } from "./curves.js";
import { frames, NONE, percent, plural, probability, scoreFormat } from "./numbers.js";

/** How many rows are shown until all are asked for; on a phone a row is a card. */
const firstRows = () => (matchMedia("(max-width: 42rem)").matches ? 8 : 20);

const bad = (one) => one.failed + one.diverged + one.short;

/** The columns of the ranking: name, the number it is sorted by, what the cell says, and which way is best first. */
function rankingColumns(environment, confirmed) {
  const score = scoreFormat(environment.settings.flatMap((one) => [one.mean, one.worst]));
  const last = scoreFormat(environment.settings.flatMap((one) => [one.final - (one.finalError ?? 0), one.final + (one.finalError ?? 0)]));
  const fresh = new Map(environment.settings.filter((one) => one.fresh).map((one) => [one.key, one]));
  const between = (ends) => `${score(ends[0])} to ${score(ends[1])}`;
  const pm = (format, value, error) => (error === null ? format(value) : `${format(value)} ± ${format(error)}`);
  const columns = [
    { key: "rank", words: "rank", value: (one) => one.rank, cell: (one) => String(one.rank), up: true },
    { key: "name", words: "setting", value: (one) => one.name, cell: (one) => one.name, up: true },
    { key: "mean", words: "AUC, mean ± SE", value: (one) => one.mean, cell: (one) => pm(score, one.mean, one.error) },
    {
      key: "interval",
      words: "mean AUC [95%]",
      value: (one) => one.interval[1],
      cell: (one) => (one.n > 1 ? between(one.interval.slice(1)) : NONE),
    },
    {
      key: "tolerance",
      words: "AUC of runs to come (share)",
      value: (one) => (one.tolerance ? one.tolerance[0] : one.worst),
      cell: (one) => (one.tolerance ? `${between(one.tolerance)} (${percent(environment.tolerance)})` : one.covered === null ? NONE : `${between([one.worst, one.greatest])} (${percent(one.covered)})`),
    },
    {
      key: "iqm",
      words: "AUC, IQM [95%]",
      value: (one) => one.iqm[0],
      cell: (one) => `${score(one.iqm[0])} [${score(one.iqm[1])}, ${score(one.iqm[2])}]`,
    },
    { key: "worst", words: "AUC, worst run", value: (one) => one.worst, cell: (one) => score(one.worst) },
    { key: "final", words: "last return, mean ± SE", value: (one) => one.final, cell: (one) => pm(last, one.final, one.finalError) },
    { key: "best", words: "P(best)", value: (one) => one.best, cell: (one) => probability(one.best) },
    { key: "n", words: "runs", value: (one) => one.n, cell: (one) => (one.n < one.planned ? `${one.n} of ${one.planned}` : String(one.n)) },
    environment.measure.sources.length
      ? { key: "bad", words: "ended early", value: bad, cell: (one) => String(bad(one)) }
      : { key: "bad", words: "failed, diverged", value: bad, cell: (one) => (bad(one) ? `${one.failed}, ${one.diverged}` : "0") },
  ];
  if (confirmed) {
    const cell = (one) => (fresh.has(one.key) ? pm(score, fresh.get(one.key).mean, fresh.get(one.key).error) : NONE);
    columns.splice(3, 0, { key: "fresh", words: "AUC on fresh runs, mean ± SE", value: (one) => fresh.get(one.key)?.mean ?? null, cell });
  }
  return columns;
}

/** The ranking: sorted by any column, filtered by words and case, each row with a box that shows its curve. */
export function rankingSection(report, environment) {
  const rows = environment.settings.map((one, index) => ({ one, index })).filter(({ one }) => !one.fresh);
  const columns = rankingColumns(environment, report.confirmed);
  const cases = [...new Set(rows.map(({ one }) => one.case))];
  const view = { sort: "rank", up: true, words: "", kind: "", all: false };
  const body = html("tbody", {});
  const count = html("p", { class: "hint", role: "status" });
  const more = html("button", { type: "button", class: "no-print", onclick: () => { view.all = !view.all; fill(); } });

  const heads = columns.map((column) => {
    const button = html("button", { type: "button", onclick: () => sortBy(column.key) }, column.words, html("span", { class: "arrow", "aria-hidden": "true" }));
    return html("th", { scope: "col", "data-key": column.key }, button);
  });

  function sortBy(key) {
    const column = columns.find((one) => one.key === key);
    view.up = view.sort === key ? !view.up : Boolean(column.up);
    view.sort = key;
    fill();
  }

  function compare(a, b) {
    const { value } = columns.find((one) => one.key === view.sort);
    const [x, y] = [value(a.one), value(b.one)];
    if (x === null || y === null) return (x === null) - (y === null); // what is not known comes last, either way
    const order = typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : x - y;
    return (view.up ? order : -order) || a.index - b.index;
  }

  function fill() {
    const wanted = view.words.toLowerCase().split(/\s+/).filter(Boolean);
    const match = ({ one }) => (view.kind === "" || one.case === view.kind) && wanted.every((word) => one.name.toLowerCase().includes(word));
    const found = rows.filter(match).sort(compare);
    const first = firstRows();
    const part = view.all ? found : found.slice(0, first);
    body.replaceChildren(...part.map(tableRow));
    mark();
    for (const head of heads) {
      const sorted = head.getAttribute("data-key") === view.sort;
      head.setAttribute("aria-sort", sorted ? (view.up ? "ascending" : "descending") : "none");
      head.querySelector(".arrow").textContent = sorted ? (view.up ? " ▲" : " ▼") : "";
    }
    count.textContent = `${part.length} of ${plural(rows.length, "setting")}${found.length < rows.length ? ` (${found.length} match)` : ""}.`;
    more.hidden = found.length <= first;
    more.textContent = view.all ? `Show the first ${first}` : `Show all ${found.length}`;
    order.querySelector("select").value = view.sort;
  }

  function tableRow({ one, index }) {
    const box = html("input", { type: "checkbox", "data-index": index, "aria-label": `Show the curve of ${one.name}`, onchange: () => shown.toggle(index) });
    const cells = columns.map((column) => {
      const kind = column.key === "name" ? "name" : column.key === "bad" && bad(one) ? "number warn" : "number";
      return html("td", { class: kind, "data-label": column.words }, html("span", {}, column.cell(one)));
    });
    return html("tr", {}, html("td", { class: "box no-print", "data-label": "curve" }, html("label", {}, box, html("span", {}))), ...cells);
  }

  /** Tick what is shown, in place: a row that is made anew would lose the keyboard's focus. */
  function mark() {
    for (const box of body.querySelectorAll("input")) {
      const index = Number(box.getAttribute("data-index"));
      box.checked = shown.has(index);
      box.disabled = !box.checked && shown.list.length >= SLOTS;
      box.nextElementSibling.replaceChildren(...(box.checked ? [swatch(shown.slot(index))] : []));
    }
  }

  const words = html("input", { type: "search", placeholder: "width=64 epsilon.final=0.1", autocomplete: "off", oninput: () => { view.words = words.value; fill(); } });
  const order = choice("Sort by", columns.map((column) => [column.key, column.words]), view.sort, sortBy);
  order.classList.add("narrow");
  shown.listeners.push(mark);
  fill();
  return section(
    "ranking",
    "Ranking",
    html("p", {}, rankingWords(report, environment)),
    html(
      "div",
      { class: "controls" },
      html("label", { class: "control grow" }, html("span", {}, "Filter"), words),
      cases.length > 1 ? choice("Case", [["", "all"], ...cases.map((one) => [one, one || "(no name)"])], "", (value) => { view.kind = value; fill(); }) : null,
      order,
    ),
    html(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "Ranking of settings" },
      html("table", { class: "ranking cards" }, html("thead", {}, html("tr", {}, html("th", { scope: "col", class: "no-print" }, "curve"), ...heads)), body),
    ),
    html("div", { class: "after" }, count, more),
    savings(report, "ranking.csv", "runs.csv"),
  );
}

function rankingWords(report, environment) {
  const { measure } = environment;
  const which = measure.sources.length ? "ended early" : "failed or diverged";
  const failed = report.failedScore === "worst"
    ? `Runs that ${which} score the worst AUC of all runs.`
    : `Runs that ${which} stay in, with their last mean kept to the end; those that finished no episode score the worst AUC of all runs.`;
  return `By mean AUC, the mean of a run's curve over the first ${frames(environment.frames)} ${measure.steps}, in units of return; SE is the standard error over runs, and the last return is the curve's last value. The 95% interval is where the mean of all runs to come lies (bootstrap over runs); beside it stands where the runs themselves lie: a tolerance interval, which holds ${percent(environment.tolerance)} of all runs to come with 95% confidence. That takes 22 runs; of fewer, it is the range of the runs, with the share that this range holds. P(best) is how often a setting has the largest mean when runs are drawn again. ${failed}`;
}
