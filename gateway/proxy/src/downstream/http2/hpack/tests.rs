//! The RFC's examples, blocks in pieces, and what is invalid.

use super::*;

type Fields = Vec<(String, String)>;

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Decodes a whole block.
fn block(decoder: &mut Decoder, bytes: &[u8]) -> Result<Fields, CompressionError> {
    let mut fields = Vec::new();
    decoder.begin();
    let decoded = decoder.decode(bytes, |name, value| fields.push((text(name), text(value))))?;
    decoder.free();
    if decoded == bytes.len() {
        Ok(fields)
    } else {
        Err(CompressionError)
    }
}

fn fields(pairs: &[(&str, &str)]) -> Fields {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    hex::decode(hex).unwrap()
}

const FIRST: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "http"),
    (":path", "/"),
    (":authority", "www.example.com"),
];

#[test]
fn the_requests_of_the_rfc_are_decoded() {
    // RFC 7541 appendix C.3 without Huffman code, C.4 with it.
    for blocks in [
        [
            "828684410f7777772e6578616d706c652e636f6d",
            "828684be58086e6f2d6361636865",
            "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
        ],
        [
            "828684418cf1e3c2e5f23a6ba0ab90f4ff",
            "828684be5886a8eb10649cbf",
            "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
        ],
    ] {
        let mut decoder = Decoder::default();
        let [first, second, third] = blocks.map(|hex| block(&mut decoder, &bytes(hex)).unwrap());
        assert_eq!(first, fields(&FIRST));
        assert_eq!(
            second,
            fields(&[&FIRST[..], &[("cache-control", "no-cache")]].concat())
        );
        assert_eq!(
            third,
            fields(&[
                (":method", "GET"),
                (":scheme", "https"),
                (":path", "/index.html"),
                (":authority", "www.example.com"),
                ("custom-key", "custom-value"),
            ])
        );
    }
}

#[test]
fn a_block_is_decoded_in_pieces_of_any_size() {
    let whole = bytes("828684418cf1e3c2e5f23a6ba0ab90f4ff408825a849e95ba97d7f8925a849e95bb8e8b4bf");
    for size in 1..whole.len() {
        let (mut decoder, mut found, mut rest) = (Decoder::default(), Vec::new(), Vec::new());
        decoder.begin();
        for piece in whole.chunks(size) {
            rest.extend_from_slice(piece);
            let field = |name: &[u8], value: &[u8]| found.push((text(name), text(value)));
            let decoded = decoder.decode(&rest, field).unwrap();
            rest.drain(..decoded);
        }
        assert!(rest.is_empty(), "{size}");
        let expected = [&FIRST[..], &[("custom-key", "custom-value")]].concat();
        assert_eq!(found, fields(&expected), "{size}");
    }
}

#[test]
fn old_entries_are_evicted_and_sizes_are_obeyed() {
    let mut decoder = Decoder::default();
    let entry = |name: u8, length: usize| {
        let mut bytes = vec![0x40, 1, name, 0x7f];
        let mut left = length - 127;
        while left >= 128 {
            bytes.push(u8::try_from(left % 128).unwrap() | 128);
            left /= 128;
        }
        bytes.push(u8::try_from(left).unwrap());
        bytes.extend(std::iter::repeat_n(b'v', length));
        bytes
    };
    // Two of 2,033 bytes fit into 4,096, a third one does not.
    for name in *b"abc" {
        block(&mut decoder, &entry(name, 2000)).unwrap();
    }
    let names = |decoder: &mut Decoder, indices: &[u8]| -> Result<String, CompressionError> {
        let fields = block(decoder, indices)?;
        Ok(fields.into_iter().map(|(name, _)| name).collect())
    };
    assert_eq!(names(&mut decoder, &[0xbe, 0xbf]).as_deref(), Ok("cb"));
    assert!(names(&mut decoder, &[0xc0]).is_err());
    // A size of 2,100 leaves one; one of 4,096 brings none back.
    assert_eq!(
        names(&mut decoder, &[0x3f, 0x95, 0x10, 0x3f, 0xe1, 0x1f, 0xbe]).as_deref(),
        Ok("c")
    );
    assert!(names(&mut decoder, &[0xbf]).is_err());
    // An entry that is larger than the table empties it.
    block(&mut decoder, &entry(b'd', 5000)).unwrap();
    assert!(names(&mut decoder, &[0xbe]).is_err());
}

#[test]
fn what_http_forbids_is_decoded_nevertheless() {
    let mut decoder = Decoder::default();
    let sent = b"\x40\x03X\0y\x02\r\n\x00\x00\x00";
    let found = block(&mut decoder, sent).unwrap();
    assert_eq!(found, fields(&[("X\0y", "\r\n"), ("", "")]));
    assert_eq!(block(&mut decoder, &[0xbe]).unwrap(), found[..1]);
}

#[test]
fn invalid_blocks_are_errors() {
    for (hex, why) in [
        ("80", "index 0"),
        ("be", "no such entry"),
        ("ffffffffff01", "an index that is too large"),
        ("7f000161", "a name of no entry"),
        ("3fe21f", "a table that is too large"),
        ("8220", "a size behind a field"),
        ("000161ff8080808001", "a length of too many bytes"),
        ("00016181ff", "a Huffman code of padding"),
        ("8200", "no name"),
        ("820001", "half a name"),
        ("82000161", "no value"),
        ("ff", "half an index"),
    ] {
        let mut decoder = Decoder::default();
        assert_eq!(
            block(&mut decoder, &bytes(hex)),
            Err(CompressionError),
            "{why}"
        );
    }
}
