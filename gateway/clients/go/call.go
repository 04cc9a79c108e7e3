// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

package signpost

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	formType         = "application/x-www-form-urlencoded"
	maxResponseBytes = 16 << 20
	maxClockError    = 24 * time.Hour // beyond it, the gateway's clock can as well be wrong
	maxTimeAhead     = 5000           // milliseconds: how far the times of many calls may be ahead of the clock
)

var (
	methods     = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}
	pathGrammar = regexp.MustCompile(`^/(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*$`)
	dotSegment  = regexp.MustCompile(`(?i)/(?:\.|%2e){1,2}(?:/|$)`)
	// Headers that the client or net/http writes.
	reserved = strings.Fields("host content-length content-type transfer-encoding connection keep-alive te trailer upgrade expect " +
		"proxy-authorization proxy-connection")
)

// Response is a response with a status below 400.
type Response struct {
	Status  int
	Headers http.Header // look up with Get
	Body    []byte
}

// JSON reads the body into a value, as json.Unmarshal does.
func (r *Response) JSON(into any) error { return json.Unmarshal(r.Body, into) }

// Format writes no secret: the body may have a credential.
func (r Response) Format(state fmt.State, _ rune) {
	fmt.Fprintf(state, "signpost.Response(%d, %d bytes)", r.Status, len(r.Body))
}

// request is a call without time, nonce and signature.
type request struct {
	call
	method, path string
	inHeaders    bool   // where the signature is
	isQuery      bool   // where the pairs are
	query        string // with its question mark; of a signature in headers
	size         int64
	hash         [sha256.Size]byte
	header       http.Header
}

// Call signs and sends a call, and returns its response. Redirects are not followed.
//
// Pairs are the query of GET, HEAD and DELETE, and of calls with a body; otherwise the form.
// Errors: *Problem for a status of 400 or more, ArgumentError if the call cannot be sent, otherwise those of net/http, without the address.
// It repeats the call by CONTRACT 10 before it returns one.
func (c *Client) Call(ctx context.Context, method, path string, options ...Option) (*Response, error) {
	return c.call(ctx, method, path, c.with(options))
}

func (c *Client) call(ctx context.Context, method, path string, o call) (*Response, error) {
	stream, err := c.run(ctx, method, path, o, false)
	if err != nil {
		return nil, err
	}
	return &Response{stream.Status, stream.Headers, stream.content}, nil
}

// run sends a call until it has a response, or an error that is the caller's.
func (c *Client) run(ctx context.Context, method, path string, o call, isStream bool) (*Stream, error) {
	r, err := c.prepare(ctx, method, path, o)
	if err != nil {
		return nil, err
	}
	end, hasEnd := ctx.Deadline()
	if own := time.Now().Add(o.timeout); o.timeout > 0 && (!hasEnd || own.Before(end)) {
		end, hasEnd = own, true
	}
	offset, isCorrected := c.offset.Load(), false
	for repetitions := 0; ; repetitions++ {
		timeout := r.requestTimeout
		if o.timeout > 0 {
			timeout = time.Until(end)
		}
		stream, err := c.send(ctx, r, c.nextTime()+offset, timeout, isStream)
		var problem *Problem
		isProblem := errors.As(err, &problem)
		isOutOfWindow := isProblem && problem.Code == "time_out_of_window"
		if isCorrected && !isOutOfWindow && (err == nil || isProblem) {
			c.offset.Store(offset) // The gateway took the time of the request.
			c.warn("clock_off", apart(offset))
		}
		if err == nil {
			return stream, nil
		}
		if isOutOfWindow && !isCorrected {
			offset = problem.ServerTime - c.settings.Clock()
			if isCorrected = offset <= maxClockError.Milliseconds() && offset >= -maxClockError.Milliseconds(); isCorrected {
				repetitions-- // It is not one of the retries.
				continue
			}
		}
		var network *net.OpError
		var argument ArgumentError
		wait, isRepeated := pause(repetitions), *r.isRepeatable && !errors.Is(err, errTooLong) && !errors.As(err, &argument)
		if isProblem {
			isRepeated = problem.isRepeated(*r.isRepeatable)
			if problem.RetryAfter > 0 {
				wait = problem.RetryAfter
			}
		} else if errors.As(err, &network) && (network.Op == "dial" || network.Op == "proxyconnect") {
			isRepeated = true // There was no connection, so nothing was sent.
		}
		if !isRepeated || repetitions >= c.settings.Retries || wait > c.settings.MaxWait || ctx.Err() != nil || hasEnd && time.Until(end) <= wait {
			return nil, err
		}
		if err := sleep(ctx, wait); err != nil {
			return nil, r.failed("", err)
		}
	}
}

