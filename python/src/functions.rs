//! The primitives. The Python side checks shapes, makes the arrays for results, and documents them.

use crate::dtype::{DType, each_long, each_size, each_type, each_word};
use crate::error::{OrRaise, type_error, value_error};
use crate::stream::PyStream;
use crate::tensor::{Tensor, check};
use gpu_primitives::compare::{Greater, Less};
use gpu_primitives::equality::Same;
use gpu_primitives::monoid::{Max, Min, Sum};
use gpu_primitives::operator::{bucket, map, predicate};
use gpu_primitives::order_statistics::{self, Rows};
use gpu_primitives::sort::{Options, SortColumn};
use gpu_primitives::{
    Bits, DeviceSlice, DeviceVec, Error, Offsets, Stream, bits, histogram, merge, multisplit, reduce, runs, scan,
    search, select, sets, sort, source, top_k, transfer, transform,
};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

/// A tensor that only this call holds.
type In<'py> = PyRef<'py, Tensor>;

fn options(descending: bool) -> Options {
    if descending { Options::new().descending() } else { Options::new() }
}

/// Checks that arrays have the dtype of the first one.
fn same_dtype(first: &Tensor, others: &[&Tensor]) -> PyResult<()> {
    others.iter().try_for_each(|other| other.expect_dtype("another array of the call", first.dtype))
}

/// Copies positions of 32 bits to an array of integers of 32 or 64 bits.
fn write_positions(stream: &Stream, from: DeviceSlice<'_, u32>, out: &Tensor) -> Result<(), Error> {
    match out.dtype {
        DType::I64 | DType::U64 => {
            transform::map(stream, from, out.slice_mut::<u64>(stream), map!(|position: u32| -> u64 { position as u64 }))
        }
        _ => transfer::copy(stream, from, out.slice_mut::<u32>(stream)),
    }
}

/// Checks that positions in `len` elements fit in an array for them.
fn expect_positions(out: &Tensor, len: usize) -> PyResult<()> {
    match out.dtype {
        DType::I32 if len > i32::MAX as usize => Err(value_error(format!(
            "positions in {len} elements do not fit in int32; pass an array of int64 for them"
        ))),
        DType::I32 | DType::U32 | DType::I64 | DType::U64 => Ok(()),
        other => Err(type_error(format!("positions need int64 or int32; the array for them has {}", other.name()))),
    }
}

fn expect_offsets(offsets: &Tensor) -> PyResult<()> {
    match offsets.dtype {
        DType::I32 | DType::U32 | DType::I64 | DType::U64 => Ok(()),
        other => Err(type_error(format!("offsets need int64 or int32, not {}", other.name()))),
    }
}

/// Returns an error if an offset is negative. Waits, if they can be.
fn expect_not_negative(stream: &Stream, offsets: &Tensor) -> Result<(), Error> {
    let least = match offsets.dtype {
        _ if offsets.len() == 0 => 0,
        DType::I32 => i64::from(reduce::reduce(stream, offsets.slice::<i32>(stream), Min)?.get(stream)?),
        DType::I64 => reduce::reduce(stream, offsets.slice::<i64>(stream), Min)?.get(stream)?,
        _ => 0,
    };
    if least < 0 {
        let allowed = "from 0 to the number of elements";
        return Err(Error::InvalidOption { what: "an offset", asked: least.to_string(), allowed });
    }
    Ok(())
}

/// Returns offsets as `u32`. Larger ones become the largest, so that the check of the call finds them.
fn short_offsets(stream: &Stream, offsets: &Tensor) -> Result<DeviceVec<u32>, Error> {
    let mut short = stream.uninit::<u32>(offsets.len())?;
    if offsets.dtype.size() == 8 {
        let narrow = map!(|x: u64| -> u32 { if x > 0xFFFF_FFFF { 0xFFFF_FFFF } else { x as u32 } });
        transform::map(stream, offsets.slice::<u64>(stream), &mut short, narrow)?;
    } else {
        transfer::copy(stream, offsets.slice::<u32>(stream), &mut short)?;
    }
    Ok(short)
}

