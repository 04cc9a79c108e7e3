use std::collections::BTreeSet;

use serde_json::json;
use signpost_protocol::{
    param::Params,
    problem::ProblemCode,
    sign::{SignProfile, canonical_for_display, signed},
};

use crate::{Endpoints, Version, description::Operation, testing};

struct V9;

impl Version for V9 {
    const NAME: &'static str = "v9";
    type Settings = ();
    type State = ();
}

#[test]
fn the_document_has_every_problem_of_the_contract_and_no_other() {
    let document = testing::description::<V9>().to_string();
    let lists = document.split(r#""code":{"enum":["#).skip(1);
    let codes = lists.flat_map(|list| list[..list.find(']').unwrap()].split(','));
    let codes: BTreeSet<_> = codes.map(|code| code.trim_matches('"')).collect();
    let all = ProblemCode::ALL.iter().map(|code| code.as_str());
    assert_eq!(codes, all.collect());
    let placeholder = document.split('<').nth(1);
    assert!(
        placeholder.is_none_or(|it| it.starts_with("APP_KEY>")),
        "{placeholder:?}"
    );
}

#[test]
fn the_recipe_is_that_of_the_default_profile_and_its_example_computes() {
    let document = testing::description::<V9>();
    let (recipe, profile) = (&document["x-signpost-sign"], SignProfile::default());
    assert_eq!(recipe["profile"], json!(profile));
    let example = |name: &str| recipe["example"][name].as_str().unwrap();
    let (pairs, key) = (example("pairs"), example("key").parse().unwrap());
    let params = Params::parse(pairs.as_bytes(), b"", 9).unwrap();
    let canonical = canonical_for_display(&profile, "POST", "/", &params);
    assert_eq!(canonical, example("canonical").as_bytes());
    let with_sign = signed(&profile, &key, ("POST", "/"), pairs).unwrap();
    assert_eq!(with_sign, example("signed"));
}

#[test]
#[should_panic(expected = "described, and served")]
fn an_endpoint_without_a_description_fails_the_test_of_its_version() {
    struct Silent;
    impl Version for Silent {
        const NAME: &'static str = "v9";
        type Settings = ();
        type State = ();

        fn endpoints() -> Endpoints<Self> {
            Endpoints::new().get("/mine", async || "mine")
        }
    }
    let _ = testing::description::<Silent>();
}

#[test]
#[should_panic(expected = "endpoint GET /mine: another response has a type Account")]
fn two_types_of_a_name_are_an_error() {
    #[derive(utoipa::ToSchema)]
    #[expect(dead_code, reason = "only its schema is read")]
    struct Account {
        number: u64,
    }
    struct Two;
    impl Version for Two {
        const NAME: &'static str = "v9";
        type Settings = ();
        type State = ();

        fn endpoints() -> Endpoints<Self> {
            let operation = Operation::new("Another account.").returns::<Account>();
            let own = Endpoints::new().get("/mine", async || "mine");
            own.described(operation)
        }
    }
    let _ = testing::description::<Two>();
}
