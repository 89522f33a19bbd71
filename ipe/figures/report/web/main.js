import { byId, html } from "../../../pages/web/dom.js";
import { comparisonSection } from "./comparison.js";
import { choice } from "./controls.js";
import { curvesSection, shown } from "./curves.js";
import { evaluationSection } from "./evaluation.js";
import { explorationSection } from "./exploration.js";
import { frames, plural, probability, scoreFormat } from "./numbers.js";
import { rankingSection } from "./ranking.js";
import { sensitivitySection } from "./sensitivity.js";
import { methodsSection } from "./methods.js";
import { claimsSection, pictureSection, problemsSection, selectionSection, settingsSection } from "./words.js";

/** The sentence at the top: what was run, and what came out first. */
function summary(report, environment) {
  const { settings, chosen } = environment;
  const ranked = settings.filter((one) => !one.fresh);
  const runs = settings.reduce((sum, one) => sum + one.n, 0);
  const score = scoreFormat(settings.flatMap((one) => [one.mean, one.worst]));
  const said = (one) => `${score(one.mean)}${one.error === null ? "" : ` ± ${score(one.error)} (standard error)`}`;
  const best = chosen.map((index) => {
    const one = settings[index];
    const fresh = settings.find((other) => other.fresh && other.key === one.key);
    const detail = fresh ? `${said(fresh)} on ${plural(fresh.n, "fresh run")}` : `${said(one)} over ${plural(one.n, "run")}`;
    const peers = ranked.filter((other) => other.case === one.case).length;
    const label = peers === 1 ? one.name : `Best of ${peers}${one.case ? "" : " settings"}: ${one.name}`;
    return html("li", {}, html("span", { class: "best" }, label), html("span", { class: "score" }, `mean AUC ${detail}`), chosen.length === 1 && ranked.length > 1 && one.best !== null ? html("span", { class: "hint" }, ` P(best) ${probability(one.best)}`) : null);
  });
  return html(
    "div",
    { class: "summary" },
    html("p", {}, `${title(environment)}: ${plural(ranked.length, "setting")}, ${plural(runs, "run")} over ${frames(environment.frames)} ${environment.measure.steps}. The AUC is the mean of a run's learning curve, in units of return.`),
    html("ul", {}, best),
    report.cost ? html("p", { class: "hint" }, costWords(report.cost)) : null,
  );
}

/** What the runs took, where, and when. */
function costWords({ words, machines, first, last }) {
  const when = first === last ? first : `${first} to ${last}`;
  const where = machines.length ? ` on ${machines.join("; ")}` : "; the machine is not recorded";
  return `The runs took ${words}${where}${first ? `; ${when} (UTC)` : ""}.`;
}

/** The environment, and which returns are shown where there is more than one kind. */
function title(environment) {
  return environment.measure.sources.length ? `${environment.id}, ${environment.measure.name}` : environment.id;
}

/** Other pages of the same study. */
function otherPages(links) {
  if (!links.length) return null;
  return html("nav", { "aria-label": "Other pages", class: "no-print" }, html("p", { class: "hint" }, "Other pages: ", links.map((link, i) => [i ? ", " : "", html("a", { href: link.address }, link.title)]).flat()));
}

/** Light, dark, or what the system says. */
function themeButton() {
  const themes = ["auto", "light", "dark"];
  let at = 0;
  const button = html("button", { type: "button", class: "no-print", onclick: () => { at = (at + 1) % themes.length; show(); } });
  const show = () => {
    button.textContent = `Theme: ${themes[at]}`;
    if (at) document.documentElement.setAttribute("data-theme", themes[at]);
    else document.documentElement.removeAttribute("data-theme");
  };
  show();
  return button;
}

function render(report, environment, root, choose) {
  shown.start(environment);
  const curves = curvesSection(report, environment);
  const evaluation = evaluationSection(report, environment);
  const exploration = explorationSection(environment);
  const comparison = comparisonSection(report, environment);
  const sensitivity = sensitivitySection(report, environment);
  const nodes = [
    claimsSection(report.claims),
    ...report.pictures.map(pictureSection),
    curves.node,
    evaluation?.node,
    exploration?.node,
    selectionSection(report, environment),
    rankingSection(report, environment),
    comparison.node,
    sensitivity?.node,
    problemsSection(report, environment),
    methodsSection(report, environment),
    settingsSection(report, environment),
  ].filter(Boolean);
  const links = nodes.map((node) => html("li", {}, html("a", { href: `#${node.id}` }, node.querySelector("h2").textContent.replace(/ \(.*/, ""))));
  const several = report.environments.length > 1
    ? choice(new Set(report.environments.map((one) => one.id)).size > 1 ? "Environment" : "Returns", report.environments.map((one, i) => [String(i), title(one)]), String(report.environments.indexOf(environment)), choose)
    : null;
  root.replaceChildren(
    html("header", {}, html("div", { class: "title" }, html("h1", {}, report.title), themeButtonOnce), otherPages(report.links), several, summary(report, environment), html("nav", { "aria-label": "Sections", class: "no-print" }, html("ul", {}, links))),
    html("main", {}, nodes),
    html("footer", {}, html("p", {}, "Runs are the unit of all statistics. Made by ipe report; this page makes no request.")),
  );
  for (const part of [curves, evaluation, exploration, comparison, sensitivity]) part?.draw();
}

/** The environment that the address names, as in `report.html#environment=2`, so that a link can lead to it. */
function addressed(report) {
  const found = /environment=([0-9]+)/.exec(location.hash);
  return found && report.environments[Number(found[1])] ? Number(found[1]) : 0;
}

const themeButtonOnce = themeButton();
const report = JSON.parse(byId("data").textContent);
const root = byId("report");
const choose = (index) => {
  if (Number(index) !== addressed(report)) history.replaceState(null, "", `#environment=${index}`);
  render(report, report.environments[Number(index)], root, choose);
};
choose(addressed(report));
