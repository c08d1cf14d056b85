//! The macros of gpu-primitives: `#[kernel]` turns one generic function into a kernel that both executors run, and
//! `instances!` compiles kernels to PTX.
//!
//! See `gpu_primitives::kernel` for the form and an example.

mod family;
mod instances;
mod packed_ptx;

use proc_macro::TokenStream;
use proc_macro2::{Span, TokenStream as Tokens};
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{
    Error, Expr, FnArg, GenericParam, Ident, ItemFn, Pat, PatIdent, ReturnType, Safety, Token, parse_macro_input,
    parse_quote,
};

/// Turns `unsafe fn name<..>(arg: Type, ..) { body }` into the kernel type `Name<..>`, a plain struct of the arguments.
///
/// `threads` (required) is the block size, `shared` the bytes of shared memory of a block, `min_blocks` the number of
/// blocks that must fit on one multiprocessor (a register limit). All three are constant expressions that may use the
/// function's generic parameters.
///
/// `native` is the path of an `unsafe fn` with the same generic parameters, which takes the struct and a `Team`: a body
/// for the CPU that leaves the same results as all threads of the grid. The CPU device runs it instead of the
/// threads, unless it checks them. `native_if` is a constant expression: instances for which it is false have no such
/// body.
///
/// `listed` says that every instance is in a list of [`instances!`] that begins with `static`, in the same module. It names
/// that list's statics for the kernel: `listed = super::LOOKUP_KEYS_PTX`, or `[A_PTX, B_PTX]` where aliases of the kernel are
/// listed. `listed_if` is a constant expression: instances for which it is false are in no list. The CPU simulates listed
/// kernels that have a native body only with the feature `checked`.
#[proc_macro_attribute]
pub fn kernel(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let config = parse_macro_input!(attribute as Config);
    let function = parse_macro_input!(item as ItemFn);
    expand(&config, function).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Lists the kernel types that are compiled to PTX, with the folder of their PTX.
///
/// The folder is a string literal, or `concat!` and `env!` of string literals. Each further line is a kernel type, or
/// `for` lists and types that use their names. The lists give one instance for every combination of their values.
/// `NAME = number` is a list of one number, which may depend on the names before it.
///
/// ```ignore
/// gpu_primitives::instances! {
///     in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
///     EncodeKeys<u32>;
///     for K in [u32, u64], V in [(), u32]: LookupKeys<K, V>;
///     for K in [u32, u64], V in [(), u32]: MergeBatch<K, V, { batch_items::<K, V>() }>;
/// }
/// ```
///
/// When compiled for the GPU, each instance is a PTX entry. When compiled for the host, each instance embeds its PTX
/// file (which `gpu-kernel-builder` wrote) and registers it for the kernel type, so that a launch finds it.
///
/// After `static in` instead of `in`, nothing is registered. The instances of `LookupKeys` are a static, `LOOKUP_KEYS_PTX`, which
/// the kernel names (`#[kernel(listed)]`). So a program that never launches the kernel does not contain its PTX.
///
/// # Families
/// Host code knows the types of elements by their sizes. A family is the table of the instances for such types, and the macro
/// that chooses among them:
///
/// ```ignore
/// gpu_primitives::instances! {
///     static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
///     family merge_tiles(K, V, ITEMS) {
///         for K in [u32, u64], V in [(), u32, u64], ITEMS = items::<K, V>(): MergeTiles<K, V, ITEMS>;
///         for K in [[u64; 2]], V in [(), u32], ITEMS = 5: MergeTiles<K, V, ITEMS>;
///     }
/// }
///
/// merge_tiles!((key_bytes, value_bytes) => (K, V, ITEMS), {
///     let kernel = MergeTiles::<K, V, ITEMS>::new(a, b, out);
///     unsafe { stream.launch(kernel, blocks) }
/// }, else merge_by_index(stream, a, b, out))
/// ```
///
/// The macro evaluates the expression with the types whose sizes it is given, in the order of the parameters, and with the numbers
/// that belong to them. Sizes that are not in the table go to `else`; without an `else`, they panic. So a launch cannot choose a
/// kernel that has no PTX, and a new line is all that a new size needs. Members with types of the same sizes do not compile.
/// Names that are in a line, but not among the parameters, are left to the code: it has those types already. A line with several
/// kernels, separated by commas, gives all of them the same table.
///
/// The macro has the visibility `pub(crate)`. Another module of the crate imports it like a function:
/// `use super::kernel::merge_tiles;`.
///
/// # Names
/// The entry and its file are named after the type. The example has the entries `encode_keys_u32`,
/// `lookup_keys_u32_unit`, `lookup_keys_u32_u32`, …, `merge_batch_u64_u32`. A name consists of these parts, joined by
/// `_`:
///
/// | part of the type | example | part of the name |
/// | --- | --- | --- |
/// | a path: its last segment, then its arguments | `select::Within<Flags>` | `within_flags` |
/// | the unit type | `()` | `unit` |
/// | a tuple: its elements | `(u32, u64)` | `u32_u64` |
/// | an array | `[u32; 4]` | `u32x4` |
/// | an integer or `bool` literal | `256`, `{ 256 }` | `256` |
/// | the name of a constant | `THREADS`, `{ THREADS }` | `threads` |
/// | any other expression | `{ items::<K, V>() }` | nothing |
///
/// Two instances with the same name do not compile. Import constants and types under distinct names, or give a kernel
/// type another name with a type alias.
#[proc_macro]
pub fn instances(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as instances::Input);
    instances::expand(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Embeds the file `DIR/name.ptx`, compressed, as a `&'static [u8; _]`: `packed_ptx!(DIR, "name")`. `DIR` is a string
/// literal, or `concat!` and `env!` of string literals.
#[proc_macro]
pub fn packed_ptx(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as packed_ptx::Input);
    packed_ptx::expand(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// The arguments of the attribute.
struct Config {
    threads: Expr,
    shared: Option<Expr>,
    min_blocks: Option<Expr>,
    native: Option<Expr>,
    native_if: Option<Expr>,
    listed: Option<Expr>,
    listed_if: Option<Expr>,
}

impl Parse for Config {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let (mut threads, mut shared, mut min_blocks) = (None, None, None);
        let (mut native, mut native_if, mut listed, mut listed_if) = (None, None, None, None);
        for setting in Punctuated::<Setting, Token![,]>::parse_terminated(input)? {
            let slot = match setting.name.to_string().as_str() {
                "threads" => &mut threads,
                "shared" => &mut shared,
                "min_blocks" => &mut min_blocks,
                "native" => &mut native,
                "native_if" => &mut native_if,
                "listed" => &mut listed,
                "listed_if" => &mut listed_if,
                other => {
                    let known = "`threads`, `shared`, `min_blocks`, `native`, `native_if`, `listed` or `listed_if`";
                    let message = format!("unknown setting `{other}`: expected {known}");
                    return Err(Error::new(setting.name.span(), message));
                }
            };
            if slot.replace(setting.value).is_some() {
                return Err(Error::new(setting.name.span(), "this setting is given twice"));
            }
        }
        let missing = || Error::new(Span::call_site(), "a kernel needs its block size: `#[kernel(threads = 256)]`");
        Ok(Self { threads: threads.ok_or_else(missing)?, shared, min_blocks, native, native_if, listed, listed_if })
    }
}

/// `name = expression`, or `name` alone for `name = true`.
struct Setting {
    name: Ident,
    value: Expr,
}

impl Parse for Setting {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let name = input.parse()?;
        let is_given = input.parse::<Option<Token![=]>>()?.is_some();
        Ok(Self { name, value: if is_given { input.parse()? } else { parse_quote!(true) } })
    }
}

fn expand(config: &Config, function: ItemFn) -> syn::Result<Tokens> {
    let signature = &function.sig;
    if !matches!(signature.safety, Safety::Unsafe(_)) {
        return Err(Error::new_spanned(
            &signature.ident,
            "a kernel must be an `unsafe fn`: the caller of a launch must uphold its contract",
        ));
    }
    if let ReturnType::Type(_, result) = &signature.output {
        return Err(Error::new_spanned(result, "a kernel cannot return a value: write to a `GlobalMut` argument"));
    }
    let mut names = Vec::new();
    let mut types = Vec::new();
    for argument in &signature.inputs {
        let FnArg::Typed(argument) = argument else {
            return Err(Error::new_spanned(argument, "a kernel must be a free function without `self`"));
        };
        let Pat::Ident(PatIdent { mutability: None, by_ref: None, subpat: None, ident, .. }) = &*argument.pat else {
            return Err(Error::new_spanned(&argument.pat, "an argument of a kernel must be a plain name"));
        };
        names.push(ident.clone());
        types.push((*argument.ty).clone());
    }

    let attributes = &function.attrs;
    let visibility = &function.vis;
    let name_text = signature.ident.to_string();
    let kernel = format_ident!("{}", camel_case(&name_text), span = signature.ident.span());
    let generics = &signature.generics;
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let type_parameters = generics.params.iter().filter_map(|parameter| match parameter {
        GenericParam::Type(parameter) => Some(&parameter.ident),
        _ => None,
    });
    let labels = names.iter().map(Ident::to_string);
    let threads = &config.threads;
    let shared = config.shared.as_ref().map_or_else(|| quote!(0), |value| quote!(#value));
    let min_blocks = config.min_blocks.as_ref().map_or_else(|| quote!(0), |value| quote!(#value));
    let turbofish = type_generics.as_turbofish();
    let native_if = config.native_if.as_ref().map_or_else(|| quote!(true), |condition| quote!(#condition));
    let native = config.native.as_ref().map(|path| {
        quote! {
            #[cfg(not(target_arch = "nvptx64"))]
            const NATIVE: ::core::option::Option<unsafe fn(Self, ::gpu_primitives::kernel::Team)> =
                if #native_if { ::core::option::Option::Some(#path #turbofish) } else { ::core::option::Option::None };
        }
    });
    let listed_if = config.listed_if.as_ref().map_or_else(|| quote!(true), |condition| quote!(#condition));
    let listed = config.listed.as_ref().map(|lists| {
        let lists = match lists {
            // `listed` alone
            Expr::Lit(_) => {
                let list = instances::static_name(&kernel);
                quote!(&#list)
            }
            Expr::Array(lists) => {
                let lists = lists.elems.iter();
                quote!(#(&#lists),*)
            }
            list => quote!(&#list),
        };
        quote! {
            #[cfg(not(target_arch = "nvptx64"))]
            const IS_LISTED: bool = #listed_if;
            #[cfg(not(target_arch = "nvptx64"))]
            const PTX: &'static [&'static [::gpu_primitives::kernel::Instance]] = &[#lists];
        }
    });
    let body = &function.block.stmts;
    let new_doc = format!(
        "The kernel `{name_text}` with its arguments, ready to launch. It borrows the memory of its arguments."
    );

    Ok(quote! {
        #(#attributes)*
        #[repr(C)]
        #[derive(Clone, Copy)]
        #visibility struct #kernel #generics #where_clause {
            #(pub(crate) #names: #types,)*
            types: ::core::marker::PhantomData<fn() -> (#(#type_parameters,)*)>,
        }

        impl #impl_generics #kernel #type_generics #where_clause {
            #[doc = #new_doc]
            #[cfg(not(target_arch = "nvptx64"))]
            #[allow(clippy::too_many_arguments, clippy::new_ret_no_self, clippy::undocumented_unsafe_blocks)]
            #visibility fn new<'memory>(
                #(#names: impl ::gpu_primitives::kernel::Argument<'memory, #types>),*
            ) -> ::gpu_primitives::kernel::Call<'memory, Self> {
                #[allow(unused_mut)]
                let mut reach = ::gpu_primitives::kernel::Reach::none();
                #(
                    // SAFETY: the call borrows the memory as the argument does, until it is launched.
                    let #names = unsafe { ::gpu_primitives::kernel::Argument::into_argument(#names, &mut reach) };
                )*
                let kernel = Self { #(#names,)* types: ::core::marker::PhantomData };
                ::gpu_primitives::kernel::Call::with_reach(kernel, reach)
            }
        }

        // SAFETY: the struct is `repr(C)` and every field is a `Param`, which `params` makes the compiler check.
        unsafe impl #impl_generics ::gpu_primitives::kernel::Kernel for #kernel #type_generics #where_clause {
            const NAME: &'static str = #name_text;
            const THREADS: u32 = #threads;
            const MIN_BLOCKS: u32 = #min_blocks;
            const SHARED_BYTES: usize = #shared;

            #native
            #listed

            #[inline(always)]
            #[allow(unused_unsafe, clippy::undocumented_unsafe_blocks)]
            unsafe fn run(self) {
                let Self { #(#names,)* .. } = self;
                unsafe { #(#body)* }
            }

            fn params(&self, visit: &mut dyn FnMut(&'static str, ::gpu_primitives::kernel::Buffer)) {
                #(::gpu_primitives::kernel::Param::buffers(&self.#names, #labels, visit);)*
                let _ = visit;
            }

            const HOLES: ::gpu_primitives::kernel::Holes = ::gpu_primitives::kernel::Holes::NONE
                #(.and(::core::mem::offset_of!(Self, #names), <#types as ::gpu_primitives::kernel::Param>::HOLES))*;
        }
    })
}

/// `scan_tiles` becomes `ScanTiles`.
fn camel_case(name: &str) -> String {
    name.split('_')
        .flat_map(|word| {
            let mut letters = word.chars();
            letters.next().into_iter().flat_map(char::to_uppercase).chain(letters.collect::<Vec<_>>())
        })
        .collect()
}
