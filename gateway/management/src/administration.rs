//! Decides every change that operators make, and writes it together with what the audit says of it.

pub mod apps;
pub mod audit;
pub mod import;
pub mod logins;
pub mod printable;
pub(crate) mod records;
pub mod reseal;
pub mod rules;
pub mod summary;
pub mod tokens;

/// Limit of a page in bytes, about.
const MAX_PAGE_BYTES: usize = 1024 * 1024;
/// What an item takes beside what is measured, about.
const ITEM_BYTES: usize = 512;

/// How many of these rows are a page: up to `limit`, and those that fit; one always does.
pub(crate) fn fitting<T>(rows: &[T], limit: usize, bytes: impl Fn(&T) -> usize) -> usize {
    let mut left = MAX_PAGE_BYTES;
    let fits = |row: &&T| {
        let rest = left.checked_sub(ITEM_BYTES + bytes(row));
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    let fitting = rows.iter().take(limit).take_while(fits).count();
    // A row that is too large alone is a page nevertheless: otherwise no cursor would ever come past it.
    fitting.max(limit.min(1)).min(rows.len())
}

#[cfg(test)]
mod both_stores;
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_where_its_items_do_not_fit_any_more() {
        let sizes = |sizes: &[usize]| fitting(sizes, 3, |size| *size);
        assert_eq!(sizes(&[]), 0);
        assert_eq!(sizes(&[1, 1, 1, 1]), 3);
        assert_eq!(sizes(&[1, MAX_PAGE_BYTES, 1]), 1);
        assert_eq!(sizes(&[MAX_PAGE_BYTES, 1]), 1, "one always fits");
        assert_eq!(
            sizes(&[MAX_PAGE_BYTES / 2, MAX_PAGE_BYTES / 4, MAX_PAGE_BYTES / 2]),
            2
        );
    }
}
