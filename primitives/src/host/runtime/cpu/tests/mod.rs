//! Every planted bug must be found, and correct kernels must pass.

mod divergence;
mod escapes;
mod memory;
mod planted;
mod races;
mod schedules;
mod warps;

use super::{CpuDevice, CpuOptions, Fault, Schedule};
use crate::form::Kernel;
use crate::host::runtime::call::Call;
use crate::host::runtime::host_blocks::Place;
use crate::host::runtime::launch::KernelType;
use crate::{Global, GlobalMut};
use bytemuck::Pod;
use std::panic::Location;

fn fast() -> CpuDevice {
    CpuDevice::new(CpuOptions::default())
}

fn checked() -> CpuDevice {
    CpuDevice::new(CpuOptions { checked: true, ..CpuOptions::default() })
}

fn random(seed: u64) -> CpuDevice {
    CpuDevice::new(CpuOptions { checked: true, schedule: Schedule::Random { seed }, ..CpuOptions::default() })
}

/// The checked device, in order and with several random schedules.
fn all_checked() -> impl Iterator<Item = CpuDevice> {
    std::iter::once(checked()).chain((0..20).map(random))
}

/// All modes of the CPU device.
fn all() -> impl Iterator<Item = CpuDevice> {
    let unchecked = CpuOptions { schedule: Schedule::Random { seed: 7 }, ..CpuOptions::default() };
    let single = CpuOptions { workers: Some(1), ..CpuOptions::default() };
    all_checked().chain([fast(), CpuDevice::new(unchecked), CpuDevice::new(single)])
}

impl CpuDevice {
    /// Launches a kernel with its arguments.
    fn run<K: Kernel>(&self, kernel: Call<'_, K>, blocks: u32) -> Result<(), Box<Fault>> {
        let Call { kernel, reach, .. } = kernel;
        // SAFETY: the arguments are those of this kernel; the tests break contracts on purpose.
        unsafe { self.launch(KernelType::of::<K>(), (&raw const kernel).cast(), &reach, blocks) }
    }
}

fn fault<K: Kernel>(device: &CpuDevice, kernel: Call<'_, K>, blocks: u32) -> Fault {
    let fault = *device.run(kernel, blocks).expect_err("the kernel has a bug");
    assert_eq!(fault.kernel, K::NAME);
    // The message begins with the place of the fault.
    let text = fault.to_string();
    assert!(
        text.starts_with(&format!("kernel `{}`, block {}, thread {}: ", K::NAME, fault.block, fault.thread)),
        "{text}"
    );
    fault
}

/// Returns the source line of a fault.
fn line(fault: &Fault) -> String {
    line_at(fault.location.expect("the fault has a line"))
}

/// Returns a line of a source file of these tests.
fn line_at(location: &Location<'_>) -> String {
    let name = location.file().rsplit('/').next().unwrap();
    let source = match name {
        "divergence.rs" => include_str!("divergence.rs"),
        "escapes.rs" => include_str!("escapes.rs"),
        "memory.rs" => include_str!("memory.rs"),
        "planted.rs" => include_str!("planted.rs"),
        "races.rs" => include_str!("races.rs"),
        other => panic!("the fault is in {other}"),
    };
    source.lines().nth(location.line() as usize - 1).unwrap().trim().to_owned()
}

/// Device memory.
struct Memory<'a, T> {
    device: &'a CpuDevice,
    base: *mut T,
    len: usize,
}

impl<'a, T: Pod> Memory<'a, T> {
    fn uninitialised(device: &'a CpuDevice, len: usize) -> Self {
        let base = device.allocate(len * size_of::<T>(), Place::Device).expect("there is memory").cast();
        Self { device, base, len }
    }

    fn new(device: &'a CpuDevice, values: &[T]) -> Self {
        let memory = Self::uninitialised(device, values.len());
        // SAFETY: the memory is as long as the values, and nothing else uses it.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), memory.base, values.len()) };
        device.mark_initialised(memory.base.cast(), size_of_val(values));
        memory
    }

    fn zeroed(device: &'a CpuDevice, len: usize) -> Self {
        Self::new(device, &vec![T::zeroed(); len])
    }

    fn view(&self) -> Global<T> {
        self.view_mut().as_const()
    }

    fn view_mut(&self) -> GlobalMut<T> {
        // SAFETY: memory of the device that runs the launches, valid while `self` lives.
        unsafe { GlobalMut::from_raw(self.base, self.len) }
    }

    fn read(&self) -> Vec<T> {
        assert_eq!(self.device.first_uninitialised(self.base.cast(), self.len * size_of::<T>()), None);
        // SAFETY: all bytes are initialised, as just checked, and no kernel is running.
        unsafe { std::slice::from_raw_parts(self.base, self.len) }.to_vec()
    }
}

impl<T> Drop for Memory<'_, T> {
    fn drop(&mut self) {
        // SAFETY: allocated with this size, and no kernel is running.
        unsafe { self.device.free(self.base.cast(), self.len * size_of::<T>(), Place::Device, None) };
    }
}
