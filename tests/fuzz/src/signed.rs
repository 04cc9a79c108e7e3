//! Signatures in headers: what is accepted is what an independent signer signs.

use std::{env, fs, sync::OnceLock};

use sha2::{Digest, Sha256};
use signpost_kit::{
    clock::{Clock as _, SystemClock},
    server::descriptors::Descriptors,
};
use signpost_protocol::sign::SignAlgorithm;
use signpost_proxy::{
    StepName, examine,
    measured::{AppDirectory, Applications, Config, Gateway, State},
};
use tokio::runtime::{Builder, Runtime};

use crate::{
    naive::{
        canonical::sign,
        chunked,
        head::{self, Framing, Head, Limits},
    },
    query_and_body,
};

const KEY: &str = "4283fefc63f0cd0e873a0000c6d07ef7";

/// As the configuration's defaults.
const LIMITS: Limits = Limits {
    bytes: 32 * 1024,
    fields: 100,
    query: 8 * 1024,
};

/// Signs the request in the input by its naive reading, by the settings in the first line: carrier and algorithm, and what
/// becomes of the signature. Then compares what the gateway says of it with what it says itself.
///
/// # Panics
///
/// When the gateway accepts another signature than the signer's, or refuses the signer's own.
pub fn signed(input: &[u8]) -> bool {
    let (settings, request) = query_and_body(input);
    let setting = |index| usize::from(settings.get(index).map_or(0, |byte| byte % 4));
    let (name, gateway) = &gateways()[setting(0) % 3];
    let algorithm = match *name {
        "md5" => SignAlgorithm::Md5,
        _ => SignAlgorithm::HmacSha256,
    };
    let Ok(Some(unsigned)) = head::read(request, &LIMITS) else {
        return false;
    };
    let now = SystemClock.now().as_millis().to_string();
    let with = |further: &str| {
        let (head, body) = request.split_at(unsigned.length);
        [&head[..head.len() - 2], further.as_bytes(), b"\r\n", body].concat()
    };
    let with_time = with(&format!("acme-x-time: {now}\r\n"));
    let sent = match (setting(1), text(&with_time)) {
        (0, _) | (_, None) => with_time,
        (1, Some(text)) => {
            let sign = sign(algorithm, KEY, &keyed(algorithm, text));
            with(&format!("acme-x-time: {now}\r\nacme-x-sign: {sign}\r\n"))
        }
        (2, Some(text)) => {
            let sign = sign(algorithm, KEY, &keyed(algorithm, text));
            with(&format!(
                "Acme-X-Sign: {}\r\nAcme-X-Time: {now}\r\n",
                sign.to_uppercase()
            ))
        }
        (_, Some(text)) => {
            let sign = sign(algorithm, KEY, &[&text[..], b"\n"].concat());
            with(&format!("acme-x-time: {now}\r\nacme-x-sign: {sign}\r\n"))
        }
    };
    let examined = runtime().block_on(examine(gateway, &sent, None));
    let mut steps = examined.steps.iter();
    let Some((_, rejection)) = steps.find(|(step, _)| *step == StepName::Sign) else {
        return false;
    };
    let head = head::read(&sent, &LIMITS).expect("the gateway has read it");
    let head = head.expect("the gateway has read it");
    let [time, given, nonce] = ["time", "sign", "nonce"].map(|name| values(&head, name));
    for values in [&time, &given, &nonce] {
        assert!(values.len() < 2, "one of two was chosen");
    }
    let text = text(&sent).expect("its body was read");
    let known = sign(algorithm, KEY, &keyed(algorithm, text));
    let given = given.first().copied().unwrap_or_default();
    let is_right = given.eq_ignore_ascii_case(known.as_bytes());
    if given.is_empty() {
        // Without any of what must be signed, or by its parameters.
        return false;
    }
    // Without a time its step rejects, and beside some bodies that of the signature.
    assert!(is_right || rejection.is_some(), "another signature");
    assert!(
        !is_right || rejection.is_none() || time.is_empty(),
        "{rejection:?}"
    );
    is_right
}

/// The gateways of the three ways to sign in headers.
fn gateways() -> &'static [(&'static str, Gateway); 3] {
    static GATEWAYS: OnceLock<[(&str, Gateway); 3]> = OnceLock::new();
    GATEWAYS.get_or_init(|| {
        ["headers", "both", "md5"].map(|name| {
            let (carrier, algorithm) = match name {
                "md5" => ("headers", "md5"),
                carrier => (carrier, "hmac-sha256"),
            };
            let file = env::temp_dir().join(format!("signpost-fuzz-{}-{name}", std::process::id()));
            let toml = format!(
                "prefix = 'Acme'\n[application]\nkey = '{KEY}'\n[sign]\ncarrier = '{carrier}'\n\
                 algorithm = '{algorithm}'\n[versions.v1]\nbackend = '127.0.0.1:1'\nbodies = 'any'\n\
                 paths = 'as_sent'\nmethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']\n"
            );
            fs::write(&file, toml).expect("temporary files can be written");
            let config = Config::load(&file).expect("it is valid");
            fs::remove_file(&file).expect("it was written");
            let Applications::Single(key) = &config.applications else {
                unreachable!("it has one application")
            };
            let apps = AppDirectory::single(key.clone());
            let state = State::new(&apps, Descriptors::raise_limit());
            (name, Gateway::new(config, apps, state).expect("it is valid"))
        })
    })
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let built = Builder::new_current_thread().enable_all().build();
        built.expect("the system has what it needs")
    })
}

/// The text that is signed: CONTRACT 3. `None` if the body is not whole, or a header of it is there twice.
fn text(request: &[u8]) -> Option<Vec<u8>> {
    let head = head::read(request, &LIMITS).ok()??;
    let rest = &request[head.length..];
    let body = match head.framing {
        Framing::None => Vec::new(),
        Framing::Length(length) => rest.get(..usize::try_from(length).ok()?)?.to_vec(),
        Framing::Chunked => {
            let reading = chunked::read(rest);
            matches!(reading.end, chunked::End::Whole(_)).then_some(reading.data)?
        }
    };
    let value = |name| match values(&head, name)[..] {
        [] => Some(&b""[..]),
        [value] => Some(value),
        _ => None,
    };
    let target = head.request_line.split(|byte| *byte == b' ').nth(1)?;
    let hash = hex::encode(Sha256::digest(body));
    let lines = [
        head.method,
        target,
        value("time")?,
        value("nonce")?,
        hash.as_bytes(),
    ];
    Some(lines.join(&b'\n'))
}

fn keyed(algorithm: SignAlgorithm, text: Vec<u8>) -> Vec<u8> {
    match algorithm {
        SignAlgorithm::Md5 => [&text[..], b"\n", KEY.as_bytes()].concat(),
        SignAlgorithm::HmacSha256 => text,
    }
}

/// The values of a header, unless `Connection` names it.
fn values<'a>(head: &Head<'a>, name: &str) -> Vec<&'a [u8]> {
    let name = format!("acme-x-{name}");
    let of = |name: &str| {
        let fields = head.fields.iter();
        let named = fields.filter(|(field, _)| field.eq_ignore_ascii_case(name.as_bytes()));
        named.map(|(_, value)| *value).collect::<Vec<_>>()
    };
    let mut options = of("connection")
        .into_iter()
        .flat_map(|value| value.split(|byte| *byte == b','));
    match options.any(|option| option.trim_ascii().eq_ignore_ascii_case(name.as_bytes())) {
        true => Vec::new(),
        false => of(&name),
    }
}
