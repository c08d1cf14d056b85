//! Spans around the calls of the host: for the crate `tracing`, and as ranges of NVTX.
//!
//! A call opens a span with [`span!`](crate::span), which lasts until the call returns. That is the time to submit the work; on a
//! GPU the work itself may take longer. Without the features `tracing` and `nvtx`, it compiles to nothing.

/// Opens a span for a call: `span!(stream, "name", elements)`. The name is a literal, or a `concat!` of some. It lasts as long as the value.
#[cfg(not(any(feature = "tracing", feature = "nvtx")))]
#[doc(hidden)]
#[macro_export]
macro_rules! span {
    ($stream:expr, $name:expr, $elements:expr) => {{
        // Compiled, so that an error does not wait for a feature, and never called.
        let _ = || ($stream.device(), $elements as u64);
        $crate::Span
    }};
}

/// Opens a span for a call: `span!(stream, "name", elements)`. The name is a literal, or a `concat!` of some. It lasts as long as the value.
#[cfg(any(feature = "tracing", feature = "nvtx"))]
#[doc(hidden)]
#[macro_export]
macro_rules! span {
    ($stream:expr, $name:expr, $elements:expr) => {{
        let elements = $elements as u64;
        $crate::Span {
            tracing: $crate::tracing_span!($stream, $name, elements),
            nvtx: $crate::nvtx_range!($name, elements),
        }
    }};
}

#[cfg(feature = "tracing")]
#[doc(hidden)]
#[macro_export]
macro_rules! tracing_span {
    ($stream:expr, $name:expr, $elements:expr) => {
        $crate::tracing::debug_span!(
            target: "gpu_primitives",
            $name,
            device = %$stream.device().kind(),
            elements = $elements
        )
        .entered()
    };
}

#[cfg(all(feature = "nvtx", not(feature = "tracing")))]
#[doc(hidden)]
#[macro_export]
macro_rules! tracing_span {
    ($stream:expr, $name:expr, $elements:expr) => {
        ()
    };
}

#[cfg(feature = "nvtx")]
#[doc(hidden)]
#[macro_export]
macro_rules! nvtx_range {
    ($name:expr, $elements:expr) => {
        $crate::NvtxRange::push(concat!($name, "\0"), $elements)
    };
}

#[cfg(all(feature = "tracing", not(feature = "nvtx")))]
#[doc(hidden)]
#[macro_export]
macro_rules! nvtx_range {
    ($name:expr, $elements:expr) => {
        ()
    };
}

/// A span that lasts as long as the value.
#[doc(hidden)]
#[must_use = "the span ends when it is dropped"]
#[cfg(not(any(feature = "tracing", feature = "nvtx")))]
pub struct Span;

/// A span that lasts as long as the value.
#[doc(hidden)]
#[must_use = "the span ends when it is dropped"]
#[cfg(any(feature = "tracing", feature = "nvtx"))]
pub struct Span {
    #[cfg(feature = "tracing")]
    pub tracing: tracing::span::EnteredSpan,
    #[cfg(not(feature = "tracing"))]
    pub tracing: (),
    #[cfg(feature = "nvtx")]
    pub nvtx: super::nvtx::NvtxRange,
    #[cfg(not(feature = "nvtx"))]
    pub nvtx: (),
}