#[pyfunction]
pub fn sort_keys(py: Python<'_>, stream: &PyStream, x: In<'_>, out: In<'_>, descending: bool) -> PyResult<()> {
    check(stream, &[&x], &[&out])?;
    same_dtype(&x, &[&out])?;
    let (stream, x, out) = (&stream.stream, &*x, &*out);
    each_type!(x.dtype, T => {
        py.detach(|| sort::keys(stream, x.slice::<T>(stream), out.slice_mut::<T>(stream), options(descending))).or_raise()
    })
}

#[pyfunction]
pub fn argsort(py: Python<'_>, stream: &PyStream, x: In<'_>, out: In<'_>, descending: bool) -> PyResult<()> {
    check(stream, &[&x], &[&out])?;
    expect_positions(&out, x.len())?;
    out.expect_len("the array for the result", x.len())?;
    let (stream, x, out) = (&stream.stream, &*x, &*out);
    each_type!(x.dtype, T => py.detach(|| {
        let order = sort::argsort(stream, x.slice::<T>(stream), options(descending))?;
        write_positions(stream, order.as_slice(), out)
    }).or_raise())
}

/// Sorts segments. Copies the elements before the first one and after the last one.
#[pyfunction]
pub fn segmented_sort(
    py: Python<'_>,
    stream: &PyStream,
    x: In<'_>,
    offsets: In<'_>,
    out: In<'_>,
    descending: bool,
) -> PyResult<()> {
    check(stream, &[&x, &offsets], &[&out])?;
    same_dtype(&x, &[&out])?;
    expect_offsets(&offsets)?;
    let (stream, x, offsets, out) = (&stream.stream, &*x, &*offsets, &*out);
    each_type!(x.dtype, T => py.detach(|| {
        expect_not_negative(stream, offsets)?;
        let short = short_offsets(stream, offsets)?;
        let (from, to) = (x.slice::<T>(stream), out.slice_mut::<T>(stream));
        // Checks the offsets before it writes anything.
        if descending {
            sort::segmented_keys(stream, from, &short, to, Greater)?;
        } else {
            sort::segmented_keys(stream, from, &short, to, Less)?;
        }
        let end = |at: usize| Ok::<_, Error>(short.slice(at..at + 1)?.to_vec(stream)?[0] as usize);
        let (first, last) = (end(0)?, end(short.len() - 1)?);
        for rest in [0..first, last..x.len()] {
            let to = out.slice_mut::<T>(stream);
            transfer::copy(stream, from.slice(rest.clone())?, to.slice_mut(rest)?)?;
        }
        Ok(())
    }).or_raise())
}

/// Sorts each row.
#[pyfunction]
pub fn sort_rows(
    py: Python<'_>,
    stream: &PyStream,
    x: In<'_>,
    row: usize,
    out: In<'_>,
    descending: bool,
) -> PyResult<()> {
    check(stream, &[&x], &[&out])?;
    same_dtype(&x, &[&out])?;
    let (stream, x, out) = (&stream.stream, &*x, &*out);
    let row = u32::try_from(row).ok().filter(|_| u32::try_from(x.len()).is_ok());
    let row =
        row.ok_or_else(|| value_error("the rows have more than 2^32 - 1 elements together; sort parts of them"))?;
    let rows = x.len().checked_div(row as usize).unwrap_or(0);
    each_type!(x.dtype, T => py.detach(|| {
        let mut offsets = stream.uninit::<u32>(rows + 1)?;
        transform::map(stream, source::counting(0u32, rows + 1), &mut offsets, map!(row: u32 = row; |i: u32| -> u32 { i * row }))?;
        // SAFETY: the offsets are multiples of the length of a row, up to the length of the input.
        let offsets = unsafe { Offsets::unchecked(&offsets) };
        let (from, to) = (x.slice::<T>(stream), out.slice_mut::<T>(stream));
        if descending {
            sort::segmented_keys(stream, from, offsets, to, Greater)
        } else {
            sort::segmented_keys(stream, from, offsets, to, Less)
        }
    }).or_raise())
}

