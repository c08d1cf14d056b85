//! The report in a real browser: headless Chromium, if it is installed. With `GPU_BENCHES_BROWSER=required`, a missing
//! Chromium is an error.

use gpu_benches::record::{NOTE, Record, Recording};
use gpu_benches::view::html;
use gpu_benches::{compare, paper, primitives, report};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn browser() -> Option<&'static str> {
    let found = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success()));
    let required = std::env::var_os("GPU_BENCHES_BROWSER").is_some();
    assert!(found.is_some() || !required, "Chromium is not installed: install Debian's package `chromium`");
    if found.is_none() {
        eprintln!("SKIPPED: Chromium is not installed, so the report was not opened in a browser");
    }
    found
}

/// Returns a report with all parts, with made-up numbers.
fn page() -> String {
    let mut recording = Recording::default();
    recording.tell("device", "a device with a rather long name, which tests whether the report wraps it where it must");
    recording.tell(
        "workload",
        "uniform keys of 32 bits, values of 4 bytes, batches of 2^16; mixed updates have 20 % deletions",
    );
    recording.tell("batch", "a sixteenth of the elements");
    for subject in ["LSM", "sorted array", "cuckoo", "CPU BTreeMap", "CPU hashbrown", "CPU sorted Vec"] {
        let rows = [("insert, all batches", ""), ("cleanup", ""), ("lookup, 50 % absent", ""), ("range", "L = 1024")];
        for (index, (row, parameter)) in rows.into_iter().enumerate() {
            // Only one structure has a cleanup, and a hash table has no ranges.
            if (row == "cleanup" && subject != "LSM") || (row == "range" && subject == "cuckoo") {
                continue;
            }
            let value = (subject.len() * (index + 1) * 1000) as f64;
            let record = Record::new(compare::SECTION, subject, row, parameter, 1 << 20).value(value, "M/s");
            // One run was three times as fast as the others.
            recording.records.push(record.spread(&[value / 2.0, value * 3.0]));
        }
    }
    for (index, row) in ["memcpy", "copy", "sort_pairs_u32_u32"].into_iter().enumerate() {
        for log in [16, 20, 24] {
            let record =
                Record::new(primitives::SECTION, "gpu-primitives", row, "", 1 << log).value(5.0 + index as f64, "M/s");
            recording.records.push(record.bytes(8.0).spread(&[4.0, 8.0]).beside("CUB", Some(4.0)));
        }
    }
    for (subject, slope) in [("LSM", 1.0), ("sorted array", 3.0)] {
        for step in 1..64u32 {
            let time = Record::new(paper::INSERTION_TIME, subject, "insertion", format!("b = 2^19, r = {step}"), 0);
            recording.records.push(time.value(f64::from(step) * slope, "ms"));
            let rate = Record::new(paper::EFFECTIVE_RATE, subject, "rate", "b = 2^19", (step as usize) << 20);
            recording.records.push(rate.value(1000.0 / f64::from(step), "M/s"));
        }
        let mean = Record { work: 1 << 19, ..Record::new(paper::INSERTION, subject, "insertion mean", "b = 2^19", 0) };
        recording.records.push(mean.value(5.0, "M/s").beside("paper", Some(4.0)));
    }
    recording.tell(NOTE, "These are GPU kernels on a CPU.");
    // An earlier run that was faster.
    let mut before = recording.clone();
    before.records.iter_mut().for_each(|record| record.value *= 2.0);
    html::render("Report", &report::page(&recording, Some(&before)))
}

/// A script that inspects the page from inside.
const PROBE: &str = include_str!("probe.js");

/// Opens the page in a frame as wide as a phone or a desktop, because a headless window cannot be as narrow as a phone.
/// Returns the verdict of the probe, and saves a screenshot.
fn look(browser: &str, folder: &Path, width: u32, theme: &str) -> String {
    let probe = format!("<script>window.expectedWidth = {width}; window.expectedTheme = '{theme}';\n{PROBE}</script>");
    fs::write(folder.join("page.html"), page().replacen("<head>", &format!("<head>{probe}"), 1)).unwrap();
    let frame = format!(
        "<!DOCTYPE html><style>* {{ margin: 0; border: 0 }}</style><iframe src=\"page.html\" width=\"{width}\" height=\"4000\"></iframe>\
         <output id=\"verdict\"></output><script>onload = () => setTimeout(() => {{\
         const inner = document.querySelector('iframe').contentDocument.querySelector('#verdict');\
         document.querySelector('#verdict').textContent = inner ? inner.textContent : 'the page did not answer'; }}, 200);</script>"
    );
    let outer = folder.join("frame.html");
    fs::write(&outer, frame).unwrap();
    let picture = folder.join(format!("report-{theme}-{width}.png"));
    let run = |action: &[String]| {
        let output = Command::new(browser)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--allow-file-access-from-files",
                "--hide-scrollbars",
            ])
            .args(["--virtual-time-budget=5000", &format!("--user-data-dir={}", folder.join("profile").display())])
            .arg(format!("--window-size={},4000", width.max(500)))
            .arg(format!("--blink-settings=preferredColorScheme={}", if theme == "dark" { 0 } else { 1 }))
            .args(action)
            .arg(format!("file://{}", outer.display()))
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    run(&[format!("--screenshot={}", picture.display())]);
    assert!(picture.is_file(), "no screenshot");
    let dom = run(&["--dump-dom".into()]);
    let verdict = dom.rsplit("id=\"verdict\">").next().and_then(|rest| rest.split("</output>").next());
    verdict.unwrap_or("no verdict").to_owned()
}

#[test]
fn the_report_is_drawn_on_a_phone_and_on_a_desk_in_light_and_dark() {
    let Some(browser) = browser() else { return };
    let folder: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    for (width, theme) in [(390, "light"), (1300, "light"), (1300, "dark")] {
        assert_eq!(look(browser, &folder, width, theme), "all is well", "{width} pixels wide, {theme}");
    }
}

#[test]
fn the_report_prints_on_paper() {
    let Some(browser) = browser() else { return };
    let folder: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join("paper");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let (page_file, paper) = (folder.join("page.html"), folder.join("report.pdf"));
    fs::write(&page_file, page()).unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("--print-to-pdf={}", paper.display()))
        .arg(format!("file://{}", page_file.display()))
        .output()
        .unwrap();
    let bytes = fs::read(&paper).unwrap_or_default();
    assert!(bytes.starts_with(b"%PDF") && bytes.len() > 10_000, "{}", String::from_utf8_lossy(&output.stderr));
}
