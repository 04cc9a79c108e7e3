//! The queue of finished spans, and the thread that exports them.

use std::{
    sync::{Arc, mpsc::SyncSender},
    thread,
    time::Duration,
};

use anyhow::Context;
use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, Request, Response, header::AUTHORIZATION};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{SpanData, SpanExporter as _},
};
use parking_lot::Mutex;
use signpost_store::pem;
use tokio::{
    runtime,
    sync::mpsc::{self, error::TrySendError},
    time::{Instant, timeout, timeout_at},
};

use super::{ServiceName, SpanCounters, SpanResult, context::TraceId, span::Span};
use crate::{
    config::shared_keys::Collector,
    log::{with_causes, writer::flush_queue},
};

/// Limit of requests whose spans are queued. One has few spans, each with at most a path of 512 bytes and some short
/// attributes: some 2 KiB, so that the queue of a collector that stalls takes some 2 MiB.
const MAX_QUEUED_REQUESTS: usize = 1024;

/// A batch is exported when it has this many spans; the last request's may exceed it.
const BATCH_SPANS: usize = 512;

/// A batch is exported at the latest this long after its first span.
const BATCH_INTERVAL: Duration = Duration::from_secs(1);

/// Limit of a stop's wait for the last batch.
pub const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Hands spans to the thread that exports them. The thread ends when the last clone is dropped and the queue is empty, or
/// if the library's exporter cannot be built.
#[derive(Clone, Debug)]
pub(super) struct Exporter {
    queue: mpsc::Sender<Queued>,
}

/// The finished spans of a request.
#[derive(Debug)]
pub(super) struct FinishedSpans {
    pub(super) trace_id: TraceId,
    pub(super) spans: Vec<Span>,
}

#[derive(Debug)]
enum Queued {
    Spans(FinishedSpans),
    /// The sender is notified when all spans before it were exported, or could not be.
    Flush(SyncSender<()>),
}

impl Exporter {
    /// Starts the thread. All else happens within it: a reload must neither wait for files of the system, nor drop a
    /// runtime, at which tokio panics in asynchronous code.
    ///
    /// If the library's exporter cannot be built, the thread logs that and ends, and all spans count as failed.
    pub(super) fn start(
        collector: &Collector,
        service: ServiceName,
        counters: &Arc<SpanCounters>,
    ) -> anyhow::Result<Self> {
        let (queue, queued) = mpsc::channel(MAX_QUEUED_REQUESTS);
        let (collector, counters) = (collector.clone(), Arc::clone(counters));
        thread::Builder::new()
            .name("traces".to_owned())
            .spawn(move || run(&collector, service, &counters, queued))
            .context("cannot create a thread")?;
        Ok(Self { queue })
    }

    /// Whether the thread exports.
    pub(super) fn is_running(&self) -> bool {
        !self.queue.is_closed()
    }

    /// Whether both have the same thread.
    #[cfg(test)]
    pub(super) fn is_shared_with(&self, other: &Self) -> bool {
        self.queue.same_channel(&other.queue)
    }

    /// Queues spans, or counts them if the queue is full or the thread has ended.
    pub(super) fn send(&self, finished: FinishedSpans, counters: &SpanCounters) {
        let spans = finished.spans.len();
        match self.queue.try_send(Queued::Spans(finished)) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => counters.add(SpanResult::Dropped, spans),
            Err(TrySendError::Closed(_)) => counters.add(SpanResult::Failed, spans),
        }
    }

    /// Exports what is queued, for at most [`FLUSH_TIMEOUT`]. On timeout the collector is stalled: the last spans are lost
    /// with the process.
    pub(super) fn flush(&self) {
        flush_queue(FLUSH_TIMEOUT, |done| {
            let queued = self.queue.try_send(Queued::Flush(done));
            // A closed queue counts as queued: there is nothing to wait for.
            !matches!(queued, Err(TrySendError::Full(_)))
        });
    }
}

/// Calls a collector. The library reports each failed call as "network error"; this client keeps the cause. Clones share it.
#[derive(Clone, Debug)]
struct CollectorClient {
    client: reqwest::Client,
    failure: Arc<Mutex<Option<String>>>,
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let response = self.client.send_bytes(request).await;
        // An error's own text is little more than the URL.
        let cause = |error: &HttpError| {
            let cause = error.source();
            cause.map_or_else(|| error.to_string(), with_causes)
        };
        let failure = response.as_ref().err().map(cause);
        *self.failure.lock() = failure;
        response
    }
}