#[pyfunction]
pub fn topk(
    py: Python<'_>,
    stream: &PyStream,
    x: In<'_>,
    values: In<'_>,
    positions: In<'_>,
    largest: bool,
) -> PyResult<()> {
    check(stream, &[&x], &[&values, &positions])?;
    same_dtype(&x, &[&values])?;
    let (stream, x, values, positions) = (&stream.stream, &*x, &*values, &*positions);
    if !matches!(positions.dtype, DType::I64 | DType::U64) {
        return Err(type_error("the array for positions must be int64"));
    }
    each_type!(x.dtype, T => py.detach(|| {
        let (from, to, at) = (x.slice::<T>(stream), values.slice_mut::<T>(stream), positions.slice_mut::<u64>(stream));
        if largest { top_k::largest(stream, from, (to, at)) } else { top_k::smallest(stream, from, (to, at)) }
    }).or_raise())
}

#[pyfunction]
pub fn topk_rows(
    py: Python<'_>,
    stream: &PyStream,
    x: In<'_>,
    row: usize,
    k: usize,
    out: (In<'_>, In<'_>),
    largest: bool,
) -> PyResult<()> {
    check(stream, &[&x], &[&out.0, &out.1])?;
    same_dtype(&x, &[&out.0])?;
    expect_positions(&out.1, row)?;
    let (stream, x, values, positions) = (&stream.stream, &*x, &*out.0, &*out.1);
    each_type!(x.dtype, T => py.detach(|| {
        let (from, to) = (x.slice::<T>(stream), values.slice_mut::<T>(stream));
        let mut short = stream.uninit::<u32>(positions.len())?;
        if largest {
            top_k::segmented_largest(stream, from, Rows::of_len(row), k, (to, &mut short))?;
        } else {
            top_k::segmented_smallest(stream, from, Rows::of_len(row), k, (to, &mut short))?;
        }
        write_positions(stream, short.as_slice(), positions)
    }).or_raise())
}

/// Elements of these ranks, and their positions.
#[pyfunction]
pub fn select_kth(
    py: Python<'_>,
    stream: &PyStream,
    x: In<'_>,
    ranks: Vec<usize>,
    values: In<'_>,
    positions: In<'_>,
) -> PyResult<()> {
    check(stream, &[&x], &[&values, &positions])?;
    same_dtype(&x, &[&values])?;
    positions.expect_dtype("the array for positions", DType::I64)?;
    let (stream, x, values, positions) = (&stream.stream, &*x, &*values, &*positions);
    each_type!(x.dtype, T => py.detach(|| {
        let (to, at) = (values.slice_mut::<T>(stream), positions.slice_mut::<u64>(stream));
        order_statistics::select_kth(stream, x.slice::<T>(stream), &ranks, (to, at))
    }).or_raise())
}

/// The element of one rank of each row, and its position in the row.
#[pyfunction]
pub fn select_kth_rows(
    py: Python<'_>,
    stream: &PyStream,
    x: In<'_>,
    row: usize,
    rank: u32,
    out: (In<'_>, In<'_>),
) -> PyResult<()> {
    check(stream, &[&x], &[&out.0, &out.1])?;
    same_dtype(&x, &[&out.0])?;
    expect_positions(&out.1, row)?;
    let (stream, x, values, positions) = (&stream.stream, &*x, &*out.0, &*out.1);
    let rows = values.len();
    each_type!(x.dtype, T => py.detach(|| {
        let ranks = stream.upload(&vec![rank; rows])?;
        let mut short = stream.uninit::<u32>(rows)?;
        let to = values.slice_mut::<T>(stream);
        order_statistics::segmented_select_kth(stream, x.slice::<T>(stream), Rows::of_len(row), &ranks, (to, &mut short))?;
        write_positions(stream, short.as_slice(), positions)
    }).or_raise())
}

#[pyfunction]
pub fn quantiles(py: Python<'_>, stream: &PyStream, x: In<'_>, fractions: Vec<f64>, out: In<'_>) -> PyResult<()> {
    check(stream, &[&x], &[&out])?;
    same_dtype(&x, &[&out])?;
    let (stream, x, out) = (&stream.stream, &*x, &*out);
    each_type!(x.dtype, T => py.detach(|| {
        order_statistics::quantiles(stream, x.slice::<T>(stream), &fractions, out.slice_mut::<T>(stream))
    }).or_raise())
}