// prepare checks a call, and does what is the same for all its repetitions.
func (c *Client) prepare(ctx context.Context, method, path string, o call) (*request, error) {
	r := &request{call: o, method: method, path: path}
	if o.err != nil {
		return nil, o.err
	}
	if !contains(methods, method) {
		return nil, argumentError("method must be one of %s", strings.Join(methods, ", "))
	}
	if !pathGrammar.MatchString(path) || dotSegment.MatchString(path) {
		return nil, argumentError("path must begin with /, be encoded, and have no query and no segment . or ..")
	}
	if o.limit < 0 {
		return nil, argumentError("limit must not be negative")
	}
	hasBody, carrier := o.source != nil, c.settings.Profile.Carrier
	if hasBody && (method == "GET" || method == "HEAD") {
		return nil, argumentError("%s has no body", method)
	}
	if hasBody && carrier == "parameters" {
		return nil, argumentError("a body needs a signature in headers: set the profile's carrier to headers or both, as the application's is")
	}
	r.isQuery = hasBody || method == "GET" || method == "HEAD" || method == "DELETE"
	isOther := hasBody || len(o.pairs) == 0 || method != "GET" && method != "POST"
	r.inHeaders = carrier == "headers" || carrier == "both" && isOther
	setDefault(&r.accept, "application/json")
	setDefault(&r.version, c.settings.Version)
	setDefault(&r.language, c.settings.Language)
	setDefault(&r.requestTimeout, c.settings.Timeout)
	if r.isRepeatable == nil {
		is := method != "POST" && method != "PATCH" || r.idempotencyKey != ""
		r.isRepeatable = &is
	}
	err := checkHeader("content type", r.contentType)
	if err == nil {
		err = c.writeHeader(ctx, r)
	}
	text := ""
	if r.inHeaders && err == nil {
		text, err = o.pairs.encode()
	}
	if err != nil {
		return nil, err
	}
	if r.inHeaders && r.isQuery && text != "" {
		r.query = "?" + text
	} else if r.inHeaders && text != "" {
		r.source, r.contentType = strings.NewReader(text), formType
	}
	hash := sha256.New()
	if r.source != nil {
		if r.size, err = r.source.Seek(0, io.SeekEnd); err == nil {
			_, err = io.Copy(hash, io.NewSectionReader(r.source, 0, r.size))
		}
	}
	hash.Sum(r.hash[:0])
	if err != nil {
		return nil, argumentError("the body cannot be read: %v", err)
	}
	return r, nil
}

// writeHeader writes all headers but those of the signature.
func (c *Client) writeHeader(ctx context.Context, r *request) (err error) {
	if r.store != nil {
		if r.credential, err = r.store.Load(ctx); err != nil {
			return fmt.Errorf("signpost: the store of the credential: %w", err)
		}
	}
	names := c.settings.HeaderNames
	own := [][2]string{
		{names.App, c.settings.App}, {names.Version, r.version}, {names.Language, r.language}, {names.Authorization, r.credential},
		{"Idempotency-Key", r.idempotencyKey},
	}
	r.header = http.Header{"Accept": {r.accept}, "User-Agent": {userAgent}}
	for _, one := range r.headers {
		name := strings.ToLower(one[0])
		isOwn := contains(reserved, name) || strings.HasPrefix(name, strings.ToLower(c.settings.Prefix)+"-x-")
		for _, header := range own {
			isOwn = isOwn || strings.EqualFold(name, header[0])
		}
		if isOwn || !headerNameGrammar.MatchString(name) {
			return argumentError("header %q cannot be set: the client writes it, or it is no name", one[0])
		}
	}
	for _, one := range append(own, r.headers...) {
		if err := checkHeader(one[0], one[1]); err != nil {
			return err
		}
		if one[1] != "" {
			r.header.Set(one[0], one[1])
		}
	}
	return nil
}

