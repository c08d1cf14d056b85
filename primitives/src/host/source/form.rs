//! The forms of sources: what a source does to compute an element, as a type.
//!
//! A form is known when the program is compiled. So its code for the CPU is compiled as a whole, and its type tells
//! loaded kernels apart. What is known only at run time travels in the kernel's arguments: the state and the addresses.

use crate::Error;
use crate::hole::{Body, Calls, Hole, MAX_STATE, OperatorBody};
use crate::host::load::LoadCode;
use crate::host::recorded::Recipe;
use crate::input::{MAX_LEAVES, SourceArg};
use crate::key::{FromCode, RadixKey, code_of, code_recipe, key_recipe};
use crate::map::{Map, Map2, Map3, Map4};
use crate::operator::Word;
use bytemuck::Pod;
use core::any::{TypeId, type_name};
use core::marker::PhantomData;
use core::mem::offset_of;

/// Where a part of a source is: its first slice, and the first byte of its state.
#[derive(Clone, Copy)]
pub struct Place {
    leaf: usize,
    state: usize,
}

/// What a source does to compute an element.
pub trait Form: 'static {
    /// The type of the elements.
    type Item: Pod;
    /// What is known at run time, except for the slices.
    type State: Copy + 'static;
    /// The number of slices that it reads.
    const LEAVES: usize;

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

/// The same element everywhere.
pub struct ConstantForm<T>(PhantomData<T>);

impl<T: Pod> Form for ConstantForm<T> {
    type Item = T;
    type State = T;
    const LEAVES: usize = 0;

    #[inline(always)]
    unsafe fn get(source: *const u8, place: Place, _: usize) -> T {
        // SAFETY: the state is there.
        unsafe { source.add(place.state).cast::<T>().read() }
    }

    type Reader = T;

    #[inline(always)]
    unsafe fn reader(source: *const u8, place: Place) -> T {
        // SAFETY: the state is there.
        unsafe { source.add(place.state).cast::<T>().read() }
    }

    #[inline(always)]
    unsafe fn read(reader: T, _: usize) -> T {
        reader
    }

    fn write(code: &mut LoadCode, place: Place) -> Result<Vec<Word>, Error> {
        Ok(code.constant(place.state, size_of::<T>(), align_of::<T>()))
    }
}

/// The indices.
pub struct IndexForm;

impl Form for IndexForm {
    type Item = u64;
    type State = ();
    const LEAVES: usize = 0;

    #[inline(always)]
    unsafe fn get(_: *const u8, _: Place, index: usize) -> u64 {
        index as u64
    }

    type Reader = ();

    #[inline(always)]
    unsafe fn reader(_: *const u8, _: Place) {}

    #[inline(always)]
    unsafe fn read((): (), index: usize) -> u64 {
        index as u64
    }

    fn write(code: &mut LoadCode, _: Place) -> Result<Vec<Word>, Error> {
        Ok(code.index())
    }
}

macro_rules! map_forms {
    ($($name:ident $state:ident $map:ident($($part:ident: $type:ident),+);)*) => { $(
        /// The state of a function and of the sources of its arguments.
        #[repr(C)]
        #[derive(Clone, Copy)]
        pub struct $state<$($type,)+ F> {
            $(pub $part: $type,)+
            pub function: F,
        }

        /// The results of a function.
        pub struct $name<$($type,)+ F>(PhantomData<($($type,)+ F)>);

        impl<$($type: Form,)+ F> Form for $name<$($type,)+ F>
        where
            F: $map<$($type::Item),+>,
            F::Output: Pod,
        {
            type Item = F::Output;
            type State = $state<$($type::State,)+ F>;
            const LEAVES: usize = 0 $(+ $type::LEAVES)+;

            #[inline(always)]
            unsafe fn get(source: *const u8, place: Place, index: usize) -> F::Output {
                // SAFETY: the parts are where `parts` says, as for `write`; the function is in the state.
                unsafe {
                    let [$($part),+] = Self::parts(place);
                    let function = &*source.add(place.state + offset_of!(Self::State, function)).cast::<F>();
                    function.map($($type::get(source, $part, index)),+)
                }
            }

            type Reader = ($($type::Reader,)+ F);

            #[inline(always)]
            unsafe fn reader(source: *const u8, place: Place) -> Self::Reader {
                // SAFETY: same as `get`.
                unsafe {
                    let [$($part),+] = Self::parts(place);
                    let function = *source.add(place.state + offset_of!(Self::State, function)).cast::<F>();
                    ($($type::reader(source, $part),)+ function)
                }
            }

            #[inline(always)]
            unsafe fn read(($($part,)+ function): Self::Reader, index: usize) -> F::Output {
                // SAFETY: guaranteed by the caller.
                function.map($(unsafe { $type::read($part, index) }),+)
            }

            fn write(code: &mut LoadCode, place: Place) -> Result<Vec<Word>, Error> {
                let [$($part),+] = Self::parts(place);
                let arguments = vec![$($type::write(code, $part)?),+];
                let sizes = const { &[$(size_of::<$type::Item>()),+] };
                let map = Recipe::new::<F, ($($type::Item,)+), F::Output>("map", F::recorded, sizes);
                Ok(code.call(map.function()?, arguments, place.state + offset_of!(Self::State, function)))
            }
        }

        impl<$($type: Form,)+ F> $name<$($type,)+ F>
        where
            F: $map<$($type::Item),+>,
            F::Output: Pod,
        {
            /// Returns where the parts are.
            #[inline(always)]
            fn parts(place: Place) -> [Place; [$(stringify!($part)),+].len()] {
                let mut leaf = place.leaf;
                [$({
                    let part = Place { leaf, state: place.state + offset_of!(<Self as Form>::State, $part) };
                    leaf += $type::LEAVES;
                    let _ = leaf;
                    part
                }),+]
            }
        }
    )* };
}

