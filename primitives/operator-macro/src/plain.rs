//! The function that the CPU runs: its arithmetic becomes total.

use crate::twin::root_at;
use crate::vocabulary::is_number;
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{BinOp, Block, Expr, ExprAssign, ExprForLoop, ExprIndex, ExprRepeat, Item, Pat, Path, Token, Type, UnOp};

/// Rewrites the arithmetic of a function's body.
pub fn rewrite(root: &Path, block: &mut Block) {
    Total { root }.visit_block_mut(block);
}

/// Rewrites the arithmetic of an expression.
pub fn rewritten(root: &Path, expression: &Expr) -> Expr {
    let mut expression = expression.clone();
    Total { root }.visit_expr_mut(&mut expression);
    expression
}

struct Total<'a> {
    root: &'a Path,
}

impl Total<'_> {
    fn call(&self, span: Span, function: &str, arguments: &[&Expr]) -> Expr {
        let span = Span::mixed_site().located_at(span);
        let root = root_at(self.root, span);
        let arguments = arguments.iter().map(|argument| without_parentheses(argument));
        let function = format_ident!("{function}", span = span);
        Expr::Verbatim(quote_spanned!(span=> #root::total::#function(#(#arguments),*)))
    }

    fn replacement(&self, expression: &Expr) -> Option<Expr> {
        match expression {
            Expr::Binary(binary) => {
                let (left, right) = (&binary.left, &binary.right);
                if let Some(function) = total_function(&binary.op) {
                    return Some(self.call(binary.op.span(), function, &[left, right]));
                }
                let function = assigned_function(&binary.op)?;
                let value = self.call(binary.op.span(), function, &[left, right]);
                let assign = ExprAssign {
                    attrs: Vec::new(),
                    left: left.clone(),
                    eq_token: Token![=](binary.op.span()),
                    right: Box::new(value),
                };
                Some(Expr::Assign(assign))
            }
            Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) && !is_literal(&unary.expr) => {
                Some(self.call(unary.op.span(), "neg", &[&unary.expr]))
            }
            Expr::MethodCall(call) => {
                let name = call.method.to_string();
                if total_method(&name)? != call.args.len() {
                    return None;
                }
                let arguments: Vec<&Expr> = [&*call.receiver].into_iter().chain(&call.args).collect();
                Some(self.call(call.method.span(), &name, &arguments))
            }
            Expr::Call(call) => {
                let Expr::Path(function) = &*call.func else { return None };
                let segments = &function.path.segments;
                let name = segments.last()?.ident.to_string();
                let is_total = match segments.iter().rev().nth(1).map(|segment| segment.ident.to_string()) {
                    Some(owner) => is_number(&owner) || owner == "cmp",
                    // `<f32>::max(a, b)`.
                    None => function.qself.is_some(),
                };
                if !is_total || total_method(&name)? + 1 != call.args.len() {
                    return None;
                }
                let arguments: Vec<&Expr> = call.args.iter().collect();
                Some(self.call(function.span(), &name, &arguments))
            }
            // The compiler warns of parentheses around a call.
            Expr::Paren(paren) => match &*paren.expr {
                Expr::Verbatim(call) => Some(Expr::Verbatim(call.clone())),
                _ => None,
            },
            _ => None,
        }
    }
}

impl VisitMut for Total<'_> {
    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        visit_mut::visit_expr_mut(self, expression);
        if let Some(replacement) = self.replacement(expression) {
            *expression = replacement;
        }
    }

    // Indices, bounds and lengths are constants, and stay as they are.
    fn visit_expr_index_mut(&mut self, index: &mut ExprIndex) {
        self.visit_expr_mut(&mut index.expr);
    }

    fn visit_expr_for_loop_mut(&mut self, looped: &mut ExprForLoop) {
        self.visit_block_mut(&mut looped.body);
    }

    fn visit_expr_repeat_mut(&mut self, repeat: &mut ExprRepeat) {
        self.visit_expr_mut(&mut repeat.expr);
    }

    fn visit_item_mut(&mut self, _: &mut Item) {}

    fn visit_type_mut(&mut self, _: &mut Type) {}

    fn visit_pat_mut(&mut self, _: &mut Pat) {}
}

/// Returns the function that stands for a binary operator.
pub fn total_function(op: &BinOp) -> Option<&'static str> {
    Some(match op {
        BinOp::Add(_) => "add",
        BinOp::Sub(_) => "sub",
        BinOp::Mul(_) => "mul",
        BinOp::Div(_) => "div",
        BinOp::Rem(_) => "rem",
        BinOp::Shl(_) => "shl",
        BinOp::Shr(_) => "shr",
        _ => return None,
    })
}

/// Returns the function that stands for an assigning operator.
pub fn assigned_function(op: &BinOp) -> Option<&'static str> {
    Some(match op {
        BinOp::AddAssign(_) => "add",
        BinOp::SubAssign(_) => "sub",
        BinOp::MulAssign(_) => "mul",
        BinOp::DivAssign(_) => "div",
        BinOp::RemAssign(_) => "rem",
        BinOp::ShlAssign(_) => "shl",
        BinOp::ShrAssign(_) => "shr",
        _ => return None,
    })
}

/// Returns how many arguments a method has whose total form differs from Rust's.
fn total_method(name: &str) -> Option<usize> {
    Some(match name {
        "abs" => 0,
        "min" | "max" => 1,
        "clamp" => 2,
        _ => return None,
    })
}

/// The compiler warns of parentheses around an argument.
fn without_parentheses(expression: &Expr) -> &Expr {
    match expression {
        Expr::Paren(paren) => without_parentheses(&paren.expr),
        other => other,
    }
}

/// Returns whether this is a literal, which `-` belongs to.
pub fn is_literal(expression: &Expr) -> bool {
    match expression {
        Expr::Lit(_) => true,
        Expr::Group(group) => is_literal(&group.expr),
        _ => false,
    }
}

/// Returns the rewritten expression as tokens.
pub fn tokens(root: &Path, expression: &Expr) -> TokenStream {
    rewritten(root, expression).into_token_stream()
}
