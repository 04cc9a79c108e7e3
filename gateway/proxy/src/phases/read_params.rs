//! Parses the parameters of target and body. CONTRACT 2.

use signpost_protocol::{
    malformed::Malformed,
    param::{Params, ParamsError},
};

use crate::{
    config::Limits,
    request::{Target, rejection::Rejection},
};

/// Parses the parameters of target and body into `params`, which are empty.
///
/// # Errors
///
/// The parameters are malformed, or too many.
pub(crate) fn read_params<'a>(
    params: &mut Params<'a>,
    target: Target<'a>,
    body: &'a [u8],
    limits: &Limits,
) -> Result<(), Rejection> {
    let query = target.query.as_bytes();
    let filled = params.fill(query, body, limits.params);
    filled.map_err(|error| match error {
        ParamsError::Malformed => {
            Rejection::ParamsMalformed(Malformed::of_params(query, body).into())
        }
        ParamsError::TooMany => Rejection::ParamsTooMany {
            limit: limits.params,
        },
    })
}
