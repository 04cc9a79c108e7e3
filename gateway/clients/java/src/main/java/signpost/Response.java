// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

package signpost;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeParseException;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** A response. That of {@link Call#stream} must be closed; others are whole. */
public final class Response implements AutoCloseable {
    private final int status;
    private final Map<String, List<String>> headers;
    private final InputStream stream;
    private byte[] bytes;

    Response(Transport.Reply reply, long limit) {
        status = reply.status;
        var fields = new TreeMap<String, List<String>>(String.CASE_INSENSITIVE_ORDER);
        reply.headers.forEach((name, values) -> {
            if (name != null) {
                fields.put(name, values);
            }
        });
        headers = Collections.unmodifiableMap(fields);
        stream = new Limited(reply.body, limit);
    }

    public int status() { return status; }
    /** The headers, by names in any letter case. */
    public Map<String, List<String>> headers() { return headers; }

    /** The first header of a name, or null. */
    public String header(String name) {
        var values = headers.get(name);
        return values == null || values.isEmpty() ? null : values.get(0);
    }

    /** The body while it arrives. */
    public InputStream stream() { return stream; }
    @Override public void close() throws IOException { stream.close(); }
    /** The body; null of a stream. */
    public byte[] bytes() { return bytes; }
    /** The body as UTF-8. */
    public String body() { return new String(bytes, UTF_8); }
    /** The body as JSON: Map, List, String, Long, Double, Boolean or null. Throws IOException if it is none. */
    public Object json() throws IOException { return new Json(body()).document(); }

    @SuppressWarnings("unchecked")
    Map<String, Object> object() throws IOException {
        var document = json();
        if (!(document instanceof Map)) {
            throw new IOException("the response is no JSON object");
        }
        return (Map<String, Object>) document;
    }

    Response readWhole() throws IOException {
        try (stream) {
            bytes = stream.readAllBytes();
        }
        return this;
    }

    /** Seconds of Retry-After, also of a date, or null. */
    Long retryAfter() {
        var after = header("Retry-After");
        if (after == null || after.matches("[0-9]{1,10}")) {
            return after == null ? null : Long.valueOf(after);
        }
        try {
            var date = header("Date");
            var now = date == null ? System.currentTimeMillis() / 1000 : seconds(date);
            return Math.max(0, seconds(after) - now);
        } catch (DateTimeParseException error) {
            return null;
        }
    }

    private static long seconds(String date) { return ZonedDateTime.parse(date, DateTimeFormatter.RFC_1123_DATE_TIME).toEpochSecond(); }

    /** A response has more bytes than the call allows. */
    static final class LimitException extends IOException {
        private static final long serialVersionUID = 1;

        LimitException(long limit) { super("the response has more than " + limit + " bytes"); }
    }

    private static final class Limited extends FilterInputStream {
        private final long limit;
        private long left;

        Limited(InputStream body, long limit) {
            super(body);
            this.limit = limit;
            left = limit;
        }

        @Override
        public int read() throws IOException {
            var one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
        }

        @Override
        public int read(byte[] bytes, int offset, int length) throws IOException {
            var count = in.read(bytes, offset, length);
            left -= Math.max(0, count);
            if (left < 0) {
                close();
                throw new LimitException(limit);
            }
            return count;
        }
    }
}