// send signs and sends one request, and returns a *Problem for a status of 400 or more.
func (c *Client) send(ctx context.Context, r *request, milliseconds int64, timeout time.Duration, isStream bool) (*Stream, error) {
	s, key, header, source, size, kind := &c.settings, c.settings.Key, r.header.Clone(), r.source, r.size, r.contentType
	query, text := r.query, ""
	head := SignedHead{r.method, r.path + query, strconv.FormatInt(milliseconds, 10), hex.EncodeToString(random(12)), r.hash}
	if r.inHeaders {
		header.Set(s.Prefix+"-X-Time", head.Time)
		header.Set(s.Prefix+"-X-Nonce", head.Nonce)
		header.Set(s.Prefix+"-X-Sign", head.Signature(key, s.Profile.headerAlgorithm()))
	} else {
		var err error
		if text, err = Sign(r.pairs, key, s.Profile, r.method, r.path, milliseconds); err != nil {
			return nil, err
		}
		if query = "?" + text; !r.isQuery {
			query, source, size, kind = "", strings.NewReader(text), int64(len(text)), formType
		}
	}
	if kind != "" {
		header.Set("Content-Type", kind)
	}
	stream := newStream(ctx, r, timeout, isStream)
	request, err := http.NewRequestWithContext(stream.context, r.method, s.URL+r.path+query, nil)
	if err != nil {
		return nil, argumentError("path cannot be sent")
	}
	request.Header, request.ContentLength = header, size
	if size > 0 {
		// The transport uses it where the gateway has refused the connection or the stream, so that nothing was executed.
		request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(io.NewSectionReader(source, 0, size)), nil }
		request.Body, _ = request.GetBody()
	}
	if !*r.isRepeatable && (r.method == "GET" || r.method == "HEAD" || r.idempotencyKey != "") {
		// The transport repeats such a request by itself, unless it has a body that cannot be read again.
		request.GetBody = nil
		if request.Body == nil {
			request.Body = struct{ io.ReadCloser }{http.NoBody}
		}
	}
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		return nil, stream.end("", err)
	}
	c.warnOf(response.Header, r.version)
	if err := stream.begin(response); err != nil {
		return nil, err
	}
	if response.StatusCode >= 400 {
		problem := problemOf(response.StatusCode, response.Header, stream.content)
		if problem.Canonical != "" {
			problem.signed = c.signed(r, head, text)
		}
		return nil, problem
	}
	return stream, nil
}

// signed is what the client signed, as the gateway shows it: without the key and secret values, at most 2 KiB. CONTRACT 7.
func (c *Client) signed(r *request, head SignedHead, text string) string {
	signed, _ := Canonical("", masked(text, c.settings.Key), c.settings.Profile, r.method, r.path)
	if r.inHeaders {
		head.Target = masked(head.Target, c.settings.Key)
		signed = head.Canonical("<APP_KEY>", c.settings.Profile.headerAlgorithm())
	}
	return fmt.Sprintf("%.2048s", signed)
}

// failed is the error of a call without a response.
func (r *request) failed(what string, err error) error {
	return fmt.Errorf("signpost: %s %s: %s%w", r.method, r.path, what, err)
}

func (c *Client) warnOf(headers http.Header, version string) {
	c.warn("deprecated", headers.Get("Deprecation"))
	c.warn("sunset", headers.Get("Sunset"))
	asked, served := strings.TrimSpace(version), headers.Get(c.settings.HeaderNames.Version)
	isOther := asked != "" && served != "" && !strings.EqualFold(asked, served)
	if isOther || headers.Get(c.settings.Prefix+"-X-Version-Source") == "unknown" {
		c.warn("version_unknown", served)
	}
}

// nextTime is a time of the clock that no other request of this client has: two equal requests with one time would have one signature.
func (c *Client) nextTime() int64 {
	now := c.settings.Clock()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	// It is far ahead if the clock was set back, or after many calls: then the gateway would not take it.
	if c.lastTime++; c.lastTime < now || c.lastTime > now+maxTimeAhead {
		c.lastTime = now
	}
	return c.lastTime
}

// pause is that before a repetition without Retry-After. CONTRACT 10.
func pause(repetitions int) time.Duration {
	if repetitions > 20 {
		repetitions = 20
	}
	return time.Duration(float64(500*time.Millisecond<<repetitions) * (0.5 + float64(random(1)[0])/256))
}

// apart is how far this system's clock is from the gateway's, if so many milliseconds are added to it.
func apart(milliseconds int64) string {
	if milliseconds < 0 {
		return fmt.Sprintf("%d s ahead", (500-milliseconds)/1000)
	}
	return fmt.Sprintf("%d s behind", (500+milliseconds)/1000)
}

func random(bytes int) []byte {
	random := make([]byte, bytes)
	if _, err := rand.Read(random); err != nil {
		panic(err) // The system has no random numbers.
	}
	return random
}

func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
