//! The last requests that were rejected.

use std::sync::Arc;

use serde::Deserialize;
use signpost_proxy::{Gateway, SeenRequest, Watch};
use utoipa::{
    ToSchema,
    openapi::{ObjectBuilder, RefOr, Schema, Type},
};

use super::{
    Context, Face, Input, Operation, Output, Result, Target,
    input::{Limit, List, Nothing},
    problem::{ApiError, Code},
};
use crate::reports::rejections;

pub(super) fn all<F: Face>(face: F) -> F {
    face.add(&REJECTIONS).add(&REJECTION)
}

/// What the gateway has seen of its requests.
pub(crate) fn watch(gateway: &Gateway) -> Result<Arc<Watch>, ApiError> {
    let watch = gateway.state.records.watch.clone();
    watch.ok_or_else(|| ApiError::internal(anyhow::anyhow!("the API runs, and nothing is watched")))
}

/// Which rejected requests.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RejectionFilter {
    /// Only those that name this application.
    pub app: Option<String>,
    /// Maximum number of items.
    #[serde(default)]
    #[schema(value_type = u16, minimum = 1, maximum = 1000)]
    pub limit: Limit,
}

impl Input for RejectionFilter {}

/// Lists rejected requests.
pub(crate) const REJECTIONS: Operation<(), RejectionFilter, List<SeenRequest>> = Operation::read(
    "/api/v1/rejections",
    "Lists the last requests that this gateway has rejected, newest first. Each of its threads keeps 200.",
    |context, target, search| Box::pin(rejections(context, target, search)),
);

async fn rejections(
    context: &Context,
    (): (),
    search: RejectionFilter,
) -> Result<List<SeenRequest>> {
    let app = search.app.as_deref();
    let is_wanted = |seen: &SeenRequest| app.is_none_or(|app| seen.app.as_deref() == Some(app));
    let watch = watch(&context.running().gateway)?;
    let rejected = watch.last_rejected(is_wanted, search.limit.into());
    let rejected = rejected.into_iter();
    let rejected = rejected.map(|seen| seen.in_language(context.caller.language));
    Ok(List::new((rejected.collect(), false), |seen| {
        seen.request_id.clone()
    }))
}

/// What a client says is the id of its request.
pub(crate) struct GivenId(pub String);

impl Target for GivenId {
    const PARAMETER: Option<(&'static str, fn() -> RefOr<Schema>)> = Some(("request_id", || {
        let text = "The id, as `X-Request-Id` or the problem has it.";
        let schema = ObjectBuilder::new().schema_type(Type::String);
        schema.description(Some(text)).into()
    }));

    fn read(text: &str) -> Result<Self, Code> {
        Ok(Self(text.to_owned()))
    }
}

impl Output for SeenRequest {}

/// Shows a rejected request.
pub(crate) const REJECTION: Operation<GivenId, Nothing, SeenRequest> = Operation::read(
    "/api/v1/rejections/{request_id}",
    "Shows a request that was rejected, by the id that its client got: all gateways of the store are asked, for 2 s.",
    |context, id, input| Box::pin(rejection(context, id, input)),
);

async fn rejection(context: &Context, GivenId(id): GivenId, _: Nothing) -> Result<SeenRequest> {
    let mut rejected = watch(&context.running().gateway)?.rejected(&id);
    // What is no id was sent by no gateway.
    if let (None, Ok(id)) = (&rejected, id.parse()) {
        rejected = rejections::ask(&context.store, &id).await?;
    }
    let rejected = rejected.ok_or(ApiError::from(Code::NotFound))?;
    Ok(rejected.in_language(context.caller.language))
}
