//! The functions of operators as GPUs get them: recorded once per process.
//!
//! A call may put one operator into several kernels, and relies on all of them computing the same function: one kernel counts
//! the items of each bucket, and the next one writes them to places that follow from the counts. So nobody but this module
//! asks an operator what it records, and it asks once. Its answer is checked, and all kernels of all devices get it.

use crate::Error;
use crate::operator::{Function, Operands, Recorded, State, Width, Word};
use std::any::{Any, TypeId, type_name};
use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{PoisonError, RwLock};

/// How to record a function of an operator, and what the kernels rely on.
#[derive(Clone, Copy)]
pub struct Recipe {
    /// Tells operators apart.
    pub operator: fn() -> TypeId,
    /// The operator's type, for messages.
    pub type_name: fn() -> &'static str,
    /// The name of the function.
    pub function: &'static str,
    /// Records the operator.
    pub record: fn() -> Recorded,
    /// The bytes of each argument.
    pub arguments: &'static [usize],
    /// The bytes of the result.
    pub result: usize,
    /// The bytes of the state.
    pub state: usize,
    /// The number of bits of the result, which is a number. Higher ones are cut off.
    pub bits: Option<u32>,
}

/// Tells the functions of operators apart.
type Key = (TypeId, &'static str);

/// The functions that were recorded, and why others could not be.
static RECORDED: RwLock<Option<HashMap<Key, &'static Result<Function, String>>>> = RwLock::new(None);

thread_local! {
    /// The functions that this thread records at the moment.
    static AT_WORK: RefCell<Vec<Key>> = const { RefCell::new(Vec::new()) };
}

impl Recipe {
    /// Describes a function of the operator `O` that takes these arguments and returns an `R`. The same type may be another
    /// operator for other arguments, which are those of the tuple `A`.
    pub const fn new<O: 'static, A: 'static, R>(
        function: &'static str,
        record: fn() -> Recorded,
        arguments: &'static [usize],
    ) -> Self {
        Self {
            operator: TypeId::of::<(O, A)>,
            type_name: type_name::<O>,
            function,
            record,
            arguments,
            result: size_of::<R>(),
            state: size_of::<O>(),
            bits: None,
        }
    }

    /// Returns the function. Records it if nobody has. This runs code of the operator's author, so the caller holds no lock.
    ///
    /// # Errors
    /// [`Error::Unrecordable`].
    pub fn function(&self) -> Result<&'static Function, Error> {
        let key = ((self.operator)(), self.function);
        let known = || RECORDED.read().unwrap_or_else(PoisonError::into_inner).as_ref()?.get(&key).copied();
        let kept = match known() {
            Some(kept) => kept,
            None => {
                let _at_work =
                    AtWork::begin(key).ok_or_else(|| self.refused("its `recorded` uses the operator itself"))?;
                let recorded = self.record();
                // If another thread was faster, its answer is the one that kernels have.
                let mut all = RECORDED.write().unwrap_or_else(PoisonError::into_inner);
                *all.get_or_insert_default().entry(key).or_insert_with(|| Box::leak(Box::new(recorded)))
            }
        };
        kept.as_ref().map_err(|reason| self.refused(reason))
    }

    fn refused(&self, reason: &str) -> Error {
        Error::Unrecordable { operator: (self.type_name)(), function: self.function, reason: reason.to_owned() }
    }

    fn record(&self) -> Result<Function, String> {
        // An operator that cannot be recorded panics: one that calls itself, an index out of range, and whatever a `recorded`
        // or a `Record` that was written by hand does.
        catch_unwind(AssertUnwindSafe(|| {
            let recorded = (self.record)();
            let function = recorded.function(self.function);
            let function = function.ok_or("it records no such function: put `#[operator]` on the `impl`")?;
            self.check(function)?;
            let function = match self.bits {
                Some(bits) => function.masked(&masks(self.result, bits)),
                None => function.clone(),
            };
            // Contradictions show here, and not when a kernel is loaded.
            drop(function.ptx(&self.operands()));
            Ok(function)
        }))
        .unwrap_or_else(|panic| Err(message(panic)))
    }

    /// Checks what kernels rely on: the body reads and writes the registers of its operands, and no state but its own.
    fn check(&self, function: &Function) -> Result<(), String> {
        let sizes = function.arguments().iter().map(|layout| layout.size);
        let state = function.state().map_or(self.state, |layout| layout.size);
        if sizes.eq(self.arguments.iter().copied()) && function.result().size == self.result && state == self.state {
            return Ok(());
        }
        Err("what it records is a function of other types: put `#[operator]` on the `impl`".to_owned())
    }

    fn operands(&self) -> Operands {
        let words = |name: &str, size: usize| Word::list(size, Width::B32, |word| format!("%{name}_{word}"));
        let arguments = self.arguments.iter().enumerate();
        Operands {
            arguments: arguments.map(|(number, size)| words(&format!("argument{number}"), *size)).collect(),
            result: words("result", self.result),
            state: Some(State { parameter: "state".to_owned(), offset: 0 }),
        }
    }
}

