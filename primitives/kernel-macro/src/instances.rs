//! `instances!`: compiles kernel types to PTX. The names of the PTX entries are derived from the types. A [family] of instances
//! is also the macro that chooses among them.
//!
//! [family]: crate::family

use crate::family::{Family, Member};
use proc_macro2::{Group, TokenStream as Tokens, TokenTree};
use quote::{ToTokens, format_ident, quote};
use std::collections::HashMap;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Error, Expr, ExprLit, GenericArgument, Ident, Lit, LitStr, PathArguments, PathSegment, Stmt, Token, Type, braced,
    bracketed, parenthesized, parse2,
};

/// `in DIR;` or `static in DIR;`, and the instances.
pub struct Input {
    /// Whether the instances are statics that the kernels name, instead of entries of the program's registry.
    is_static: bool,
    folder: Expr,
    instances: Vec<Instance>,
    families: Vec<Family>,
}

/// A kernel type and the name of its PTX entry.
struct Instance {
    name: String,
    kernel: Type,
}

impl Parse for Input {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let is_static = input.parse::<Option<Token![static]>>()?.is_some();
        input.parse::<Token![in]>()?;
        let folder = input.parse()?;
        input.parse::<Token![;]>()?;
        let (mut instances, mut families) = (Vec::new(), Vec::new());
        while !input.is_empty() {
            if input.peek(Ident) && input.peek2(Ident) {
                families.push(parse_family(input, &mut instances)?);
            } else {
                parse_line(input, &mut instances)?;
            }
        }
        expect_distinct(&instances)?;
        Ok(Self { is_static, folder, instances, families })
    }
}

/// Parses `family name(A, B, …) { line; … }`.
fn parse_family(input: ParseStream, instances: &mut Vec<Instance>) -> syn::Result<Family> {
    let keyword = input.parse::<Ident>()?;
    if keyword != "family" {
        return Err(Error::new_spanned(keyword, "expected a kernel, `for` or `family`"));
    }
    let name = input.parse()?;
    let (parameters, lines);
    parenthesized!(parameters in input);
    let parameters = Punctuated::<Ident, Token![,]>::parse_terminated(&parameters)?;
    let mut family = Family::new(name, parameters.into_iter().collect());
    braced!(lines in input);
    while !lines.is_empty() {
        for values in parse_line(&lines, instances)? {
            family.add(
                values
                    .into_iter()
                    .map(|(name, value)| Member { name, tokens: value.tokens, is_number: value.is_number })
                    .collect(),
            )?;
        }
    }
    Ok(family)
}

/// Parses `Type;`, `for A in […], B = …: Type, …;` or, until all crates derive their names, `name: Type;`. Returns the values
/// of the names.
fn parse_line(input: ParseStream, instances: &mut Vec<Instance>) -> syn::Result<Vec<Vec<(Ident, Value)>>> {
    if input.peek(Ident) && input.peek2(Token![:]) && !input.peek2(Token![::]) {
        let name = input.parse::<Ident>()?.unraw().to_string();
        input.parse::<Token![:]>()?;
        instances.push(Instance { name, kernel: input.parse()? });
        input.parse::<Token![;]>()?;
        return Ok(Vec::new());
    }
    let mut lists = Vec::new();
    if input.parse::<Option<Token![for]>>()?.is_some() {
        lists = Punctuated::<List, Token![,]>::parse_separated_nonempty(input)?.into_iter().collect();
        input.parse::<Token![:]>()?;
    }
    let templates = Punctuated::<Type, Token![,]>::parse_separated_nonempty(input)?;
    input.parse::<Token![;]>()?;
    let choices = product(&lists);
    let first = instances.len();
    for template in templates {
        for values in &choices {
            let kernel: Type = parse2(substitute(template.to_token_stream(), values))?;
            let name = name_of_type(&kernel)?;
            // A kernel that does not name all lists of its line comes once.
            if !instances[first..].iter().any(|known| known.name == name && text_of(&known.kernel) == text_of(&kernel))
            {
                instances.push(Instance { name, kernel });
            }
        }
    }
    Ok(choices)
}

