//! Version 2 of the login service: the shared routes, with this version's JSON, and an endpoint of its own.

mod events;
mod views;

use std::sync::Arc;

use login::{Endpoints, EndpointsError, Routes};

pub use self::views::V2;

/// The routes of this version.
///
/// # Errors
///
/// An endpoint of its own cannot be served; a test rules this out.
pub fn router(service: Arc<login::Service>) -> Result<Routes, EndpointsError> {
    login::router::<V2>(service, endpoints())
}

/// The endpoints that only this version has. CONTRACT 8.
fn endpoints() -> Endpoints {
    Endpoints::new().get("/events", events::events)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use login::config::Config;

    use super::*;

    #[test]
    fn the_endpoints_of_this_version_can_be_served() {
        endpoints().check::<V2>().unwrap();
    }

    #[test]
    fn the_example_configuration_is_valid() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conf/v2.toml");
        let config = Config::load(&file).unwrap().config;
        assert_eq!(config.listen.to_string(), "127.0.0.1:7002");
        assert_eq!(config.providers.all.len(), 1);
    }
}
