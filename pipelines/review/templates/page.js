"use strict";
// Answers live in this browser's storage and leave it as a file of labels (pipelines/review/contract.py). Texts reach
// the page as text nodes alone. Nothing here asks a network for anything; the page's policy forbids it, too.

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
const items = data.items;
const KEY = `gongqing-review:${data.key}`;
const MOST_IDLE = 120; // seconds without a sign of the reader that still count as reading
const END = items.length;

let screen = "crisis"; // or "guide", or the number of an item, or END
let last = null; // the item to go back to
let asked = 0; // which question of the item the keys answer
let since = performance.now();
let stored = true;
const states = load();
const saved = new Map(); // by task, the label as it was last saved

function load() {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) || "{}");
    return Object.fromEntries(items.map(({ task_id: id }) => [id, { ...fresh(), ...found[id] }]));
  } catch {
    stored = false;
    return Object.fromEntries(items.map(({ task_id: id }) => [id, fresh()]));
  }
}

function fresh() {
  return { chosen: {}, written: {}, seconds: 0, at: null };
}

function keep() {
  try {
    localStorage.setItem(KEY, JSON.stringify(states));
    stored = true;
  } catch {
    stored = false;
  }
}

// ---- what an item's answers are

const stateOf = (item) => states[item.task_id];
const sameLines = (text) => text.replace(/\r\n?/g, "\n");

function edits(item) {
  const found = {};
  for (const { field, about } of item.texts) {
    if (!about) continue;
    const text = stateOf(item).written[field];
    const original = item.passages.find((passage) => passage.field === about).text;
    if (text && text.trim() && sameLines(text) !== sameLines(original)) found[about] = text;
  }
  return found;
}

const mends = (item) => stateOf(item).chosen.verdict === "mend";

function missing(item) {
  const left = item.questions.filter(({ field }) => !(field in stateOf(item).chosen)).map(({ ask }) => ask);
  if (mends(item) && !Object.keys(edits(item)).length) left.push("至少改一层的文字");
  return left;
}

const isComplete = (item) => missing(item).length === 0;

function answers(item) {
  const { chosen, written } = stateOf(item);
  const comment = (written.comment || "").trim();
  if (data.kind === "rank") return { places: item.questions.map(({ field }) => chosen[field]), comment };
  if (data.kind === "coe") return { ...chosen, edits: mends(item) ? edits(item) : {}, comment };
  return { ...chosen, comment };
}

function label(item) {
  const { seconds, at } = stateOf(item);
  const { task_id, shown } = item;
  return {
    version: 1, kind: data.kind, task_id, annotator: data.annotator, shown,
    answers: answers(item), seconds: Math.round(seconds * 10) / 10, at,
  };
}

// ---- time

function tick() {
  const now = performance.now();
  if (typeof screen === "number" && screen < END && !document.hidden) {
    stateOf(items[screen]).seconds += Math.min((now - since) / 1000, MOST_IDLE);
  }
  since = now;
}

// ---- what is shown

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function show(where) {
  tick();
  keep();
  screen = where;
  const isItem = typeof where === "number" && where < END;
  for (const id of ["crisis", "guide", "item", "end"]) byId(id).hidden = true;
  byId(isItem ? "item" : where === END ? "end" : where).hidden = false;
  if (isItem) {
    last = where;
    build(items[where]);
    const open = items[where].questions.findIndex(({ field }) => !(field in stateOf(items[where]).chosen));
    asked = Math.max(open, 0);
  }
  update();
}

