//! `cargo xtask book`: checks the pages of the documentation, and the book that mdBook makes of them.
//!
//! Every link leads to a file and a heading that exist, every page is in the summary, and every page with Rust code is
//! compiled by the tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::workspace::Workspace;

/// The folder of the book, from the root of the workspace.
const BOOK: &str = "docs";
/// The page that lists the others.
const SUMMARY: &str = "docs/SUMMARY.md";
/// The file that names the pages with code.
const COMPILED: &str = "docs/pages.rs";
/// Pages whose code another crate compiles.
const COMPILED_ELSEWHERE: [&str; 1] = ["docs/guide.md"];
/// Pages outside the book.
const OTHER_PAGES: [&str; 4] = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "python/README.md"];
/// A template, which is no page itself.
const TEMPLATE: &str = "docs/results.in.md";

/// Checks the pages and, if there is an mdBook, builds the book and checks that, too.
pub fn run(mdbook: Option<&Path>) -> Result<(), Error> {
    let workspace = Workspace::load()?;
    let root = &workspace.workspace_root;
    let mut pages = BTreeMap::new();
    for path in markdown_files(root)? {
        let text = fs::read_to_string(root.join(&path)).map_err(Error::io("read", &path))?;
        pages.insert(path, text);
    }
    let compiled = fs::read_to_string(root.join(COMPILED)).map_err(Error::io("read", COMPILED))?;
    let mut problems = check_pages(&pages, &compiled, |path| root.join(path).exists());
    println!("{} pages: {} problems", pages.len(), problems.len());
    if let Some(mdbook) = mdbook {
        let status = Command::new(mdbook).arg("build").arg(root.join(BOOK)).status();
        if !status.map_err(Error::io("run", mdbook))?.success() {
            problems.push(String::from("mdBook failed"));
        }
        let folder = workspace.target_directory.join("book");
        let html = files_below(&folder, "html")?;
        let mut texts = BTreeMap::new();
        for path in html {
            let text = fs::read_to_string(folder.join(&path)).map_err(Error::io("read", &path))?;
            texts.insert(path, text);
        }
        let found = check_html(&texts, |path| folder.join(path).exists());
        println!("{} pages of the book: {} problems", texts.len(), found.len());
        problems.extend(found);
    }
    for problem in &problems {
        println!("{problem}");
    }
    if problems.is_empty() { Ok(()) } else { Err(Error::BrokenPages { count: problems.len() }) }
}

/// Returns all pages, from the root of the workspace.
fn markdown_files(root: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files: Vec<PathBuf> =
        OTHER_PAGES.iter().map(PathBuf::from).filter(|path| root.join(path).is_file()).collect();
    let in_book = files_below(&root.join(BOOK), "md")?;
    files.extend(in_book.into_iter().map(|path| Path::new(BOOK).join(path)).filter(|path| path != Path::new(TEMPLATE)));
    Ok(files)
}

