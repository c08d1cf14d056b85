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
  check([...document.querySelectorAll("td")].some(cell => /\d \(\d\d\s%\)$/.test(cell.textContent)), "no share beside a rate");
  // The notice points to the H200: its columns are seen without scrolling.
  const ofH200 = [...document.querySelectorAll("th")].filter(head => head.textContent.includes("H200"));
  check(ofH200.length >= 3, `only ${ofH200.length} columns of the H200`);
  for (const head of ofH200) check(head.getBoundingClientRect().right <= innerWidth, `${head.textContent} is cut off`);
  // Every row with several numbers has a winner, which is bold and has the largest share.
  const winners = [...document.querySelectorAll("td.best")];
  check(winners.length > 3 && winners.every(cell => getComputedStyle(cell).fontWeight >= 600), `${winners.length} winners are marked`);
  check(winners.every(cell => !cell.textContent.includes("(") || /\(100\s%\)$/.test(cell.textContent)), "a winner that is not the fastest");
  // A legend names nothing that the plot lacks, a bar stands beside its name, and no spread leaves the axis.
  for (const plot of plots) {
    const inPlot = selector => [...plot.querySelectorAll(selector)];
    for (const dot of inPlot("circle:not(:has(title))")) {
      const colour = dot.getAttribute("class");
      check(inPlot(`.bar.${colour}, circle.${colour}:has(title), .line.${colour}`).length > 0, `an empty entry in the legend of ${plot.ariaLabel}`);
    }
    const middle = node => { const box = node.getBoundingClientRect(); return (box.top + box.bottom) / 2; };
    // The bars of a row follow its name.
    const rows = [];
    for (const node of inPlot("text[text-anchor=end]:not(.tick), .bar")) {
      if (node.matches("text")) rows.push([node]); else rows.at(-1).push(node);
    }
    for (const [name, ...bars] of rows.filter(row => row.length > 1)) {
      const centre = bars.reduce((sum, bar) => sum + middle(bar), 0) / bars.length;
      check(Math.abs(centre - middle(name)) < 4, `the bars of ${name.textContent} are not beside it`);
    }
    const right = Math.max(...inPlot(".grid, .bar").map(mark => mark.getBoundingClientRect().right));
    for (const spread of inPlot(".spread")) check(spread.getBoundingClientRect().right <= right + 1, "a spread leaves its axis");
    if (plot.ariaLabel?.includes("share of the fastest")) {
      const ticks = inPlot(".tick").map(text => parseFloat(text.textContent)).filter(tick => !isNaN(tick));
      check(Math.max(...ticks) <= 1, `shares of the fastest go up to ${Math.max(...ticks)}`);
    }
  }
  // A tap shows what pointing shows, within the window.
  const tip = document.querySelector(".tip");
  for (const target of [document.querySelector("td[title]"), document.querySelector(".bar")]) {
    target.scrollIntoView({ block: "center" });
    const box = target.getBoundingClientRect();
    target.dispatchEvent(new MouseEvent("click", { bubbles: true, clientX: box.left + 1, clientY: (box.top + box.bottom) / 2 }));
    const said = target.title || target.querySelector("title").textContent, place = tip.getBoundingClientRect();
    check(isVisible(tip) && tip.textContent === said, `a tap on ${said} says ${tip.textContent}`);
    check(place.left >= 0 && place.right <= innerWidth, "the tip leaves the window");
  }
  document.querySelector("h1").click();
  check(tip.hidden, "a tap elsewhere leaves the tip");
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
