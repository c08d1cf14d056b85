//! Contexts, streams and buffers of cust.
