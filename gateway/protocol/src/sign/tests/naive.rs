//! Parameters and canonical string, compared with a naive implementation of the contract's rules on random requests.

use super::*;
use crate::param::ParamsError;

/// One pair, as the contract defines it.
struct Pair {
    wire_key: Vec<u8>,
    wire_value: Vec<u8>,
    key: String,
    value: String,
}

fn pairs(query: &[u8], body: &[u8], limit: usize) -> Result<Vec<Pair>, ParamsError> {
    let mut pairs = Vec::new();
    let sources = query
        .split(|byte| *byte == b'&')
        .chain(body.split(|byte| *byte == b'&'));
    for pair in sources.filter(|pair| !pair.is_empty()) {
        if pairs.len() == limit {
            return Err(ParamsError::TooMany);
        }
        let mut halves = pair.splitn(2, |byte| *byte == b'=');
        let wire_key = halves.next().unwrap_or_default().to_vec();
        let wire_value = halves.next().unwrap_or_default().to_vec();
        pairs.push(Pair {
            key: decoded(&wire_key)?,
            value: decoded(&wire_value)?,
            wire_key,
            wire_value,
        });
    }
    Ok(pairs)
}

fn decoded(wire: &[u8]) -> Result<String, ParamsError> {
    let mut bytes = Vec::new();
    let mut index = 0;
    while index < wire.len() {
        match wire[index] {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits = wire.get(index + 1..index + 3);
                let byte = hex::decode(digits.ok_or(ParamsError::Malformed)?);
                bytes.extend(byte.map_err(|_| ParamsError::Malformed)?);
                index += 2;
            }
            byte => bytes.push(byte),
        }
        index += 1;
    }
    String::from_utf8(bytes).map_err(|_| ParamsError::Malformed)
}

fn canonical(profile: &SignProfile, key: &str, path: &str, pairs: &[Pair]) -> Vec<u8> {
    let mut signed: Vec<&Pair> = pairs
        .iter()
        .filter(|pair| pair.key != "sign" && !profile.leave_out.contains(&pair.key))
        .filter(|pair| profile.empty == SignEmpty::Keep || !pair.wire_value.is_empty())
        .collect();
    signed.sort_by(|one, other| one.key.as_bytes().cmp(other.key.as_bytes()));
    let (between, inside): (&[u8], &[u8]) = match profile.layout {
        SignLayout::Pairs | SignLayout::PairsKey => (b"&", b"="),
        SignLayout::Concat | SignLayout::ConcatBoth => (b"", b""),
    };
    let written: Vec<Vec<u8>> = signed
        .iter()
        .map(|pair| match profile.values {
            SignValues::Wire => [&pair.wire_key[..], inside, &pair.wire_value[..]].concat(),
            SignValues::Decoded => [pair.key.as_bytes(), inside, pair.value.as_bytes()].concat(),
        })
        .collect();
    let written = written.join(between);
    let head = match profile.cover {
        SignCover::Parameters => Vec::new(),
        SignCover::Request => format!("POST\n{path}\n").into_bytes(),
    };
    let (front, label, end) = match (profile.algorithm, profile.layout) {
        (_, SignLayout::PairsKey) if written.is_empty() => ("", "key=", key),
        (_, SignLayout::PairsKey) => ("", "&key=", key),
        (SignAlgorithm::HmacSha256, _) => ("", "", ""),
        (SignAlgorithm::Md5, SignLayout::ConcatBoth) => (key, "", key),
        (SignAlgorithm::Md5, SignLayout::Pairs | SignLayout::Concat) => ("", "", key),
    };
    let parts = [&head[..], front.as_bytes(), &written];
    [&parts.concat(), label.as_bytes(), end.as_bytes()].concat()
}

/// `SplitMix64`: the same requests on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// A form of up to `max_pairs` pairs, some of them unusual.
    fn form(&mut self, max_pairs: usize, may_be_malformed: bool) -> Vec<u8> {
        const KEYS: [&str; 21] = [
            "a",
            "b",
            "A",
            "",
            "time",
            "sign",
            "%73ign",
            "signs",
            "sig",
            "sign_type",
            "abcdefgh",
            "abcdefgh%69",
            "abcdefghi",
            "abcdefg",
            "abcdefgi",
            "a%00",
            "a+b",
            "a%20b",
            "%e5%bc%a0",
            "张",
            "\u{7f}",
        ];
        const PIECES: [&str; 16] = [
            "1",
            "x",
            "=",
            "+",
            "%2B",
            "%26",
            "%3d",
            "%00",
            "%7E",
            "%e5%bc%a0",
            "张",
            "é",
            "!,*$",
            "0123456789abcdef",
            "%F0%9F%98%80",
            "😀",
        ];
        const MALFORMED: [&[u8]; 7] = [b"%", b"%4", b"%zz", b"%ff", b"\xe5", b"%e5%bc", b"\xff"];
        let mut form = Vec::new();
        for _ in 0..self.below(max_pairs + 1) {
            form.extend(self.one_of(&KEYS).as_bytes());
            if self.below(8) > 0 {
                form.push(b'=');
            }
            // Sometimes longer than any internal buffer.
            let pieces = self.one_of(&[0, 1, 1, 2, 3, 5, 8, 100]);
            for _ in 0..pieces {
                form.extend(self.one_of(&PIECES).as_bytes());
                if may_be_malformed && self.below(40) == 0 {
                    form.extend(self.one_of(&MALFORMED));
                }
            }
            form.extend(self.one_of(&["&", "&", "&", "&&"]).as_bytes());
        }
        if self.below(2) == 0 {
            form.pop();
        }
        form
    }

    fn profile(&mut self) -> SignProfile {
        SignProfile {
            values: self.one_of(&[SignValues::Wire, SignValues::Decoded]),
            layout: self.one_of(&SignLayout::ALL),
            empty: self.one_of(&[SignEmpty::Keep, SignEmpty::Drop]),
            leave_out: self
                .one_of::<&[&str]>(&[&[], &[], &["sign_type"], &["a", "abcdefghi", "张"]])
                .iter()
                .map(ToString::to_string)
                .collect(),
            cover: self.one_of(&[SignCover::Parameters, SignCover::Request]),
            algorithm: self.one_of(&[SignAlgorithm::Md5, SignAlgorithm::HmacSha256]),
            replay: ReplayPolicy::Allow,
            ..SignProfile::default()
        }
    }
}

