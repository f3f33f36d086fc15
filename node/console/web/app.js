import { h, render } from "./vendor/preact.js";
import { signal } from "./vendor/signals.js";
import htm from "./vendor/htm.js";
import { SignedOut, readSession } from "./session.js";
import { texts } from "./texts.js";

const html = htm.bind(h);

/** @type {import("./vendor/signals.js").Signal<import("./session.js").Session | Error | undefined>} */
const session = signal(undefined);

/** Welcome says which version serves the page, and how. */
function Welcome() {
  const s = session.value;
  if (!s) return html`<p role="status">${texts.loading}</p>`;
  if (s instanceof Error) {
    return html`<p class="bad" role="alert">${s instanceof SignedOut ? texts.signedOut : texts.unreachable}</p>`;
  }
  return html`<div class="card" role="status">
    <h2 class="good">${texts.works}</h2>
    <p>${texts.version(s.version)}</p>
    <p class="quiet">${s.how === "node" ? texts.servedByNode : texts.servedByLoopback}</p>
  </div>`;
}

function App() {
  return html`<header><h1>${texts.product}</h1><p>${texts.subtitle}</p></header>
    <main><${Welcome} /></main>`;
}

const place = document.getElementById("app");
if (place) render(h(App, null), place);
try {
  session.value = await readSession();
} catch (e) {
  session.value = e instanceof Error ? e : new Error(String(e));
}
