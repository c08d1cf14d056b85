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
    const box = plot.getBoundingClientRect(), marks = [...plot.querySelectorAll(".line, circle, .bar")];
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
  // What the reader must know first is first, and legible.
  const isVisible = node => node && node.getBoundingClientRect().height > 10 && getComputedStyle(node).visibility === "visible";
  const notice = document.querySelector(".notice");
  check(isVisible(notice) && notice.textContent.includes("on a CPU"), "no notice");
  check(notice.compareDocumentPosition(document.querySelector("table")) & Node.DOCUMENT_POSITION_FOLLOWING, "the notice is not first");
  check(isVisible(document.querySelector(".worse")), "no flag of what is worse");
  const headings = [...document.querySelectorAll("h2")].map(heading => heading.textContent);
  for (const wanted of ["What changed", "Dictionaries", "Primitives", "This run"]) check(headings.includes(wanted), `no heading ${wanted}`);
  check(document.body.textContent.includes("LSM, H200"), "no column of the H200");
  check([...document.querySelectorAll("td")].some(cell => /\d \(0\.\d\d\)$/.test(cell.textContent)), "no ratio beside a rate");
  // Bars have lengths that differ, and everything that can be pointed at says something.
  const bars = [...document.querySelectorAll(".bar")];
  check(new Set(bars.map(bar => bar.getBoundingClientRect().width.toFixed(0))).size > 3, `${bars.length} bars, all alike`);
  for (const mark of [...bars, ...document.querySelectorAll("circle:has(title)")]) {
    check(/\d/.test(mark.querySelector("title")?.textContent ?? ""), "a mark without a value");
  }
  check(document.querySelectorAll(".spread").length > 0, "no spread");
  check(document.querySelectorAll("td[title]").length > 5, "rows without explanations");
  // Light and dark: the ink differs from the ground.
  const brightness = colour => colour.match(/\d+/g).slice(0, 3).map(Number).reduce((a, b) => a + b) / 3;
  const style = getComputedStyle(document.body), ground = brightness(style.backgroundColor), ink = brightness(style.color);
  check(Math.abs(ground - ink) > 120, `ink ${ink} on ground ${ground}`);
  check((window.expectedTheme === "dark") === (ground < 128), `the theme is not ${window.expectedTheme}`);
  const root = document.documentElement;
  check(root.scrollWidth <= innerWidth, `${root.scrollWidth} wide in ${innerWidth}`);
  check(innerWidth === window.expectedWidth, `the window is ${innerWidth} wide`);
  const table = [...document.querySelectorAll("table")].find(table => table.rows.length > 3 && table.tHead.querySelector(".number"));
  const head = table.tHead.querySelector(".number"), column = head.cellIndex;
  const values = () => [...table.tBodies[0].rows].map(row => parseFloat(row.cells[column].textContent.replace(/^2\^(\d+)$/, (_, log) => 2 ** log).replaceAll(",", "")));
  head.querySelector("button").click();
  check(values().every((value, i, all) => i === 0 || all[i - 1] >= value), `not descending: ${values()}`);
  head.querySelector("button").click();
  check(values().every((value, i, all) => i === 0 || all[i - 1] <= value), `not ascending: ${values()}`);
  document.body.insertAdjacentHTML("beforeend", "<output id=verdict></output>");
  document.querySelector("#verdict").textContent = [...problems, ...errors].join("; ") || "all is well";
});
