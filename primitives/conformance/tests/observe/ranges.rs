//! Ranges of NVTX, with a profiler that prints them.

use gpu_primitives::{Device, reduce};
use std::env;
use std::fs;
use std::process::Command;

/// A profiler: it prints the ranges that are pushed and popped.
const PROFILER: &str = r#"
    use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

    type Table = *const *mut *const c_void;

    #[repr(C)]
    struct Callbacks {
        size: usize,
        functions: unsafe extern "C" fn(c_uint, *mut Table, *mut c_uint) -> c_int,
    }

    #[repr(C)]
    struct Attributes {
        version: u16,
        size: u16,
        before_payload: [u32; 4],
        reserved: u32,
        payload: u64,
        message_type: u32,
        message: *const c_char,
    }

    unsafe extern "C" fn push(range: *const Attributes) -> c_int {
        let range = unsafe { &*range };
        assert_eq!((range.version, range.size, range.message_type), (3, 48, 1));
        eprintln!("push {} {}", unsafe { CStr::from_ptr(range.message) }.to_str().unwrap(), range.payload);
        0
    }

    unsafe extern "C" fn pop() -> c_int {
        eprintln!("pop");
        0
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn InitializeInjectionNvtx2(export: unsafe extern "C" fn(u32) -> *const c_void) -> c_int {
        unsafe {
            let callbacks = &*export(1).cast::<Callbacks>();
            assert_eq!(callbacks.size, 16);
            assert!(export(7).is_null());
            let (mut table, mut size): (Table, c_uint) = (std::ptr::null(), 0);
            assert_eq!((callbacks.functions)(2, &mut table, &mut size), 0);
            assert_eq!((callbacks.functions)(5, &mut table, &mut size), 1);
            assert_eq!((callbacks.functions)(1, &mut table, &mut size), 1);
            assert_eq!(size, 16);
            assert!((*table).is_null() && (*table.add(16)).is_null());
            **table.add(8) = push as *const c_void;
            **table.add(11) = pop as *const c_void;
        }
        1
    }
"#;

#[test]
fn a_profiler_sees_ranges() {
    if env::var_os("NVTX_INJECTION64_PATH").is_some() {
        // The program that is profiled: see below.
        let stream = Device::cpu().stream().unwrap();
        let numbers = stream.upload(&[1u32, 2, 3]).unwrap();
        assert_eq!(reduce::sum(&stream, &numbers).unwrap().get(&stream).unwrap(), 6);
        return;
    }
    let folder = env::temp_dir().join(format!("gpu-primitives-ranges-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (source, library) = (folder.join("profiler.rs"), folder.join("libprofiler.so"));
    fs::write(&source, PROFILER).unwrap();
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let compiled =
        Command::new(rustc).args(["--edition=2024", "--crate-type=cdylib", "-o"]).arg(&library).arg(&source).status();
    let Ok(compiled) = compiled else {
        eprintln!("skipped: there is no compiler for the profiler");
        return;
    };
    assert!(compiled.success());
    let profiled = Command::new(env::current_exe().unwrap())
        .args(["--exact", "ranges::a_profiler_sees_ranges", "--nocapture", "--test-threads=1"])
        .env("NVTX_INJECTION64_PATH", &library)
        .output()
        .unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let printed = String::from_utf8(profiled.stderr).unwrap();
    assert!(profiled.status.success(), "{printed}");
    let lines: Vec<_> = printed.lines().filter(|line| line.starts_with("push") || line.starts_with("pop")).collect();
    assert_eq!(lines, ["push reduce::sum 3", "push reduce::reduce 3", "pop", "pop"]);
}
