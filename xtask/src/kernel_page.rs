//! `cargo xtask kernel-page`: writes the page that lists which kernels exist, from the names of the kernels themselves.

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

/// What a kernel takes in the place of a function.
const FUNCTIONS: [(&str, &str); 9] = [
    ("within_hole_predicate", "any predicate, in segments"),
    ("within_flags", "flags, in segments"),
    ("hole_order", "any order"),
    ("hole_monoid", "any operation"),
    ("hole_predicate", "any predicate"),
    ("hole_buckets", "any bucket function"),
    ("flags", "flags"),
    ("digits", "the digits of a number"),
    ("", "–"),
];

pub fn run(check: bool) -> Result<(), Error> {
    let workspace = Workspace::load()?;
    let package = workspace.kernel_crates(&[PACKAGE.into()])?.remove(0);
    let names: Vec<String> = Manifest::read(package.dir().join("ptx"))?.kernels.into_keys().collect();
    let page = page(&names);
    let path = workspace.workspace_root.join(PAGE);
    if check {
        let present = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
        return if present == page { Ok(()) } else { Err(Error::PageDiffers { page: PAGE }) };
    }
    fs::write(&path, page).map_err(Error::io("write", &path))
}

/// Returns the page for kernels of these names.
fn page(names: &[String]) -> String {
    let mut rows: BTreeMap<(String, &str), Vec<String>> = BTreeMap::new();
    for name in names {
        let (kernel, sizes, function) = parts(name);
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
         This page is written by `cargo xtask kernel-page` from the names of the compiled kernels. A kernel exists for elements of\n\
         a size in bytes, not of a type: `4 + 8` stands for keys of 4 bytes with values of 8, `4 + –` for keys alone. Elements of\n\
         another size are held in the next larger one, and values of another size are moved by index: see\n\
         [Operators](operators.md). So every type of up to 32 bytes runs with every operator of its own, on every device.\n\n\
         | kernel | sizes in bytes | function |\n| --- | --- | --- |\n",
    );
    for ((kernel, function), sizes) in rows {
        // The only function of these kernels is not in their name.
        let function = match kernel.as_str() {
            "encode_keys" => "any code",
            "number_keys" => "any bucket function",
            _ => function,
        };
        let _ = writeln!(page, "| `{kernel}` | {} | {function} |", sizes.join(", "));
    }
    page
}

/// Splits a kernel's name into the kernel, the sizes of its types, and its function.
fn parts(name: &str) -> (String, Vec<&'static str>, &'static str) {
    let (mut kernel, mut sizes) = (Vec::new(), Vec::new());
    let mut rest: Vec<&str> = name.split('_').collect();
    let size_of = |word: &str| TYPES.iter().find(|(name, _)| *name == word).map(|(_, size)| *size);
    while let Some(word) = rest.first().copied().filter(|word| size_of(word).is_none()) {
        // What follows the first type, the function or a constant is not the kernel's name.
        if word == "threads"
            || FUNCTIONS.iter().any(|(function, _)| !function.is_empty() && rest.join("_").starts_with(function))
        {
            break;
        }
        kernel.push(word);
        rest.remove(0);
    }
    while let Some(size) = rest.first().and_then(|word| size_of(word)) {
        sizes.push(size);
        rest.remove(0);
    }
    let rest = rest.join("_");
    let function = FUNCTIONS.iter().find(|(function, _)| rest.starts_with(function)).map_or("–", |(_, text)| *text);
    (kernel.join("_"), sizes, function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read() {
        for (name, kernel, sizes, function) in [
            ("merge_tiles_u32x3_u32_hole_order_threads", "merge_tiles", &["12", "4"][..], "any order"),
            ("scan_tiles_u8_hole_monoid_u8_256_4_9", "scan_tiles", &["1"], "any operation"),
            (
                "select_tiles_u64_unit_within_hole_predicate_256_8",
                "select_tiles",
                &["8", "–"],
                "any predicate, in segments",
            ),
            ("large_pass_u128_u32_digits", "large_pass", &["16", "4"], "the digits of a number"),
            ("copy_lines", "copy_lines", &[], "–"),
        ] {
            assert_eq!(parts(name), (kernel.to_owned(), sizes.to_vec(), function), "{name}");
        }
    }

    #[test]
    fn kernels_of_one_name_share_a_row() {
        let page = page(
            &["merge_tiles_u32_u32_hole_order_threads", "merge_tiles_u32_unit_hole_order_threads"].map(String::from),
        );
        assert!(page.ends_with("| `merge_tiles` | 4 + –, 4 + 4 | any order |\n"), "{page}");
    }
}
