//! A route for each operation: the call becomes the operation's input, its output the response.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Extension,
    extract::{FromRequestParts, RawPathParams, Request, State},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts};
use signpost_protocol::language::Language;
use utoipa::openapi::{
    Content, Header, HttpMethod, Object, Paths, Ref, RefOr, Required, ResponseBuilder, Schema,
    Type,
    path::{OperationBuilder, Parameter, ParameterBuilder, ParameterIn},
    request_body::RequestBodyBuilder,
    schema::SchemaType,
};

use super::{
    Shared,
    body::{MAX_BODY_BYTES, body_timeout, check_content_type, etag, read, revision},
    caller::{Caller, Proof, authenticate},
    layers::Call,
    requests::{RequestParams, Write, watch_by},
    routes::Routes,
};
use crate::administration::{printable::printable_json, tokens::Role};
use crate::operations::{
    Face, Input, Kind, Operation, Output, Route, Target,
    input::{of_json, of_query},
    problem::{ApiError, Code},
};

/// The schemas of a description, by name.
type Schemas = Vec<(String, RefOr<Schema>)>;

impl Face for Routes {
    fn add<T: Target, I: Input, O: Output>(self, operation: &'static Operation<T, I, O>) -> Self {
        let route = &operation.route;
        let handler = move |State(api): State<Shared>, caller: Caller, request: Request| {
            serve(operation, api, caller, request)
        };
        let method = match route.kind {
            Kind::Read => get(handler),
            _ => post(handler),
        };
        let (schemas, paths) = described::<T, I, O>(route);
        let is_repeatable = matches!(route.kind, Kind::Change | Kind::Create);
        self.route(route.role, (schemas, paths, method), is_repeatable)
    }
}

/// Runs an operation for a user of the console, with the guards of a call of the API.
pub(crate) async fn run_for<T: Target, I: Input, O: Output>(
    api: &Shared,
    operation: &'static Operation<T, I, O>,
    (proof, address, language): (Proof, SocketAddr, Language),
    (target, mut input): (T, I),
) -> Result<O, ApiError> {
    let (api, drain) = (Arc::clone(api), Arc::clone(&api.current.load().state.drain));
    let in_flight = drain.begin_connection();
    // It ends although the browser leaves, and a stop waits for it.
    let work = tokio::spawn(async move {
        let _in_flight = in_flight;
        let role = api.role_for(&operation.route, target.app());
        let caller = authenticate(&api, role, address, Some(proof), "console").await?;
        read_revision(&mut input, &HeaderMap::new())?;
        let _turn = match I::TAKES_TURN {
            true => Some(api.turns.take(caller.token.id).await?),
            false => None,
        };
        let output = (operation.run)(&api.context(&caller, language), target, input).await?;
        Ok(output)
    });
    work.await.map_err(ApiError::internal)?
}

/// The requests of this gateway as they end, for a user of the console, with the guards of a call of the API.
pub(crate) async fn watch_for(
    api: &Shared,
    (proof, address): (Proof, SocketAddr),
    params: RequestParams,
    write: Write,
) -> Result<Response, ApiError> {
    let caller = authenticate(api, Role::Viewer, address, Some(proof), "console").await?;
    let _turn = api.turns.take(caller.token.id).await?;
    watch_by(Arc::clone(api), &caller, params, write)
}

async fn serve<T: Target, I: Input, O: Output>(
    operation: &'static Operation<T, I, O>,
    api: Shared,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    let (mut head, body) = request.into_parts();
    let mut input: I = match operation.route.kind {
        Kind::Read => of_query(&head.uri)?,
        _ => {
            let body = read(body, MAX_BODY_BYTES, body_timeout(&api)).await?;
            // A change whose revision is in `If-Match` needs no more than an empty object.
            if body.is_empty() {
                of_json(b"{}")?
            } else {
                check_content_type(&head.headers, &["application/json"])?;
                of_json(&body)?
            }
        }
    };
    read_revision(&mut input, &head.headers)?;
    let target = target(&mut head).await?;
    let language = head.extensions.get::<Call>().map(|call| call.language);
    let context = api.context(&caller, language.unwrap_or(Language::En));
    let output = (operation.run)(&context, target, input).await?;
    response(operation.route.kind, &output)
}

/// Checks that a change names the revision that it was decided upon, if its subject has revisions.
fn read_revision<I: Input>(input: &mut I, headers: &HeaderMap) -> Result<(), ApiError> {
    if let Some(of) = I::REVISION {
        let seen = of(input);
        *seen = Some(revision(headers, *seen)?);
    }
    Ok(())
}

/// The target in the path: its only parameter.
async fn target<T: Target>(head: &mut Parts) -> Result<T, ApiError> {
    let params = RawPathParams::from_request_parts(head, &()).await;
    // It is not UTF-8.
    let params = params.map_err(|_| Code::NotFound)?;
    let text = params.iter().next().map_or("", |(_, value)| value);
    Ok(T::read(text)?)
}

