//! The PROXY protocol: which header backends get.

use crate::named::named;

named! {
    /// Which PROXY protocol header the backend gets before the first byte.
    #[derive(Default)]
    SendProxy {
        /// None.
        #[default]
        Off = "off",
        /// The text form.
        V1 = "v1",
        /// The binary form, with TLS details.
        V2 = "v2",
    }
}
