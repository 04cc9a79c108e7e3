//! The fields of a form.

use std::{fmt::Display, str::FromStr};

use axum::{
    body::{Body, Bytes},
    extract::{FromRequest, Request},
};
use serde::de::DeserializeOwned;
use url::form_urlencoded;

use super::{Shared, failure::Failure, page::Reader};
use crate::{
    api::{self, ApiError},
    operations::input::{Change, Limit, PageInput, malformed, of_text},
};

/// Limit of an import's form in bytes: a file of some 10,000 applications fits. Larger ones are for the command.
const MAX_IMPORT_BYTES: usize = 2 * 1024 * 1024;

/// The fields of a form, `application/x-www-form-urlencoded`, and the parameters of its address.
pub(super) struct Fields(pub Vec<(String, String)>);

impl FromRequest<Shared> for Fields {
    type Rejection = Failure;

    async fn from_request(request: Request, console: &Shared) -> Result<Self, Failure> {
        let (head, body) = request.into_parts();
        let reader = Reader::of_session(&console.sessions, &head.headers);
        let bytes = read_form(console, head.uri.path(), body).await;
        let bytes = bytes.map_err(|error| Failure::of_error(&error, reader))?;
        let mut fields = Self::of_query(head.uri.query());
        let body = form_urlencoded::parse(&bytes);
        fields.0.extend(body.into_owned());
        Ok(fields)
    }
}

/// Reads a form whole.
pub(super) async fn read_form(console: &Shared, path: &str, body: Body) -> Result<Bytes, ApiError> {
    let timeout = console.current.load().policy.bounds.timeouts.body;
    let limit = match path {
        "/apps/import" => MAX_IMPORT_BYTES,
        _ => api::MAX_BODY_BYTES,
    };
    api::read_body(body, limit, timeout).await
}

impl Fields {
    /// The parameters of a page.
    pub(super) fn of_query(query: Option<&str>) -> Self {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        Self(pairs.into_owned().collect())
    }

    /// The page of a list whose items have numbers.
    pub(super) fn page(&self) -> Result<PageInput, ApiError> {
        let (limit, after) = (Limit::default(), self.value("after")?);
        Ok(PageInput { limit, after })
    }

    /// A field's text without white space around it; empty without the field.
    pub(super) fn get(&self, name: &str) -> &str {
        let mut fields = self.0.iter();
        let field = fields.find(|(field, _)| field == name);
        field.map_or("", |(_, value)| value.trim())
    }

    /// All texts of a field that a query has several times.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let named = self.0.iter().filter(move |(field, _)| field == name);
        named.map(|(_, value)| &**value)
    }

    /// A field that says something.
    pub(super) fn given(&self, name: &str) -> Option<&str> {
        Some(self.get(name)).filter(|value| !value.is_empty())
    }

    /// The value of a field that says something.
    pub(super) fn value<T: DeserializeOwned>(
        &self,
        name: &'static str,
    ) -> Result<Option<T>, ApiError> {
        self.given(name).map(|text| of_text(name, text)).transpose()
    }

    /// The value of a required field. A missing field has the same error as an empty one.
    pub(super) fn required<T: DeserializeOwned>(&self, name: &'static str) -> Result<T, ApiError> {
        of_text(name, self.get(name))
    }

    /// The value of a field as a number; `None` if the field is empty or missing.
    pub(super) fn count<T: FromStr<Err: Display>>(
        &self,
        name: &str,
    ) -> Result<Option<T>, ApiError> {
        let number = self.given(name).map(str::parse).transpose();
        number.map_err(|problem| malformed(format_args!("{name}: {problem}")))
    }

    /// The values of a field's lines that are not empty.
    pub(super) fn values<T: DeserializeOwned>(
        &self,
        name: &'static str,
    ) -> Result<Vec<T>, ApiError> {
        let lines = self.get(name).lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty());
        lines.map(|text| of_text(name, text)).collect()
    }

    /// A setting that a field without a text removes.
    pub(super) fn change<T: DeserializeOwned>(
        &self,
        name: &'static str,
    ) -> Result<Change<T>, ApiError> {
        Ok(self.value(name)?.map_or(Change::None, Change::This))
    }
}
