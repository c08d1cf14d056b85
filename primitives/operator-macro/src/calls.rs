//! Calls in a twin: of methods that operators know, and of other operators.

use crate::twin::{CALLS_ITSELF, Twin, is_self, root_at, this, twin_name};
use crate::vocabulary::{is_capitalised, is_method, is_number, is_number_function, takes_reference};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Expr, ExprCall, ExprMethodCall, Ident, Path, PathArguments, Token};

impl Twin<'_> {
    pub fn method_call(&mut self, call: &ExprMethodCall) -> TokenStream {
        let name = call.method.to_string();
        if is_self(&call.receiver) && (self.siblings.contains_key(&name) || !is_method(&name)) {
            let arguments = self.arguments(&call.args, true);
            return self.associated_call(
                &syn::parse_quote!(Self),
                call,
                &name,
                Some(this().into_token_stream()),
                arguments,
            );
        }
        if !is_method(&name) {
            return self.refuse(&call.method, unknown(&name));
        }
        if let Some(turbofish) = &call.turbofish {
            return self.refuse(turbofish, "the methods of an operator have no type arguments");
        }
        let receiver = self.expression(&call.receiver);
        let arguments = self.arguments(&call.args, takes_reference(&name));
        if name == "cmp" {
            let arguments: Vec<_> = [receiver].into_iter().chain(arguments).collect();
            return self.call(call.method.span(), "cmp", &arguments);
        }
        let method = &call.method;
        quote!((#receiver).#method(#(#arguments),*))
    }

    pub fn function_call(&mut self, call: &ExprCall) -> TokenStream {
        let Expr::Path(function) = &*call.func else {
            return self.refuse(&call.func, "an operator calls functions by their names");
        };
        let path = &function.path;
        if let Some(qualified) = &function.qself {
            // `<f32>::max(a, b)`.
            let [method] = &*path.segments.iter().collect::<Vec<_>>() else {
                return self.refuse(function, "an operator calls functions by their names: write `Type::function(…)`");
            };
            let (number, method) = (&*qualified.ty, &method.ident);
            return self.number_call(path, &number.to_token_stream(), method, call);
        }
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let Some((name, owners)) = names.split_last() else {
            return self.refuse(function, "an operator calls functions by their names");
        };
        let owner = owners.last().map(String::as_str);
        if is_capitalised(name) {
            return self.tuple_structure(path, name, call);
        }
        match owner {
            Some(number) if is_number(number) => {
                let of = &owner_of(path).to_token_stream();
                self.number_call(path, of, &path.segments[names.len() - 1].ident, call)
            }
            Some("cmp") if matches!(name.as_str(), "min" | "max") && call.args.len() == 2 => {
                let arguments = self.arguments(&call.args, false);
                let (method, first, second) = (&path.segments[names.len() - 1].ident, &arguments[0], &arguments[1]);
                quote!((#first).#method(#second))
            }
            _ if matches!(names[0].as_str(), "std" | "core" | "alloc") => self.refuse(function, unknown(name)),
            Some(owner) if is_capitalised(owner) => {
                let arguments = self.arguments(&call.args, true);
                self.associated_call(&owner_of(path), function, name, None, arguments)
            }
            _ => self.free_call(path, call),
        }
    }

    /// Records the arguments. A leading `&` is dropped where the function takes a reference.
    fn arguments(&mut self, arguments: &Punctuated<Expr, Token![,]>, references: bool) -> Vec<TokenStream> {
        let record = |argument: &Expr| match argument {
            Expr::Reference(reference) if references && reference.mutability.is_none() => {
                self.expression(&reference.expr)
            }
            other => self.expression(other),
        };
        arguments.iter().map(record).collect()
    }

    /// `f32::from_bits(x)`, `u32::min(a, b)`.
    fn number_call(&mut self, path: &Path, number: &TokenStream, function: &Ident, call: &ExprCall) -> TokenStream {
        let name = function.to_string();
        if !is_number_function(&name) {
            return self.refuse(path, unknown(&name));
        }
        let arguments = self.arguments(&call.args, takes_reference(&name));
        if name == "cmp" {
            return self.call(path.span(), "cmp", &arguments);
        }
        let span = Span::mixed_site().located_at(path.span());
        let root = root_at(self.root, span);
        quote_spanned!(span=> #root::Value::<#number>::#function(#(#arguments),*))
    }

    /// `Key(a, b)`.
    fn tuple_structure(&mut self, path: &Path, name: &str, call: &ExprCall) -> TokenStream {
        if matches!(name, "Some" | "Ok" | "Err") {
            return self.refuse(path, "an operator has no `Option` and `Result`: use a struct with a flag");
        }
        let arguments = self.arguments(&call.args, false);
        let members = (0..arguments.len()).map(|index| syn::Index::from(index).into_token_stream());
        self.built(path, members.zip(arguments).collect(), None)
    }

    /// A call of a function of an `impl`. `this` is the state that a method call passes.
    fn associated_call(
        &mut self,
        of: &Path,
        at: &dyn ToTokens,
        name: &str,
        this: Option<TokenStream>,
        mut arguments: Vec<TokenStream>,
    ) -> TokenStream {
        let name_span = last_span(at, name);
        let twin = twin_name(&Ident::new(name, name_span));
        if of.is_ident("Self")
            && let Some(sibling) = self.siblings.get(name).copied()
        {
            // `Self::less(self, a, b)` passes the state as the first argument.
            if this.is_none() && sibling.has_self && !arguments.is_empty() {
                arguments.remove(0);
            }
            let state = sibling.takes_state.then(crate::twin::this).into_iter();
            let arguments = state.map(ToTokens::into_token_stream).chain(arguments);
            return quote!(#twin(#(#arguments),*));
        }
        let arguments = this.into_iter().chain(arguments);
        quote!(<#of>::#twin(#(#arguments),*))
    }

    /// The twin of a function `f` is the function `twin` of a type that is named `f` too.
    fn free_call(&mut self, path: &Path, call: &ExprCall) -> TokenStream {
        if self.own_name.is_some_and(|own| path.segments.len() == 1 && path.segments[0].ident == *own) {
            return self.refuse(path, CALLS_ITSELF);
        }
        let arguments = self.arguments(&call.args, true);
        let mut of = path.clone();
        let generics = match of.segments.last_mut() {
            Some(last) => std::mem::take(&mut last.arguments),
            None => PathArguments::None,
        };
        let span = Span::mixed_site().located_at(path.span());
        match generics {
            PathArguments::AngleBracketed(generics) => {
                quote_spanned!(span=> <#of>::twin #generics (#(#arguments),*))
            }
            _ => quote_spanned!(span=> <#of>::twin(#(#arguments),*)),
        }
    }
}

/// Returns a path without its last name.
fn owner_of(path: &Path) -> Path {
    let mut owner = path.clone();
    owner.segments.pop();
    owner.segments.pop_punct();
    owner
}

/// Returns the place of a function's name in a call.
fn last_span(at: &dyn ToTokens, name: &str) -> Span {
    fn find(tokens: TokenStream, name: &str) -> Option<Span> {
        tokens
            .into_iter()
            .filter_map(|token| match token {
                proc_macro2::TokenTree::Ident(ident) if ident == name => Some(ident.span()),
                proc_macro2::TokenTree::Group(group) if group.delimiter() == proc_macro2::Delimiter::None => {
                    find(group.stream(), name)
                }
                _ => None,
            })
            .last()
    }
    let tokens = at.to_token_stream();
    find(tokens.clone(), name).unwrap_or_else(|| tokens.span())
}

fn unknown(name: &str) -> String {
    format!(
        "`{name}` cannot be called in an operator: operators know the numbers' own methods and functions with \
         `#[operator]`, which are called by their path, as in `Type::{name}(value)`"
    )
}