/// The quantiles of each row, row by row.
#[pyfunction]
pub fn quantiles_rows(
    py: Python<'_>,
    stream: &PyStream,
    x: In<'_>,
    row: usize,
    fractions: Vec<f64>,
    out: In<'_>,
) -> PyResult<()> {
    check(stream, &[&x], &[&out])?;
    same_dtype(&x, &[&out])?;
    let (stream, x, out) = (&stream.stream, &*x, &*out);
    each_type!(x.dtype, T => py.detach(|| {
        let (from, to) = (x.slice::<T>(stream), out.slice_mut::<T>(stream));
        order_statistics::segmented_quantiles(stream, from, Rows::of_len(row), &fractions, to)
    }).or_raise())
}

/// The distinct elements, and how many there are. The arrays are as long as the input.
#[pyfunction]
pub fn unique(
    py: Python<'_>,
    stream: &PyStream,
    x: In<'_>,
    out: In<'_>,
    counts: Option<In<'_>>,
    inverse: Option<In<'_>>,
) -> PyResult<u64> {
    let written: Vec<&Tensor> =
        [Some(&out), counts.as_ref(), inverse.as_ref()].into_iter().flatten().map(|t| &**t).collect();
    check(stream, &[&x], &written)?;
    same_dtype(&x, &[&out])?;
    let (stream, x, out) = (&stream.stream, &*x, &*out);
    let counts = counts.as_deref();
    let inverse = inverse.as_deref();
    counts.map_or(Ok(()), |counts| counts.expect_dtype("the array for counts", DType::I64))?;
    inverse.map_or(Ok(()), |inverse| inverse.expect_dtype("the array for the inverse", DType::I64))?;
    each_type!(x.dtype, T => py.detach(|| {
        let from = x.slice::<T>(stream);
        let mut found = None;
        if let Some(counts) = counts {
            found = Some(runs::distinct_counts(stream, from, (out.slice_mut::<T>(stream), counts.slice_mut::<u64>(stream)))?);
        }
        if let Some(inverse) = inverse {
            let mut short = stream.uninit::<u32>(x.len())?;
            found = Some(runs::distinct_inverse(stream, from, (out.slice_mut::<T>(stream), &mut short))?);
            write_positions(stream, short.as_slice(), inverse)?;
        }
        match found {
            Some(found) => found.get(stream),
            None => runs::distinct(stream, from, out.slice_mut::<T>(stream))?.get(stream),
        }
    }).or_raise())
}

#[pyfunction]
pub fn searchsorted(
    py: Python<'_>,
    stream: &PyStream,
    sorted: In<'_>,
    keys: In<'_>,
    out: In<'_>,
    right: bool,
) -> PyResult<()> {
    check(stream, &[&sorted, &keys], &[&out])?;
    same_dtype(&sorted, &[&keys])?;
    expect_positions(&out, sorted.len())?;
    let (stream, sorted, keys, out) = (&stream.stream, &*sorted, &*keys, &*out);
    each_type!(sorted.dtype, T => py.detach(|| {
        let (haystack, needles) = (sorted.slice::<T>(stream), keys.slice::<T>(stream));
        match (out.dtype.size(), right) {
            (8, false) => search::lower_bound(stream, haystack, needles, out.slice_mut::<u64>(stream), Less),
            (8, true) => search::upper_bound(stream, haystack, needles, out.slice_mut::<u64>(stream), Less),
            (_, false) => search::lower_bound(stream, haystack, needles, out.slice_mut::<u32>(stream), Less),
            (_, true) => search::upper_bound(stream, haystack, needles, out.slice_mut::<u32>(stream), Less),
        }
    }).or_raise())
}

