//! Parameters, and the values of `time` and `sign`.

use signpost_protocol::param::{Param, Params, ParamsError};
use signpost_protocol::sign::{Sign, SignTime};

use crate::{
    naive::params::{self as naive, Pair},
    query_and_body,
};

/// Limits on pairs: the configuration's default, and one that inputs exceed.
const LIMITS: [usize; 2] = [256, 3];

/// Compares the pairs of a query and a form body.
///
/// # Panics
///
/// When two results differ.
pub fn params(input: &[u8]) -> bool {
    let (query, body) = query_and_body(input);
    LIMITS.map(|limit| are_valid(query, body, limit))[0]
}

fn are_valid(query: &[u8], body: &[u8], limit: usize) -> bool {
    let expected = naive::read(query, body, limit);
    match (Params::parse(query, body, limit), expected) {
        (Ok(params), Ok(expected)) => {
            assert_same(&params, &expected);
            true
        }
        (Err(ParamsError::Malformed), Err(naive::Fault::Malformed))
        | (Err(ParamsError::TooMany), Err(naive::Fault::TooMany)) => false,
        (params, expected) => panic!("{params:?} instead of {expected:?}"),
    }
}

fn assert_same(params: &Params<'_>, expected: &[Pair]) {
    let pair = |param: &Param<'_>| Pair {
        wire_key: param.wire_key().to_vec(),
        wire_value: param.wire_value().to_vec(),
        key: String::from_utf8(param.key().to_vec()).expect("a decoded key is text"),
        value: String::from_utf8(param.value().to_vec()).expect("a decoded value is text"),
    };
    assert_eq!(params.iter().map(pair).collect::<Vec<_>>(), expected);
    assert_eq!(params.is_empty(), expected.is_empty());
    for key in expected
        .iter()
        .map(|pair| &pair.key[..])
        .chain(["time", "sign", ""])
    {
        let of_this_key: Vec<_> = expected.iter().filter(|pair| pair.key == key).collect();
        match (params.single(key), &of_this_key[..]) {
            (Ok(Some(param)), [one]) => assert_eq!(&pair(param), *one, "the one {key:?}"),
            (Ok(None), []) | (Err(_), [_, _, ..]) => {}
            (single, _) => panic!("{key:?}: {single:?} instead of {of_this_key:?}"),
        }
    }
    for param in params.iter() {
        assert_time(&param.value());
        assert_sign(&param.value());
    }
}

/// Compares a `time`: more than ten decimal digits that fit a `u64`, but not 19.
fn assert_time(value: &[u8]) {
    let is_digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let number: Option<u64> = std::str::from_utf8(value)
        .ok()
        .and_then(|digits| digits.parse().ok());
    let number = number.filter(|_| is_digits && value.len() > 10 && value.len() != 19);
    let time = SignTime::try_from(value);
    let shown = value.escape_ascii();
    assert_eq!(time.ok().map(SignTime::as_millis), number, "{shown}");
}

/// Compares a `sign`: 32 or 64 hex digits in either case.
fn assert_sign(value: &[u8]) {
    let expected = hex::decode(value)
        .ok()
        .filter(|bytes| [16, 32].contains(&bytes.len()));
    let sign = Sign::from_hex(value);
    assert_eq!(sign.map(|sign| sign.as_bytes().to_vec()), expected);
}
