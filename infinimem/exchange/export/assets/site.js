// Search, keys and colours. Without this file everything can still be read.
"use strict";

const up = document.body.dataset.up;
const form = document.querySelector("form.search");
const query = document.getElementById("query");
const found = document.getElementById("found");
const told = document.getElementById("told");
const list = found.querySelector("ol");
const more = found.querySelector("button");
const STEP = 30;

let rows = null; // the entries, once they are asked for
let loading = false;
let hits = [];
let shown = 0;
let wanted = [];

// What is compared: compatible forms made equal, case, accents and strokes away.
const STROKES = { ß: "ss", ø: "o", æ: "ae", œ: "oe", ł: "l", đ: "d", ð: "d", þ: "th", ı: "i" };

function plainOf(text) {
  const bare = text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  return bare.replace(/[ßøæœłđðþı]/g, (sign) => STROKES[sign]);
}

globalThis.infinimemEntries = ([pages, entries]) => {
  rows = entries.map(([seq, page, date, source, was, text, noted]) => ({
    seq, date, source, was, text, noted, url: `${up}${pages[page][0]}#seq-${seq}`, title: pages[page][1],
  }));
  const titles = new Set();
  for (const [url, title] of pages) {
    if (!title || titles.has(title)) continue;
    titles.add(title);
    rows.push({ seq: 0, date: "", source: "", was: "", text: title, url: up + url, title: "" });
  }
  search();
};

function load() {
  if (rows || loading) return;
  loading = true;
  const script = document.createElement("script");
  script.src = `${up}entries.js`;
  script.onerror = () => { told.textContent = "entries.js is missing beside this page; export again."; };
  document.head.append(script);
}

const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]+/gu;

