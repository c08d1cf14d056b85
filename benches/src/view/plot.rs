//! Plots as SVG: lines over a numeric axis, or dots in rows. The colours come from a style sheet with a light and a
//! dark theme, which works both in a page and in a separate file.

use super::html::escape;
use super::number;
use std::fmt::Write;

/// The style sheet of all plots, for the page or file that contains them.
pub const STYLE: &str = include_str!("plot.css");

/// The width of a plot in its own units. A page scales it.
const WIDTH: f64 = 420.0;
/// The height of the area for lines.
const LINES_HEIGHT: f64 = 240.0;
/// The space to the right, for half of the last number under the axis.
const RIGHT: f64 = 28.0;
/// The height of a row of dots, and of a row of the legend.
const ROW: f64 = 22.0;
/// The height of a bar.
const BAR: f64 = 9.0;
/// The assumed width of a character, to compute the space for text. The browser's font may be narrower.
const CHARACTER: f64 = 7.2;
/// The width of the label of a tick, and the space around it.
const LABEL: f64 = 40.0;
/// The largest share of the width for the names of rows.
const MOST_OF_WIDTH: f64 = 0.56;
/// The number of colours in the style sheet.
const COLOURS: usize = 8;

/// A plot.
#[derive(Clone, Debug)]
pub struct Plot {
    /// The title.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis. Plots of dots do not use it.
    pub y: Axis,
    /// The names of the lines, or of the colours of dots.
    pub series: Vec<String>,
    /// The marks.
    pub marks: Marks,
}

/// An axis.
#[derive(Clone, Debug, Default)]
pub struct Axis {
    /// The name and the unit.
    pub name: String,
    /// Whether the axis is logarithmic.
    pub logarithmic: bool,
}

/// The marks of a plot.
#[derive(Clone, Debug)]
pub enum Marks {
    /// For each series, the points of a line from left to right.
    Lines(Vec<Vec<(f64, f64)>>),
    /// Rows, each with a name and an optional mark per series.
    Dots(Vec<(String, Vec<Option<Mark>>)>),
    /// As dots, but each mark is a bar from zero. Only for a linear axis.
    Bars(Vec<(String, Vec<Option<Mark>>)>),
}

/// A number of a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// The number.
    pub value: f64,
    /// The worst and the best run, if there were several: shown as a thin line, for bars up to the end of the axis.
    pub spread: Option<(f64, f64)>,
    /// What a reader sees who points at it.
    pub hover: String,
}

impl Mark {
    /// Creates a mark without a spread, whose number is shown to who points at it.
    #[must_use]
    pub fn new(value: f64) -> Self {
        Self { value, spread: None, hover: number(value) }
    }
}

/// The most points of a line that can be pointed at: more would be too close together.
const MOST_POINTS: usize = 40;

impl Axis {
    /// Creates a linear axis.
    #[must_use]
    pub fn linear(name: &str) -> Self {
        Self { name: name.into(), logarithmic: false }
    }

    /// Creates a logarithmic axis.
    #[must_use]
    pub fn logarithmic(name: &str) -> Self {
        Self { name: name.into(), logarithmic: true }
    }
}

/// The mapping of an axis to a part of the picture.
struct Scale {
    logarithmic: bool,
    from: f64,
    to: f64,
    start: f64,
    length: f64,
    ticks: Vec<f64>,
}

impl Scale {
    /// Creates a scale for these numbers, from `start` along `length`.
    fn new(axis: &Axis, values: impl Iterator<Item = f64>, start: f64, length: f64) -> Self {
        let usable = values.filter(|value| value.is_finite() && (!axis.logarithmic || *value > 0.0));
        let (low, high) = usable.fold((f64::MAX, f64::MIN), |(low, high), x| (low.min(x), high.max(x)));
        let (low, high) = if low > high { (1.0, 10.0) } else { (low, high) };
        let ticks = if axis.logarithmic { decades(low, high) } else { even_steps(high) };
        let (from, last) = (ticks[0], ticks[ticks.len() - 1]);
        // A linear axis ends at the largest number.
        let to = if axis.logarithmic || high <= 0.0 { last } else { high };
        Self { logarithmic: axis.logarithmic, from, to, start, length, ticks }
    }

    fn place(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            (value / self.from).ln() / (self.to / self.from).ln()
        } else {
            (value - self.from) / (self.to - self.from)
        };
        self.start + share * self.length
    }

    /// Returns the ticks with labels: as many as there is space for.
    fn named(&self) -> impl Iterator<Item = f64> {
        let space = ((self.length.abs() / LABEL) as usize).clamp(2, 7);
        let every = self.ticks.len().div_ceil(space);
        self.ticks.iter().copied().step_by(every)
    }
}

