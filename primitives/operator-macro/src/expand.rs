//! What `#[operator]` writes.

use crate::plain;
use crate::twin::{CALLS_ITSELF, Sibling, Twin, this, twin_name, value_type};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use std::collections::HashMap;
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Attribute, Block, Error, Expr, ExprMethodCall, FnArg, GenericParam, ImplItem, ImplItemFn, Item, ItemFn, ItemImpl,
    Path, ReceiverKind, ReturnType, Safety, Signature, Type,
};

/// Expands the attribute. Errors are part of the result.
pub fn operator(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = crate_path(attribute).and_then(|root| match syn::parse2(item)? {
        Item::Fn(function) => Ok(free_function(&root, function)),
        Item::Impl(implementation) => implementation_of(&root, implementation),
        other => Err(Error::new_spanned(other, "`#[operator]` goes on a function or on an `impl`")),
    });
    expanded.unwrap_or_else(|error| error.to_compile_error())
}

/// Reads `crate = path`. Without it, the path is that of the crate that most users have.
pub fn crate_path(attribute: TokenStream) -> syn::Result<Path> {
    let mut root = match std::env::var("CARGO_PKG_NAME").as_deref() {
        Ok("gpu-operator") => syn::parse_quote!(::gpu_operator),
        _ => syn::parse_quote!(::gpu_primitives::operator),
    };
    let parser = syn::meta::parser(|meta| {
        if !meta.path.is_ident("crate") {
            return Err(meta.error("expected `crate = path::of::gpu_operator`"));
        }
        root = meta.value()?.call(Path::parse_mod_style)?;
        Ok(())
    });
    parser.parse2(attribute)?;
    Ok(root)
}

/// The host: on a GPU a function stays as it was written, and nothing is recorded.
fn on_host() -> TokenStream {
    quote!(#[cfg(not(target_arch = "nvptx64"))])
}

fn on_gpu() -> TokenStream {
    quote!(#[cfg(target_arch = "nvptx64")])
}

/// What a recorded function may look like without a reason to warn.
fn quiet() -> TokenStream {
    quote! {
        #[allow(
            dead_code, unused, non_camel_case_types, non_snake_case,
            clippy::all, clippy::pedantic, clippy::nursery, clippy::restriction
        )]
    }
}

/// A twin, as far as it is written.
struct Written {
    parameters: Vec<TokenStream>,
    types: Vec<Type>,
    result: TokenStream,
    returned: TokenStream,
    body: TokenStream,
}

