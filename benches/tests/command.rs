//! The program's command line, on the CPU device with small sizes.

use gpu_benches::record::Recording;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_gpu-benches");

/// Returns an empty folder for a test; `None` where only the tests were copied, without the program.
fn folder(name: &str) -> Option<PathBuf> {
    if !Path::new(PROGRAM).is_file() {
        eprintln!("skipped: {PROGRAM} does not exist");
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    Some(folder)
}

/// Returns the program with these arguments, in this folder.
fn program(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command.env("GPU_PRIMITIVES_DEVICE", "cpu").stdin(Stdio::null()).args(arguments).current_dir(folder);
    command
}

fn run(arguments: &[&str], folder: &Path) -> Output {
    program(arguments, folder).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_main_job_prints_a_table_and_writes_a_report() {
    let Some(folder) = folder("main-job") else { return };
    let output = run(&["--quick", "--size", "2^10", "--out", "report", "--csv", "numbers.csv"], &folder);
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{printed}{}", text(&output.stderr));
    for word in [
        "device: CPU",
        "LSM",
        "sorted array",
        "cuckoo",
        "CPU BTreeMap",
        "1024 keys each",
        "Radix sort of pairs",
        "LSM, H200",
    ] {
        assert!(printed.contains(word), "no {word} in {printed}");
    }
    let page = folder.join("report/compare.html").canonicalize().unwrap();
    assert!(printed.contains(page.to_str().unwrap()), "{printed}");
    let html = fs::read_to_string(page).unwrap();
    assert!(html.contains("<svg") && !html.contains("http://") | html.contains("www.w3.org"), "not self-contained");
    let numbers = Recording::read(&folder.join("numbers.csv")).unwrap();
    assert!(numbers.records.len() > 80 && numbers.records.iter().all(|record| record.value > 0.0));
    assert_eq!(numbers.about("command"), Some("gpu-benches --quick --size 2^10"));
    assert_eq!(numbers, Recording::read(&folder.join("report/compare.csv")).unwrap());
    let json = fs::read_to_string(folder.join("report/compare.json")).unwrap();
    assert_eq!(serde_json::from_str::<Recording>(&json).unwrap(), numbers);
}

#[test]
fn every_workload_can_be_asked_for() {
    let Some(folder) = folder("workloads") else { return };
    for workload in [
        &["--keys", "sorted", "--key-bits", "64", "--value-bytes", "0"][..],
        &["--keys", "zipf", "--value-bytes", "8", "--absent", "0.1"],
        &["--keys", "few", "--deletions", "1", "--batch", "100", "--key-bits", "64", "--value-bytes", "8"],
        &["--deletions", "0", "--value-bytes", "0"],
        &["--key-bits", "64", "--keys", "zipf"],
    ] {
        let output = run(&[&["compare", "--quick", "--size", "1500", "--json"][..], workload].concat(), &folder);
        assert!(output.status.success(), "{workload:?}: {}", text(&output.stderr));
        let recording: Recording = serde_json::from_slice(&output.stdout).unwrap();
        assert!(recording.section("compare").count() > 60, "{workload:?}");
    }
}

#[test]
fn the_paper_has_all_columns() {
    let Some(folder) = folder("paper") else { return };
    let output = run(&["paper", "--scale", "14", "--most-batches", "40", "--out", "report"], &folder);
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{printed}{}", text(&output.stderr));
    let recording = Recording::read(&folder.join("report/paper.csv")).unwrap();
    assert_eq!(recording.about("scale"), Some("sizes of the paper divided by 2^14"));
    assert_eq!(recording.about("insertion"), Some("only the first 40 batches of each size"));
    // Every number of the paper has one of ours next to it.
    let paper = include_str!("../data/paper-k40c.csv").lines().filter(|line| !line.starts_with('#')).count() - 1;
    let with_peer = recording.records.iter().filter(|record| record.peer_value.is_some()).count();
    assert_eq!(with_peer, paper);
    for file in ["paper.html", "paper.md"] {
        let page = fs::read_to_string(folder.join("report").join(file)).unwrap();
        for word in
            ["13.5", "1.75", "Effective insertion rate", "Lookups before and after a cleanup", "divided by 2^14"]
        {
            assert!(page.contains(word), "no {word} in {file}");
        }
    }
}

#[test]
fn single_experiments_of_the_paper() {
    let Some(folder) = folder("experiments") else { return };
    for (asked, sections) in [
        (&["--only", "build"][..], &["paper build"][..]),
        (&["--only", "build", "--only", "cleanup"], &["paper build", "paper cleanup", "paper cleanup and lookups"]),
    ] {
        let output = run(&[&["paper", "--scale", "14", "--json"][..], asked].concat(), &folder);
        assert!(output.status.success(), "{asked:?}: {}", text(&output.stderr));
        let recording: Recording = serde_json::from_slice(&output.stdout).unwrap();
        let mut found: Vec<&str> = recording.records.iter().map(|record| record.section.as_str()).collect();
        found.dedup();
        assert_eq!(found, sections, "{asked:?}");
    }
}

#[test]
fn the_tables_can_be_had_as_files() {
    let Some(folder) = folder("tables") else { return };
    for (command, size, least) in [
        ("lsm", "2^12", 19),
        ("sorted-array", "4096", 11),
        ("cuckoo", "2^10", 8),
        ("primitives", "1000,1024", 120),
        ("tables", "1500,2^12", 26),
    ] {
        let output = run(&[command, "--size", size, "--csv", "numbers.csv", "--out", "report"], &folder);
        assert!(output.status.success(), "{command}: {}", text(&output.stderr));
        let found = Recording::read(&folder.join("numbers.csv")).unwrap().records.len();
        assert!(found >= least, "{command}: {found} numbers");
        let page = fs::read_to_string(folder.join(format!("report/{command}.html"))).unwrap();
        assert!(page.contains("This is the CPU device"), "{command}: the page does not say that there was no GPU");
    }
}

#[test]
fn several_sizes_and_a_baseline() {
    let Some(folder) = folder("baseline") else { return };
    let arguments = ["--quick", "--size", "1024,2048", "--csv", "now.csv"];
    let output = run(&arguments, &folder);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let now = Recording::read(&folder.join("now.csv")).unwrap();
    let sizes =
        |subject: &str| now.records.iter().filter(|record| record.subject == subject && record.row == "count").count();
    assert_eq!((sizes("LSM"), sizes("CPU BTreeMap")), (4, 4), "two lengths at two sizes");
    let page = fs::read_to_string(folder.join("target/gpu-benches/compare.html")).unwrap();
    assert!(page.contains("Over the number of elements"));

    // An earlier run that was a hundred times faster, and one that was a hundred times slower.
    for (factor, flag) in [(100.0, "WORSE"), (0.01, "better")] {
        let mut before = now.clone();
        for record in before.records.iter_mut().filter(|record| record.unit == "M/s") {
            record.value *= factor;
            record.low = record.low.map(|low| low * factor);
            record.high = record.high.map(|high| high * factor);
        }
        fs::write(folder.join("before.csv"), before.to_csv().unwrap()).unwrap();
        let output = run(&["--quick", "--size", "1024", "--baseline", "before.csv"], &folder);
        let printed = text(&output.stdout);
        assert!(output.status.success() && printed.contains("What changed") && printed.contains(flag), "{printed}");
        let json = fs::read_to_string(folder.join("target/gpu-benches/compare.json")).unwrap();
        assert!(json.contains(if flag == "WORSE" { "\"worse\"" } else { "\"better\"" }));
    }
}

#[test]
fn a_peer_in_cpp_stands_beside_the_dictionaries() {
    let Some(folder) = folder("peer") else { return };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/std.cpp");
    let compiler = std::env::var("CXX").unwrap_or_else(|_| String::from("c++"));
    let compiled =
        Command::new(&compiler).args(["-O1", "-std=c++17", "-o"]).arg(folder.join("peer")).arg(source).status();
    let Ok(status) = compiled else {
        eprintln!("SKIPPED: there is no C++ compiler");
        return;
    };
    assert!(status.success(), "the peer does not compile");
    let peer = folder.join("peer");
    let output = run(&["--quick", "--size", "1024", "--csv", "numbers.csv", "--peer", peer.to_str().unwrap()], &folder);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let numbers = Recording::read(&folder.join("numbers.csv")).unwrap();
    let mut rows: Vec<&str> =
        numbers.records.iter().filter(|record| record.subject == "C++ std").map(|record| record.row.as_str()).collect();
    rows.sort_unstable();
    assert_eq!(rows, ["bulk build", "insert, all batches", "lookup, all absent", "lookup, all present"]);
    let sort = numbers.records.iter().find(|record| record.row == "sort_keys_u32").unwrap();
    assert!(sort.peer.as_deref() == Some("C++ std") && sort.peer_value.unwrap() > 0.0);
    assert!(text(&output.stdout).contains("C++ std"));

    // It measures uniform keys alone, so it must not stand beside others.
    let others = ["--quick", "--size", "1024", "--keys", "zipf", "--csv", "zipf.csv", "--peer", peer.to_str().unwrap()];
    let output = run(&others, &folder);
    let said = text(&output.stderr);
    assert!(output.status.success() && said.contains("C++ std is left out of the comparison"), "{said}");
    let numbers = Recording::read(&folder.join("zipf.csv")).unwrap();
    assert!(numbers.records.iter().all(|record| record.subject != "C++ std"));
    assert!(
        numbers.records.iter().any(|record| record.peer.as_deref() == Some("C++ std")),
        "the primitives are the same"
    );
    assert!(!text(&output.stdout).contains("LSM, H200"), "uniform keys of an H200 beside Zipf keys");
}

/// PyTorch's program, with a stub in the place of PyTorch: the protocol, both ways of timing, and the checks of the results.
#[cfg(unix)]
#[test]
fn a_peer_in_python_gives_both_ways_of_timing() {
    let Some(folder) = folder("python-peer") else { return };
    if !Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: there is no python3");
        return;
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let peer = here.join("peers/torch_cupy.py");
    let suites = "transfer,sort,reduce,top_k,row_top_k,order_statistics,select,runs,bits,columns,distinct,rows";
    let arguments = ["primitives", "--size", "1024", "--only", suites];
    let arguments = [&arguments[..], &["--csv", "numbers.csv", "--peer", peer.to_str().unwrap()]].concat();
    let mut with_stub = program(&arguments, &folder);
    let output = with_stub.env("PYTHONPATH", here.join("tests/stub")).env("PEER_LIBRARY", "torch").output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let numbers = Recording::read(&folder.join("numbers.csv")).unwrap();
    let of_peer: Vec<_> =
        numbers.records.iter().filter(|record| record.peer.as_deref() == Some("torch stub")).collect();
    assert_eq!(of_peer.len(), 19, "{:?}", of_peer.iter().map(|record| &record.row).collect::<Vec<_>>());
    for record in of_peer {
        assert!(record.peer_value.unwrap() > 0.0 && record.queued_peer_value.unwrap() > 0.0, "{record:?}");
        assert_eq!(record.queued, None, "a call on the CPU device does not queue");
    }
    assert!(text(&output.stdout).contains("peer queued M/s"));

    // Without the library it is named before anything is measured.
    let mut without = program(&["primitives", "--size", "2^24", "--peer", peer.to_str().unwrap()], &folder);
    let output = without.env("PYTHONPATH", &folder).env("PEER_LIBRARY", "no-such-library").output().unwrap();
    let said = text(&output.stderr);
    assert!(!output.status.success() && said.contains("use torch or cupy"), "{said}");
}

#[cfg(unix)]
#[test]
fn a_bad_peer_is_named_before_anything_is_measured() {
    use std::os::unix::fs::PermissionsExt;
    let Some(folder) = folder("bad-peer") else { return };
    let peer = |name: &str, script: &str| {
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    for (name, script, word) in [
        ("misspelling", "echo sort_key_u32", "there is no row \"sort_key_u32\""),
        ("silent", "sleep 20", "printed nothing for 1 s"),
    ] {
        let path = peer(name, script);
        let start = Instant::now();
        // Far more elements than could be measured in this time.
        for command in [&["--size", "2^20"][..], &["primitives", "--size", "2^24"]] {
            let output = run(&[command, &["--peer", &path, "--peer-timeout", "1"]].concat(), &folder);
            let said = text(&output.stderr);
            assert!(!output.status.success() && said.contains(word) && said.contains(name), "{said}");
        }
        assert!(start.elapsed() < Duration::from_secs(15), "{name}: it measured first");
    }
}

#[test]
fn a_baseline_of_another_workload_is_left_out() {
    let Some(folder) = folder("other-baseline") else { return };
    let quick = ["--quick", "--size", "1024"];
    assert!(run(&[&quick[..], &["--csv", "uniform.csv"]].concat(), &folder).status.success());
    let output = run(&[&quick[..], &["--keys", "zipf", "--baseline", "uniform.csv", "--json"]].concat(), &folder);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let left_out = json["left_out"][0].clone();
    assert!(left_out["why"].as_str().unwrap().contains("the other zipf keys"), "{left_out}");
    let sections = json["changes"].as_array().unwrap().iter().map(|change| change["now"]["section"].as_str().unwrap());
    let compared: Vec<&str> = sections.filter(|section| *section == "compare").collect();
    assert!(compared.is_empty() && left_out["numbers"].as_u64().unwrap() > 60, "{left_out}");
    let page = fs::read_to_string(folder.join("target/gpu-benches/compare.html")).unwrap();
    assert!(page.contains("Numbers that were not compared"));
}

#[test]
fn bad_arguments_are_explained() {
    let Some(folder) = folder("arguments") else { return };
    for (arguments, word) in [
        (&["--size", "many"][..], "2^20"),
        (&["--size", "100"], "at least 2^10"),
        (&["--keys", "odd"], "uniform"),
        (&["--absent", "2"], "from 0 to 1"),
        (&["--deletions", "NaN"], "from 0 to 1"),
        (&["--batch", "0"], "at least one"),
        (&["--value-bytes", "3"], "0, 4, 8"),
        (&["--device", "tpu"], "cuda:N"),
        (&["paper", "--scale", "40"], "0..=14"),
        (&["paper", "--size", "2^5"], "from 2^13 to 2^27"),
        (&["cuckoo", "--size", "1000"], "a power of two from 2^10"),
        (&["lsm", "--size", "2^12,2^13"], "one size"),
        (&["tables", "--size", "1000"], "at least 2^10 rows"),
        (&["--baseline", "nowhere.csv"], "nowhere.csv"),
        (&["primitives", "--size", "1024", "--only", "copy"], "one of transfer"),
        (&["--quick", "--size", "1024", "--peer", "no-such-program"], "no-such-program"),
        (&["paper", "--only", "deletion"], "cleanup"),
        (&["primitives", "--only", "sorting"], "one of transfer, scan"),
        (&["results", "--docs", "nowhere"], "nowhere"),
    ] {
        let output = run(arguments, &folder);
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains(word), "{arguments:?}: {said}");
    }
}

#[test]
fn no_room_says_how_much_is_needed() {
    let Some(folder) = folder("room") else { return };
    let output = run(&["--size", "2^30", "--value-bytes", "8", "--key-bits", "64"], &folder);
    let said = text(&output.stderr);
    assert!(!output.status.success() && said.contains("192.00 GiB") && said.contains("are free"), "{said}");
}

#[test]
fn a_folder_that_cannot_be_written_is_told_at_once() {
    let Some(folder) = folder("unwritable") else { return };
    fs::write(folder.join("file"), "").unwrap();
    let start = Instant::now();
    for arguments in [["--out", "file/report"], ["--csv", "nowhere/numbers.csv"]] {
        let output = run(&arguments, &folder);
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains("error: cannot") && said.contains(arguments[1]), "{said}");
    }
    assert!(start.elapsed() < Duration::from_secs(5), "it measured before it checked the outputs");
}

#[cfg(unix)]
#[test]
fn what_was_measured_before_ctrl_c_is_kept() {
    let Some(folder) = folder("ctrl-c") else { return };
    let arguments = ["--size", "2^19", "--out", "report", "--csv", "numbers.csv"];
    // The first numbers are measured after a moment, all of them after many seconds. On a busy machine the moment is longer.
    for seconds in [3, 10, 30] {
        let mut child = program(&arguments, &folder).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_secs(seconds));
        let still_running = child.try_wait().unwrap().is_none();
        assert!(still_running, "the program was faster than this test expects");
        // Twice, as `timeout` sends it.
        for _ in 0..2 {
            let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
            assert!(kill.success());
        }
        let output = child.wait_with_output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{said}");
        assert!(said.contains("error: interrupted") && said.contains("were measured before"), "{said}");
        if !said.contains("\n0 numbers") && !said.starts_with("0 numbers") {
            break;
        }
    }
    let recording = Recording::read(&folder.join("numbers.csv")).unwrap();
    assert_eq!(recording.about("incomplete"), Some("interrupted"));
    assert!(!recording.records.is_empty());
    assert!(fs::read_to_string(folder.join("report/compare.html")).unwrap().contains("interrupted"));
}
