//! Tests with the real dlpark, on the CPU, and on a GPU if there is one.

#[path = "../../interop-tests.rs"]
mod tests;

use dlpark::ffi::{DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned};
use dlpark::metadata::Dynamic;
use dlpark::{DlpackElement, DlpackFlags, Managed};
use gpu_primitives::{Device, DeviceVec, Error, Stream, sort};
use gpu_sorted_array::{GpuSortedArray, Options};
use half::f16;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tests::Tested;

type Test = (&'static str, fn(&Device) -> Tested);

const TESTS: &[Test] = &[
    ("a_tensor_is_sorted_in_place", a_tensor_is_sorted_in_place),
    ("a_tensor_is_looked_up", a_tensor_is_looked_up),
    ("a_vector_goes_out_and_comes_back", a_vector_goes_out_and_comes_back),
    ("deletion_waits_for_the_work", deletion_waits_for_the_work),
    ("consumers_work_in_their_own_order", consumers_work_in_their_own_order),
    ("halves", halves),
    ("tensors_that_do_not_fit_are_refused_and_given_back", tensors_that_do_not_fit_are_refused_and_given_back),
];

fn main() -> ExitCode {
    let mut devices = vec![Device::cpu()];
    devices.extend(Device::cuda(0));
    let tests = devices.iter().flat_map(|device| TESTS.iter().map(move |test| (device, test)));
    tests::run(tests.map(|(device, (name, test))| (format!("{name} on {}", device.kind()), move || test(device))))
}

/// Returns a number of elements that keeps a GPU busy for a while; fewer for the CPU, in a program that is not optimised.
fn many(device: &Device) -> usize {
    if device.cuda_context().is_some() { 1 << 22 } else { 1 << 14 }
}

fn numbers(len: usize) -> Vec<i64> {
    (0..len as i64).map(|i| (i * 7_919 + 13) % len as i64 - len as i64 / 2).collect()
}

fn sorted(mut numbers: Vec<i64>) -> Vec<i64> {
    numbers.sort_unstable();
    numbers
}

/// What a framework keeps for a tensor: its memory, and a counter of deletions.
struct Storage {
    _memory: DeviceVec<i64>,
    deleted: Arc<AtomicUsize>,
}

impl Drop for Storage {
    fn drop(&mut self) {
        self.deleted.fetch_add(1, Ordering::SeqCst);
    }
}

/// A framework: it makes tensors of its own memory, and counts how many were deleted.
struct Framework {
    stream: Stream,
    deleted: Arc<AtomicUsize>,
}

impl Framework {
    fn new(device: &Device) -> Result<Self, Error> {
        Ok(Self { stream: device.stream()?, deleted: Arc::default() })
    }

    fn device(&self) -> DLDevice {
        if self.stream.cuda_stream().is_some() { DLDevice::cuda(0) } else { DLDevice::CPU }
    }

    /// Returns a tensor of these elements that is ready.
    fn tensor(&self, data: &[i64], shape: &[i64], strides: &[i64], offset: u64) -> Managed<DLManagedTensorVersioned> {
        let mut memory = self.stream.upload(data).expect("enough memory");
        self.stream.synchronize().expect("a device that works");
        let address = memory.as_mut_slice().as_mut_ptr();
        let storage = Storage { _memory: memory, deleted: Arc::clone(&self.deleted) };
        let prepared = Dynamic::new(shape, strides).prepare_as::<DLManagedTensorVersioned>().expect("a small shape");
        let mut tensor = prepared.initialize(Box::new(storage));
        tensor.set_device(self.device()).set_dtype(i64::DTYPE).set_data(address.cast()).set_byte_offset(offset);
        // SAFETY: the tensor owns the memory.
        unsafe { tensor.finish() }
    }

    fn deleted(&self) -> usize {
        self.deleted.load(Ordering::SeqCst)
    }
}

fn a_tensor_is_sorted_in_place(device: &Device) -> Tested {
    let framework = Framework::new(device)?;
    let stream = device.stream()?;
    let host = numbers(1 << 14);
    // A matrix without gaps is as good as a vector. The first row does not belong to it.
    let tensor = framework.tensor(&host, &[63, 256], &[256, 1], 256 * 8);
    // SAFETY: the tensor is ready, and nothing else uses it.
    let mut lent = unsafe { stream.lend_dlpack_mut::<i64, _>(tensor)? };
    sort::keys_in_place(&stream, &mut lent, sort::Options::new())?;
    assert_eq!(lent.to_vec(&stream)?, sorted(host[256..].to_vec()));
    assert_eq!(framework.deleted(), 0);
    drop(lent);
    assert_eq!(framework.deleted(), 1);
    Ok(())
}

fn a_tensor_is_looked_up(device: &Device) -> Tested {
    let framework = Framework::new(device)?;
    let stream = device.stream()?;
    let (keys, values) = (stream.upload(&[10u64, 20, 30])?, stream.upload(&[1u32, 2, 3])?);
    let array = GpuSortedArray::<u64, u32>::bulk_build(&stream, (&keys, &values), Options::new())?;
    let tensor = framework.tensor(&[30, 10, 5], &[3], &[1], 0);
    // SAFETY: as above.
    let asked = unsafe { stream.lend_dlpack::<i64, _>(tensor)? };
    let asked = asked.as_slice().cast::<u64>().ok_or("numbers of the same size")?;
    let found = array.lookup(&stream, asked)?;
    assert_eq!(found.to_vec(&stream)?, [Some(3), Some(1), None]);
    Ok(())
}

fn a_vector_goes_out_and_comes_back(device: &Device) -> Tested {
    let stream = device.stream()?;
    let host = numbers(many(device));
    let used = device.memory_used();
    let mut vector = stream.upload(&host)?;
    sort::keys_in_place(&stream, &mut vector, sort::Options::new())?;
    let consumer = device.stream()?;
    let tensor = vector.into_dlpack(&consumer)?;
    assert_eq!(tensor.validate()?.shape(), [many(device) as i64]);
    assert_eq!(tensor.validate()?.dtype(), DLDataType::of::<i64>());
    // SAFETY: the tensor is ready in the order of the stream.
    let lent = unsafe { consumer.lend_dlpack::<i64, _>(tensor)? };
    assert_eq!(lent.to_vec(&consumer)?, sorted(host));
    drop(lent);
    drop((stream, consumer));
    assert_eq!(device.memory_used(), used);
    Ok(())
}

/// The framework writes the memory as soon as it has it back.
fn deletion_waits_for_the_work(device: &Device) -> Tested {
    let stream = device.stream()?;
    let owner = device.stream()?;
    let host = numbers(many(device));
    for _ in 0..3 {
        let mut memory = owner.upload(&host)?;
        owner.synchronize()?;
        let address = memory.as_mut_slice().as_mut_ptr();
        let prepared = Dynamic::new(&[many(device) as i64], &[1i64]).prepare_as::<DLManagedTensor>()?;
        let mut tensor = prepared.initialize(Box::new(()));
        let on = if device.cuda_context().is_some() { DLDevice::cuda(0) } else { DLDevice::CPU };
        tensor.set_device(on).set_dtype(i64::DTYPE).set_data(address.cast());
        // SAFETY: the memory outlives the tensor.
        let tensor: Managed<DLManagedTensor> = unsafe { tensor.finish() };
        let mut copy = stream.uninit::<i64>(host.len())?;
        // SAFETY: the tensor is ready, and nothing else uses it.
        let lent = unsafe { stream.lend_dlpack::<i64, _>(tensor)? };
        sort::keys(&stream, &lent, &mut copy, sort::Options::new())?;
        drop(lent); // waits
        memory.copy_from_host(&owner, &vec![0; host.len()])?;
        assert_eq!(copy.to_vec(&stream)?, sorted(host.clone()));
    }
    Ok(())
}

fn consumers_work_in_their_own_order(device: &Device) -> Tested {
    let framework = Framework::new(device)?;
    let host = numbers(many(device));
    let tensor = framework.tensor(&host, &[host.len() as i64], &[1], 0);
    // The stream of the framework itself, so nobody has to wait.
    let stream = framework.stream.clone();
    // SAFETY: the tensor is ready, and nothing else uses it.
    let mut lent = unsafe { stream.lend_dlpack_mut::<i64, _>(tensor)? };
    sort::keys_in_place(&stream, &mut lent, sort::Options::new())?;
    let copy = {
        let mut copy = stream.uninit::<i64>(host.len())?;
        copy.copy_from(&stream, &lent)?;
        copy
    };
    // SAFETY: the framework frees the memory in the order of this stream.
    unsafe { lent.give_back_in_order() };
    assert_eq!(framework.deleted(), 1);
    assert_eq!(copy.to_vec(&stream)?, sorted(host));
    match device.cuda_context() {
        None => assert_eq!(stream.dlpack_stream(), None),
        Some(_) => assert!(stream.dlpack_stream().is_some_and(|number| number > 2)),
    }
    Ok(())
}

fn halves(device: &Device) -> Tested {
    let stream = device.stream()?;
    let host: Vec<f16> = (0..1000).map(|i| f16::from_f32(((i * 37) % 1000) as f32)).collect();
    let tensor = stream.upload(&host)?.into_dlpack(&stream)?;
    // SAFETY: the tensor is ready, and nothing else uses it.
    let mut lent = unsafe { stream.lend_dlpack_mut::<f16, _>(tensor)? };
    sort::keys_in_place(&stream, &mut lent, sort::Options::new())?;
    assert_eq!(lent.to_vec(&stream)?, (0..1000).map(|i| f16::from_f32(i as f32)).collect::<Vec<_>>());
    Ok(())
}

fn tensors_that_do_not_fit_are_refused_and_given_back(device: &Device) -> Tested {
    let framework = Framework::new(device)?;
    let stream = device.stream()?;
    let is_refused = |error: Error| matches!(error, Error::InvalidOption { .. });
    let data = numbers(12);
    let matrix = || framework.tensor(&data, &[3, 4], &[4, 1], 0);
    // SAFETY: nothing is lent. The same applies below.
    unsafe {
        assert!(stream.lend_dlpack::<i32, _>(matrix()).is_err_and(is_refused), "another type");
        assert!(stream.lend_dlpack::<u64, _>(matrix()).is_err_and(is_refused), "another sign");
        let transposed = framework.tensor(&data, &[4, 3], &[1, 4], 0);
        assert!(stream.lend_dlpack::<i64, _>(transposed).is_err_and(is_refused), "columns");
        let odd = framework.tensor(&data, &[2], &[1], 4);
        assert!(stream.lend_dlpack::<i64, _>(odd).is_err_and(|error| matches!(error, Error::Misaligned { .. })));
        let mut constant = matrix();
        *constant.flags_mut() = DlpackFlags::READ_ONLY;
        assert!(stream.lend_dlpack_mut::<i64, _>(constant).is_err_and(is_refused), "read-only");
        let elsewhere = Device::cpu_checked().stream()?;
        if device.cuda_context().is_some() {
            let lent = elsewhere.lend_dlpack::<i64, _>(matrix());
            assert!(lent.is_err_and(|error| matches!(error, Error::WrongDevice { .. })));
        } else {
            drop(matrix());
        }
        assert_eq!(framework.deleted(), 6);
        let nothing = framework.tensor(&[], &[0, 4], &[4, 1], 0);
        assert!(stream.lend_dlpack::<i64, _>(nothing)?.is_empty());
    }
    Ok(())
}
