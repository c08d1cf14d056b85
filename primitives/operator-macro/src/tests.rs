//! What the attribute refuses, where, and what it says; and what it writes.

use crate::{derive, expand, radix_key};
use proc_macro2::{TokenStream, TokenTree};

/// Returns the line and the text of each error in expanded code.
fn errors(expanded: TokenStream) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let tokens: Vec<TokenTree> = expanded.into_iter().collect();
    for (position, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Ident(name) if name == "compile_error" => {
                let Some(TokenTree::Group(group)) = tokens.get(position + 2) else { continue };
                let text: syn::LitStr = syn::parse2(group.stream()).expect("a message");
                found.push((name.span().start().line, text.value()));
            }
            TokenTree::Group(group) => found.extend(errors(group.stream())),
            _ => {}
        }
    }
    found
}

fn expand(source: &str) -> TokenStream {
    expand::operator(TokenStream::new(), source.parse().expect("tokens"))
}

/// Checks that the third line of a function is refused with a message.
#[track_caller]
fn refused(line: &str, message: &str) {
    let source = format!("fn f(a: u32, b: u32) -> u32 {{\n    let mut x = a;\n    {line}\n    x\n}}");
    let found = errors(expand(&source));
    assert_eq!(found.len(), 1, "{line}: {found:?}");
    assert_eq!(found[0].0, 3, "the line of {found:?}");
    assert!(found[0].1.contains(message), "{line}: {:?} does not say {message:?}", found[0].1);
}

#[test]
fn loops_need_constant_bounds() {
    refused("while x < b { x += 1; }", "use `for i in 0..CONSTANT`");
    refused("loop { }", "use `for i in 0..CONSTANT`");
    refused("for i in 0..b { x += 1; }", "`for i in 0..CONSTANT`");
    refused("for i in [1, 2] { x += 1; }", "`for i in 0..CONSTANT`");
    refused("for i in 0..4 { continue; }", "runs to its end");
    refused("'outer: for i in 0..4 { }", "no label");
    refused("let y = [a, b][x];", "indexes arrays by constants and loop counters only");
}

#[test]
fn control_flow_gives_values() {
    refused("return a;", "use `if … else …` instead of `return`");
    refused("let y = g()?;", "no `?`");
    refused("if a < b { x }", "add an `else`");
    refused("let y = if let 3 = a { b } else { a };", "no `if let`");
    refused("let 3 = a else { b };", "no `let … else`");
    refused("if a < b { x = b; } else { }", "neither can assign");
    refused("let y = match a { 0 => { x = b; b } _ => a };", "neither can assign");
    refused("let y = match a { Some(z) => z, _ => b };", "literals, ranges, constants, tuples and `_`");
    refused("let y;", "has a value from the start");
}

#[test]
fn only_values_are_computed_with() {
    refused("let y = &a;", "leave out the `&`");
    refused("let y = *b;", "leave out the `*`");
    refused("let y = |z: u32| z;", "write a function with `#[operator]` and call it");
    refused("assert!(a < b);", "a macro cannot be in an operator");
    refused("let y = vec![1];", "a macro cannot be in an operator");
    refused("let y = \"text\";", "numbers and bools only");
    refused("let y = 'c';", "numbers and bools only");
    refused("let y = unsafe { a };", "no `unsafe`");
    refused("let y = a.await;", "no `async` and `await`");
    refused("let y = 0..4;", "only be the bounds of a `for`");
    refused("let Event { time, .. } = a;", "read the fields by name");
    refused("fn inner() {}", "only hold `const` and `use`");
    refused("let y = Some(a);", "no `Option` and `Result`");
}

#[test]
fn unknown_functions_are_refused() {
    refused("let y = a.checked_add(b);", "`checked_add` cannot be called in an operator");
    refused("let y = a.pow(2);", "called by their path, as in `Type::pow(value)`");
    refused("let y = a.then_with(b);", "`then_with` cannot be called");
    refused("let y = u32::from_str_radix(a, b);", "`from_str_radix` cannot be called");
    refused("let y = std::mem::take(a);", "`take` cannot be called");
}

#[test]
fn an_assignment_to_a_variable_of_the_branch_is_taken() {
    let source = "fn f(a: u32) -> u32 { if a < 3 { let mut y = a; y += 1; y } else { a } }";
    assert_eq!(errors(expand(source)), []);
    let source = "fn f(a: [u32; 4]) -> u32 { let mut y = 0; for i in 0..4 { if i > 1 { y += a[i - 1]; } } y }";
    assert_eq!(errors(expand(source)), []);
}

#[test]
fn every_error_is_reported_at_once() {
    let found = errors(expand("fn f(a: u32) -> u32 {\n    let x = &a;\n    return x;\n}"));
    assert_eq!(found.iter().map(|error| error.0).collect::<Vec<_>>(), [2, 3]);
}

