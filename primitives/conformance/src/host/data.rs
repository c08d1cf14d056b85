//! Reproducible test data, and sizes at the edges of warps and tiles.

/// Returns a sequence of pseudo-random numbers (splitmix64), which is the same for the same seed on every machine.
pub fn random(seed: u64) -> impl Iterator<Item = u64> {
    (1..).map(move |i: u64| {
        let mut z = (seed ^ 0x5851_F42D_4C95_7F2D).wrapping_add(i.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    })
}

/// Returns lengths at the edges of a warp and of tiles of `tile` elements, and some odd ones.
#[must_use]
pub fn edge_sizes(tile: usize) -> Vec<usize> {
    let around = |n: usize| [n - 1, n, n + 1];
    let mut sizes = vec![0, 1, 2, 1000];
    sizes.extend(around(32));
    sizes.extend(around(tile));
    sizes.extend(around(3 * tile));
    sizes.push(5 * tile + 77);
    sizes
}