/// Whether each key occurs in a sorted array.
#[pyfunction]
pub fn is_in_sorted(
    py: Python<'_>,
    stream: &PyStream,
    sorted: In<'_>,
    keys: In<'_>,
    out: In<'_>,
    invert: bool,
) -> PyResult<()> {
    check(stream, &[&sorted, &keys], &[&out])?;
    same_dtype(&sorted, &[&keys])?;
    out.expect_dtype("the array for the result", DType::Bool)?;
    out.expect_len("the array for the result", keys.len())?;
    let (stream, sorted, keys, out) = (&stream.stream, &*sorted, &*keys, &*out);
    each_type!(sorted.dtype, T => py.detach(|| {
        let (mut low, mut high) = (stream.uninit::<u64>(keys.len())?, stream.uninit::<u64>(keys.len())?);
        search::equal_range(stream, sorted.slice::<T>(stream), keys.slice::<T>(stream), &mut low, &mut high, Less)?;
        let flags = out.slice_mut::<u8>(stream);
        if invert {
            transform::map2(stream, &low, &high, flags, map!(|low: u64, high: u64| -> u8 { (low == high) as u8 }))
        } else {
            transform::map2(stream, &low, &high, flags, map!(|low: u64, high: u64| -> u8 { (low < high) as u8 }))
        }
    }).or_raise())
}

#[pyfunction]
pub fn merge_sorted(py: Python<'_>, stream: &PyStream, parts: Vec<In<'_>>, out: In<'_>) -> PyResult<()> {
    let parts: Vec<&Tensor> = parts.iter().map(|part| &**part).collect();
    check(stream, &parts, &[&out])?;
    same_dtype(&out, &parts)?;
    let (stream, out) = (&stream.stream, &*out);
    each_type!(out.dtype, T => py.detach(|| {
        let slices: Vec<_> = parts.iter().map(|part| part.slice::<T>(stream)).collect();
        match slices[..] {
            [a, b] => merge::keys(stream, a, b, out.slice_mut::<T>(stream), Less),
            _ => merge::runs_keys(stream, &slices, out.slice_mut::<T>(stream), Less),
        }
    }).or_raise())
}

#[pyfunction]
pub fn cumsum(py: Python<'_>, stream: &PyStream, x: In<'_>, out: In<'_>) -> PyResult<()> {
    check(stream, &[&x], &[&out])?;
    same_dtype(&x, &[&out])?;
    let (stream, x, out) = (&stream.stream, &*x, &*out);
    each_type!(x.dtype, T => py.detach(|| scan::inclusive_sum(stream, x.slice::<T>(stream), out.slice_mut::<T>(stream))).or_raise())
}

/// The sums of segments. Offsets beyond the input count as its end. Waits for a check that none is negative.
#[pyfunction]
pub fn segmented_sum(py: Python<'_>, stream: &PyStream, x: In<'_>, offsets: In<'_>, out: In<'_>) -> PyResult<()> {
    check(stream, &[&x, &offsets], &[&out])?;
    same_dtype(&x, &[&out])?;
    expect_offsets(&offsets)?;
    let (stream, x, offsets, out) = (&stream.stream, &*x, &*offsets, &*out);
    each_type!(x.dtype, T => py.detach(|| {
        expect_not_negative(stream, offsets)?;
        let (from, to) = (x.slice::<T>(stream), out.slice_mut::<T>(stream));
        if offsets.dtype.size() == 4 {
            return reduce::segmented(stream, from, offsets.slice::<u32>(stream), to, Sum);
        }
        let (mut ends, len) = (stream.uninit::<u64>(offsets.len())?, x.len() as u64);
        let clamp = map!(len: u64 = len; |x: u64| -> u64 { if x > len { len } else { x } });
        transform::map(stream, offsets.slice::<u64>(stream), &mut ends, clamp)?;
        reduce::segmented(stream, from, &ends, to, Sum)
    }).or_raise())
}

