// Live updates, keys and the pause button. Without this the pages can be read and acted on all the same.
const every = 2000;
const pause = document.querySelector("#pause");
const help = document.querySelector("#help");
let paused = false;
let asking = false;
let missed = 0;

const busy = () =>
  paused || asking || document.hidden || help.open || !getSelection().isCollapsed ||
  document.querySelector("details[open]") !== null;

async function refresh() {
  if (busy()) return;
  asking = true;
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    if (!answer.ok || answer.redirected) throw new Error(answer.status);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!paused) paint(fresh);
    missed = 0;
  } catch {
    missed += 1;
  }
  asking = false;
  label();
}

// Only what is another one is put in place, and never what somebody is in.
function paint(fresh) {
  for (const part of document.querySelectorAll("[data-live]")) {
    const now = fresh.getElementById(part.id);
    if (!now || now.innerHTML === part.innerHTML || part.contains(document.activeElement)) continue;
    const at = [...part.querySelectorAll("tbody tr")].findIndex((row) => row.ariaSelected === "true");
    part.replaceChildren(...document.importNode(now, true).childNodes);
    const row = part.querySelectorAll("tbody tr")[at];
    if (row) row.ariaSelected = "true";
  }
}

function label() {
  if (!pause) return;
  pause.hidden = document.querySelector("[data-live]") === null;
  pause.ariaPressed = String(paused);
  pause.textContent = paused ? "Go on" : missed > 2 ? "No answer, data is old" : "Pause";
}

function toggle() {
  paused = !paused;
  label();
}

const rows = () => [...document.querySelectorAll(".rows tbody tr")];

function move(by) {
  const all = rows();
  if (all.length === 0) return;
  const at = all.findIndex((row) => row.ariaSelected === "true");
  const to = Math.min(Math.max(at + by, 0), all.length - 1);
  if (at >= 0) all[at].ariaSelected = null;
  all[to].ariaSelected = "true";
  all[to].scrollIntoView({ block: "nearest" });
}

let going = false;
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") document.activeElement?.blur();
  if (event.target.closest?.("input, textarea, select")) return;
  const key = event.key;
  if (going) {
    going = false;
    document.querySelector(`[data-go="${CSS.escape(key)}"]`)?.click();
  } else if (key === "g") going = true;
  else if (key === "?") help.showModal();
  else if (key === "/") {
    const search = document.querySelector("#q");
    if (!search) return;
    event.preventDefault();
    search.focus();
  } else if (key === "j") move(1);
  else if (key === "k") move(-1);
  else if (key === "p") toggle();
  else if (key === "Enter" && event.target === document.body) {
    rows().find((row) => row.ariaSelected === "true")?.querySelector("a")?.click();
  }
});

pause?.addEventListener("click", toggle);
label();
setInterval(refresh, every);
