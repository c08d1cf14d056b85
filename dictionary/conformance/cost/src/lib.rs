//! The library part has nothing: the programs are in `src/bin`.
