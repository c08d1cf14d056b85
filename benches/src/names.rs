//! What the rows of measurements are, in words: a title, and one line that needs no code.

use std::borrow::Cow;

/// The explanation of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The title of the row in tables and plots.
    pub title: Cow<'static, str>,
    /// What is measured, in one line.
    pub text: Cow<'static, str>,
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
        "Running sums that start again where the key changes; always 8 equal keys in a row.",
    ),
    ("sort_pairs_u32_u32", "Radix sort of pairs", "Sorts random 32-bit keys with 32-bit values: four passes."),
    ("sort_keys_u32", "Radix sort of keys", "Sorts random 32-bit keys: four passes."),
    ("sort_keys_u64", "Radix sort of 64-bit keys", "Sorts random 64-bit keys: eight passes."),
    ("sort_pairs_u64_u32", "Radix sort of 64-bit pairs", "Sorts random 64-bit keys with 32-bit values: eight passes."),
    ("merge_sort_keys", "Merge sort of keys", "Sorts random 32-bit keys by a comparison function."),
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
    ("select_flagged_50pct", "Selection by flags", "Copies the 32-bit numbers whose byte is not 0: one half of them."),
    ("partition_three_way", "Partition into three", "Puts numbers into three parts of about the same size."),
    ("segmented_sort_pairs_L8", "Sorts of 8 pairs each", "Sorts many segments of 8 pairs on average in one call."),
    ("segmented_sort_pairs_L64", "Sorts of 64 pairs each", "Sorts many segments of 64 pairs on average in one call."),
    (
        "segmented_sort_pairs_L1024",
        "Sorts of 1024 pairs each",
        "Sorts many segments of 1024 pairs on average in one call.",
    ),
    ("segmented_sort_keys_L8", "Sorts of 8 keys each", "Sorts many segments of 8 keys on average in one call."),
    ("segmented_sort_keys_L64", "Sorts of 64 keys each", "Sorts many segments of 64 keys on average in one call."),
    (
        "segmented_sort_keys_L1024",
        "Sorts of 1024 keys each",
        "Sorts many segments of 1024 keys on average in one call.",
    ),
    ("segmented_sort_pairs_equal_L8", "Sorts of exactly 8 pairs", "Sorts many rows of 8 pairs in one call."),
    ("segmented_sort_pairs_equal_L64", "Sorts of exactly 64 pairs", "Sorts many rows of 64 pairs in one call."),
    ("segmented_sort_keys_equal_L8", "Sorts of exactly 8 keys", "Sorts many rows of 8 keys in one call."),
    ("segmented_sort_keys_equal_L64", "Sorts of exactly 64 keys", "Sorts many rows of 64 keys in one call."),
    (
        "segmented_exclusive_sum_u32_L8",
        "Prefix sums of 8 numbers",
        "Running sums of many segments of 8 numbers in one call.",
    ),
    (
        "segmented_exclusive_sum_u32_L64",
        "Prefix sums of 64 numbers",
        "Running sums of many segments of 64 numbers in one call.",
    ),
    (
        "segmented_exclusive_sum_u32_L1024",
        "Prefix sums of 1024 numbers",
        "Running sums of many segments of 1024 numbers in one call.",
    ),
    ("reduce_sum_u32", "Sum", "Adds up 32-bit numbers."),
    ("segmented_reduce_sum_u32_L64", "Sums of exactly 64 numbers", "Adds up many segments of 64 numbers in one call."),
    (
        "segmented_reduce_sum_u32_random_L64",
        "Sums of 64 numbers each",
        "Adds up many segments of random lengths, 64 numbers on average, in one call.",
    ),
    ("unique_u32_runs_of_8", "Unique", "Keeps the first of equal neighbours; always 8 of them in a row."),
    (
        "run_length_encode_u32_runs_of_8",
        "Run lengths",
        "Keeps the first of equal neighbours and counts them; always 8 in a row.",
    ),
    ("reduce_by_key_u32_runs_of_8", "Sums by key", "Adds up the values of equal neighbouring keys; always 8 in a row."),
    ("histogram_256_even_bytes_in_u32", "Histogram of small numbers", "Counts 32-bit numbers below 256 in 256 bins."),
    (
        "histogram_256_even_full_range_u32",
        "Histogram of large numbers",
        "Counts 32-bit numbers of all sizes in 256 bins of equal width.",
    ),
    ("histogram_256_u8", "Histogram of bytes", "Counts bytes in 256 bins."),
    (
        "histogram_65536_even_u32",
        "Histogram of 65,536 bins",
        "Counts random 32-bit numbers below 65,536 in as many bins.",
    ),
    (
        "histogram_65536_skewed_u32",
        "Histogram of 65,536 bins, skewed",
        "The same with numbers of which a sixteenth is 0: the fourth powers of random ones.",
    ),
    ("adjacent_difference_u32", "Differences", "Subtracts from each 32-bit number the one before it."),
    ("gather_u32", "Gather", "Copies 32-bit numbers from random positions, in order."),
    ("scatter_u32", "Scatter", "Copies 32-bit numbers to the positions of a permutation, far apart from each other."),
    (
        "set_intersection_u32",
        "Intersection",
        "Keeps the 32-bit keys that two sorted arrays of the same length share: a quarter. The rate counts both.",
    ),
    ("set_union_u32", "Union", "Merges two sorted arrays that share a quarter of their keys. The rate counts both."),
    (
        "set_difference_u32",
        "Difference",
        "Keeps the 32-bit keys of a sorted array that another one lacks: three quarters. The rate counts both.",
    ),
    ("transform_saxpy_f32", "a · x + y", "Computes a · x + y for two arrays of 32-bit floats."),
    ("top_k_100_u32", "Top 100", "Finds the 100 largest 32-bit numbers, with their positions."),
    (
        "top_8_of_rows_of_1024",
        "Top 8 of rows of 1024",
        "Finds the 8 largest 32-bit numbers of each row of 1024, with their positions.",
    ),
    (
        "top_100_of_rows_of_131072",
        "Top 100 of rows of 131,072",
        "Finds the 100 largest 32-bit numbers of each row of 131,072, with their positions.",
    ),
    (
        "top_64_of_rows_of_32768_f32",
        "Top 64 of rows of 32,768",
        "Finds the 64 largest 32-bit floats of each row of 32,768, with their positions.",
    ),
    (
        "top_64_of_rows_of_131072_f32",
        "Top 64 of rows of 131,072",
        "Finds the 64 largest 32-bit floats of each row of 131,072, with their positions.",
    ),
    ("sort_rows_of_32768_f32", "Sorts of rows of 32,768", "Sorts many rows of 32,768 floats of 32 bits in one call."),
    (
        "sort_rows_of_131072_f32",
        "Sorts of rows of 131,072",
        "Sorts many rows of 131,072 floats of 32 bits in one call.",
    ),
    ("sum_rows_of_1024_u32", "Sums of rows of 1024", "Adds up the 32-bit numbers of each row of 1024."),
    (
        "sum_strided_rows_of_1000_u32",
        "Sums of parts of rows",
        "Adds up the first 1000 of the 1024 numbers of 32 bits of each row. The rate counts all.",
    ),
    (
        "running_sum_rows_of_1024_u32",
        "Prefix sums of rows of 1024",
        "Running sums of each row of 1024 numbers of 32 bits.",
    ),
    ("argsort_u32", "Order of keys", "Finds the order of random 32-bit keys: the positions that sort them."),
    (
        "sort_by_two_columns_u32",
        "Order by two columns",
        "Finds the order of rows by two columns of 32-bit numbers; the first has 1024 different ones.",
    ),
    (
        "distinct_u32_65536",
        "Different keys",
        "Finds the different ones of unsorted 32-bit keys, of which 65,536 are different.",
    ),
    (
        "distinct_counts_hashed_u32_65536",
        "Different keys by hash",
        "Finds and counts the different ones of unsorted 32-bit keys by a hash table; 65,536 are different.",
    ),
    (
        "sort_keys_u32_device_length",
        "Radix sort, length on the device",
        "Sorts random 32-bit keys, whose number only the device knows: four passes.",
    ),
    ("min_max_u32", "Least and greatest", "Finds the least and the greatest of 32-bit numbers."),
    (
        "find_first_u32_at_1pct",
        "First that passes",
        "Finds the first number that passes a test: after a hundredth of all. The rate counts all.",
    ),
    (
        "copy_ranges_of_1024_u32",
        "Copies of ranges",
        "Copies many ranges of 1024 numbers of 32 bits to free places, in one call.",
    ),
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
    (
        "inner join, unique keys",
        "Join with unique keys",
        "Finds for each row the row of a table of an eighth of the size, whose 32-bit keys are all different.",
    ),
    (
        "inner join, 8 duplicates",
        "Join with 8 equal keys each",
        "The same with keys that occur 8 times each; one of eight rows of the larger table has matches.",
    ),
    (
        "semi join",
        "Semi join",
        "Keeps the rows whose 32-bit key is in a table of a sixteenth of the size: one half of them.",
    ),
    (
        "group by, sum and count",
        "Sums and counts of groups",
        "Groups rows by a 32-bit key, adds up 64-bit integers exactly, and counts the rows of each group.",
    ),
    ("distinct", "Distinct keys", "Finds the first row of each different 32-bit key; each occurs 128 times."),
    ("sort by two columns", "Sort by two columns", "Sorts rows by two columns of 32-bit integers."),
    (
        "as-of join",
        "As-of join",
        "Finds for each sale of one of 1000 shares the last quote before it; there are 8 sales for a quote.",
    ),
];

