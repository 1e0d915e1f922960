// the explorer: groups, filters and sorts what #data holds. Text enters the page as text only.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const FIRST = 50, MORE = 500;
const names = new Intl.Collator(undefined, { numeric: true });
const state = { group: "mistake", filter: "", sort: "score", down: false };

for (const pattern of data.patterns) pattern[1] = pattern[1].map((kind) => data.kinds[kind]);
const rows = data.rows.map(([student, received, pattern, late, lost, sha]) => {
  const [score, failures] = data.patterns[pattern];
  return { student, received, score, failures, late: data.late[late], lost, sha, pattern };
});

// what the filter looks at, once for all learners with the same answers
const words = data.patterns.map(([, failures]) => failures.map(([check, cause, mistake]) =>
  [data.checks[check][0], data.causes[cause], mistake < 0 ? "" : data.mistakes[mistake][0]].join(" ")
).join(" ").toLowerCase());

const EVERYTHING = "everything passes";

function byMistake(failures) {
  if (!failures.length) return [EVERYTHING];
  const functions = new Map();
  for (const [check, cause, mistake] of failures) {
    const of = data.checks[check][1];
    if (!functions.has(of)) functions.set(of, { named: new Set(), causes: new Set() });
    const found = functions.get(of);
    if (mistake < 0) found.causes.add(data.causes[cause]);
    else found.named.add(data.mistakes[mistake][0]);
  }
  const groups = new Set();
  for (const [of, { named, causes }] of functions) {
    if (named.size) named.forEach((name) => groups.add(name));
    else causes.forEach((cause) => groups.add(`${cause} in ${of}, no known mistake`));
  }
  return [...groups];
}

const GROUPS = {
  mistake: byMistake,
  cause: (failures) => failures.length
    ? [...new Set(failures.map(([, cause]) => data.causes[cause]))] : [EVERYTHING],
  check: (failures) => failures.length
    ? failures.map(([check]) => data.checks[check][0]) : [EVERYTHING],
  none: () => ["all learners"],
};
const ORDERS = {
  student: (a, b) => names.compare(a.student, b.student),
  score: (a, b) => a.score - b.score || names.compare(a.student, b.student),
  received: (a, b) => a.received - b.received || names.compare(a.student, b.student),
};

function make(tag, text, attributes = {}) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

// as the rest of the page writes them
const figure = (count) => count.toLocaleString("en");

function moment(seconds) {
  return new Date(seconds * 1000).toISOString().replace("T", " ").slice(0, 16);
}

function hintOf(name) {
  const found = data.mistakes.find(([known]) => known === name);
  return found ? found[2] : "";
}

function details(row) {
  const cell = make("td", undefined, { colspan: 5 });
  const list = make("ul");
  if (!row.failures.length) list.append(make("li", EVERYTHING));
  for (const [check, cause, mistake, example] of row.failures) {
    const item = make("li");
    item.append(make("code", data.checks[check][0]), `: ${data.causes[cause]}`);
    if (mistake >= 0) item.append(`, ${data.mistakes[mistake][0]}`);
    if (example >= 0) item.append(make("pre", data.examples[example]));
    list.append(item);
  }
  cell.append(list, make("p", `submission ${row.sha}…`, { class: "soft small" }));
  const line = make("tr", undefined, { class: "row-details" });
  line.append(cell);
  return line;
}

function lineOf(row) {
  const line = make("tr");
  const opener = make("button", row.student, { type: "button", "aria-expanded": "false" });
  opener.addEventListener("click", () => {
    const open = opener.getAttribute("aria-expanded") === "true";
    if (open) line.nextElementSibling.remove();
    else line.after(details(row));
    opener.setAttribute("aria-expanded", String(!open));
  });
  const student = make("td", undefined, { class: "who" });
  student.append(opener);
  const late = row.lost ? `${row.late} (-${row.lost} points)` : row.late;
  line.append(
    student,
    make("td", String(row.score), { class: "number" }),
    make("td", String(row.failures.length), { class: "number" }),
    make("td", moment(row.received), { class: "name" }),
    make("td", late, { class: "name" }),
  );
  return line;
}

