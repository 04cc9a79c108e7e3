//! The document of a version: its endpoints in `OpenAPI` 3.1, as clients see them through the gateway. CONTRACT 8.
//!
//! `document.json` has what is the same for all endpoints; its `<names>` are replaced. The [operations](Operation) of the
//! endpoints are added.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use signpost_protocol::{
    header::HeaderNames,
    language::Language,
    problem::{MEDIA_TYPE, ProblemCode},
    sign::{SIGN, TIME},
    version::VersionSource,
};

use super::{
    Endpoints, Version,
    description::{Credential, Operation, Parameter},
    endpoints::EndpointsError,
};
use crate::config::Config;

const TEMPLATE: &str = include_str!("document.json");

/// Writes the document of the library's endpoints and of the version's own.
///
/// # Errors
///
/// Two types of responses have the same name.
pub(super) fn document<V: Version>(
    config: &Config,
    shared: &Endpoints<V>,
    own: &Endpoints<V>,
) -> Result<Value, EndpointsError> {
    let writer = Writer {
        names: &config.headers,
        common: common_problems(shared),
    };
    let mut document = filled_template(config, V::NAME);
    document["components"]["responses"] = writer.common_responses();
    for (method, path, operation) in shared.operations().chain(own.operations()) {
        let headers = ["App", "Version", "Language"].map(|name| reference("parameters", name));
        let item = &mut document["paths"][path];
        item["parameters"] = json!(headers);
        let key = method.as_str().to_lowercase();
        item[&key] = writer.operation(&key, path, operation);
        for (name, schema) in &operation.schemas {
            let (known, schema) = (&mut document["components"]["schemas"][name], json!(schema));
            if !known.is_null() && *known != schema {
                let problem = format!(
                    "{method} {path}: another response has a type {name}; allowed: a name of its own"
                );
                return Err(EndpointsError(format!("endpoint {problem}")));
            }
            *known = schema;
        }
    }
    Ok(document)
}

fn filled_template(config: &Config, version: &str) -> Value {
    let (names, lifetimes) = (&config.headers, &config.lifetimes);
    let public_url = config.public_url.callback().origin();
    let text = TEMPLATE
        .replace("<version>", version)
        .replace("<public url>", &public_url.ascii_serialization())
        .replace("<app>", &names.spelled(&names.app))
        .replace("<language>", &names.spelled(&names.language))
        .replace("<authorization>", &names.spelled(&names.authorization))
        .replace("<version header>", &names.spelled(&names.version))
        .replace("<version source>", &names.spelled(&names.version_source));
    let mut document: Value = serde_json::from_str(&text).expect("the template is JSON");
    let headers = &mut document["components"]["headers"];
    headers["Content-Language"]["schema"]["enum"] = json!(Language::ALL.map(Language::tag));
    let sources = VersionSource::ALL.map(VersionSource::as_str);
    headers[names.spelled(&names.version_source)]["schema"]["enum"] = json!(sources);
    for (name, lifetime) in [
        ("login", lifetimes.login),
        ("claim", lifetimes.claim),
        ("ticket", lifetimes.ticket),
        ("credential", lifetimes.credential),
        ("renewal", lifetimes.renewal),
    ] {
        document["x-signpost-lifetimes"][name] = lifetime.as_secs().into();
    }
    document
}

/// Status and code of problems.
type Problems = BTreeSet<(u16, &'static str)>;

/// What any request can get: all problems that no endpoint of the library names.
fn common_problems<V: Version>(shared: &Endpoints<V>) -> Problems {
    let named = shared.operations().flat_map(|(_, _, one)| &one.problems);
    let named: BTreeSet<_> = named.collect();
    let all = ProblemCode::ALL.iter();
    let all = all.map(|code| (code.status().as_u16(), code.as_str()));
    all.filter(|problem| !named.contains(problem)).collect()
}

struct Writer<'a> {
    names: &'a HeaderNames,
    common: Problems,
}

