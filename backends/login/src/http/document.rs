//! The document of a version: its endpoints in `OpenAPI` 3.1, as clients see them through the gateway. CONTRACT 8.
//!
//! `document.json` has what is the same for all endpoints; its `<names>` are replaced. The [operations](Operation) of the
//! endpoints are added.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use signpost_protocol::{
    language::Language,
    problem::{MEDIA_TYPE, ProblemCode},
    sign::{SIGN, TIME},
    version::VersionSource,
};

use super::{Endpoints, Version, description::Operation, endpoints::EndpointsError};
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
    let mut document = filled_template(config, V::NAME);
    // There the template has the names of headers, until the common responses are written.
    let responses = Responses {
        headers: document["components"]["responses"].take(),
        common: common_problems(shared),
    };
    document["components"]["responses"] = responses.common().into();
    for (method, path, operation) in shared.operations().chain(own.operations()) {
        let headers = ["App", "Version", "Language"].map(|name| reference("parameters", name));
        let item = &mut document["paths"][path];
        item["parameters"] = json!(headers);
        let key = method.as_str().to_lowercase();
        item[&key] = request(&key, path, operation);
        item[&key]["responses"] = responses.of(operation).into();
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
    let languages = json!(Language::ALL.map(Language::tag));
    let sources = json!(VersionSource::ALL.map(VersionSource::as_str));
    let text = [
        ("<version>", version.to_owned()),
        ("<public url>", public_url.ascii_serialization()),
        ("<app>", names.spelled(&names.app)),
        ("<language>", names.spelled(&names.language)),
        ("<authorization>", names.spelled(&names.authorization)),
        ("<version header>", names.spelled(&names.version)),
        ("<version source>", names.spelled(&names.version_source)),
        (r#""<languages>""#, languages.to_string()),
        (r#""<sources>""#, sources.to_string()),
    ];
    let seconds = [
        (r#""<login seconds>""#, lifetimes.login),
        (r#""<claim seconds>""#, lifetimes.claim),
        (r#""<ticket seconds>""#, lifetimes.ticket),
        (r#""<credential seconds>""#, lifetimes.credential),
        (r#""<renewal seconds>""#, lifetimes.renewal),
    ];
    let seconds = seconds.map(|(name, lifetime)| (name, lifetime.as_secs().to_string()));
    let filled = text
        .iter()
        .chain(&seconds)
        .fold(TEMPLATE.to_owned(), |template, (name, value)| {
            template.replace(name, value)
        });
    serde_json::from_str(&filled).expect("the filled template is JSON")
}

/// Status and code of problems.
type Problems = BTreeSet<(u16, &'static str)>;

/// What any request can get: all problems that no endpoint of the library names.
fn common_problems<V: Version>(shared: &Endpoints<V>) -> Problems {
    let operations = shared.operations();
    let named: Problems = operations
        .flat_map(|(_, _, operation)| operation.problems.iter().copied())
        .collect();
    let all = ProblemCode::ALL.iter();
    let all = all.map(|code| (code.status().as_u16(), code.as_str()));
    all.filter(|problem| !named.contains(problem)).collect()
}

/// An endpoint without its responses.
fn request(method: &str, path: &str, operation: &Operation) -> Value {
    let (parameters, required) = (&operation.parameters, &operation.required);
    let mut written = json!({
        "operationId": format!("{method}{}", path.replace(['/', '.', '-', '~'], "_")),
        "summary": operation.summary,
        "security": security(operation),
    });
    if method == "get" {
        let in_query = parameters.iter().map(|(name, schema)| {
            json!({ "name": name, "in": "query", "required": required.contains(name), "schema": schema })
        });
        written["parameters"] = in_query.collect();
    } else {
        let properties = parameters.iter();
        let properties = properties.map(|(name, schema)| ((*name).to_owned(), schema.clone()));
        let properties: Map<_, _> = properties.collect();
        let mut form = json!({ "type": "object", "properties": properties, "required": required });
        if operation.needs_any {
            form["minProperties"] = 1.into();
        }
        let form = json!({ "application/x-www-form-urlencoded": { "schema": form } });
        written["requestBody"] =
            json!({ "required": operation.needs_any || !required.is_empty(), "content": form });
    }
    written
}

/// What authenticates a request: each alternative with a signature; unless it needs one, without it, too.
fn security(operation: &Operation) -> Vec<Value> {
    let mut signed = operation.security.clone();
    for scheme in [TIME, SIGN] {
        signed
            .iter_mut()
            .for_each(|schemes| schemes[scheme] = json!([]));
    }
    let unsigned = operation.security.iter().filter(|_| !operation.is_signed);
    unsigned.cloned().chain(signed).collect()
}

/// Writes the responses of endpoints.
struct Responses {
    /// The names of headers, by status: what the template has in the place of the common responses.
    headers: Value,
    common: Problems,
}

impl Responses {
    /// The responses with problems that any request can get.
    fn common(&self) -> Map<String, Value> {
        let all = by_status(&self.common).into_iter();
        all.map(|(status, codes)| (status.to_string(), self.problem(status, &codes)))
            .collect()
    }

    fn of(&self, operation: &Operation) -> Map<String, Value> {
        let with_page = |mut response: Value| {
            if operation.is_for_browsers {
                response["content"]["text/html"] = json!({ "schema": { "type": "string" } });
            }
            response
        };
        let content = json!({ "application/json": { "schema": operation.response } });
        let mut responses = Map::new();
        let mut add = |status: u16, response| responses.insert(status.to_string(), response);
        add(200, with_page(self.response(200, "Success.", content)));
        if operation.is_for_browsers {
            add(302, self.response(302, "The browser goes on.", json!({})));
        }
        for (status, codes) in by_status(self.common.union(&operation.problems)) {
            // Common responses are referred to: with all of them written out, no person could read the document.
            let is_own = operation.problems.iter().any(|(own, _)| *own == status);
            let response = match is_own || operation.is_for_browsers {
                true => with_page(self.problem(status, &codes)),
                false => reference("responses", &status.to_string()),
            };
            add(status, response);
        }
        responses
    }

    fn problem(&self, status: u16, codes: &[&str]) -> Value {
        let mut schema = reference("schemas", "Problem");
        schema["properties"] = json!({ "status": { "type": "integer", "enum": [status] }, "code": { "type": "string", "enum": codes } });
        let content = json!({ MEDIA_TYPE: { "schema": schema } });
        self.response(status, &codes.join(", "), content)
    }

    fn response(&self, status: u16, description: &str, content: Value) -> Value {
        let of_status = &self.headers[status.to_string()];
        let names = [&self.headers["all"], of_status].map(Value::as_array);
        let names = names.into_iter().flatten().flatten();
        let headers: Map<_, _> = names
            .filter_map(Value::as_str)
            .map(|name| (name.to_owned(), reference("headers", name)))
            .collect();
        json!({ "description": description, "headers": headers, "content": content })
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

#[cfg(test)]
mod tests;
