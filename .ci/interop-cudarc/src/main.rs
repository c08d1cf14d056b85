//! Tests with the real cudarc, on a GPU. Without one, they are skipped.

#[path = "../../interop-tests.rs"]
mod tests;

use cudarc::driver::{CudaContext, CudaStream, DevicePtr};
use gpu_primitives::{Device, DeviceSliceMut, Error, Lend, Stream, scan, sort};
use std::error::Error as AnyError;
use std::process::ExitCode;
use std::sync::Arc;
use tests::Tested;

/// The elements of most tests: enough for several blocks of every kernel.
const LEN: usize = 1 << 20;

type Test = (&'static str, fn() -> Tested);

const TESTS: &[Test] = &[
    ("two_lines_sort_a_slice", two_lines_sort_a_slice),
    ("slices_are_lent_together", slices_are_lent_together),
    ("views_go_in", views_go_in),
    ("events_order_the_streams_of_cudarc", events_order_the_streams_of_cudarc),
    ("other_streams_of_this_library_may_help", other_streams_of_this_library_may_help),
    ("a_stream_borrowed_anew_keeps_its_memory", a_stream_borrowed_anew_keeps_its_memory),
    ("a_stream_that_is_gone_is_given_up", a_stream_that_is_gone_is_given_up),
    ("vectors_go_out", vectors_go_out),
    ("without_event_tracking", without_event_tracking),
    ("the_primary_context_is_shared_and_survives", the_primary_context_is_shared_and_survives),
    ("two_contexts_in_one_process", two_contexts_in_one_process),
    ("objects_of_another_context_are_refused", objects_of_another_context_are_refused),
    ("streams_that_do_not_fit_are_refused", streams_that_do_not_fit_are_refused),
];

fn main() -> ExitCode {
    if Device::cuda_count() == 0 {
        println!("0 passed, 0 failed, {} skipped", TESTS.len());
        return ExitCode::SUCCESS;
    }
    tests::run(TESTS.iter().map(|&(name, test)| (name.to_string(), test)))
}

/// Returns numbers in no order.
fn numbers(len: usize, seed: u32) -> Vec<u32> {
    (0..len as u32).map(|i| (i ^ seed).wrapping_mul(2_654_435_761).rotate_left(7) ^ seed).collect()
}

fn sorted(mut numbers: Vec<u32>) -> Vec<u32> {
    numbers.sort_unstable();
    numbers
}

/// Sorts memory of cudarc.
fn sort_lent<'a>(
    stream: &'a Stream,
    memory: impl for<'s> Lend<'a, Slice<'s> = DeviceSliceMut<'s, u32>>,
) -> Result<(), Error> {
    stream.lend(memory, |slice| sort::keys_in_place(stream, slice, sort::Options::new()))
}

/// Returns a stream of a context that has several, so that cudarc tracks events.
fn new_stream() -> Result<Arc<CudaStream>, Box<dyn AnyError>> {
    Ok(CudaContext::new(0)?.new_stream()?)
}

fn two_lines_sort_a_slice() -> Tested {
    for cuda in [CudaContext::new(0)?.default_stream(), new_stream()?] {
        let host = numbers(LEN, 1);
        let mut slice = cuda.clone_htod(&host)?;
        let stream = Stream::from_cudarc(&cuda)?;
        stream.lend(&mut slice, |slice| sort::keys_in_place(&stream, slice, sort::Options::new()))?;
        assert_eq!(cuda.clone_dtoh(&slice)?, sorted(host));
    }
    Ok(())
}

fn slices_are_lent_together() -> Tested {
    let cuda = new_stream()?;
    let stream = Stream::from_cudarc(&cuda)?;
    let (input, mut output) = (cuda.clone_htod(&vec![1u32; LEN])?, cuda.alloc_zeros::<u32>(LEN)?);
    stream.lend((&input, &mut output), |(input, output)| scan::inclusive_sum(&stream, input, output))?;
    assert_eq!(cuda.clone_dtoh(&output)?, (1..=LEN as u32).collect::<Vec<_>>());
    Ok(())
}

fn views_go_in() -> Tested {
    let cuda = new_stream()?;
    let stream = Stream::from_cudarc(&cuda)?;
    let host = numbers(LEN, 2);
    let mut slice = cuda.clone_htod(&host)?;
    let (from, to) = (LEN / 4 + 1, LEN / 2 + 3);
    sort_lent(&stream, &mut slice.slice_mut(from..to))?;
    let mut expected = host;
    expected[from..to].sort_unstable();
    assert_eq!(cuda.clone_dtoh(&slice)?, expected);

    let part = slice.slice(5..1005);
    assert_eq!(stream.lend(&part, |part| part.to_vec(&stream))?, expected[5..1005]);
    let whole = slice.slice_mut(..);
    assert_eq!(stream.lend(&whole, |whole| Ok::<_, Error>(whole.len()))?, LEN);
    let nothing = cuda.alloc_zeros::<u32>(0)?;
    assert!(stream.lend(&nothing, |nothing| Ok::<_, Error>(nothing.is_empty()))?);
    Ok(())
}