fn response<O: Output>(kind: Kind, output: &O) -> Result<Response, ApiError> {
    let mut headers = HeaderMap::new();
    if let Some(revision) = O::REVISION {
        headers.extend(etag(revision(output)));
    }
    if let (Kind::Create, Some(location)) = (kind, O::LOCATION) {
        let location = HeaderValue::try_from(location(output));
        headers.extend(location.map(|location| (header::LOCATION, location)));
    }
    let json = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json);
    let held = output.held().map(Extension);
    let text = serde_json::to_string(output).map_err(ApiError::internal)?;
    Ok((status(kind), headers, held, printable_json(&text)).into_response())
}

/// The status of success.
const fn status(kind: Kind) -> StatusCode {
    match kind {
        Kind::Create => StatusCode::CREATED,
        Kind::Read | Kind::Ask | Kind::Change => StatusCode::OK,
    }
}

/// What the API says of an operation, but for what all have alike.
fn described<T: Target, I: Input, O: Output>(route: &Route) -> (Schemas, Paths) {
    let mut schemas = Vec::new();
    O::add_schemas(&mut schemas);
    let (mut parameters, mut body) = (Vec::new(), None);
    parameters.extend(T::PARAMETER.map(|(name, schema)| {
        let mut schema = schema();
        let description = match &mut schema {
            RefOr::T(Schema::Object(object)) => object.description.take(),
            _ => None,
        };
        let parameter = ParameterBuilder::new().name(name).description(description);
        let parameter = parameter
            .schema(Some(schema))
            .parameter_in(ParameterIn::Path);
        parameter.required(Required::True).build()
    }));
    let method = if route.kind == Kind::Read {
        parameters.extend(query(I::schema()));
        HttpMethod::Get
    } else {
        I::schemas(&mut schemas);
        schemas.push((I::name().into_owned(), I::schema()));
        body = Some(
            RequestBodyBuilder::new()
                .content("application/json", content(&I::name()))
                .required(Some(Required::True))
                .build(),
        );
        HttpMethod::Post
    };
    parameters.extend(I::REVISION.map(|_| if_match()));
    let operation = OperationBuilder::new()
        .tag(subject(route.path))
        .summary(Some(route.text))
        .parameters(Some(parameters).filter(|parameters| !parameters.is_empty()))
        .request_body(body)
        .response(status(route.kind).as_str(), success::<O>(route.kind));
    let mut paths = Paths::new();
    paths.add_path_operation(route.path, vec![method], operation);
    (schemas, paths)
}

/// The subject of a path, by which the description groups it.
fn subject(path: &str) -> &str {
    match path.split('/').nth(3).unwrap_or_default() {
        "doctor" | "rejections" | "requests" | "traffic" => "requests",
        "whoami" => "tokens",
        subject => subject,
    }
}

fn content(schema: &str) -> Content {
    Content::new(Some(Ref::from_schema_name(schema)))
}

/// The parameters of a query with this schema: its members.
fn query(schema: RefOr<Schema>) -> impl Iterator<Item = Parameter> {
    let object = match schema {
        RefOr::T(Schema::Object(object)) => object,
        _ => Object::default(),
    };
    let required = object.required;
    object
        .properties
        .into_iter()
        .map(move |(name, mut schema)| {
            let mut description = None;
            if let RefOr::T(Schema::Object(member)) = &mut schema {
                description = member.description.take();
                // A query has no null.
                if let SchemaType::Array(types) = &member.schema_type {
                    let of_value = types.iter().find(|kind| **kind != Type::Null);
                    member.schema_type = of_value.cloned().unwrap_or_default().into();
                }
            }
            let is_required = match required.contains(&name) {
                true => Required::True,
                false => Required::False,
            };
            ParameterBuilder::new()
                .name(name)
                .parameter_in(ParameterIn::Query)
                .required(is_required)
                .description(description)
                .schema(Some(schema))
                .build()
        })
}

fn if_match() -> Parameter {
    let text =
        "The revision that the change was decided upon, as in `ETag`; the body can name it, too.";
    ParameterBuilder::new()
        .name("If-Match")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(text))
        .schema(Some(Object::with_type(Type::String)))
        .build()
}

/// The response of an operation that succeeds. Its description is the output's.
fn success<O: Output>(kind: Kind) -> ResponseBuilder {
    let text = match O::schema() {
        RefOr::T(Schema::Object(object)) => object.description,
        _ => None,
    };
    let names = [
        (O::REVISION.is_some(), "ETag"),
        (O::LOCATION.is_some() && kind == Kind::Create, "Location"),
    ];
    let names = names.into_iter().filter(|(has_it, _)| *has_it);
    let response = ResponseBuilder::new()
        .description(text.unwrap_or_default())
        .content("application/json", content(&O::schema_name()));
    names.fold(response, |response, (_, name)| {
        response.header(name, Header::default())
    })
}
