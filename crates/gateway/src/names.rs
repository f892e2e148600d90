//! Names of headers that every request is asked for. Made once: a name from a text is parsed each
//! time, and copied where it is put in.

use http::HeaderName;

pub(crate) static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
pub(crate) static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
