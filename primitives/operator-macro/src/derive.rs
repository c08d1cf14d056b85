//! What `derive(Record)` writes.

use crate::expand::crate_path;
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Fields, Index, Meta, Path, parse_quote};

/// Expands the derive.
pub fn record(item: TokenStream) -> syn::Result<TokenStream> {
    let input: DeriveInput = syn::parse2(item)?;
    let data = match &input.data {
        Data::Struct(data) => data,
        Data::Enum(data) => {
            let message = "an enum cannot be in an operator: use an integer and constants for its values";
            return Err(Error::new_spanned(data.enum_token, message));
        }
        Data::Union(data) => return Err(Error::new_spanned(data.union_token, "a union cannot be in an operator")),
    };
    if !input.attrs.iter().any(fixes_layout) {
        let message = "the layout of an operator's struct must be fixed: add `#[repr(C)]`";
        return Err(Error::new_spanned(&input.ident, message));
    }
    let root = root(&input.attrs)?;

    let (name, visibility) = (&input.ident, &input.vis);
    let value = format_ident!("__{name}Value");
    let mut generics = input.generics.clone();
    let parameters: Vec<_> = generics.type_params().map(|parameter| parameter.ident.clone()).collect();
    for parameter in &parameters {
        generics.make_where_clause().predicates.push(parse_quote!(#parameter: #root::Record));
    }
    let value_where = generics.where_clause.clone();
    let (_, type_generics, _) = input.generics.split_for_impl();
    let has_types = !parameters.is_empty();
    if has_types {
        generics.make_where_clause().predicates.push(parse_quote!(#name #type_generics: #root::Pod));
    }
    let (impl_generics, _, record_where) = generics.split_for_impl();
    let pod = (!has_types && input.generics.params.is_empty()).then(|| quote!(const _: () = #root::pod::<#name>();));

    let members: Vec<TokenStream> = data
        .fields
        .iter()
        .enumerate()
        .map(|(index, field)| match &field.ident {
            Some(name) => name.to_token_stream(),
            None => Index::from(index).into_token_stream(),
        })
        .collect();
    let types: Vec<_> = data.fields.iter().map(|field| &field.ty).collect();
    let values: Vec<_> = types
        .iter()
        .map(|of| {
            let span = Span::mixed_site().located_at(of.span());
            quote_spanned!(span=> <#of as #root::Record>::Value)
        })
        .collect();
    let visibilities = data.fields.iter().map(|field| &field.vis);
    let declared = match &data.fields {
        Fields::Unnamed(_) => quote!((#(#visibilities #values),*) #value_where;),
        Fields::Named(_) | Fields::Unit => quote!(#value_where { #(#visibilities #members: #values),* }),
    };
    let struct_generics = &input.generics;
    let host = quote!(#[cfg(not(target_arch = "nvptx64"))]);

    Ok(quote! {
        #host
        #[doc(hidden)]
        #[derive(Clone, Copy)]
        #[allow(dead_code, missing_docs, missing_debug_implementations)]
        #visibility struct #value #struct_generics #declared

        #host
        const _: () = {
            #pod

            impl #impl_generics #root::Twin for #value #type_generics #value_where {
                fn nodes(&self, nodes: &mut ::std::vec::Vec<#root::Id>) {
                    let _ = &nodes;
                    #(#root::Twin::nodes(&self.#members, nodes);)*
                }

                fn from_nodes(nodes: &mut dyn ::core::iter::Iterator<Item = #root::Id>) -> Self {
                    let _ = &nodes;
                    Self { #(#members: #root::Twin::from_nodes(nodes)),* }
                }
            }

            impl #impl_generics #root::Record for #name #type_generics #record_where {
                type Value = #value #type_generics;

                fn leaves(offset: usize, leaves: &mut ::std::vec::Vec<#root::Leaf>) {
                    let _ = (offset, &leaves);
                    #(<#types as #root::Record>::leaves(offset + ::core::mem::offset_of!(Self, #members), leaves);)*
                }

                fn lift(self) -> Self::Value {
                    #value { #(#members: #root::Record::lift(self.#members)),* }
                }
            }
        };
    })
}

/// Returns whether an attribute is `repr(C)` or `repr(transparent)`.
fn fixes_layout(attribute: &Attribute) -> bool {
    let Meta::List(list) = &attribute.meta else { return false };
    let tokens = list.tokens.clone().into_iter();
    list.path.is_ident("repr") && tokens.into_iter().any(|token| matches!(&*token.to_string(), "C" | "transparent"))
}

/// Reads `#[record(crate = path)]`.
fn root(attributes: &[Attribute]) -> syn::Result<Path> {
    let attribute = attributes.iter().find(|attribute| attribute.path().is_ident("record"));
    match attribute.map(|attribute| &attribute.meta) {
        Some(Meta::List(list)) => crate_path(list.tokens.clone()),
        Some(other) => Err(Error::new_spanned(other, "expected `#[record(crate = path::of::gpu_operator)]`")),
        None => crate_path(TokenStream::new()),
    }
}