/// Combines the values of neighbours with equal keys. Returns how many keys there are.
#[pyfunction]
pub fn reduce_by_key(
    py: Python<'_>,
    stream: &PyStream,
    pairs: (In<'_>, In<'_>),
    out: (In<'_>, In<'_>),
    op: &str,
) -> PyResult<u64> {
    let (keys, values, to_keys, to_values) = (&*pairs.0, &*pairs.1, &*out.0, &*out.1);
    check(stream, &[keys, values], &[to_keys, to_values])?;
    same_dtype(keys, &[to_keys])?;
    same_dtype(values, &[to_values])?;
    values.expect_len("the array of values", keys.len())?;
    if !matches!(op, "sum" | "max" | "min") {
        return Err(value_error(format!("the operation {op:?} is none of \"sum\", \"max\", \"min\"")));
    }
    let stream = &stream.stream;
    // Keys are compared by their bits. The package widens smaller ones.
    each_long!(keys.dtype, "keys", K => each_word!(values.dtype, "values", V => py.detach(|| {
        let (keys, values) = (keys.slice::<K>(stream), values.slice::<V>(stream));
        let (to_keys, to_values) = (to_keys.slice_mut::<K>(stream), to_values.slice_mut::<V>(stream));
        match op {
            "sum" => runs::reduce_by_key(stream, (keys, values), (to_keys, to_values), Same, Sum)?.get(stream),
            "max" => runs::reduce_by_key(stream, (keys, values), (to_keys, to_values), Same, Max)?.get(stream),
            _ => runs::reduce_by_key(stream, (keys, values), (to_keys, to_values), Same, Min)?.get(stream),
        }
    }).or_raise()))
}

/// Counts floats between levels: from one on, and before the next one.
#[pyfunction]
pub fn histogram_levels(
    py: Python<'_>,
    stream: &PyStream,
    x: In<'_>,
    counts: In<'_>,
    levels: Vec<f64>,
) -> PyResult<()> {
    check(stream, &[&x], &[&counts])?;
    counts.expect_dtype("the array for counts", DType::I64)?;
    let (stream, x, counts) = (&stream.stream, &*x, &*counts);
    py.detach(|| {
        let to = counts.slice_mut::<u64>(stream);
        if x.dtype == DType::F32 {
            let levels = stream.upload(&levels.iter().map(|&level| level as f32).collect::<Vec<_>>())?;
            histogram::ranges(stream, x.slice::<f32>(stream), to, &levels)
        } else {
            histogram::ranges(stream, x.slice::<f64>(stream), to, &stream.upload(&levels)?)
        }
    })
    .or_raise()
}

/// Counts the integers 0, 1, 2 and so on.
#[pyfunction]
pub fn bincount(py: Python<'_>, stream: &PyStream, x: In<'_>, counts: In<'_>) -> PyResult<()> {
    check(stream, &[&x], &[&counts])?;
    counts.expect_dtype("the array for counts", DType::I64)?;
    let (stream, x, counts) = (&stream.stream, &*x, &*counts);
    let to = || counts.slice_mut::<u64>(stream);
    py.detach(|| {
        Ok(match x.dtype {
            DType::I8 => histogram::bincount(stream, x.slice::<i8>(stream), to()),
            DType::I16 => histogram::bincount(stream, x.slice::<i16>(stream), to()),
            DType::I32 => histogram::bincount(stream, x.slice::<i32>(stream), to()),
            DType::I64 => histogram::bincount(stream, x.slice::<i64>(stream), to()),
            DType::U8 | DType::Bool => histogram::bincount(stream, x.slice::<u8>(stream), to()),
            DType::U16 => histogram::bincount(stream, x.slice::<u16>(stream), to()),
            DType::U32 => histogram::bincount(stream, x.slice::<u32>(stream), to()),
            DType::U64 => histogram::bincount(stream, x.slice::<u64>(stream), to()),
            _ => return Err(()),
        })
    })
    .map_err(|()| type_error("bincount needs integers"))?
    .or_raise()
}

