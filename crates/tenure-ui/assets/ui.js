// Live updates, keys, and what is filled in while somebody writes. Without this the pages can be read and acted on all the same.
const root = document.documentElement;
const { home, run, zone } = root.dataset;
root.dataset.script = "";
const one = (what, within = document) => within.querySelector(what);
const all = (what, within = document) => [...within.querySelectorAll(what)];
const pause = one("#pause"), old = one("#old"), told = one("#told"), help = one("#help"), palette = one("#palette");

// ---- What is shown is what is -------------------------------------------------------------------------------------------

// Nobody who is told nothing waits longer than this; and pages paint no more often than that.
const atLatest = 5000, apart = 500, worriesAfter = 10000, tellsEvery = 10000;
// A page that takes its server long is asked for less often: an open one is a hundredth of what one core can do.
const share = 100, seldom = 30000, reloadsEvery = 60000;
let pace = apart, isOther = false, shown = null, failsSince = null, leaves = false;
const isLive = root.dataset.live === "on" && one("main [data-live]") !== null;
let follows = true, paused = false, asking = false, again = false, lastAsked = 0, lastHeard = Date.now(), lastTold = 0, stream = null;

const isBusy = () =>
  paused || leaves || document.hidden || help.open || palette.open || !getSelection().isCollapsed ||
  one("main details[open]") !== null || one("main [data-live] input:checked") !== null;

async function refresh() {
  if (isBusy()) return;
  const wait = lastAsked + pace - Date.now();
  if (asking || wait > 0) {
    if (!again) setTimeout(() => { again = false; refresh(); }, Math.max(wait, 50));
    again = true;
    return;
  }
  asking = true;
  lastAsked = Date.now();
  try {
    const known = shown ? { "if-none-match": shown } : {};
    const answer = await fetch(location.href, { headers: { accept: "text/html", ...known } });
    if (answer.redirected) return say("Your session has ended. ", "Reload the page");
    const took = Number(/dur=([\d.]+)/.exec(answer.headers.get("server-timing") ?? "")?.[1] ?? 0);
    pace = Math.min(Math.max(apart, took * share), seldom);
    // 304: only ages have changed since the page was painted.
    if (answer.status !== 304) {
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (!answer.ok && !one("main", fresh)) throw new Error(answer.status);
      // A part that the user is editing keeps its content, so the next answer must be a whole page.
      shown = isBusy() || !paint(fresh) ? null : answer.headers.get("etag");
    }
    lastHeard = Date.now();
    failsSince = null;
    if (!isOther) say("");
  } catch {
    // A slow page polls seldom; during an outage it polls as often as others, so it reports the outage as early.
    pace = apart;
    failsSince ??= Date.now();
    if (Date.now() - failsSince > worriesAfter) {
      say(`No answer from the server since ${clock(lastHeard)}. This page may be out of date.`);
    }
  } finally {
    asking = false;
  }
}

// A time of day by the clocks that somebody likes, or by those of UTC if this browser does not know them.
function clock(at) {
  const how = (timeZone) => new Date(at).toLocaleTimeString("en-GB", { timeZone, timeZoneName: "short" });
  try { return how(zone); } catch { return how("UTC"); }
}

function say(text, link) {
  if (old.dataset.says === text) return;
  old.dataset.says = text;
  // What was well may be so no longer.
  document.body.classList.toggle("stale", text !== "");
  old.hidden = text === "";
  old.textContent = text;
  if (link) {
    const to = document.createElement("a");
    to.href = location.href;
    to.textContent = link;
    old.append(to);
  }
}

// Replaces the parts that changed, but none that the user is in. Returns true if all parts are up to date.
function paint(fresh) {
  let isWhole = true;
  for (const part of all("main [data-live]")) {
    const now = fresh.getElementById(part.id);
    if (!now || same(now, part) || grow(part, now)) continue;
    const within = document.activeElement, isInLog = within.matches("[data-tail]");
    if (part.contains(within) && !isInLog) { isWhole = false; continue; }
    if ("hold" in part.dataset && hold(part, now)) { isWhole = false; continue; }
    const at = chosenAt(part), tail = one("[data-tail]", part), wasAt = tail?.scrollTop;
    part.replaceChildren(...document.importNode(now, true).childNodes);
    choose(all(".rows tbody tr", part)[at]);
    const log = one("[data-tail]", part);
    if (log) follows ? toEnd(log) : log.scrollTop = wasAt ?? 0;
    if (log && tail === within) log.focus({ preventScroll: true });
  }
  return isWhole;
}

