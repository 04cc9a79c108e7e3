// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

package signpost

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const (
	maxErrorBytes   = 1 << 20 // of an error's body, what follows is not read
	maxProblemBytes = 64 << 10
)

var (
	retryAfterGrammar = regexp.MustCompile(`^[0-9]{1,9}$`)
	// Values of logins, and what else is secret: the gateway masks them in the text that it signed, too. CONTRACT 7.
	secretNames = regexp.MustCompile(`(?i)((?:^|[&?])(?:(?:(?:access|refresh|id)_)?token|ticket|code(?:_verifier)?|state|confirm|authorization|` +
		`credential|passw(?:or)?d|(?:client_)?secret|api_key)=)[^&\n]+`)
	credentials = regexp.MustCompile(`(?im)=(?:Bearer%20)?[\w-]{43}(&|$)`)

	// CONTRACT 7: nothing was forwarded, so any call can be repeated.
	notExecuted = map[string]bool{
		"request_timeout": true, "request_replayed": true, "rate_limited": true, "spool_full": true, "no_healthy_backend": true,
		"version_brownout": true,
	}
	// CONTRACT 7: the call may have been executed.
	perhapsExecuted = map[string]bool{
		"internal": true, "backend_unreachable": true, "store_unavailable": true, "backend_timeout": true, "gateway_stopping": true,
	}
)

// Problem is the error of a response with a status of 400 or more, the API's own included. Decide by Code: it never changes. CONTRACT 7.
type Problem struct {
	Status                         int
	Headers                        http.Header
	Body                           []byte // at most 1 MiB
	Code                           string // empty if the body is no problem document, as are the other members that it lacks
	Title, Detail, Hint, RequestID string
	Canonical, signed              string // what the gateway signed, of sign_mismatch only; what the client signed
	RetryAfter                     time.Duration
	ServerTime                     int64 // milliseconds since 1970; of time_out_of_window
}

func (p *Problem) Error() string {
	text := strings.TrimSpace(fmt.Sprintf("%d %s", p.Status, p.Code))
	said := p.Hint
	if said == "" {
		said = p.Detail
	}
	if said = strings.TrimSpace(p.Title + " " + said); said != "" {
		text += ": " + said
	}
	if p.RequestID != "" {
		text += " (request " + p.RequestID + ")"
	}
	text = printable(text)
	if p.Canonical != "" {
		text += "\nthe gateway signed: " + printable(p.Canonical) + "\nthis client signed: " + printable(p.signed)
	}
	return text
}

// JSON reads the body into a value, as json.Unmarshal does.
func (p *Problem) JSON(into any) error { return json.Unmarshal(p.Body, into) }

// Format writes neither headers nor body, which may have secrets.
func (p *Problem) Format(state fmt.State, _ rune) { fmt.Fprint(state, p.Error()) }

// isRepeated says whether a call with this error is: an API's own 429 or 503 only if it says when.
func (p *Problem) isRepeated(isRepeatable bool) bool {
	says := p.RetryAfter > 0 && (p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable)
	return notExecuted[p.Code] || isRepeatable && (perhapsExecuted[p.Code] || says)
}

// problemOf reads a problem document, or as much as there is of one.
func problemOf(status int, headers http.Header, body []byte) *Problem {
	problem := &Problem{Status: status, Headers: headers, Body: body, RequestID: headers.Get("X-Request-Id")}
	if after := headers.Get("Retry-After"); retryAfterGrammar.MatchString(after) {
		number, _ := strconv.Atoi(after)
		problem.RetryAfter = time.Duration(number) * time.Second
	} else if at, err := http.ParseTime(after); err == nil {
		now, err := http.ParseTime(headers.Get("Date"))
		if err != nil {
			now = time.Now()
		}
		problem.RetryAfter = at.Sub(now)
	}
	kind, _, _ := mime.ParseMediaType(headers.Get("Content-Type"))
	var document map[string]json.RawMessage
	if kind != "application/problem+json" || len(body) > maxProblemBytes || problem.JSON(&document) != nil {
		return problem
	}
	if json.Unmarshal(document["code"], &problem.Code) != nil || problem.Code == "" {
		return problem
	}
	var requestID string
	for name, field := range map[string]any{
		"title": &problem.Title, "detail": &problem.Detail, "hint": &problem.Hint, "canonical": &problem.Canonical,
		"request_id": &requestID, "server_time": &problem.ServerTime,
	} {
		_ = json.Unmarshal(document[name], field) // What is absent or of a wrong type stays empty.
	}
	if requestID != "" {
		problem.RequestID = requestID
	}
	if problem.ServerTime < 0 || problem.ServerTime >= 1<<53 {
		problem.ServerTime = 0
	}
	return problem
}

// masked is a text as the gateway shows it: without the key and secret values. CONTRACT 7.
func masked(text, key string) string {
	encodedKey, _ := Encode(key)
	text = credentials.ReplaceAllString(secretNames.ReplaceAllString(text, "${1}***"), "=***$1")
	return strings.ReplaceAll(text, encodedKey, "***")
}

// printable has spaces for control and format characters and separators of lines: the text can reach a terminal or a log. CONTRACT 7.
func printable(text string) string {
	return strings.Map(func(one rune) rune {
		isJoiner := one == '\u200c' || one == '\u200d'
		if !isJoiner && unicode.In(one, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return one
	}, text)
}
