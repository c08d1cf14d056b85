//! Launch bounds: rustc cannot express them, so kernels have a static for them, which is written into the PTX here.

use crate::Error;
use crate::module::{Item, ItemKind};

/// The static of the kernel `NAME` is called `__launch_bounds_NAME`.
const PREFIX: &str = "__launch_bounds_";

/// The number of threads per block, and the number of blocks that must fit on a multiprocessor. Zero means no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaunchBounds {
    pub threads: u32,
    pub min_blocks: u32,
}

impl LaunchBounds {
    /// Returns the kernel whose bounds an item states; `None` for any other item.
    pub fn kernel_of(item: &Item) -> Option<&str> {
        if item.kind == ItemKind::Variable { item.name.strip_prefix(PREFIX) } else { None }
    }

    /// Reads the bounds from `.visible .global .align 4 .b8 __launch_bounds_NAME[8] = {0, 1, 0, 0, 4};`.
    ///
    /// The compiler chooses the width of the elements. It omits trailing zeros, and the whole initialiser if all
    /// elements are zero.
    pub fn parse(kernel: &str, item: &Item) -> Result<Self, Error> {
        let error = |reason: String| Error::LaunchBounds { kernel: kernel.into(), reason };
        let declaration = item.text.split(['[', '=', ';']).next().unwrap_or_default();
        let width = declaration
            .split_whitespace()
            .find_map(|word| match word {
                ".b8" | ".u8" | ".s8" => Some(1),
                ".b16" | ".u16" | ".s16" => Some(2),
                ".b32" | ".u32" | ".s32" => Some(4),
                ".b64" | ".u64" | ".s64" => Some(8),
                _ => None,
            })
            .ok_or_else(|| error(format!("no element type in `{}`", item.text)))?;
        let values = match item.text.split_once('=') {
            Some((_, values)) => values.trim().trim_matches(['{', '}', ';', ' ']),
            None => "",
        };
        let mut bytes = Vec::new();
        for value in values.split(',').map(str::trim).filter(|value| !value.is_empty()) {
            let value: i128 = value.parse().map_err(|_| error(format!("`{value}` is not a number")))?;
            bytes.extend_from_slice(&value.to_le_bytes()[..width]);
        }
        if bytes.len() > 8 {
            return Err(error(format!("the static has {} bytes, but [u32; 2] has 8", bytes.len())));
        }
        bytes.resize(8, 0);
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let bounds = Self { threads: word(0), min_blocks: word(4) };
        if bounds.threads > 1024 {
            return Err(error(format!("{} threads per block, but at most 1024 are possible", bounds.threads)));
        }
        if bounds.threads == 0 && bounds.min_blocks > 0 {
            return Err(error(format!("{} minimum blocks, but 0 threads per block", bounds.min_blocks)));
        }
        Ok(bounds)
    }

    /// Inserts the bounds into the text of an entry, between its parameters and its body.
    pub fn insert(self, entry: &str) -> String {
        // Parameters contain no braces, so the first brace opens the body. Bounds from the compiler are kept.
        let Some(body) = entry.find('{') else { return entry.into() };
        let (head, body) = entry.split_at(body);
        if self.threads == 0 || head.contains(".maxntid") || head.contains(".reqntid") {
            return entry.into();
        }
        let mut text = format!("{}\n.maxntid {}, 1, 1\n", head.trim_end(), self.threads);
        if self.min_blocks > 0 {
            text += &format!(".minnctapersm {}\n", self.min_blocks);
        }
        text + body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(declaration: &str) -> Result<LaunchBounds, Error> {
        let item =
            Item { kind: ItemKind::Variable, name: "__launch_bounds_k".into(), text: declaration.replace("NAME", "k") };
        LaunchBounds::parse("k", &item)
    }

    #[test]
    fn every_way_to_print_the_static_is_read() {
        for (values, threads, min_blocks) in [
            (".b8 NAME[8] = {0, 1, 0, 0, 4};", 256, 4),
            (".b8 NAME[8] = {0, 1, 0, 0, 4, 0, 0, 0};", 256, 4),
            (".b8 NAME[8] = {0, 1};", 256, 0),
            (".b8 NAME[8];", 0, 0),
            (".b32 NAME[2] = {1024, 1};", 1024, 1),
            (".u32 NAME[2] = {128};", 128, 0),
            (".b64 NAME = 8589934720;", 128, 2),
            (".b64 NAME[1] = {8589934720};", 128, 2),
        ] {
            let bounds = parse(&format!(".visible .global .align 4 {values}")).unwrap();
            assert_eq!(bounds, LaunchBounds { threads, min_blocks }, "{values}");
        }
    }

    #[test]
    fn impossible_bounds_are_errors_that_name_the_kernel() {
        for values in
            [".b32 NAME[2] = {2048};", ".b32 NAME[2] = {0, 3};", ".b32 NAME[3] = {1, 2, 3};", ".b8 NAME[8] = {x};"]
        {
            let message = parse(&format!(".visible .global .align 4 {values}")).unwrap_err().to_string();
            assert!(message.contains("kernel `k`"), "{message}");
        }
    }

    #[test]
    fn bounds_stand_between_parameters_and_body() {
        let entry = ".visible .entry k(\n\t.param .u32 k_param_0\n)\n{\n\tret;\n}";
        let with = |threads, min_blocks| LaunchBounds { threads, min_blocks }.insert(entry);
        assert_eq!(
            with(256, 4),
            ".visible .entry k(\n\t.param .u32 k_param_0\n)\n.maxntid 256, 1, 1\n.minnctapersm 4\n{\n\tret;\n}"
        );
        assert_eq!(with(32, 0), ".visible .entry k(\n\t.param .u32 k_param_0\n)\n.maxntid 32, 1, 1\n{\n\tret;\n}");
        assert_eq!(with(0, 0), entry);
        let again = LaunchBounds { threads: 64, min_blocks: 0 }.insert(&with(256, 4));
        assert_eq!(again, with(256, 4), "existing bounds are kept");
    }
}