impl Writer<'_> {
    fn operation(&self, method: &str, path: &str, operation: &Operation) -> Value {
        let is_required = operation.parameters.iter().any(|one| one.is_required);
        let is_signed = operation.is_signed || is_required;
        let signature = [(TIME, "Time"), (SIGN, "Sign")].map(|(name, schema)| Parameter {
            name,
            is_required: is_signed,
            schema: reference("schemas", schema),
        });
        let parameters = operation.parameters.iter().chain(&signature);
        let credential = json!({ "credential": [] });
        let mut written = json!({
            "operationId": format!("{method}{}", path.replace(['/', '.', '-', '~'], "_")),
            "summary": operation.summary,
            "responses": self.responses(operation),
            "security": match operation.credential {
                Credential::None => json!([]),
                Credential::Optional => json!([{}, credential]),
                Credential::Required => json!([credential]),
            },
        });
        if method == "get" {
            written["parameters"] = parameters.map(in_query).collect();
        } else {
            let mut form = form(parameters);
            if !operation.one_of.is_empty() {
                let one_of = operation.one_of.iter();
                form["oneOf"] = one_of.map(|name| json!({ "required": [name] })).collect();
            }
            let form = json!({ "application/x-www-form-urlencoded": { "schema": form } });
            written["requestBody"] = json!({ "required": is_signed, "content": form });
        }
        written
    }

    fn responses(&self, operation: &Operation) -> Value {
        let mut responses = Map::new();
        let mut add = |status: u16, response| responses.insert(status.to_string(), response);
        let with_page = |mut response: Value| {
            if operation.is_for_browsers {
                response["content"]["text/html"] = json!({ "schema": { "type": "string" } });
            }
            response
        };
        let content = json!({ "application/json": { "schema": operation.response } });
        add(200, with_page(self.response(200, "Success.", content)));
        if operation.is_for_browsers {
            add(302, self.response(302, "The browser goes on.", json!({})));
        }
        for (status, codes) in by_status(self.common.union(&operation.problems)) {
            let is_own = operation.problems.iter().any(|(own, _)| *own == status);
            add(
                status,
                if is_own || operation.is_for_browsers {
                    with_page(self.problem(status, &codes))
                } else {
                    reference("responses", &status.to_string())
                },
            );
        }
        responses.into()
    }

    fn common_responses(&self) -> Value {
        let all = by_status(&self.common).into_iter();
        let all = all.map(|(status, codes)| (status.to_string(), self.problem(status, &codes)));
        all.collect::<Map<_, _>>().into()
    }

    fn problem(&self, status: u16, codes: &[&str]) -> Value {
        let mut schema = reference("schemas", "Problem");
        schema["properties"] = json!({ "status": { "const": status }, "code": { "enum": codes } });
        let content = json!({ MEDIA_TYPE: { "schema": schema } });
        self.response(status, &codes.join(", "), content)
    }

    /// A response with the headers that those of its status have.
    fn response(&self, status: u16, description: &str, content: Value) -> Value {
        let (version, source) = (&self.names.version, &self.names.version_source);
        let (version, source) = (self.names.spelled(version), self.names.spelled(source));
        let further: &[&str] = match status {
            200 => &[
                &version,
                &source,
                "RateLimit",
                "RateLimit-Policy",
                "Deprecation",
                "Sunset",
                "Link",
            ],
            302 => &["Location", "Set-Cookie"],
            401 => &["WWW-Authenticate"],
            405 => &["Allow"],
            429 => &["Retry-After", "RateLimit", "RateLimit-Policy"],
            503 => &["Retry-After"],
            _ => &[],
        };
        let all = ["X-Request-Id", "Content-Language", "Cache-Control"];
        let all = all.iter().chain(further);
        let headers = all.map(|name| ((*name).to_owned(), reference("headers", name)));
        json!({ "description": description, "headers": headers.collect::<Map<_, _>>(), "content": content })
    }
}

fn by_status<'p>(
    problems: impl IntoIterator<Item = &'p (u16, &'static str)>,
) -> BTreeMap<u16, Vec<&'static str>> {
    let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (status, code) in problems {
        all.entry(*status).or_default().push(*code);
    }
    all
}

fn reference(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

fn in_query(parameter: &Parameter) -> Value {
    json!({ "name": parameter.name, "in": "query", "required": parameter.is_required, "schema": parameter.schema })
}

fn form<'p>(parameters: impl Iterator<Item = &'p Parameter> + Clone) -> Value {
    let required = parameters.clone().filter(|one| one.is_required);
    let required: Vec<_> = required.map(|one| one.name).collect();
    let properties = parameters.map(|one| (one.name.to_owned(), one.schema.clone()));
    json!({ "type": "object", "properties": properties.collect::<Map<_, _>>(), "required": required })
}

#[cfg(test)]
mod tests;
