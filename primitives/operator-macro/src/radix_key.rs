//! What `derive(RadixKey)` writes.

use proc_macro2::{Literal, Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::{Data, DeriveInput, Error, Expr, ExprLit, Field, Fields, Ident, Index, Lit, Meta, Path, Type, parse_quote};

/// The most bits of a code.
const MOST_BITS: u32 = 256;
/// The bits of each half of such a code.
const HALF_BITS: u32 = 128;

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
        65..=128 => quote!(u128),
        129..=MOST_BITS => quote!(#root::sort::U256),
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
    let decoded: Vec<_> = parts.iter().zip(&names).map(|(part, name)| part.decoded(name)).collect();
    let (joined, cut): (_, Vec<_>) = if bits <= 128 {
        let shifts: Vec<Literal> = parts.iter().map(|part| Literal::u32_unsuffixed(part.shift)).collect();
        let types = parts.iter().map(Part::unsigned);
        let cut = types.zip(&shifts).map(|(of, shift)| quote!((code >> #shift) as #of)).collect();
        (quote!(#((#names as #code) << #shifts)|*), cut)
    } else {
        let [low, high] = [0, 1].map(|half| {
            let pieces = parts.iter().zip(&names).filter_map(|(part, name)| part.piece_for(half, name));
            quote!(#(#pieces)|*)
        });
        (quote!(#root::sort::U256 { high: #high, low: #low }), parts.iter().map(Part::cut_from_halves).collect())
    };
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
                #joined
            }
        }

        #[#root::operator::operator(crate = #root::operator)]
        impl #root::sort::FromCode for #name {
            fn from_code(code: #code) -> Self {
                #(let #names = #cut;)*
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

    /// Returns how far the code's lowest bit is above that of a half of the key's code, or below it, if the half has bits of
    /// the code. Half 0 is the lower one.
    fn above(&self, half: u32) -> Option<i64> {
        let (start, end) = (HALF_BITS * half, HALF_BITS * (half + 1));
        let overlaps = self.shift < end && self.shift + self.bits > start;
        overlaps.then(|| i64::from(self.shift) - i64::from(start))
    }

    /// Returns what the code with this name adds to a half.
    fn piece_for(&self, half: u32, code: &Ident) -> Option<TokenStream> {
        let above = self.above(half)?;
        let by = Literal::u64_unsuffixed(above.unsigned_abs());
        Some(if above >= 0 { quote!((#code as u128) << #by) } else { quote!((#code >> #by) as u128) })
    }

    /// Returns the code, taken from the halves of the key's code.
    fn cut_from_halves(&self) -> TokenStream {
        let unsigned = self.unsigned();
        let pieces = [quote!(code.low), quote!(code.high)].into_iter().zip(0..).filter_map(|(half, index)| {
            let above = self.above(index)?;
            let by = Literal::u64_unsuffixed(above.unsigned_abs());
            Some(if above >= 0 { quote!((#half >> #by) as #unsigned) } else { quote!((#half as #unsigned) << #by) })
        });
        quote!(#(#pieces)|*)
    }

    /// Returns the number of the code with this name.
    fn decoded(&self, code: &Ident) -> TokenStream {
        let (top, high) = self.highest();
        match self.kind {
            Kind::Unsigned => code.to_token_stream(),
            Kind::Signed => {
                let signed = format_ident!("i{}", self.bits);
                quote!((#code ^ #high) as #signed)
            }
            Kind::Float => {
                let float = format_ident!("f{}", self.bits);
                quote!(#float::from_bits(if #code >> #top == 0 { !#code } else { #code ^ #high }))
            }
        }
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