const plain = (part) => part.innerHTML.replaceAll(/<time [^>]*>[^<]*/g, (time) => time.slice(0, time.indexOf(">")));
const same = (now, part) => plain(now).replaceAll(/ (aria-selected="true"|tabindex="-1")/g, "") ===
  plain(part).replaceAll(/ (aria-selected="true"|tabindex="-1")/g, "");

// Lines are put behind those that are there: nobody who reads further up, or has the keyboard there, is moved.
function grow(part, now) {
  const log = one("[data-line]", part)?.parentElement, more = one("[data-line]", now)?.parentElement;
  if (!log || !more || log.dataset.tail !== more.dataset.tail) return false;
  if (part.children.length !== now.children.length) return false;
  const number = (line) => Number(line?.dataset.line ?? 0);
  const last = number(log.lastElementChild), first = number(more.firstElementChild);
  if (first > last && follows) log.replaceChildren();
  else if (first > last + 1) log.append("… lines skipped …\n");
  const lines = [...more.children].filter((line) => number(line) > last);
  log.append(...lines.map((line) => document.importNode(line, true)));
  if (follows) {
    while (log.children.length > more.children.length) log.firstElementChild.remove();
    toEnd(log);
  }
  [...part.children].forEach((child, at) => {
    const fresh = now.children[at];
    if (child === log || same(fresh, child) || child.contains(document.activeElement)) return;
    child.replaceWith(document.importNode(fresh, true));
  });
  return true;
}

// Rows that are new would move what somebody reads: they are counted, and come when they are wanted.
function hold(part, now) {
  const known = new Map(all("tr[data-key]", part).map((row) => [row.dataset.key, row]));
  const rows = all("tr[data-key]", now);
  if (known.size === 0 || rows.length === 0) return false;
  const fresh = rows.filter((row) => !known.has(row.dataset.key)).length;
  // What stands behind all that was answered may only be on a later page now.
  const isWhole = one("[rel=next]", now.ownerDocument) === null, answered = new Set(rows.map((row) => row.dataset.key));
  const every = [...known.values()], end = every.findLastIndex((row) => answered.has(row.dataset.key));
  const left = every.filter((row, at) => !answered.has(row.dataset.key) && (isWhole || at < end));
  for (const row of every) leave(row, left.includes(row));
  for (const row of rows) {
    const was = known.get(row.dataset.key);
    if (was && !same(row, was)) was.replaceChildren(...document.importNode(row, true).childNodes);
  }
  const pill = one("#fresh") ?? document.createElement("button");
  if (fresh + left.length === 0) return pill.remove(), true;
  pill.id = "fresh";
  pill.type = "button";
  pill.className = "pill";
  const many = [`${fresh === rows.length ? `${fresh} or more` : fresh} new`, `${left.length} no longer listed`];
  pill.textContent = many.filter((_, at) => [fresh, left.length][at] > 0).join(", ");
  pill.onclick = () => { pill.remove(); part.replaceChildren(...document.importNode(now, true).childNodes); };
  if (!pill.isConnected) part.before(pill);
  if (Date.now() - lastTold > tellsEvery) {
    lastTold = Date.now();
    told.textContent = pill.textContent;
  }
  return true;
}

// A row that is not in the list any more stays where it is, and says so: what stands in it is as it was.
function leave(row, isGone) {
  if (row.classList.contains("gone") === isGone) return;
  row.classList.toggle("gone", isGone);
  one(".tag.left", row)?.remove();
  if (!isGone) return;
  const says = document.createElement("span");
  says.className = "tag left";
  says.textContent = "no longer in this list";
  (one(".state", row) ?? one("td, th", row)).after(" ", says);
}