/// Returns the explanation of a row, by its name in files.
#[must_use]
pub fn explain(row: &str) -> Option<Explanation> {
    if let Some(&(_, title, text)) = ROWS.iter().find(|(name, _, _)| *name == row) {
        return Some(Explanation { title: title.into(), text: text.into() });
    }
    // The share is an option of the command.
    let share = row.strip_prefix("lookup, ")?.strip_suffix(" % absent")?;
    share.parse::<u8>().ok().filter(|percent| *percent <= 100)?;
    Some(Explanation {
        title: format!("Look up keys, {share} % absent").into(),
        text: format!("Looks up keys of which {share} % are not in the dictionary, and the others are.").into(),
    })
}

/// Returns the name of the row that a misspelled one is most like.
#[must_use]
pub fn nearest(row: &str) -> &'static str {
    ROWS.iter().map(|(name, _, _)| *name).min_by_key(|name| distance(name, row)).unwrap_or_default()
}

/// Returns how many characters must be inserted, deleted or replaced to turn one text into the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut costs: Vec<usize> = (0..=other.len()).collect();
    for (row, character) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut costs[0], row + 1);
        for (column, wanted) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(character != *wanted);
            diagonal = costs[column + 1];
            costs[column + 1] = replaced.min(costs[column] + 1).min(diagonal + 1);
        }
    }
    costs[other.len()]
}

