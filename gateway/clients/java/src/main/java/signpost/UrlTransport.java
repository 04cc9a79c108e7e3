// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

package signpost;

import java.io.IOException;
import java.io.InputStream;
import java.net.ConnectException;
import java.net.HttpRetryException;
import java.net.HttpURLConnection;
import java.net.Proxy;
import java.net.SocketTimeoutException;
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
        return TimedBody.await(() -> exchange(connection, request), request.nanosLeft(), connection::disconnect);
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
            body = stream == null ? body : new TimedBody(stream, length, request, connection::disconnect);
        } catch (HttpRetryException error) {
            status = error.responseCode(); // The JDK, unlike Android, withholds the body of a 401.
        }
        return new Reply(status, connection.getHeaderFields(), body);
    }
}
