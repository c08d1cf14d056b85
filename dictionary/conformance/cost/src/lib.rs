//! Nothing: what is tested are the libraries in `examples`, and what is compiled with them.
