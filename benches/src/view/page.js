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
