//! Blocks, variables, loops and `match` in a twin.

use crate::scope::Local;
use crate::twin::{Twin, value_type};
use crate::vocabulary::is_capitalised;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Arm, Block, Expr, ExprAssign, ExprForLoop, ExprMatch, Item, Pat, RangeLimits, Stmt, Type};

const NO_ASSIGNMENT: &str = "an operator computes both sides of an `if`, so neither can assign: give the value to the \
                             `if`, as in `let x = if c { y } else { x };`";

impl Twin<'_> {
    pub fn block(&mut self, block: &Block) -> TokenStream {
        self.scope.enter();
        let statements: Vec<_> = block.stmts.iter().map(|statement| self.statement(statement)).collect();
        self.scope.leave();
        quote!({ #(#statements)* })
    }

    fn statement(&mut self, statement: &Stmt) -> TokenStream {
        match statement {
            Stmt::Local(local) => {
                let Some(init) = &local.init else {
                    return self.refuse(local, "a variable of an operator has a value from the start: add `= …`");
                };
                if let Some((_, diverge)) = &init.diverge {
                    return self.refuse(diverge, "an operator has no `let … else`: use `if … else …`");
                }
                let (pattern, annotation) = match &local.pat {
                    Pat::Type(typed) => (&*typed.pat, Some(&*typed.ty)),
                    pattern => (pattern, None),
                };
                if self.scope.has_counter(&init.expr) && self.scope.is_known(&init.expr) {
                    self.declare(pattern, Local::Counter);
                    let (value, colon) = (self.known(&init.expr), annotation.map(|kind| quote!(: #kind)));
                    return quote!(let #pattern #colon = #value;);
                }
                let value = self.expression(&init.expr);
                let pattern = self.pattern(pattern);
                let annotation = annotation.filter(|kind| !has_inferred(kind)).map(|kind| value_type(self.root, kind));
                let colon = annotation.map(|kind| quote!(: #kind));
                quote!(let #pattern #colon = #value;)
            }
            Stmt::Item(item @ (Item::Const(_) | Item::Use(_))) => item.to_token_stream(),
            Stmt::Item(item) => self.refuse(item, "an operator can only hold `const` and `use`: move this out of it"),
            Stmt::Expr(expression, semicolon) => {
                let expression = self.expression(expression);
                quote!(#expression #semicolon)
            }
            Stmt::Macro(called) => self.refuse(called, "a macro cannot be in an operator: write the expression itself"),
        }
    }

    /// Declares the variables of a pattern that takes a recorded value apart, and returns the pattern.
    pub fn pattern(&mut self, pattern: &Pat) -> TokenStream {
        match pattern {
            Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => {
                self.declare(pattern, Local::Recorded { depth: self.scope.depth });
                pattern.to_token_stream()
            }
            Pat::Wild(_) => pattern.to_token_stream(),
            Pat::Paren(paren) => self.pattern(&paren.pat),
            Pat::Tuple(tuple) => {
                let elements: Vec<_> = tuple.elems.iter().map(|element| self.pattern(element)).collect();
                quote!((#(#elements,)*))
            }
            Pat::Slice(slice) => {
                let elements: Vec<_> = slice.elems.iter().map(|element| self.pattern(element)).collect();
                quote!([#(#elements),*])
            }
            _ => self.refuse(pattern, "a pattern of an operator is names, tuples and arrays: read the fields by name"),
        }
    }

    /// Declares the variables of a pattern of names.
    fn declare(&mut self, pattern: &Pat, local: Local) {
        match pattern {
            Pat::Ident(name) => self.scope.declare(&name.ident, local),
            Pat::Wild(_) => {}
            Pat::Paren(paren) => self.declare(&paren.pat, local),
            _ => drop(self.refuse(pattern, "a loop counter is one name")),
        }
    }

    pub fn assign(&mut self, assign: &ExprAssign) -> TokenStream {
        let value = self.expression(&assign.right);
        let target = self.place(&assign.left);
        quote!(#target = #value)
    }

    /// Returns what is assigned to.
    pub fn place(&mut self, place: &Expr) -> TokenStream {
        match place {
            Expr::Path(path) => {
                let local = path.path.get_ident().and_then(|name| self.scope.find(name));
                match local {
                    Some(Local::Recorded { depth }) if depth < self.scope.depth => self.refuse(place, NO_ASSIGNMENT),
                    Some(_) => place.to_token_stream(),
                    None => self.refuse(place, "an operator assigns to its own variables only"),
                }
            }
            Expr::Infer(_) => place.to_token_stream(),
            Expr::Paren(paren) => self.place(&paren.expr),
            Expr::Group(group) => self.place(&group.expr),
            Expr::Field(field) => {
                let (base, member) = (self.place(&field.base), &field.member);
                quote!(#base.#member)
            }
            Expr::Index(index) => {
                let base = self.place(&index.expr);
                let position = self.index(&index.index);
                quote!(#base[#position])
            }
            Expr::Tuple(tuple) => {
                let places: Vec<_> = tuple.elems.iter().map(|element| self.place(element)).collect();
                quote!((#(#places,)*))
            }
            _ => self.refuse(place, "an operator assigns to its own variables only"),
        }
    }

    /// A loop with constant bounds runs while recording.
    pub fn for_loop(&mut self, looped: &ExprForLoop) -> TokenStream {
        if !self.is_constant_range(&looped.expr) {
            let message = "a `for` of an operator goes over a constant range: `for i in 0..CONSTANT`, and `a[i]` in it";
            return self.refuse(&looped.expr, message);
        }
        if let Some(label) = &looped.label {
            return self.refuse(label, "a loop of an operator has no label: it runs to its end");
        }
        self.scope.enter();
        self.declare(&looped.pat, Local::Counter);
        let body = self.block(&looped.body);
        self.scope.leave();
        let (pattern, range) = (&looped.pat, &looped.expr);
        quote!(for #pattern in #range #body)
    }

    fn is_constant_range(&self, expression: &Expr) -> bool {
        match expression {
            Expr::Paren(paren) => self.is_constant_range(&paren.expr),
            Expr::Group(group) => self.is_constant_range(&group.expr),
            Expr::Range(range) => match (&range.start, &range.end) {
                (Some(start), Some(end)) => self.scope.is_known(start) && self.scope.is_known(end),
                _ => false,
            },
            Expr::MethodCall(call) if call.method == "rev" => self.is_constant_range(&call.receiver),
            _ => false,
        }
    }

    pub fn matched(&mut self, matched: &ExprMatch) -> TokenStream {
        if self.scope.is_known(&matched.expr) {
            return self.known_match(matched);
        }
        let value = self.expression(&matched.expr);
        let scrutinee = Ident::new("__scrutinee", Span::mixed_site());
        self.scope.depth += 1;
        let arms: Vec<_> = matched.arms.iter().map(|arm| self.arm(arm, &scrutinee)).collect();
        self.scope.depth -= 1;
        // The compiler checks that the arms cover everything, so the last one needs no test.
        let chosen = arms.into_iter().rev().fold(None, |rest, (test, body)| {
            Some(match rest {
                None => body,
                Some(rest) => self.call(matched.match_token.span(), "select", &[test, body, rest]),
            })
        });
        quote!({ let #scrutinee = #value; #chosen })
    }

    /// Returns the test of an arm, and its value.
    fn arm(&mut self, arm: &Arm, scrutinee: &Ident) -> (TokenStream, TokenStream) {
        self.scope.enter();
        let value = scrutinee.to_token_stream();
        let (pattern, guard) = guarded(&arm.pat);
        let mut test = self.test(pattern, &value);
        let binding = match pattern {
            Pat::Ident(name) if !is_capitalised(&name.ident.to_string()) => {
                self.scope.declare(&name.ident, Local::Recorded { depth: self.scope.depth });
                quote!(let #name = #scrutinee;)
            }
            _ => TokenStream::new(),
        };
        if let Some(guard) = guard {
            let guarded = self.expression(guard);
            test = self.call(guard.span(), "and", &[test, quote!({ #binding #guarded })]);
        }
        let body = self.expression(&arm.body);
        self.scope.leave();
        (test, quote!({ #binding #body }))
    }

    /// Records whether a value matches a pattern.
    fn test(&mut self, pattern: &Pat, value: &TokenStream) -> TokenStream {
        let span = pattern.span();
        match pattern {
            Pat::Lit(literal) => {
                let literal = self.call(span, "constant", &[literal.to_token_stream()]);
                self.call(span, "eq", &[value.clone(), literal])
            }
            Pat::Range(range) => {
                let start = range.start.as_ref().map(|start| {
                    let start = self.bound(start);
                    self.call(span, "ge", &[value.clone(), start])
                });
                let end = range.end.as_ref().map(|end| {
                    let end = self.bound(end);
                    let function = if matches!(range.limits, RangeLimits::HalfOpen(_)) { "lt" } else { "le" };
                    self.call(span, function, &[value.clone(), end])
                });
                match (start, end) {
                    (Some(start), Some(end)) => self.call(span, "and", &[start, end]),
                    (Some(test), None) | (None, Some(test)) => test,
                    (None, None) => self.call(span, "constant", &[quote!(true)]),
                }
            }
            Pat::Wild(_) => self.call(span, "constant", &[quote!(true)]),
            Pat::Ident(name) if !is_capitalised(&name.ident.to_string()) && name.subpat.is_none() => {
                self.call(span, "constant", &[quote!(true)])
            }
            Pat::Ident(_) | Pat::Path(_) => {
                let constant = self.call(span, "lift", &[pattern.to_token_stream()]);
                self.call(span, "eq", &[value.clone(), constant])
            }
            Pat::Paren(paren) => self.test(&paren.pat, value),
            Pat::Or(cases) => {
                let tests: Vec<_> = cases.cases.iter().map(|case| self.test(case, value)).collect();
                let first = self.call(span, "constant", &[quote!(false)]);
                tests.into_iter().fold(first, |all, test| self.call(span, "or", &[all, test]))
            }
            Pat::Tuple(tuple) => {
                let tests: Vec<_> = tuple
                    .elems
                    .iter()
                    .enumerate()
                    .map(|(index, element)| {
                        let index = syn::Index::from(index);
                        let inner = matches!(element, Pat::Ident(name) if !is_capitalised(&name.ident.to_string()));
                        if inner || matches!(element, Pat::Rest(_)) {
                            return self
                                .refuse(element, "a `match` of an operator names whole values only: match, then read");
                        }
                        self.test(element, &quote_spanned!(span=> #value.#index))
                    })
                    .collect();
                let first = self.call(span, "constant", &[quote!(true)]);
                tests.into_iter().fold(first, |all, test| self.call(span, "and", &[all, test]))
            }
            _ => self.refuse(pattern, "a `match` of an operator has literals, ranges, constants, tuples and `_`"),
        }
    }

    /// The bound of a range pattern.
    fn bound(&mut self, bound: &Expr) -> TokenStream {
        self.expression(bound)
    }

    /// A value that is known while recording chooses what is recorded.
    fn known_match(&mut self, matched: &ExprMatch) -> TokenStream {
        let value = self.known(&matched.expr);
        let arms: Vec<_> = matched
            .arms
            .iter()
            .map(|arm| {
                self.scope.enter();
                let pattern = &arm.pat;
                if let (Pat::Ident(name), _) = guarded(pattern) {
                    self.scope.declare(&name.ident, Local::Counter);
                }
                let body = self.expression(&arm.body);
                self.scope.leave();
                quote!(#pattern => { #body })
            })
            .collect();
        quote!(match #value { #(#arms)* })
    }
}

/// Divides the pattern of an arm into what the value must match, and the condition after `if`.
fn guarded(pattern: &Pat) -> (&Pat, Option<&Expr>) {
    match pattern {
        Pat::Guard(guarded) => (&guarded.pat, Some(&guarded.guard)),
        _ => (pattern, None),
    }
}

/// Returns whether a type has a `_` in it.
fn has_inferred(kind: &Type) -> bool {
    struct Find(bool);
    impl Visit<'_> for Find {
        fn visit_type_infer(&mut self, _: &syn::TypeInfer) {
            self.0 = true;
        }
    }
    let mut find = Find(false);
    find.visit_type(kind);
    find.0
}
