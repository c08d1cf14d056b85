//! A function of two slices: `a * x + y`.

use super::{expect, time};
use crate::data::random_u32;
use crate::session::Session;
use gpu_primitives::operator::map;
use gpu_primitives::transform;

pub(super) fn measure(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let [x, y] = [1, 2].map(|seed| -> Vec<f32> {
        random_u32(len as u64 + seed, len).into_iter().map(|number| (number % 1024) as f32).collect()
    });
    let (on_x, on_y) = (stream.upload(&x)?, stream.upload(&y)?);
    let mut output = stream.uninit::<f32>(len)?;
    time(session, "transform_saxpy_f32", len, 12.0, || {
        transform::map2(stream, &on_x, &on_y, &mut output, map!(a: f32 = 3.0; |x: f32, y: f32| -> f32 { a * x + y }))
    })?;
    expect("saxpy", &output.to_vec(stream)?, x.iter().zip(&y).map(|(x, y)| 3.0 * x + y))
}
