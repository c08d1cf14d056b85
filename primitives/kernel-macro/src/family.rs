//! A family of instances: one table that says which instances exist, and chooses among them.
//!
//! `family merge_tiles(K, V, ITEMS) { … }` defines a macro of that name. `merge_tiles!(sizes => (K, V, ITEMS), body, else other)`
//! evaluates `body` with the types whose sizes these are, and with the numbers that belong to them. What the lines of the family do
//! not list goes to `other`. So the kernels that a launch can choose are those that have PTX, and nothing must agree by hand.

use crate::instances::text_of;
use proc_macro2::{Literal, TokenStream as Tokens};
use quote::{format_ident, quote};
use syn::{Error, Ident};

/// The table.
pub struct Family {
    name: Ident,
    parameters: Vec<Ident>,
    /// The values of the parameters, in their order, with what tells them apart.
    members: Vec<(String, Vec<Member>)>,
}

/// The value that a name has in an instance.
pub struct Member {
    pub name: Ident,
    pub tokens: Tokens,
    /// Whether it is a number, which follows from the types.
    pub is_number: bool,
}

impl Family {
    pub fn new(name: Ident, parameters: Vec<Ident>) -> Self {
        Self { name, parameters, members: Vec::new() }
    }

    /// Adds an instance. Names that are not parameters of the family are left to the caller of the macro: instances that only
    /// differ there are one member.
    pub fn add(&mut self, mut values: Vec<Member>) -> syn::Result<()> {
        let mut chosen = Vec::new();
        for parameter in &self.parameters {
            let Some(at) = values.iter().position(|value| value.name == *parameter) else {
                let message = format!("no `{parameter} in […]` or `{parameter} = …` in a line of the family");
                return Err(Error::new_spanned(parameter, message));
            };
            chosen.push(values.swap_remove(at));
        }
        let types = key(&chosen, false);
        match self.members.iter().find(|(known, _)| *known == types) {
            None => self.members.push((types, chosen)),
            Some((_, known)) if key(known, true) == key(&chosen, true) => {}
            Some(_) => {
                let message = format!("the types ({types}) have different numbers in two lines of the family");
                return Err(Error::new_spanned(&self.name, message));
            }
        }
        Ok(())
    }

