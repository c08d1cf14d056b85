//! How much device memory levels may take, and where they are therefore.

use gpu_primitives::lowered::Place;

/// The bytes of device memory for the keys and values of levels; `None` if there is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Budget(pub Option<usize>);

impl Budget {
    /// Returns where levels belong whose keys and values have these bytes, from the newest to the oldest. Each is on the device if it fits
    /// into what newer ones leave: new levels are small, and are merged most often.
    pub fn places(self, bytes: impl IntoIterator<Item = usize>) -> impl Iterator<Item = Place> {
        let mut left = self.0;
        bytes.into_iter().map(move |bytes| match &mut left {
            None => Place::Device,
            Some(left) if bytes <= *left => {
                *left -= bytes;
                Place::Device
            }
            Some(_) => Place::Host,
        })
    }

    /// Returns where the newest level belongs, if its keys and values have these bytes.
    pub fn place(self, bytes: usize) -> Place {
        self.places([bytes]).next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Place::{Device, Host};

    #[test]
    fn newer_levels_come_first() {
        let places = |budget, bytes: &[usize]| Budget(budget).places(bytes.iter().copied()).collect::<Vec<_>>();
        assert_eq!(places(None, &[usize::MAX, usize::MAX]), [Device, Device]);
        assert_eq!(places(Some(0), &[0, 1]), [Device, Host]);
        assert_eq!(places(Some(14), &[2, 4, 8, 16]), [Device, Device, Device, Host]);
        assert_eq!(places(Some(13), &[2, 4, 8, 7]), [Device, Device, Host, Device]);
        assert_eq!([7, 8].map(|bytes| Budget(Some(7)).place(bytes)), [Device, Host]);
    }
}
