// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

package signpost;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.util.List;
import java.util.Map;

/** Sends single requests. It repeats none, follows no redirect, and skips interim responses. A fake one tests your code without a gateway. */
public interface Transport {
    /**
     * Sends a request, and returns its response once the head has arrived. This and each read of the body end in time, and when the
     * thread is interrupted. Throws ConnectException if no connection could be established.
     */
    Reply send(Request request) throws IOException, InterruptedException;

    /** A body, which is opened to be hashed, and again to be sent. */
    interface Source {
        InputStream open() throws IOException;
    }

    /** A request, signed. */
    final class Request {
        public final String method;
        public final URI uri;
        public final Map<String, String> headers;
        /** Null without a body. */
        public final Source body;
        /** Of the body in bytes. */
        public final long length;
        public final boolean isRepeatable;
        private final long end;
        private final long readNanos;

        /** With the nanoTime of its end. A stream's ends with its head; each read then may take so many nanoseconds, otherwise 0. */
        Request(String method, URI uri, Map<String, String> headers, Source body, long length, boolean isRepeatable, long end, long readNanos) {
            this.method = method;
            this.uri = uri;
            this.headers = headers;
            this.body = body;
            this.length = length;
            this.isRepeatable = isRepeatable;
            this.end = end;
            this.readNanos = readNanos;
        }

        /** Nanoseconds until the head must have arrived. */
        public long nanosLeft() { return Math.max(0, end - System.nanoTime()); }
        /** Nanoseconds that the next read of the response's body may take. */
        public long nanosToRead() { return readNanos > 0 ? readNanos : nanosLeft(); }
    }

    /** A response whose body has not been read. Closing the body early ends the connection. */
    final class Reply {
        final int status;
        final Map<String, List<String>> headers;
        final InputStream body;

        public Reply(int status, Map<String, List<String>> headers, InputStream body) {
            this.status = status;
            this.headers = headers;
            this.body = body;
        }

        /** A whole response, for a fake transport. */
        public static Reply of(int status, Map<String, List<String>> headers, byte[] body) {
            return new Reply(status, headers, new ByteArrayInputStream(body));
        }
    }
}