/// The smallest and the largest element. Waits.
#[pyfunction]
pub fn min_max<'py>(
    py: Python<'py>,
    stream: &PyStream,
    x: In<'py>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    check(stream, &[&x], &[])?;
    let (stream, x) = (&stream.stream, &*x);
    macro_rules! both {
        ($T:ty, $number:ty) => {{
            let read = || {
                let from = x.slice::<$T>(stream);
                Ok((reduce::reduce(stream, from, Min)?.get(stream)?, reduce::reduce(stream, from, Max)?.get(stream)?))
            };
            let (low, high) = py.detach(read).or_raise()?;
            let to_python = |number: $T| <$number>::from(number).into_bound_py_any(py);
            Ok((to_python(low)?, to_python(high)?))
        }};
    }
    match x.dtype {
        DType::Bool | DType::U8 => both!(u8, u64),
        DType::U16 => both!(u16, u64),
        DType::U32 => both!(u32, u64),
        DType::U64 => both!(u64, u64),
        DType::I8 => both!(i8, i64),
        DType::I16 => both!(i16, i64),
        DType::I32 => both!(i32, i64),
        DType::I64 => both!(i64, i64),
        DType::F16 => both!(half::f16, f64),
        DType::BF16 => both!(half::bf16, f64),
        DType::F32 => both!(f32, f64),
        DType::F64 => both!(f64, f64),
    }
}

/// Copies as many of the first elements as there is room for.
#[pyfunction]
pub fn copy_head(py: Python<'_>, stream: &PyStream, from: In<'_>, out: In<'_>) -> PyResult<()> {
    check(stream, &[&from], &[&out])?;
    same_dtype(&from, &[&out])?;
    let (stream, from, out) = (&stream.stream, &*from, &*out);
    each_size!(out.dtype, T => {
        py.detach(|| transfer::copy(stream, from.slice::<T>(stream).slice(..out.len())?, out.slice_mut::<T>(stream))).or_raise()
    })
}

/// The elements whose flag is not 0. Returns how many there are.
#[pyfunction]
pub fn select_flagged(py: Python<'_>, stream: &PyStream, x: In<'_>, mask: In<'_>, out: In<'_>) -> PyResult<u64> {
    check(stream, &[&x, &mask], &[&out])?;
    same_dtype(&x, &[&out])?;
    let (stream, x, mask, out) = (&stream.stream, &*x, &*mask, &*out);
    each_size!(x.dtype, T => py.detach(|| {
        let flags = mask.slice::<u8>(stream);
        select::flagged(stream, x.slice::<T>(stream), flags, out.slice_mut::<T>(stream))?.get(stream)
    }).or_raise())
}

/// The positions of the elements that are not 0. Returns how many there are.
#[pyfunction]
pub fn nonzero(py: Python<'_>, stream: &PyStream, x: In<'_>, out: In<'_>) -> PyResult<u64> {
    check(stream, &[&x], &[&out])?;
    out.expect_dtype("the array for positions", DType::I64)?;
    let (stream, x, out) = (&stream.stream, &*x, &*out);
    let is_float = matches!(x.dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64);
    py.detach(|| {
        let mut bytes = stream.uninit::<u8>(x.len().div_ceil(8))?;
        match (x.dtype.size(), is_float) {
            (1, _) => bits::pack(stream, x.slice::<u8>(stream), &mut bytes, predicate!(|x: u8| x != 0))?,
            (2, false) => bits::pack(stream, x.slice::<u16>(stream), &mut bytes, predicate!(|x: u16| x != 0))?,
            (4, false) => bits::pack(stream, x.slice::<u32>(stream), &mut bytes, predicate!(|x: u32| x != 0))?,
            (_, false) => bits::pack(stream, x.slice::<u64>(stream), &mut bytes, predicate!(|x: u64| x != 0))?,
            // -0 is 0.
            (2, true) => bits::pack(stream, x.slice::<u16>(stream), &mut bytes, predicate!(|x: u16| x & 0x7FFF != 0))?,
            (4, true) => {
                bits::pack(stream, x.slice::<u32>(stream), &mut bytes, predicate!(|x: u32| x & 0x7FFF_FFFF != 0))?
            }
            (_, true) => {
                bits::pack(
                    stream,
                    x.slice::<u64>(stream),
                    &mut bytes,
                    predicate!(|x: u64| x & 0x7FFF_FFFF_FFFF_FFFF != 0),
                )?;
            }
        }
        let set = Bits::new(&bytes, 0, x.len())?;
        bits::positions(stream, set, out.slice_mut::<u64>(stream))?.get(stream)
    })
    .or_raise()
}

