const data = JSON.parse(document.getElementById("data").textContent);
const PAGE = 100;
const byId = (id) => document.getElementById(id);
const number = (value) => value.toLocaleString("en-US");
const plural = (count, word, ending = "s") => `${number(count)} ${word}${count === 1 ? "" : ending}`;
/* Addresses are texts in the data, and BigInt where they are computed with: those of kernels are beyond the numbers that
   JavaScript tells apart. */
const hex = (value) => "0x" + value.toString(16);
const share = (part) => (part > 0 && part < 0.001 ? "less than 0.1%" : `${(100 * part).toFixed(1)}%`);

/* Texts only ever become text nodes: names come from the files. */
function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/* A link to a function on the page of `show`; none (null) where that page is not beside this one. */
const instructionsOf = (page, place) =>
  (page ? make("a", { href: page + (place ? `#${encodeURIComponent(place)}` : "") }, "instructions") : null);

/* A list that shows a page of its items, and more when asked to. */
function paged(target, items, render, wrap) {
  let count = 0;
  const more = make("button");
  const show = () => {
    target.append(...items.slice(count, count + PAGE).map(render));
    count = Math.min(count + PAGE, items.length);
    more.remove();
    if (count < items.length) {
      more.textContent = `${number(items.length - count)} more`;
      target.append(wrap ? wrap(more) : more);
    }
  };
  more.onclick = () => { (wrap ? more.closest("tr") : more).remove(); show(); };
  show();
}

const SHORT = 24; /* Letters of a text that is not broken into lines. */
const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/* A table in a box of its own, which scrolls where the page is narrower than the table. A click on the head of a column
   sorts by it: first the largest numbers, but texts from A on; a second click turns that round. What is missing (null)
   comes last.
   A column has a title, value(item), which is sorted by, and, where other things are shown, show(item), which returns a
   text or elements. A column without value cannot be sorted by. Pinned items come first in any order.
   Returns a function that shows other items. */
function sortable({ box, label, columns, pinned = [] }) {
  let items = [], numeric = [], sorted = null, down = false;
  const body = make("tbody");
  const cell = (column, item, isNumber) => {
    const found = column.show ? column.show(item) : column.value(item);
    const shown = typeof found === "number" ? number(found) : found === null ? "" : found;
    const element = make("td", {}, ...[shown].flat());
    const kind = isNumber ? "number" : element.textContent.length <= SHORT ? "short" : "long";
    element.className = column.code ? `${kind} code` : kind;
    return element;
  };
  const order = (a, b) => {
    const [left, right] = [sorted.value(a), sorted.value(b)];
    if (left === null || right === null) return (left === null) - (right === null);
    return (down ? -1 : 1) * compare(left, right);
  };
  const heads = columns.map((column, at) => {
    const title = [column.title].flat();
    const head = make("th", { scope: "col" }, ...(column.value ? [make("button", { type: "button" }, ...title)] : title));
    if (column.value) head.firstChild.onclick = () => {
      down = sorted === column ? !down : numeric[at];
      sorted = column;
      draw();
    };
    return head;
  });
  function draw() {
    heads.forEach((head, at) => {
      head.className = numeric[at] ? "number" : "";
      if (columns[at] === sorted) head.ariaSort = down ? "descending" : "ascending";
      else head.removeAttribute("aria-sort");
    });
    body.replaceChildren();
    paged(body, [...pinned, ...(sorted ? [...items].sort(order) : items)],
      (item) => make("tr", {}, ...columns.map((column, at) => cell(column, item, numeric[at]))),
      (more) => make("tr", {}, make("td", { colSpan: columns.length }, more)));
  }
  box.classList.add("scroll");
  /* Who has no mouse scrolls by the arrow keys. */
  Object.assign(box, { tabIndex: 0, role: "region", ariaLabel: label });
  box.append(make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body));
  return (others) => {
    items = others;
    numeric = columns.map(({ value }) => Boolean(value) && items.some((item) => typeof value(item) === "number"));
    draw();
  };
}
