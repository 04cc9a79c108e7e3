//! A bounded memory in front of the store: what is not remembered is read, what changed is dropped.

use std::{
    hash::Hash,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use moka::sync::Cache;
use signpost_store::StoreError;

/// Remembers up to a number of values, each for a while.
///
/// A value that was read before a change and arrives after it is not remembered: moka alone would keep
/// it, and a credential that was just voided would stay valid.
pub(crate) struct ReadThrough<K, V> {
    cache: Cache<K, V>,
    /// Counts changes. Held while the cache is written.
    changes: Mutex<u64>,
}

impl<K, V> ReadThrough<K, V>
where
    K: Copy + Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    pub(crate) fn new(entries: u64, lifetime: Duration) -> Self {
        let cache = Cache::builder()
            .max_capacity(entries)
            .time_to_live(lifetime)
            .build();
        Self {
            cache,
            changes: Mutex::new(0),
        }
    }

    /// What is remembered for `key`, or else what `read` finds; that nothing was found is not remembered.
    pub(crate) async fn find(
        &self,
        key: K,
        read: impl Future<Output = Result<Option<V>, StoreError>>,
    ) -> Result<Option<V>, StoreError> {
        if let Some(value) = self.cache.get(&key) {
            return Ok(Some(value));
        }
        let changes_before = *self.lock();
        let found = read.await?;
        if let Some(value) = &found {
            let changes = self.lock();
            if *changes == changes_before {
                self.cache.insert(key, value.clone());
            }
        }
        Ok(found)
    }

    /// Drops what is remembered for `key`.
    pub(crate) fn forget(&self, key: &K) {
        let mut changes = self.lock();
        *changes += 1;
        self.cache.invalidate(key);
    }

    /// Drops everything.
    pub(crate) fn forget_all(&self) {
        let mut changes = self.lock();
        *changes += 1;
        self.cache.invalidate_all();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, u64> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> ReadThrough<u8, u8> {
        ReadThrough::new(10, Duration::from_secs(60))
    }

    #[tokio::test]
    async fn a_found_value_is_remembered_and_forgotten() {
        let memory = memory();
        assert_eq!(memory.find(1, async { Ok(None) }).await.unwrap(), None);
        assert_eq!(
            memory.find(1, async { Ok(Some(5)) }).await.unwrap(),
            Some(5)
        );
        assert_eq!(
            memory
                .find(1, async { panic!("remembered") })
                .await
                .unwrap(),
            Some(5)
        );
        memory.forget(&1);
        assert_eq!(memory.find(1, async { Ok(None) }).await.unwrap(), None);
    }

    #[tokio::test]
    async fn what_was_read_before_a_change_is_not_remembered_after_it() {
        let memory = memory();
        let read = async {
            memory.forget(&1);
            Ok(Some(5))
        };
        assert_eq!(memory.find(1, read).await.unwrap(), Some(5));
        assert_eq!(memory.find(1, async { Ok(None) }).await.unwrap(), None);
    }
}
