//! Splits the compiler's PTX module into one module per kernel.
//!
//! The driver compiles PTX when it loads it, so a program that uses one kernel should not pay for all. The text of each
//! kernel does not depend on its neighbours or on the folder of the build: only the items that the kernel mentions are
//! kept, in the order of their mention, and compiler-generated names (which contain hashes or numbers of the module)
//! are replaced. So a change to one kernel changes one file.

use std::collections::{BTreeMap, HashMap};

use crate::Error;
use crate::launch_bounds::LaunchBounds;
use crate::module::{Item, ItemKind, Module, words};

/// One kernel as a separate PTX module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The name of the entry.
    pub name: String,
    /// The whole text of the module.
    pub ptx: String,
}

/// Splits the compiler's PTX into one module per kernel, in the order of their names, and inserts their launch bounds.
///
/// Each line of `header` is written as a comment at the top of each module.
pub fn split(ptx: &str, header: &[String]) -> Result<Vec<Kernel>, Error> {
    let module = Module::parse(ptx)?;
    let mut bounds = HashMap::new();
    for item in &module.items {
        if let Some(kernel) = LaunchBounds::kernel_of(item) {
            bounds.insert(kernel, LaunchBounds::parse(kernel, item)?);
        }
    }
    let mut kernels = Vec::new();
    for entry in module.items.iter().filter(|item| item.kind == ItemKind::Entry) {
        let text = match bounds.remove(entry.name.as_str()) {
            Some(bounds) => bounds.insert(&entry.text),
            None => entry.text.clone(),
        };
        let mut ptx: String = header.iter().map(|line| format!("// {line}\n")).collect();
        ptx += "\n";
        ptx += &module.header.join("\n");
        ptx += "\n\n";
        let mut parts = needed_by(entry, &module);
        parts.push(Item { text, ..entry.clone() });
        ptx += &stable_names(&entry.name, &parts);
        kernels.push(Kernel { name: entry.name.clone(), ptx });
    }
    if let Some(kernel) = bounds.keys().min() {
        let reason = "the module has no entry of that name".into();
        return Err(Error::LaunchBounds { kernel: kernel.to_string(), reason });
    }
    kernels.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(kernels)
}

/// Returns the items that an entry mentions, directly or indirectly. Each item comes after those that it mentions.
fn needed_by(entry: &Item, module: &Module) -> Vec<Item> {
    // A function may be both declared and defined.
    let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, item) in module.items.iter().enumerate() {
        if item.kind != ItemKind::Entry && LaunchBounds::kernel_of(item).is_none() {
            by_name.entry(&item.name).or_default().push(index);
        }
    }
    fn visit(
        item: &Item,
        module: &Module,
        by_name: &HashMap<&str, Vec<usize>>,
        seen: &mut [bool],
        order: &mut Vec<Item>,
    ) {
        for word in words(&item.text).filter(|word| !word.after_dot) {
            for &index in by_name.get(word.text).into_iter().flatten() {
                if !std::mem::replace(&mut seen[index], true) {
                    visit(&module.items[index], module, by_name, seen, order);
                    order.push(module.items[index].clone());
                }
            }
        }
    }
    let (mut seen, mut order) = (vec![false; module.items.len()], Vec::new());
    visit(entry, module, &by_name, &mut seen, &mut order);
    // Functions may call each other, so declarations come before definitions, as the compiler writes them.
    order.sort_by_key(|item| item.kind == ItemKind::Function && item.text.ends_with('}'));
    order
}

/// Joins the parts, with short names that depend only on this kernel.
fn stable_names(kernel: &str, parts: &[Item]) -> String {
    let mut renamed: BTreeMap<&str, String> = BTreeMap::new();
    for part in parts {
        let made_up = !part.is_visible() || part.name.starts_with("_R") || part.name.starts_with("_ZN");
        if part.kind != ItemKind::Entry && made_up && !renamed.contains_key(part.name.as_str()) {
            let kind = if part.kind == ItemKind::Function { "function" } else { "data" };
            let name = format!("{kernel}__{kind}_{}", renamed.len());
            renamed.insert(&part.name, name);
        }
    }
    let mut label_prefixes: Vec<String> = Vec::new();
    let mut text = String::new();
    for part in parts {
        let mut copied = 0;
        for word in words(&part.text).filter(|word| !word.after_dot) {
            let Some(name) = stable_name(word.text, kernel, &renamed, &mut label_prefixes) else { continue };
            text += &part.text[copied..word.start];
            text += &name;
            copied = word.start + word.text.len();
        }
        text += &part.text[copied..];
        text += "\n";
    }
    text.lines().map(|line| compact(line) + "\n").collect()
}

/// Removes white space that means nothing. It is a seventh of what the compiler writes.
fn compact(line: &str) -> String {
    if line.contains('"') {
        line.into()
    } else {
        line.trim().replace(['\t', ' '], " ").replace("  ", " ").replace(", ", ",")
    }
}