/// One stream of cudarc writes, another sorts, a third reads. Only the events of cudarc order them.
fn events_order_the_streams_of_cudarc() -> Tested {
    let context = CudaContext::new(0)?;
    let (writer, worker, reader) = (context.new_stream()?, context.new_stream()?, context.new_stream()?);
    assert!(context.is_managing_stream_synchronization());
    let stream = Stream::from_cudarc(&worker)?;
    let hosts: Vec<_> = (0..8).map(|seed| numbers(1 << 22, seed)).collect();
    let sources = hosts.iter().map(|host| writer.clone_htod(host)).collect::<Result<Vec<_>, _>>()?;
    let mut slice = writer.alloc_zeros::<u32>(1 << 22)?;
    for (host, source) in hosts.into_iter().zip(&sources) {
        for _ in 0..20 {
            writer.memset_zeros(&mut slice)?; // so that the writer is late
        }
        writer.memcpy_dtod(source, &mut slice)?;
        sort_lent(&stream, &mut slice)?;
        let copy = reader.clone_dtod(&slice)?;
        writer.memset_zeros(&mut slice)?;
        assert_eq!(reader.clone_dtoh(&copy)?, sorted(host));
    }
    Ok(())
}

/// Memory lent to a stream of cudarc is used on a stream that cudarc does not know.
fn other_streams_of_this_library_may_help() -> Tested {
    let cuda = new_stream()?;
    let stream = Stream::from_cudarc(&cuda)?;
    let own = stream.device().stream()?;
    let host = numbers(1 << 22, 3);
    for _ in 0..5 {
        let mut slice = cuda.clone_htod(&host)?;
        stream.lend(&mut slice, |slice| sort::keys_in_place(&own, slice, sort::Options::new()))?;
        assert_eq!(cuda.clone_dtoh(&slice)?, sorted(host.clone()));
    }
    Ok(())
}

fn a_stream_borrowed_anew_keeps_its_memory() -> Tested {
    let cuda = new_stream()?;
    let device = Device::from_cudarc(cuda.context())?;
    let mut slice = cuda.clone_htod(&numbers(LEN, 4))?;
    let mut used = Vec::new();
    for _ in 0..5 {
        let stream = Stream::from_cudarc(&cuda)?;
        sort_lent(&stream, &mut slice)?;
        drop(stream);
        used.push(device.memory_used());
    }
    assert!(used[0] > 0 && used.iter().all(|bytes| *bytes == used[0]), "{used:?}");
    Ok(())
}

fn a_stream_that_is_gone_is_given_up() -> Tested {
    let device = Device::from_cudarc(&CudaContext::new(0)?)?;
    let another = || -> Result<usize, Box<dyn AnyError>> {
        let cuda = new_stream()?;
        let mut slice = cuda.clone_htod(&numbers(LEN, 4))?;
        let stream = Stream::from_cudarc(&cuda)?;
        sort_lent(&stream, &mut slice)?;
        stream.synchronize()?;
        Ok(device.memory_used())
    };
    another()?;
    let used = another()?;
    for _ in 0..10 {
        assert_eq!(another()?, used, "each gives up the one before it");
    }
    let cuda = new_stream()?;
    drop(Stream::from_cudarc(&cuda)?);
    let count = Arc::strong_count(&cuda);
    Stream::release_cudarc(&cuda)?;
    assert_eq!((count, Arc::strong_count(&cuda)), (2, 1));
    Ok(())
}

fn vectors_go_out() -> Tested {
    let context = CudaContext::new(0)?;
    let (cuda, other) = (context.new_stream()?, context.new_stream()?);
    let stream = Stream::from_cudarc(&cuda)?;
    assert!(Arc::ptr_eq(stream.cudarc().ok_or("a stream of cudarc")?, &cuda));
    let host = numbers(1 << 20, 5);
    let source = other.clone_htod(&host)?;
    let expected = sorted(host);
    other.synchronize()?;
    let mut vector = stream.zeroed::<u32>(1 << 20)?;
    for _ in 0..5 {
        sort::keys_in_place(&stream, &mut vector, sort::Options::new())?;
        // After the sort, on another stream.
        stream.cudarc_view_mut(&mut vector, |mut shown| other.memcpy_dtod(&source, &mut shown))??;
        sort::keys_in_place(&stream, &mut vector, sort::Options::new())?; // after the copy
        assert_eq!(stream.cudarc_view(&vector, |shown| other.clone_dtoh(&shown))??, expected);
        assert_eq!(stream.cudarc_view(vector.slice(7..9)?, |part| part.len())?, 2);
    }
    assert_eq!(vector.to_vec(&stream)?, expected); // it still owns its memory
    Ok(())
}

fn without_event_tracking() -> Tested {
    let context = CudaContext::new(0)?;
    let cuda = context.new_stream()?;
    // SAFETY: everything below is on one stream.
    unsafe { context.disable_event_tracking() };
    let stream = Stream::from_cudarc(&cuda)?;
    let host = numbers(LEN, 6);
    let mut slice = cuda.clone_htod(&host)?;
    sort_lent(&stream, &mut slice)?;
    assert_eq!(cuda.clone_dtoh(&slice)?, sorted(host));
    Ok(())
}