// A run of a script without spaces is one word to its writer and often two to its seeker: it may be found by its pairs.
function wordsIn(text) {
  const found = [];
  const rest = plainOf(text).replace(UNSPACED, (run) => {
    const signs = [...run];
    const pairs = signs.length > 2 ? signs.slice(1).map((sign, at) => signs[at] + sign) : [];
    found.push({ word: run, pairs });
    return " ";
  });
  for (const word of rest.split(/\s+/)) {
    const bare = word.replace(/^[^\p{L}\p{N}#]+|[^\p{L}\p{N}]+$/gu, "");
    if (bare) found.push({ word: bare, pairs: [] });
  }
  return found;
}

const BEFORE = /[\p{L}\p{N}]/u;

function worthOf(row, { word, pairs }) {
  if (row.seq && /^#?\d+$/.test(word) && String(row.seq) === word.replace("#", "")) return 6;
  const at = row.plain.indexOf(word);
  if (at >= 0) return at === 0 || !BEFORE.test(row.plain[at - 1]) ? 4 : 2;
  if (row.about.includes(word)) return 1;
  if (pairs.length) {
    const share = pairs.filter((pair) => row.plain.includes(pair)).length / pairs.length;
    return share >= 0.5 ? 2 * share : 0;
  }
  // an ending more or less: works, worked
  const stem = word.length > 5 ? word.slice(0, -2) : word.length > 4 ? word.slice(0, -1) : "";
  return stem && row.plain.includes(stem) ? 0.8 : 0;
}

function find(words) {
  const scored = [];
  for (const row of rows) {
    row.plain ??= plainOf(row.text);
    row.about ??= plainOf(`${row.title}\n${row.source}\n${row.date}`);
    let worth = 0;
    let missing = 0;
    for (const word of words) {
      const one = worthOf(row, word);
      worth += one;
      missing += one === 0;
    }
    if (worth) scored.push({ row, worth: worth - missing * 4 - (row.was ? 1 : 0) + (row.seq ? 0 : 1), missing });
  }
  const whole = scored.filter((hit) => !hit.missing);
  const kept = whole.length ? whole : scored.filter((hit) => hit.missing <= words.length / 2);
  kept.sort((one, other) => other.worth - one.worth || other.row.date.localeCompare(one.row.date) || other.row.seq - one.row.seq);
  return kept.map((hit) => hit.row);
}

function search() {
  wanted = wordsIn(query.value);
  found.hidden = !wanted.length;
  if (!wanted.length) return;
  if (!rows) {
    told.textContent = "Reading the entries …";
    load();
    return;
  }
  hits = find(wanted);
  shown = 0;
  list.replaceChildren();
  const entries = hits.filter((row) => row.seq).length;
  const counts = [counted(hits.length - entries, "topic", "topics"), counted(entries, "entry", "entries")];
  told.textContent = counts.filter(Boolean).join(", ") || "No entry has these words.";
  showMore();
}

function counted(number, one, many) {
  return number && `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

function showMore() {
  const first = shown;
  for (const row of hits.slice(shown, shown + STEP)) list.append(itemOf(row));
  shown = Math.min(hits.length, shown + STEP);
  more.hidden = shown >= hits.length;
  return list.children[first]?.firstChild;
}

function itemOf(row) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  link.href = row.url;
  if (row.was) item.className = "was";
  if (!row.seq) item.className = "topic";
  const text = document.createElement("span");
  text.className = "text";
  text.dir = "auto";
  marked(text, excerpt(row.text));
  const from = document.createElement("span");
  from.className = "from";
  const fate = row.was === "superseded" ? "replaced" : row.was === "duplicate" ? "said twice" : row.was;
  const about = row.seq ? [fate, row.noted ? `noted ${row.date}` : row.date, row.source, row.title, `#${row.seq}`] : ["topic"];
  from.textContent = about.filter(Boolean).join(" · ");
  link.append(text, from);
  item.append(link);
  return item;
}

const GLIMPSE = 190;

// The part of a text around the first word that was looked for.
function excerpt(text) {
  const flat = text.replace(/\s+/g, " ").trim();
  if (flat.length <= GLIMPSE) return flat;
  const places = spans(flat).map(([start]) => start);
  const first = places.length ? Math.max(0, Math.min(...places) - 60) : 0;
  const start = first ? flat.indexOf(" ", first) + 1 || first : 0;
  const signs = flat.slice(start, start + GLIMPSE);
  return (start ? "… " : "") + signs + (start + GLIMPSE < flat.length ? " …" : "");
}

// Where the words stand in a text as it is written: its characters are compared one by one as they are made plain.
function spans(text) {
  let plain = "";
  const from = [];
  let at = 0;
  for (const sign of text) {
    const made = plainOf(sign);
    for (let one = 0; one < made.length; one++) from.push(at);
    plain += made;
    at += sign.length;
  }
  from.push(text.length);
  const found = [];
  for (const { word, pairs } of wanted) {
    for (const piece of plain.includes(word) ? [word] : pairs) {
      for (let place = plain.indexOf(piece); place >= 0; place = plain.indexOf(piece, place + piece.length)) {
        found.push([from[place], from[place + piece.length]]);
      }
    }
  }
  return found.sort((one, other) => one[0] - other[0]);
}

function marked(into, text) {
  let at = 0;
  for (const [start, stop] of spans(text)) {
    if (stop <= at) continue;
    const first = Math.max(at, start);
    into.append(text.slice(at, first));
    const mark = document.createElement("mark");
    mark.textContent = text.slice(first, stop);
    into.append(mark);
    at = stop;
  }
  into.append(text.slice(at));
}

// Keys

function close() {
  found.hidden = true;
}

function links() {
  return [...list.querySelectorAll("a")];
}

function step(by) {
  const all = links();
  const at = all.indexOf(document.activeElement);
  if (by > 0 && at === all.length - 1 && !more.hidden) return void showMore()?.focus();
  const next = at + by;
  if (next < 0) query.focus();
  else all[Math.min(next, all.length - 1)]?.focus();
}

form.hidden = false;
form.addEventListener("submit", (event) => {
  event.preventDefault();
  const first = links()[0];
  if (first && !found.hidden) location.assign(first.href), close();
});
query.addEventListener("focus", () => { load(); if (query.value) search(); });
query.addEventListener("input", search);
more.addEventListener("click", () => showMore()?.focus());
list.addEventListener("click", close);
document.addEventListener("click", (event) => { if (!form.contains(event.target)) close(); });
form.addEventListener("focusout", (event) => {
  if (event.relatedTarget && !form.contains(event.relatedTarget)) close();
});
form.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    step(event.key === "ArrowDown" ? 1 : -1);
  } else if (event.key === "Escape") {
    if (document.activeElement === query && found.hidden) query.value = "";
    close();
    query.focus();
  }
});
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    query.focus();
    query.select();
  }
});

// An entry that is folded away is shown when a link leads to it.
function unfold() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let at = target; at; at = at.parentElement) if (at instanceof HTMLDetailsElement) at.open = true;
  target.scrollIntoView();
}
addEventListener("hashchange", unfold);
unfold();
addEventListener("beforeprint", () => {
  for (const one of document.querySelectorAll("details")) one.open = true;
});

// Colours

const button = document.getElementById("theme");
const THEMES = ["auto", "light", "dark"];

function themeNow() {
  return document.documentElement.dataset.theme ?? "auto";
}

function name() {
  button.querySelector("span:last-child").textContent = themeNow();
  button.setAttribute("aria-label", `Colours: ${themeNow()}`);
}

button.hidden = false;
name();
button.addEventListener("click", () => {
  const next = THEMES[(THEMES.indexOf(themeNow()) + 1) % THEMES.length];
  if (next === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem("infinimem-theme", next);
  } catch { /* a browser that keeps nothing */ }
  name();
});
