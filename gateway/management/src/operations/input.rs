//! What operations are told, read once: by its JSON, its query, its options, or its form.

use std::{fmt, str::FromStr};

use axum::extract::Query;
use clap::Args;
use http::Uri;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, DeserializeOwned, IntoDeserializer, value::StrDeserializer},
};
use serde_path_to_error::{Path, Segment};
use signpost_protocol::{app::AppIdent, parse_digits};
use utoipa::{
    ToSchema,
    openapi::{RefOr, Schema},
};

use super::{
    Input, Output,
    problem::{ApiError, Code},
};
pub(crate) use crate::administration::rules::{given, not_allowed};
use crate::administration::{
    apps::MAX_PAGE,
    rules::{ALLOWED, Reason},
};

/// The error of an ident that is none.
const UNKNOWN_APP: &str = "no application";

/// Of the option of commands.
pub(super) const REVISION_HELP: &str =
    "Change nothing if the application has another revision: app show has it";
/// Items of a page, if no number is given.
pub(crate) const DEFAULT_LIMIT: u16 = 100;
/// Limit of a page's items in a call of the API.
pub(crate) const MAX_LIMIT: u16 = 1000;

/// A value that is read from its text. The error says what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<T>(pub T);

impl<T: FromStr> FromStr for Text<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        text.parse().map(Self)
    }
}

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(not_allowed)
    }
}

/// A change of a setting that may be absent. An `Option` of it says, too, that the setting stays. In JSON an absent member,
/// null, or the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<T> {
    /// It is removed.
    None,
    /// It gets this value.
    This(T),
}

impl<T> Change<T> {
    /// The new value.
    pub(crate) const fn this(&self) -> Option<&T> {
        match self {
            Self::None => None,
            Self::This(value) => Some(value),
        }
    }
}

impl<T: FromStr> FromStr for Change<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        text.parse().map(Self::This)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Change<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::None, Self::This))
    }
}

/// Reads a list that may be absent; null is an empty one.
pub(crate) fn given_list<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    Ok(Some(Option::deserialize(deserializer)?.unwrap_or_default()))
}

/// Why something is done.
#[derive(Debug, Args, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Why {
    /// Why, for the audit: up to 200 characters.
    #[arg(long, value_name = "TEXT")]
    #[schema(value_type = Option<String>)]
    pub reason: Option<Text<Reason>>,
}

impl Input for Why {}

/// What each change of something that has a revision says.
#[derive(Debug, Args, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// The revision that the change was decided upon; the header `If-Match` can name it, too.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i64).range(1..), help = REVISION_HELP)]
    #[schema(minimum = 1)]
    pub revision: Option<i64>,
    /// Why, for the audit: up to 200 characters.
    #[arg(long, value_name = "TEXT")]
    #[schema(value_type = Option<String>)]
    pub reason: Option<Text<Reason>>,
}

impl Input for Decision {
    const REVISION: Option<fn(&mut Self) -> &mut Option<i64>> = Some(|input| &mut input.revision);
}

/// No input.
#[derive(Deserialize, ToSchema)]
pub struct Nothing {}

impl Input for Nothing {}

/// The number of items of a page.
#[derive(Clone, Copy, Debug)]
pub struct Limit(u16);

impl Limit {
    /// The number of a page of the console.
    pub const fn new(number: u16) -> Self {
        Self(number)
    }
}

impl Default for Limit {
    fn default() -> Self {
        Self(DEFAULT_LIMIT)
    }
}

impl From<Limit> for usize {
    fn from(limit: Limit) -> Self {
        limit.0.into()
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Of a command, whose pages may be longer.
impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number: i64 = text.parse().map_err(|error| format!("{error}"))?;
        let limit = u16::try_from(number).ok();
        let limit = limit.filter(|limit| (1..=MAX_PAGE).contains(&usize::from(*limit)));
        limit
            .map(Self)
            .ok_or_else(|| format!("{number} is not in 1..={MAX_PAGE}"))
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u16::deserialize(deserializer)? {
            number @ 1..=MAX_LIMIT => Ok(Self(number)),
            _ => Err(not_allowed(format_args!("1 to {MAX_LIMIT}"))),
        }
    }
}

/// Which page of a list whose items have numbers.
#[derive(Args, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PageInput {
    /// Maximum number of items.
    #[arg(long, value_name = "NUMBER", default_value_t)]
    #[serde(default)]
    #[schema(value_type = u16, minimum = 1, maximum = 1000)]
    pub limit: Limit,
    /// The `next` of the page before.
    #[arg(
        long,
        value_name = "ID",
        help = "The next page: the number of the last item of the page before"
    )]
    #[schema(value_type = Option<String>)]
    pub after: Option<Text<After>>,
}

impl Input for PageInput {}

/// The number after which a page begins.
#[derive(Clone, Copy, Debug)]
pub struct After(pub i64);

impl FromStr for After {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_digits(text).map(Self).ok_or("the next of a page")
    }
}

impl PageInput {
    /// The number after which it begins.
    pub fn after(&self) -> Option<i64> {
        self.after.as_ref().map(|Text(After(number))| *number)
    }
}