/// The elements whose flag is not 0, and then the others. Returns how many are flagged.
#[pyfunction]
pub fn partition(py: Python<'_>, stream: &PyStream, x: In<'_>, mask: In<'_>, out: In<'_>) -> PyResult<u64> {
    check(stream, &[&x, &mask], &[&out])?;
    same_dtype(&x, &[&out])?;
    mask.expect_dtype("the mask", DType::Bool)?;
    let (stream, x, mask, out) = (&stream.stream, &*x, &*mask, &*out);
    each_size!(x.dtype, T => py.detach(|| {
        let mut flags = stream.uninit::<u8>(mask.len())?;
        let from = (mask.slice::<u8>(stream), x.slice::<T>(stream));
        let to = (&mut flags, out.slice_mut::<T>(stream));
        select::partition_pairs(stream, from, to, predicate!(|flag: u8| flag != 0))?.get(stream)
    }).or_raise())
}

/// Groups elements by their buckets. The offsets, one more than buckets, say where each begins.
#[pyfunction]
pub fn multisplit_by(
    py: Python<'_>,
    stream: &PyStream,
    x: In<'_>,
    ids: In<'_>,
    buckets: u32,
    out: (In<'_>, In<'_>),
) -> PyResult<()> {
    let (x, ids, to, offsets) = (&*x, &*ids, &*out.0, &*out.1);
    check(stream, &[x, ids], &[to, offsets])?;
    same_dtype(x, &[to])?;
    offsets.expect_dtype("the array for offsets", DType::I64)?;
    expect_offsets(ids)?;
    let stream = &stream.stream;
    each_size!(x.dtype, T => py.detach(|| {
        let short = short_offsets(stream, ids)?;
        let mut keys = stream.uninit::<u32>(short.len())?;
        let into = (&mut keys, to.slice_mut::<T>(stream));
        let starts = multisplit::pairs(stream, (&short, x.slice::<T>(stream)), into, buckets, bucket!(|id: u32| id))?;
        transfer::copy(stream, &starts, offsets.slice_mut::<u64>(stream))
    }).or_raise())
}

/// A set operation on sorted arrays without duplicates. Returns the length of the result.
#[pyfunction]
pub fn set_operation(py: Python<'_>, stream: &PyStream, a: In<'_>, b: In<'_>, out: In<'_>, op: &str) -> PyResult<u64> {
    check(stream, &[&a, &b], &[&out])?;
    same_dtype(&a, &[&b, &out])?;
    let (stream, a, b, out) = (&stream.stream, &*a, &*b, &*out);
    each_type!(a.dtype, T => py.detach(|| {
        let (a, b, out) = (a.slice::<T>(stream), b.slice::<T>(stream), out.slice_mut::<T>(stream));
        match op {
            "union" => sets::union(stream, a, b, out, Less)?.get(stream),
            "intersection" => sets::intersection(stream, a, b, out, Less)?.get(stream),
            _ => sets::difference(stream, a, b, out, Less)?.get(stream),
        }
    }).or_raise())
}

/// The order of rows by several columns, the first one first.
#[pyfunction]
pub fn sort_by_columns(
    py: Python<'_>,
    stream: &PyStream,
    columns: Vec<In<'_>>,
    descending: Vec<bool>,
    out: In<'_>,
) -> PyResult<()> {
    let columns: Vec<&Tensor> = columns.iter().map(|column| &**column).collect();
    check(stream, &columns, &[&out])?;
    expect_positions(&out, out.len())?;
    columns.iter().try_for_each(|column| column.expect_len("a column", out.len()))?;
    let (stream, out) = (&stream.stream, &*out);
    py.detach(|| {
        let mut order = Vec::new();
        for (column, descending) in columns.iter().zip(descending) {
            let column = each_type!(column.dtype, T => SortColumn::new::<T>(column.slice::<T>(stream)));
            order.push(if descending { column.descending() } else { column });
        }
        let positions = sort::by_columns(stream, &order)?;
        write_positions(stream, positions.as_slice(), out)
    })
    .or_raise()
}
