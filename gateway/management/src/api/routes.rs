//! The routes, each with the role that it needs: none can be added without one.

use std::sync::Arc;

use axum::{Router, middleware::from_fn_with_state};
use serde_json::json;
use utoipa::openapi::{
    OpenApi, Ref, RefOr, Required, Schema, extensions::ExtensionsBuilder, path::Operation,
    request_body::RequestBody,
};
use utoipa_axum::{
    router::{OpenApiRouter, UtoipaMethodRouter},
    routes,
};

use super::{Shared, apps, caller::require, idempotency, openapi, requests};
use crate::{administration::tokens::Role, operations};

/// All routes, and the document about them.
pub(super) fn all(api: &Shared) -> (Router<Shared>, OpenApi) {
    operations::all(Routes::new(api))
        .viewer(routes!(apps::export))
        .operator(routes!(apps::import))
        .viewer(routes!(requests::stream))
        .router
        .split_for_parts()
}

/// Collects routes and their description.
pub(super) struct Routes {
    api: Shared,
    router: OpenApiRouter<Shared>,
}

impl Routes {
    fn new(api: &Shared) -> Self {
        Self {
            api: Arc::clone(api),
            router: OpenApiRouter::with_openapi(openapi::frame()),
        }
    }

    /// A route that sees.
    fn viewer(self, route: UtoipaMethodRouter<Shared>) -> Self {
        self.route(Role::Viewer, route, true)
    }

    /// A route that changes applications, backends or the configuration in force.
    fn operator(self, route: UtoipaMethodRouter<Shared>) -> Self {
        self.route(Role::Operator, route, true)
    }

    /// A route that needs a role. Of a repeatable one, an idempotency key's response is kept.
    pub(super) fn route(
        mut self,
        role: Role,
        (schemas, mut paths, mut methods): UtoipaMethodRouter<Shared>,
        is_repeatable: bool,
    ) -> Self {
        for (path, item) in &mut paths.paths {
            if let Some(post) = &mut item.post {
                if is_repeatable {
                    let parameters = post.parameters.get_or_insert_default();
                    parameters.push(RefOr::T(idempotency::parameter()));
                }
                if let Some(RefOr::T(body)) = &mut post.request_body
                    && needs_no_member(body, &schemas)
                {
                    body.required = Some(Required::False);
                }
            }
            let operations = [&mut item.get, &mut item.post].into_iter().flatten();
            operations.for_each(|operation| describe(path, operation, role));
        }
        let api = || Arc::clone(&self.api);
        if is_repeatable {
            methods = methods.route_layer(from_fn_with_state(api(), idempotency::once));
        }
        let methods = methods.route_layer(from_fn_with_state((api(), role), require));
        self.router = self.router.routes((schemas, paths, methods));
        self
    }
}

/// Whether all members of a JSON body are optional: then it can be left out, too.
fn needs_no_member(body: &RequestBody, schemas: &[(String, RefOr<Schema>)]) -> bool {
    let mut contents = body.content.values();
    contents.any(|content| {
        let RefOr::T(content) = content else {
            return false;
        };
        let Some(RefOr::Ref(reference)) = &content.schema else {
            return false;
        };
        schemas.iter().any(|(name, schema)| {
            let is_optional =
                matches!(schema, RefOr::T(Schema::Object(object)) if object.required.is_empty());
            is_optional && *reference == Ref::from_schema_name(name.as_str())
        })
    })
}

/// Adds to a route's description what all have: an id by its path, its role, and the problems.
fn describe(path: &str, operation: &mut Operation, role: Role) {
    let words = path.split(|letter: char| !letter.is_ascii_alphanumeric());
    let words: Vec<_> = words
        .filter(|word| !["", "api", "v1"].contains(word))
        .collect();
    operation.operation_id = Some(words.join("_"));
    let role = ExtensionsBuilder::new()
        .add("x-role", json!(role.as_str()))
        .build();
    operation.extensions.get_or_insert_default().merge(role);
    let problem = Ref::from_response_name(openapi::PROBLEM).into();
    let responses = &mut operation.responses.responses;
    responses.insert("default".to_owned(), problem);
}
