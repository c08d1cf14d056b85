//! The calls that lead a thread to a barrier or a collective, in checked mode.
//!
//! The line of a barrier in a helper function is the same for all callers of the helper. To see that threads came from
//! different callers, the checker also compares the return addresses on their stacks. The first thread on a path unwinds
//! its stack and remembers where the return addresses lie. Later threads find the same addresses in the same places, which
//! costs a few loads. Compilers copy code, so different return addresses may stand for the same line: when two paths
//! differ, their lines decide.

use super::fault::Site;
use std::backtrace::Backtrace;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ptr;

/// A path to a line, numbered in the order of discovery by this OS thread.
pub(super) type PathId = u32;

/// The most paths that are remembered. A kernel has few of them.
const MOST: usize = 1 << 14;

#[derive(Default)]
struct Paths {
    /// By the address of the line's `Location`.
    by_site: HashMap<usize, Vec<PathId>>,
    all: Vec<Path>,
}

struct Path {
    frames: Vec<Frame>,
    trace: Backtrace,
    /// The calls as text, once they were needed.
    calls: Option<String>,
}

/// A return address on the stack.
struct Frame {
    /// Its distance from the mark that [`here`] sets on the stack.
    offset: usize,
    address: usize,
}

thread_local! {
    static PATHS: RefCell<Paths> = RefCell::default();
}

/// Returns the path of the running thread, which is about to wait at `site`. Its stack begins at `base`. `None` if paths
/// are not known on this platform.
#[inline(never)]
pub(super) fn here(site: Site, base: usize) -> Option<PathId> {
    let mark = 0u8;
    let mark = std::hint::black_box(&raw const mark).addr();
    PATHS.with_borrow_mut(|Paths { by_site, all }| {
        let known = by_site.entry(ptr::from_ref(site).addr()).or_default();
        if let Some(&id) = known.iter().find(|&&id| all[id as usize].is_at(mark, base)) {
            return Some(id);
        }
        if all.len() == MOST {
            return None;
        }
        let frames = unwind::frames(mark, base)?;
        let same = known.iter().copied().find(|&id| all[id as usize].has_addresses(&frames));
        same.or_else(|| {
            let id = all.len() as PathId;
            all.push(Path { frames, trace: Backtrace::force_capture(), calls: None });
            known.push(id);
            Some(id)
        })
    })
}

/// Returns the innermost call in which two paths differ, for each of them. `None` if their lines are the same or unknown.
pub(super) fn difference(a: PathId, b: PathId) -> Option<(String, String)> {
    if a == b {
        return None;
    }
    PATHS.with_borrow_mut(|paths| {
        let mut calls = |id: PathId| {
            let path = &mut paths.all[id as usize];
            path.calls.get_or_insert_with(|| calls(&path.trace)).clone()
        };
        let (a, b) = (calls(a), calls(b));
        let differs = |(a, b): &(&str, &str)| a != b;
        a.lines().zip(b.lines()).find(differs).map(|(a, b)| (a.to_owned(), b.to_owned()))
    })
}

/// Returns the lines of the calls between the kernel and its executor, innermost first.
fn calls(trace: &Backtrace) -> String {
    let text = trace.to_string();
    let of_kernel = text.lines().take_while(|line| !line.contains("run_threads")).map(str::trim);
    of_kernel.filter_map(|line| line.strip_prefix("at ")).collect::<Vec<_>>().join("\n")
}

impl Path {
    /// Returns whether the stack above `mark` has the return addresses of this path.
    fn is_at(&self, mark: usize, base: usize) -> bool {
        self.frames.iter().all(|frame| {
            let slot = mark + frame.offset;
            // SAFETY: the stack of the running thread is mapped between the mark and its base.
            slot < base && unsafe { ptr::with_exposed_provenance::<usize>(slot).read_volatile() } == frame.address
        })
    }

    fn has_addresses(&self, frames: &[Frame]) -> bool {
        self.frames.iter().map(|frame| frame.address).eq(frames.iter().map(|frame| frame.address))
    }
}

/// The unwinder that the standard library also uses.
#[cfg(all(unix, target_arch = "x86_64"))]
mod unwind {
    use super::Frame;
    use std::ffi::{c_int, c_void};
    use std::ptr;

    const NO_REASON: c_int = 0;
    const END_OF_STACK: c_int = 5;

    unsafe extern "C-unwind" {
        fn _Unwind_Backtrace(
            visit: unsafe extern "C-unwind" fn(*mut c_void, *mut c_void) -> c_int,
            argument: *mut c_void,
        ) -> c_int;
        fn _Unwind_GetIP(context: *mut c_void) -> usize;
        fn _Unwind_GetCFA(context: *mut c_void) -> usize;
    }

    struct Walk {
        mark: usize,
        base: usize,
        frames: Vec<Frame>,
    }

    /// # Safety
    /// Called by the unwinder, with a `Walk`.
    unsafe extern "C-unwind" fn visit(context: *mut c_void, walk: *mut c_void) -> c_int {
        // SAFETY: guaranteed by the caller.
        let (walk, address, above) =
            unsafe { (&mut *walk.cast::<Walk>(), _Unwind_GetIP(context), _Unwind_GetCFA(context)) };
        if above >= walk.base {
            return END_OF_STACK;
        }
        let slot = above - size_of::<usize>();
        // SAFETY: the unwinder has just read the return address there.
        if slot > walk.mark && unsafe { ptr::with_exposed_provenance::<usize>(slot).read_volatile() } == address {
            walk.frames.push(Frame { offset: slot - walk.mark, address });
        }
        NO_REASON
    }

    /// Returns the return addresses on the stack between `mark` and `base`.
    pub(super) fn frames(mark: usize, base: usize) -> Option<Vec<Frame>> {
        let mut walk = Walk { mark, base, frames: Vec::new() };
        // SAFETY: `visit` takes a `Walk`.
        unsafe { _Unwind_Backtrace(visit, (&raw mut walk).cast()) };
        Some(walk.frames)
    }
}

#[cfg(not(all(unix, target_arch = "x86_64")))]
mod unwind {
    pub(super) fn frames(_: usize, _: usize) -> Option<Vec<super::Frame>> {
        None
    }
}