function follow() {
  stream?.close();
  stream = null;
  if (!isLive || paused || document.hidden) return;
  stream = new EventSource(`${home}live`);
  stream.addEventListener("change", refresh);
  // A server that makes other pages, or does not take the forms of this one.
  stream.addEventListener("hello", (event) => {
    if (event.data === run) return refresh();
    // Servers of two sorts behind one address would have it loaded again for ever.
    const before = history.state?.loadedAgain ?? 0;
    if (Date.now() - before < reloadsEvery) {
      isOther = true;
      return say("A different server is answering. ", "Reload the page");
    }
    if (isBusy() || all("main input:not([type=hidden])").some((field) => field.value !== field.defaultValue)) {
      return say("The server was restarted. ", "Reload the page");
    }
    history.replaceState({ loadedAgain: Date.now() }, "");
    location.reload();
  });
}

function label() {
  if (!pause) return;
  pause.hidden = !isLive;
  pause.ariaPressed = String(paused);
  pause.textContent = paused ? "Resume updates" : "Pause updates";
  pause.classList.toggle("is-paused", paused);
}

function toggle() {
  paused = !paused;
  label();
  follow();
  refresh();
}

pause?.addEventListener("click", toggle);
addEventListener("visibilitychange", () => { follow(); refresh(); });
// A submitted form may delete the object of this page: stop polling until the next page loads.
addEventListener("submit", ({ target }) => { leaves = target.method === "post"; });
addEventListener("pageshow", () => { leaves = false; });
label();
follow();
if (isLive) setInterval(refresh, atLatest);

// How long ago something was grows by itself.
const spans = [[0.9995, 1000, "ms", 0], [9.95, 1, "s", 1], [120, 1, "s", 0], [7200, 1 / 60, "min", 0], [172800, 1 / 3600, "h", 0], [Infinity, 1 / 86400, "days", 0]];
function ages() {
  for (const time of all("time[data-ago]")) {
    const away = (new Date(time.dateTime) - Date.now()) / 1000, far = Math.abs(away);
    const [, by, unit, digits] = spans.find(([below]) => far < below);
    const text = `${(far * by).toFixed(digits)} ${unit}`;
    const says = away > 0 ? `in ${text}` : `${text} ago`;
    if (time.textContent !== says) time.textContent = says;
  }
}
const skew = new Date(one("main").dataset.now ?? Date.now()) - Date.now();
if (Math.abs(skew) < 2000) setInterval(() => { if (!paused && getSelection().isCollapsed) ages(); }, 1000);

// ---- Logs open at their end -----------------------------------------------------------------------------------------------

const isAtEnd = (tail) => tail.scrollHeight - tail.scrollTop - tail.clientHeight < 8;
const toEnd = (tail) => { tail.scrollTop = tail.scrollHeight; };
all("[data-tail]").forEach(toEnd);

const followed = one("#follow");
function following(is) {
  follows = is;
  if (followed) followed.textContent = is ? "Following log" : "Follow log";
}
if (followed && isLive) {
  followed.hidden = false;
  following(true);
  followed.addEventListener("click", () => {
    following(!follows);
    if (follows) all("[data-tail]").forEach(toEnd);
  });
}
// Whoever goes up reads, and whoever comes back to the end follows again.
addEventListener("scroll", ({ target }) => { if (target instanceof Element && target.matches("[data-tail]")) following(isAtEnd(target)); }, true);

// ---- Keys -----------------------------------------------------------------------------------------------------------------

const rows = () => all(".rows tbody tr");
const chosenAt = (part) => all(".rows tbody tr", part).findIndex((row) => row.ariaSelected === "true");
function choose(row) {
  if (!row) return;
  row.ariaSelected = "true";
}

function move(by) {
  const every = rows();
  if (every.length === 0) return;
  const at = every.findIndex((row) => row.ariaSelected === "true");
  const to = Math.min(Math.max(at + by, 0), every.length - 1);
  if (at >= 0) every[at].ariaSelected = null;
  choose(every[to]);
  every[to].scrollIntoView({ block: "nearest" });
}

const chosen = () => rows().find((row) => row.ariaSelected === "true");
// A button that asks first is shown before it is reached.
function reach(what) {
  const button = one(what), asks = button?.closest("details");
  if (asks) asks.open = true;
  button?.focus();
}
const press = (what) => one(what)?.click();
const DOES = {
  "?": () => help.showModal(),
  "/": () => one("#q")?.focus(),
  j: () => move(1),
  k: () => move(-1),
  x: () => one("input[type=checkbox]", chosen() ?? document.createElement("tr"))?.click(),
  o: () => one("a", chosen() ?? document.createElement("tr"))?.click(),
  r: () => reach('main button[data-does="retry"]'),
  c: () => reach('main button[data-does="cancel"]'),
  p: () => isLive && toggle(),
};

