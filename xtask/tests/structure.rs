//! The modules of gpu-primitives import in one direction only: that of the list in docs/structure.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of a member of the workspace.
fn workspace(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(path)
}

/// The modules of the list, each with the number of its item.
fn layers(page: &str) -> BTreeMap<String, usize> {
    let list = page.split("## Modules of gpu-primitives").nth(1).expect("the section is there");
    let list = list.split("\n## ").next().unwrap();
    let mut layers = BTreeMap::new();
    for line in list.lines() {
        let Some((number, rest)) = line.split_once(". ") else { continue };
        let Ok(number) = number.parse() else { continue };
        let names = rest.split(':').next().unwrap();
        for name in names.split('`').skip(1).step_by(2) {
            let before = layers.insert(name.to_owned(), number);
            assert!(before.is_none(), "`{name}` is in the list twice");
        }
    }
    layers
}

/// The module of a file under `src`: its first folder, or the second one under `host`.
fn module_of(relative: &Path) -> Option<String> {
    let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy().replace(".rs", "")).collect();
    let part = if parts[0] == "host" { parts.get(1)? } else { &parts[0] };
    (part != "lib" && part != "mod").then(|| part.clone())
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The text without comments, and without modules for tests: those may use everything.
fn without_tests(text: &str) -> String {
    let mut code: String = text.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n");
    let for_tests = ["#[cfg(test)]\nmod ", "#[cfg(test)]\npub(crate) mod ", "#[cfg(all(test"];
    while let Some(start) = for_tests.iter().find_map(|start| code.find(start)) {
        let Some(open) = code[start..].find(['{', ';']).map(|at| start + at) else { break };
        let mut depth = 0;
        let mut end = open + 1;
        for (at, letter) in code[open..].char_indices() {
            depth += i32::from(letter == '{') - i32::from(letter == '}');
            if depth == 0 {
                end = open + at + 1;
                break;
            }
        }
        code.replace_range(start..end, "");
    }
    code
}

/// The first names after `crate::` in a text: `crate::a::b` gives `a` and `b`, `crate::{a, c::d}` gives `a`, and `c` and `d`.
/// What a macro writes after `$crate` is an import of whoever uses the macro.
fn imports(code: &str) -> Vec<(String, String)> {
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let pair = |text: &str| {
        let first = word(text);
        let second = text[first.len()..].strip_prefix("::").map(word).unwrap_or_default();
        (first, second)
    };
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        if code[..at].ends_with('$') {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        let Some(group) = rest.strip_prefix('{') else {
            found.push(pair(rest));
            continue;
        };
        let mut depth = 0;
        let mut names = String::new();
        for letter in group.chars() {
            depth += i32::from(letter == '{') - i32::from(letter == '}');
            if depth < 0 {
                break;
            }
            names.push(if letter == ',' && depth > 0 { ';' } else { letter });
        }
        found.extend(names.split(',').map(|name| pair(name.trim())));
    }
    found.retain(|(first, _)| !first.is_empty());
    found
}

/// The module that a path in the crate names. The root exports items of a few modules.
fn target(layers: &BTreeMap<String, usize>, (first, second): &(String, String)) -> Option<String> {
    let module = match first.as_str() {
        "host" => second.as_str(),
        "Error" | "expect_len" | "expect_room" => "error",
        "Global" | "GlobalMut" | "Shared" | "SharedMemory" => "view",
        "thread" | "warp" => "arch",
        // Macros.
        "instances" | "sized" | "with_shape" | "span" => return None,
        name if layers.contains_key(name) => name,
        _ => "runtime",
    };
    Some(module.to_owned())
}

