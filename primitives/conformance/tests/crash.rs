//! A kernel that crashes. On a GPU it takes the device with it, so these tests have a process of their own.

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
    // SAFETY: the kernel's one buffer has an element per thread; that it traps is the point.
    let result = unsafe { stream.launch(kernel, 1) }.and_then(|()| stream.synchronize());
    let error = result.unwrap_err();
    if let DeviceKind::Cuda { ordinal } = device.kind() {
        let Error::KernelCrashed { kernels, message } = &error else { panic!("{error}") };
        assert!(kernels.contains(&"crash"), "{kernels:?}");
        assert!(!message.is_empty());
        // The device is lost, not silently reused: old handles and new ones say so.
        assert!(matches!(out.to_vec(&stream), Err(Error::DeviceLost { .. })));
        assert!(matches!(device.stream().map(drop), Err(Error::DeviceLost { .. })));
        assert!(matches!(Device::cuda(ordinal).and_then(|d| d.stream()).map(drop), Err(Error::DeviceLost { .. })));
    } else {
        let Error::KernelFault(fault) = &error else { panic!("{error}") };
        assert_eq!((fault.kernel, fault.block, fault.thread), ("crash", 0, 40));
        assert!(matches!(fault.kind, FaultKind::Trap), "{fault}");
        // The CPU goes on.
        transfer::fill(&stream, &mut out, 5).unwrap();
        assert_eq!(out.to_vec(&stream).unwrap(), [5; 64]);
    }
}
