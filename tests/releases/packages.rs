//! Each client library's package: built, installed in a project of its own, and called at a gateway. `package-test` of each
//! folder of `gateway/clients` does it. The library for Bash is one file.

use std::{env, process::Command};

use end_to_end::{
    client_library::library,
    program::output_text,
    stack::{APP_KEY, Stack},
};
use tokio::task::spawn_blocking;

async fn test_package(language: &'static str) {
    let stack = Stack::start().await;
    let mut command = Command::new(library(language).join("package-test"));
    command
        .env("SIGNPOST_URL", stack.origin())
        .env("SIGNPOST_APP_KEY", APP_KEY);
    let output = spawn_blocking(move || command.output()).await.unwrap();
    let output = output.unwrap();
    let text = output_text(&output);
    assert!(output.status.success(), "{language}: {text}");
    assert!(output.stdout.ends_with(b"ok\n"), "{language}: {text}");
}

#[tokio::test]
async fn the_package_for_python_works() {
    // pip gets what builds the package, unless `scripts/test` has reported that there is no registry.
    if env::var_os("SIGNPOST_TEST_WITHOUT_FRAMEWORKS").is_none() {
        test_package("python").await;
    }
}

macro_rules! languages {
    ($($test:ident $language:literal,)*) => {$(
        #[tokio::test]
        async fn $test() {
            test_package($language).await;
        }
    )*};
}

languages! {
    the_package_for_javascript_works "javascript",
    the_package_for_go_works "go",
    the_package_for_java_works "java",
    the_package_for_php_works "php",
    the_package_for_csharp_works "csharp",
}
