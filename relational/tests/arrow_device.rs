//! Arrow's C device data interface.

#![cfg(feature = "arrow")]

use arrow_schema::DataType;
use arrow_schema::ffi::FFI_ArrowSchema;
use gpu_primitives::{CpuOptions, Device, Error, Stream};
use gpu_relational::arrow::{ArrowDeviceArray, Imported, OnDevice, export_device, import_device};
use gpu_relational::{Column, Dates, Decimals, TimeUnit, Timestamps, group_by, join};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Runs a test on the CPU devices, and on a GPU if there is one. One test at a time: a GPU is one device for all threads, which counts the
/// memory of all of them.
fn on_devices(test: impl Fn(&Stream)) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut devices =
        vec![Device::cpu_with(CpuOptions { only_with_ptx: true, ..CpuOptions::default() }), Device::cpu_checked()];
    devices.extend(Device::cuda(0).ok());
    for device in devices {
        test(&device.stream().unwrap());
    }
}

/// Exports a column and imports it again.
fn there_and_back<C: OnDevice>(stream: &Stream, column: C) -> Imported<C> {
    let (array, schema) = export_device(stream, Arc::new(column)).unwrap();
    // SAFETY: both come from `export_device`, and nothing else uses the memory.
    unsafe { import_device::<C>(stream, array, &schema).unwrap() }
}

#[test]
fn columns_go_there_and_back_without_a_copy() {
    on_devices(|stream| {
        let numbers = [Some(3i32), None, Some(-7), Some(i32::MIN)];
        let column = Column::upload_optional(stream, &numbers).unwrap();
        let address = column.values().as_ptr();
        let again = there_and_back(stream, column);
        assert_eq!(again.values().as_ptr(), address);
        assert_eq!(again.to_options(stream).unwrap(), numbers);
        // It goes wherever a column goes.
        let groups = group_by(stream, &*again).unwrap();
        assert_eq!(groups.len(), 4);
        assert_eq!(join::inner(stream, &*again, &*again).unwrap().left.len(), 3);
        drop(again);

        macro_rules! plain {
            ($($type:ident)*) => { $({
                let numbers: Vec<$type> = (0..100u8).map(|i| i as $type).collect();
                let again = there_and_back(stream, Column::upload(stream, &numbers).unwrap());
                assert_eq!(again.to_vec(stream).unwrap(), numbers);
                assert!(again.valid().is_none());
            })* };
        }
        plain! { i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 }
        let empty = there_and_back(stream, Column::<i64>::upload(stream, &[]).unwrap());
        assert!(empty.is_empty());
        drop(empty);

        let prices = Decimals::<i64>::upload_optional(stream, [Some("1.50"), None], 2).unwrap();
        let again = there_and_back(stream, prices);
        assert_eq!(again.to_strings(stream).unwrap(), [Some("1.50".into()), None]);
        let again = there_and_back(stream, again.widen(stream).unwrap());
        assert_eq!(again.to_strings(stream).unwrap(), [Some("1.50".into()), None]);
        let dates = there_and_back(stream, Dates::upload(stream, ["2024-02-29"]).unwrap());
        assert_eq!(dates.to_strings(stream).unwrap(), [Some("2024-02-29".into())]);
        let moments = Column::upload(stream, &[5i64]).unwrap();
        let moments =
            there_and_back(stream, Timestamps::new(moments, TimeUnit::Millisecond).with_zone("Europe/Berlin"));
        assert_eq!((moments.unit(), moments.zone()), (TimeUnit::Millisecond, Some("Europe/Berlin")));
    });
}

#[test]
fn a_column_lives_as_long_as_its_array() {
    on_devices(|stream| {
        let before = stream.device().memory_used();
        let column = Arc::new(Column::upload(stream, &[1u64, 2, 3]).unwrap());
        let (array, schema) = export_device(stream, Arc::clone(&column)).unwrap();
        assert_eq!(column.to_vec(stream).unwrap(), [1, 2, 3]);
        drop(column);
        // SAFETY: both come from `export_device`.
        let again = unsafe { import_device::<Column<u64>>(stream, array, &schema).unwrap() };
        let other = stream.device().stream().unwrap();
        let sorted = gpu_relational::sort_by(&other, gpu_relational::desc(&*again)).unwrap();
        assert_eq!(sorted.take(&other, &*again).unwrap().to_vec(&other).unwrap(), [3, 2, 1]);
        drop((sorted, again));
        let (array, _) = export_device(stream, Arc::new(Column::upload(stream, &[1u8]).unwrap())).unwrap();
        // Another thread may release it.
        std::thread::spawn(move || drop(array)).join().unwrap();
        other.synchronize().unwrap();
        stream.synchronize().unwrap();
        assert_eq!(stream.device().memory_used(), before);
    });
}

static RELEASED: AtomicUsize = AtomicUsize::new(0);

