//! The variables of a function while its twin is written.

use syn::{Expr, Ident};

/// What a variable is in the twin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Local {
    /// A recorded value, declared inside this many recorded `if`s and `match`es.
    Recorded { depth: usize },
    /// A loop counter, or what was computed from counters and constants alone: known while recording.
    Counter,
}

/// The variables in scope.
#[derive(Debug, Default)]
pub struct Scope {
    blocks: Vec<Vec<(String, Local)>>,
    /// How many recorded `if`s and `match`es are around the current expression.
    pub depth: usize,
}

impl Scope {
    /// Enters a block.
    pub fn enter(&mut self) {
        self.blocks.push(Vec::new());
    }

    /// Leaves a block.
    pub fn leave(&mut self) {
        self.blocks.pop();
    }

    /// Adds a variable.
    pub fn declare(&mut self, name: &Ident, local: Local) {
        if let Some(block) = self.blocks.last_mut() {
            block.push((name.to_string(), local));
        }
    }

    /// Returns what the variable is, or `None` for a name that is no variable.
    pub fn find(&self, name: &Ident) -> Option<Local> {
        let name = name.to_string();
        let mut locals = self.blocks.iter().rev().flat_map(|block| block.iter().rev());
        locals.find(|(other, _)| *other == name).map(|(_, local)| *local)
    }

    /// Returns whether an expression is known while recording: literals, constants, counters, and what operators make of
    /// them.
    pub fn is_known(&self, expression: &Expr) -> bool {
        match expression {
            Expr::Lit(_) => true,
            Expr::Path(path) => match path.path.get_ident() {
                Some(name) if name == "self" => false,
                Some(name) => !matches!(self.find(name), Some(Local::Recorded { .. })),
                None => true,
            },
            Expr::Unary(unary) => !matches!(unary.op, syn::UnOp::Deref(_)) && self.is_known(&unary.expr),
            Expr::Binary(binary) => self.is_known(&binary.left) && self.is_known(&binary.right),
            Expr::Cast(cast) => self.is_known(&cast.expr),
            Expr::Paren(paren) => self.is_known(&paren.expr),
            Expr::Group(group) => self.is_known(&group.expr),
            Expr::Index(index) => self.is_known(&index.expr) && self.is_known(&index.index),
            Expr::Field(field) => self.is_known(&field.base),
            _ => false,
        }
    }

    /// Returns whether a known expression depends on a counter.
    pub fn has_counter(&self, expression: &Expr) -> bool {
        match expression {
            Expr::Path(path) => path.path.get_ident().is_some_and(|name| self.find(name) == Some(Local::Counter)),
            Expr::Unary(unary) => self.has_counter(&unary.expr),
            Expr::Binary(binary) => self.has_counter(&binary.left) || self.has_counter(&binary.right),
            Expr::Cast(cast) => self.has_counter(&cast.expr),
            Expr::Paren(paren) => self.has_counter(&paren.expr),
            Expr::Group(group) => self.has_counter(&group.expr),
            Expr::Index(index) => self.has_counter(&index.expr) || self.has_counter(&index.index),
            Expr::Field(field) => self.has_counter(&field.base),
            _ => false,
        }
    }
}
