//! `cargo xtask kernel-page`: writes the page that lists which kernels exist, from their names and their PTX.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use gpu_kernel_builder::Manifest;

use crate::error::Error;
use crate::workspace::Workspace;

/// The page, from the root of the workspace.
const PAGE: &str = "docs/kernel-list.md";
/// The package whose kernels are listed.
const PACKAGE: &str = "gpu-primitives";

/// What the names of types in a kernel's name say about sizes.
const TYPES: [(&str, &str); 14] = [
    ("unit", "–"),
    ("u8", "1"),
    ("u16", "2"),
    ("u32", "4"),
    ("u64", "8"),
    ("u32x3", "12"),
    ("u64x2", "16"),
    ("u128", "16"),
    ("line", "16"),
    ("u64x4", "32"),
    ("i8", "1"),
    ("i16", "2"),
    ("i32", "4"),
    ("i64", "8"),
];

/// What the holes of a kernel are for.
const HOLES: [(&str, &str); 7] = [
    ("less", "any order"),
    ("equal", "any equality"),
    ("combine", "any operation"),
    ("test", "any predicate"),
    ("bucket", "any bucket function"),
    ("code", "any code"),
    ("load", "any source"),
];

/// What else a kernel's name says about its function.
const FUNCTIONS: [(&str, &str); 3] =
    [("within", "in segments"), ("flags", "flags"), ("digits", "the digits of a number")];

/// Returns whether a kernel has a hole for this function. The number of elements that it loads at once may follow the name.
fn has_hole(ptx: &str, function: &str) -> bool {
    let names = ptx.split("hole.").skip(1).filter_map(|hole| hole.split('.').next());
    names.map(|name| name.trim_end_matches(|digit: char| digit.is_ascii_digit())).any(|name| name == function)
}

pub fn run(check: bool) -> Result<(), Error> {
    let workspace = Workspace::load()?;
    let package = workspace.kernel_crates(&[PACKAGE.into()])?.remove(0);
    let folder = package.dir().join("ptx");
    let mut kernels = Vec::new();
    for name in Manifest::read(&folder)?.kernels.into_keys() {
        let path = folder.join(format!("{name}.ptx"));
        let ptx = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
        kernels.push((name, ptx));
    }
    let page = page(&kernels);
    workspace.write_page(PAGE, &page, "kernel-page", check)
}

/// Returns the page for kernels of these names, with their PTX.
fn page(kernels: &[(String, String)]) -> String {
    let mut rows: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for (name, ptx) in kernels {
        let (kernel, sizes, words) = parts(name);
        let holes = HOLES.iter().filter(|(hole, _)| has_hole(ptx, hole)).map(|(_, text)| *text);
        let functions: Vec<&str> = holes.chain(words).collect();
        let function = if functions.is_empty() { "–".into() } else { functions.join(", ") };
        let sizes = if sizes.is_empty() { "any".into() } else { sizes.join(" + ") };
        let row = rows.entry((kernel, function)).or_default();
        if !row.contains(&sizes) {
            row.push(sizes);
        }
    }
    let number = |size: &str| size.parse::<u32>().unwrap_or(0);
    for row in rows.values_mut() {
        row.sort_by_key(|sizes| sizes.split(" + ").map(number).collect::<Vec<_>>());
    }
    let mut page = String::from(
        "# The kernels of gpu-primitives\n\n\
         This page is written by `cargo xtask kernel-page` from the compiled kernels and their names. A kernel exists for elements\n\
         of a size in bytes, not of a type: `4 + 8` stands for keys of 4 bytes with values of 8, `4 + –` for keys alone. Elements of\n\
         another size are held in the next larger one, and values of another size are moved by index: see\n\
         [Operators](operators.md). So every type of up to 32 bytes runs with every operator of its own, on every device.\n\n\
         | kernel | sizes in bytes | function |\n| --- | --- | --- |\n",
    );
    for ((kernel, function), sizes) in rows {
        let _ = writeln!(page, "| `{kernel}` | {} | {function} |", sizes.join(", "));
    }
    page
}

/// Splits a kernel's name into the kernel, the sizes of its types, and what it says about the function.
fn parts(name: &str) -> (String, Vec<&'static str>, Vec<&'static str>) {
    let (mut kernel, mut sizes) = (Vec::new(), Vec::new());
    // A kernel without other types: that it reads a source is seen in its PTX.
    let name = name.strip_suffix("_source_arg").unwrap_or(name);
    let mut rest: Vec<&str> = name.split('_').collect();
    let size_of = |word: &str| TYPES.iter().find(|(name, _)| *name == word).map(|(_, size)| *size);
    let said = |word: &str| FUNCTIONS.iter().find(|(name, _)| *name == word).map(|(_, text)| *text);
    // What follows the first type or a constant is not the kernel's name.
    while let Some(word) = rest.first().copied().filter(|word| size_of(word).is_none() && *word != "threads") {
        kernel.push(word);
        rest.remove(0);
    }
    while let Some(size) = rest.first().and_then(|word| size_of(word)) {
        sizes.push(size);
        rest.remove(0);
    }
    let mut words: Vec<&str> = rest.into_iter().filter_map(said).collect();
    words.reverse();
    (kernel.join("_"), sizes, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read() {
        for (name, kernel, sizes, words) in [
            ("merge_tiles_u32x3_u32_hole_order_threads", "merge_tiles", &["12", "4"][..], &[][..]),
            ("scan_tiles_u8_hole_monoid_u8_256_4_9", "scan_tiles", &["1"], &[]),
            ("select_tiles_u64_unit_within_hole_predicate_256_8", "select_tiles", &["8", "–"], &["in segments"]),
            ("select_tiles_u32_unit_within_flags_256_4_8", "select_tiles", &["4", "–"], &["flags", "in segments"]),
            ("large_pass_u128_u32_digits", "large_pass", &["16", "4"], &["the digits of a number"]),
            ("copy_lines", "copy_lines", &[], &[]),
            ("sum_bins_source_arg", "sum_bins", &[], &[]),
        ] {
            assert_eq!(parts(name), (kernel.to_owned(), sizes.to_vec(), words.to_vec()), "{name}");
        }
    }

    #[test]
    fn kernels_of_one_name_share_a_row() {
        let page = page(
            &["merge_tiles_u32_u32_hole_order_threads", "merge_tiles_u32_unit_hole_order_threads"]
                .map(|name| (name.to_owned(), "hole.less.b32x1.b32x1 %r3, %r1, %r2;".to_owned())),
        );
        assert!(page.ends_with("| `merge_tiles` | 4 + –, 4 + 4 | any order |\n"), "{page}");
    }
}
