// Inspects a report from inside after it was drawn: plots, width, sorting, errors. Appends the verdict to the page.
const errors = [];
addEventListener("error", event => errors.push(event.message));
console.error = (...words) => errors.push(words.join(" "));
addEventListener("load", () => {
  const problems = [];
  const check = (holds, what) => { if (!holds) problems.push(what); };
  const plots = [...document.querySelectorAll("svg")];
  check(plots.length >= 5, `only ${plots.length} plots`);
  for (const plot of plots) {
    const box = plot.getBoundingClientRect(), marks = [...plot.querySelectorAll(".line, circle")];
    check(box.width > 200 && box.height > 50, "a plot without size");
    check(marks.length > 0, "a plot without marks");
    for (const mark of [...marks, ...plot.querySelectorAll("text")]) {
      const inner = mark.getBoundingClientRect();
      const inside = inner.left >= box.left - 1 && inner.right <= box.right + 1 && inner.bottom <= box.bottom + 1;
      check(inside, `${mark.tagName} ${mark.textContent} outside of its plot`);
      const style = getComputedStyle(mark);
      check(style.fill !== "none" || style.stroke !== "none", "an invisible mark");
    }
  }
  const root = document.documentElement;
  check(root.scrollWidth <= innerWidth, `${root.scrollWidth} wide in ${innerWidth}`);
  check(innerWidth === window.expectedWidth, `the window is ${innerWidth} wide`);
  const table = [...document.querySelectorAll("table")].find(table => table.rows.length > 3 && table.tHead.querySelector(".number"));
  const head = table.tHead.querySelector(".number"), column = head.cellIndex;
  const values = () => [...table.tBodies[0].rows].map(row => parseFloat(row.cells[column].textContent.replaceAll(",", "")));
  head.querySelector("button").click();
  check(values().every((value, i, all) => i === 0 || all[i - 1] >= value), `not descending: ${values()}`);
  head.querySelector("button").click();
  check(values().every((value, i, all) => i === 0 || all[i - 1] <= value), `not ascending: ${values()}`);
  document.body.insertAdjacentHTML("beforeend", "<output id=verdict></output>");
  document.querySelector("#verdict").textContent = [...problems, ...errors].join("; ") || "all is well";
});
