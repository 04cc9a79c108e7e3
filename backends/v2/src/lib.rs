//! Version 2 of the login service: the shared endpoints, and one of its own.

mod events;

use login::{Endpoints, Version};

/// Version 2. CONTRACT 8.
#[derive(Debug)]
pub struct V2;

impl Version for V2 {
    const NAME: &'static str = "v2";
    type Settings = ();
    type State = ();

    fn endpoints() -> Endpoints<Self> {
        Endpoints::new()
            .get("/events", events::events)
            .described(events::operation())
    }
}

#[cfg(test)]
mod tests {
    use login::testing;

    use super::*;

    #[test]
    fn an_account_has_the_fields_of_this_version_and_no_others() {
        let mut account = testing::account("ada");
        assert_eq!(
            serde_json::to_string(&V2::account(&account)).unwrap(),
            r#"{"username":"ada","provider":"bitbucket","created_at":5}"#
        );
        account.display_name = Some("Ada".to_owned());
        assert_eq!(
            serde_json::to_string(&V2::account(&account)).unwrap(),
            r#"{"username":"ada","provider":"bitbucket","display_name":"Ada","created_at":5}"#
        );
    }

    #[test]
    fn every_endpoint_is_described() {
        let document = testing::description::<V2>();
        let events = &document["paths"]["/events"]["get"];
        assert_eq!(events["parameters"][0]["schema"]["maximum"], 100);
    }

    #[test]
    fn the_example_configuration_is_valid() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf/v2.toml");
        let config = testing::example::<V2>(file);
        assert_eq!(config.providers.all.len(), 1);
    }
}
