//! `cargo xtask methods-page`: writes the page that compares the methods of all dictionaries, from the lists of public items.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use crate::error::Error;
use crate::workspace::Workspace;

/// The page, from the root of the workspace.
const PAGE: &str = "docs/methods.md";

/// The dictionaries: the list that has one, the path of its type, and its name on the page.
const DICTIONARIES: [(&str, &str, &str); 7] = [
    ("gpu-lsm", "gpu_lsm::GpuLsm", "[`GpuLsm`](lsm.md)"),
    ("gpu-sorted-array", "gpu_sorted_array::GpuSortedArray", "[`GpuSortedArray`](sorted-array.md)"),
    ("gpu-cuckoo", "gpu_cuckoo::GpuCuckoo", "[`GpuCuckoo`](cuckoo.md)"),
    ("gpu-cuckoo", "gpu_cuckoo::PlainCuckoo", "[`PlainCuckoo`](cuckoo.md#keys-of-any-plain-type)"),
    ("gpu-lsm", "gpu_lsm::GpuMultimap", "[`GpuMultimap`](lsm.md#multimap)"),
    ("gpu-dictionary", "gpu_dictionary::LargeValues", "[`LargeValues`](choosing.md#values-of-any-size)"),
    ("gpu-sharded", "gpu_sharded::Sharded", "[`Sharded`](sharded.md)"),
];

/// What the methods are for, in the order of the page. A method that is in no group is at the end.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Make", &["new", "with_batch_size", "bulk_build", "build_set", "clone", "try_clone", "snapshot", "options"]),
    (
        "Change",
        &[
            "insert",
            "insert_keys",
            "delete",
            "update",
            "upsert",
            "remove",
            "clear",
            "retain",
            "retain_keys",
            "for_each",
            "drain",
            "delete_pairs",
            "flush",
        ],
    ),
    ("Look up", &["lookup", "contains", "count_values", "get", "get_into", "reduce", "successor", "predecessor"]),
    ("Intervals", &["count", "count_into", "range", "range_into"]),
    ("All pairs", &["len", "is_empty", "stats", "iter", "export", "keys", "values", "pairs"]),
    ("Keep", &["save", "load", "checkpoint", "recover", "recover_or_new", "checkpoint_to", "recover_from", "adopt"]),
];

/// The methods that a trait provides. The lists do not name them where the trait is implemented.
const PROVIDED: [(&str, &[&str]); 1] = [("Durable", &["checkpoint", "recover", "recover_or_new"])];

/// How a dictionary has a method.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Way {
    /// It is the type's own.
    Own,
    /// It is one of a trait.
    Trait(String),
}

/// The methods of a type.
type Methods = BTreeMap<String, Way>;

pub fn run(check: bool) -> Result<(), Error> {
    let workspace = Workspace::load()?;
    let mut found = Vec::new();
    for (list, path, _) in DICTIONARIES {
        let file = workspace.workspace_root.join(format!("api/{list}.txt"));
        found.push(methods(&fs::read_to_string(&file).map_err(Error::io("read", &file))?, path));
    }
    workspace.write_page(PAGE, &page(&found), "methods-page", check)
}

/// Finds the methods of the type with this path in a list of public items, in which those of an `impl` follow it.
fn methods(list: &str, path: &str) -> Methods {
    let mut methods = Methods::new();
    let mut way = Way::Own;
    for line in list.lines() {
        if line.starts_with("impl") {
            way = match line.rsplit_once(" for ") {
                Some((before, implementor)) => {
                    let of = last_name(before);
                    if implementor.starts_with(&format!("{path}<")) {
                        let provided =
                            PROVIDED.iter().filter(|(name, _)| *name == of).flat_map(|(_, provided)| *provided);
                        for name in provided {
                            methods.entry((*name).to_owned()).or_insert_with(|| Way::Trait(of.clone()));
                        }
                    }
                    Way::Trait(of)
                }
                None => Way::Own,
            };
        }
        let Some((_, after)) = line.split_once(&format!("fn {path}<")) else { continue };
        let Some(name) = after.split_once(">::").map(|(_, rest)| rest) else { continue };
        let name: String = name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if matches!(&way, Way::Trait(of) if ["Debug", "Default", "Drop"].contains(&of.as_str())) {
            continue;
        }
        let known = methods.entry(name).or_insert_with(|| way.clone());
        if way == Way::Own {
            *known = Way::Own;
        }
    }
    methods
}

