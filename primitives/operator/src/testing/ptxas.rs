//! NVIDIA's assembler, if there is one.

use std::process::Command;

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
    let arch = std::env::var("PTXAS_ARCH").unwrap_or_else(|_| "sm_75".to_owned());
    let output =
        Command::new(program).arg(format!("-arch={arch}")).arg("-O1").arg(&source).arg("-o").arg(&binary).output();
    let _ = std::fs::remove_file(&binary);
    let output = output.expect("a ptxas that can be run");
    let text = String::from_utf8_lossy(&output.stderr);
    let first: Vec<&str> = text.lines().take(20).collect();
    assert!(output.status.success(), "ptxas refuses {}:\n{}", source.display(), first.join("\n"));
    let _ = std::fs::remove_file(&source);
    true
}
