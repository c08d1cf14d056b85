//! The twin of a function: each expression becomes calls that record it.

use crate::plain::{self, is_literal};
use crate::scope::{Local, Scope};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use std::collections::HashMap;
use syn::spanned::Spanned;
use syn::{BinOp, Error, Expr, ExprBinary, ExprIf, ExprPath, ExprStruct, ExprUnary, Lit, Path, Type, UnOp};

/// What the twin of another function of the same `impl` of a trait takes.
#[derive(Clone, Copy, Debug)]
pub struct Sibling {
    /// Whether the function has `self`.
    pub has_self: bool,
    /// Whether the twin takes the state.
    pub takes_state: bool,
}

/// Writes twins.
pub struct Twin<'a> {
    /// The path of `gpu_operator`.
    pub root: &'a Path,
    /// The other functions of the same `impl` of a trait, by name.
    pub siblings: &'a HashMap<String, Sibling>,
    /// The function, if it is one of its own and not part of an `impl`.
    pub own_name: Option<&'a Ident>,
    pub scope: Scope,
    pub errors: Vec<Error>,
}

/// The name of the state in a twin.
pub fn this() -> Ident {
    Ident::new("__this", Span::mixed_site())
}

/// What a function that calls itself is told.
pub const CALLS_ITSELF: &str =
    "an operator cannot call itself: write a loop with a constant bound, as in `for i in 0..CONSTANT`";

/// The twin of a function of an `impl`. The compiler says this name if a function has no `#[operator]`.
pub fn twin_name(function: &Ident) -> Ident {
    format_ident!("{function}_with_operator_attribute", span = function.span())
}

/// Returns the path of `gpu_operator` as if it were written at the user's code, which is where errors then point.
pub fn root_at(root: &Path, span: Span) -> TokenStream {
    let tokens = root.to_token_stream().into_iter();
    tokens
        .map(|mut token| {
            token.set_span(span);
            token
        })
        .collect()
}