#[test]
fn no_import_goes_upwards() {
    let layers = layers(&fs::read_to_string(workspace("docs/structure.md")).unwrap());
    let src = workspace("primitives/src");
    let (mut files, mut wrong, mut seen) = (Vec::new(), Vec::new(), 0);
    sources(&src, &mut files);
    for file in files {
        let relative = file.strip_prefix(&src).unwrap();
        let is_test = relative.iter().any(|part| part == "tests" || part == "tests.rs");
        let Some(module) = module_of(relative).filter(|_| !is_test) else { continue };
        let own = *layers.get(&module).unwrap_or_else(|| panic!("docs/structure.md does not name `{module}`"));
        for path in imports(&without_tests(&fs::read_to_string(&file).unwrap())) {
            let Some(target) = target(&layers, &path) else { continue };
            let layer = *layers.get(&target).unwrap_or_else(|| panic!("docs/structure.md does not name `{target}`"));
            seen += 1;
            if layer > own {
                wrong.push(format!("{}: `{module}` ({own}) imports `{target}` ({layer})", relative.display()));
            }
        }
    }
    assert!(seen > 1000, "only {seen} imports were found");
    assert!(wrong.is_empty(), "imports that go upwards:\n{}", wrong.join("\n"));
}

#[test]
fn imports_are_read() {
    let code = without_tests(
        "use crate::a::b;\nlet x = crate::{c, d::{e, f}}; // crate::g\n$crate::h::i;\n#[cfg(test)]\nmod tests {\n use crate::j; {}\n}\ncrate::k",
    );
    let found: Vec<_> = imports(&code).into_iter().map(|(first, second)| format!("{first} {second}")).collect();
    assert_eq!(found, ["a b", "c ", "d ", "k "]);
}

/// The most lines of code in the body of a kernel, and the most arguments: see CONTRIBUTING.md.
const MOST_LINES: usize = 100;
const MOST_ARGUMENTS: usize = 8;

/// Kernels with more than that, with their lines and arguments. No kernel is added here.
const LARGE_KERNELS: &[(&str, usize, usize)] = &[
    // Three values say how an insertion into a hash table goes on, and three are what it has left.
    ("claim", 59, 9),
    ("place_pairs", 75, 9),
    ("walk_pairs", 38, 9),
    // The first passes of a top-k and of order statistics.
    ("keep_ranks", 142, 6),
    ("narrow", 100, 13),
    // A pass of a radix sort of rows.
    ("row_pass", 22, 9),
];

/// A kernel: its name, the lines of code of its body, and its arguments.
struct KernelSize {
    name: String,
    lines: usize,
    arguments: usize,
}

/// Returns the position of the bracket that closes the one at `open`.
fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0;
    for (at, letter) in code[open..].char_indices() {
        depth += i32::from("([{".contains(letter)) - i32::from(")]}".contains(letter));
        if depth == 0 {
            return open + at;
        }
    }
    panic!("a bracket is not closed")
}

/// Returns the kernels of a text without comments.
fn kernels(code: &str) -> Vec<KernelSize> {
    let mut found = Vec::new();
    for (start, _) in code.match_indices("#[kernel(") {
        let end = closing(code, start + 1);
        let Some(name_start) = code[end..].find("unsafe fn ").map(|at| end + at + "unsafe fn ".len()) else { continue };
        let name: String = code[name_start..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let open = name_start + code[name_start..].find('(').expect("a function has arguments");
        let close = closing(code, open);
        // Names are followed by a single colon.
        let list = code[open + 1..close].replace("::", "");
        let body = close + code[close..].find('{').expect("a kernel has a body");
        let lines = code[body + 1..closing(code, body)].lines().filter(|line| !line.trim().is_empty()).count();
        found.push(KernelSize { name, lines, arguments: list.matches(':').count() });
    }
    found
}

/// A kernel is a sequence of named collectives: if it is long, one is missing.
#[test]
fn kernels_are_short() {
    let (mut files, mut seen, mut large) = (Vec::new(), BTreeSet::new(), Vec::new());
    for folder in ["primitives/src", "dictionary/src", "cuckoo/src"] {
        sources(&workspace(folder), &mut files);
    }
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let code = text.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n");
        for kernel in kernels(&code) {
            seen.insert(kernel.name.clone());
            if kernel.lines > MOST_LINES || kernel.arguments > MOST_ARGUMENTS {
                large.push((kernel.name, kernel.lines, kernel.arguments));
            }
        }
    }
    assert!(seen.len() > 150, "only {} kernels were found", seen.len());
    for (name, lines, arguments) in &large {
        let (_, most_lines, most_arguments) =
            LARGE_KERNELS.iter().find(|listed| listed.0 == name).copied().unwrap_or(("", MOST_LINES, MOST_ARGUMENTS));
        assert!(
            *lines <= most_lines.max(MOST_LINES) && *arguments <= most_arguments.max(MOST_ARGUMENTS),
            "`{name}` has {lines} lines and {arguments} arguments: make a collective of a part of it, or a `Param` of arguments that \
             belong together"
        );
    }
    for (name, ..) in LARGE_KERNELS {
        assert!(seen.contains(*name), "there is no kernel `{name}`: take it off the list");
    }
}