/// Returns the bits that are kept of each scalar of a code: a number of 256 bits has its upper half first.
fn masks(bytes: usize, bits: u32) -> Vec<u128> {
    let lowest = |bits: u32| if bits < 128 { (1 << bits) - 1 } else { u128::MAX };
    match bytes {
        32 => vec![lowest(bits.saturating_sub(128)), lowest(bits)],
        _ => vec![lowest(bits)],
    }
}

/// Returns the message of a panic.
fn message(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    let text = text.map_or_else(|| "recording it panicked".to_owned(), |text| format!("recording it panicked: {text}"));
    // Dropping what somebody else threw might panic again.
    std::mem::forget(panic);
    text
}

/// A function that this thread records.
struct AtWork;

impl AtWork {
    /// Returns `None` if this thread records it already.
    fn begin(key: Key) -> Option<Self> {
        AT_WORK.with_borrow_mut(|keys| {
            let is_new = !keys.contains(&key);
            is_new.then(|| {
                keys.push(key);
                Self
            })
        })
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        AT_WORK.with_borrow_mut(|keys| keys.pop());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Compare, Less};
    use crate::host::computed::Unary as _;
    use crate::key::CodeOf;
    use crate::multisplit::Bucket;
    use crate::operator::{Id, Kind, Leaf, Record, Recording, Twin, Value, operator};
    use crate::sort::{RadixKey, code_of};
    use bytemuck::{Pod, Zeroable};
    use std::sync::atomic::{AtomicU32, Ordering};

    fn order<C: Compare<u32>>() -> Recipe {
        Recipe::new::<C, u32, bool>("less", C::recorded, &[4, 4])
    }

    /// Returns why an operator cannot be recorded.
    #[track_caller]
    fn refused(recipe: Recipe) -> String {
        let errors = [(); 2].map(|()| recipe.function().expect_err("it is refused"));
        assert_eq!(errors[0].to_string(), errors[1].to_string());
        let Error::Unrecordable { operator, reason, .. } = &errors[0] else { panic!("{}", errors[0]) };
        assert!(operator.contains("recorded::tests"), "{operator}");
        reason.clone()
    }

    #[repr(C)]
    #[derive(Clone, Copy, Pod, Zeroable)]
    struct Fickle;

    static ASKED: AtomicU32 = AtomicU32::new(0);

    /// Records another function each time.
    impl Bucket<u32> for Fickle {
        fn bucket(&self, key: u32) -> u32 {
            key
        }

        fn recorded() -> Recorded {
            let mut recording = Recording::new("bucket");
            let _ = recording.argument::<u32>();
            let constant = ASKED.fetch_add(1, Ordering::Relaxed).lift();
            Recorded::new([recording.finish::<u32>(constant)])
        }
    }

