// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

package signpost;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.util.Iterator;
import java.util.NoSuchElementException;

/** Server-sent events, one after the other as they arrive. Close them. An interrupted or broken stream is an UncheckedIOException. */
public final class ServerEvents implements Iterable<ServerEvents.Event>, Iterator<ServerEvents.Event>, AutoCloseable {
    private final Response response;
    private final BufferedReader lines;
    private String id = "";
    private Event next;

    ServerEvents(Response response) {
        this.response = response;
        lines = new BufferedReader(new InputStreamReader(response.stream(), UTF_8));
    }

    /** An event: its name, which is message by default, its data, and the last id. */
    public static final class Event {
        public final String event;
        public final String data;
        public final String id;

        private Event(String event, String data, String id) {
            this.event = event;
            this.data = data;
            this.id = id;
        }
    }

    @Override public Iterator<Event> iterator() { return this; }

    @Override
    public boolean hasNext() {
        try {
            next = next == null ? read() : next;
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return next != null;
    }

    @Override
    public Event next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        var event = next;
        next = null;
        return event;
    }

    @Override public void close() throws IOException { response.close(); }

    /** An event whose empty line is missing is none. */
    private Event read() throws IOException {
        var name = "";
        var data = new StringBuilder();
        for (var line = lines.readLine(); line != null; line = lines.readLine()) {
            line = line.startsWith("\ufeff") ? line.substring(1) : line;
            if (line.isEmpty() && data.length() > 0) {
                data.setLength(data.length() - 1);
                return new Event(name.isEmpty() ? "message" : name, data.toString(), id);
            }
            var parts = line.split(":", 2);
            var value = parts.length == 2 ? parts[1].replaceFirst("^ ", "") : "";
            if (line.isEmpty() || parts[0].equals("event")) {
                name = value;
            } else if (parts[0].equals("data")) {
                data.append(value).append('\n');
            } else if (parts[0].equals("id") && value.indexOf(0) < 0) {
                id = value;
            }
        }
        return null;
    }
}
