//! Frames in pieces of any size, and the budget.

use super::*;

fn frame(kind: u8, length: usize) -> Vec<u8> {
    let mut bytes = u32::try_from(length).unwrap().to_be_bytes()[1..].to_vec();
    bytes.extend([kind, 0, 0, 0, 0, 1]);
    // Payloads that look like heads.
    bytes.extend(std::iter::repeat_n(6, length));
    bytes
}

#[test]
fn frames_are_counted_in_pieces_of_any_size() {
    let mut bytes = PREFACE.to_vec();
    let frames = [
        (4, 12, 21),
        (1, 300, REQUEST_COST),
        (9, 0, PIECE_COST),
        (0, 16_384, PIECE_COST),
        (0, 0, PIECE_COST),
        (6, 8, 17),
        (3, 4, 13),
        (0xfa, 70_000, 70_009),
        (8, 4, 13),
    ];
    let mut expected = 0;
    for (kind, length, cost) in frames {
        bytes.extend(frame(kind, length));
        expected += cost;
    }
    for size in [1, 2, 8, 9, 10, 4096, bytes.len()] {
        let mut scanner = FrameScanner::default();
        let cost: u64 = bytes.chunks(size).map(|piece| scanner.scan(piece)).sum();
        assert_eq!(cost, expected, "{size}");
    }
}

#[test]
fn answers_and_time_return_the_budget_but_never_more() {
    let meter = Meter::default();
    meter.spend(BUDGET);
    assert!(!meter.is_over());
    meter.spend(1);
    assert!(meter.is_over());
    meter.credit_piece(0);
    assert!(!meter.is_over());
    meter.credit(10 * BUDGET);
    meter.spend(BUDGET + 1);
    assert!(meter.is_over());
    let mut last = Instant::now() - std::time::Duration::from_secs(1);
    meter.refill(&mut last);
    assert!(!meter.is_over());
    meter.spend(BUDGET_PER_SECOND);
    meter.refill(&mut last);
    assert!(meter.is_over());
}