/// Writes the twin of a function without its name.
fn write(
    root: &Path,
    signature: &Signature,
    block: &Block,
    siblings: &HashMap<String, Sibling>,
    own_name: Option<&Ident>,
) -> (Written, Vec<Error>) {
    let mut twin = Twin::new(root, siblings, own_name);
    check_signature(&mut twin, signature);
    twin.scope.enter();
    let (mut parameters, mut types) = (Vec::new(), Vec::new());
    for argument in &signature.inputs {
        let FnArg::Typed(argument) = argument else { continue };
        if matches!(&*argument.ty, Type::Reference(_)) {
            twin.refuse(&argument.ty, "an operator takes values: leave out the `&`");
        }
        let pattern = twin.pattern(&argument.pat);
        let value = value_type(root, &argument.ty);
        parameters.push(quote!(#pattern: #value));
        types.push((*argument.ty).clone());
    }
    let body = twin.block(block);
    let returned = match &signature.output {
        ReturnType::Type(_, returned) => returned.to_token_stream(),
        ReturnType::Default => {
            twin.refuse(&signature.ident, "an operator returns a value: add `-> …`");
            quote!(())
        }
    };
    let result = match &signature.output {
        ReturnType::Type(_, returned) => value_type(root, returned),
        ReturnType::Default => quote!(()),
    };
    (Written { parameters, types, result, returned, body }, twin.errors)
}

fn check_signature(twin: &mut Twin<'_>, signature: &Signature) {
    if let Some(token) = &signature.constness {
        twin.refuse(token, "an operator cannot be `const`: its arithmetic is done by traits");
    }
    if let Some(token) = &signature.asyncness {
        twin.refuse(token, "an operator cannot be `async`: it only computes");
    }
    if let Safety::Unsafe(token) = &signature.safety {
        twin.refuse(token, "an operator cannot be `unsafe`: it only computes with its arguments");
    }
    if let Some(FnArg::Receiver(receiver)) = signature.inputs.first()
        && (receiver.mutability.is_some() || matches!(receiver.kind, ReceiverKind::Reference(_, _, Some(_))))
    {
        twin.refuse(receiver, "an operator does not change its state: take `&self` or `self`");
    }
}

/// Returns what a twin begins with that others can call: it must not run inside itself.
fn running(root: &Path, name: &Ident) -> TokenStream {
    let (span, text) = (Span::mixed_site(), name.to_string());
    quote_spanned! {span=>
        static __PLACE: u8 = 0;
        let __running = #root::Running::new(#text, &__PLACE, || {});
    }
}

/// Returns the code that records one function: `call` runs its twin.
fn recording(root: &Path, name: &Ident, state: bool, written: &Written, call: &TokenStream) -> TokenStream {
    let span = Span::mixed_site();
    let text = name.to_string();
    let arguments: Vec<Ident> = (0..written.types.len()).map(|n| format_ident!("__argument{n}", span = span)).collect();
    let (types, returned) = (&written.types, &written.returned);
    let this = this();
    let (read, passed) = match state {
        true => (quote_spanned!(span=> let #this = recording.state::<Self>();), quote!(#this,)),
        false => (TokenStream::new(), TokenStream::new()),
    };
    quote_spanned! {span=> {
        let mut recording = #root::Recording::new(#text);
        #read
        #(let #arguments = recording.argument::<#types>();)*
        recording.finish::<#returned>(#call(#passed #(#arguments),*))
    }}
}

/// The native function twice: as it was written, for a GPU, and with total arithmetic, for the host.
fn natives<F: ToTokens + Clone>(root: &Path, function: &F, block: impl Fn(&mut F) -> &mut Block) -> TokenStream {
    let mut total = function.clone();
    plain::rewrite(root, block(&mut total));
    let (on_gpu, on_host) = (on_gpu(), on_host());
    // An operator has no other loop.
    let counted = quote!(#[allow(clippy::needless_range_loop)]);
    quote!(#on_gpu #counted #function #on_host #counted #total)
}

fn conditions(attributes: &[Attribute]) -> impl Iterator<Item = &Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"))
}

fn free_function(root: &Path, function: ItemFn) -> TokenStream {
    let siblings = HashMap::new();
    let (mut written, errors) = write(root, &function.sig, &function.block, &siblings, Some(&function.sig.ident));
    let native = match errors.is_empty() {
        true => natives(root, &function, |function| &mut function.block),
        false => {
            written.body = quote!({ ::core::unreachable!() });
            function.to_token_stream()
        }
    };
    let errors = errors.iter().map(Error::to_compile_error);
    let (name, visibility) = (&function.sig.ident, &function.vis);
    let (generics, bounds) = (&function.sig.generics, &function.sig.generics.where_clause);
    let (parameters, result, body) = (&written.parameters, &written.result, &written.body);
    let cfg: Vec<_> = conditions(&function.attrs).collect();
    let (host, quiet, running) = (on_host(), quiet(), running(root, name));
    let is_generic = generics.params.iter().any(|parameter| !matches!(parameter, GenericParam::Lifetime(_)));
    let recorded = (!is_generic).then(|| {
        let recording = recording(root, name, false, &written, &quote!(Self::twin));
        quote! {
            /// Records the function.
            #visibility fn recorded() -> #root::Recorded {
                // A function that is recorded is used.
                let _ = #name;
                #root::Recorded::new([#recording])
            }
        }
    });
    quote! {
        #native
        #(#errors)*
        #host #(#cfg)*
        #[doc(hidden)]
        #quiet
        #visibility struct #name {}
        #host #(#cfg)*
        #quiet
        impl #name {
            /// The function over recorded values.
            #visibility fn twin #generics (#(#parameters),*) -> #result #bounds {
                #running
                #body
            }
            #recorded
        }
    }
}

/// Returns whether a body uses `self` in another way than to call functions of the same `impl`, and which it calls.
fn uses_of_self(function: &ImplItemFn, names: &[String]) -> (bool, Vec<String>) {
    struct Uses<'a> {
        names: &'a [String],
        state: bool,
        called: Vec<String>,
    }
    impl Visit<'_> for Uses<'_> {
        fn visit_expr_method_call(&mut self, call: &ExprMethodCall) {
            let name = call.method.to_string();
            if crate::twin::is_self(&call.receiver) && self.names.contains(&name) {
                self.called.push(name);
                call.args.iter().for_each(|argument| self.visit_expr(argument));
            } else {
                visit::visit_expr_method_call(self, call);
            }
        }

        fn visit_expr_call(&mut self, call: &syn::ExprCall) {
            let mut arguments = call.args.iter().peekable();
            if let Expr::Path(function) = &*call.func
                && let [owner, name] =
                    &function.path.segments.iter().map(|s| s.ident.to_string()).collect::<Vec<_>>()[..]
                && owner == "Self"
                && self.names.contains(name)
            {
                self.called.push(name.clone());
                arguments.next_if(|first| crate::twin::is_self(first));
            }
            arguments.for_each(|argument| self.visit_expr(argument));
        }

        fn visit_expr_path(&mut self, path: &syn::ExprPath) {
            self.state |= path.path.is_ident("self");
        }
    }
    let mut uses = Uses { names, state: false, called: Vec::new() };
    uses.visit_block(&function.block);
    (uses.state, uses.called)
}

/// Orders the functions so that each comes after those that it calls, and finds out which need the state.
fn order(functions: &[&ImplItemFn]) -> syn::Result<(Vec<usize>, HashMap<String, Sibling>)> {
    let names: Vec<String> = functions.iter().map(|function| function.sig.ident.to_string()).collect();
    let uses: Vec<_> = functions.iter().map(|function| uses_of_self(function, &names)).collect();
    let mut siblings = HashMap::new();
    let mut order = Vec::new();
    while order.len() < functions.len() {
        let ready = (0..functions.len())
            .find(|index| !order.contains(index) && uses[*index].1.iter().all(|called| siblings.contains_key(called)));
        let Some(index) = ready else {
            let stuck = functions.iter().find(|function| !siblings.contains_key(&function.sig.ident.to_string()));
            return Err(Error::new_spanned(stuck.map(|function| &function.sig.ident), CALLS_ITSELF));
        };
        let (uses_state, called) = &uses[index];
        let takes_state =
            *uses_state || called.iter().any(|name| siblings.get(name).is_some_and(|s: &Sibling| s.takes_state));
        let has_self = functions[index].sig.receiver().is_some();
        siblings.insert(names[index].clone(), Sibling { has_self, takes_state });
        order.push(index);
    }
    Ok((order, siblings))
}

fn implementation_of(root: &Path, mut implementation: ItemImpl) -> syn::Result<TokenStream> {
    let functions: Vec<ImplItemFn> = implementation
        .items
        .iter()
        .filter_map(|item| match item {
            ImplItem::Fn(function) => Some(function.clone()),
            _ => None,
        })
        .collect();
    let is_trait = implementation.trait_.is_some();
    let in_order = order(&functions.iter().collect::<Vec<_>>())?;
    // The functions of a type call each other by their names.
    let (order, siblings) = if is_trait { in_order } else { ((0..functions.len()).collect(), HashMap::new()) };

    let (mut errors, mut twins, mut recordings) = (Vec::new(), Vec::new(), vec![TokenStream::new(); functions.len()]);
    for index in order {
        let function = &functions[index];
        let (mut written, mut wrong) = write(root, &function.sig, &function.block, &siblings, None);
        if is_trait && !function.sig.generics.params.is_empty() {
            let message = "a function of an operator has no generics of its own: put them on the `impl`";
            wrong.push(Error::new_spanned(&function.sig.generics, message));
        }
        if !wrong.is_empty() {
            written.body = quote!({ ::core::unreachable!() });
        }
        errors.extend(wrong);
        let name = &function.sig.ident;
        let twin = twin_name(name);
        let state = match siblings.get(&name.to_string()) {
            Some(sibling) => sibling.takes_state,
            None => function.sig.receiver().is_some(),
        };
        let this = this();
        let this = state.then(|| quote!(#this: <Self as #root::Record>::Value,));
        let (parameters, result, body) = (&written.parameters, &written.result, &written.body);
        let cfg = conditions(&function.attrs);
        let call = if is_trait {
            twins.push(quote!(let #twin = |#this #(#parameters),*| -> #result #body;));
            twin.to_token_stream()
        } else {
            let (visibility, generics) = (&function.vis, &function.sig.generics);
            let (host, quiet, bounds) = (on_host(), quiet(), &generics.where_clause);
            let running = running(root, name);
            twins.push(quote! {
                #host #(#cfg)* #[doc(hidden)] #quiet
                #visibility fn #twin #generics (#this #(#parameters),*) -> #result #bounds {
                    #running
                    #body
                }
            });
            quote!(Self::#twin)
        };
        if function.sig.generics.params.is_empty() {
            let recording = recording(root, name, state, &written, &call);
            // A function that is recorded is used.
            let used = (!is_trait).then(|| quote!(let _ = Self::#name;));
            recordings[index] = quote!({ #used #recording });
        }
    }

    let mut items = Vec::new();
    for item in &implementation.items {
        items.push(match item {
            ImplItem::Fn(function) if errors.is_empty() => natives(root, function, |function| &mut function.block),
            other => other.to_token_stream(),
        });
    }
    let (outside, inside) = if is_trait { (Vec::new(), twins) } else { (twins, Vec::new()) };
    let visibility = if is_trait { TokenStream::new() } else { quote!(pub) };
    let recordings = recordings.into_iter().filter(|recording| !recording.is_empty());
    let body = match errors.is_empty() {
        true => quote!(#(#inside)* #root::Recorded::new([#(#recordings),*])),
        false => quote!(::core::unreachable!()),
    };
    let (host, quiet) = (on_host(), quiet());
    items.extend(outside);
    let span = Span::mixed_site().located_at(implementation.self_ty.span());
    items.push(quote_spanned! {span=>
        /// Records the operator's functions.
        #host #quiet
        #visibility fn recorded() -> #root::Recorded {
            #body
        }
    });
    implementation.items = vec![ImplItem::Verbatim(quote!(#(#items)*))];
    let errors = errors.iter().map(Error::to_compile_error);
    Ok(quote!(#implementation #(#errors)*))
}