fn stable_name(
    word: &str,
    kernel: &str,
    renamed: &BTreeMap<&str, String>,
    label_prefixes: &mut Vec<String>,
) -> Option<String> {
    if let Some(name) = renamed.get(word) {
        return Some(name.clone());
    }
    // The parameters of a function contain its name.
    if let Some((function, number)) = word.rsplit_once("_param_") {
        if function == kernel {
            return Some(format!("p{number}"));
        }
        if let Some(name) = renamed.get(function) {
            return Some(format!("{name}_param_{number}"));
        }
    }
    // Block labels are `$L__BB<function's number in the module>_<block's number in the function>`.
    let (function, block) = word.strip_prefix("$L__BB")?.split_once('_')?;
    let known = label_prefixes.iter().position(|prefix| prefix == function);
    let number = known.unwrap_or_else(|| {
        label_prefixes.push(function.into());
        label_prefixes.len() - 1
    });
    Some(if number == 0 { format!("$L{block}") } else { format!("$L{number}_{block}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shortened output of rustc for four kernels.
    const MODULE: &str = "\
//
// Generated by LLVM NVPTX Back-End
//

.version 7.0
.target sm_70
.address_size 64

	// .globl	calls
.global .align 4 .b8 _RNvCs8wWd6sxRXBC_1k5TABLE[20] = {3, 0, 0, 0, 1};
.extern .shared .align 16 .b8 gpu_launch_sized_workgroup_mem[];
.visible .global .align 4 .b8 __launch_bounds_calls[8];
.visible .global .align 4 .b8 __launch_bounds_k_u32[8] = {0, 1, 0, 0, 4};
.global .align 8 .u64 _RNvCs8wWd6sxRXBC_1k7POINTER[1] = {_RNvCs8wWd6sxRXBC_1k5TABLE};
.visible .global .align 4 .b8 settings[4];

.func  (.param .b32 func_retval0) _RNvCs8wWd6sxRXBC_1k4slow(
	.param .b32 _RNvCs8wWd6sxRXBC_1k4slow_param_0
)
{
	ld.param.b32 	%r1, [_RNvCs8wWd6sxRXBC_1k4slow_param_0];
$L__BB0_2:
	ret;
}
	// .globl	calls
.visible .entry calls(
	.param .u32 calls_param_1
)
{
	{ // callseq 0, 0
	call.uni (retval0), _RNvCs8wWd6sxRXBC_1k4slow, (param0);
	} // callseq 0
	bra $L__BB1_1;
$L__BB1_1:
	ret;

}
	// .globl	k_u32
.visible .entry k_u32(
	.param .align 8 .b8 k_u32_param_0[48]
)
{
	mov.b64 	%rd12, gpu_launch_sized_workgroup_mem;
	mov.b64 	%rd13, settings;
	bra 	$L__BB2_2;
$L__BB2_2:
	ret;

}
	// .globl	table
.visible .entry table()
{
	mov.b64 	%rd1, _RNvCs8wWd6sxRXBC_1k7POINTER;
	ret;
}
";

    fn kernels(module: &str) -> Vec<Kernel> {
        split(module, &["Generated.".into()]).unwrap()
    }

    fn kernel(module: &str, name: &str) -> String {
        kernels(module).into_iter().find(|kernel| kernel.name == name).unwrap().ptx
    }

    #[test]
    fn a_kernel_takes_along_what_it_mentions_and_nothing_else() {
        assert_eq!(
            kernel(MODULE, "k_u32"),
            "// Generated.\n\n.version 7.0\n.target sm_70\n.address_size 64\n\n\
             .extern .shared .align 16 .b8 gpu_launch_sized_workgroup_mem[];\n\
             .visible .global .align 4 .b8 settings[4];\n\
             .visible .entry k_u32(\n.param .align 8 .b8 p0[48]\n)\n\
             .maxntid 256,1,1\n.minnctapersm 4\n{\n\
             mov.b64 %rd12,gpu_launch_sized_workgroup_mem;\n\
             mov.b64 %rd13,settings;\n\
             bra $L2;\n$L2:\nret;\n}\n"
        );
    }

    #[test]
    fn what_is_mentioned_by_what_is_mentioned_comes_first() {
        let ptx = kernel(MODULE, "table");
        let table = ptx.find("table__data_0[20]").expect("the table, renamed");
        let pointer = ptx.find("table__data_1[1] = {table__data_0};").expect("the pointer to it");
        assert!(table < pointer && !ptx.contains("_RNv") && !ptx.contains("gpu_launch"), "{ptx}");
    }

    #[test]
    fn functions_come_along_with_stable_names() {
        let ptx = kernel(MODULE, "calls");
        for needed in ["calls__function_0(", "[calls__function_0_param_0]", "(retval0),calls__function_0,(param0)"] {
            assert!(ptx.contains(needed), "{needed} is not in {ptx}");
        }
        assert!(ptx.contains("$L2:") && ptx.contains("bra $L1_1;") && !ptx.contains("maxntid"), "{ptx}");
    }

    #[test]
    fn neither_hashes_nor_neighbours_show() {
        let other = MODULE
            .replace("Cs8wWd6sxRXBC", "CsAnotherHash")
            .replace("$L__BB2_", "$L__BB7_")
            .replace("$L__BB1_", "$L__BB5_")
            .replace("callseq 0", "callseq 9");
        assert_eq!(kernels(MODULE), kernels(&other));
    }

    #[test]
    fn kernels_come_in_the_order_of_their_names() {
        let names: Vec<String> = kernels(MODULE).into_iter().map(|kernel| kernel.name).collect();
        assert_eq!(names, ["calls", "k_u32", "table"]);
    }

    #[test]
    fn bounds_without_a_kernel_are_an_error() {
        let module = MODULE.replace("__launch_bounds_calls", "__launch_bounds_gone");
        let message = split(&module, &[]).unwrap_err().to_string();
        assert!(message.contains("kernel `gone`") && message.contains("no entry"), "{message}");
    }
}