map_forms! {
    MapForm MapState Map(a: A);
    Map2Form Map2State Map2(a: A, b: B);
    Map3Form Map3State Map3(a: A, b: B, c: C);
    Map4Form Map4State Map4(a: A, b: B, c: C, d: D);
}

/// The codes of keys.
pub struct CodeForm<F>(PhantomData<F>);

impl<F: Form> Form for CodeForm<F>
where
    F::Item: RadixKey,
{
    type Item = <F::Item as RadixKey>::Code;
    type State = F::State;
    const LEAVES: usize = F::LEAVES;

    #[inline(always)]
    unsafe fn get(source: *const u8, place: Place, index: usize) -> Self::Item {
        // SAFETY: guaranteed by the caller.
        code_of(unsafe { F::get(source, place, index) })
    }

    type Reader = F::Reader;

    #[inline(always)]
    unsafe fn reader(source: *const u8, place: Place) -> F::Reader {
        // SAFETY: guaranteed by the caller.
        unsafe { F::reader(source, place) }
    }

    #[inline(always)]
    unsafe fn read(reader: F::Reader, index: usize) -> Self::Item {
        // SAFETY: guaranteed by the caller.
        code_of(unsafe { F::read(reader, index) })
    }

    fn write(code: &mut LoadCode, place: Place) -> Result<Vec<Word>, Error> {
        let key = F::write(code, place)?;
        // A code depends on the key only: there is no state to read.
        Ok(code.call(code_recipe::<F::Item>().function()?, vec![key], place.state))
    }
}

/// The keys of codes.
pub struct KeyForm<F, K>(PhantomData<(F, K)>);

impl<K: FromCode, F: Form<Item = K::Code>> Form for KeyForm<F, K> {
    type Item = K;
    type State = F::State;
    const LEAVES: usize = F::LEAVES;

    #[inline(always)]
    unsafe fn get(source: *const u8, place: Place, index: usize) -> K {
        // SAFETY: guaranteed by the caller.
        K::from_code(unsafe { F::get(source, place, index) })
    }

    type Reader = F::Reader;

    #[inline(always)]
    unsafe fn reader(source: *const u8, place: Place) -> F::Reader {
        // SAFETY: guaranteed by the caller.
        unsafe { F::reader(source, place) }
    }

    #[inline(always)]
    unsafe fn read(reader: F::Reader, index: usize) -> K {
        // SAFETY: guaranteed by the caller.
        K::from_code(unsafe { F::read(reader, index) })
    }

    fn write(code: &mut LoadCode, place: Place) -> Result<Vec<Word>, Error> {
        let number = F::write(code, place)?;
        // A key depends on its code only: there is no state to read.
        Ok(code.call(key_recipe::<K>().function()?, vec![number], place.state))
    }
}

/// Returns the hole for a source of this form.
pub(super) fn hole<F: Form>(state: F::State) -> Hole {
    const {
        assert!(F::LEAVES <= MAX_LEAVES, "a source reads at most four slices");
        assert!(
            size_of::<F::State>() <= MAX_STATE && align_of::<F::State>() <= 16,
            "the functions of a source have at most 64 bytes of state"
        );
    }
    Hole::new(state, filling::<F>())
}

const START: Place = Place { leaf: 0, state: 0 };

fn filling<F: Form>() -> &'static OperatorBody {
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
        }
    }
}
