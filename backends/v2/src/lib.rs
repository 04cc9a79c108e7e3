//! Version 2 of the login service: the shared routes, with this version's JSON.

mod views;

use std::sync::Arc;

use axum::Router;

pub use self::views::V2;

/// The routes of this version.
pub fn router(service: Arc<login::Service>) -> Router {
    login::router::<V2>(service)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use login::config::Config;

    #[test]
    fn the_example_configuration_is_valid() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conf/v2.toml");
        let config = Config::load(&file).unwrap();
        assert_eq!(config.listen().to_string(), "127.0.0.1:7002");
        assert_eq!(config.providers().iter().count(), 1);
    }
}