/// Returns the last name of a path that ends a text, without its generic arguments.
fn last_name(text: &str) -> String {
    let path = text.rsplit(' ').next().unwrap_or(text);
    let path = path.split('<').next().unwrap_or(path);
    path.rsplit("::").next().unwrap_or(path).into()
}

fn page(dictionaries: &[Methods]) -> String {
    let mut page = String::from(
        "# The methods of all dictionaries\n\n\
         This page is written by `cargo xtask methods-page` from the lists of public items. ● is a method of the type itself. The name\n\
         of a trait says that the trait must be imported from `gpu-dictionary`, except `Clone`. – means that there is no such method;\n\
         [choosing](choosing.md) says what each dictionary is for.\n\n\
         Methods of one name take the same arguments, so one type's name can replace another's. What is missing is missing for a reason:\n\
         - Hash tables have no order, so they have no intervals and no neighbours.\n\
         - A multimap has no `update` and no `upsert`: an insertion replaces nothing. It has no `lookup`, but `get`: a key has many values.\n\
         - `remove`, `retain`, `for_each` and `drain` change single slots, which only hash tables have. Elsewhere, `lookup` and `delete`, or\n  \
           `export`, a [function](transform.md) and `bulk_build` do the same at the same cost.\n\
         - `export` and the traits of `PlainCuckoo` ask for keys that have an [order](keys.md); `pairs` does not.\n\
         - `snapshot` is for what shares its memory with its copies; `try_clone` is for all.\n\
         - A buffer (`flush`, `discard_buffer`) and a budget of device memory (`load_with`, `set_device_memory`) need levels of different\n  \
           ages, which only the LSM and the multimap have.\n\
         - `upsert` and `reduce` of values that are stored in an array (`PlainCuckoo`, `LargeValues`) take values of up to 32 bytes, as operators do.\n",
    );
    let grouped: BTreeSet<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
    let all: BTreeSet<&str> = dictionaries.iter().flat_map(|methods| methods.keys()).map(String::as_str).collect();
    let others: Vec<&str> = all.iter().copied().filter(|name| !grouped.contains(name)).collect();
    for (group, names) in GROUPS.iter().map(|(group, names)| (*group, names.to_vec())).chain([("Other", others)]) {
        let _ = write!(page, "\n## {group}\n\n| method |");
        DICTIONARIES.iter().for_each(|(_, _, title)| page.push_str(&format!(" {title} |")));
        page.push_str("\n| --- |");
        page.push_str(&" --- |".repeat(DICTIONARIES.len()));
        for name in names {
            let _ = write!(page, "\n| `{name}` |");
            for methods in dictionaries {
                match methods.get(name) {
                    Some(Way::Own) => page.push_str(" ● |"),
                    Some(Way::Trait(of)) => page.push_str(&format!(" `{of}` |")),
                    None => page.push_str(" – |"),
                }
            }
        }
        page.push('\n');
    }
    page
}

#[cfg(test)]
mod tests {
    use super::{Way, methods};

    #[test]
    fn methods_are_found_with_their_traits() {
        let list = "impl<K: key::Key> gpu_lsm::GpuLsm<K, V>\n\
                    pub fn gpu_lsm::GpuLsm<K, V>::insert<'a>(&mut self)\n\
                    pub const fn gpu_lsm::GpuLsm<K, V>::len(&self) -> usize\n\
                    impl<K> core::fmt::Debug for gpu_lsm::GpuLsm<K, V>\n\
                    pub fn gpu_lsm::GpuLsm<K, V>::fmt(&self)\n\
                    impl<K> gpu_dictionary::traits::Dictionary for gpu_lsm::GpuLsm<K, V>\n\
                    pub fn gpu_lsm::GpuLsm<K, V>::len(&self) -> usize\n\
                    pub fn gpu_lsm::GpuLsm<K, V>::try_clone(&self) -> Self\n\
                    impl<K> gpu_dictionary::durable::Durable for gpu_lsm::Other<K, V>\n\
                    pub fn gpu_lsm::Other<K, V>::none(&self)\n";
        let found: Vec<_> = methods(list, "gpu_lsm::GpuLsm").into_iter().collect();
        let of = Way::Trait("Dictionary".into());
        assert_eq!(found, [("insert".into(), Way::Own), ("len".into(), Way::Own), ("try_clone".into(), of)]);
        let found: Vec<String> = methods(list, "gpu_lsm::Other").into_keys().collect();
        assert_eq!(found, ["checkpoint", "none", "recover", "recover_or_new"]);
    }
}
