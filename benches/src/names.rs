//! What the rows of measurements are, in words: a title, and one line that needs no code.

/// The explanation of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The title of the row in tables and plots.
    pub title: &'static str,
    /// What is measured, in one line.
    pub text: &'static str,
}

/// The rows: their names in files, their titles, and what they measure.
const ROWS: &[(&str, &str, &str)] = &[
    (
        "memcpy",
        "Copy by the driver",
        "The driver copies 32-bit numbers. This is the memory rate that others are compared with.",
    ),
    ("copy", "Copy", "A kernel copies 32-bit numbers."),
    ("fill", "Fill", "A kernel writes the same 32-bit number everywhere."),
    ("exclusive_sum_u32", "Prefix sums", "Running sums of 32-bit numbers, in one pass."),
    ("exclusive_sum_u64", "Prefix sums, 64 bits", "Running sums of 64-bit numbers, in one pass."),
    (
        "exclusive_sum_by_key_u32_runs_of_8",
        "Prefix sums by key",
        "Running sums that start again where the key changes; 8 equal keys in a row on average.",
    ),
    ("sort_pairs_u32_u32", "Radix sort of pairs", "Sorts random 32-bit keys with 32-bit values: four passes."),
    ("sort_keys_u32", "Radix sort of keys", "Sorts random 32-bit keys: four passes."),
    ("sort_keys_u64", "Radix sort of 64-bit keys", "Sorts random 64-bit keys: eight passes."),
    (
        "merge_sort_pairs_comparator",
        "Merge sort of pairs",
        "Sorts random 32-bit keys with 32-bit values by a comparison function.",
    ),
    ("merge_keys_cmp", "Merge of keys", "Merges two sorted halves of 32-bit keys by a comparison function."),
    (
        "merge_pairs_cmp",
        "Merge of pairs",
        "Merges two sorted halves of 32-bit keys with 32-bit values by a comparison function.",
    ),
    (
        "merge_8way_apart",
        "Merge of 8 runs, few overlap",
        "Merges eight sorted runs of pairs in one pass; at any key only two of the runs overlap.",
    ),
    ("merge_8way_pairs", "Merge of 8 runs, all overlap", "Merges eight sorted runs of random pairs in one pass."),
    (
        "multisplit_pairs_8",
        "Split into 8 buckets",
        "Puts pairs into 8 buckets by a function of the key, in order within each.",
    ),
    (
        "multisplit_pairs_32",
        "Split into 32 buckets",
        "Puts pairs into 32 buckets by a function of the key, in order within each.",
    ),
    (
        "multisplit_pairs_256",
        "Split into 256 buckets",
        "Puts pairs into 256 buckets by a function of the key, in order within each.",
    ),
    ("bits_pack", "Packed bits of a test", "Writes a bit for each 32-bit number: whether it passes."),
    (
        "bits_positions_50pct",
        "Positions of bits",
        "Writes the positions of the bits that are set, as 32-bit numbers: one half of them.",
    ),
    (
        "select_by_bits_50pct",
        "Selection by packed bits",
        "Copies the 32-bit numbers whose bit is set: one half of them.",
    ),
    ("select_if_50pct", "Selection of one half", "Copies the 32-bit numbers that pass a test: one half of them."),
    ("partition_two_buckets", "Partition", "Puts the numbers that pass a test before those that do not, in order."),
    ("segmented_sort_pairs_L8", "Sorts of 8 pairs each", "Sorts many segments of 8 pairs on average in one call."),
    ("segmented_sort_pairs_L64", "Sorts of 64 pairs each", "Sorts many segments of 64 pairs on average in one call."),
    (
        "segmented_sort_pairs_L1024",
        "Sorts of 1024 pairs each",
        "Sorts many segments of 1024 pairs on average in one call.",
    ),
    ("reduce_sum_u32", "Sum", "Adds up 32-bit numbers."),
    (
        "segmented_reduce_sum_u32_L64",
        "Sums of 64 numbers each",
        "Adds up many segments of 64 numbers on average in one call.",
    ),
    ("unique_u32_runs_of_8", "Unique", "Keeps the first of equal neighbours; 8 of them in a row on average."),
    (
        "run_length_encode_u32_runs_of_8",
        "Run lengths",
        "Keeps the first of equal neighbours and counts them; 8 in a row on average.",
    ),
    (
        "reduce_by_key_u32_runs_of_8",
        "Sums by key",
        "Adds up the values of equal neighbouring keys; 8 in a row on average.",
    ),
    ("histogram_256_even_bytes_in_u32", "Histogram of small numbers", "Counts 32-bit numbers below 256 in 256 bins."),
    (
        "histogram_256_even_full_range_u32",
        "Histogram of large numbers",
        "Counts 32-bit numbers of all sizes in 256 bins of equal width.",
    ),
    ("transform_saxpy_f32", "a · x + y", "Computes a · x + y for two arrays of 32-bit floats."),
    ("top_k_100_u32", "Top 100", "Finds the 100 largest 32-bit numbers, with their positions."),
    ("kth_u32", "Median", "Finds the median of 32-bit numbers."),
    ("kth_16_u32", "16 quantiles", "Finds 16 quantiles of 32-bit numbers in one call."),
    (
        "lower_bound_random",
        "Search, random keys",
        "Finds the place of each random key in a sorted array of the same length.",
    ),
    (
        "sorted_search",
        "Search, sorted keys",
        "Finds the place of each key of a sorted array in another one of the same length.",
    ),
    ("bulk build", "Build", "Makes a dictionary of all pairs in one call."),
    ("insert, all batches", "Insert", "Inserts all pairs into an empty dictionary, one batch per call."),
    ("delete", "Delete", "Deletes a quarter of the keys from a full dictionary, one batch per call."),
    ("update, mixed", "Insert and delete", "Inserts and deletes in the same calls, on a full dictionary."),
    ("cleanup", "Clean up", "Removes replaced and deleted elements. The rate counts all elements, live and stale."),
    ("lookup, all present", "Look up present keys", "Looks up keys that are all in the dictionary, as many as it has."),
    ("lookup, all absent", "Look up absent keys", "Looks up keys of which none is in the dictionary."),
    (
        "first lookup, with the index",
        "First lookup",
        "Looks up present keys right after an update: also builds the index.",
    ),
    ("count", "Count intervals", "Counts the keys in many intervals."),
    ("range", "List intervals", "Returns the pairs in many intervals, in key order."),
    ("successor", "Next larger key", "Finds the smallest key that is larger than a given one."),
    ("upsert (sum), all batches", "Add to values", "Adds to the values of all keys, one batch per call."),
    ("upsert, all present", "Add to present values", "Adds to the values of keys that are all present."),
    ("insert, all present", "Replace values", "Inserts keys that are all present."),
    ("remove, all present", "Remove", "Deletes keys that are all present, and returns their values."),
    ("retain, half of them", "Keep one half", "Deletes the pairs that do not pass a test: one half of them."),
    ("lookup of 1", "One lookup of 1 key", "The time of a call, many calls in a row."),
    ("lookup of 32", "One lookup of 32 keys", "The time of a call, many calls in a row."),
    ("lookup of 1024", "One lookup of 1024 keys", "The time of a call, many calls in a row."),
    (
        "count of 1024 intervals, not waiting",
        "One count of 1024 intervals",
        "The time of a call into given memory, many calls in a row.",
    ),
    (
        "count of 1024 intervals, waiting",
        "One count of 1024 intervals, waiting",
        "The time of a call that allocates its result and waits.",
    ),
    ("snapshot of 8 levels", "One snapshot", "The time of a snapshot of 8 levels, on the host."),
    ("bytes per element", "Memory per element", "Device memory of the dictionary, divided by its elements."),
    (
        "bytes per element, at most",
        "Memory per element, at most",
        "The largest memory in use while all pairs are inserted.",
    ),
    ("bytes per element, at rest", "Memory per element, at rest", "The memory in use after all pairs were inserted."),
    (
        "bytes per element, without an index",
        "Memory per element, without an index",
        "The same before a query has built the index.",
    ),
    ("insert", "Insert one batch", "Inserts one batch into a dictionary that has all other pairs."),
    ("sort of the batch", "The sort of the batch", "What an insertion must do at least: sort the batch."),
    (
        "merge of the batch with the array",
        "The merge of the batch",
        "What an insertion must do at least: merge the batch with the array.",
    ),
];

