//! `GET /login`, each step of a login in the browser, and `POST /login`. CONTRACT 8.

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, HeaderValue, StatusCode, Uri,
    header::{LOCATION, SET_COOKIE},
};
use signpost_protocol::{app::AppId, challenge::Challenge};
use url::Url;

use super::json;
use crate::{
    config::PassedOn,
    error::{LoginError, ParamRule},
    flow::{
        self, BrowserOutcome, BrowserRequest, BrowserStep, Callback, Grant, LoginRequest, Redirect,
        Refusal,
    },
    http::{
        Context, Version, pages,
        request::{
            ClaimedApplication, Parameters, RequestInfo, client_version, named_application,
            required_application,
        },
    },
    provider::deadline,
    records::logins::{Hints, remove_oldest},
};

/// What a client may have the provider ask for. Not `none`: a login that a provider ends by itself has no outcome that an
/// application could tell from others.
const PROMPTS: [&str; 3] = ["login", "consent", "select_account"];

/// What a `GET /login` with `state` asks for; without `state`, a redirect login begins. CONTRACT 8.
enum Asked<'p> {
    /// Only `state`: the login's page.
    Page,
    /// With `provider`: a button of a redirect login's page.
    Choice(&'p str),
    /// With `confirm`: the button of a polling login's page, or its link that cancels.
    Confirmation(&'p str),
    /// With `confirm` and `provider`: a button of the page where the user of a polling login chooses.
    ConfirmedChoice(&'p str, &'p str),
    /// With `code`: the provider's redirect.
    Code(Callback<'p>),
    /// With `error`: the provider's redirect after a failure.
    Error(Callback<'p>),
}

impl<'p> Asked<'p> {
    fn of(parameters: &'p Parameters) -> Result<Self, LoginError> {
        let (code, error) = (parameters.optional("code")?, parameters.optional("error")?);
        let (iss, provider) = (
            parameters.optional("iss")?,
            parameters.optional("provider")?,
        );
        let callback = |grant| Callback {
            grant,
            iss,
            provider,
        };
        let refused = |error| Self::Error(callback(Grant::Refused(Refusal::of(error))));
        Ok(match (code, error) {
            // One without a value counts as absent beside the other, and alone as a failure: RFC 6749 section 3.1.
            (Some(""), error) => refused(error.unwrap_or("")),
            (Some(code), None | Some("")) => {
                Self::Code(callback(Grant::Code(code.to_owned(), deadline())))
            }
            (None, Some(error)) => refused(error),
            (Some(_), Some(_)) => return Err(LoginError::only_one("state", "code, error")),
            (None, None) => match (parameters.optional("confirm")?, provider) {
                (None, None) => Self::Page,
                (None, Some(provider)) => Self::Choice(provider),
                (Some(confirm), None) => Self::Confirmation(confirm),
                (Some(confirm), Some(provider)) => Self::ConfirmedChoice(confirm, provider),
            },
        })
    }
}

/// `GET /login`: begins a redirect login, or takes the step of a login that the parameters ask for.
pub(crate) async fn login<V: Version>(
    State(context): State<Context>,
    info: RequestInfo,
    uri: Uri,
    headers: HeaderMap,
    parameters: Result<Parameters, LoginError>,
) -> Result<Response, LoginError> {
    let application = named_application(&headers, &context)?;
    let Some(parameters) = Parameters::of_callback(uri.query().unwrap_or_default()) else {
        return begin_redirect(&context, &info, application, &parameters?, &headers).await;
    };
    let request = BrowserRequest {
        service: &context.service,
        state: parameters.required("state")?,
        version: &client_version(&headers, &context)?,
        application,
        client: info.client_address,
        wants_page: info.wants_page,
        headers: &headers,
    };
    let step = match Asked::of(&parameters)? {
        Asked::Page => request.show_page().await?,
        Asked::Choice(provider) => request.choose(provider).await?,
        Asked::Confirmation(confirm) => request.confirm(confirm, None).await?,
        Asked::ConfirmedChoice(confirm, provider) => {
            request.confirm(confirm, Some(provider)).await?
        }
        Asked::Code(callback) | Asked::Error(callback) => request.finish(callback).await?,
    };
    step_response::<V>(&context, &info, &headers, step)
}

/// The response to a step of a login.
fn step_response<V: Version>(
    context: &Context,
    info: &RequestInfo,
    headers: &HeaderMap,
    step: BrowserStep,
) -> Result<Response, LoginError> {
    Ok(match step {
        BrowserStep::Page(page) => {
            let response = pages::login(&page, info.language);
            match page.polling {
                Some(polling) => with_cookie(context, headers, polling.set_cookie, response),
                None => response,
            }
        }
        BrowserStep::Redirect(redirect) => begun_response(context, headers, redirect)?,
        BrowserStep::Again(url) => redirect_to(&url)?,
        BrowserStep::Finished(outcome, set_cookie) => {
            let mut response = outcome_response::<V>(info, outcome)?;
            let set_cookie = set_cookie.map(|set_cookie| (SET_COOKIE, set_cookie));
            response.headers_mut().extend(set_cookie);
            response
        }
    })
}

/// `GET /login` (`provider`, `return_to`, `prompt`, `login_hint`): redirects the browser to the provider, or to the page
/// where the user chooses one.
async fn begin_redirect(
    context: &Context,
    info: &RequestInfo,
    application: Option<AppId>,
    parameters: &Parameters,
    headers: &HeaderMap,
) -> Result<Response, LoginError> {
    let application = required_application(context, application).await?;
    let login_request = LoginRequest {
        version: &client_version(headers, context)?,
        application: &application,
        provider: parameters.optional("provider")?,
        hints: hints(context, parameters)?,
    };
    let return_to = parameters.optional("return_to")?;
    let challenge = parameters.of_form("code_challenge", Challenge::PATTERN, Challenge::decode)?;
    // Without it RFC 7636 means `plain`: here it is always S256, and a client that means another cannot begin.
    let is_s256 = |method: &str| (method == "S256").then_some(());
    parameters.of_form("code_challenge_method", "S256", is_s256)?;
    let ending = (return_to, challenge);
    if return_to.is_none() && info.wants_page {
        return Err(LoginError::NO_RETURN_TO);
    }
    let begun = flow::begin_redirect(&context.service, login_request, ending, info.wants_page);
    begun_response(context, headers, begun.await?)
}

/// 302, with the login's cookie.
fn begun_response(
    context: &Context,
    headers: &HeaderMap,
    redirect: Redirect,
) -> Result<Response, LoginError> {
    let Redirect { url, set_cookie } = redirect;
    Ok(with_cookie(
        context,
        headers,
        set_cookie,
        redirect_to(&url)?,
    ))
}

/// Adds the login's cookie; the oldest ones of too many go.
fn with_cookie(
    context: &Context,
    headers: &HeaderMap,
    set_cookie: HeaderValue,
    mut response: Response,
) -> Response {
    let removals = remove_oldest(headers, &context.service.config.public_url, &set_cookie);
    for cookie in [set_cookie].into_iter().chain(removals) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

/// The response to the browser whose login has ended.
fn outcome_response<V: Version>(
    info: &RequestInfo,
    outcome: BrowserOutcome,
) -> Result<Response, LoginError> {
    Ok(match outcome {
        BrowserOutcome::ReturnTo(url) => redirect_to(&url)?,
        BrowserOutcome::Result(result) => json(V::login_result(&result)),
        BrowserOutcome::Close(application) => pages::done(&application.name, info.language),
        BrowserOutcome::Finished(application, origin) => {
            pages::finished(&application.name, &origin, info.language)
        }
        BrowserOutcome::Cancelled => pages::cancelled(info.language),
        BrowserOutcome::TooLate(application) => {
            let page = pages::too_late(&application.name, info.language);
            (StatusCode::CONFLICT, page).into_response()
        }
        BrowserOutcome::TryAgain {
            state,
            application,
            back,
        } => pages::try_again(&application.name, &state, back.as_ref(), info.language),
        BrowserOutcome::Finishing => pages::finishing(info.language),
        BrowserOutcome::Problem(problem) => problem.into_response(),
    })
}

/// What goes on to the provider. Parameters that no provider is sent are ignored, as all that are unknown.
fn hints(context: &Context, parameters: &Parameters) -> Result<Hints, LoginError> {
    let mut hints = Hints::default();
    let named = parameters.optional("provider")?;
    for parameter in PassedOn::ALL {
        if !context.service.providers.pass_on(named, parameter) {
            continue;
        }
        let Some(value) = parameters.optional(parameter.as_str())? else {
            continue;
        };
        let (is_valid, rule) = match parameter {
            PassedOn::Prompt => (
                PROMPTS.contains(&value),
                ParamRule::Values(PROMPTS.join(", ")),
            ),
            PassedOn::LoginHint => (
                (1..=Hints::MAX_LOGIN_HINT).contains(&value.len())
                    && !value.chars().any(char::is_control),
                ParamRule::Values(format!(
                    "[^\\x00-\\x1f\\x7f-\\x9f]{{1,{}}}",
                    Hints::MAX_LOGIN_HINT
                )),
            ),
        };
        if !is_valid {
            let name = parameter.as_str();
            return Err(LoginError::ParamInvalid { name, rule });
        }
        hints.add(parameter, value);
    }
    Ok(hints)
}

/// 302, as CONTRACT 8 requires: the browser follows by GET.
fn redirect_to(url: &Url) -> Result<Response, LoginError> {
    let location = HeaderValue::from_str(url.as_str());
    let location = location.map_err(|_| LoginError::Internal {
        what: "a parsed URL is not a valid header value",
    })?;
    Ok((StatusCode::FOUND, [(LOCATION, location)]).into_response())
}

/// `POST /login` (`provider`, `prompt`, `login_hint`): begins a polling login. No other response contains the token.
pub(crate) async fn begin_polling<V: Version>(
    State(context): State<Context>,
    ClaimedApplication { application, .. }: ClaimedApplication,
    info: RequestInfo,
    headers: HeaderMap,
    parameters: Parameters,
) -> Result<Response, LoginError> {
    let service = &context.service;
    let login_request = LoginRequest {
        version: &client_version(&headers, &context)?,
        application: &application,
        provider: parameters.optional("provider")?,
        hints: hints(&context, &parameters)?,
    };
    let begun = flow::begin_polling(service, login_request, info.client_address);
    Ok(json(V::polling_login(begun.await?)))
}