fn client(collector: &Collector) -> anyhow::Result<reqwest::Client> {
    let mut headers = HeaderMap::new();
    if let Some(secret) = &collector.authorization {
        let mut value = HeaderValue::from_str(secret.expose()).context("tracing.authorization")?;
        // Hidden in `Debug`, and not in the header table of HTTP/2.
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    let client = collector.outgoing.client()?;
    let client = client.timeout(collector.timeout).default_headers(headers);
    let client = match &collector.ca {
        Some(pem) => {
            let authorities = pem::certificates(pem)?.into_iter();
            let authorities = authorities.map(|der| reqwest::Certificate::from_der(&der));
            client.tls_certs_only(authorities.collect::<Result<Vec<_>, _>>()?)
        }
        // A machine without authorities can still export in clear text.
        None if collector.endpoint.scheme() == "http" => client.tls_certs_only([]),
        None => client,
    };
    Ok(client.build()?)
}

/// The exporter of the library, with an HTTP client of ours.
fn span_exporter(
    collector: &Collector,
    client: CollectorClient,
    service: ServiceName,
) -> anyhow::Result<SpanExporter> {
    let mut exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(client)
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(collector.endpoint.as_str())
        .with_timeout(collector.timeout)
        // A batch that fails is lost: an unavailable collector must not delay the next batches.
        .with_retry_policy(RetryPolicy::disabled())
        .build()?;
    let version = KeyValue::new("service.version", service.version);
    let resource = Resource::builder_empty()
        .with_service_name(service.name)
        .with_attributes([version]);
    exporter.set_resource(&resource.build());
    Ok(exporter)
}

/// What the thread needs.
struct Worker {
    exporter: SpanExporter,
    client: CollectorClient,
    scope: InstrumentationScope,
    timeout: Duration,
    endpoint: String,
    counters: Arc<SpanCounters>,
    is_failing: bool,
}

/// The thread that exports.
fn run(
    collector: &Collector,
    service: ServiceName,
    counters: &Arc<SpanCounters>,
    mut queue: mpsc::Receiver<Queued>,
) {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start a runtime");
    let started = runtime.and_then(|runtime| {
        let worker = Worker::new(collector, service, counters)?;
        Ok((runtime, worker))
    });
    match started {
        Ok((runtime, mut worker)) => runtime.block_on(async {
            while let Some(first) = queue.recv().await {
                worker.export_batch(first, &mut queue).await;
            }
        }),
        Err(error) => {
            tracing::error!(
                endpoint = %collector.endpoint, cause = %format_args!("{error:#}"),
                "no spans are exported: the exporter cannot start"
            );
            // Before the rest is counted: from now on senders count their spans themselves, so that none is missing.
            queue.close();
            while let Some(queued) = queue.blocking_recv() {
                if let Queued::Spans(finished) = queued {
                    counters.add(SpanResult::Failed, finished.spans.len());
                }
            }
        }
    }
}

impl Worker {
    fn new(
        collector: &Collector,
        service: ServiceName,
        counters: &Arc<SpanCounters>,
    ) -> anyhow::Result<Self> {
        let client = CollectorClient {
            client: client(collector)?,
            failure: Arc::default(),
        };
        let endpoint = collector.endpoint.as_str().parse()?;
        Ok(Self {
            exporter: span_exporter(collector, client.clone(), service)?,
            client,
            scope: InstrumentationScope::builder("signpost").build(),
            timeout: collector.timeout,
            endpoint: format!(
                "{}{}",
                collector.endpoint,
                collector.outgoing.shown(&endpoint)
            ),
            counters: Arc::clone(counters),
            is_failing: false,
        })
    }

    /// Collects a batch, and exports it.
    async fn export_batch(&mut self, first: Queued, queue: &mut mpsc::Receiver<Queued>) {
        let deadline = Instant::now() + BATCH_INTERVAL;
        let mut batch = Vec::new();
        let mut flush = self.take(first, &mut batch);
        while flush.is_none() && batch.len() < BATCH_SPANS {
            // `recv` loses nothing when the deadline drops it.
            match timeout_at(deadline, queue.recv()).await {
                Ok(Some(next)) => flush = self.take(next, &mut batch),
                Ok(None) | Err(_) => break,
            }
        }
        if !batch.is_empty() {
            self.export(batch).await;
        }
        if let Some(done) = flush {
            // The waiting flush may have timed out.
            let _ = done.try_send(());
        }
    }

    /// Adds spans to a batch, or returns the sender of a flush.
    fn take(&self, queued: Queued, batch: &mut Vec<SpanData>) -> Option<SyncSender<()>> {
        match queued {
            Queued::Spans(FinishedSpans { trace_id, spans }) => {
                let data = |span: Span| span.into_data(trace_id, &self.scope);
                batch.extend(spans.into_iter().map(data));
                None
            }
            Queued::Flush(done) => Some(done),
        }
    }

    /// Exports a batch. Failures are logged when they begin and when they end; each is counted.
    async fn export(&mut self, batch: Vec<SpanData>) {
        let spans = batch.len();
        let failure = match timeout(self.timeout, self.exporter.export(batch)).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => {
                let cause = self.client.failure.lock().take();
                Some(cause.unwrap_or_else(|| error.to_string()))
            }
            Err(_) => Some(format!("no answer within {} s", self.timeout.as_secs())),
        };
        let (endpoint, was_failing) = (&self.endpoint, self.is_failing);
        self.is_failing = failure.is_some();
        match failure {
            None => {
                self.counters.add(SpanResult::Exported, spans);
                if was_failing {
                    tracing::info!(%endpoint, "spans are exported again");
                }
            }
            Some(cause) => {
                self.counters.add(SpanResult::Failed, spans);
                if !was_failing {
                    tracing::warn!(
                        %endpoint, cause,
                        "cannot export spans: they are lost until that works again"
                    );
                }
            }
        }
    }
}
