//! Elements that are computed: the forms of sources, and functions of one element.
//!
//! A form is known when the program is compiled. So its code for the CPU is compiled as a whole, and its type tells
//! loaded kernels apart. What is known only at run time travels in the kernel's arguments: the state and the addresses.
//!
//! # Functions of one element
//! Below the door, a predicate, a bucket function and the code of a key are the same: a [`Unary`], a function of one element.
//! It is recorded once. It fills the holes of the kernels that call it for an element that they have ([`body`]), and its
//! results for the elements of a column are a source (`source::results_of`): any kernel that reads sources reads them, and
//! `transform` writes them to memory. So there is no kernel that only evaluates a function.

use crate::Error;
use crate::hole::{Body, Calls, Hole, MAX_STATE, OperatorBody};
use crate::host::load::LoadCode;
use crate::host::recorded::Recipe;
use crate::input::{MAX_LEAVES, SourceArg};
use crate::operator::Word;
use bytemuck::Pod;
use core::any::{TypeId, type_name};
use core::marker::PhantomData;
use core::mem::offset_of;

/// Where a part of a source is: its first slice, and the first byte of its state.
#[derive(Clone, Copy)]
pub struct Place {
    pub(crate) leaf: usize,
    pub(crate) state: usize,
}

/// What a source does to compute an element.
pub trait Form: 'static {
    /// The type of the elements.
    type Item: Pod;
    /// What is known at run time, except for the slices.
    type State: Copy + 'static;
    /// The number of slices that it reads.
    const LEAVES: usize;
    /// It is a slice.
    const IS_SLICE: bool = false;

    /// Computes element `index` on the CPU, in a kernel: its accesses are checked.
    ///
    /// # Safety
    /// `source` is the address of a [`SourceArg`] with this form at this place.
    unsafe fn get(source: *const u8, place: Place, index: usize) -> Self::Item;

    /// What the CPU needs to compute elements in a loop.
    type Reader: Copy;

    /// Opens the source for a loop.
    ///
    /// # Safety
    /// `source` is the address of a [`SourceArg`] with this form at this place.
    unsafe fn reader(source: *const u8, place: Place) -> Self::Reader;

    /// Computes element `index`.
    ///
    /// # Safety
    /// The source has this element, and nothing writes what it reads.
    unsafe fn read(reader: Self::Reader, index: usize) -> Self::Item;

    /// Writes the code that computes the element, and returns the registers that hold it.
    ///
    /// # Errors
    /// [`Error::Unrecordable`] if a function cannot be recorded.
    fn write(code: &mut LoadCode, place: Place) -> Result<Vec<Word>, Error>;
}

/// The elements of a slice.
pub struct SliceForm<T>(PhantomData<T>);

impl<T: Pod> Form for SliceForm<T> {
    type Item = T;
    type State = ();
    const LEAVES: usize = 1;
    const IS_SLICE: bool = true;

    #[inline(always)]
    unsafe fn get(source: *const u8, place: Place, index: usize) -> T {
        // SAFETY: guaranteed by the caller.
        unsafe { SourceArg::leaf::<T>(source, place.leaf).get(index) }
    }

    type Reader = *const T;

    #[inline(always)]
    unsafe fn reader(source: *const u8, place: Place) -> *const T {
        // SAFETY: guaranteed by the caller.
        unsafe { SourceArg::leaf::<T>(source, place.leaf).as_ptr() }
    }

    #[inline(always)]
    unsafe fn read(reader: *const T, index: usize) -> T {
        // SAFETY: guaranteed by the caller.
        unsafe { reader.add(index).read() }
    }

    fn write(code: &mut LoadCode, place: Place) -> Result<Vec<Word>, Error> {
        Ok(code.element(place.leaf, size_of::<T>(), align_of::<T>()))
    }
}

/// A function of one element: what an operator of the library's user is below the door.
pub trait Unary: Copy + 'static {
    /// The type of the elements.
    type Item: Pod;
    /// The type of the results.
    type Output: Pod;
    /// How it is recorded.
    const RECIPE: Recipe;

    /// Calls the function.
    fn call(&self, item: Self::Item) -> Self::Output;
}

/// Describes a function, for the holes that call it for one element.
pub(crate) const fn body<U: Unary>() -> &'static OperatorBody {
    /// # Safety
    /// The state is a `U`, the argument begins with an item, and the results have room for an output.
    unsafe fn native<U: Unary>(state: *const u8, calls: &Calls) {
        // SAFETY: guaranteed by the caller; both types are plain data.
        unsafe {
            let function = *state.cast::<U>();
            calls.unary(|item: U::Item| function.call(item));
        }
    }
    const {
        assert!(ResultForm::<SliceForm<U::Item>, U>::FUNCTION == 0, "the state is the function's");
        let results = Some(filling::<ResultForm<SliceForm<U::Item>, U>>());
        &OperatorBody { results, ..OperatorBody::of(U::RECIPE, native::<U>) }
    }
}

