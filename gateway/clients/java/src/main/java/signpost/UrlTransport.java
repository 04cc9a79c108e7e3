// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

package signpost;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.net.ConnectException;
import java.net.HttpRetryException;
import java.net.HttpURLConnection;
import java.net.Proxy;
import java.net.SocketTimeoutException;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import javax.net.ssl.HttpsURLConnection;

/** By HttpURLConnection, where there is no java.net.http: for Android. Its connections block, so they have threads of their own. */
final class UrlTransport implements Transport {
    private final Network network;

    UrlTransport(Network network) { this.network = network; }

    @Override
    public Reply send(Request request) throws IOException, InterruptedException {
        var proxy = network.proxy == null ? Proxy.NO_PROXY : new Proxy(Proxy.Type.HTTP, network.proxy);
        var connection = (HttpURLConnection) request.uri.toURL().openConnection(proxy);
        if (network.tls != null && connection instanceof HttpsURLConnection) {
            ((HttpsURLConnection) connection).setSSLSocketFactory(network.tls.getSocketFactory());
        }
        connection.setConnectTimeout((int) network.connectTimeout.toMillis());
        connection.setInstanceFollowRedirects(false);
        connection.setUseCaches(false);
        connection.setRequestMethod(request.method);
        request.headers.forEach(connection::setRequestProperty);
        return await(connection, request.nanosLeft(), () -> exchange(connection, request));
    }

    private static Reply exchange(HttpURLConnection connection, Request request) throws IOException {
        var isRead = request.method.equals("GET") || request.method.equals("HEAD");
        if (!isRead) {
            connection.setDoOutput(true);
            connection.setFixedLengthStreamingMode(request.length); // Otherwise it would repeat a POST itself, as it does a GET.
        }
        try {
            connection.connect();
        } catch (SocketTimeoutException error) {
            throw (IOException) new ConnectException("no connection in time").initCause(error);
        }
        if (request.body != null) {
            try (var body = request.body.open(); var output = connection.getOutputStream()) {
                body.transferTo(output);
            }
        }
        var body = InputStream.nullInputStream();
        int status;
        try {
            status = connection.getResponseCode();
            var stream = status >= 400 ? connection.getErrorStream() : connection.getInputStream();
            var length = request.method.equals("HEAD") || status == 204 || status == 304 ? -1 : connection.getContentLengthLong();
            body = stream == null ? body : new Body(connection, stream, request, length);
        } catch (HttpRetryException error) {
            status = error.responseCode(); // The JDK, unlike Android, withholds the body of a 401.
        }
        return new Reply(status, connection.getHeaderFields(), body);
    }

    private static <T> T await(HttpURLConnection connection, long nanos, Callable<T> task) throws IOException, InterruptedException {
        var future = Call.THREADS.submit(task);
        try {
            return future.get(nanos, TimeUnit.NANOSECONDS);
        } catch (ExecutionException error) {
            throw error.getCause() instanceof IOException ? (IOException) error.getCause() : new IOException(error.getCause());
        } catch (InterruptedException | TimeoutException error) {
            Call.THREADS.execute(connection::disconnect);
            if (error instanceof InterruptedException) {
                throw (InterruptedException) error;
            }
            throw new SocketTimeoutException("no response in time");
        }
    }

    private static final class Body extends InputStream {
        private final HttpURLConnection connection;
        private final InputStream stream;
        private final Request request;
        /** Bytes that are missing, below 0 if the head does not say it. */
        private long left;
        private boolean isWhole;

        Body(HttpURLConnection connection, InputStream stream, Request request, long length) {
            this.connection = connection;
            this.stream = stream;
            this.request = request;
            left = length;
        }

        @Override public int read() throws IOException { return Response.readOne(this); }

        @Override
        public int read(byte[] bytes, int offset, int length) throws IOException {
            try {
                var count = await(connection, request.nanosToRead(), () -> stream.read(bytes, offset, length));
                isWhole = count < 0;
                if (isWhole && left > 0) {
                    throw new EOFException("the response was cut off");
                }
                left -= left < 0 ? 0 : count;
                return count;
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
                throw new InterruptedIOException("interrupted");
            }
        }

        @Override
        public void close() {
            if (!isWhole) {
                Call.THREADS.execute(connection::disconnect);
            }
        }
    }
}