#[test]
fn kernels_are_read() {
    let code = "#[kernel(listed, shared = f::<K>(1))]\npub unsafe fn a<K: Pod>(b: c::D<K>, (e, f): G, h: u32) {\n x();\n\n { y }\n}\n";
    let found: Vec<_> = kernels(code).into_iter().map(|kernel| (kernel.name, kernel.lines, kernel.arguments)).collect();
    assert_eq!(found, [("a".to_owned(), 2, 3)]);
}

/// A suite with its own `main` that is no `[[test]]` without a harness would compile, and run nothing.
#[test]
fn suites_are_listed() {
    let mut suites = 0;
    for folder in ["primitives/conformance", "dictionary/conformance", "cuckoo/conformance"] {
        let conformance = workspace(folder);
        let manifest = fs::read_to_string(conformance.join("Cargo.toml")).unwrap();
        for entry in fs::read_dir(conformance.join("tests")).unwrap() {
            let path = entry.unwrap().path();
            let file = if path.is_dir() { path.join("main.rs") } else { path.clone() };
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            if fs::read_to_string(&file).unwrap().contains("fn main() -> ExitCode") {
                suites += 1;
                let entry = format!("[[test]]\nname = \"{name}\"\nharness = false\n");
                assert!(manifest.contains(&entry), "{folder}/Cargo.toml needs:\n{entry}");
            }
        }
    }
    assert!(suites > 20, "only {suites} suites were found");
}

/// The sections of a manifest that decide what a program gets that depends on the crate: not those of tests.
fn sections_of_users(manifest: &str) -> impl Iterator<Item = (&str, &str)> {
    manifest.split("\n[").map(|section| section.split_once(']').unwrap_or((section, ""))).filter(|(name, _)| {
        let name = name.trim_start_matches('[');
        name == "features" || name.ends_with("dependencies") && !name.ends_with("dev-dependencies")
    })
}

/// The feature `testing` is for tests: no published crate turns it on for those who depend on it, neither by default nor in a
/// dependency. What turns it on are dev-dependencies, and crates that are not published.
#[test]
fn programs_do_not_get_what_is_for_tests() {
    let mut published = 0;
    let members = fs::read_to_string(workspace("Cargo.toml")).unwrap();
    let members = members.split("members = [").nth(1).unwrap().split(']').next().unwrap();
    for member in members.split('"').skip(1).step_by(2) {
        let manifest = fs::read_to_string(workspace(member).join("Cargo.toml")).unwrap();
        if manifest.contains("\npublish = false\n") {
            continue;
        }
        published += 1;
        for (section, text) in sections_of_users(&manifest) {
            for line in text.lines().map(|line| line.split('#').next().unwrap()) {
                let is_passed_on = section == "features" && line.starts_with("testing = ");
                assert!(!line.contains("testing") || is_passed_on, "{member}/Cargo.toml, [{section}]: {line}");
            }
        }
    }
    assert!(published > 8, "only {published} crates are published");
    let wrong = "[package]\n[dependencies]\na = { features = [\"testing\"] }\n[dev-dependencies]\nb = 1\n";
    let found: Vec<_> = sections_of_users(wrong).map(|(name, text)| (name, text.contains("testing"))).collect();
    assert_eq!(found, [("dependencies", true)]);
}
