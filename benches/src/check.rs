//! The check of every timed result: the time of a wrong result is meaningless.

use crate::Error;

/// Checks that the elements found are the expected ones, and as many.
///
/// # Errors
/// [`Error::WrongResult`] names the first wrong element.
pub fn equal<F, E>(
    what: &str,
    found: impl IntoIterator<Item = F>,
    expected: impl IntoIterator<Item = E>,
    same: impl Fn(&F, &E) -> bool,
) -> Result<(), Error> {
    let (mut found, mut expected) = (found.into_iter(), expected.into_iter());
    let mut index = 0;
    loop {
        match (found.next(), expected.next()) {
            (None, None) => return Ok(()),
            (Some(found), Some(expected)) if same(&found, &expected) => index += 1,
            _ => return Err(Error::WrongResult { what: what.into(), index }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        let wrong = |found: &[u32], expected: &[u32]| match equal("x", found, expected, |a, b| a == b) {
            Err(Error::WrongResult { index, .. }) => Some(index),
            _ => None,
        };
        assert_eq!(wrong(&[1, 2], &[1, 2]), None);
        assert_eq!(wrong(&[1, 2], &[1, 3]), Some(1));
        assert_eq!(wrong(&[1], &[1, 2]), Some(1));
        assert_eq!(wrong(&[1, 2], &[1]), Some(1));
    }
}
