// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

package signpost;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What a login, or its renewal, returns. CONTRACT 8. What a response lacks is null, 0 or false. */
public final class Login {
    /** The credential. */
    public final String authorization;
    /** Seconds until the credential expires: renew it before, or log in again. */
    public final long expiresIn;
    /** Whether this login created the account. */
    public final boolean isCreated;
    /** Null of a renewal. */
    public final Account account;

    Login(Map<String, Object> members) {
        authorization = Text.member(members, "authorization");
        expiresIn = numberOr0(members, "expires_in");
        isCreated = Boolean.TRUE.equals(members.get("created"));
        account = members.get("account") instanceof Map ? new Account(object(members.get("account"))) : null;
    }

    /** A user's account. Username and provider identify it; the display name never does. */
    public static final class Account {
        public final String username;
        public final String displayName;
        public final String provider;
        /** Milliseconds since 1970. */
        public final long createdAt;
        /** All members of the response. */
        public final Map<String, Object> members;

        Account(Map<String, Object> members) {
            this.members = Collections.unmodifiableMap(members);
            username = Text.member(members, "username");
            displayName = Text.member(members, "display_name");
            provider = Text.member(members, members.containsKey("provider") ? "provider" : "type");
            createdAt = numberOr0(members, "created_at");
        }
    }

    /** An event of an account. */
    public static final class Event {
        public final long id;
        public final String event;
        /** Null without data. */
        public final String data;
        /** Milliseconds since 1970. */
        public final long receivedAt;

        Event(Map<String, Object> members) {
            id = numberOr0(members, "id");
            event = Text.member(members, "event");
            data = Text.member(members, "data");
            receivedAt = numberOr0(members, "received_at");
        }
    }

    /** A page of events, newest first. */
    public static final class Events {
        public final List<Event> events;
        /** The argument before of the next page; null on the last one. */
        public final String next;

        Events(Map<String, Object> members) {
            var events = new java.util.ArrayList<Event>();
            if (members.get("events") instanceof List) {
                ((List<?>) members.get("events")).forEach(event -> events.add(new Event(object(event))));
            }
            this.events = Collections.unmodifiableList(events);
            next = Text.member(members, "next");
        }
    }

    /** An address that a browser opens to log in, and what exchanges its ticket. Keep the verifier in the user's session only. */
    public static final class Address {
        public final String url;
        public final String codeVerifier;

        Address(String url, String codeVerifier) {
            this.url = url;
            this.codeVerifier = codeVerifier;
        }
    }

    private static long numberOr0(Map<String, Object> members, String name) {
        var number = Text.number(members, name);
        return number == null ? 0 : number;
    }

    /** What is no object has no members. */
    private static Map<String, Object> object(Object value) {
        var members = new LinkedHashMap<String, Object>();
        if (value instanceof Map) {
            ((Map<?, ?>) value).forEach((name, member) -> members.put((String) name, member));
        }
        return members;
    }
}
