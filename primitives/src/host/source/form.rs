//! The [forms](Form) of sources other than slices.

use crate::Error;
use crate::hole::Hole;
use crate::host::computed::{Form, Place, SliceForm, hole};
use crate::host::load::LoadCode;
use crate::host::recorded::Recipe;
use crate::input::SourceArg;
use crate::map::{Map, Map2, Map3, Map4};
use crate::operator::Word;
use bytemuck::Pod;
use core::marker::PhantomData;
use core::mem::offset_of;

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

/// The state of elements at the rows that another source has: the state of that source, and the length of the slice.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AtState<R> {
    pub rows: R,
    pub len: u64,
}

/// The elements of a slice at the rows that another source has; zeros beyond the slice.
pub struct AtForm<T, R>(PhantomData<(T, R)>);

impl<T: Pod, R: Form<Item: Row>> AtForm<T, R> {
    const fn rows(place: Place) -> Place {
        Place { state: place.state + offset_of!(AtState<R::State>, rows), ..place }
    }

    const fn len(place: Place) -> usize {
        place.state + offset_of!(AtState<R::State>, len)
    }
}

impl<T: Pod, R: Form<Item: Row>> Form for AtForm<T, R> {
    type Item = T;
    type State = AtState<R::State>;
    const LEAVES: usize = R::LEAVES + 1;

    #[inline(always)]
    unsafe fn get(source: *const u8, place: Place, index: usize) -> T {
        // SAFETY: the rows are read where `write` reads them; the length is in the state; the slice follows those of the rows.
        unsafe {
            let row = R::get(source, Self::rows(place), index).index();
            let len = source.add(Self::len(place)).cast::<u64>().read();
            if row < len { SourceArg::leaf::<T>(source, place.leaf + R::LEAVES).get(row as usize) } else { T::zeroed() }
        }
    }

    type Reader = (R::Reader, *const T, u64);

    #[inline(always)]
    unsafe fn reader(source: *const u8, place: Place) -> Self::Reader {
        // SAFETY: same as `get`.
        unsafe {
            let len = source.add(Self::len(place)).cast::<u64>().read();
            let slice = SourceArg::leaf::<T>(source, place.leaf + R::LEAVES).as_ptr();
            (R::reader(source, Self::rows(place)), slice, len)
        }
    }

    #[inline(always)]
    unsafe fn read((rows, slice, len): Self::Reader, index: usize) -> T {
        // SAFETY: the slice has `len` elements. The rest is guaranteed by the caller.
        unsafe {
            let row = R::read(rows, index).index();
            if row < len { slice.add(row as usize).read() } else { T::zeroed() }
        }
    }

    fn write(code: &mut LoadCode, place: Place) -> Result<Vec<Word>, Error> {
        let row = R::write(code, Self::rows(place))?;
        Ok(code.element_at(&row, place.leaf + R::LEAVES, Self::len(place), size_of::<T>(), align_of::<T>()))
    }
}

/// A number that says where an element is.
pub trait Row: Pod {
    /// Returns the number.
    fn index(self) -> u64;
}

impl Row for u32 {
    #[inline(always)]
    fn index(self) -> u64 {
        self.into()
    }
}

impl Row for u64 {
    #[inline(always)]
    fn index(self) -> u64 {
        self
    }
}

/// Returns the hole for a slice of plain elements of this size and alignment, so that kernels are loaded once for all of them.
pub(super) fn slice_hole<T: Pod>() -> Option<Hole> {
    match const { (size_of::<T>(), align_of::<T>()) } {
        (1, 1) => Some(hole::<SliceForm<u8>>(())),
        (2, 2) => Some(hole::<SliceForm<u16>>(())),
        (4, 4) => Some(hole::<SliceForm<u32>>(())),
        (8, 8) => Some(hole::<SliceForm<u64>>(())),
        (12, 4) => Some(hole::<SliceForm<[u32; 3]>>(())),
        (16, 8) => Some(hole::<SliceForm<[u64; 2]>>(())),
        (32, 8) => Some(hole::<SliceForm<[u64; 4]>>(())),
        _ => None,
    }
}