function tableOf(members) {
  const box = make("div", undefined, { class: "scroll", tabindex: "0" });
  const table = make("table");
  const head = make("tr");
  const columns = [
    ["Learner", "student", ""], ["Points", "score", "number"], ["Checks failed", "", "number"],
    ["Received (UTC)", "received", ""], ["Due", "", ""],
  ];
  for (const [title, key, kind] of columns) {
    const cell = make("th", key ? undefined : title, { scope: "col", class: kind });
    if (key) {
      const button = make("button", title, { type: "button", "data-key": key });
      button.addEventListener("click", () => sortBy(key, button));
      cell.append(button);
      if (state.sort === key) {
        cell.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      }
    }
    head.append(cell);
  }
  const top = make("thead");
  top.append(head);
  const body = make("tbody");
  table.append(top, body);
  box.append(table);
  const whole = make("div");
  whole.append(box);
  let shown = 0;
  const more = make("button", "", { type: "button" });
  function add(count) {
    for (const row of members.slice(shown, shown + count)) body.append(lineOf(row));
    shown = Math.min(members.length, shown + count);
    const left = members.length - shown;
    more.textContent = `Show ${Math.min(MORE, left)} more of ${figure(left)}`;
    more.hidden = !left;
  }
  more.addEventListener("click", () => add(MORE));
  add(FIRST);
  whole.append(more);
  return whole;
}

const results = document.getElementById("results");
const count = document.getElementById("count");
const opened = new Set();

function render() {
  const wanted = state.filter.trim().toLowerCase();
  const kept = rows.filter((row) => !wanted
    || row.student.toLowerCase().includes(wanted) || words[row.pattern].includes(wanted));
  kept.sort(ORDERS[state.sort]);
  if (state.down) kept.reverse();
  const groups = new Map();
  for (const row of kept) {
    for (const name of GROUPS[state.group](row.failures)) {
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(row);
    }
  }
  const ordered = [...groups].sort((a, b) =>
    (a[0] === EVERYTHING) - (b[0] === EVERYTHING) || b[1].length - a[1].length
    || names.compare(a[0], b[0]));
  results.replaceChildren(...ordered.map(([name, members]) => groupOf(name, members, ordered.length)));
  const learners = kept.length === 1 ? "1 learner" : `${figure(kept.length)} learners`;
  count.textContent = `${learners} of ${figure(rows.length)}, in ${ordered.length} ` +
    (ordered.length === 1 ? "group" : "groups");
}

function groupOf(name, members, groups) {
  const group = make("details", undefined, { class: "group", "data-name": name });
  const summary = make("summary");
  summary.append(make("span", figure(members.length), { class: "count" }), make("strong", name));
  const body = make("div");
  group.append(summary, body);
  // tables are made when they are opened: thousands of lines would make the page slow
  function fill() {
    if (body.childElementCount) return;
    const hint = hintOf(name);
    if (hint) body.append(make("p", hint, { class: "note" }));
    body.append(tableOf(members));
  }
  group.addEventListener("toggle", () => {
    if (group.open) { opened.add(name); fill(); } else opened.delete(name);
  });
  if (opened.has(name) || groups === 1) { fill(); group.open = true; }
  return group;
}

function sortBy(key, button) {
  state.down = state.sort === key && !state.down;
  state.sort = key;
  const group = button.closest("details").dataset.name;
  render();
  // the table is a new one: whoever sorts by keyboard stays where they were
  for (const element of results.children) {
    if (element.dataset.name === group) element.querySelector(`[data-key="${key}"]`).focus();
  }
}

document.getElementById("filter").addEventListener("input", (event) => {
  state.filter = event.target.value;
  render();
});
document.getElementById("group").addEventListener("change", (event) => {
  state.group = event.target.value;
  opened.clear();
  render();
});
for (const button of document.querySelectorAll("[data-show]")) {
  button.addEventListener("click", () => {
    state.group = "mistake";
    state.filter = "";
    document.getElementById("group").value = "mistake";
    document.getElementById("filter").value = "";
    opened.add(button.dataset.show);
    render();
    for (const element of results.children) {
      if (element.dataset.name === button.dataset.show) {
        element.scrollIntoView({ block: "start" });
        element.querySelector("summary").focus();
      }
    }
  });
}

// tables that stand in the page sort by the text of a cell, or by the number in data-value
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, place) => {
    const button = make("button", head.textContent, { type: "button" });
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (line) => line.cells[place].querySelector("[data-value]")?.dataset.value
        ?? line.cells[place].textContent;
      const lines = [...table.tBodies[0].rows].sort((a, b) => names.compare(value(a), value(b)));
      const asNumbers = lines.every((line) => !Number.isNaN(Number(value(line))));
      if (asNumbers) lines.sort((a, b) => Number(value(a)) - Number(value(b)));
      table.tBodies[0].append(...(down ? lines.reverse() : lines));
    });
  });
}

document.getElementById("explorer").hidden = false;
render();
