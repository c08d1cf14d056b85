//! The record of PTX that `ptxas` has accepted. Assembling all of it for all generations takes minutes, and the answer for the
//! same text does not change.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use gpu_kernel_builder::ptxas::{ARCHS, Ptxas};

use crate::error::Error;
use crate::workspace::Workspace;

/// The PTX that was accepted, by the hashes of its text.
pub struct Assembled {
    path: PathBuf,
    /// Who accepted it: the release of `ptxas`, and the generations.
    by: String,
    hashes: BTreeSet<String>,
}

impl Assembled {
    /// Reads the record. It is empty if it was made by another release or for other generations.
    pub fn read(workspace: &Workspace, ptxas: &Ptxas) -> Result<Self, Error> {
        let path = workspace.workspace_root.join(".ci/assembled");
        let by = format!("ptxas {}, {}", ptxas.release()?, ARCHS.join(" "));
        let text =
            if path.exists() { fs::read_to_string(&path).map_err(Error::io("read", &path))? } else { String::new() };
        Ok(Self { hashes: parse(&text, &by), path, by })
    }

    /// Returns whether the PTX with this hash was accepted.
    pub fn has(&self, hash: &str) -> bool {
        self.hashes.contains(hash)
    }

    /// Writes the record anew, with only these hashes, if it differs.
    pub fn write(self, hashes: BTreeSet<String>) -> Result<(), Error> {
        if hashes == self.hashes {
            return Ok(());
        }
        let mut text = format!("{}\n", self.by);
        hashes.iter().for_each(|hash| text.extend([hash, "\n"]));
        fs::write(&self.path, text).map_err(Error::io("write", &self.path))
    }
}

fn parse(text: &str, by: &str) -> BTreeSet<String> {
    match text.split_once('\n') {
        Some((first, rest)) if first == by => rest.lines().map(str::to_owned).collect(),
        _ => BTreeSet::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn the_record_of_another_assembler_is_empty() {
        let text = "ptxas 13.0, sm_75 sm_80\nabc\ndef\n";
        assert_eq!(parse(text, "ptxas 13.0, sm_75 sm_80").into_iter().collect::<Vec<_>>(), ["abc", "def"]);
        assert!(parse(text, "ptxas 13.1, sm_75 sm_80").is_empty());
        assert!(parse(text, "ptxas 13.0, sm_75 sm_80 sm_90").is_empty());
        assert!(parse("", "ptxas 13.0, sm_75 sm_80").is_empty());
    }
}