#[track_caller]
fn refused_item(source: &str, line: usize, message: &str) {
    let found = errors(expand(source));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, line, "the line of {found:?}");
    assert!(found[0].1.contains(message), "{:?} does not say {message:?}", found[0].1);
}

#[test]
fn signatures_are_checked() {
    refused_item("struct S;", 1, "goes on a function or on an `impl`");
    refused_item("const fn f(a: u32) -> u32 { a }", 1, "cannot be `const`");
    refused_item("async fn f(a: u32) -> u32 { a }", 1, "cannot be `async`");
    refused_item("unsafe fn f(a: u32) -> u32 { a }", 1, "cannot be `unsafe`");
    refused_item("fn f(a: &u32) -> u32 { a }", 1, "takes values");
    refused_item("fn f(a: u32) { }", 1, "returns a value");
    refused_item("impl S {\n fn f(&mut self, a: u32) -> u32 { a }\n}", 2, "does not change its state");
    refused_item("impl T for S {\n fn f<X>(&self, a: u32) -> u32 { a }\n}", 2, "no generics of its own");
}

#[test]
fn functions_do_not_call_themselves() {
    refused_item("impl T for S {\n fn f(&self, a: u32) -> u32 { self.f(a) }\n}", 2, "cannot call itself");
    refused_item("impl S {\n fn f(a: u32) -> u32 { Self::f(a) }\n}", 2, "cannot call itself");
    let both = "impl S {\n fn f(a: u32) -> u32 { Self::g(a) }\n fn g(a: u32) -> u32 { Self::f(a) + 1 }\n}";
    refused_item(both, 2, "cannot call itself");
    refused_item("fn f(a: u32) -> u32 {\n if a < 2 { 1 } else { a * f(a - 1) }\n}", 2, "cannot call itself");
    // Another function of the same name.
    assert_eq!(errors(expand("fn f(a: u32) -> u32 { other::f(a) + Self::f(a) }")), []);
}

#[test]
fn structs_are_checked() {
    let error = |source: &str| derive::record(source.parse().expect("tokens")).expect_err("an error").to_string();
    assert!(error("struct S { a: u32 }").contains("add `#[repr(C)]`"));
    assert!(error("enum E { A }").contains("use an integer and constants"));
    assert!(error("#[repr(C)] union U { a: u32 }").contains("union"));
    assert!(error("#[repr(C)] #[record(path = x)] struct S { a: u32 }").contains("crate = path"));
}

#[test]
fn a_gpu_gets_the_function_as_it_was_written() {
    let text = expand("fn f(a: u32, b: u32) -> u32 { a + b }").to_string();
    assert!(text.contains("needless_range_loop)] fn f (a : u32 , b : u32) -> u32 { a + b }"), "{text}");
    assert!(text.contains(":: gpu_primitives :: operator :: total :: add (a , b)"), "{text}");
    // Everything that names the crate is for the host.
    let file: syn::File = syn::parse_str(&text).expect("items");
    for item in file.items {
        let text = quote::quote!(#item).to_string();
        let is_for_gpu = text.contains("cfg (target_arch");
        assert_eq!(text.contains("gpu_primitives"), !is_for_gpu && !text.contains("struct f"), "{text}");
        assert!(is_for_gpu || text.contains("cfg (not (target_arch = \"nvptx64\"))"), "{text}");
    }
}

#[test]
fn the_crate_has_another_path_if_asked() {
    let tokens = "fn f(a: u32) -> u32 { a - 1 }".parse().expect("tokens");
    let text = expand::operator(quote::quote!(crate = my::recorder), tokens).to_string();
    assert!(text.contains("my :: recorder :: total :: sub"), "{text}");
    assert!(!text.contains("gpu_primitives"), "{text}");
}

/// Checks that `derive(RadixKey)` refuses a struct with a message.
#[track_caller]
fn refused_key(source: &str, message: &str) {
    let error = radix_key::radix_key(source.parse().expect("tokens")).expect_err("it is refused").to_string();
    assert!(error.contains(message), "{source}: {error:?} does not say {message:?}");
}

#[test]
fn keys_are_derived_from_numbers() {
    refused_key("enum Side { Left, Right }", "only a struct");
    refused_key("struct Key<T> { a: T }", "implement `RadixKey` and `FromCode` yourself");
    refused_key("struct Key { a: u32, b: Other }", "the fields of a derived key are numbers");
    refused_key("struct Key { a: [u32; LEN] }", "with a literal length");
    refused_key("struct Key { a: (u32, u32) }", "the fields of a derived key are numbers");
    refused_key("struct Key;", "at least one field");
    refused_key("struct Key { a: [u128; 2], b: u8 }", "the fields have 264 bits, but a code has at most 256");
    refused_key("#[radix_key(path = other)] struct Key { a: u32 }", "expected `crate = path::of::gpu_primitives`");
}
