//! What `derive(RadixKey)` writes.

use proc_macro2::{Literal, Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::{Data, DeriveInput, Error, Expr, ExprLit, Field, Fields, Ident, Index, Lit, Meta, Path, Type, parse_quote};

/// The most bits of a code.
const MOST_BITS: u32 = 128;

/// What the bits of a number mean.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unsigned,
    Signed,
    Float,
}

/// A number of a field, with the place of its code.
struct Part {
    /// The number in the key.
    place: TokenStream,
    kind: Kind,
    bits: u32,
    /// How many bits of the key's code are less significant.
    shift: u32,
}

/// Expands the derive.
pub fn radix_key(item: TokenStream) -> syn::Result<TokenStream> {
    let input: DeriveInput = syn::parse2(item)?;
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "only a struct can be derived to be a `RadixKey`"));
    };
    if !input.generics.params.is_empty() {
        let message = "a generic struct has no fixed code: implement `RadixKey` and `FromCode` yourself";
        return Err(Error::new_spanned(&input.generics, message));
    }
    let root = root(&input)?;
    let (mut parts, mut fields) = (Vec::new(), Vec::new());
    for (index, field) in data.fields.iter().enumerate() {
        let member = match &field.ident {
            Some(name) => name.to_token_stream(),
            None => Index::from(index).into_token_stream(),
        };
        let numbers = parts.len();
        let is_array = add_parts(field, &member, &mut parts)?;
        fields.push((member, numbers..parts.len(), is_array));
    }
    let bits: u32 = parts.iter().map(|part| part.bits).sum();
    let code = match bits {
        0 => return Err(Error::new_spanned(&input.ident, "a key has at least one field")),
        1..=32 => quote!(u32),
        33..=64 => quote!(u64),
        65..=MOST_BITS => quote!(u128),
        _ => {
            let message = format!("the fields have {bits} bits, but a code has at most {MOST_BITS}");
            return Err(Error::new_spanned(&input.ident, message));
        }
    };
    // The first field is the most significant.
    let mut shift = bits;
    for part in &mut parts {
        shift -= part.bits;
        part.shift = shift;
    }

    let names: Vec<Ident> = (0..parts.len()).map(|index| format_ident!("part{index}")).collect();
    let encoded = parts.iter().map(Part::encoded);
    let shifts: Vec<Literal> = parts.iter().map(|part| Literal::u32_unsuffixed(part.shift)).collect();
    let (cut, decoded): (Vec<_>, Vec<_>) = parts.iter().zip(&names).map(|(part, name)| part.decoded(name)).unzip();
    let values = fields.iter().map(|(_, range, is_array)| {
        let numbers = &decoded[range.clone()];
        if *is_array { quote!([#(#numbers),*]) } else { quote!(#(#numbers)*) }
    });
    let (name, members) = (&input.ident, fields.iter().map(|(member, ..)| member));
    let built = match &data.fields {
        Fields::Unnamed(_) => quote!(#name(#(#values),*)),
        Fields::Named(_) | Fields::Unit => quote!(#name { #(#members: #values),* }),
    };
    Ok(quote! {
        #[#root::operator::operator(crate = #root::operator)]
        impl #root::sort::RadixKey for #name {
            type Code = #code;
            const BITS: u32 = #bits;

            fn code(key: Self) -> #code {
                #(let #names = #encoded;)*
                #((#names as #code) << #shifts)|*
            }
        }

        #[#root::operator::operator(crate = #root::operator)]
        impl #root::sort::FromCode for #name {
            fn from_code(code: #code) -> Self {
                #(let #names = (code >> #shifts) as #cut;)*
                #built
            }
        }
    })
}

impl Part {
    /// Returns the unsigned integer of the same size.
    fn unsigned(&self) -> Ident {
        format_ident!("u{}", self.bits)
    }

    /// Returns the index of the highest bit, and a number with this bit.
    fn highest(&self) -> (Literal, Literal) {
        let (index, bit) = (self.bits - 1, 1 << (self.bits - 1));
        (Literal::u32_unsuffixed(index), Literal::u128_unsuffixed(bit))
    }

    /// Returns the code of the number: an unsigned integer of the same size.
    fn encoded(&self) -> TokenStream {
        let (unsigned, place, (top, high)) = (self.unsigned(), &self.place, self.highest());
        match self.kind {
            Kind::Unsigned => place.clone(),
            Kind::Signed => quote!(#place as #unsigned ^ #high),
            Kind::Float => quote! {{
                let bits = #place.to_bits();
                if bits >> #top == 0 { bits ^ #high } else { !bits }
            }},
        }
    }

    /// Returns the type of the number's code, and the number of the code with this name.
    fn decoded(&self, code: &Ident) -> (Ident, TokenStream) {
        let (unsigned, (top, high)) = (self.unsigned(), self.highest());
        let number = match self.kind {
            Kind::Unsigned => code.to_token_stream(),
            Kind::Signed => {
                let signed = format_ident!("i{}", self.bits);
                quote!((#code ^ #high) as #signed)
            }
            Kind::Float => {
                let float = format_ident!("f{}", self.bits);
                quote!(#float::from_bits(if #code >> #top == 0 { !#code } else { #code ^ #high }))
            }
        };
        (unsigned, number)
    }
}

/// Adds the numbers of a field. Returns whether it is an array.
fn add_parts(field: &Field, member: &TokenStream, parts: &mut Vec<Part>) -> syn::Result<bool> {
    let refuse = || {
        let message = "the fields of a derived key are numbers, and arrays of numbers with a literal length: for others, \
                       implement `RadixKey` and `FromCode` yourself";
        Error::new_spanned(&field.ty, message)
    };
    let add = |place: TokenStream, of: &Type, parts: &mut Vec<Part>| {
        let Type::Path(path) = of else { return Err(refuse()) };
        let name = path.path.get_ident().ok_or_else(refuse)?.to_string();
        let (kind, bits) = match name.split_at(1) {
            ("u", bits @ ("8" | "16" | "32" | "64" | "128")) => (Kind::Unsigned, bits),
            ("i", bits @ ("8" | "16" | "32" | "64" | "128")) => (Kind::Signed, bits),
            ("f", bits @ ("32" | "64")) => (Kind::Float, bits),
            _ => return Err(refuse()),
        };
        let bits = bits.parse().map_err(|_| refuse())?;
        parts.push(Part { place, kind, bits, shift: 0 });
        Ok(())
    };
    match &field.ty {
        Type::Array(array) => {
            let Expr::Lit(ExprLit { lit: Lit::Int(len), .. }) = &array.len else { return Err(refuse()) };
            for index in 0..len.base10_parse::<usize>()? {
                let index = Index { index: index as u32, span: Span::call_site() };
                add(quote!(key.#member[#index]), &array.elem, parts)?;
            }
            Ok(true)
        }
        of => add(quote!(key.#member), of, parts).map(|()| false),
    }
}

/// Reads `#[radix_key(crate = path)]`.
fn root(input: &DeriveInput) -> syn::Result<Path> {
    let mut root = parse_quote!(::gpu_primitives);
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("radix_key")) {
        let Meta::List(list) = &attribute.meta else {
            return Err(Error::new_spanned(attribute, "expected `#[radix_key(crate = path::of::gpu_primitives)]`"));
        };
        list.parse_nested_meta(|meta| {
            if !meta.path.is_ident("crate") {
                return Err(meta.error("expected `crate = path::of::gpu_primitives`"));
            }
            root = meta.value()?.call(Path::parse_mod_style)?;
            Ok(())
        })?;
    }
    Ok(root)
}
