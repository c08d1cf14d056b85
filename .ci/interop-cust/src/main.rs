//! Tests with the real cust, on a GPU. Without one, they are skipped.

#[path = "../../interop-tests.rs"]
mod tests;

use cust::context::legacy::{Context as LegacyContext, ContextFlags, ContextStack};
use cust::memory::{AsyncCopyDestination, CopyDestination, DeviceBuffer};
use cust::stream::{Stream as CustStream, StreamFlags};
use gpu_primitives::{Device, Error, RawMemory, Stream, reduce, sort};
use std::error::Error as AnyError;
use std::process::ExitCode;
use std::sync::Arc;
use tests::Tested;

type Test = (&'static str, fn() -> Tested);

/// The elements of most tests: enough for several blocks of every kernel.
const LEN: usize = 1 << 20;

const TESTS: &[Test] = &[
    ("a_buffer_is_sorted", a_buffer_is_sorted),
    ("parts_go_in", parts_go_in),
    ("work_goes_on_in_order", work_goes_on_in_order),
    ("a_stream_borrowed_anew_keeps_its_memory", a_stream_borrowed_anew_keeps_its_memory),
    ("the_context_is_shared_and_survives", the_context_is_shared_and_survives),
    ("two_contexts_in_one_process", two_contexts_in_one_process),
    ("raw_memory_is_checked", raw_memory_is_checked),
];

fn main() -> ExitCode {
    if Device::cuda_count() == 0 {
        println!("0 passed, 0 failed, {} skipped", TESTS.len());
        return ExitCode::SUCCESS;
    }
    tests::run(TESTS.iter().map(|&(name, test)| (name.to_string(), test)))
}

/// Returns numbers in no order.
fn numbers(seed: u32) -> Vec<u32> {
    (0..LEN as u32).map(|i| (i ^ seed).wrapping_mul(2_654_435_761).rotate_left(7) ^ seed).collect()
}

fn sorted(mut numbers: Vec<u32>) -> Vec<u32> {
    numbers.sort_unstable();
    numbers
}

fn new_stream() -> Result<Arc<CustStream>, Box<dyn AnyError>> {
    Ok(Arc::new(CustStream::new(StreamFlags::NON_BLOCKING, None)?))
}

fn a_buffer_is_sorted() -> Tested {
    let context = cust::quick_init()?;
    let host = numbers(1);
    let mut buffer = DeviceBuffer::from_slice(&host)?;
    let stream = Stream::from_cust(&Device::from_cust(&context)?, &new_stream()?)?;
    sort_lent(&stream, &mut buffer)?;
    assert_eq!(buffer.as_host_vec()?, sorted(host)); // what was lent has been waited for
    Ok(())
}

/// Sorts a buffer of cust.
fn sort_lent(stream: &Stream, buffer: &mut DeviceBuffer<u32>) -> Result<(), Error> {
    stream.lend(buffer, |buffer| sort::keys_in_place(stream, buffer, sort::Options::new()))
}

fn parts_go_in() -> Tested {
    let context = cust::quick_init()?;
    let stream = Stream::from_cust(&Device::from_cust(&context)?, &new_stream()?)?;
    let host = numbers(2);
    let mut buffer = DeviceBuffer::from_slice(&host)?;
    stream.lend(&mut buffer, |all| sort::keys_in_place(&stream, all.slice_mut(LEN / 2..)?, sort::Options::new()))?;
    let mut expected = host;
    expected[LEN / 2..].sort_unstable();
    assert_eq!(buffer.as_host_vec()?, expected);
    let sum = stream.lend(&buffer, |all| reduce::sum(&stream, all.slice(..100)?)?.get(&stream))?;
    assert_eq!(sum, expected[..100].iter().fold(0u32, |sum, x| sum.wrapping_add(*x)));
    Ok(())
}

fn work_goes_on_in_order() -> Tested {
    let context = cust::quick_init()?;
    let cust = new_stream()?;
    let stream = Stream::from_cust(&Device::from_cust(&context)?, &cust)?;
    assert!(Arc::ptr_eq(stream.cust().ok_or("a stream of cust")?, &cust));
    for seed in 0..5 {
        let host = numbers(seed);
        let (mut buffer, mut copy) = (DeviceBuffer::from_slice(&host)?, DeviceBuffer::from_slice(&vec![0u32; LEN])?);
        // SAFETY: what is lent is given back below, and dropped if the sort fails.
        let mut lent = unsafe { stream.lend_until_dropped(&mut buffer)? };
        sort::keys_in_place(&stream, &mut lent, sort::Options::new())?;
        // SAFETY: the buffer is used on the same stream until it is waited for.
        unsafe {
            lent.give_back_in_order();
            copy.async_copy_from(&buffer, &cust)?;
        }
        cust.synchronize()?;
        let mut result = vec![0; LEN];
        copy.copy_to(&mut result)?;
        assert_eq!(result, sorted(host));
    }
    Ok(())
}

fn a_stream_borrowed_anew_keeps_its_memory() -> Tested {
    let context = cust::quick_init()?;
    let (device, cust) = (Device::from_cust(&context)?, new_stream()?);
    let mut buffer = DeviceBuffer::from_slice(&numbers(3))?;
    let mut used = Vec::new();
    for _ in 0..5 {
        let stream = Stream::from_cust(&device, &cust)?;
        sort_lent(&stream, &mut buffer)?;
        drop(stream);
        used.push(device.memory_used());
    }
    assert!(used[0] > 0 && used.iter().all(|bytes| *bytes == used[0]), "{used:?}");
    Ok(())
}

fn the_context_is_shared_and_survives() -> Tested {
    let context = cust::quick_init()?;
    let device = Device::from_cust(&context)?;
    assert_eq!(device, Device::cuda(0)?);
    assert_eq!(device.cuda_context(), Some(context.as_raw().cast()));
    drop(device);
    let buffer = DeviceBuffer::from_slice(&[1u32, 2, 3])?;
    assert_eq!(buffer.as_host_vec()?, [1, 2, 3]);
    drop((buffer, context)); // all that cust has of it
    let stream = Device::cuda(0)?.stream()?;
    assert_eq!(stream.upload(&[4u32])?.to_vec(&stream)?, [4]);
    Ok(())
}

fn two_contexts_in_one_process() -> Tested {
    let primary = cust::quick_init()?;
    let here = Stream::from_cust(&Device::from_cust(&primary)?, &new_stream()?)?;
    let context = LegacyContext::create_and_push(ContextFlags::SCHED_AUTO, cust::device::Device::get_device(0)?)?;
    let raw = cust::context::legacy::CurrentContext::get_current()?;
    let host = numbers(4);
    let mut buffer = DeviceBuffer::from_slice(&host)?;
    let there = new_stream()?;
    // SAFETY: the context lives until the end of this function.
    let device = unsafe { Device::borrow_cuda_context(context_handle(&raw))? };
    assert_ne!(&device, here.device());
    let is_refused = |error: Error| matches!(error, Error::WrongContext { ordinal: 0, .. });
    assert!(Stream::from_cust(here.device(), &there).is_err_and(is_refused));
    assert!(here.lend(&buffer, |_| Ok(())).is_err_and(is_refused));
    let stream = Stream::from_cust(&device, &there)?;
    sort_lent(&stream, &mut buffer)?;
    assert_eq!(buffer.as_host_vec()?, sorted(host));
    drop(buffer);
    drop(stream);
    Stream::release_cust(&device, &there);
    drop((there, device)); // the last that is left of the context, except for itself
    let _ = ContextStack::pop();
    drop(context);
    assert_eq!(here.upload(&[1u32])?.to_vec(&here)?, [1]);
    Ok(())
}

/// Returns the handle of a context.
fn context_handle(context: &cust::context::legacy::UnownedContext) -> *mut std::ffi::c_void {
    use cust::context::ContextHandle;
    context.get_inner().cast()
}

fn raw_memory_is_checked() -> Tested {
    let context = cust::quick_init()?;
    let device = Device::from_cust(&context)?;
    let stream = device.stream()?;
    let buffer = DeviceBuffer::from_slice(&[1u32, 2, 3, 4])?;
    let address = buffer.as_device_ptr().as_mut_ptr();
    // SAFETY: the buffer lives longer, and nothing else uses it.
    let lent = unsafe { RawMemory::new(&device, address, 4)?.lend(&stream)? };
    assert_eq!(lent.to_vec(&stream)?, [1, 2, 3, 4]);
    let far = RawMemory::new(&device, address, 1 << 32);
    assert!(far.is_err_and(|error| matches!(error, Error::LengthMismatch { expected: 0x1_0000_0000, .. })));
    let odd = RawMemory::new(&device, address.wrapping_byte_add(2), 1);
    assert!(odd.is_err_and(|error| matches!(error, Error::Misaligned { .. })));
    let mut host = [0u32; 4];
    let unknown = RawMemory::new(&device, host.as_mut_ptr(), 4);
    assert!(unknown.is_err_and(|error| matches!(error, Error::InvalidOption { .. })));
    Ok(())
}
