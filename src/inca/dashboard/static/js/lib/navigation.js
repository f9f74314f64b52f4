// Addresses: each view keeps all of its settings in its own, so that it can be shared.

/** @import { Params } from "./types.js" */

/**
 * Parameters as the end of an address; those that are empty, null or undefined are left out.
 * @param {Params} params
 */
export function queryString(params) {
  const entries = Object.entries(params).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const query = new URLSearchParams(entries.map(([name, value]) => [name, String(value)])).toString();
  return query ? `?${query}` : "";
}

/** @returns {Record<string, string>} the parameters of the address */
export const currentParams = () => Object.fromEntries(new URLSearchParams(location.search));

/**
 * Put parameters into the address, without a new entry in the history.
 * @param {Params} params
 */
export const replaceParams = (params) => history.replaceState(null, "", location.pathname + queryString(params));

/**
 * Go to a view.
 * @param {string} view
 * @param {Params} [params]
 */
export function goTo(view, params = {}) {
  history.pushState(null, "", `/${view}${queryString(params)}`);
  window.dispatchEvent(new PopStateEvent("popstate"));
}
