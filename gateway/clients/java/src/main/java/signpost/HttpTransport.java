// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

package signpost;

import java.io.IOException;
import java.io.InputStream;
import java.net.ConnectException;
import java.net.ProxySelector;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.Flow;
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
        try {
            var response = TimedBody.await(() -> http.send(builder.build(), BodyHandlers.ofInputStream()), request.nanosLeft(), () -> {});
            var body = response.body();
            return new Reply(response.statusCode(), response.headers().map(), new TimedBody(body, -1, request, () -> close(body)));
        } catch (HttpConnectTimeoutException error) {
            throw (IOException) new ConnectException("no connection in time").initCause(error);
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

    private static void close(InputStream body) {
        try {
            body.close();
        } catch (IOException error) {
            // Its connection is of no use any more.
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
}
