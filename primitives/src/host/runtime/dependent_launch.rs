//! Launching a kernel before the one before it has ended (programmatic dependent launch).
//!
//! Between two kernels of a stream a GPU is idle for a microsecond or more: the second one is launched when the last block of the
//! first one has ended. From compute capability 9.0 on, a launch may say that this is not necessary. Its blocks then start in places
//! that the last blocks of the first kernel leave, and wait there.
//!
//! Every kernel begins with two instructions for that, which its PTX gets when it is loaded:
//!
//! - `griddepcontrol.wait` waits until the kernel before has ended and its writes are visible. So the order of a stream is as it
//!   always was. It also holds for more than two kernels: the kernel before has itself waited for the one before it, and ends later.
//! - `griddepcontrol.launch_dependents` lets the next kernel start when all blocks of this one have got here, or have ended. So a
//!   block that waits never has the place of a block that it waits for.
//!
//! Launches into a graph are ordinary ones, for which both instructions do nothing.

/// The oldest GPUs that have these instructions.
pub(crate) const OLDEST_CAPABILITY: (u32, u32) = (9, 0);

/// The oldest driver that does this on streams which another library records: CUDA 12.3.
pub(crate) const OLDEST_DRIVER: i32 = 12_030;

/// The header of generated PTX, and one that allows the instructions.
const HEADER: &str = ".version 7.0\n.target sm_70\n";
const NEWER_HEADER: &str = ".version 7.8\n.target sm_90\n";

/// What a launch takes of a GPU.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shape {
    /// The number of blocks.
    pub(crate) blocks: u32,
    /// The shared memory of a block.
    pub(crate) shared_bytes: u32,
}

impl Shape {
    /// Returns whether to start such a kernel before the one before it has ended. Blocks that start early start where there is room,
    /// and not always where they should:
    ///
    /// - If there are no more of them than multiprocessors, they should have one each. But a kernel of more blocks leaves room here
    ///   and there, in which they would crowd. (A sort of 2^20 pairs, with one tile per multiprocessor, measured 10 % slower.)
    /// - If there are more of them, they should be spread evenly, and as many as possible should share a multiprocessor. But
    ///   it divides its memory into cache and shared memory while it has no blocks, and the kernel before may have asked for
    ///   less. If it has asked for much more, several of the new blocks take the place of each old one, and the
    ///   multiprocessors that are free first get most of them. (A merge sort of 2^24 pairs, whose searches follow merges,
    ///   measured 15 % slower in this way.) So both should need about the same.
    pub(crate) fn is_early_after(self, before: Self, multiprocessors: u32) -> bool {
        match self.blocks <= multiprocessors {
            true => before.blocks <= multiprocessors,
            false => (before.shared_bytes / 2..=before.shared_bytes).contains(&self.shared_bytes),
        }
    }
}

/// Returns a kernel that can be launched before the one before it has ended, or `None` if its header is not as expected.
pub(crate) fn waiting_for_the_previous(ptx: &str) -> Option<String> {
    let (before, after) = ptx.split_once(HEADER)?;
    let mut text = String::with_capacity(ptx.len() + 128);
    text.extend([before, NEWER_HEADER]);
    let mut is_entry = false;
    for line in after.lines() {
        // The body begins with declarations.
        is_entry |= line.starts_with(".visible .entry ");
        let is_instruction = !line.starts_with(['.', '{', ')']);
        if is_entry && is_instruction {
            text.push_str("griddepcontrol.wait;\ngriddepcontrol.launch_dependents;\n");
            is_entry = false;
        }
        text.push_str(line);
        text.push('\n');
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::{HEADER, Shape, waiting_for_the_previous};
    use crate::host::preload::instances;
    use gpu_kernel_builder::ptxas::Ptxas;

    #[test]
    fn kernels_wait_before_their_first_instruction() {
        let (parameter, declaration, first) = (".param .align 8 .b8 p0[8]", ".reg .b32 %r<2>;", "mov.u32 %r1,%tid.x;");
        let body =
            format!(".visible .entry k(\n{parameter}\n)\n.maxntid 32,1,1\n{{\n{declaration}\n{first}\nret;\n}}\n");
        let waiting = waiting_for_the_previous(&format!("// Generated\n\n{HEADER}.address_size 64\n\n{body}")).unwrap();
        assert!(waiting.starts_with("// Generated\n\n.version 7.8\n.target sm_90\n.address_size 64\n"));
        let start = format!("{declaration}\ngriddepcontrol.wait;\ngriddepcontrol.launch_dependents;\n{first}\n");
        assert!(waiting.contains(&start), "{waiting}");
        assert_eq!(waiting.matches("griddepcontrol").count(), 2);
        assert_eq!(waiting_for_the_previous(&body), None, "without the header");
    }

    #[test]
    fn all_kernels_can_wait() {
        let mut kernels = 0;
        for instance in instances() {
            let waiting = waiting_for_the_previous(&instance.ptx()).expect("the usual header");
            assert_eq!(waiting.matches("griddepcontrol").count(), 2, "{}", instance.name());
            kernels += 1;
        }
        assert!(kernels > 100, "{kernels}");
    }

    /// With the `ptxas` that the environment variable `PTXAS` names.
    #[test]
    fn waiting_kernels_assemble() {
        if std::env::var_os("PTXAS").is_none_or(|path| path.is_empty()) {
            println!("skipped, because PTXAS names no ptxas");
            return;
        }
        let (ptxas, file) = (Ptxas::find().unwrap(), std::env::temp_dir().join(format!("{}.ptx", std::process::id())));
        let kernels = instances().filter(|instance| instance.name().contains("_pass_u32_u32"));
        let mut assembled = 0;
        for instance in kernels {
            std::fs::write(&file, waiting_for_the_previous(&instance.ptx()).unwrap()).unwrap();
            for arch in ["sm_90", "sm_100", "sm_120"] {
                let usage = ptxas.assemble(arch, &file).unwrap().unwrap();
                assert_eq!(usage.problem(), None, "{} for {arch}", instance.name());
                assembled += 1;
            }
        }
        std::fs::remove_file(&file).unwrap();
        assert!(assembled >= 6, "{assembled}");
    }

    #[test]
    fn blocks_that_start_early_do_not_crowd() {
        let is_early = |before: (u32, u32), now: (u32, u32)| {
            let [before, now] = [before, now].map(|(blocks, shared_bytes)| Shape { blocks, shared_bytes });
            now.is_early_after(before, 132)
        };
        // Few blocks: after few blocks only.
        assert!(is_early((132, 0), (132, 9)) && is_early((5, 0), (5, 0)));
        assert!(!is_early((133, 9), (132, 9)) && !is_early((528, 0), (1, 0)));
        // Many blocks: after those with as much shared memory, or a little more.
        assert!(is_early((528, 9), (133, 9)) && is_early((5, 9), (133, 5)) && is_early((5, 0), (133, 0)));
        assert!(!is_early((528, 0), (133, 9)) && !is_early((5, 8), (133, 9)) && !is_early((528, 9), (133, 3)));
    }
}
