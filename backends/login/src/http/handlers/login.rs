//! `GET /login`, each step of a login in the browser, and `POST /login`. CONTRACT 8.

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, HeaderValue, StatusCode, Uri,
    header::{LOCATION, SET_COOKIE},
};
use signpost_protocol::{app::AppId, challenge::Challenge, language::Language};
use url::Url;

use super::json;
use crate::{
    config::PassedOn,
    error::LoginError,
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
    let browser = Browser {
        context: &context,
        info: &info,
        headers: &headers,
    };
    // By the query alone, as the gateway tells a callback, which it lets pass unsigned.
    let Some(parameters) = Parameters::of_callback(uri.query().unwrap_or_default()) else {
        return browser.begin(application, &parameters?).await;
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
    browser.response::<V>(step)
}

/// Writes the responses to a browser's request.
struct Browser<'r> {
    context: &'r Context,
    info: &'r RequestInfo,
    headers: &'r HeaderMap,
}

impl Browser<'_> {
    /// `GET /login` (`provider`, `return_to`, `prompt`, `login_hint`): redirects the browser to the provider, or to the page
    /// where the user chooses one.
    async fn begin(
        &self,
        application: Option<AppId>,
        parameters: &Parameters,
    ) -> Result<Response, LoginError> {
        let Self { context, info, .. } = self;
        let application = required_application(context, application).await?;
        let login_request = LoginRequest {
            version: &client_version(self.headers, context)?,
            application: &application,
            provider: parameters.optional("provider")?,
            hints: hints(context, parameters)?,
        };
        let return_to = parameters.optional("return_to")?;
        let challenge =
            parameters.of_form("code_challenge", Challenge::PATTERN, Challenge::decode)?;
        // Without it RFC 7636 means `plain`: here it is always S256, and a client that means another cannot begin.
        let is_s256 = |method: &str| (method == "S256").then_some(());
        parameters.of_form("code_challenge_method", "S256", is_s256)?;
        let ending = (return_to, challenge);
        if return_to.is_none() && info.wants_page {
            return Err(LoginError::NO_RETURN_TO);
        }
        let begun = flow::begin_redirect(&context.service, login_request, ending, info.wants_page);
        self.begun(begun.await?)
    }

    /// The response to a step of a login.
    fn response<V: Version>(&self, step: BrowserStep) -> Result<Response, LoginError> {
        let language = self.info.language;
        match step {
            BrowserStep::Page(page) => {
                let response = pages::login(&page, language);
                Ok(match page.polling {
                    Some(polling) => self.with_cookie(polling.set_cookie, response),
                    None => response,
                })
            }
            BrowserStep::Redirect(redirect) => self.begun(redirect),
            BrowserStep::Again(url) => redirect_to(&url),
            BrowserStep::Finished(outcome, set_cookie) => {
                let mut response = outcome_response::<V>(outcome, language)?;
                let set_cookie = set_cookie.map(|set_cookie| (SET_COOKIE, set_cookie));
                response.headers_mut().extend(set_cookie);
                Ok(response)
            }
        }
    }

    /// 302, with the login's cookie.
    fn begun(&self, Redirect { url, set_cookie }: Redirect) -> Result<Response, LoginError> {
        Ok(self.with_cookie(set_cookie, redirect_to(&url)?))
    }

    /// Adds the login's cookie; the oldest ones of too many go.
    fn with_cookie(&self, set_cookie: HeaderValue, mut response: Response) -> Response {
        let public_url = &self.context.service.config.public_url;
        let removals = remove_oldest(self.headers, public_url, &set_cookie);
        for cookie in [set_cookie].into_iter().chain(removals) {
            // Appended: each cookie needs a line of its own (RFC 6265 section 3).
            response.headers_mut().append(SET_COOKIE, cookie);
        }
        response
    }
}

/// The response to the browser whose login has ended.
fn outcome_response<V: Version>(
    outcome: BrowserOutcome,
    language: Language,
) -> Result<Response, LoginError> {
    Ok(match outcome {
        BrowserOutcome::ReturnTo(url) => redirect_to(&url)?,
        BrowserOutcome::Result(result) => json(V::login_result(&result)),
        BrowserOutcome::Close(application) => pages::done(&application.name, language),
        BrowserOutcome::Finished(application, origin) => {
            pages::finished(&application.name, &origin, language)
        }
        BrowserOutcome::Cancelled => pages::cancelled(language),
        BrowserOutcome::TooLate(application) => {
            let page = pages::too_late(&application.name, language);
            (StatusCode::CONFLICT, page).into_response()
        }
        BrowserOutcome::TryAgain {
            state,
            application,
            back,
        } => pages::try_again(&application.name, &state, back.as_ref(), language),
        BrowserOutcome::Finishing => pages::finishing(language),
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
        let name = parameter.as_str();
        let value = match parameter {
            PassedOn::Prompt => parameters.of_form(name, &PROMPTS.join(", "), |value| {
                PROMPTS.contains(&value).then(|| value.to_owned())
            })?,
            PassedOn::LoginHint => {
                let max = Hints::MAX_LOGIN_HINT;
                let pattern = format!("[^\\x00-\\x1f\\x7f-\\x9f]{{1,{max}}}");
                parameters.of_form(name, &pattern, |value| {
                    let is_valid =
                        (1..=max).contains(&value.len()) && !value.chars().any(char::is_control);
                    is_valid.then(|| value.to_owned())
                })?
            }
        };
        if let Some(value) = value {
            hints.add(parameter, value);
        }
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
