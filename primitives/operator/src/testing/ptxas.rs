//! NVIDIA's assembler, if there is one.

use std::process::Command;

/// The generations that modules are assembled for: the oldest and the newest that a current `ptxas` takes, and one
/// between them.
const ARCHS: [&str; 3] = ["sm_75", "sm_90", "sm_120"];

/// Assembles a module with the `ptxas` that the environment variable `PTXAS` names, for each generation. Returns
/// whether there is one.
///
/// # Panics
/// If `ptxas` does not take the module.
pub(super) fn assemble(name: &str, module: &str) -> bool {
    let Some(program) = std::env::var_os("PTXAS").filter(|path| !path.is_empty()) else {
        println!("{name}: skipped, because PTXAS names no ptxas");
        return false;
    };
    let folder = std::env::temp_dir();
    let file = |end: &str| folder.join(format!("gpu-operator-{}-{name}.{end}", std::process::id()));
    let (source, binary) = (file("ptx"), file("cubin"));
    std::fs::write(&source, module).expect("a file in the temporary folder");
    for arch in ARCHS {
        let mut command = Command::new(&program);
        command.arg(format!("-arch={arch}")).arg("-O1").arg(&source).arg("-o").arg(&binary);
        let output = command.output().expect("a ptxas that can be run");
        let _ = std::fs::remove_file(&binary);
        let text = String::from_utf8_lossy(&output.stderr);
        let first: Vec<&str> = text.lines().take(20).collect();
        assert!(output.status.success(), "ptxas refuses {} for {arch}:\n{}", source.display(), first.join("\n"));
    }
    let _ = std::fs::remove_file(&source);
    true
}
