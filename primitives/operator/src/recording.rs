//! Running a recorded function once, and keeping what it did.

use crate::function::Function;
use crate::graph::{Graph, Op};
use crate::record::{Layout, Record, Twin};
use std::cell::RefCell;

thread_local! {
    /// The graph of the function that this thread records.
    static CURRENT: RefCell<Option<Graph>> = const { RefCell::new(None) };
}

/// Gives the graph of the function being recorded.
///
/// # Panics
/// If no function is being recorded.
pub(crate) fn with_graph<R>(f: impl FnOnce(&mut Graph) -> R) -> R {
    CURRENT.with_borrow_mut(|graph| f(graph.as_mut().expect("a recorded value outlived its recording")))
}

/// A function being recorded, on one thread. `#[operator]` writes the code that uses it.
#[doc(hidden)]
#[derive(Debug)]
pub struct Recording {
    name: &'static str,
    arguments: Vec<Layout>,
    state: Option<Layout>,
    /// The recording that this one interrupts.
    outer: Option<Graph>,
}

impl Recording {
    /// Begins to record a function.
    pub fn new(name: &'static str) -> Self {
        let outer = CURRENT.replace(Some(Graph::default()));
        Self { name, arguments: Vec::new(), state: None, outer }
    }

    /// Adds an argument.
    pub fn argument<T: Record>(&mut self) -> T::Value {
        let argument = self.arguments.len() as u32;
        let layout = Layout::of::<T>();
        let value = read::<T>(&layout, |offset| Op::Argument { argument, offset });
        self.arguments.push(layout);
        value
    }

    /// Adds the state.
    pub fn state<T: Record>(&mut self) -> T::Value {
        let layout = Layout::of::<T>();
        let value = read::<T>(&layout, |offset| Op::State { offset });
        self.state = Some(layout);
        value
    }

    /// Ends the recording.
    pub fn finish<R: Record>(mut self, result: R::Value) -> Function {
        let mut roots = Vec::new();
        result.nodes(&mut roots);
        let (graph, roots) = with_graph(|graph| graph.compact(&roots));
        let arguments = std::mem::take(&mut self.arguments);
        Function::new(self.name, arguments, self.state.take(), Layout::of::<R>(), graph, roots)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        CURRENT.set(self.outer.take());
    }
}

fn read<T: Record>(layout: &Layout, op: impl Fn(u32) -> Op) -> T::Value {
    let nodes = layout.leaves.iter().map(|leaf| {
        let offset = u32::try_from(leaf.offset).expect("an operand of fewer than 2^32 bytes");
        with_graph(|graph| graph.add(op(offset), leaf.kind, &[]))
    });
    T::Value::from_nodes(&mut nodes.into_iter())
}
