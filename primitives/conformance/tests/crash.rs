//! A kernel that crashes. On a GPU the device is lost, so these tests run in a separate process.

use gpu_conformance::kernels::Crash;
use gpu_conformance::{cases, run};
use gpu_primitives::{Device, DeviceKind, Error, FaultKind, transfer};
use std::process::ExitCode;

fn main() -> ExitCode {
    run(cases![a_trap_is_reported])
}

fn a_trap_is_reported(device: &Device) {
    let stream = device.stream().unwrap();
    let mut out = stream.zeroed::<u32>(64).unwrap();
    let kernel = Crash::new(out.view_mut(&stream).unwrap(), 40);
    // SAFETY: the kernel's only buffer has an element per thread. The kernel traps on purpose.
    let result = unsafe { stream.launch(kernel, 1) }.and_then(|()| stream.synchronize());
    let error = result.unwrap_err();
    if let DeviceKind::Cuda { ordinal } = device.kind() {
        let Error::KernelCrashed { kernels, message } = &error else { panic!("{error}") };
        assert!(kernels.contains(&"crash"), "{kernels:?}");
        assert!(!message.is_empty());
        // The device is lost and not silently reused: old and new handles return an error.
        assert!(matches!(out.to_vec(&stream), Err(Error::DeviceLost { .. })));
        assert!(matches!(device.stream().map(drop), Err(Error::DeviceLost { .. })));
        assert!(matches!(Device::cuda(ordinal).and_then(|d| d.stream()).map(drop), Err(Error::DeviceLost { .. })));
    } else {
        let Error::KernelFault(fault) = &error else { panic!("{error}") };
        assert_eq!((fault.kernel, fault.block, fault.thread), ("crash", 0, 40));
        assert!(matches!(fault.kind, FaultKind::Trap), "{fault}");
        // The CPU device still works.
        transfer::fill(&stream, &mut out, 5).unwrap();
        assert_eq!(out.to_vec(&stream).unwrap(), [5; 64]);
    }
}
