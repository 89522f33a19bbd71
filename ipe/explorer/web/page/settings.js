/* The numbers of a run as typed. */

import { numberProblem, SETTINGS } from "./address.js";
import { byId, say, set } from "../../../pages/web/dom.js";
import { numberIn, typed } from "./fields.js";

/** Fill the form. */
export function writeSettings(settings) {
  for (const [name, value] of Object.entries(settings)) byId(name).value = typed(value);
  readSettings(settings);
}

/** The settings with what is typed, as far as it is a number in its range; the first that is not is named. */
export function readSettings(current) {
  const settings = { ...current };
  let said = "";
  for (const [name, range] of Object.entries(SETTINGS)) {
    const problem = numberProblem(numberIn(byId(name)), range);
    const place = problem ? "settings-problem" : null;
    set(byId(name), { "aria-invalid": problem ? "true" : null, "aria-describedby": place });
    if (!problem) settings[name] = numberIn(byId(name));
    else said ||= `${range.said} ${problem}.`;
  }
  say(byId("settings-problem"), said);
  return settings;
}
