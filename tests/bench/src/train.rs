//! Runs the cases over programs that gather a profile, which they write when they end.

use anyhow::Context;

use crate::{
    case::Case,
    contestant::{Contestant, Places},
    field::Field,
    load::{Load, Until},
    progress::say,
    requests::Requests,
};

/// Requests of each case: enough that what is rare in the start is rare in the profile.
const REQUESTS: u64 = 40_000;

/// A request of this one does the work of many.
const DOWNLOADS: u64 = 1000;

/// Trains Signpost and bare pingora.
///
/// # Errors
///
/// One does not do the work, or does not end in order.
pub fn train(places: &Places, contestants: &[Contestant]) -> anyhow::Result<()> {
    let mut field = Field::new(places)?;
    field.enter(places, contestants, &Case::ALL)?;
    for case in Case::ALL {
        let count = if case == Case::W4 {
            DOWNLOADS
        } else {
            REQUESTS
        };
        for &contestant in contestants
            .iter()
            .filter(|contestant| contestant.does(case))
        {
            say(&format!(
                "training {} in {case}: {}",
                contestant.title(),
                case.title()
            ))?;
            let requests = Requests::new(case, count, &field.keys);
            let target = field.target(contestant, case);
            Load::new(target.address, case.connections(), &requests)?
                .closed(Until::Requests(count))
                .with_context(|| format!("{} in {case}", contestant.title()))?;
        }
    }
    field.leave()
}