    #[test]
    fn an_operator_is_recorded_once() {
        let recipe = Recipe::new::<Fickle, u32, u32>("bucket", Fickle::recorded, &[4]);
        let first = recipe.function().unwrap();
        let others = std::thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(|| std::ptr::from_ref(recipe.function().unwrap()).addr()));
            threads.map(|thread| thread.join().unwrap())
        });
        assert_eq!(others, [std::ptr::from_ref(first).addr(); 4]);
        assert_eq!(first.interpret(&[&[7; 4]], &[]), [0; 4], "the first answer");
    }

    #[repr(C)]
    #[derive(Clone, Copy, Pod, Zeroable)]
    struct Nested;

    impl Compare<u32> for Nested {
        fn less(&self, a: u32, b: u32) -> bool {
            a < b
        }

        fn recorded() -> Recorded {
            let error = order::<Self>().function().unwrap_err();
            assert!(error.to_string().contains("uses the operator itself"), "{error}");
            order::<Less>().function().unwrap();
            <Less as Compare<u32>>::recorded()
        }
    }

    #[test]
    fn an_operator_that_needs_itself_to_be_recorded() {
        order::<Nested>().function().unwrap();
    }

    #[operator]
    fn ping(x: u32) -> bool {
        if x == 0 { true } else { pong(x - 1) }
    }

    #[operator]
    fn pong(x: u32) -> bool {
        if x == 0 { false } else { ping(x - 1) }
    }

    #[repr(C)]
    #[derive(Clone, Copy, Pod, Zeroable)]
    struct Endless;

    #[operator]
    impl Compare<u32> for Endless {
        fn less(&self, a: u32, b: u32) -> bool {
            ping(a) && !ping(b)
        }
    }

    #[repr(C)]
    #[derive(Clone, Copy, Pod, Zeroable)]
    struct Beyond;

    #[operator]
    impl Compare<[u32; 2]> for Beyond {
        fn less(&self, a: [u32; 2], b: [u32; 2]) -> bool {
            let mut is_less = false;
            for i in 0..3 {
                is_less = is_less || a[i] < b[i];
            }
            is_less
        }
    }

    #[test]
    fn operators_that_cannot_be_recorded() {
        let reason = refused(order::<Endless>());
        assert!(reason.contains("`ping` calls itself") && reason.contains("for i in 0..CONSTANT"), "{reason}");
        let reason = refused(Recipe::new::<Beyond, [u32; 2], bool>("less", Beyond::recorded, &[8, 8]));
        assert!(reason.contains("the len is 2 but the index is 2"), "{reason}");
    }

    /// Claims four bytes of which none is its own.
    #[repr(C)]
    #[derive(Clone, Copy, Pod, Zeroable)]
    struct Outside(u32);

    impl Record for Outside {
        type Value = Value<u64>;

        fn leaves(offset: usize, leaves: &mut Vec<Leaf>) {
            leaves.push(Leaf { offset: offset + 4096, kind: Kind::U64 });
        }

        fn lift(self) -> Value<u64> {
            0u64.lift()
        }
    }

    /// Takes any value for a `u128`.
    #[derive(Clone, Copy)]
    struct Confused(Value<u128>);

    impl Twin for Confused {
        fn nodes(&self, nodes: &mut Vec<Id>) {
            self.0.nodes(nodes);
        }

        fn from_nodes(nodes: &mut dyn Iterator<Item = Id>) -> Self {
            Self(Value::from_nodes(nodes))
        }
    }

    #[repr(C)]
    #[derive(Clone, Copy, Pod, Zeroable)]
    struct Mistaken(u32);

    impl Record for Mistaken {
        type Value = Confused;

        fn leaves(offset: usize, leaves: &mut Vec<Leaf>) {
            leaves.push(Leaf { offset, kind: Kind::U32 });
        }

        fn lift(self) -> Confused {
            Confused(1u128.lift())
        }
    }

    /// Each answer of a `recorded` or a `Record` that was written by hand is an error, and no body reads what is not its own.
    #[test]
    fn recordings_that_lie() {
        macro_rules! liar {
            ($name:ident($size:ty): $recorded:expr) => {{
                #[repr(C)]
                #[derive(Clone, Copy, Pod, Zeroable)]
                #[allow(dead_code)]
                struct $name($size);
                impl Compare<u32> for $name {
                    fn less(&self, a: u32, b: u32) -> bool {
                        a < b
                    }
                    fn recorded() -> Recorded {
                        $recorded
                    }
                }
                refused(order::<$name>())
            }};
        }
        /// Records a relation of two `u32` that does not depend on them.
        fn relation(fill: impl FnOnce(&mut Recording) -> Value<bool>) -> Recorded {
            let mut recording = Recording::new("less");
            let _ = (recording.argument::<u32>(), recording.argument::<u32>());
            let result = fill(&mut recording);
            Recorded::new([recording.finish::<bool>(result)])
        }
        assert!(liar!(Panics(u32): panic!("on purpose")).contains("on purpose"));
        assert!(liar!(Nothing(u32): Recorded::new([])).contains("no such function"));
        assert!(liar!(Throws(u32): std::panic::resume_unwind(Box::new(5))).contains("panicked"));
        assert!(liar!(OtherArguments(u32): <Less as Compare<u64>>::recorded()).contains("of other types"));
        let large = liar!(LargeState(u32): relation(|recording| recording.state::<[u64; 8]>()[7].is_power_of_two()));
        assert!(large.contains("of other types"), "{large}");
        // The second state is the right one, but the first one is read.
        let twice = liar!(TwoStates(u32): relation(|recording| {
            let first = recording.state::<[u64; 8]>()[7];
            let _ = recording.state::<u32>();
            first.is_power_of_two()
        }));
        assert!(twice.contains("no operand"), "{twice}");
        let outside = liar!(OutsideState(u32): relation(|recording| recording.state::<Outside>().is_power_of_two()));
        assert!(outside.contains("has no U64 at byte 4096"), "{outside}");
        // An argument that belongs to another recording.
        let borrowed = liar!(Borrowed(u32): {
            let mut outer = Recording::new("less");
            relation(|_| outer.argument::<[u64; 4]>()[3].is_power_of_two())
        });
        assert!(borrowed.contains("no operand"), "{borrowed}");
        let confused = liar!(ConfusedState(u32): relation(|recording| {
            let state = recording.state::<Mistaken>().0;
            state.wrapping_add(1u128.lift()).is_power_of_two()
        }));
        assert!(confused.contains("with values of other types"), "{confused}");
    }

    #[repr(C)]
    #[derive(Clone, Copy, Pod, Zeroable, Record)]
    struct Short(u32);

    /// The codes have more bits than it says.
    #[operator]
    impl RadixKey for Short {
        type Code = u32;
        const BITS: u32 = 5;
        fn code(key: Self) -> u32 {
            key.0
        }
    }

    #[test]
    fn codes_have_no_more_bits_than_they_say() {
        let function = CodeOf::<Short>::RECIPE.function().unwrap();
        for key in [0, 31, 32, 77, u32::MAX] {
            assert_eq!(code_of(Short(key)), key % 32);
            assert_eq!(function.interpret(&[&key.to_ne_bytes()], &[]), (key % 32).to_ne_bytes());
        }
        assert_eq!(masks(32, 200), [(1 << 72) - 1, u128::MAX]);
        assert_eq!((masks(16, 128), masks(8, 33)), (vec![u128::MAX], vec![(1 << 33) - 1]));
    }
}
