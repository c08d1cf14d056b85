//! Running a recorded function once, and keeping what it did.

use crate::function::Function;
use crate::graph::{Graph, Id, Op};
use crate::record::{Layout, Leaf, Record, Twin};
use std::any::type_name_of_val;
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
        let value = read::<T>(&layout, &|offset| Op::Argument { argument, offset });
        self.arguments.push(layout);
        value
    }

    /// Adds the state.
    pub fn state<T: Record>(&mut self) -> T::Value {
        let layout = Layout::of::<T>();
        let value = read::<T>(&layout, &|offset| Op::State { offset });
        self.state = Some(layout);
        value
    }

    /// Ends the recording.
    ///
    /// # Panics
    /// If the values are not those of this recording: only code that was written by hand can mix them.
    pub fn finish<R: Record>(mut self, result: R::Value) -> Function {
        let mut roots = Vec::new();
        result.nodes(&mut roots);
        let (graph, roots) = with_graph(|graph| graph.compact(&roots));
        let (arguments, state) = (std::mem::take(&mut self.arguments), self.state.take());
        for (_, node) in graph.nodes() {
            let is_there = match node.op {
                Op::Argument { argument, offset } => {
                    arguments.get(argument as usize).is_some_and(|layout| layout.has(offset as usize, node.kind))
                }
                Op::State { offset } => state.as_ref().is_some_and(|layout| layout.has(offset as usize, node.kind)),
                _ => true,
            };
            assert!(is_there, "`{}` has no operand with {:?}", self.name, node.op);
            let fits = graph.has_fitting_inputs(node);
            assert!(fits, "`{}` computes {:?} with values of other types", self.name, node.op);
        }
        let result = Layout::of::<R>();
        let kinds = roots.iter().map(|root| graph.kind(*root));
        let is_result = kinds.eq(result.leaves.iter().map(|leaf| leaf.kind));
        assert!(is_result, "the result of `{}` has other scalars than `{}`", self.name, result.name);
        Function::new(self.name, arguments, state, result, graph, roots)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        CURRENT.set(self.outer.take());
    }
}

fn read<T: Record>(layout: &Layout, op: &dyn Fn(u32) -> Op) -> T::Value {
    T::Value::from_nodes(&mut leaves(layout, op).into_iter())
}

/// Adds the scalars of an operand to the graph. Compiled once, not for every type.
fn leaves(layout: &Layout, op: &dyn Fn(u32) -> Op) -> Vec<Id> {
    let add = |leaf: &Leaf| {
        let offset = u32::try_from(leaf.offset).expect("an operand of fewer than 2^32 bytes");
        with_graph(|graph| graph.add(op(offset), leaf.kind, &[]))
    };
    layout.leaves.iter().map(add).collect()
}

thread_local! {
    /// The functions whose twins run on this thread: where each was written, and its generic arguments.
    static RUNNING: RefCell<Vec<(usize, &'static str)>> = const { RefCell::new(Vec::new()) };
}

/// A twin that runs. `#[operator]` makes one at the beginning of each twin that others can call.
///
/// A twin computes both sides of every `if`. So a function that calls itself, by whatever way, would do so forever.
#[doc(hidden)]
#[derive(Debug)]
pub struct Running(());

impl Running {
    /// Enters a twin. `place` is a static of the function, and `here` a closure in it, whose type has its generic arguments.
    ///
    /// # Panics
    /// If the same twin runs already.
    pub fn new<F>(name: &str, place: &'static u8, here: F) -> Self {
        let id = (std::ptr::from_ref(place).addr(), type_name_of_val(&here));
        let is_running = RUNNING.with_borrow(|running| running.contains(&id));
        assert!(
            !is_running,
            "`{name}` calls itself, directly or through other operators: write a loop with a constant bound, as in \
             `for i in 0..CONSTANT`"
        );
        RUNNING.with_borrow_mut(|running| running.push(id));
        Self(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.with_borrow_mut(|running| running.pop());
    }
}