/// An array of a producer of its own, in memory of the host.
fn produced(values: &'static [i32], bits: Option<&'static [u8]>, offset: i64) -> ArrowDeviceArray {
    unsafe extern "C" fn release(array: *mut gpu_relational::arrow::ArrowArray) {
        RELEASED.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the buffers were made below.
        unsafe {
            drop(Box::from_raw((*array).buffers.cast::<[*const c_void; 2]>()));
            (*array).release = None;
        }
    }
    let buffers: [*const c_void; 2] =
        [bits.map_or(null_mut(), |bits| bits.as_ptr().cast_mut()).cast(), values.as_ptr().cast()];
    let array = gpu_relational::arrow::ArrowArray {
        length: values.len() as i64 - offset,
        null_count: if bits.is_some() { -1 } else { 0 },
        offset,
        n_buffers: 2,
        n_children: 0,
        buffers: Box::into_raw(Box::new(buffers)).cast(),
        children: null_mut(),
        dictionary: null_mut(),
        release: Some(release),
        private_data: null_mut(),
    };
    ArrowDeviceArray { array, device_id: -1, device_type: 1, sync_event: null_mut(), reserved: [0; 3] }
}

#[test]
fn arrays_are_released_once_and_refused_if_they_are_wrong() {
    let stream = &Device::cpu_checked().stream().unwrap();
    let schema = FFI_ArrowSchema::try_from(&DataType::Int32).unwrap();
    let released = || RELEASED.swap(0, Ordering::Relaxed);
    static NUMBERS: [i32; 5] = [9, 8, 7, 6, 5];
    // SAFETY: the array is valid.
    let import = |array: ArrowDeviceArray| unsafe { import_device::<Column<i32>>(stream, array, &schema) };

    let column = import(produced(&NUMBERS, Some(&[0b1_1010]), 1)).unwrap();
    assert_eq!(column.to_options(stream).unwrap(), [Some(8), None, Some(6), Some(5)]);
    assert_eq!(released(), 0);
    drop(column);
    assert_eq!(released(), 1);

    let mut array = produced(&NUMBERS, None, 0);
    // SAFETY: the array is valid.
    let taken = unsafe { ArrowDeviceArray::from_raw(&raw mut array) };
    drop(array);
    assert_eq!((released(), import(taken).unwrap().to_vec(stream).unwrap()), (0, NUMBERS.to_vec()));
    assert_eq!(released(), 1);

    /// What is wrong with an array.
    type Change = fn(&mut ArrowDeviceArray);
    let wrong: [(&str, Change); 10] = [
        ("children", |array| array.array.n_children = 1),
        ("buffers", |array| array.array.n_buffers = 3),
        ("no buffers", |array| array.array.n_buffers = 0),
        ("length", |array| array.array.length = -1),
        ("offset", |array| array.array.offset = -4),
        ("long", |array| array.array.length = i64::MAX),
        ("nulls", |array| array.array.null_count = 1),
        ("another device", |array| (array.device_type, array.device_id) = (2, 0)),
        ("an unknown device", |array| array.device_type = 99),
        ("an event", |array| array.sync_event = std::ptr::dangling_mut()),
    ];
    for (what, change) in wrong {
        let mut array = produced(&NUMBERS, None, 0);
        change(&mut array);
        let error = import(array).unwrap_err();
        assert!(matches!(error, Error::InvalidOption { .. } | Error::WrongDevice { .. }), "{what}: {error}");
        assert_eq!(released(), 1, "{what}");
    }
    let array = produced(&NUMBERS, None, 0);
    // SAFETY: there are two buffers.
    unsafe { array.array.buffers.add(1).write(std::ptr::null()) };
    assert!(matches!(import(array), Err(Error::InvalidOption { .. })));
    let array = produced(&NUMBERS, None, 0);
    // SAFETY: the same. The address is that of an odd byte.
    unsafe { array.array.buffers.add(1).write(NUMBERS.as_ptr().cast::<u8>().add(1).cast()) };
    assert!(matches!(import(array), Err(Error::Misaligned { .. })));
    let array = produced(&NUMBERS, None, 0);
    // SAFETY: the type is looked at before anything else.
    let other = unsafe { import_device::<Column<u32>>(stream, array, &schema) };
    assert!(matches!(other, Err(Error::InvalidOption { .. })));
    assert_eq!(released(), 3);

    // Memory runs out at each allocation in turn: the array is released.
    for successes in 0.. {
        stream.fail_allocation_after(Some(successes));
        let column = import(produced(&NUMBERS, Some(&[0b1_1011]), 0));
        stream.fail_allocation_after(None);
        let is_done = column.is_ok();
        assert!(is_done || matches!(column, Err(Error::OutOfMemory { .. })));
        drop(column);
        assert_eq!(released(), 1);
        if is_done {
            assert!(successes > 0);
            break;
        }
    }
}