/// Returns the files with this extension below a folder, relative to it, without those of builds.
fn files_below(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, Error> {
    let (mut files, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(current) = folders.pop() {
        let path = folder.join(&current);
        for entry in fs::read_dir(&path).map_err(Error::io("read", &path))? {
            let entry = entry.map_err(Error::io("read", &path))?;
            let relative = current.join(entry.file_name());
            if entry.path().is_dir() {
                if entry.file_name() != "target" {
                    folders.push(relative);
                }
            } else if relative.extension().is_some_and(|own| own == extension) {
                files.push(relative);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Checks the pages of Markdown. `exists` tells whether another file or folder exists.
fn check_pages(pages: &BTreeMap<PathBuf, String>, compiled: &str, exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut problems = Vec::new();
    let anchors: BTreeMap<&Path, BTreeSet<String>> =
        pages.iter().map(|(path, text)| (path.as_path(), headings(text))).collect();
    let mut in_summary = BTreeSet::new();
    for (path, text) in pages {
        let is_in_book = path.starts_with(BOOK);
        for (line, link) in links(text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let problem = |what: &str| format!("{}:{line}: {link}: {what}", path.display());
            let (file, anchor) =
                link.split_once('#').map_or((link.as_str(), None), |(file, anchor)| (file, Some(anchor)));
            let target = if file.is_empty() { Some(path.clone()) } else { beside(path, file) };
            let Some(target) = target.filter(|target| !is_in_book || target.starts_with(BOOK)) else {
                problems.push(problem("leads out of the book"));
                continue;
            };
            if path == Path::new(SUMMARY) {
                in_summary.insert(target.clone());
            }
            if !pages.contains_key(&target) && !exists(&target) {
                problems.push(problem("no such file"));
            } else if let (Some(anchor), Some(known)) = (anchor, anchors.get(target.as_path()))
                && !known.contains(anchor)
            {
                problems.push(problem("no such heading"));
            }
        }
        problems.extend(code_problems(path, text, compiled));
    }
    for path in pages.keys().filter(|path| path.starts_with(BOOK) && *path != Path::new(SUMMARY)) {
        if !in_summary.contains(path) {
            problems.push(format!("{}: not in {SUMMARY}", path.display()));
        }
    }
    problems
}

/// Checks that the Rust code of a page is compiled.
fn code_problems(path: &Path, text: &str, compiled: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut fences = text.lines().enumerate().filter(|(_, line)| line.starts_with("```rust"));
    let elsewhere = COMPILED_ELSEWHERE.iter().any(|other| path == Path::new(other));
    if path.starts_with(BOOK) && !elsewhere {
        let name = path.strip_prefix(BOOK).unwrap_or(path);
        let is_named = compiled.contains(&format!("\"{}\"", name.display()));
        if !is_named && fences.clone().next().is_some() {
            problems.push(format!("{}: has Rust code, but is not named in {COMPILED}", path.display()));
        }
    }
    if let Some((line, _)) = fences.find(|(_, line)| line.contains("ignore")) {
        problems.push(format!("{}:{}: code that is not compiled", path.display(), line + 1));
    }
    problems
}

/// Returns the path of a link that stands in the page `from`, without `..`.
fn beside(from: &Path, link: &str) -> Option<PathBuf> {
    let mut path = from.parent()?.to_path_buf();
    for part in Path::new(link).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir if path.pop() => {}
            _ => return None,
        }
    }
    Some(path)
}

/// Returns the lines outside code blocks, with their numbers, and without inline code.
fn prose(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut in_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
            return None;
        }
        let words: String = line.split('`').step_by(2).collect::<Vec<_>>().join("``");
        (!in_code).then_some((index + 1, words))
    })
}

/// Returns the targets of inline links and images, with the numbers of their lines.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        for part in line.split("](").skip(1) {
            if let Some((target, _)) = part.split_once(')') {
                found.push((number, target.to_owned()));
            }
        }
    }
    found
}

/// Returns the anchors of the headings of a page.
fn headings(text: &str) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        let title = line.trim_start_matches('#');
        if in_code || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let slug = slug(title);
        let free = (0..).map(|n| if n == 0 { slug.clone() } else { format!("{slug}-{n}") });
        known.extend(free.into_iter().find(|anchor| !known.contains(anchor)));
    }
    known
}

/// Returns the anchor of a heading: lower case, hyphens for spaces, and no other punctuation.
fn slug(title: &str) -> String {
    let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase()
}