/// Which page of a list whose items have names.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedPage {
    /// Maximum number of items.
    #[serde(default)]
    #[schema(value_type = u16, minimum = 1, maximum = 1000)]
    pub limit: Limit,
    /// The `next` of the page before.
    pub after: Option<String>,
}

impl Input for NamedPage {}

impl NamedPage {
    /// All of them.
    pub const ALL: Self = Self {
        limit: Limit(u16::MAX),
        after: None,
    };

    /// The page of a list that is in memory.
    pub(crate) fn of<T>(
        &self,
        mut items: Vec<T>,
        name: impl Fn(&T) -> &str,
    ) -> Result<List<T>, ApiError> {
        if let Some(after) = &self.after {
            let place = items.iter().position(|item| name(item) == after);
            let place = place.ok_or_else(|| ApiError::invalid("after", "the next of a page"))?;
            items.drain(..=place);
        }
        let limit = self.limit.into();
        let has_more = items.len() > limit;
        items.truncate(limit);
        Ok(List::new((items, has_more), |item| name(item).to_owned()))
    }
}

/// The ident of an application in a body or a query: what is none names no application.
#[derive(Clone, Copy, Debug)]
pub struct KnownIdent(pub AppIdent);

impl FromStr for KnownIdent {
    type Err = <AppIdent as FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl<'de> Deserialize<'de> for KnownIdent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ident = String::deserialize(deserializer)?.parse();
        ident.map_err(|_| de::Error::custom(UNKNOWN_APP))
    }
}

/// A page of a list.
#[derive(Serialize, ToSchema)]
pub struct List<T> {
    /// The items.
    pub items: Vec<T>,
    /// `after` of the next page; null on the last one.
    pub next: Option<String>,
}

impl<T> List<T> {
    /// A page of items. If more follow, the last item's name becomes `next`.
    pub(crate) fn new((items, has_more): (Vec<T>, bool), name: impl Fn(&T) -> String) -> Self {
        let next = items.last().filter(|_| has_more).map(name);
        Self { items, next }
    }
}

impl<T: Serialize + ToSchema + Send + 'static> Output for List<T> {
    fn schema_name() -> String {
        format!("List_{}", T::name())
    }

    fn add_schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        Self::schemas(schemas);
        // The derived schema refers to an item's schema, but does not add it.
        schemas.push((
            T::name().into_owned(),
            <T as utoipa::PartialSchema>::schema(),
        ));
        schemas.push((
            Self::schema_name(),
            <Self as utoipa::PartialSchema>::schema(),
        ));
    }
}

/// Reads a JSON body.
pub(crate) fn of_json<T: DeserializeOwned>(json: &[u8]) -> Result<T, ApiError> {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let input = serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|error| refused(error.path(), error.inner().to_string()))?;
    deserializer.end().map_err(malformed)?;
    Ok(input)
}

/// Reads a query.
pub(crate) fn of_query<T: DeserializeOwned>(uri: &Uri) -> Result<T, ApiError> {
    let Query(input) = Query::try_from_uri(uri).map_err(|error| {
        let mut cause: &dyn std::error::Error = &error;
        while let Some(next) = cause.source() {
            cause = next;
            if let Some(of_value) = cause.downcast_ref() {
                let of_value: &serde_path_to_error::Error<de::value::Error> = of_value;
                let text = of_value.inner().to_string();
                if [ALLOWED, UNKNOWN_APP]
                    .iter()
                    .any(|mark| text.starts_with(mark))
                {
                    return refused(of_value.path(), text);
                }
            }
        }
        malformed(error.body_text())
    })?;
    // Postgres has no texts with it, and would fail.
    let mut pairs = uri.query().unwrap_or_default().split('&');
    if let Some(pair) = pairs.find(|pair| pair.contains("%00")) {
        let name = pair.split('=').next().unwrap_or_default().to_owned();
        return Err(ApiError::invalid(name, "text without a NUL"));
    }
    Ok(input)
}

/// Reads a field of a form.
pub(crate) fn of_text<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, ApiError> {
    let deserializer: StrDeserializer<'_, de::value::Error> = text.into_deserializer();
    let value = T::deserialize(deserializer);
    let value = value.map_err(|error| not_read(name.to_owned(), error.to_string()))?;
    // Postgres has no texts with it, and would fail.
    if text.contains('\0') {
        return Err(ApiError::invalid(name.to_owned(), "text without a NUL"));
    }
    Ok(value)
}

/// The error of a member: of its value, or of the form.
fn refused(path: &Path, text: String) -> ApiError {
    let names = path.iter().map_while(|segment| match segment {
        Segment::Map { key } => Some(key.as_str()),
        _ => None,
    });
    not_read(names.collect::<Vec<_>>().join("."), text)
}

fn not_read(name: String, text: String) -> ApiError {
    if text.starts_with(UNKNOWN_APP) {
        return Code::AppNotFound.into();
    }
    let Some(allowed) = text.strip_prefix(ALLOWED) else {
        return malformed(text);
    };
    // JSON adds the place.
    let before = allowed.rsplit_once(" at line ");
    ApiError::invalid(name, before.map_or(allowed, |(allowed, _)| allowed))
}

pub(crate) fn malformed(problem: impl ToString) -> ApiError {
    ApiError::from(Code::RequestMalformed).arg("problem", problem.to_string())
}
