//! The parameters of a request, as they change. CONTRACT 2 and 5.

use std::borrow::Cow;

use signpost_bridge::Otherwise;
use signpost_protocol::sign::{SIGN, TIME};
use url::form_urlencoded::{byte_serialize, parse};

use crate::config::{ChangedPath, ParamEffect, RequestChange};

/// The pairs of query and form, in order.
pub(super) struct Pairs<'r> {
    all: Vec<Pair<'r>>,
    has_form: bool,
}

struct Pair<'r> {
    /// The decoded name.
    name: String,
    /// Name and value as they are sent.
    wire: Cow<'r, str>,
    is_in_form: bool,
}

impl<'r> Pairs<'r> {
    /// Reads the pairs of a request whose parameters were accepted: escapes are whole, and the text is UTF-8.
    pub(super) fn read(query: &'r str, form: &'r [u8]) -> Self {
        let form = std::str::from_utf8(form).unwrap_or_default();
        let in_query = query.split('&').map(|wire| (wire, false));
        let in_form = form.split('&').map(|wire| (wire, true));
        let sent = in_query.chain(in_form).filter(|(wire, _)| !wire.is_empty());
        let all = sent.map(|(wire, is_in_form)| Pair {
            name: decoded(wire).0,
            wire: Cow::Borrowed(wire),
            is_in_form,
        });
        let all: Vec<_> = all.collect();
        let has_form = all.iter().any(|pair| pair.is_in_form);
        Self { all, has_form }
    }

    /// Removes `time` and `sign`: what follows is no longer what the client signed.
    pub(super) fn remove_signature(&mut self) {
        let signs = |pair: &Pair<'_>| [TIME, SIGN].iter().any(|name| pair.is_named(name));
        self.all.retain(|pair| !signs(pair));
    }

    /// Applies what a changed path has taken of them, and gives back.
    ///
    /// # Errors
    ///
    /// A parameter exists already.
    pub(super) fn apply_path(&mut self, path: &ChangedPath) -> Result<(), String> {
        self.all
            .retain(|pair| !path.taken.contains(&Box::from(&*pair.name)));
        for (name, value) in &path.given {
            self.check_absent(name)?;
            self.add(name, value);
        }
        Ok(())
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Applies a step.
    ///
    /// # Errors
    ///
    /// It does not apply: why, without a value of the request.
    pub(super) fn apply(&mut self, step: &RequestChange) -> Result<(), String> {
        // Paths were changed before the request had its backend; headers change beside its head.
        let RequestChange::Param { name, effect } = step else {
            return Ok(());
        };
        match effect {
            ParamEffect::Rename { to } => {
                // With two parameters of one name, it would be left to the backend which one counts.
                self.check_absent(to)?;
                for pair in self.named_mut(name) {
                    *pair = pair.renamed(to);
                }
            }
            ParamEffect::Copy { to } => {
                self.check_absent(to)?;
                let copied = self.all.iter().filter(|pair| pair.is_named(name));
                let copied: Vec<_> = copied.map(|pair| pair.renamed(to)).collect();
                self.all.extend(copied);
            }
            ParamEffect::Remove => self.all.retain(|pair| !pair.is_named(name)),
            ParamEffect::Default { value } => {
                if self.check_absent(name).is_ok() {
                    self.add(name, value);
                }
            }
            ParamEffect::Constant { value } => {
                self.all.retain(|pair| !pair.is_named(name));
                self.add(name, value);
            }
            ParamEffect::Map { values, otherwise } => {
                for pair in self.named_mut(name) {
                    let (_, value) = decoded(&pair.wire);
                    let mut values = values.iter();
                    let entry = values.find(|(from, _)| **from == *value);
                    let to = match (entry, otherwise) {
                        (Some((_, to)), _) => &**to,
                        (None, Otherwise::Value(to)) => to,
                        (None, Otherwise::Keep) => continue,
                        (None, Otherwise::Fail) => {
                            return Err(format!("{name} has a value without an entry"));
                        }
                    };
                    pair.wire = Cow::Owned(format!("{}={}", pair.key(), encoded(to)));
                }
            }
        }
        Ok(())
    }

    /// The query and the form.
    pub(super) fn write(&self) -> (String, String) {
        let of = |is_in_form: bool| {
            let pairs = self
                .all
                .iter()
                .filter(move |pair| pair.is_in_form == is_in_form);
            let pairs: Vec<&str> = pairs.map(|pair| &*pair.wire).collect();
            pairs.join("&")
        };
        (of(false), of(true))
    }

    fn named_mut<'p>(&'p mut self, name: &'p str) -> impl Iterator<Item = &'p mut Pair<'r>> {
        self.all.iter_mut().filter(move |pair| pair.is_named(name))
    }

    fn check_absent(&self, name: &str) -> Result<(), String> {
        match self.all.iter().any(|pair| pair.is_named(name)) {
            true => Err(format!("{name} exists already")),
            false => Ok(()),
        }
    }

    /// Adds a pair where the request has its others: in the form, if there is one.
    fn add(&mut self, name: &str, value: &str) {
        self.all.push(Pair {
            name: name.to_owned(),
            wire: Cow::Owned(format!("{}={}", encoded(name), encoded(value))),
            is_in_form: self.has_form,
        });
    }
}

impl<'r> Pair<'r> {
    fn is_named(&self, name: &str) -> bool {
        self.name == name
    }

    /// The name as it is sent.
    fn key(&self) -> &str {
        self.wire.split('=').next().unwrap_or_default()
    }

    /// The value as it is sent.
    fn value(&self) -> &str {
        self.wire.split_once('=').map_or("", |(_, value)| value)
    }

    fn renamed(&self, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            wire: Cow::Owned(format!("{}={}", encoded(name), self.value())),
            is_in_form: self.is_in_form,
        }
    }
}

fn encoded(text: &str) -> String {
    byte_serialize(text.as_bytes()).collect()
}

/// Name and value of a pair, decoded as CONTRACT 2 has it: `+` is a space.
fn decoded(wire: &str) -> (String, String) {
    let pair = parse(wire.as_bytes()).next().unwrap_or_default();
    (pair.0.into_owned(), pair.1.into_owned())
}
