// A click on a column's name sorts by that column, a second click in reverse order. Empty cells come last.
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.parentElement, body = head.closest("table").tBodies[0];
    const column = head.cellIndex, isNumber = head.classList.contains("number");
    const descending = head.ariaSort ? head.ariaSort === "ascending" : isNumber;
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const text = row => row.cells[column].textContent;
    const value = row => parseFloat(text(row).replace(/^2\^(\d+)$/, (_, log) => 2 ** log).replaceAll(",", ""));
    const compare = (a, b) => {
      if (!isNumber) return text(a).localeCompare(text(b), undefined, { numeric: true }) * (descending ? -1 : 1);
      const [x, y] = [value(a), value(b)];
      if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y);
      return descending ? y - x : x - y;
    };
    body.append(...[...body.rows].sort(compare));
  });
}

// What pointing at something shows is also shown by a tap: on the first cell of a row, or on or near a mark of a plot.
const tip = document.createElement("div");
tip.className = "tip";
tip.setAttribute("role", "status");
tip.hidden = true;
document.body.append(tip);
const reach = 16;
const nearest = (plot, x, y) => {
  let [best, least] = [null, reach];
  for (const mark of plot.querySelectorAll(".bar, circle:has(title)")) {
    const box = mark.getBoundingClientRect();
    const distance = Math.hypot(Math.max(box.left - x, 0, x - box.right), Math.max(box.top - y, 0, y - box.bottom));
    if (distance < least) [best, least] = [mark, distance];
  }
  return best;
};
document.addEventListener("click", event => {
  const { target, clientX: x, clientY: y } = event;
  const plot = target.closest("svg.plot"), mark = plot && nearest(plot, x, y);
  tip.textContent = target.closest("td[title]")?.title ?? mark?.querySelector("title").textContent ?? "";
  tip.hidden = !tip.textContent;
  if (tip.hidden) return;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(8, Math.min(x - box.width / 2, innerWidth - box.width - 8))}px`;
  tip.style.top = `${y - box.height - 12 < 8 ? y + 16 : y - box.height - 12}px`;
});
addEventListener("scroll", () => tip.hidden = true, { passive: true });
addEventListener("keydown", event => { if (event.key === "Escape") tip.hidden = true; });

// Tells that a table goes on to the right.
const mark = box => box.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
const tables = document.querySelectorAll(".table");
for (const box of tables) box.addEventListener("scroll", () => mark(box), { passive: true });
const markAll = () => tables.forEach(mark);
addEventListener("resize", markAll);
markAll();
