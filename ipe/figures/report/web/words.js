import { html } from "../../../pages/web/dom.js";
import { section, table } from "./controls.js";
import { frames, NONE, number, plural, probability, scoreFormat, setting } from "./numbers.js";

const VERDICTS = { holds: "good", "does not hold": "bad", depends: "mixed" };

/** The claims, each with its verdict, what was found, and the words that it is about. */
export function claimsSection(claims) {
  if (!claims.length) return null;
  const counts = Object.keys(VERDICTS).map((word) => [word, claims.filter((claim) => claim.verdict === word).length]);
  const summary = counts.filter(([, count]) => count).map(([word, count]) => `${count} ${word}`).join(", ");
  const items = claims.map((claim) => {
    const numbers = Object.entries(claim.numbers);
    return html(
      "li",
      {},
      html("p", {}, html("strong", { class: `verdict ${VERDICTS[claim.verdict]}` }, claim.verdict), " ", html("span", { class: "claim" }, claim.name.replaceAll("-", " ").replaceAll("_", " ")), html("span", { class: "hint" }, ` ${claim.figure}`)),
      html("p", {}, claim.finding),
      html("p", { class: "quote" }, claim.addition ? `Ours: ${claim.words}` : `The paper: “${claim.words}”`),
      numbers.length
        ? html("details", {}, html("summary", {}, "numbers"), table(["number", "value"], numbers.map(([name, value]) => [name, number(value, 6)]), `Numbers of ${claim.name}`))
        : null,
    );
  });
  return section("claims", "Claims", html("p", {}, `${plural(claims.length, "claim")}: ${summary}.`), html("ol", { class: "claims" }, items));
}

/** Figures that were drawn for this report, each with its caption. */
export function pictureSection(picture) {
  const image = html("img", { src: picture.image, alt: picture.title, class: "picture" });
  return section(picture.name, picture.title, html("figure", {}, image), html("p", {}, picture.caption));
}

/** How successive halving chose the setting of each case: the rungs, and what was cut where. */
export function selectionSection(report, environment) {
  const found = report.selection.filter((one) => one.environment === environment.id);
  if (!found.length) return null;
  const score = scoreFormat(environment.settings.flatMap((one) => [one.mean, one.worst]));
  const part = (one) => {
    const rows = one.rungs.map((rung, i) => [String(i), String(rung.settings), String(rung.runs), frames(rung.frames), rung.bar === null ? NONE : score(rung.bar), String(rung.cut.length), probability(rung.beaten)]);
    const cut = one.rungs.flatMap((rung, i) => rung.cut.map(([name, mean, error]) => [name, String(i), frames(rung.frames), `${score(mean)}${error === null ? "" : ` ± ${score(error)}`}`]));
    const sure = `Chosen: the best of the last rung with probability ${probability(one.probabilityOfFinalists)}; with probability ${probability(one.probability)} it is also ahead of all that were cut before, each over the frames that it got.`;
    return [
      html("h3", {}, `${one.case ? `${one.case}: ` : ""}${one.chosen}`),
      html("p", {}, one.probability === null ? "Some settings had a single run: how sure the choice is cannot be told." : sure),
      table(["rung", "settings", "runs each", "frames each", "least AUC that went on", "cut", "P(chosen is ahead of these)"], rows, `Rungs of ${one.case || "the sweep"}`),
      html("details", {}, html("summary", {}, `${plural(cut.length, "setting")} that were not chosen`), table(["setting", "last rung", "frames", "AUC, mean ± standard error"], cut, `What was cut of ${one.case || "the sweep"}`)),
    ];
  };
  return section(
    "selection",
    "Selection by halving",
    html("p", {}, "All settings get few runs of few frames, and the better ones of each case go on with more of both. Probabilities are by bootstrap over runs. A setting that starts slowly and would have been the best in the end is cut, and no probability here can tell."),
    ...found.flatMap(part),
  );
}

/** What a reader must know of the store and of the runs that did not end well. */
export function problemsSection(report, environment) {
  const problems = [...report.problems, ...environment.problems];
  const { unfinished } = environment;
  if (!problems.length && !unfinished.length) return null;
  const heading = environment.measure.sources.length ? "Runs that ended early" : "Runs that failed or diverged";
  const rows = unfinished.map((run) => [run.setting, String(run.seed), run.status === "short" ? "ended early" : run.status, frames(run.frame), run.reason]);
  return section(
    "problems",
    "Problems",
    problems.length ? html("ul", {}, problems.map((problem) => html("li", {}, problem))) : null,
    rows.length ? html("h3", {}, heading) : null,
    rows.length ? table(["setting", environment.measure.run, "how it ended", `at which of the ${environment.measure.steps}`, "reason"], rows, heading) : null,
  );
}

/** Every setting, what varied, and the versions behind the runs. */
export function settingsSection(report, environment) {
  const { common, varied } = report.settings;
  const rows = (entries) => entries.map(([name, value]) => [name, setting(value)]);
  const differing = Object.entries(varied).map(([name, values]) => [name, values.map(setting).join(", ")]);
  const versions = report.versions.runs ? [["of the runs", report.versions.runs], ["of this report", report.versions.report]] : [["of this report", report.versions.report]];
  const { sources } = environment.measure;
  return section(
    "settings",
    "Settings and versions",
    sources.length ? html("p", {}, `Read from: ${sources.join("; ")}.`) : null,
    differing.length ? html("h3", {}, "What varies") : null,
    differing.length ? table(["setting", "values"], differing, "What varies between settings") : null,
    Object.keys(common).length ? html("details", {}, html("summary", {}, "What all settings share"), table(["setting", "value"], rows(Object.entries(common)), "What all settings share")) : null,
    ...versions.map(([words, found]) => html("details", {}, html("summary", {}, `Versions ${words}`), table(["package", "version"], rows(Object.entries(found)), `Versions ${words}`))),
    html("p", { class: "hint" }, "Beside this page: ", report.files.flatMap((name, i) => [i ? ", " : "", html("a", { href: encodeURIComponent(name) }, name)]), "."),
  );
}