/// Returns the powers of ten around the numbers; within one decade also their multiples by 2 and 5.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    if last - first > 1 {
        return (first..=last).map(|power| 10f64.powi(power)).collect();
    }
    let steps: Vec<f64> =
        (first..=last).flat_map(|power| [1.0, 2.0, 5.0].map(|step| step * 10f64.powi(power))).collect();
    let from = steps.iter().rposition(|&step| step <= low).unwrap_or(0);
    let to = steps.iter().position(|&step| step >= high && step > steps[from]).unwrap_or(steps.len() - 1);
    steps[from..=to].to_vec()
}

/// Returns at most six even steps from zero to the largest number.
fn even_steps(high: f64) -> Vec<f64> {
    let high = if high > 0.0 { high } else { 1.0 };
    let power = 10f64.powf((high / 6.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * power).into_iter().find(|step| step * 6.0 >= high);
    let step = step.unwrap_or(10.0 * power);
    (0..=(high / step) as usize).map(|index| index as f64 * step).collect()
}

/// Formats the label of a tick: short, so that neighbours do not overlap.
fn tick(value: f64) -> String {
    if value >= 1e4 {
        let (unit, name) = [(1e9, "G"), (1e6, "M")].into_iter().find(|(unit, _)| value >= *unit).unwrap_or((1e3, "k"));
        format!("{}{name}", value / unit)
    } else if value >= 1.0 && value.fract() == 0.0 {
        number(value).replace(".00", "").replace(".0", "")
    } else {
        // Sums of steps such as 0.2 are not exact.
        format!("{}", (value * 1e9).round() / 1e9)
    }
}

impl Plot {
    /// Returns the plot as SVG, for a page that contains [`STYLE`].
    #[must_use]
    pub fn to_svg(&self) -> String {
        self.draw("")
    }

    /// Returns the plot as a standalone SVG file.
    #[must_use]
    pub fn to_svg_file(&self) -> String {
        self.draw(&format!("<style>\n{STYLE}</style>\n<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n"))
    }

    fn draw(&self, head: &str) -> String {
        let (legend, legend_height) = self.legend();
        let (marks, marks_height) = match &self.marks {
            Marks::Lines(lines) => self.lines(lines, legend_height),
            Marks::Dots(rows) => self.rows(rows, legend_height, false),
            Marks::Bars(rows) => self.rows(rows, legend_height, true),
        };
        let height = legend_height + marks_height;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" \
             aria-label=\"{}\">\n{head}{legend}{marks}</svg>\n",
            escape(&self.title)
        )
    }

    /// Returns whether there are marks of a series.
    fn has(&self, series: usize) -> bool {
        match &self.marks {
            Marks::Lines(lines) => lines.get(series).is_some_and(|line| !line.is_empty()),
            Marks::Dots(rows) | Marks::Bars(rows) => {
                rows.iter().any(|(_, marks)| marks.get(series).is_some_and(Option::is_some))
            }
        }
    }

    /// Returns the legend: names and colours, as many per line as fit.
    fn legend(&self) -> (String, f64) {
        if self.series.len() < 2 {
            return (String::new(), 4.0);
        }
        let (mut text, mut x, mut y) = (String::new(), 4.0, 14.0);
        // A colour that nothing in the plot has would only be looked for.
        for (index, name) in self.series.iter().enumerate().filter(|(index, _)| self.has(*index)) {
            let width = 26.0 + name.chars().count() as f64 * CHARACTER;
            if x > 4.0 && x + width > WIDTH {
                (x, y) = (4.0, y + ROW);
            }
            let colour = index % COLOURS;
            let _ = writeln!(text, "<circle class=\"c{colour}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"5\"/>", x + 5.0, y - 4.0);
            let _ = writeln!(text, "<text x=\"{:.1}\" y=\"{y:.1}\">{}</text>", x + 14.0, escape(name));
            x += width;
        }
        (text, y + 12.0)
    }

    fn lines(&self, lines: &[Vec<(f64, f64)>], top: f64) -> (String, f64) {
        let points = || lines.iter().flatten();
        let bottom = top + 10.0 + LINES_HEIGHT;
        let y = Scale::new(&self.y, points().map(|point| point.1), bottom, -LINES_HEIGHT);
        let longest = y.named().map(|value| tick(value).chars().count()).max().unwrap_or(0);
        let left = 24.0 + longest as f64 * CHARACTER;
        let x = Scale::new(&self.x, points().map(|point| point.0), left, WIDTH - left - RIGHT);
        let mut text = self.bottom_axis(&x, top + 10.0, bottom);
        for value in y.named() {
            let at = y.place(value);
            let _ = writeln!(text, "<path class=\"grid\" d=\"M{left:.1} {at:.1}H{:.1}\"/>", WIDTH - RIGHT);
            let _ = writeln!(
                text,
                "<text class=\"tick\" text-anchor=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                left - 6.0,
                at + 4.0,
                tick(value)
            );
        }
        let middle = bottom - LINES_HEIGHT / 2.0;
        let _ = writeln!(
            text,
            "<text class=\"tick\" text-anchor=\"middle\" transform=\"translate(12 {middle:.1}) rotate(-90)\">{}</text>",
            escape(&self.y.name)
        );
        for (index, line) in lines.iter().enumerate() {
            let mut path = String::new();
            for (step, &(at_x, at_y)) in line.iter().enumerate() {
                let command = if step == 0 { 'M' } else { 'L' };
                let _ = write!(path, "{command}{:.1} {:.1}", x.place(at_x), y.place(at_y));
            }
            // A line of one point would be invisible.
            if line.len() == 1 {
                path += "h0.1";
            }
            let _ = writeln!(text, "<path class=\"line c{}\" d=\"{path}\"/>", index % COLOURS);
            let series = self.series.get(index).map_or("", String::as_str);
            for &(at_x, at_y) in line.iter().filter(|_| line.len() <= MOST_POINTS) {
                let _ = writeln!(
                    text,
                    "<circle class=\"c{}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"><title>{}: {} at {}</title></circle>",
                    index % COLOURS,
                    x.place(at_x),
                    y.place(at_y),
                    escape(series),
                    number(at_y),
                    number(at_x)
                );
            }
        }
        (text, bottom - top + 42.0)
    }

    /// Returns rows of dots or bars.
    fn rows(&self, rows: &[(String, Vec<Option<Mark>>)], top: f64, are_bars: bool) -> (String, f64) {
        let longest = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let left = 12.0 + (longest as f64 * CHARACTER).min(WIDTH * MOST_OF_WIDTH);
        // A bar per mark, one below the other; dots share a line.
        let height = |marks: &[Option<Mark>]| match marks.iter().flatten().count() {
            count if are_bars => (count as f64 * BAR + 8.0).max(ROW),
            _ => ROW,
        };
        let bottom = top + 4.0 + rows.iter().map(|(_, marks)| height(marks)).sum::<f64>();
        // One slow or fast run must not shrink all bars: their axis ends at the longest bar, and spreads are cut off there.
        let numbers = |mark: &Mark| match mark.spread {
            Some((low, high)) if !are_bars => [low, mark.value, high],
            _ => [mark.value; 3],
        };
        let values = rows.iter().flat_map(|(_, marks)| marks.iter().flatten().flat_map(numbers));
        let x = Scale::new(&self.x, values, left, WIDTH - left - RIGHT);
        let mut text = self.bottom_axis(&x, top, bottom);
        let mut start = top + 4.0;
        for (name, marks) in rows {
            let middle = start + height(marks) / 2.0;
            start += height(marks);
            let _ = writeln!(
                text,
                "<text text-anchor=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                left - 8.0,
                middle + 4.0,
                escape(name)
            );
            if !are_bars {
                let _ = writeln!(text, "<path class=\"grid\" d=\"M{left:.1} {middle:.1}H{:.1}\"/>", WIDTH - RIGHT);
            }
            let shown: Vec<(usize, &Mark)> =
                marks.iter().enumerate().filter_map(|(index, mark)| Some((index, mark.as_ref()?))).collect();
            for (place, &(index, mark)) in shown.iter().enumerate() {
                let colour = index % COLOURS;
                let at =
                    if are_bars { middle + (place as f64 - (shown.len() as f64 - 1.0) / 2.0) * BAR } else { middle };
                let place = x.place(mark.value);
                let series = self.series.get(index).map_or("", String::as_str);
                let title = format!("<title>{}: {}</title>", escape(series), escape(&mark.hover));
                let _ = if are_bars {
                    let (y, width) = (at - BAR / 2.0 + 1.0, (place - left).max(0.5));
                    let size = format!("width=\"{width:.1}\" height=\"{:.1}\"", BAR - 2.0);
                    writeln!(text, "<rect class=\"bar c{colour}\" x=\"{left:.1}\" y=\"{y:.1}\" {size}>{title}</rect>")
                } else {
                    writeln!(
                        text,
                        "<circle class=\"c{colour}\" cx=\"{place:.1}\" cy=\"{at:.1}\" r=\"5\">{title}</circle>"
                    )
                };
                if let Some((low, high)) = mark.spread.filter(|(low, _)| *low > 0.0) {
                    let end = x.start + x.length;
                    let (low, high) = (x.place(low).max(left), x.place(high).min(end));
                    let _ = writeln!(text, "<path class=\"spread\" d=\"M{low:.1} {at:.1}H{high:.1}\"/>");
                }
            }
        }
        (text, bottom - top + 42.0)
    }

    /// Returns the grid, the ticks and the name of the horizontal axis.
    fn bottom_axis(&self, x: &Scale, top: f64, bottom: f64) -> String {
        let mut text = String::new();
        for value in x.named() {
            let at = x.place(value);
            let _ = writeln!(text, "<path class=\"grid\" d=\"M{at:.1} {top:.1}V{bottom:.1}\"/>");
            let name = tick(value);
            // Keep a long number at the end of the axis within the picture.
            let middle = at.min(WIDTH - name.chars().count() as f64 * CHARACTER / 2.0);
            let _ = writeln!(
                text,
                "<text class=\"tick\" text-anchor=\"middle\" x=\"{middle:.1}\" y=\"{:.1}\">{name}</text>",
                bottom + 16.0
            );
        }
        let _ = writeln!(
            text,
            "<text class=\"tick\" text-anchor=\"middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x.start + x.length / 2.0,
            bottom + 34.0,
            escape(&self.x.name)
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!(even_steps(256.0), [0.0, 50.0, 100.0, 150.0, 200.0, 250.0]);
        assert_eq!(even_steps(0.0).len(), 6);
        assert_eq!(decades(3.0, 4200.0), [1.0, 10.0, 100.0, 1000.0, 10000.0]);
        assert_eq!(decades(12.0, 45.0), [10.0, 20.0, 50.0]);
        assert_eq!(decades(10.0, 10.0), [10.0, 20.0]);
    }

    #[test]
    fn ticks_have_short_names() {
        let values = [0.0, 0.01, 5.0, 1000.0, 10_000.0, 12_500.0, 1e5, 2e6, 1e8, 1e9];
        let names = ["0", "0.01", "5", "1,000", "10k", "12.5k", "100k", "2M", "100M", "1G"];
        assert_eq!(values.map(tick), names);
        assert_eq!(tick(0.2 * 3.0), "0.6");
    }

    #[test]
    fn every_point_is_inside() {
        let line: Vec<(f64, f64)> = (1..100).map(|x| (f64::from(x), 1.0 / f64::from(x))).collect();
        for logarithmic in [false, true] {
            let axis = Axis { name: "x".into(), logarithmic };
            let x = Scale::new(&axis, line.iter().map(|point| point.0), 10.0, 100.0);
            assert!(line.iter().all(|point| (10.0..=110.0).contains(&x.place(point.0))));
            let plot = Plot {
                title: "a & b".into(),
                x: axis.clone(),
                y: axis,
                series: vec!["one".into(), "two".into()],
                marks: Marks::Lines(vec![line.clone(), vec![(1.0, 1.0)]]),
            };
            let svg = plot.to_svg_file();
            assert!(svg.contains("a &amp; b") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn bars_end_with_the_axis_and_stand_beside_their_names() {
        let wide = Mark { value: 1.0, spread: Some((0.5, 3.0)), hover: "1".into() };
        let plot = Plot {
            title: String::new(),
            x: Axis::linear("share"),
            y: Axis::default(),
            series: ["first", "nowhere", "last"].map(String::from).to_vec(),
            marks: Marks::Bars(vec![
                ("both".into(), vec![Some(wide.clone()), None, Some(Mark::new(0.5))]),
                ("alone".into(), vec![None, None, Some(Mark::new(0.25))]),
            ]),
        };
        let svg = plot.to_svg();
        assert!(svg.contains(">first<") && svg.contains(">last<") && !svg.contains(">nowhere<"), "{svg}");
        // The spread to 3 ends where the bar of 1 does.
        let end = format!("H{:.1}", WIDTH - RIGHT);
        assert!(svg.lines().any(|line| line.contains("spread") && line.contains(&end)), "{svg}");
        let attribute = |line: &str, name: &str| -> f64 {
            let (_, rest) = line.split_once(&format!(" {name}=\"")).unwrap();
            rest.split_once('"').unwrap().0.parse().unwrap()
        };
        let bar = svg.lines().rfind(|line| line.contains("<rect class=\"bar")).unwrap();
        let name = svg.lines().find(|line| line.contains(">alone<")).unwrap();
        let middle = attribute(bar, "y") + attribute(bar, "height") / 2.0;
        assert!((middle - (attribute(name, "y") - 4.0)).abs() < 1.5, "the bar at {middle} is not beside {name}");
    }

    #[test]
    fn nothing_to_draw_is_no_error() {
        let plot = Plot {
            title: String::new(),
            x: Axis::logarithmic("M/s"),
            y: Axis::default(),
            series: Vec::new(),
            marks: Marks::Dots(Vec::new()),
        };
        assert!(!plot.to_svg().contains("NaN"));
    }
}