function build(item) {
  const [context, work] = [byId("context"), byId("work")];
  context.replaceChildren();
  work.replaceChildren();
  let pair = null;
  for (const passage of item.passages) {
    const block = element("div", "passage");
    const head = element("div", "head");
    head.append(element("h3", "", passage.title));
    block.append(head, element("div", "text", passage.text));
    if (passage.supporter) block.classList.add("supporter");
    if (passage.field === "suggestion") {
      block.classList.add("suggestion");
      work.append(block);
      continue;
    }
    if (passage.aside) {
      context.append(block);
      continue;
    }
    const isAbout = ({ about }) => about === passage.field;
    head.append(...item.questions.filter(isAbout).map((one) => closed(item, one)));
    block.append(...item.texts.filter(isAbout).map((one) => free(item, one, passage)));
    if (head.childElementCount > 1 || block.childElementCount > 2) {
      pair = null;
      work.append(block);
    } else {
      if (!pair) work.append((pair = element("div", "pair")));
      pair.append(block);
    }
  }
  work.append(...item.questions.filter(({ about }) => !about).map((one) => closed(item, one)));
  work.append(...item.texts.filter(({ about }) => !about).map((one) => free(item, one, null)));
  context.scrollTop = work.scrollTop = 0;
}

function closed(item, question) {
  const block = element("div", "question");
  block.dataset.field = question.field;
  block.append(element("span", "ask", question.ask));
  question.choices.forEach((choice, n) => {
    const button = element("button");
    button.type = "button";
    button.title = choice.means;
    button.append(element("kbd", "", String(n + 1)), choice.label);
    button.addEventListener("click", () => {
      asked = item.questions.indexOf(question);
      choose(item, n);
    });
    block.append(button);
  });
  return block;
}

// A new text takes the place of its passage, which it begins as and which an empty one stands for.
function free(item, one, passage) {
  const block = element("label", "free", passage ? "" : one.ask);
  const area = element("textarea");
  block.dataset.free = area.dataset.field = one.field;
  area.setAttribute("aria-label", one.ask);
  area.placeholder = passage ? passage.text : "";
  area.value = stateOf(item).written[one.field] ?? area.placeholder;
  area.rows = Math.min(12, 1 + Math.ceil(area.value.length / 40)); // where a field does not grow with its text
  area.addEventListener("input", () => {
    stateOf(item).written[one.field] = area.value;
    changed(item);
  });
  block.append(area);
  return block;
}

function update() {
  const done = items.filter(isComplete).length;
  const unsaved = items.filter((item) => isComplete(item) && saved.get(item.task_id) !== content(item)).length;
  byId("bar").value = done / items.length;
  byId("done").textContent = `已完成 ${done} / ${items.length}${unsaved ? `，${unsaved} 题还没存成文件` : ""}`;
  byId("save").disabled = byId("save-all").disabled = !done;
  byId("warning").hidden = stored;
  byId("warning").textContent = "这个浏览器不保留答案：关掉网页之前，请点“保存答案”。";
  const isItem = typeof screen === "number" && screen < END;
  byId("where").textContent = isItem ? items[screen].heading : "";
  byId("back").disabled = !(typeof screen === "number" && screen > 0);
  byId("next").disabled = screen === END;
  byId("next").textContent = isItem ? "下一题 →" : "继续 →";
  byId("state").textContent = isItem ? stateLine(items[screen]) : "";
  if (isItem) mark(items[screen]);
  if (screen === END) listLeft();
}

function stateLine(item) {
  const left = missing(item);
  return left.length ? `还差：${left.join("　")}` : "这一题已完整，按回车继续";
}

function mark(item) {
  item.questions.forEach(({ field, choices }, n) => {
    const block = byId("work").querySelector(`.question[data-field="${field}"]`);
    block.classList.toggle("now", n === asked);
    block.querySelectorAll("button").forEach((button, k) => {
      button.classList.toggle("chosen", stateOf(item).chosen[field] === choices[k].value);
    });
  });
  for (const block of byId("work").querySelectorAll('[data-free^="edit."]')) {
    block.hidden = !mends(item);
    block.previousElementSibling.hidden = mends(item);
  }
}