/// The state of a function, after that of the elements.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ResultState<A, U> {
    pub(crate) elements: A,
    pub(crate) function: U,
}

/// The results of a [`Unary`].
pub struct ResultForm<F, U>(PhantomData<(F, U)>);

impl<F: Form, U: Unary<Item = F::Item>> ResultForm<F, U> {
    const FUNCTION: usize = offset_of!(ResultState<F::State, U>, function);

    /// Returns where the elements are.
    #[inline(always)]
    const fn elements(place: Place) -> Place {
        Place { state: place.state + offset_of!(ResultState<F::State, U>, elements), ..place }
    }
}

impl<F: Form, U: Unary<Item = F::Item>> Form for ResultForm<F, U> {
    type Item = U::Output;
    type State = ResultState<F::State, U>;
    const LEAVES: usize = F::LEAVES;

    #[inline(always)]
    unsafe fn get(source: *const u8, place: Place, index: usize) -> U::Output {
        // SAFETY: guaranteed by the caller; the function is in the state.
        unsafe {
            let function = *source.add(place.state + Self::FUNCTION).cast::<U>();
            function.call(F::get(source, Self::elements(place), index))
        }
    }

    type Reader = (F::Reader, U);

    #[inline(always)]
    unsafe fn reader(source: *const u8, place: Place) -> Self::Reader {
        // SAFETY: same as `get`.
        unsafe {
            let function = *source.add(place.state + Self::FUNCTION).cast::<U>();
            (F::reader(source, Self::elements(place)), function)
        }
    }

    #[inline(always)]
    unsafe fn read((elements, function): Self::Reader, index: usize) -> U::Output {
        // SAFETY: guaranteed by the caller.
        function.call(unsafe { F::read(elements, index) })
    }

    fn write(code: &mut LoadCode, place: Place) -> Result<Vec<Word>, Error> {
        let element = F::write(code, Self::elements(place))?;
        Ok(code.call(U::RECIPE.function()?, vec![element], place.state + Self::FUNCTION))
    }
}

/// Returns the hole for a source of this form.
pub(crate) fn hole<F: Form>(state: F::State) -> Hole {
    const {
        assert!(F::LEAVES <= MAX_LEAVES, "a source reads at most four slices");
        assert!(
            size_of::<F::State>() <= MAX_STATE && align_of::<F::State>() <= 16,
            "the functions of a source have at most 64 bytes of state"
        );
    }
    Hole::new(state, filling::<F>())
}

/// Where a whole source is.
const START: Place = Place { leaf: 0, state: 0 };

/// Describes what fills the hole for a source of this form.
const fn filling<F: Form>() -> &'static OperatorBody {
    /// # Safety
    /// `source` is the address of a `SourceArg` of this form, the argument is the index of the first element, and the results
    /// have room for an element each.
    unsafe fn native<F: Form>(source: *const u8, calls: &Calls) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let first = calls.arguments[0].cast::<u64>().read() as usize;
            let results = calls.results;
            if calls.len == 1 {
                let element = F::get(source, START, first);
                results.write_bytes(0, calls.result_step);
                results.cast::<F::Item>().write_unaligned(element);
                return;
            }
            let reader = F::reader(source, START);
            if calls.result_step == size_of::<F::Item>() {
                for i in 0..calls.len {
                    results.cast::<F::Item>().add(i).write_unaligned(F::read(reader, first + i));
                }
            } else {
                for i in 0..calls.len {
                    let result = results.add(i * calls.result_step);
                    result.cast::<F::Item>().write_unaligned(F::read(reader, first + i));
                    // Beyond the type's own size, a held element is 0.
                    let size = size_of::<F::Item>();
                    result.add(size).write_bytes(0, calls.result_step - size);
                }
            }
        }
    }
    fn write<F: Form>(code: &mut LoadCode) -> Result<Vec<Word>, Error> {
        F::write(code, START)
    }
    const {
        &OperatorBody {
            operator: TypeId::of::<F>,
            type_name: type_name::<F>,
            body: Body::Load(write::<F>),
            function: "load",
            native: native::<F>,
            relation: None,
            folds: None,
            sort: None,
            is_slice: F::IS_SLICE,
            results: None,
        }
    }
}
