//! A JSON body: only the containers that an operation touches are read.
//!
//! All else keeps its bytes: numbers their digits, strings their escapes, objects the order of their members and the
//! members that are there twice.
//!
//! A value is put elsewhere only as text ([`Node::into_text`]). So the containers that were read are never nested
//! deeper than a path is long, and writing or dropping them needs little stack.

use std::borrow::Cow;

use crate::raw::{self, JsonType};

/// A JSON value.
#[derive(Clone, Debug)]
pub(crate) enum Node<'d> {
    /// A valid JSON text without white space around it, not yet read.
    Text(Cow<'d, str>),
    Object(Members<'d>),
    Array(Vec<Node<'d>>),
}

/// The members of an object in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members<'d>(Vec<Member<'d>>);

#[derive(Clone, Debug)]
struct Member<'d> {
    /// The text of the key, with its quotation marks.
    key: Cow<'d, str>,
    value: Node<'d>,
}

/// How often an object has a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemberPlace {
    Absent,
    /// Once, at this index.
    At(usize),
    Twice,
}

impl<'d> Node<'d> {
    /// The value in these bytes. `None` if they are not JSON.
    pub(crate) fn read(body: &'d [u8]) -> Option<Self> {
        raw::value(body).map(|text| Self::Text(Cow::Borrowed(text)))
    }

    /// A new string.
    pub(crate) fn string(decoded: &str) -> Self {
        Self::Text(Cow::Owned(raw::string(decoded)))
    }

    /// A new value, of this valid text.
    pub(crate) fn owned(text: &str) -> Self {
        Self::Text(Cow::Owned(text.to_owned()))
    }

    pub(crate) fn json_type(&self) -> JsonType {
        match self {
            Self::Text(text) => JsonType::of(text),
            Self::Object(_) => JsonType::Object,
            Self::Array(_) => JsonType::Array,
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        self.json_type() == JsonType::Null
    }

    /// The text of a value that is no container, or of a container that was not read.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The members of an object. `None` if it is something else.
    pub(crate) fn members(&mut self) -> Option<&mut Members<'d>> {
        if let Self::Text(text) = self {
            *self = Self::Object(Members::read(text)?);
        }
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The items of an array. `None` if it is something else.
    pub(crate) fn items(&mut self) -> Option<&mut Vec<Self>> {
        if let Self::Text(text) = self {
            let items: Vec<_> = match text {
                Cow::Borrowed(text) => raw::items(text)?.into_iter().map(Self::borrowed).collect(),
                // Copies: the text that they stand in is replaced below.
                Cow::Owned(text) => raw::items(text)?.into_iter().map(Self::owned).collect(),
            };
            *self = Self::Array(items);
        }
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Takes the value out; `null` stays.
    pub(crate) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::borrowed("null"))
    }

    /// The value as a text, to put it elsewhere.
    pub(crate) fn into_text(self) -> Self {
        match self {
            Self::Text(_) => self,
            _ => self.to_text(),
        }
    }

    /// A copy of the value as a text.
    fn to_text(&self) -> Self {
        match self {
            Self::Text(text) => Self::Text(text.clone()),
            _ => Self::Text(Cow::Owned(self.write())),
        }
    }

    /// The whole text. Containers that were read have no white space.
    pub(crate) fn write(&self) -> String {
        let mut text = String::new();
        self.write_to(&mut text);
        text
    }

    fn write_to(&self, to: &mut String) {
        match self {
            Self::Text(text) => to.push_str(text),
            Self::Object(members) => members.write_to(to),
            Self::Array(items) => {
                to.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        to.push(',');
                    }
                    item.write_to(to);
                }
                to.push(']');
            }
        }
    }

    fn borrowed(text: &'d str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl<'d> Members<'d> {
    fn read(text: &Cow<'d, str>) -> Option<Self> {
        let borrowed = |(key, value): (&'d str, &'d str)| Member {
            key: Cow::Borrowed(key),
            value: Node::borrowed(value),
        };
        let owned = |(key, value): (&str, &str)| Member {
            key: Cow::Owned(key.to_owned()),
            value: Node::owned(value),
        };
        Some(Self(match text {
            Cow::Borrowed(text) => raw::members(text)?.into_iter().map(borrowed).collect(),
            Cow::Owned(text) => raw::members(text)?.into_iter().map(owned).collect(),
        }))
    }

    /// Where the member with this name is.
    pub(crate) fn find(&self, name: &str) -> MemberPlace {
        // By the decoded key: "\u0061" is the same name as "a".
        let has_name =
            |member: &Member<'_>| raw::decoded(&member.key).is_some_and(|key| key == name);
        let mut matching = (0..self.0.len()).filter(|&at| has_name(&self.0[at]));
        match (matching.next(), matching.next()) {
            (None, _) => MemberPlace::Absent,
            (Some(at), None) => MemberPlace::At(at),
            (Some(_), Some(_)) => MemberPlace::Twice,
        }
    }

    /// The value of the member at this index of [`Self::find`].
    pub(crate) fn value(&mut self, at: usize) -> &mut Node<'d> {
        &mut self.0[at].value
    }

    pub(crate) fn rename(&mut self, at: usize, name: &str) {
        self.0[at].key = Cow::Owned(raw::string(name));
    }

    /// Removes a member, and returns its value as text.
    pub(crate) fn remove(&mut self, at: usize) -> Node<'d> {
        self.0.remove(at).value.into_text()
    }

    /// A member's value as text.
    pub(crate) fn copy(&mut self, at: usize) -> Node<'d> {
        self.0[at].value.to_text()
    }

    /// Adds a member as the last one, and returns its value.
    pub(crate) fn add(&mut self, name: &str, value: Node<'d>) -> &mut Node<'d> {
        let key = Cow::Owned(raw::string(name));
        &mut self.0.push_mut(Member { key, value }).value
    }

    fn write_to(&self, to: &mut String) {
        to.push('{');
        for (at, member) in self.0.iter().enumerate() {
            if at > 0 {
                to.push(',');
            }
            to.push_str(&member.key);
            to.push(':');
            member.value.write_to(to);
        }
        to.push('}');
    }
}
