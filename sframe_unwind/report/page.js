const data = JSON.parse(document.getElementById("data").textContent);
const PAGE = 100;
const byId = (id) => document.getElementById(id);
const number = (value) => value.toLocaleString("en-US");
const plural = (count, word, ending = "s") => `${number(count)} ${word}${count === 1 ? "" : ending}`;
const share = (part) => (part > 0 && part < 0.001 ? "less than 0.1%" : `${(100 * part).toFixed(1)}%`);

/* Texts only ever become text nodes: names come from the files. */
function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

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
