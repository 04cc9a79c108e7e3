// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

package signpost;

import static signpost.Text.member;
import static signpost.Text.printable;

import java.io.IOException;
import java.util.Map;

/** A response of status 400 or more, of the gateway or of the API behind it. Decide by code if there is one: it never changes. CONTRACT 7. */
public final class StatusException extends IOException {
    private static final long serialVersionUID = 1;
    private static final int MAX_PROBLEM_BYTES = 65_536;

    public final int status;
    /** With headers and body, which is whole. */
    public final transient Response response;
    /** Empty if the body is no problem document. What such a document lacks is null. */
    public final String code;
    public final String title;
    public final String detail;
    public final String hint;
    /** The text that the gateway signed: of sign_mismatch only. Below it the message shows the client's. */
    public final String canonical;
    public final String requestId;
    /** Seconds, or null. */
    public final Long retryAfter;
    /** Milliseconds since 1970, or null. */
    public final Long serverTime;

    StatusException(Response response, String signed) { this(response, document(response), signed); }

    private StatusException(Response response, Map<String, Object> document, String signed) {
        super(describe(response, document, signed));
        this.response = response;
        status = response.status();
        code = document.isEmpty() ? "" : member(document, "code");
        title = member(document, "title");
        detail = member(document, "detail");
        hint = member(document, "hint");
        canonical = member(document, "canonical");
        requestId = requestId(response, document);
        retryAfter = response.retryAfter();
        var time = Text.number(document, "server_time");
        serverTime = time != null && time < 1L << 53 ? time : null;
    }

    /** The problem document, or nothing if it is none. */
    private static Map<String, Object> document(Response response) {
        var type = response.header("Content-Type");
        var isProblem = type != null && type.split(";", 2)[0].strip().equalsIgnoreCase("application/problem+json");
        try {
            var document = isProblem && response.bytes().length <= MAX_PROBLEM_BYTES ? response.object() : Map.<String, Object>of();
            return member(document, "code") == null ? Map.of() : document;
        } catch (IOException error) {
            return Map.of();
        }
    }

    private static String requestId(Response response, Map<String, Object> document) {
        var id = member(document, "request_id");
        return id != null ? id : response.header("X-Request-Id");
    }

    /** For example: 403 sign_mismatch: TITLE HINT (request REQUEST_ID); in further lines what gateway and client signed. */
    private static String describe(Response response, Map<String, Object> document, String signed) {
        var hint = member(document, "hint");
        return response.status() + part(" ", member(document, "code"), "") + part(": ", member(document, "title"), "")
                + part(" ", hint != null ? hint : member(document, "detail"), "") + part(" (request ", requestId(response, document), ")")
                + part("\nthe gateway signed: ", member(document, "canonical"), "\nthis client signed: " + printable(signed));
    }

    private static String part(String before, String text, String after) { return text == null ? "" : before + printable(text) + after; }
}