fn check(random: &mut Random, query: &[u8], body: &[u8], limit: usize) -> bool {
    let shown_request = || format!("{} | {}", query.escape_ascii(), body.escape_ascii());
    let params = Params::parse(query, body, limit);
    let pairs = match pairs(query, body, limit) {
        Ok(pairs) => pairs,
        Err(error) => {
            assert_eq!(params, Err(error), "{}", shown_request());
            return false;
        }
    };
    let params = params.unwrap_or_else(|error| panic!("{error}: {}", shown_request()));
    assert_eq!(params.iter().len(), pairs.len(), "{}", shown_request());
    for (param, pair) in params.iter().zip(&pairs) {
        assert_eq!(param.wire_key(), pair.wire_key, "{}", shown_request());
        assert_eq!(param.wire_value(), pair.wire_value, "{}", shown_request());
        assert_eq!(param.key(), pair.key.as_bytes(), "{}", shown_request());
        assert_eq!(
            *param.value(),
            *pair.value.as_bytes(),
            "{}",
            shown_request()
        );
        let of_this_key = pairs.iter().filter(|other| other.key == pair.key).count();
        assert_eq!(
            params.single(&pair.key).is_ok(),
            of_this_key == 1,
            "{}",
            shown_request()
        );
    }
    let (profile, path) = (random.profile(), "/event/send");
    let shown = canonical_for_display(&profile, "POST", path, &params);
    let expected = canonical(&profile, "<APP_KEY>", path, &pairs);
    assert_eq!(
        shown.escape_ascii().to_string(),
        expected.escape_ascii().to_string(),
        "{profile:?} {}",
        shown_request()
    );
    let string = canonical(&profile, KEY, path, &pairs);
    let hashed = match profile.algorithm {
        SignAlgorithm::Md5 => hex::encode(Md5::digest(&string)),
        SignAlgorithm::HmacSha256 => {
            let mut hash = Hmac::<Sha256>::new_from_slice(KEY.as_bytes()).unwrap();
            Mac::update(&mut hash, &string);
            hex::encode(hash.finalize().into_bytes())
        }
    };
    let sign = sign(&profile, &key(), "POST", path, &params);
    assert_eq!(sign.to_hex(), hashed, "{profile:?} {}", shown_request());
    assert!(
        Sign::from_hex(hashed.to_uppercase().as_bytes()).is_some_and(|same| same.matches(&sign))
    );
    true
}

#[test]
fn random_requests_are_parsed_and_signed_according_to_the_contract() {
    let mut random = Random(1);
    let mut good = 0;
    for round in 0..6_000 {
        let may_be_malformed = round % 8 == 0;
        let max_pairs = random.one_of(&[1, 3, 6, 20]);
        let query = random.form(max_pairs, may_be_malformed);
        let body = random.form(max_pairs, may_be_malformed);
        let limit = random.one_of(&[256, 256, 256, 5]);
        good += usize::from(check(&mut random, &query, &body, limit));
    }
    assert!((3_000..5_900).contains(&good), "{good}");
}

#[test]
fn every_byte_is_parsed_equally_at_every_offset_of_a_word() {
    let mut random = Random(2);
    for byte in 0..=u8::MAX {
        for index in 0..18 {
            let mut form = *b"abc=defghij&k=lmno";
            form[index] = byte;
            check(&mut random, &form, b"", 9);
            check(&mut random, b"a=1", &form[..=index], 9);
        }
    }
}

#[test]
fn signatures_match_only_if_every_byte_does() {
    for digits in [32, 64] {
        let one = Sign::from_hex(&vec![b'0'; digits]).unwrap();
        assert!(one.matches(&one));
        for index in 0..digits {
            let mut other = vec![b'0'; digits];
            other[index] = b'1';
            assert!(!Sign::from_hex(&other).unwrap().matches(&one), "{index}");
            for byte in (0..=u8::MAX).filter(|byte| !byte.is_ascii_hexdigit()) {
                other[index] = byte;
                assert!(Sign::from_hex(&other).is_none(), "{index} {byte}");
            }
        }
    }
}
