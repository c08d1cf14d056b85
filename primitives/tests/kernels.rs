//! What every kernel of the library has: a place in a list of instances, where it is compiled, and a native body. A kernel
//! without them would be compiled in every program that launches it, thread by thread.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns all source files below a folder, except for tests of the runtime, whose kernels are their own.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("tests") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns the attributes of the kernels in a text: those at the beginning of a line.
fn attributes(text: &str) -> impl Iterator<Item = &str> {
    let starts = text.match_indices("\n#[kernel(").map(|(at, _)| at + 1);
    starts.map(|start| &text[start..start + text[start..].find(")]\n").expect("the end of the attribute")])
}

#[test]
fn kernels_are_listed_and_have_native_bodies() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for package in ["primitives", "dictionary", "lsm", "sorted-array", "cuckoo", "sharded"] {
        sources(&workspace.join(package).join("src"), &mut files);
    }
    let mut kernels = 0;
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for attribute in attributes(&text) {
            kernels += 1;
            let words =
                |word: &str| attribute.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|part| part == word);
            assert!(words("listed"), "{}: `{attribute}` is not listed", file.display());
            assert!(words("native"), "{}: `{attribute}` has no native body", file.display());
        }
    }
    assert!(kernels > 90, "only {kernels} kernels were found");
}