/// Returns the explanation of a row, by its name in files.
#[must_use]
pub fn explain(row: &str) -> Option<Explanation> {
    let found = ROWS.iter().find(|(name, _, _)| *name == row);
    found.map(|&(_, title, text)| Explanation { title, text })
}

/// Returns the title of a row, or its name if it has none.
#[must_use]
pub fn title(row: &str) -> String {
    match (explain(row), row.strip_prefix("lookup, ").and_then(|rest| rest.strip_suffix(" absent"))) {
        (Some(known), _) => known.title.into(),
        (None, Some(share)) => format!("Look up keys, {share} absent"),
        (None, None) => row.into(),
    }
}

/// Says in words what the parameters of a row mean, such as `L = 8, b = 2^20`.
#[must_use]
pub fn parameter(text: &str) -> String {
    let in_words = |part: &str| match part.split_once(" = ") {
        Some(("L", number)) => format!("{number} keys each"),
        Some(("b", number)) => format!("batches of {number}"),
        Some(("r", number)) => format!("{number} batches"),
        _ if part == "full" => String::from("all levels in use"),
        _ if part == "full of upserts" => String::from("all levels full of upserts"),
        _ => part.strip_prefix("load ").map_or_else(|| part.into(), |load| format!("load factor {load}")),
    };
    text.split(", ").map(in_words).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_different_and_short() {
        for (index, (name, title, text)) in ROWS.iter().enumerate() {
            assert!(ROWS[..index].iter().all(|(other, known, _)| other != name && known != title), "{name}, {title}");
            assert!(title.chars().count() <= 36 && text.ends_with('.') && !title.contains('_'), "{name}");
        }
    }

    #[test]
    fn parameters_in_words() {
        assert_eq!(parameter("L = 8, b = 2^20"), "8 keys each, batches of 2^20");
        assert_eq!(parameter("b = 2^20, r = 63, 10 % stale"), "batches of 2^20, 63 batches, 10 % stale");
        assert_eq!(
            (parameter("full, b = 2^16").as_str(), parameter("").as_str()),
            ("all levels in use, batches of 2^16", "")
        );
        assert_eq!(parameter("load 0.95"), "load factor 0.95");
        assert_eq!(title("lookup, 50 % absent"), "Look up keys, 50 % absent");
    }
}