function listLeft() {
  const left = items.map((item, n) => [item, n]).filter(([item]) => !isComplete(item));
  byId("left").replaceChildren(left.length ? `还有 ${left.length} 题没有完成：` : "所有题都完成了。");
  for (const [item, n] of left) {
    const button = element("button", "", item.heading);
    button.type = "button";
    button.addEventListener("click", () => show(n));
    byId("left").append(button, " ");
  }
}

// ---- what the reader does

function changed(item) {
  tick();
  stateOf(item).at = new Date().toISOString();
  keep();
  update();
}

function choose(item, n) {
  const question = item.questions[asked];
  if (n >= question.choices.length) return;
  const { chosen } = stateOf(item);
  const { value } = question.choices[n];
  if (data.kind === "rank") {
    for (const field of Object.keys(chosen)) if (chosen[field] === value) delete chosen[field];
  }
  chosen[question.field] = value;
  const open = item.questions.findIndex(({ field }) => !(field in chosen));
  if (open >= 0) asked = open;
  changed(item);
  const now = byId("work").querySelector(".question.now");
  if (now) now.scrollIntoView({ block: "nearest" });
}

function forward() {
  if (screen === "crisis" && last === null) return show("guide");
  if (typeof screen !== "number") {
    const open = items.findIndex((item) => !isComplete(item));
    return show(last ?? (open < 0 ? 0 : open));
  }
  if (screen < END) show(screen + 1);
}

function back() {
  if (typeof screen === "number" && screen > 0) show(screen - 1);
}

function content(item) {
  const { seconds, ...rest } = label(item);
  return JSON.stringify(rest);
}

function save() {
  tick();
  const complete = items.filter(isComplete);
  if (!complete.length) return;
  const lines = complete.map((item) => JSON.stringify(label(item)));
  // Readers of lines may take these for the end of one.
  const text = lines.map((line) => line.replace(/[\u0085\u2028\u2029]/g, escaped) + "\n").join("");
  const link = element("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/x-ndjson" }));
  link.download = data.file;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  for (const item of complete) saved.set(item.task_id, content(item));
  keep();
  update();
}

function escaped(character) {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

function pressed(event) {
  tick();
  if (event.isComposing || event.altKey || event.metaKey) return;
  const isWriting = event.target.tagName === "TEXTAREA";
  if (event.key === "Escape" && isWriting) return event.target.blur();
  if (event.key === "Enter" && event.ctrlKey) return forward();
  if (isWriting || event.ctrlKey) return;
  const isItem = typeof screen === "number" && screen < END;
  const actions = { ArrowRight: forward, ArrowLeft: back, ArrowDown: () => move(1), ArrowUp: () => move(-1) };
  if (event.key === "Enter" && event.target.tagName !== "BUTTON") actions.Enter = forward;
  if (isItem && /^[1-9]$/.test(event.key)) actions[event.key] = () => choose(items[screen], Number(event.key) - 1);
  if (!isItem) delete actions.ArrowDown, delete actions.ArrowUp;
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
}

function move(by) {
  asked = Math.min(Math.max(asked + by, 0), items[screen].questions.length - 1);
  update();
  byId("work").querySelector(".question.now").scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", pressed);
for (const kind of ["pointermove", "wheel", "visibilitychange"]) document.addEventListener(kind, tick, { passive: true });
// A click leaves the keys with the page, not with the button or the text that had them.
document.addEventListener("mousedown", (event) => {
  if (!event.target.closest("button")) return;
  event.preventDefault();
  document.activeElement.blur();
});
addEventListener("pagehide", () => { tick(); keep(); });
addEventListener("beforeunload", (event) => { if (!stored && saved.size < items.filter(isComplete).length) event.preventDefault(); });
byId("to-crisis").addEventListener("click", () => show("crisis"));
byId("to-guide").addEventListener("click", () => show("guide"));
for (const id of ["save", "save-all"]) byId(id).addEventListener("click", save);
for (const button of document.querySelectorAll(".on")) button.addEventListener("click", forward);
byId("back").addEventListener("click", back);
byId("next").addEventListener("click", forward);
keep();
show("crisis");