/// Checks the links of the built pages. `exists` tells whether another file exists.
fn check_html(pages: &BTreeMap<PathBuf, String>, exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let anchors: BTreeMap<&Path, BTreeSet<&str>> =
        pages.iter().map(|(path, text)| (path.as_path(), attributes(text, "id").collect())).collect();
    let mut problems = BTreeSet::new();
    for (path, text) in pages {
        // All chapters in one page: their anchors may clash, and nothing links to it. The page for unknown addresses
        // has absolute links.
        if [Path::new("print.html"), Path::new("404.html"), Path::new("toc.html")].contains(&path.as_path()) {
            continue;
        }
        for link in attributes(text, "href").chain(attributes(text, "src")) {
            if link.contains("://") || link.starts_with("data:") || link.is_empty() {
                continue;
            }
            let problem = |what: &str| format!("book/{}: {link}: {what}", path.display());
            let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
            let target = if file.is_empty() { Some(path.clone()) } else { beside(path, file) };
            let Some(target) = target.filter(|target| exists(target)) else {
                problems.insert(problem("no such file"));
                continue;
            };
            if let (Some(anchor), Some(known)) = (anchor, anchors.get(target.as_path()))
                && !known.contains(anchor)
            {
                problems.insert(problem("no such heading"));
            }
        }
    }
    problems.into_iter().collect()
}

/// Returns the values of an attribute.
fn attributes<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(" ").filter_map(move |word| {
        let value = word.strip_prefix(name)?.strip_prefix("=\"")?;
        value.split_once('"').map(|(value, _)| value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(pages: &[(&str, &str)]) -> BTreeMap<PathBuf, String> {
        pages.iter().map(|&(path, text)| (PathBuf::from(path), text.to_owned())).collect()
    }

    fn problems(list: &[(&str, &str)]) -> Vec<String> {
        check_pages(&pages(list), "a \"code.md\"", |path| path == Path::new("docs/a.svg"))
    }

    #[test]
    fn good_pages_have_no_problems() {
        let found = problems(&[
            ("docs/SUMMARY.md", "[a](a.md) [code](code.md) [own](own/README.md)"),
            (
                "docs/a.md",
                "# A, and `b`: c\n## Twice\n## Twice\n[x](#twice-1) ![](a.svg) [far](https://example.org/#a)",
            ),
            ("docs/code.md", "```rust\n[no](link.md)\n```\n`[no](link.md)` [a\nb](a.md#a-and-b-c)"),
            ("docs/own/README.md", "[up](../a.md)"),
            ("README.md", "[in](docs/a.md#twice)\n```rust\n```"),
        ]);
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn each_problem_is_found() {
        let summary = ("docs/SUMMARY.md", "[a](a.md)");
        for (text, problem) in [
            ("[x](gone.md)", "docs/a.md:1: gone.md: no such file"),
            ("\n[x](#gone)", "docs/a.md:2: #gone: no such heading"),
            ("# B\n[x](a.md#c)", "docs/a.md:2: a.md#c: no such heading"),
            ("[x](../src/lib.rs)", "docs/a.md:1: ../src/lib.rs: leads out of the book"),
            ("[x](../../../y)", "docs/a.md:1: ../../../y: leads out of the book"),
            ("```rust\n```", "docs/a.md: has Rust code, but is not named in docs/pages.rs"),
        ] {
            assert_eq!(problems(&[summary, ("docs/a.md", text)]), [problem]);
        }
        let found = problems(&[("docs/SUMMARY.md", ""), ("docs/code.md", "\n```rust,ignore\n```")]);
        assert_eq!(found, ["docs/code.md:2: code that is not compiled", "docs/code.md: not in docs/SUMMARY.md"]);
    }

    #[test]
    fn links_of_built_pages() {
        let built = pages(&[
            (
                "index.html",
                "<a href=\"b.html#x\">b</a> <img src=\"gone.svg\"> <a href=\"https://example.org/\">far</a>",
            ),
            ("b.html", "<h2 id=\"y\"></h2> <a class=\"q\" href=\"#y\">y</a>"),
        ]);
        let found = check_html(&built, |path| built.contains_key(path));
        assert_eq!(found, ["book/index.html: b.html#x: no such heading", "book/index.html: gone.svg: no such file"]);
    }
}
