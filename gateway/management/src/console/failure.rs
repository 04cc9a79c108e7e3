//! What a page says when an operation fails: its problem.

use axum::response::{IntoResponse, Response};
use http::{StatusCode, header::RETRY_AFTER};
use maud::{Markup, html};

use super::{
    Console,
    links::session_ended,
    page::{Reader, page},
};
use crate::{
    administration::printable::printable,
    api::{ApiError, Code, Unchanged},
    operations::problem::{Problem, ProblemLine},
};

/// A page; or why it is not shown.
pub(super) type Page = Result<Response, Failure>;

/// An operation that failed, and for whom it was run.
#[derive(Debug)]
pub(super) struct Failure {
    /// The problem, RFC 9457.
    problem: Box<Problem>,
    /// Whether the operation surely changed nothing.
    is_unchanged: bool,
    reader: Reader,
}

impl Failure {
    /// Of an operation that failed.
    pub(super) fn of_call(error: &ApiError, id: &str, reader: Reader) -> Self {
        Self {
            problem: Box::new(error.problem(reader.language, id, None)),
            is_unchanged: error.is_unchanged(),
            reader: Reader {
                banner: Markup::default(),
                ..reader
            },
        }
    }

    fn status(&self) -> StatusCode {
        self.problem.code.status()
    }

    /// The same, with an id that the log has, too, if Signpost itself failed.
    pub(super) fn of_logged(console: &Console, error: &ApiError, reader: Reader) -> Self {
        let id = console.current.load().state.ids.next();
        error.log(id.as_str());
        Self::of_call(error, id.as_str(), reader)
    }

    /// Of an operation that was not run.
    pub(super) fn of_error(error: &ApiError, reader: Reader) -> Self {
        Self::of_call(error, "", reader)
    }

    /// No page has that path.
    pub(super) fn not_found(reader: Reader) -> Self {
        Self::of_error(&Code::NotFound.into(), reader)
    }

    /// The page does not accept the method, but these.
    pub(super) fn not_allowed(reader: Reader, methods: String) -> Self {
        let error = ApiError::from(Code::MethodNotAllowed);
        Self::of_error(&error.arg("methods", methods), reader)
    }

    /// A page of another site has sent a form.
    pub(super) fn cross_site(reader: Reader) -> Self {
        Self::of_error(&Code::CrossSite.into(), reader)
    }

    /// A bug of Signpost.
    pub(super) fn internal(reader: Reader) -> Self {
        Self::of_error(&Code::Internal.into(), reader)
    }

    pub(super) fn code(&self) -> &str {
        self.problem.code.as_str()
    }

    /// Itself, if the form can be filled in otherwise: then it is shown again.
    ///
    /// # Errors
    ///
    /// It is of another kind.
    pub(super) fn of_input(self) -> Result<Self, Self> {
        let is_of_input = self.status().is_client_error() && !self.needs_sign_in();
        if is_of_input { Ok(self) } else { Err(self) }
    }

    /// The session's token has ended.
    pub(super) fn needs_sign_in(&self) -> bool {
        self.status() == StatusCode::UNAUTHORIZED
    }

    /// The problem, for a page that has more to say.
    pub(super) fn banner(&self) -> Markup {
        html! { div.problem role="alert" { h2 { (self.problem.title) } (self.text()) } }
    }

    /// What is said below its title.
    fn text(&self) -> Markup {
        let (problem, lines) = (&self.problem, self.problem.lines());
        html! {
            p { (problem.detail) }
            @if self.code() == "revision_stale" { p { (self.reader.text("console_stale")) } }
            @if !lines.is_empty() { ul.lines { @for line in lines.iter().take(100) { li { (shown(line)) } } } }
            p.quiet {
                (self.reader.text("console_problem_code")) " " code { (self.code()) }
                @if !problem.request_id.is_empty() {
                    " · " (self.reader.text("console_field_request_id")) " " code { (problem.request_id) }
                }
            }
        }
    }

    /// The page of a form that was not accepted, with the problem's status.
    pub(super) fn with_page(&self, page: Response) -> Response {
        let mut response = (self.status(), page).into_response();
        if self.is_unchanged {
            response.extensions_mut().insert(Unchanged);
        }
        response
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        if self.needs_sign_in() {
            return session_ended();
        }
        let content = html! {
            div.problem role="alert" { (self.text()) }
            p { a href="/" { (self.reader.text("console_problem_back")) } }
        };
        let mut response = self.with_page(page(&self.reader, None, &self.problem.title, &content));
        if self.status() == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, 1.into());
        }
        response
    }
}

/// A line of a problem that has several, for example of a file.
fn shown(line: &ProblemLine) -> Markup {
    html! {
        @match line {
            ProblemLine::Text(text) => (printable(text)),
            ProblemLine::OfKey { line, key, text } => {
                @if let Some(line) = line { (line) ": " }
                code { (printable(key)) } " " (printable(text))
            }
        }
    }
}
