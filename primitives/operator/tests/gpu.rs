//! Every operation of the vocabulary on a GPU, compared with the native function. Without a GPU, passes immediately and
//! says so.

use gpu_operator::testing::{Case, differential_module};
use libloading::Library;
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};

/// How many random inputs each operation has in addition to the extreme ones.
const RANDOM: usize = 20_000;
const THREADS: u32 = 128;

type Status = c_int;

/// Calls a function of the driver, and panics if it fails.
macro_rules! call {
    ($driver:expr, $name:literal, fn($($type:ty),* $(,)?), $($argument:expr),* $(,)?) => {{
        // SAFETY: this is the signature of the function in the driver's API, and the arguments are valid for it.
        let status = unsafe {
            let function = $driver.get::<unsafe extern "C" fn($($type),*) -> Status>($name).expect("a function of the driver");
            function($($argument),*)
        };
        assert_eq!(status, 0, "{}", String::from_utf8_lossy($name));
    }};
}

struct Gpu {
    driver: Library,
    module: *mut c_void,
}

impl Gpu {
    /// Loads a module onto the first GPU, if there is one.
    fn load(ptx: &str) -> Option<Self> {
        // SAFETY: the driver's library has no requirements for loading it.
        let driver = unsafe { Library::new("libcuda.so.1") }.ok()?;
        let mut count = 0;
        // SAFETY: the signatures are those of the driver's API.
        let initialised = unsafe {
            let init = driver.get::<unsafe extern "C" fn(c_uint) -> Status>(b"cuInit\0").ok()?;
            init(0) == 0
        };
        if initialised {
            call!(driver, b"cuDeviceGetCount\0", fn(*mut c_int), &mut count);
        }
        if count == 0 {
            return None;
        }
        let (mut device, mut context, mut module) = (0, null_mut(), null_mut());
        call!(driver, b"cuDeviceGet\0", fn(*mut c_int, c_int), &mut device, 0);
        call!(driver, b"cuDevicePrimaryCtxRetain\0", fn(*mut *mut c_void, c_int), &mut context, device);
        call!(driver, b"cuCtxSetCurrent\0", fn(*mut c_void), context);
        let text = CString::new(ptx).unwrap();
        call!(driver, b"cuModuleLoadData\0", fn(*mut *mut c_void, *const c_void), &mut module, text.as_ptr().cast());
        Some(Self { driver, module })
    }

    fn upload(&self, bytes: &[u8]) -> u64 {
        let mut address = 0;
        call!(self.driver, b"cuMemAlloc_v2\0", fn(*mut u64, usize), &mut address, bytes.len().max(1));
        call!(
            self.driver,
            b"cuMemcpyHtoD_v2\0",
            fn(u64, *const c_void, usize),
            address,
            bytes.as_ptr().cast(),
            bytes.len()
        );
        address
    }

    /// Runs the kernel of a case on its inputs.
    fn run(&self, case: &Case, inputs: &[Vec<u8>; 3]) -> Vec<u8> {
        let count = case.input_count(inputs);
        let mut results = vec![0u8; count * case.result_size()];
        let [a, b, c] = inputs.each_ref().map(|bytes| self.upload(bytes));
        let out = self.upload(&results);
        let mut function = null_mut();
        let name = CString::new(case.entry()).unwrap();
        call!(
            self.driver,
            b"cuModuleGetFunction\0",
            fn(*mut *mut c_void, *mut c_void, *const c_char),
            &mut function,
            self.module,
            name.as_ptr()
        );
        let parameters = [a, b, c, out, count as u64];
        let mut state = [0u8; 64];
        state[..case.state().len()].copy_from_slice(case.state());
        let mut addresses: Vec<*mut c_void> =
            parameters.each_ref().map(|parameter| std::ptr::from_ref(parameter).cast_mut().cast()).to_vec();
        addresses.push(state.as_mut_ptr().cast());
        call!(
            self.driver,
            b"cuLaunchKernel\0",
            fn(
                *mut c_void,
                c_uint,
                c_uint,
                c_uint,
                c_uint,
                c_uint,
                c_uint,
                c_uint,
                *const c_void,
                *mut *mut c_void,
                *const c_void,
            ),
            function,
            (count as u32).div_ceil(THREADS),
            1,
            1,
            THREADS,
            1,
            1,
            0,
            null(),
            addresses.as_mut_ptr(),
            null()
        );
        call!(
            self.driver,
            b"cuMemcpyDtoH_v2\0",
            fn(*mut c_void, u64, usize),
            results.as_mut_ptr().cast(),
            out,
            results.len()
        );
        for address in [a, b, c, out] {
            call!(self.driver, b"cuMemFree_v2\0", fn(u64), address);
        }
        results
    }
}

#[test]
fn native_and_gpu_agree() {
    let (ptx, cases) = differential_module();
    let Some(gpu) = Gpu::load(&ptx) else {
        println!("skipped: there is no GPU");
        return;
    };
    let (mut compared, mut wrong) = (0, Vec::new());
    for case in &cases {
        let inputs = case.inputs(RANDOM);
        let results = gpu.run(case, &inputs);
        for (position, found) in results.chunks(case.result_size()).enumerate() {
            let operands = case.operands_at(&inputs, position);
            let expected = case.native(&operands);
            compared += 1;
            if !case.agrees(found, &expected) {
                wrong.push(format!("{}: {operands:02x?} gives {found:02x?}, not {expected:02x?}", case.entry()));
                break;
            }
        }
    }
    println!("{} operations, {compared} results compared, {} operations differ", cases.len(), wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