    /// The macro, and a module of the same name with the types and numbers of the members. One `use` brings both into scope.
    pub fn expand(&self) -> Tokens {
        let (name, text) = (&self.name, Literal::string(&self.name.to_string()));
        // `use` takes all that has a name: the macro has another one than the module before.
        let choose = format_ident!("__choose_{name}");
        let pattern = self.parameters.iter().map(|parameter| quote!($#parameter:ident));
        let pattern = if let [one] = &*self.parameters { quote!($#one:ident) } else { quote!((#(#pattern),*)) };
        let arms: Tokens = (0..self.members.len()).map(|at| self.arm(at)).collect();
        let items = self.members.iter().enumerate().flat_map(|(at, (_, members))| {
            members.iter().map(move |Member { name, tokens, is_number }| {
                let item = numbered(name, at);
                if *is_number { quote!(pub const #item: usize = #tokens;) } else { quote!(pub type #item = #tokens;) }
            })
        });
        let rows = (0..self.members.len()).map(|at| {
            let sizes = self.sizes(at, &Tokens::new());
            quote!([#(#sizes),*])
        });
        quote! {
            #[cfg(not(target_arch = "nvptx64"))]
            macro_rules! #choose {
                ($sizes:expr => #pattern, $body:expr) => {{
                    let sizes = $sizes;
                    #arms { ::gpu_primitives::kernel::no_member(#text, &sizes) }
                }};
                ($sizes:expr => #pattern, $body:expr, else $other:expr) => {{
                    let sizes = $sizes;
                    #arms { $other }
                }};
            }

            #[cfg(not(target_arch = "nvptx64"))]
            pub(crate) use #choose as #name;

            #[cfg(not(target_arch = "nvptx64"))]
            #[allow(non_camel_case_types, non_upper_case_globals, unused_imports, reason = "names are numbered")]
            pub(crate) mod #name {
                use super::*;

                #(#items)*

                const _: () = ::gpu_primitives::kernel::expect_distinct_sizes(&[#(#rows),*]);
            }
        }
    }

    /// The branch of the macro for a member.
    fn arm(&self, at: usize) -> Tokens {
        let name = &self.name;
        let sizes = self.sizes(at, &quote!(#name::));
        let items = self.members[at].1.iter().map(|Member { name: parameter, is_number, .. }| {
            let item = numbered(parameter, at);
            if *is_number {
                quote!(#[allow(dead_code)] const $#parameter: usize = #name::#item;)
            } else {
                quote!(#[allow(dead_code)] type $#parameter = #name::#item;)
            }
        });
        quote! {
            if sizes == (#(#sizes),*) {
                #(#items)*
                $body
            } else
        }
    }

    /// The sizes of the types of a member, which are found at a path.
    fn sizes(&self, at: usize, path: &Tokens) -> Vec<Tokens> {
        let types = self.members[at].1.iter().filter(|member| !member.is_number);
        let items = types.map(|member| numbered(&member.name, at));
        items.map(|item| quote!(::core::mem::size_of::<#path #item>())).collect()
    }
}

/// The name of a parameter's value in the module of a family.
fn numbered(parameter: &Ident, at: usize) -> Ident {
    format_ident!("{parameter}_{at}")
}

/// The text of the types, or of the numbers, of a member.
fn key(members: &[Member], numbers: bool) -> String {
    let texts = members.iter().filter(|member| member.is_number == numbers).map(|member| text_of(&member.tokens));
    texts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use crate::instances::{Input, expand};
    use proc_macro2::TokenStream as Tokens;
    use quote::quote;
    use syn::parse2;

    fn parse(lines: Tokens) -> syn::Result<Input> {
        parse2(quote!(static in "ptx"; #lines))
    }

    fn code(lines: Tokens) -> String {
        expand(&parse(lines).unwrap()).unwrap().to_string().replace(' ', "")
    }

    fn error(lines: Tokens) -> String {
        parse(lines).err().expect("an error").to_string()
    }

    #[test]
    fn members_are_chosen_by_their_sizes() {
        let code = code(quote! {
            family merge(K, V, ITEMS) {
                for K in [u32, u64], V in [(), K], ITEMS = items::<K, V>(): Merge<K, V, ITEMS>;
            }
        });
        assert_eq!(code.matches("$body}else").count(), 2 * 4, "{code}");
        for part in [
            "($sizes:expr=>($K:ident,$V:ident,$ITEMS:ident),$body:expr,else$other:expr)",
            "ifsizes==(::core::mem::size_of::<merge::K_3>(),::core::mem::size_of::<merge::V_3>()){",
            "pubtypeV_1=u32;",
            "pubconstITEMS_3:usize={items::<u64,u64>()};",
            "const$ITEMS:usize=merge::ITEMS_3;",
            "pub(crate)use__choose_mergeasmerge;",
            "export_name=\"merge_u64_unit\"",
        ] {
            assert!(code.contains(part), "{part} in {code}");
        }
    }

    #[test]
    fn one_parameter_has_no_parentheses() {
        let code = code(quote!(family encode(K) { for K in [u8]: Encode<K>; }));
        assert!(code.contains("($sizes:expr=>$K:ident,$body:expr)"), "{code}");
    }

    /// `I` is none of the family's parameters: the caller knows it.
    #[test]
    fn other_names_are_left_to_the_caller() {
        let code = code(quote! {
            family scan(T, VEC) { for T in [u32], VEC = 4, I in [Global<T>, SourceArg]: Scan<T, I, VEC>, Finish<T>; }
        });
        assert_eq!(code.matches("pubtype").count(), 1, "{code}");
        assert_eq!(code.matches("ptx-kernel").count(), 3, "two scans, and one end: {code}");
        assert!(code.contains("\"scan_u32_global_u32_4\"") && code.contains("\"finish_u32\""), "{code}");
    }

    #[test]
    fn families_that_do_not_parse() {
        let message = error(quote!(family scan(T, VEC) { for T in [u32]: Scan<T, 4>; }));
        assert_eq!(message, "no `VEC in […]` or `VEC = …` in a line of the family");
        let message = error(quote! {
            family scan(T, VEC) { for T in [u32], VEC = 4: Scan<T, VEC>; for T in [u32], VEC = 2: Scan<T, VEC>; }
        });
        assert_eq!(message, "the types (u32) have different numbers in two lines of the family");
        assert_eq!(error(quote!(group scan(T) { Scan<u32>; })), "expected a kernel, `for` or `family`");
        assert!(error(quote!(family scan(T) { Scan<u32>; })).starts_with("no `T in […]`"));
    }
}
