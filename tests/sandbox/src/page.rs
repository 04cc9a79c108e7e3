//! The provider's two pages: plain HTML with a form, no script.

use crate::{parameters::Parameters, provider::Provider, user::User};

/// Pick a user, then Allow or Deny. The form posts the request's parameters back to the page's own address.
#[must_use]
pub fn choose_user(provider: &Provider, request: &Parameters) -> String {
    let hidden: String = request
        .iter()
        .map(|(name, value)| {
            format!(
                "<input type=\"hidden\" name=\"{}\" value=\"{}\">\n",
                escape(name),
                escape(value)
            )
        })
        .collect();
    let healthy: String = User::healthy()
        .iter()
        .enumerate()
        .map(|(index, user)| choice(user, index == 0))
        .collect();
    let faulty = choices(&User::faulty());
    let refused = choices(&User::refused());
    let untrusted = match provider.shape.openid() {
        Some(_) => format!(
            "<fieldset><legend>Faults of the ID token</legend>\n{}</fieldset>",
            choices(&User::untrusted())
        ),
        None => String::new(),
    };
    let client = escape(&provider.settings.client_id);
    let action = format!(
        "{}{}",
        provider.shape.prefix(),
        provider.shape.paths().authorize
    );
    document(
        "Sign in",
        &format!(
            "<h1>Sign in to the sandbox</h1>
<p><strong>{client}</strong> asks who you are. There is no password: pick any user.</p>
<form method=\"post\" action=\"{action}\">
{hidden}<fieldset><legend>Users</legend>
{healthy}</fieldset>
<label class=\"other\">Or a custom user
<input type=\"text\" name=\"other\" placeholder=\"any:name\" autocomplete=\"off\"></label>
<details><summary>Users with a provider fault</summary>
<fieldset><legend>Faults</legend>
{faulty}</fieldset>
<fieldset><legend>Errors instead of a code</legend>
{refused}</fieldset>
{untrusted}</details>
<div class=\"buttons\">
<button type=\"submit\" name=\"decision\" value=\"allow\" class=\"allow\">Allow</button>
<button type=\"submit\" name=\"decision\" value=\"deny\">Deny</button>
</div>
</form>"
        ),
    )
}

/// An error that must not be sent to the client.
#[must_use]
pub fn problem(reason: &str) -> String {
    document(
        "Cannot sign in",
        &format!(
            "<h1>This sign-in cannot continue</h1>\n<p>{}</p>",
            escape(reason)
        ),
    )
}

fn choices(users: &[User]) -> String {
    users.iter().map(|user| choice(user, false)).collect()
}

fn choice(user: &User, is_first: bool) -> String {
    let checked = if is_first { " checked" } else { "" };
    format!(
        "<label><input type=\"radio\" name=\"user\" value=\"{name}\"{checked}> {display} \
         <small>{name}</small></label>\n",
        name = escape(&user.name),
        display = escape(&user.display_name),
    )
}

fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<link rel=\"icon\" href=\"data:,\">
<title>{title} – sandbox provider</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<p class=\"banner\">Sandbox provider: for demos and tests, never for production</p>
{body}
</main>
</body>
</html>
"
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

const STYLE: &str = "
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0; background: #f1f2f5; color: #1c2330; }
main { max-width: 26rem; margin: 6vh auto; padding: 1.5rem 2rem 2rem; background: #fff;
  border-radius: .75rem; box-shadow: 0 2px 12px #0002; }
.banner { margin: 0; font-size: .75rem; letter-spacing: .02em; color: #8a5a00; }
h1 { margin: .5rem 0; font-size: 1.4rem; }
fieldset { border: 1px solid #8884; border-radius: .5rem; margin: 1rem 0; }
fieldset label { display: block; padding: .2rem 0; }
small { color: #778; margin-left: .35rem; }
.other { display: block; }
.other input { box-sizing: border-box; width: 100%; padding: .5rem; margin-top: .25rem; font: inherit;
  border: 1px solid #8886; border-radius: .4rem; background: transparent; color: inherit; }
details { margin: 1rem 0; }
.buttons { display: flex; gap: .75rem; margin-top: 1.25rem; }
button { flex: 1; padding: .6rem; font: inherit; border: 1px solid #8886; border-radius: .5rem;
  background: transparent; color: inherit; cursor: pointer; }
.allow { background: #1b6; border-color: #1b6; color: #fff; font-weight: 600; }
@media (prefers-color-scheme: dark) {
  body { background: #14171d; color: #e8eaf0; } main { background: #1f242d; }
  .banner { color: #e0b050; } small { color: #99a; } }
";
