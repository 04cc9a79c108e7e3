// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

package signpost;

import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.net.ConnectException;
import java.net.ProxySelector;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Flow;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;

/** By java.net.http, whose pool has the connections. */
final class HttpTransport implements Transport {
    private static final String IDLE_SECONDS = "jdk.httpclient.keepalive.timeout";
    private final HttpClient http;

    static {
        // The gateway closes connections that are idle for 60 s. The JDK has no other way to say it.
        if (System.getProperty(IDLE_SECONDS) == null) {
            System.setProperty(IDLE_SECONDS, "50");
        }
    }

    HttpTransport(Network network) {
        // By HTTP/1.1, since over HTTP/2 this client lets a POST fail that meets the end of a connection.
        var builder = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).followRedirects(HttpClient.Redirect.NEVER)
                .connectTimeout(network.connectTimeout).proxy(network.proxy == null ? HttpClient.Builder.NO_PROXY : ProxySelector.of(network.proxy));
        if (network.tls != null) {
            builder.sslContext(network.tls);
        }
        http = builder.build();
    }

    @Override
    public Reply send(Request request) throws IOException, InterruptedException {
        // This timeout ends with the head of the response.
        var builder = HttpRequest.newBuilder(request.uri).timeout(Duration.ofNanos(Math.max(1, request.nanosLeft())));
        request.headers.forEach(builder::header);
        var isRead = request.method.equals("GET") || request.method.equals("HEAD");
        if (request.body == null && isRead && !request.isRepeatable) {
            builder.method(request.method, new Once());
        } else if (request.method.equals("GET")) {
            builder.GET(); // With noBody() it would have a Content-Length.
        } else if (request.body == null) {
            builder.method(request.method, BodyPublishers.noBody());
        } else {
            builder.method(request.method, BodyPublishers.fromPublisher(BodyPublishers.ofInputStream(() -> open(request.body)), request.length));
        }
        var future = http.sendAsync(builder.build(), head -> new Body(request));
        try {
            var response = future.get(request.nanosLeft(), TimeUnit.NANOSECONDS);
            return new Reply(response.statusCode(), response.headers().map(), response.body());
        } catch (ExecutionException error) {
            if (error.getCause() instanceof HttpConnectTimeoutException) {
                throw (IOException) new ConnectException("no connection in time").initCause(error.getCause());
            }
            throw error.getCause() instanceof IOException ? (IOException) error.getCause() : new IOException(error.getCause());
        } catch (TimeoutException error) {
            throw new HttpTimeoutException("no response in time");
        } finally {
            future.cancel(true);
        }
    }

    /** Null lets the request fail. */
    private static InputStream open(Source body) {
        try {
            return body.open();
        } catch (IOException error) {
            return null;
        }
    }

    /** No body, of a request that must not be repeated: the JDK itself repeats a GET whose connection was closed. */
    private static final class Once implements BodyPublisher {
        private final AtomicBoolean isUsed = new AtomicBoolean();

        @Override
        public long contentLength() {
            if (isUsed.getAndSet(true)) {
                throw new IllegalStateException("the connection was closed without a response");
            }
            return 0;
        }

        @Override public void subscribe(Flow.Subscriber<? super ByteBuffer> subscriber) { BodyPublishers.noBody().subscribe(subscriber); }
    }

    /** The body as a stream, whose reads have a timeout and can be interrupted. */
    private static final class Body extends InputStream implements HttpResponse.BodySubscriber<InputStream> {
        private static final List<ByteBuffer> END = new ArrayList<>();
        private final LinkedBlockingQueue<List<ByteBuffer>> arrived = new LinkedBlockingQueue<>();
        private final Request request;
        private volatile Flow.Subscription subscription;
        private volatile Throwable failure;
        private Iterator<ByteBuffer> parts = Collections.emptyIterator();
        private ByteBuffer part = ByteBuffer.allocate(0);
        private boolean isWhole;

        Body(Request request) { this.request = request; }
        @Override public CompletionStage<InputStream> getBody() { return CompletableFuture.completedFuture(this); }

        @Override
        public void onSubscribe(Flow.Subscription subscription) {
            this.subscription = subscription;
            subscription.request(1);
        }

        @Override public void onNext(List<ByteBuffer> parts) { arrived.add(parts); }

        @Override
        public void onError(Throwable error) {
            failure = error;
            arrived.add(END);
        }

        @Override public void onComplete() { arrived.add(END); }

        @Override public int read() throws IOException { return Response.readOne(this); }

        @Override
        public int read(byte[] bytes, int offset, int length) throws IOException {
            while (!part.hasRemaining()) {
                if (!parts.hasNext() && !await()) {
                    return -1;
                }
                part = parts.hasNext() ? parts.next() : part;
            }
            var count = Math.min(length, part.remaining());
            part.get(bytes, offset, count);
            return count;
        }

        /** Waits for further parts. Returns false at the end. */
        private boolean await() throws IOException {
            List<ByteBuffer> next;
            try {
                next = arrived.poll(request.nanosToRead(), TimeUnit.NANOSECONDS);
            } catch (InterruptedException error) {
                close();
                Thread.currentThread().interrupt();
                throw new InterruptedIOException("interrupted");
            }
            if (next == null) {
                close();
                throw new HttpTimeoutException("no response in time");
            }
            if (next == END) {
                arrived.add(END);
                isWhole = true;
                if (failure != null) {
                    throw failure instanceof IOException ? (IOException) failure : new IOException(failure);
                }
                return false;
            }
            parts = next.iterator();
            subscription.request(1);
            return true;
        }

        @Override
        public void close() {
            if (!isWhole) {
                subscription.cancel();
            }
        }
    }
}
