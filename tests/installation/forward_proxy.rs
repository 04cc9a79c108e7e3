//! Calls to a provider by a forward proxy: `[outgoing]`, and the variables of the environment. Only the proxy knows the name of
//! the provider.

use end_to_end::{
    forward_proxy::ForwardProxy,
    logins::log_in_by_redirect,
    port::free_address,
    program::{Program, output_text},
    stack::Stack,
};
use tokio::process::Command;

/// Of `me:hush`.
const BASIC: &str = "Basic bWU6aHVzaA==";

/// A stack whose v1 calls a provider that it cannot find by itself. Browsers can.
const PROVIDER: &str = "[providers.bitbucket]\nkind = \"bitbucket\"\nurl = \"http://provider.test\"\n\
    client_id = \"signpost-demo\"\nclient_secret = \"sandbox-only-secret\"\n\
    allow_sandbox = true\nauthorize_url = \"http://$PROVIDER/site/oauth2/authorize\"\n";

/// A stack, and a proxy with a password before its provider.
async fn start() -> (Stack, ForwardProxy) {
    let stack = Stack::builder()
        .program(Program::V1, PROVIDER)
        .start()
        .await;
    let provider = stack.addresses().provider;
    let proxy = ForwardProxy::start(&[("provider.test", provider)], Some(BASIC)).await;
    (stack, proxy)
}

fn reload(stack: &Stack, outgoing: &str) {
    stack.configure(Program::V1, &format!("[outgoing]\n{outgoing}"));
    let reloaded = stack.reload(Program::V1);
    assert!(reloaded.status.success(), "{}", output_text(&reloaded));
}

/// What asking the provider shows, with these variables, and whether all is well.
async fn check(stack: &Stack, variables: &[(&str, &str)]) -> (bool, String) {
    let mut command = Command::new(Program::V1.path());
    command.args(["check", "--online", "--config"]);
    command.arg(stack.config(Program::V1));
    for name in ["HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"] {
        command.env_remove(name);
    }
    let output = command
        .envs(variables.iter().copied())
        .output()
        .await
        .unwrap();
    (output.status.success(), output_text(&output))
}

#[tokio::test]
async fn a_user_logs_in_by_the_proxy_of_the_key() {
    let (stack, mut proxy) = start().await;
    let address = proxy.address();
    reload(&stack, &format!("proxy = \"http://me:hush@{address}\""));
    let login = log_in_by_redirect(&stack.client(), "ada").await;
    assert_eq!(login["account"]["display_name"], "Ada Lovelace");
    let requests = proxy.requests();
    assert_eq!(
        requests[0],
        "POST http://provider.test/site/oauth2/access_token HTTP/1.1"
    );
    assert!(
        requests[1].starts_with("GET http://provider.test/2.0/user"),
        "{requests:?}"
    );

    // Another password.
    reload(&stack, &format!("proxy = \"http://me:hash@{address}\""));
    let by_it =
        format!("the provider is unreachable by the proxy http://{address}/ (outgoing.proxy): ");
    let (is_well, rejected) = check(&stack, &[]).await;
    assert!(!is_well && rejected.contains(&by_it), "{rejected}");
    assert!(
        rejected.contains("407 Proxy Authentication Required"),
        "{rejected}"
    );

    // It is gone.
    proxy.end().await;
    let (is_well, gone) = check(&stack, &[]).await;
    assert!(!is_well && gone.contains(&by_it), "{gone}");
    assert!(gone.contains("Connection refused"), "{gone}");
    for text in [stack.log(Program::V1), rejected, gone] {
        assert!(!text.contains("hush") && !text.contains("hash"), "{text}");
    }
}

#[tokio::test]
async fn variables_name_a_proxy_unless_the_key_does() {
    let (stack, proxy) = start().await;
    let url = format!("http://me:hush@{}", proxy.address());
    let none = format!("http://{}", free_address());
    let by_it = ("HTTP_PROXY", &*url);
    for called in [vec![by_it], vec![("http_proxy", &*url)]] {
        let (is_well, text) = check(&stack, &called).await;
        assert!(is_well, "{called:?}: {text}");
    }
    let calls = proxy.requests().len();
    for direct in [
        vec![by_it, ("NO_PROXY", "example.org, provider.test")],
        vec![by_it, ("no_proxy", "*")],
        vec![by_it, ("REQUEST_METHOD", "GET")],
        vec![],
    ] {
        let (is_well, text) = check(&stack, &direct).await;
        assert!(!is_well, "{direct:?}: {text}");
        assert!(
            text.contains("the provider is unreachable: "),
            "{direct:?}: {text}"
        );
    }
    assert_eq!(proxy.requests().len(), calls);
    let key = format!("proxy = \"{url}\"\nno_proxy = [\"example.org\"]");
    reload(&stack, &key);
    let (is_well, text) = check(&stack, &[("HTTP_PROXY", &none), ("NO_PROXY", "*")]).await;
    assert!(is_well, "{text}");
    reload(&stack, "proxy = \"none\"");
    assert!(!check(&stack, &[by_it]).await.0);
}