/// Returns the title of a row, or its name if it has none.
#[must_use]
pub fn title(row: &str) -> String {
    explain(row).map_or_else(|| row.into(), |known| known.title.into())
}

/// Says in words what the parameters of a row mean, such as `L = 8, b = 2^20`.
#[must_use]
pub fn parameter(text: &str) -> String {
    let in_words = |part: &str| match part.split_once(" = ") {
        Some(("L", number)) => format!("{number} keys each"),
        Some(("b", number)) => format!("batches of {number}"),
        Some(("r", number)) => format!("{number} batches"),
        Some(("groups", number)) => format!("{number} groups"),
        _ if part == "full" => String::from("all levels in use"),
        _ if part == "narrow" => String::from("narrow keys"),
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
        assert_eq!((parameter("groups = 4").as_str(), parameter("narrow").as_str()), ("4 groups", "narrow keys"));
        assert_eq!(title("lookup, 50 % absent"), "Look up keys, 50 % absent");
        assert!(explain("lookup, 50 % absent").unwrap().text.contains("50 % are not in the dictionary"));
        assert_eq!((explain("lookup, some absent"), explain("lookup, 101 % absent")), (None, None));
    }

    #[test]
    fn a_misspelled_row_is_like_the_right_one() {
        assert_eq!((distance("sort", "sort"), distance("sort", "short"), distance("", "abc")), (0, 1, 3));
        assert_eq!(nearest("sort_key_u32"), "sort_keys_u32");
        assert_eq!(nearest("lookup, present"), "lookup, all present");
    }
}
