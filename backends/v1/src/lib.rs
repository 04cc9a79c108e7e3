//! Version 1 of the login service: the shared routes, with this version's JSON.

mod views;

use std::sync::Arc;

use login::{Endpoints, EndpointsError, Routes};

pub use self::views::V1;

/// The routes of this version.
///
/// # Errors
///
/// An endpoint of its own cannot be served; this version has none.
pub fn router(service: Arc<login::Service>) -> Result<Routes, EndpointsError> {
    login::router::<V1>(service, Endpoints::new())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use login::config::Config;

    #[test]
    fn the_example_configuration_is_valid() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conf/v1.toml");
        let config = Config::load(&file).unwrap().config;
        assert_eq!(config.listen.to_string(), "127.0.0.1:7001");
        assert_eq!(config.providers.all.len(), 1);
    }
}