/// Returns the type that stands for another in a twin.
pub fn value_type(root: &Path, of: &Type) -> TokenStream {
    let span = Span::mixed_site().located_at(of.span());
    let root = root_at(root, span);
    quote_spanned!(span=> <#of as #root::Record>::Value)
}

impl<'a> Twin<'a> {
    pub fn new(root: &'a Path, siblings: &'a HashMap<String, Sibling>, own_name: Option<&'a Ident>) -> Self {
        Self { root, siblings, own_name, scope: Scope::default(), errors: Vec::new() }
    }

    /// Notes an error at the user's code.
    pub fn refuse(&mut self, at: &dyn ToTokens, message: impl std::fmt::Display) -> TokenStream {
        self.errors.push(Error::new_spanned(at, message));
        quote!(::core::unreachable!())
    }

    /// Calls a function of `gpu_operator::twin`.
    pub fn call(&self, span: Span, function: &str, arguments: &[TokenStream]) -> TokenStream {
        let span = Span::mixed_site().located_at(span);
        let root = root_at(self.root, span);
        let function = Ident::new(function, span);
        quote_spanned!(span=> #root::twin::#function(#(#arguments),*))
    }

    /// Returns an expression that is known while recording, for the compiler to compute.
    pub fn known(&self, expression: &Expr) -> TokenStream {
        plain::tokens(self.root, expression)
    }

    pub fn expression(&mut self, expression: &Expr) -> TokenStream {
        match expression {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Int(_) | Lit::Float(_) | Lit::Bool(_) | Lit::Byte(_) => {
                    self.call(literal.span(), "constant", &[literal.to_token_stream()])
                }
                _ => self.refuse(literal, "an operator computes with numbers and bools only: use an integer"),
            },
            Expr::Path(path) => self.path(path),
            Expr::Paren(paren) => self.expression(&paren.expr),
            Expr::Group(group) => self.expression(&group.expr),
            Expr::Block(block) if block.label.is_none() => self.block(&block.block),
            Expr::Binary(binary) => self.binary(binary),
            Expr::Unary(unary) => self.unary(unary),
            Expr::Cast(cast) if self.scope.is_known(&cast.expr) => {
                let value = self.known(expression);
                self.call(cast.as_token.span(), "lift", &[value])
            }
            Expr::Cast(cast) => {
                let value = self.expression(&cast.expr);
                let span = Span::mixed_site().located_at(cast.ty.span());
                let (root, to) = (root_at(self.root, span), &cast.ty);
                quote_spanned!(span=> #root::twin::cast::<#to, _>(#value))
            }
            Expr::If(branch) => self.branch(branch),
            Expr::Match(matched) => self.matched(matched),
            Expr::Index(_) | Expr::Field(_) if self.scope.is_known(expression) => {
                let value = self.known(expression);
                self.call(expression.span(), "lift", &[value])
            }
            Expr::Field(field) => {
                let (base, member) = (self.expression(&field.base), &field.member);
                quote!((#base).#member)
            }
            Expr::Index(index) => {
                let base = self.expression(&index.expr);
                let position = self.index(&index.index);
                quote!((#base)[#position])
            }
            Expr::Tuple(tuple) => {
                let elements: Vec<_> = tuple.elems.iter().map(|element| self.expression(element)).collect();
                quote!((#(#elements,)*))
            }
            Expr::Array(array) => {
                let elements: Vec<_> = array.elems.iter().map(|element| self.expression(element)).collect();
                quote!([#(#elements),*])
            }
            Expr::Repeat(repeat) => {
                let (element, length) = (self.expression(&repeat.expr), &repeat.len);
                quote!([#element; #length])
            }
            Expr::Struct(literal) => self.structure(literal),
            Expr::Call(call) => self.function_call(call),
            Expr::MethodCall(call) => self.method_call(call),
            Expr::Assign(assign) => self.assign(assign),
            Expr::ForLoop(looped) => self.for_loop(looped),
            _ => self.refused(expression),
        }
    }

    fn path(&mut self, path: &ExprPath) -> TokenStream {
        let span = path.span();
        match path.path.get_ident() {
            Some(name) if name == "self" => this().into_token_stream(),
            Some(name) => match self.scope.find(name) {
                Some(Local::Recorded { .. }) => name.to_token_stream(),
                Some(Local::Counter) => self.call(span, "constant", &[name.to_token_stream()]),
                None => self.call(span, "lift", &[path.to_token_stream()]),
            },
            None => self.call(span, "lift", &[path.to_token_stream()]),
        }
    }

    /// An index is computed while recording.
    pub fn index(&mut self, index: &Expr) -> TokenStream {
        if self.scope.is_known(index) {
            return index.to_token_stream();
        }
        self.refuse(
            index,
            "an operator indexes arrays by constants and loop counters only: use `match` or `if` to choose",
        )
    }

    fn binary(&mut self, binary: &ExprBinary) -> TokenStream {
        let span = binary.op.span();
        if let Some(function) = plain::assigned_function(&binary.op).or(assigned_bits(&binary.op)) {
            let target = self.place(&binary.left);
            let right = self.right_side(function, &binary.right);
            let value = self.call(span, function, &[target.clone(), right]);
            return quote!(#target = #value);
        }
        let function = match &binary.op {
            BinOp::And(_) => "and",
            BinOp::Or(_) => "or",
            BinOp::BitAnd(_) => "bitand",
            BinOp::BitOr(_) => "bitor",
            BinOp::BitXor(_) => "bitxor",
            BinOp::Eq(_) => "eq",
            BinOp::Ne(_) => "ne",
            BinOp::Lt(_) => "lt",
            BinOp::Le(_) => "le",
            BinOp::Gt(_) => "gt",
            BinOp::Ge(_) => "ge",
            op => match plain::total_function(op) {
                Some(function) => function,
                None => return self.refuse(op, "this operator cannot be in an `#[operator]`"),
            },
        };
        let left = self.expression(&binary.left);
        let right = self.right_side(function, &binary.right);
        self.call(span, function, &[left, right])
    }

    /// The amount of a shift may be of any integer type, a counter's too.
    fn right_side(&mut self, function: &str, right: &Expr) -> TokenStream {
        if matches!(function, "shl" | "shr") && self.scope.is_known(right) {
            let span = Span::mixed_site().located_at(right.span());
            let (root, amount) = (root_at(self.root, span), self.known(right));
            let amount = quote_spanned!(span=> #root::total::Amount::amount(#amount));
            return self.call(right.span(), "constant", &[amount]);
        }
        self.expression(right)
    }

    fn unary(&mut self, unary: &ExprUnary) -> TokenStream {
        match unary.op {
            UnOp::Neg(_) if is_literal(&unary.expr) => self.call(unary.span(), "constant", &[unary.to_token_stream()]),
            UnOp::Neg(_) => {
                let operand = self.expression(&unary.expr);
                self.call(unary.op.span(), "neg", &[operand])
            }
            UnOp::Not(_) => {
                let operand = self.expression(&unary.expr);
                self.call(unary.op.span(), "not", &[operand])
            }
            UnOp::Deref(_) if is_self(&unary.expr) => this().into_token_stream(),
            _ => self.refuse(unary, "an operator works on values: take the argument by value and leave out the `*`"),
        }
    }

    fn branch(&mut self, branch: &ExprIf) -> TokenStream {
        if let Expr::Let(condition) = &*branch.cond {
            return self.refuse(condition, "an operator has no `if let`: use `match` on an integer, or `if` and `==`");
        }
        // A condition that is known while recording chooses what is recorded.
        if self.scope.is_known(&branch.cond) {
            let condition = self.known(&branch.cond);
            let then = self.block(&branch.then_branch);
            let otherwise = branch.else_branch.as_ref().map(|(_, otherwise)| {
                let otherwise = self.expression(otherwise);
                quote!(else { #otherwise })
            });
            return quote!(if #condition { #then } #otherwise);
        }
        let condition = self.expression(&branch.cond);
        let Some((_, otherwise)) = &branch.else_branch else {
            let message = "an operator's `if` gives a value: add an `else`, as in `let x = if c { y } else { x };`";
            return self.refuse(&branch.if_token, message);
        };
        self.scope.depth += 1;
        let then = self.block(&branch.then_branch);
        let otherwise = self.expression(otherwise);
        self.scope.depth -= 1;
        self.call(branch.if_token.span(), "select", &[condition, then, otherwise])
    }

    fn structure(&mut self, literal: &ExprStruct) -> TokenStream {
        let fields: Vec<_> =
            literal.fields.iter().map(|field| (field.member.to_token_stream(), self.expression(&field.expr))).collect();
        let base = literal.rest.as_ref().map(|rest| self.expression(rest));
        self.built(&literal.path, fields, base)
    }

    /// Makes a struct: a value of zeros, or another one, whose fields are then set.
    pub fn built(
        &self,
        path: &Path,
        fields: Vec<(TokenStream, TokenStream)>,
        base: Option<TokenStream>,
    ) -> TokenStream {
        let span = Span::mixed_site().located_at(path.span());
        let root = root_at(self.root, span);
        let base = base.unwrap_or_else(|| quote_spanned!(span=> #root::twin::zero::<#path>()));
        let (members, values): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
        quote_spanned! {span=> {
            let mut __value: <#path as #root::Record>::Value = #base;
            #(__value.#members = #values;)*
            __value
        }}
    }

    fn refused(&mut self, expression: &Expr) -> TokenStream {
        let message = match expression {
            Expr::While(_) | Expr::Loop(_) => {
                "a loop without a constant bound cannot be in an operator: use `for i in 0..CONSTANT`"
            }
            Expr::Return(_) => "an operator is an expression: use `if … else …` instead of `return`",
            Expr::Try(_) => "an operator has no `?`: its functions return plain values",
            Expr::Reference(_) => "an operator works on values: leave out the `&`",
            Expr::Closure(_) => "a closure cannot be in an operator: write a function with `#[operator]` and call it",
            Expr::Macro(_) => "a macro cannot be in an operator: write the expression itself",
            Expr::Unsafe(_) => "an operator has no `unsafe`: it only computes with its arguments",
            Expr::Await(_) | Expr::Async(_) => "an operator has no `async` and `await`: it only computes",
            Expr::Break(_) | Expr::Continue(_) => {
                "a loop of an operator runs to its end: use `if … else …` to keep a value"
            }
            Expr::Let(_) => "an operator has no `if let`: use `match` on an integer, or `if` and `==`",
            Expr::Range(_) => "a range can only be the bounds of a `for`: `for i in 0..CONSTANT`",
            _ => "this expression cannot be in an operator",
        };
        self.refuse(expression, message)
    }
}

/// Returns whether this is `self`.
pub fn is_self(expression: &Expr) -> bool {
    match expression {
        Expr::Path(path) => path.path.is_ident("self"),
        Expr::Paren(paren) => is_self(&paren.expr),
        Expr::Group(group) => is_self(&group.expr),
        _ => false,
    }
}

/// Returns the function that stands for an assigning bit operator, which needs no total form.
fn assigned_bits(op: &BinOp) -> Option<&'static str> {
    Some(match op {
        BinOp::BitAndAssign(_) => "bitand",
        BinOp::BitOrAssign(_) => "bitor",
        BinOp::BitXorAssign(_) => "bitxor",
        _ => return None,
    })
}