let going = false;
addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    return palette.open ? palette.close() : palette.showModal();
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    const ask = one("details.ask[open]");
    if (ask) return ask.open = false, one("summary", ask).focus();
    document.activeElement?.blur();
    chosen()?.removeAttribute("aria-selected");
  }
  if (root.dataset.keys === "off" || event.target.closest?.("input, textarea, select, dialog")) return;
  if (going) {
    going = false;
    return press(`[data-go="${CSS.escape(event.key)}"]`);
  }
  if (event.key === "g") going = true;
  else if (event.key === "Enter" && event.target === document.body) DOES.o();
  else if (Object.hasOwn(DOES, event.key)) {
    event.preventDefault();
    DOES[event.key]();
  }
});

const where = one("#where", palette);
where.addEventListener("input", () => {
  const said = where.value.trim().toLowerCase();
  for (const item of all("li", palette)) item.hidden = !item.textContent.toLowerCase().includes(said);
});
where.addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  const item = all("li", palette).find((item) => !item.hidden);
  if (item) one("a", item).click();
  else location.href = `${home}jobs?q=${encodeURIComponent(where.value.trim())}`;
});

// ---- What is filled in ----------------------------------------------------------------------------------------------------

addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(one(`#${button.dataset.copy}`).textContent);
  button.textContent = "Copied";
});

// Where rooms stand in one line that scrolls, the one that somebody is in is seen.
const rooms = one(".top nav"), here = one("[aria-current]", rooms);
if (here) rooms.scrollLeft = here.offsetLeft - rooms.offsetLeft - (rooms.clientWidth - here.clientWidth) / 2;

// What was done is told once: who loads the page again, or sends its address to somebody, has done nothing.
// On a narrow screen a week begins with the hour that is now.
for (const now of all(".heat [aria-current=time]")) {
  const wide = now.closest(".wide");
  wide.scrollLeft = now.offsetLeft - wide.clientWidth / 2;
}
if (new URLSearchParams(location.search).has("did")) {
  const at = new URL(location.href);
  at.searchParams.delete("did");
  history.replaceState(history.state, "", at);
}

const ownZone = one("#own-zone");
if (ownZone) {
  ownZone.hidden = false;
  ownZone.addEventListener("click", () => {
    one("#zone").value = Intl.DateTimeFormat().resolvedOptions().timeZone;
    one('input[name="clocks"][value="zone"]').checked = true;
  });
}

// What a rule comes to is shown while it is written.
const drafted = one("form[data-preview]");
let later = 0;
drafted?.addEventListener("input", () => {
  clearTimeout(later);
  later = setTimeout(async () => {
    const query = new URLSearchParams([...new FormData(drafted)].filter(([name]) => name !== "token"));
    const answer = await fetch(`${location.pathname}?${query}`);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    one("#preview").replaceChildren(...document.importNode(fresh.getElementById("preview"), true).childNodes);
  }, 300);
});

// What somebody opens is closed when he goes on to something else, or says so.
addEventListener("click", ({ target }) => {
  for (const ask of all("details.ask[open]")) if (!ask.contains(target)) ask.open = false;
});

// All that is on the page is ticked, or nothing; the button says how many are.
addEventListener("change", ({ target }) => {
  const boxes = all('tbody input[type="checkbox"]');
  if (target.id === "tick-all") for (const box of boxes) box.checked = target.checked;
  const button = one("#ticked button"), many = boxes.filter((box) => box.checked).length;
  if (button) button.textContent = many > 0 ? `Selected (${many})…` : "Selected…";
});

// The button says what it does with how many.
const applies = one("input[data-says]")?.form;
function nameApply() {
  const chosen = one("input[data-says]:checked", applies);
  if (chosen) one("button.main", applies).textContent = chosen.dataset.says;
}
applies?.addEventListener("change", nameApply);
if (applies) nameApply();
// Going back restores what was chosen.
if (applies) addEventListener("pageshow", nameApply);
