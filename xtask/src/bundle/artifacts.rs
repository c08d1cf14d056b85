//! The executables that a cargo run has built, read from its messages.

use std::path::PathBuf;

use serde::Deserialize;

use crate::error::Error;
use crate::workspace::Target;

/// An executable built by cargo.
pub struct Artifact {
    pub package_id: String,
    pub target: Target,
    pub executable: PathBuf,
    /// Whether it contains a test harness.
    pub is_test: bool,
}

#[derive(Deserialize)]
struct Message {
    reason: String,
    package_id: Option<String>,
    target: Option<Target>,
    executable: Option<PathBuf>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// Returns the executables in the output of `cargo {arguments}`.
pub fn executables(messages: &[u8], arguments: &str) -> Result<Vec<Artifact>, Error> {
    let mut found = Vec::new();
    for line in messages.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let message: Message =
            serde_json::from_slice(line).map_err(|source| Error::CargoJson { arguments: arguments.into(), source })?;
        let Message {
            reason,
            package_id: Some(package_id),
            target: Some(target),
            executable: Some(executable),
            profile,
        } = message
        else {
            continue;
        };
        if reason == "compiler-artifact" {
            let is_test = profile.is_some_and(|profile| profile.test);
            found.push(Artifact { package_id, target, executable, is_test });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_are_found_among_other_messages() {
        let messages = br#"{"reason":"compiler-artifact","package_id":"p","target":{"name":"k","kind":["lib"]},"executable":null,"profile":{"test":false}}
{"reason":"compiler-artifact","package_id":"p","target":{"name":"scan","kind":["test"]},"executable":"/t/scan-1","profile":{"test":true}}
{"reason":"build-script-executed","package_id":"p","linked_libs":[]}
{"reason":"build-finished","success":true}
"#;
        let found = executables(messages, "test").unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].executable.to_str(), found[0].is_test), (Some("/t/scan-1"), true));
        assert!(found[0].target.is("test"));
    }

    #[test]
    fn nonsense_names_the_command() {
        let message = executables(b"hello\n", "test --no-run").err().unwrap().to_string();
        assert!(message.contains("`cargo test --no-run`"), "{message}");
    }
}