fn the_primary_context_is_shared_and_survives() -> Tested {
    let context = CudaContext::new(0)?;
    let device = Device::from_cudarc(&context)?;
    assert_eq!(device, Device::cuda(0)?);
    assert_eq!(device.cuda_context(), Some(context.cu_ctx().cast()));
    let cuda = context.default_stream();
    let slice = cuda.clone_htod(&[1u32, 2, 3])?;
    let stream = Stream::from_cudarc(&cuda)?;
    assert_eq!(stream.lend(&slice, |slice| slice.to_vec(&stream))?, [1, 2, 3]);
    drop((stream, device));
    assert_eq!(cuda.clone_dtoh(&slice)?, [1, 2, 3]);
    drop((slice, cuda, context)); // all that cudarc has of it
    let stream = Device::cuda(0)?.stream()?;
    assert_eq!(stream.upload(&[4u32])?.to_vec(&stream)?, [4]);
    Ok(())
}

fn two_contexts_in_one_process() -> Tested {
    let (first, second) = (CudaContext::new(0)?, CudaContext::new_non_primary(0, 0)?);
    let (a, b) = (Device::from_cudarc(&first)?, Device::from_cudarc(&second)?);
    assert!(a != b && b == Device::from_cudarc(&second)?);
    assert_eq!((a.kind(), b.cuda_context()), (b.kind(), Some(second.cu_ctx().cast())));

    let host = numbers(LEN, 7);
    let cudas = [first.new_stream()?, second.new_stream()?, second.default_stream()];
    for cuda in &cudas {
        let stream = Stream::from_cudarc(cuda)?;
        let mut slice = cuda.clone_htod(&host)?;
        sort_lent(&stream, &mut slice)?;
        let own = stream.device().stream()?;
        let mut vector = own.upload(&host)?;
        sort::keys_in_place(&own, &mut vector, sort::Options::new())?;
        assert_eq!(vector.to_vec(&own)?, sorted(host.clone()));
        assert_eq!(cuda.clone_dtoh(&slice)?, sorted(host.clone()));
    }

    // The context goes on when the device has been dropped, and is destroyed by cudarc.
    drop((a, b));
    let slice = cudas[1].clone_htod(&[1u32, 2])?;
    assert_eq!(cudas[1].clone_dtoh(&slice)?, [1, 2]);
    drop((slice, cudas, first, second));
    let cuda = new_stream()?; // whereby what is left of the others is given up
    let stream = Stream::from_cudarc(&cuda)?;
    assert_eq!(stream.upload(&[3u32])?.to_vec(&stream)?, [3]);
    Ok(())
}

fn objects_of_another_context_are_refused() -> Tested {
    let (first, second) = (CudaContext::new(0)?, CudaContext::new_non_primary(0, 0)?);
    let (here, there) = (first.new_stream()?, second.new_stream()?);
    let mut slice = there.clone_htod(&[1u32, 2, 3])?;
    let stream = Stream::from_cudarc(&here)?;
    let is_refused = |error: Error| matches!(error, Error::WrongContext { ordinal: 0, .. });
    assert!(stream.lend(&slice, |_| Ok(())).is_err_and(is_refused));
    assert!(stream.lend(&mut slice, |_| Ok(())).is_err_and(is_refused));
    // SAFETY: it is a stream.
    let borrowed = unsafe { Stream::borrow_cuda_stream(&Device::cuda(0)?, there.cu_stream().cast()) };
    assert!(borrowed.is_err_and(is_refused));
    let vector = Stream::from_cudarc(&there)?.upload(&[1u32])?;
    assert!(vector.to_vec(&stream).is_err_and(is_refused));
    assert!(stream.cudarc_view(&vector, |_| ()).is_err_and(is_refused));
    assert_eq!(there.clone_dtoh(&slice)?, [1, 2, 3]);
    // The raw interface gives the same devices.
    // SAFETY: the context outlives the device.
    let device = unsafe { Device::borrow_cuda_context(second.cu_ctx().cast())? };
    assert_eq!(device, Device::from_cudarc(&second)?);
    let (address, _record) = slice.device_ptr(&there);
    assert_ne!(address, 0);
    Ok(())
}

fn streams_that_do_not_fit_are_refused() -> Tested {
    let context = CudaContext::new(0)?;
    let is_refused = |error: Error| matches!(error, Error::InvalidOption { .. });
    assert!(Stream::from_cudarc(&context.per_thread_stream()).is_err_and(is_refused));
    let slice = context.default_stream().clone_htod(&[1u32])?;
    let own = Device::from_cudarc(&context)?.stream()?;
    assert!(own.cudarc().is_none());
    assert!(own.lend(&slice, |_| Ok(())).is_err_and(is_refused));
    assert!(own.cudarc_view(&own.upload(&[1u32])?, |_| ()).is_err_and(is_refused));
    Ok(())
}