/// `NAME in [value, …]` or `NAME = number`.
struct List {
    name: Ident,
    values: Vec<Value>,
}

/// A type or a constant.
#[derive(Clone)]
struct Value {
    tokens: Tokens,
    is_number: bool,
}

impl Parse for List {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let name = input.parse()?;
        if input.parse::<Option<Token![=]>>()?.is_some() {
            let number = input.parse::<Expr>()?;
            return Ok(Self { name, values: vec![Value { tokens: quote!({ #number }), is_number: true }] });
        }
        input.parse::<Token![in]>()?;
        let values;
        bracketed!(values in input);
        let values = Punctuated::<GenericArgument, Token![,]>::parse_terminated(&values)?;
        let values = values.into_iter().map(|value| Value { tokens: ungrouped(value), is_number: false });
        Ok(Self { name, values: values.collect() })
    }
}

/// The tokens of an argument, without the invisible group that surrounds a type from a `macro_rules` macro.
fn ungrouped(argument: GenericArgument) -> Tokens {
    match argument {
        GenericArgument::Type(Type::Group(group)) => ungrouped(GenericArgument::Type(*group.elem)),
        argument => argument.into_token_stream(),
    }
}

/// Every choice of one value per list, with the names of the lists. The last list varies fastest. A value may name the lists
/// before its own.
fn product(lists: &[List]) -> Vec<Vec<(Ident, Value)>> {
    let mut choices: Vec<Vec<(Ident, Value)>> = vec![Vec::new()];
    for list in lists {
        let longer = choices.iter().flat_map(|choice| {
            list.values.iter().map(|value| {
                let tokens = substitute(value.tokens.clone(), choice);
                let value = Value { tokens, is_number: value.is_number };
                choice.iter().cloned().chain([(list.name.clone(), value)]).collect()
            })
        });
        choices = longer.collect();
    }
    choices
}

/// Replaces the names by their values. A name after `::` is a part of a path and stays.
fn substitute(tokens: Tokens, values: &[(Ident, Value)]) -> Tokens {
    let mut replaced = Tokens::new();
    let mut colons = 0;
    for token in tokens {
        let in_path = colons == 2;
        colons = if matches!(&token, TokenTree::Punct(punct) if punct.as_char() == ':') { colons + 1 } else { 0 };
        match token {
            TokenTree::Ident(ident) if !in_path => match values.iter().find(|(name, _)| *name == ident) {
                Some((_, value)) => replaced.extend(value.tokens.clone()),
                None => replaced.extend([TokenTree::Ident(ident)]),
            },
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), substitute(group.stream(), values));
                inner.set_span(group.span());
                replaced.extend([TokenTree::Group(inner)]);
            }
            token => replaced.extend([token]),
        }
    }
    replaced
}

/// The name of a type: `LookupKeys<u32, ()>` gives `lookup_keys_u32_unit`.
fn name_of_type(kernel: &Type) -> syn::Result<String> {
    match kernel {
        Type::Group(group) => name_of_type(&group.elem),
        Type::Paren(paren) => name_of_type(&paren.elem),
        Type::Path(path) => path.path.segments.last().map_or_else(|| Err(unnamed(kernel)), name_of_segment),
        Type::Tuple(tuple) if tuple.elems.is_empty() => Ok("unit".into()),
        Type::Tuple(tuple) => {
            let parts: Vec<String> = tuple.elems.iter().map(name_of_type).collect::<Result<_, _>>()?;
            Ok(parts.join("_"))
        }
        Type::Array(array) => {
            let element = name_of_type(&array.elem)?;
            Ok(match name_of_constant(&array.len) {
                Some(len) => format!("{element}x{len}"),
                None => element,
            })
        }
        _ => Err(unnamed(kernel)),
    }
}

fn unnamed(part: &impl ToTokens) -> Error {
    let message = format!("`{}` gives no name: expected a path, a tuple, an array or a constant", text_of(part));
    Error::new_spanned(part, message)
}

/// The name of the last segment of a path, followed by the names of its arguments.
fn name_of_segment(segment: &PathSegment) -> syn::Result<String> {
    let mut parts = vec![snake_case(&segment.ident.unraw().to_string())];
    match &segment.arguments {
        PathArguments::None => {}
        PathArguments::AngleBracketed(arguments) => {
            for argument in &arguments.args {
                match argument {
                    GenericArgument::Type(argument) => parts.push(name_of_type(argument)?),
                    GenericArgument::Const(argument) => parts.extend(name_of_constant(argument)),
                    GenericArgument::Lifetime(_) => {}
                    _ => return Err(unnamed(argument)),
                }
            }
        }
        PathArguments::Parenthesized(_) => return Err(unnamed(segment)),
    }
    Ok(parts.join("_"))
}

/// The name of a literal or of a constant. Any other expression has none: it follows from the other arguments.
fn name_of_constant(constant: &Expr) -> Option<String> {
    match constant {
        Expr::Group(group) => name_of_constant(&group.expr),
        Expr::Paren(paren) => name_of_constant(&paren.expr),
        Expr::Block(block) => match &*block.block.stmts {
            [Stmt::Expr(value, None)] => name_of_constant(value),
            _ => None,
        },
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => Some(number.base10_digits().into()),
        Expr::Lit(ExprLit { lit: Lit::Bool(truth), .. }) => Some(truth.value.to_string()),
        Expr::Path(path) => Some(path.path.get_ident()?.unraw().to_string().to_lowercase()),
        _ => None,
    }
}

/// `LookupKeys` becomes `lookup_keys`, and `TILE_LEN` becomes `tile_len`.
fn snake_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| letters[before]);
        let starts_word = match before {
            Some(before) if before.is_uppercase() => letters.get(at + 1).is_some_and(|next| next.is_lowercase()),
            Some(before) => before != '_',
            None => false,
        };
        if letter.is_uppercase() && starts_word {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// Fails at the second of two instances with the same name.
fn expect_distinct(instances: &[Instance]) -> syn::Result<()> {
    let mut known = HashMap::new();
    for Instance { name, kernel } in instances {
        if let Some(first) = known.insert(name, kernel) {
            let (first, second) = (text_of(first), text_of(kernel));
            let message = format!("`{first}` and `{second}` have the same entry name `{name}`");
            return Err(Error::new_spanned(kernel, message));
        }
    }
    Ok(())
}

/// Tokens as a person would write them.
pub fn text_of(tokens: &impl ToTokens) -> String {
    let mut text = tokens.to_token_stream().to_string();
    for (spaced, tight) in [(" :: ", "::"), (":: ", "::"), (" < ", "<"), ("< ", "<"), (" >", ">"), (" ,", ",")] {
        text = text.replace(spaced, tight);
    }
    text
}

pub fn expand(input: &Input) -> syn::Result<Tokens> {
    let entries = input.instances.iter().map(expand_entry);
    let texts = if input.is_static {
        expand_statics(input)?
    } else {
        let registered = input.instances.iter().map(|instance| {
            let instance = expand_instance(&input.folder, instance);
            quote! {
                #[cfg(not(target_arch = "nvptx64"))]
                ::gpu_primitives::kernel::inventory::submit! { #instance }
            }
        });
        registered.collect()
    };
    let families = input.families.iter().map(Family::expand);
    Ok(quote! { #(#entries)* #texts #(#families)* })
}

/// The static for the instances of a kernel: `LookupKeys` has its PTX in `LOOKUP_KEYS_PTX`. The linker drops those of kernels that
/// a program never launches.
pub fn static_name(kernel: &Ident) -> Ident {
    format_ident!("{}_PTX", snake_case(&kernel.unraw().to_string()).to_uppercase(), span = kernel.span())
}

fn expand_statics(input: &Input) -> syn::Result<Tokens> {
    let mut lists: Vec<(Ident, Vec<Tokens>)> = Vec::new();
    for instance in &input.instances {
        let name = static_name(last_segment(&instance.kernel)?);
        let text = expand_instance(&input.folder, instance);
        match lists.iter_mut().find(|(known, _)| *known == name) {
            Some((_, texts)) => texts.push(text),
            None => lists.push((name, vec![text])),
        }
    }
    let names: Vec<_> = lists.iter().map(|(name, _)| name).collect();
    let statics = lists.iter().map(|(name, texts)| {
        let len = texts.len();
        quote! {
            /// The PTX of the kernel's instances.
            #[cfg(not(target_arch = "nvptx64"))]
            pub(crate) static #name: [::gpu_primitives::kernel::Instance; #len] = [#(#texts),*];
        }
    });
    Ok(quote! {
        #(#statics)*

        /// The PTX of all kernels in this list.
        #[cfg(not(target_arch = "nvptx64"))]
        #[allow(dead_code, reason = "few crates need all of it at once")]
        pub(crate) const ALL_PTX: &[&[::gpu_primitives::kernel::Instance]] = &[#(&#names),*];
    })
}

fn last_segment(kernel: &Type) -> syn::Result<&Ident> {
    match kernel {
        Type::Group(group) => last_segment(&group.elem),
        Type::Paren(paren) => last_segment(&paren.elem),
        Type::Path(path) => path.path.segments.last().map(|segment| &segment.ident).ok_or_else(|| unnamed(kernel)),
        _ => Err(unnamed(kernel)),
    }
}

fn expand_instance(folder: &Expr, Instance { name, kernel }: &Instance) -> Tokens {
    let name = LitStr::new(name, kernel.span());
    quote! {
        // SAFETY: `gpu-kernel-builder` generated the file from this kernel.
        unsafe {
            ::gpu_primitives::kernel::Instance::new::<#kernel>(
                #name,
                ::gpu_primitives::kernel::packed_ptx!(#folder, #name),
            )
        }
    }
}

fn expand_entry(Instance { name, kernel }: &Instance) -> Tokens {
    let name = LitStr::new(name, kernel.span());
    let bounds = format!("__launch_bounds_{}", name.value());
    // Items have no hygiene: a name that no constant in the kernel's type has.
    let (entry, bounds_static) = (format_ident!("__entry"), format_ident!("__LAUNCH_BOUNDS"));
    quote! {
        // `gpu-kernel-builder` sets `ptx_entries` only for the crate it builds: dependent crates must not compile
        // these entries again. Rust has no syntax for launch bounds. A static next to the entry passes them to
        // `gpu-kernel-builder`, which then removes the static.
        #[cfg(target_arch = "nvptx64")]
        #[cfg(ptx_entries)]
        const _: () = {
            /// The PTX entry of the kernel.
            ///
            /// # Safety
            /// The contract in the kernel's documentation must hold.
            #[unsafe(export_name = #name)]
            #[allow(improper_ctypes_definitions)]
            unsafe extern "ptx-kernel" fn #entry(kernel: #kernel) {
                // SAFETY: whoever launched the kernel guarantees its contract.
                unsafe { ::gpu_primitives::kernel::Kernel::run(kernel) }
            }

            #[used]
            #[unsafe(export_name = #bounds)]
            static #bounds_static: [u32; 2] = [
                <#kernel as ::gpu_primitives::kernel::Kernel>::THREADS,
                <#kernel as ::gpu_primitives::kernel::Kernel>::MIN_BLOCKS,
            ];
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proc_macro2::Delimiter;
    use syn::parse_quote;

    fn parse(tokens: Tokens) -> syn::Result<Input> {
        parse2(quote!(in "ptx"; #tokens))
    }

    fn names(tokens: Tokens) -> Vec<String> {
        parse(tokens).unwrap().instances.into_iter().map(|instance| instance.name).collect()
    }

    fn kernels(tokens: Tokens) -> Vec<String> {
        parse(tokens).unwrap().instances.iter().map(|instance| text_of(&instance.kernel)).collect()
    }

    fn error(tokens: Tokens) -> String {
        parse(tokens).err().expect("an error").to_string()
    }

    /// What a `macro_rules` macro makes of `$name:ty`.
    fn fragment(tokens: Tokens) -> TokenTree {
        Group::new(Delimiter::None, tokens).into()
    }

    #[test]
    fn types_give_names() {
        for (kernel, name) in [
            (quote!(CopyLines), "copy_lines"),
            (quote!(EncodeKeys<u32>), "encode_keys_u32"),
            (quote!(LookupKeys<u32, ()>), "lookup_keys_u32_unit"),
            (quote!(crate::select::SelectTiles<u64, (), By<Masked<u64>>>), "select_tiles_u64_unit_by_masked_u64"),
            (quote!(Keys<[u32; 4], (u32, u64)>), "keys_u32x4_u32_u64"),
            (quote!(Keys<[[u8; 2]; LEN], (u32,)>), "keys_u8x2xlen_u32"),
            (quote!(Keys<[u32; len::<u32>()]>), "keys_u32"),
            (quote!(Tiles<256, 4usize, 0x10, true>), "tiles_256_4_16_true"),
            (quote!(Tiles<THREADS, { COUNT }, { MIN_BLOCKS }, { 7 }>), "tiles_threads_count_min_blocks_7"),
            (quote!(Tiles<u32, { items::<u32, ()>() }, Less>), "tiles_u32_less"),
            (quote!(Tiles<u32, { shape::THREADS }, { 2 * COUNT }>), "tiles_u32"),
            (quote!(Tiles<'static, <u32 as Key>::Code, (u64)>), "tiles_code_u64"),
            (quote!(Sha256Hash<ABTree, I8, U32x4, r#Kind>), "sha256_hash_ab_tree_i8_u32x4_kind"),
            (quote!(Move), "move"),
        ] {
            assert_eq!(name_of_type(&parse2(kernel).unwrap()).unwrap(), name);
        }
    }

    #[test]
    fn types_without_names() {
        for kernel in
            [quote!(&'static u32), quote!(Keys<fn() -> u32>), quote!(Keys<dyn Fn(u32)>), quote!(Keys<Code = u32>)]
        {
            let error = name_of_type(&parse2(kernel).unwrap()).unwrap_err().to_string();
            assert!(error.contains("gives no name"), "{error}");
        }
    }

    #[test]
    fn lists_make_a_product() {
        let input = quote!(Encode<u32>; for C in [u32, u64], V in [(), u32,]: Lookup<C, V>;);
        assert_eq!(
            names(input.clone()),
            ["encode_u32", "lookup_u32_unit", "lookup_u32_u32", "lookup_u64_unit", "lookup_u64_u32"]
        );
        let expected = ["Encode<u32>", "Lookup<u32, ()>", "Lookup<u32, u32>", "Lookup<u64, ()>", "Lookup<u64, u32>"];
        assert_eq!(kernels(input), expected);
    }

    #[test]
    fn values_are_substituted_everywhere() {
        let input = quote!(for C in [u32], V in [By<A, B>]: Renew<C, [V; 2], { items::<C, V>() + (size_of::<C>()) }>;);
        let [kernel]: [Type; 1] =
            parse(input).unwrap().instances.into_iter().map(|i| i.kernel).collect::<Vec<_>>().try_into().ok().unwrap();
        let expected: Type = parse_quote!(Renew<u32, [By<A, B>; 2], { items::<u32, By<A, B>>() + (size_of::<u32>()) }>);
        assert_eq!(text_of(&kernel), text_of(&expected));
    }

    #[test]
    fn lists_of_constants() {
        let input = quote!(for N in [15, { NINE }]: Cut<N, { slack(N) }>;);
        assert_eq!(names(input.clone()), ["cut_15", "cut_nine"]);
        assert_eq!(kernels(input)[0], "Cut<15, { slack (15) }>");
    }

    #[test]
    fn names_in_paths_are_not_substituted() {
        let input = quote!(for K in [V], V in [u32]: a::K<K, V, { K::V }>;);
        assert_eq!(kernels(input), ["a::K<V, u32, { V::V }>"]);
    }

    #[test]
    fn values_name_the_lists_before_them_alone() {
        let input = quote!(for K in [u32, V], V in [(), Same<K>]: Lookup<K, V>;);
        let expected = ["Lookup<u32, ()>", "Lookup<u32, Same<u32>>", "Lookup<V, ()>", "Lookup<V, Same<V>>"];
        assert_eq!(kernels(input), expected);
    }

    #[test]
    fn types_from_macro_rules() {
        let (unit, key) = (fragment(quote!(())), fragment(quote!(u32)));
        let input = quote!(for K in [#key], V in [#unit]: Lookup<K, V, #key, { items::<K, #unit>() }>;);
        assert_eq!(names(input), ["lookup_u32_unit_u32"]);
        let kernel = fragment(quote!(Lookup<u64>));
        assert_eq!(names(quote!(#kernel;)), ["lookup_u64"]);
    }

    #[test]
    fn names_are_distinct() {
        let message = error(quote!(for C in [u32, u64]: Renew<{ items::<C>() }>;));
        let types = "`Renew<{ items::<u32> () }>` and `Renew<{ items::<u64> () }>`";
        assert_eq!(message, format!("{types} have the same entry name `renew`"));
        let message = error(quote!(a::Copy<u32>; Fill; b::Copy<u32>;));
        assert_eq!(message, "`a::Copy<u32>` and `b::Copy<u32>` have the same entry name `copy_u32`");
    }

    #[test]
    fn names_by_hand() {
        assert_eq!(names(quote!(a: Copy<u32>; b: Copy<u64>; Copy<u8>; ::a::Copy;)), ["a", "b", "copy_u8", "copy"]);
        assert!(error(quote!(copy_u32: x::Copy<u64>; Copy<u32>;)).contains("`x::Copy<u64>` and `Copy<u32>`"));
    }

    #[test]
    fn lines_that_do_not_parse() {
        for line in [
            quote!(Copy<u32>),
            quote!(for C in u32: Copy<C>;),
            quote!(for: Copy<u32>;),
            quote!(for C in [u32] Copy<C>;),
        ] {
            assert!(parse(line).is_err());
        }
        assert!(parse2::<Input>(quote!(Copy<u32>;)).is_err());
    }

    #[test]
    fn instances_have_entries_and_files() {
        let code = expand(&parse(quote!(for T in [u32, u64]: Copy<T>;)).unwrap()).unwrap().to_string();
        for part in
            ["export_name = \"copy_u32\"", "export_name = \"__launch_bounds_copy_u64\"", "(\"ptx\" , \"copy_u64\")"]
        {
            assert!(code.contains(part), "{part} in {code}");
        }
        assert_eq!(code.matches("submit !").count(), 2);
    }

    #[test]
    fn static_lists_have_one_static_per_kernel() {
        let input = quote!(static in "ptx"; for T in [u32, u64]: a::CopyLines<T>; Fill; CopyLines<u8>;);
        let code = expand(&parse2(input).unwrap()).unwrap().to_string();
        assert!(!code.contains("submit !"), "{code}");
        for part in ["static COPY_LINES_PTX : [:: gpu_primitives :: kernel :: Instance ; 3usize]", "static FILL_PTX : "]
        {
            assert!(code.contains(part), "{part} in {code}");
        }
        assert!(code.contains("& [& COPY_LINES_PTX , & FILL_PTX]"), "{code}");
    }
}
