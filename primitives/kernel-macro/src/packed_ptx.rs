//! `packed_ptx!`: the compressed PTX of a kernel as a constant.

use proc_macro2::{Literal, TokenStream as Tokens};
use quote::quote;
use std::path::PathBuf;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, ExprLit, Lit, LitStr, Token};

/// The compression level. Macros are compiled without optimisation, so 6 takes four seconds for all of gpu-primitives; a higher one
/// is not worth its time. 1 takes a tenth of it, for a fifth more bytes, which matter less in a debug build.
const LEVEL: u8 = if cfg!(debug_assertions) { 1 } else { 6 };

/// `DIR, "name"`: the folder, as an expression of string literals, and the name of the PTX entry.
pub struct Input {
    folder: Expr,
    name: LitStr,
}

impl Parse for Input {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let folder = input.parse()?;
        input.parse::<Token![,]>()?;
        Ok(Self { folder, name: input.parse()? })
    }
}

pub fn expand(input: &Input) -> syn::Result<Tokens> {
    let folder = PathBuf::from(text_of(&input.folder)?);
    // `gpu-kernel-builder` was allowed to go on without a toolchain.
    let mark = folder.join("CPU_ALONE");
    if mark.exists() {
        let mark = mark.to_string_lossy();
        return Ok(quote! {{
            const _: &[u8] = include_bytes!(#mark);
            b""
        }});
    }
    let path = folder.join(format!("{}.ptx", input.name.value()));
    let text = std::fs::read(&path).map_err(|error| {
        let message = format!("cannot read `{}` ({error}): build the PTX of this crate first", path.display());
        Error::new(input.name.span(), message)
    })?;
    let packed = Literal::byte_string(&miniz_oxide::deflate::compress_to_vec(&text, LEVEL));
    let path = path.to_string_lossy();
    Ok(quote! {{
        // Makes the compiler rebuild when the file changes. An unused constant takes no space.
        const _: &[u8] = include_bytes!(#path);
        #packed
    }})
}

/// Evaluates a string literal, or `concat!` and `env!` of string literals.
fn text_of(expression: &Expr) -> syn::Result<String> {
    let refused =
        || Error::new_spanned(expression, "expected a string literal, or `concat!` and `env!` of string literals");
    match expression {
        Expr::Group(group) => text_of(&group.expr),
        Expr::Paren(paren) => text_of(&paren.expr),
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text.value()),
        Expr::Macro(call) if call.mac.path.is_ident("concat") => {
            let parts = call.mac.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated)?;
            parts.iter().map(text_of).collect()
        }
        Expr::Macro(call) if call.mac.path.is_ident("env") => {
            let name = call.mac.parse_body::<LitStr>()?;
            std::env::var(name.value()).map_err(|_| Error::new_spanned(name, "this variable is not set"))
        }
        _ => Err(refused()),
    }
}
