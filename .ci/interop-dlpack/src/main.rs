//! Tests with the real dlpark, on the CPU, and on a GPU if there is one.

#[path = "../../interop-tests.rs"]
mod tests;

use dlpark::ffi::{DLDataType, DLDevice, DLDeviceType, DLManagedTensor, DLManagedTensorVersioned, DLTensor};
use dlpark::metadata::Dynamic;
use dlpark::{DlpackElement, DlpackFlags, Managed};
use gpu_primitives::{Device, DeviceVec, Error, Stream, sort, transfer};
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
    ("a_tensor_that_goes_out_is_complete", a_tensor_that_goes_out_is_complete),
    ("deletion_waits_for_the_work", deletion_waits_for_the_work),
    ("consumers_work_in_their_own_order", consumers_work_in_their_own_order),
    ("halves", halves),
    ("tensors_that_do_not_fit_are_refused_and_given_back", tensors_that_do_not_fit_are_refused_and_given_back),
    ("tensors_with_random_metadata", tensors_with_random_metadata),
];

fn main() -> ExitCode {
    let mut devices = vec![Device::cpu(), Device::cpu_checked()];
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
        self.changed_tensor(data, shape, strides, offset, |_| ())
    }

    /// Returns a tensor whose description is changed in the end.
    fn changed_tensor(
        &self,
        data: &[i64],
        shape: &[i64],
        strides: &[i64],
        offset: u64,
        change: impl FnOnce(&mut DLTensor),
    ) -> Managed<DLManagedTensorVersioned> {
        let mut memory = self.stream.upload(data).expect("enough memory");
        self.stream.synchronize().expect("a device that works");
        let address = memory.as_mut_slice().as_mut_ptr();
        let storage = Storage { _memory: memory, deleted: Arc::clone(&self.deleted) };
        let prepared = Dynamic::new(shape, strides).prepare_as::<DLManagedTensorVersioned>().expect("a small shape");
        let mut tensor = prepared.initialize(Box::new(storage));
        tensor.set_device(self.device()).set_dtype(i64::DTYPE).set_data(address.cast()).set_byte_offset(offset);
        change(tensor.tensor_mut());
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

/// On the CPU a framework reads the memory at once, also if work on it was still queued.
fn a_tensor_that_goes_out_is_complete(device: &Device) -> Tested {
    let [stream, other] = [device.stream()?, device.stream()?];
    let mut sevens = stream.zeroed::<f32>(5)?;
    transfer::fill(&other, &mut sevens, 7.0)?;
    let tensor = sevens.into_dlpack(&stream)?;
    if device.cuda_context().is_none() {
        // SAFETY: the tensor is on the host, has five numbers, and nothing writes it.
        let read = unsafe { std::slice::from_raw_parts(tensor.validate()?.data_ptr().cast::<f32>(), 5) };
        assert_eq!(read, [7.0; 5]);
    }
    // SAFETY: the tensor is ready in the order of the stream, and nothing else uses it.
    let lent = unsafe { stream.lend_dlpack::<f32, _>(tensor)? };
    assert_eq!(lent.to_vec(&stream)?, [7.0; 5]);
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

/// Descriptions with random changes. A tensor is lent as it is described, or refused, and always given back. A description that
/// is wrong contradicts itself or the address space: nothing that is lent is longer than the memory.
///
/// `GPU_PRIMITIVES_FUZZ=SECONDS` runs it for this time, and `GPU_PRIMITIVES_SEED=SEED` runs one round alone.
fn tensors_with_random_metadata(device: &Device) -> Tested {
    let number = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>()).transpose();
    let (time, only) = (number("GPU_PRIMITIVES_FUZZ")?, number("GPU_PRIMITIVES_SEED")?);
    let started = std::time::Instant::now();
    let framework = Framework::new(device)?;
    let stream = device.stream()?;
    let data = numbers(64);
    let (mut lent_count, mut refused_count) = (0, 0);
    for seed in only.map_or(0..u64::MAX, |seed| seed..seed + 1) {
        let is_due = time.map_or(seed < 2000, |time| started.elapsed().as_secs() < time);
        if only.is_none() && !is_due {
            break;
        }
        // A linear congruence, whose upper bits are random enough.
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut below = |limit: usize| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 33) as usize % limit
        };
        let mut shape: Vec<i64> = (0..below(4)).map(|_| below(5) as i64).collect();
        let len = shape.iter().product::<i64>() as usize;
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis].max(1);
        }
        let first = below(data.len() - len + 1);
        let mut offset = 8 * first as u64;
        let (kind, axis, choice) = (below(14), below(shape.len().max(1)), below(4));
        let has_axis = axis < shape.len();
        let mut must_be_refused = true;
        match kind {
            0 if has_axis => shape[axis] = [-1, i64::MIN, -5, -(1 << 40)][choice],
            1 if has_axis && len > 0 => shape[axis] = [i64::MAX, 1 << 60, 1 << 62, 1 << 61][choice],
            2 if len > 0 => offset = [u64::MAX, u64::MAX - 7, u64::MAX - 63, u64::MAX - 4095][choice],
            3 if len > 0 => offset += [1, 2, 4, 7][choice],
            4 if has_axis => {
                strides[axis] = [0, -1, 1 << 62, i64::MIN][choice];
                must_be_refused = false; // without elements, strides mean nothing
            }
            5..=10 => {}
            _ => must_be_refused = false,
        }
        let change = |tensor: &mut DLTensor| match kind {
            5 => tensor.ndim = [-1, i32::MIN, -2, -100][choice],
            6 if has_axis => tensor.shape = core::ptr::null_mut(),
            7 if len > 0 => tensor.data = core::ptr::null_mut(),
            8 => tensor.dtype.bits = [0, 1, 32, 255][choice],
            9 => tensor.dtype.lanes = [0, 2, 256, u16::MAX][choice],
            10 => tensor.device.device_type = DLDeviceType([0, 10, 9999, 8][choice]),
            11 => tensor.strides = core::ptr::null_mut(),
            _ => {}
        };
        must_be_refused &= !((kind == 6 && !has_axis) || (kind == 7 && len == 0));
        let tensor = framework.changed_tensor(&data, &shape, &strides, offset, change);
        let when = format!("seed {seed}, change {kind}: shape {shape:?}, strides {strides:?}, offset {offset}");
        // SAFETY: where the description is true, the memory is as described. Where it is wrong, it must be refused.
        match unsafe { stream.lend_dlpack::<i64, _>(tensor) } {
            Ok(lent) => {
                assert!(!must_be_refused && lent.len() == len, "{when}: {} were lent", lent.len());
                assert_eq!(lent.to_vec(&stream)?, data[first..first + len], "{when}");
                lent_count += 1;
            }
            Err(Error::InvalidOption { .. } | Error::WrongDevice { .. } | Error::Misaligned { .. }) => {
                // Other strides may be refused, and null, which DLPack no longer allows.
                assert!(must_be_refused || [4, 11].contains(&kind), "{when}");
                refused_count += 1;
            }
            Err(error) => panic!("{when}: {error}"),
        }
        assert_eq!(framework.deleted(), lent_count + refused_count, "{when}");
    }
    println!("{lent_count} tensors were lent, {refused_count} refused");
    Ok(())
}
