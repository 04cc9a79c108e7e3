// Signpost's client for Go, in one file. It needs Go 1.19 or later, and nothing else.
// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

// Package signpost signs a request by the rules of a Signpost gateway, sends exactly what it signed, and logs users in.
//
// Copy this file into a folder signpost of your module. CONTRACT is gateway/protocol/CONTRACT.md.
package signpost

import (
	"context"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand"
	"mime"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	checkWait        = 30 * time.Second
	maxProblemBytes  = 64 << 10
	maxResponseBytes = 16 << 20
	maxClockError    = 24 * time.Hour // beyond it, the gateway's clock can as well be wrong
)

var (
	prefixGrammar     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,31}$`)
	headerNameGrammar = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	headerGrammar     = regexp.MustCompile(`^[ -~]*$`)
	pathGrammar       = regexp.MustCompile(`^/(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*$`)
	dotSegment        = regexp.MustCompile(`(?i)/(?:\.|%2e){1,2}(?:/|$)`)
	retryAfterGrammar = regexp.MustCompile(`^[0-9]{1,9}$`)
	// Values of logins, and what else is secret: the gateway masks them in the text that it signed, too. CONTRACT 7.
	secretNames = regexp.MustCompile(`(?i)((?:^|&)(?:(?:(?:access|refresh|id)_)?token|ticket|code(?:_verifier)?|state|confirm|authorization|` +
		`credential|passw(?:or)?d|(?:client_)?secret|api_key)=)[^&]+`)
	credentials = regexp.MustCompile(`(?i)=(?:Bearer%20)?[\w-]{43}(&|$)`)

	presets = map[string]Profile{
		"plain":    {},
		"decoded":  {Values: "decoded"},
		"bilibili": {},
		"alipay":   {Values: "decoded", Empty: "drop", LeaveOut: []string{"sign_type"}},
		"wechat":   {Values: "decoded", Empty: "drop", Layout: "pairs-key"},
		"top":      {Values: "decoded", Empty: "drop", Layout: "concat-both"},
	}
	// CONTRACT 7: nothing was forwarded, so any call can be repeated.
	notExecuted = map[string]bool{
		"request_timeout": true, "request_replayed": true, "rate_limited": true, "no_healthy_backend": true, "version_brownout": true,
	}
	// CONTRACT 7: the call may have been executed.
	perhapsExecuted = map[string]bool{
		"internal": true, "backend_unreachable": true, "store_unavailable": true, "backend_timeout": true, "gateway_stopping": true,
	}
)

// Pairs are names and values as text, not encoded. Names can repeat.
type Pairs [][2]string

// Profile is the sign profile of an application. What is empty is as in the preset; without one, as in "plain". CONTRACT 3.
type Profile struct {
	Preset    string   `json:"preset,omitempty"`    // plain, decoded, bilibili, alipay, wechat or top
	Values    string   `json:"values,omitempty"`    // wire or decoded
	Layout    string   `json:"layout,omitempty"`    // pairs, pairs-key, concat or concat-both
	Empty     string   `json:"empty,omitempty"`     // keep or drop
	LeaveOut  []string `json:"leave_out,omitempty"` // unsigned names; a list that is empty but not nil overrides the preset's
	Cover     string   `json:"cover,omitempty"`     // parameters or request
	Algorithm string   `json:"algorithm,omitempty"` // md5 or hmac-sha256
}

// HeaderNames replace the names of the convention headers that follow from the prefix. CONTRACT 1.
type HeaderNames struct{ App, Version, Language, Authorization string }

// Settings of a client. Only URL and Key are required.
type Settings struct {
	URL            string // origin of the gateway: http or https, host and perhaps a port
	Key            string // the application's key, as text and without white space around it
	App            string // ident, required in multi-application mode
	Prefix         string // of the convention headers; default Acme
	Version        string
	Language       string
	Authorization  string // the user's credential; set by Login
	Profile        Profile
	HeaderNames    HeaderNames
	ConnectTimeout time.Duration // default 5 s
	Timeout        time.Duration // for a whole request and its response; default 65 s
	Retries        int           // repetitions of a call at most; 0 is the default 3, a negative number is none
	MaxWait        time.Duration // longest pause before a repetition; default 30 s
	// OnWarning gets version_unknown, deprecated or sunset, and a value: each once for a client. Default: the standard logger.
	OnWarning func(name, value string)
	Clock     func() int64 // milliseconds since 1970; default the system's
}

// Format writes no secret.
func (s Settings) Format(state fmt.State, _ rune) {
	fmt.Fprintf(state, "signpost.Settings(%s)", s.App)
}

// ArgumentError says what is wrong with a setting or an argument. Nothing was sent.
type ArgumentError string

func (e ArgumentError) Error() string { return "signpost: " + string(e) }

func argumentError(format string, values ...any) error {
	return ArgumentError(fmt.Sprintf(format, values...))
}

// Problem is the error of a response with a status of 400 or more. Decide by Code: it never changes. CONTRACT 7.
type Problem struct {
	Status                         int
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

// LoginResult is what a login returns. CONTRACT 8.
type LoginResult struct {
	Authorization string         `json:"authorization"` // the credential
	ExpiresIn     int64          `json:"expires_in"`    // seconds until the credential expires
	Created       bool           `json:"created"`       // whether this login created the account
	Account       map[string]any `json:"account"`
}

// Format writes no secret.
func (r LoginResult) Format(state fmt.State, _ rune) {
	fmt.Fprintf(state, "signpost.LoginResult(%v)", r.Account["username"])
}

// Encode encodes a name or a value by RFC 3986. What is not UTF-8 is an ArgumentError.
func Encode(text string) (string, error) {
	if !utf8.ValidString(text) {
		return "", argumentError("a name or a value is not UTF-8")
	}
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20"), nil
}

// Canonical returns the canonical string of pairs as they are sent, with <APP_KEY> in the key's place. CONTRACT 3.
// The method and the path count only with Cover "request".
func Canonical(query, form string, profile Profile, method, path string) (string, error) {
	rules, err := profile.complete()
	if err != nil {
		return "", err
	}
	return rules.canonical(query, form, "<APP_KEY>", method, path)
}

// Signature returns the signature of pairs as they are sent, in hex. A sign among them is not signed. CONTRACT 3.
func Signature(query, form, key string, profile Profile, method, path string) (string, error) {
	rules, err := profile.complete()
	if err == nil {
		err = checkKey(key)
	}
	if err != nil {
		return "", err
	}
	return rules.signature(query, form, key, method, path)
}

// Sign returns the text to send as query or as form: the pairs in their order, then time, unless a pair has that name, then sign.
// The time is in milliseconds since 1970.
func Sign(pairs Pairs, key string, profile Profile, method, path string, milliseconds int64) (string, error) {
	text, err := pairs.encode(milliseconds)
	if err != nil {
		return "", err
	}
	sign, err := Signature("", text, key, profile, method, path)
	return text + "&sign=" + sign, err
}

// Client calls a gateway. Goroutines can share it.
type Client struct {
	settings Settings
	http     *http.Client

	authorization atomic.Value // string
	offset        atomic.Int64 // milliseconds to add to the clock
	warned        sync.Map
	mutex         sync.Mutex // of what follows
	lastTime      int64      // of the clock, without the offset
	random        *rand.Rand
}

// New checks the settings: what cannot be right is an ArgumentError.
func New(settings Settings) (*Client, error) {
	s := &settings
	setDefault(&s.Prefix, "Acme")
	setDefault(&s.ConnectTimeout, 5*time.Second)
	setDefault(&s.Timeout, 65*time.Second)
	setDefault(&s.Retries, 3)
	setDefault(&s.MaxWait, 30*time.Second)
	origin, err := url.Parse(s.URL)
	if err != nil || !isOrigin(s.URL, origin) {
		return nil, argumentError("url must be http:// or https:// with a host and perhaps a port, and nothing else")
	}
	s.URL = origin.Scheme + "://" + origin.Host
	if err := checkKey(s.Key); err != nil {
		return nil, err
	}
	if !prefixGrammar.MatchString(s.Prefix) {
		return nil, argumentError("prefix must be a letter, then at most 31 letters, digits and -")
	}
	setDefault(&s.HeaderNames.App, s.Prefix+"-X-App")
	setDefault(&s.HeaderNames.Version, s.Prefix+"-X-Version")
	setDefault(&s.HeaderNames.Language, s.Prefix+"-X-Language")
	setDefault(&s.HeaderNames.Authorization, s.Prefix+"-X-Authorization")
	for _, name := range []string{s.HeaderNames.App, s.HeaderNames.Version, s.HeaderNames.Language, s.HeaderNames.Authorization} {
		if !headerNameGrammar.MatchString(name) {
			return nil, argumentError("header names: %q is no name of a header", name)
		}
	}
	for _, one := range [][2]string{{"app", s.App}, {"version", s.Version}, {"language", s.Language}, {"authorization", s.Authorization}} {
		if err := checkHeader(one[0], one[1]); err != nil {
			return nil, err
		}
	}
	if s.Profile, err = s.Profile.complete(); err != nil {
		return nil, err
	}
	if s.OnWarning == nil {
		s.OnWarning = logWarning
	}
	if s.Clock == nil {
		s.Clock = func() int64 { return time.Now().UnixMilli() }
	}
	transport := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: s.ConnectTimeout}).DialContext,
		TLSHandshakeTimeout:    s.ConnectTimeout,
		IdleConnTimeout:        50 * time.Second, // CONTRACT 10: below the gateway's 60 s
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: 64 << 10,
	}
	doNotFollow := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client := &Client{
		settings: settings,
		http:     &http.Client{Transport: transport, CheckRedirect: doNotFollow},
		random:   rand.New(rand.NewSource(time.Now().UnixNano())),
	}
	return client, client.SetAuthorization(s.Authorization)
}

// Format writes no secret.
func (c *Client) Format(state fmt.State, _ rune) {
	fmt.Fprintf(state, "signpost.Client(%s)", c.settings.URL)
}

// Authorization is the user's credential, or empty.
func (c *Client) Authorization() string { return c.authorization.Load().(string) }

// SetAuthorization sets the user's credential. Login does it, too, and Logout removes it.
func (c *Client) SetAuthorization(credential string) error {
	if err := checkHeader("authorization", credential); err != nil {
		return err
	}
	c.authorization.Store(credential)
	return nil
}

// CallOption is an option of one call.
type CallOption func(*callOptions)

type callOptions struct {
	context    context.Context
	repeatable bool
	timeout    time.Duration
}

// Context ends a call, its pauses included, with the context.
func Context(ctx context.Context) CallOption { return func(o *callOptions) { o.context = ctx } }

// Repeatable says whether a repetition does no harm: without it, a GET's does none.
func Repeatable(is bool) CallOption { return func(o *callOptions) { o.repeatable = is } }

// Timeout replaces the client's.
func Timeout(timeout time.Duration) CallOption { return func(o *callOptions) { o.timeout = timeout } }

// Call signs the pairs and sends them, as query of a GET or form of a POST. Redirects are not followed.
//
// Errors: *Problem for a status of 400 or more, ArgumentError if the call cannot be sent, otherwise those of net/http, without the address.
// It repeats the call by CONTRACT 10 before it returns one.
func (c *Client) Call(method, path string, pairs Pairs, options ...CallOption) (*Response, error) {
	if method != http.MethodGet && method != http.MethodPost {
		return nil, argumentError("method must be GET or POST")
	}
	if !pathGrammar.MatchString(path) || dotSegment.MatchString(path) {
		return nil, argumentError("path must begin with /, be encoded, and have no query and no segment . or ..")
	}
	o := callOptions{context: context.Background(), repeatable: method == http.MethodGet, timeout: c.settings.Timeout}
	for _, option := range options {
		option(&o)
	}
	offset, isCorrected := c.offset.Load(), false
	for repetitions := 0; ; repetitions++ {
		text, err := Sign(pairs, c.settings.Key, c.settings.Profile, method, path, c.nextTime()+offset)
		if err != nil {
			return nil, err
		}
		response, err := c.send(method, path, text, o)
		var problem *Problem
		isProblem := errors.As(err, &problem)
		isOutOfWindow := isProblem && problem.Code == "time_out_of_window"
		if isCorrected && !isOutOfWindow && (err == nil || isProblem) {
			c.offset.Store(offset) // The gateway took the time of the request.
		}
		if err == nil {
			return response, nil
		}
		if isOutOfWindow && !isCorrected {
			if offset, isCorrected = c.correction(problem.ServerTime); isCorrected {
				repetitions-- // It is not one of the retries.
				continue
			}
		}
		var network *net.OpError
		wait, isRepeated := c.pause(repetitions), o.repeatable
		if isProblem {
			isRepeated = notExecuted[problem.Code] || o.repeatable && perhapsExecuted[problem.Code]
			if problem.RetryAfter > 0 {
				wait = problem.RetryAfter
			}
		} else if errors.As(err, &network) && network.Op == "dial" {
			isRepeated = true // There was no connection, so nothing was sent.
		}
		if !isRepeated || repetitions >= c.settings.Retries || wait > c.settings.MaxWait || o.context.Err() != nil {
			return nil, err
		}
		if sleep(o.context, wait) != nil {
			return nil, err
		}
	}
}

// Login logs a user in by polling, and sets the client's credential. CONTRACT 8.
//
// It calls show with the address that the user must open, and the code that the user compares. An empty provider is the default one.
// The error of a login that failed is a *Problem, for example login_denied.
func (c *Client) Login(show func(authorizeURL, userCode string), provider string, options ...CallOption) (*LoginResult, error) {
	var pairs Pairs
	if provider != "" {
		pairs = Pairs{{"provider", provider}}
	}
	begun, err := c.read("POST", "/login", pairs, options...)
	if err != nil {
		return nil, err
	}
	token, _ := begun["token"].(string)
	authorizeURL, _ := begun["authorize_url"].(string)
	userCode, _ := begun["user_code"].(string)
	if token == "" || authorizeURL == "" {
		return nil, errors.New("signpost: the response has no token: is this version a login service?")
	}
	isAddress := strings.HasPrefix(authorizeURL, "http://") || strings.HasPrefix(authorizeURL, "https://")
	if !isAddress || printable(authorizeURL) != authorizeURL {
		return nil, errors.New("signpost: POST /login: malformed response: authorize_url is no address")
	}
	show(authorizeURL, printable(userCode))
	o := callOptions{context: context.Background()}
	for _, option := range options {
		option(&o)
	}
	options = append(options[:len(options):len(options)], Repeatable(true))
	check := append(options[:len(options):len(options)], Timeout(checkWait+10*time.Second))
	pairs = Pairs{{"token", token}, {"wait", strconv.Itoa(int(checkWait.Seconds()))}}
	interval := seconds(begun["interval"], 2, 60)
	for end := time.Now().Add(seconds(begun["expires_in"], 600, 3600)); time.Now().Before(end); {
		start := time.Now()
		checked, err := c.read("POST", "/check", pairs, check...)
		if err != nil {
			return nil, err
		}
		if checked["status"] != "pending" {
			break
		}
		wait := interval
		if left := time.Until(end); left < wait {
			wait = left
		}
		if time.Since(start) < checkWait/2 {
			if err := sleep(o.context, wait); err != nil {
				return nil, err
			}
		}
	}
	response, err := c.Call("POST", "/user/login", Pairs{{"token", token}}, options...)
	if err != nil {
		return nil, err
	}
	result := &LoginResult{}
	if response.JSON(result) != nil || result.Authorization == "" {
		return nil, errors.New("signpost: POST /user/login: the response is no login result")
	}
	return result, c.SetAuthorization(result.Authorization)
}

// Logout ends the login, and forgets the credential.
func (c *Client) Logout(options ...CallOption) error {
	if _, err := c.Call("POST", "/user/logout", nil, options...); err != nil {
		return err
	}
	return c.SetAuthorization("")
}

// User returns the account of the user who is logged in.
func (c *Client) User(options ...CallOption) (map[string]any, error) {
	return c.read("GET", "/user", nil, options...)
}

// SendEvent stores an event with the account. Empty data and an empty key are not sent. It is repeatable only with an idempotency key.
func (c *Client) SendEvent(event, data, idempotencyKey string, options ...CallOption) (map[string]any, error) {
	pairs := Pairs{{"event", event}}
	if data != "" {
		pairs = append(pairs, [2]string{"data", data})
	}
	if idempotencyKey != "" {
		pairs = append(pairs, [2]string{"idempotency_key", idempotencyKey})
		options = append(options[:len(options):len(options)], Repeatable(true))
	}
	return c.read("POST", "/event/send", pairs, options...)
}

// read calls, and reads the JSON object of the response.
func (c *Client) read(method, path string, pairs Pairs, options ...CallOption) (object map[string]any, err error) {
	response, err := c.Call(method, path, pairs, options...)
	if err == nil && (response.JSON(&object) != nil || object == nil) {
		err = fmt.Errorf("signpost: %s %s: the response is no JSON object", method, path)
	}
	return object, err
}

// send sends one request, and returns a *Problem for a status of 400 or more.
func (c *Client) send(method, path, text string, o callOptions) (*Response, error) {
	ctx, cancel := context.WithTimeout(o.context, o.timeout)
	defer cancel()
	address, body := c.settings.URL+path, io.Reader(nil)
	if method == http.MethodPost {
		body = strings.NewReader(text)
	} else {
		address += "?" + text
	}
	request, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, argumentError("path cannot be sent")
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "signpost-go")
	names := c.settings.HeaderNames
	for _, one := range [][2]string{
		{names.App, c.settings.App}, {names.Version, c.settings.Version}, {names.Language, c.settings.Language}, {names.Authorization, c.Authorization()},
	} {
		if one[1] != "" {
			request.Header.Set(one[0], one[1])
		}
	}
	answer, err := c.http.Do(request)
	if err != nil {
		// A *url.Error has the whole address, with the query.
		if with := (*url.Error)(nil); errors.As(err, &with) {
			err = with.Err
		}
		return nil, fmt.Errorf("signpost: %s %s: %w", method, path, err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(io.LimitReader(answer.Body, maxResponseBytes+1))
	if len(content) > maxResponseBytes {
		return nil, fmt.Errorf("signpost: %s %s: the response has more than 16 MiB", method, path)
	}
	if err != nil {
		return nil, fmt.Errorf("signpost: %s %s: the response is incomplete: %w", method, path, err)
	}
	response := &Response{answer.StatusCode, answer.Header, content}
	c.warn(response.Headers)
	if response.Status >= 400 {
		return nil, problemOf(response, c.signed(method, path, text))
	}
	return response, nil
}

// nextTime is a time of the clock that no other request of this client has: two equal requests with one time would have one signature.
func (c *Client) nextTime() int64 {
	now := c.settings.Clock()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.lastTime++; c.lastTime < now {
		c.lastTime = now
	}
	return c.lastTime
}

// correction is what to add to the clock for the gateway's time, unless they differ by more than a day.
func (c *Client) correction(serverTime int64) (offset int64, isPossible bool) {
	now := c.settings.Clock()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	// Otherwise times would go on from that of a clock that was set back. Those of other goroutines are only a little ahead.
	if c.lastTime-now >= 1000 {
		c.lastTime = now
	}
	offset = serverTime - now
	return offset, offset <= maxClockError.Milliseconds() && offset >= -maxClockError.Milliseconds()
}

// pause is that before a repetition without Retry-After. CONTRACT 10.
func (c *Client) pause(repetitions int) time.Duration {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if repetitions > 20 {
		repetitions = 20
	}
	return time.Duration(float64(500*time.Millisecond<<repetitions) * (0.5 + c.random.Float64()))
}

// signed is what the client signed, as the gateway shows it: without the key and secret values, at most 2 KiB. CONTRACT 7.
func (c *Client) signed(method, path, text string) string {
	key, _ := Encode(c.settings.Key)
	masked := credentials.ReplaceAllString(secretNames.ReplaceAllString(text, "${1}***"), "=***$1")
	signed, _ := Canonical("", strings.ReplaceAll(masked, key, "***"), c.settings.Profile, method, path)
	return fmt.Sprintf("%.2048s", signed)
}

func logWarning(name, value string) {
	if name == "version_unknown" {
		value += " served, not the version asked for"
	}
	log.Printf("signpost: %s: %s", name, printable(value))
}

func (c *Client) warn(headers http.Header) {
	found := [][2]string{{"deprecated", headers.Get("Deprecation")}, {"sunset", headers.Get("Sunset")}}
	asked, served := strings.TrimSpace(c.settings.Version), headers.Get(c.settings.HeaderNames.Version)
	isOther := asked != "" && served != "" && !strings.EqualFold(asked, served)
	if isOther || headers.Get(c.settings.Prefix+"-X-Version-Source") == "unknown" {
		found = append(found, [2]string{"version_unknown", served})
	}
	for _, warning := range found {
		if warning[1] == "" {
			continue
		}
		if _, isOld := c.warned.LoadOrStore(warning[0], true); !isOld {
			c.settings.OnWarning(warning[0], warning[1])
		}
	}
}

// problemOf reads a problem document, or as much as there is of one.
func problemOf(response *Response, signed string) *Problem {
	problem := &Problem{Status: response.Status, signed: signed, RequestID: response.Headers.Get("X-Request-Id")}
	if after := response.Headers.Get("Retry-After"); retryAfterGrammar.MatchString(after) {
		number, _ := strconv.Atoi(after)
		problem.RetryAfter = time.Duration(number) * time.Second
	}
	kind, _, _ := mime.ParseMediaType(response.Headers.Get("Content-Type"))
	var document map[string]json.RawMessage
	if kind != "application/problem+json" || len(response.Body) > maxProblemBytes || response.JSON(&document) != nil {
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

// complete checks the profile, and returns it with what it has from its preset.
func (p Profile) complete() (Profile, error) {
	preset := presets[p.Preset]
	for _, member := range []struct {
		name, allowed string
		value         *string
		preset        string
	}{
		{"preset", "plain, decoded, bilibili, alipay, wechat, top", &p.Preset, ""},
		{"values", "wire, decoded", &p.Values, preset.Values},
		{"layout", "pairs, pairs-key, concat, concat-both", &p.Layout, preset.Layout},
		{"empty", "keep, drop", &p.Empty, preset.Empty},
		{"cover", "parameters, request", &p.Cover, preset.Cover},
		{"algorithm", "md5, hmac-sha256", &p.Algorithm, preset.Algorithm},
	} {
		if *member.value == "" {
			*member.value = member.preset
		} else if !contains(strings.Split(member.allowed, ", "), *member.value) {
			return p, argumentError("profile: %s must be one of %s", member.name, member.allowed)
		}
	}
	if p.LeaveOut == nil {
		p.LeaveOut = preset.LeaveOut
	}
	if contains(p.LeaveOut, "time") || contains(p.LeaveOut, "") {
		return p, argumentError("profile: leave_out must be names, without time")
	}
	return p, nil
}

func (p Profile) signature(query, form, key, method, path string) (string, error) {
	text, err := p.canonical(query, form, key, method, path)
	if p.Algorithm == "hmac-sha256" {
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write([]byte(text))
		return hex.EncodeToString(mac.Sum(nil)), err
	}
	sum := md5.Sum([]byte(text))
	return hex.EncodeToString(sum[:]), err
}

func (p Profile) canonical(query, form, key, method, path string) (string, error) {
	head := ""
	if p.Cover == "request" {
		head = method + "\n" + path + "\n"
		if method == "" || path == "" {
			return "", argumentError("the profile covers the request: method and path are needed")
		}
	}
	type pair struct{ decodedName, name, value string }
	var signed []pair
	for _, sent := range strings.Split(query+"&"+form, "&") {
		name, value, _ := strings.Cut(sent, "=")
		decodedName, err := decode(name)
		if err != nil {
			return "", err
		}
		decodedValue, err := decode(value)
		if err != nil {
			return "", err
		}
		if sent == "" || decodedName == "sign" || contains(p.LeaveOut, decodedName) || p.Empty == "drop" && value == "" {
			continue
		}
		if p.Values == "decoded" {
			name, value = decodedName, decodedValue
		}
		signed = append(signed, pair{decodedName, name, value})
	}
	// By the bytes of the decoded name. Pairs of one name keep their order.
	sort.SliceStable(signed, func(i, j int) bool { return signed[i].decodedName < signed[j].decodedName })
	separator, equals := "&", "="
	if strings.HasPrefix(p.Layout, "concat") {
		separator, equals = "", ""
	}
	parts := make([]string, 0, len(signed)+1)
	for _, pair := range signed {
		parts = append(parts, pair.name+equals+pair.value)
	}
	if p.Layout == "pairs-key" {
		parts, key = append(parts, "key="+key), ""
	}
	text := strings.Join(parts, separator)
	if p.Algorithm == "hmac-sha256" {
		return head + text, nil
	}
	if p.Layout == "concat-both" {
		text = key + text
	}
	return head + text + key, nil
}

// decode decodes a name or a value as a form's.
func decode(sent string) (string, error) {
	text, err := url.QueryUnescape(sent)
	if err != nil {
		return "", argumentError("query or form has a %% without two hex digits")
	}
	if !utf8.ValidString(text) {
		return "", argumentError("query or form is not UTF-8 once decoded")
	}
	return text, nil
}

// encode returns the pairs as they are sent, and a time if they have none.
func (p Pairs) encode(milliseconds int64) (string, error) {
	parts := make([]string, 0, len(p)+1)
	hasTime := false
	for _, pair := range p {
		if pair[0] == "sign" {
			return "", argumentError("a pair is named sign: the client adds it")
		}
		hasTime = hasTime || pair[0] == "time"
		name, err := Encode(pair[0])
		if err != nil {
			return "", err
		}
		value, err := Encode(pair[1])
		if err != nil {
			return "", err
		}
		parts = append(parts, name+"="+value)
	}
	if !hasTime {
		parts = append(parts, "time="+strconv.FormatInt(milliseconds, 10))
	}
	return strings.Join(parts, "&"), nil
}

func isOrigin(text string, origin *url.URL) bool {
	port := origin.Port()
	_, err := strconv.ParseUint(port, 10, 16)
	isPlain := origin.User == nil && origin.Opaque == "" && (origin.Path == "" || origin.Path == "/") && !strings.ContainsAny(text, "?#")
	hasHost := origin.Hostname() != "" && (port == "" || err == nil) && !strings.HasSuffix(origin.Host, ":")
	return (origin.Scheme == "http" || origin.Scheme == "https") && isPlain && hasHost
}

func checkKey(key string) error {
	if key == "" || key != strings.TrimSpace(key) {
		return argumentError("key is empty, or has white space at an end, perhaps the line break of its file: trim it")
	}
	if !utf8.ValidString(key) {
		return argumentError("key is not UTF-8")
	}
	return nil
}

func checkHeader(name, value string) error {
	if !headerGrammar.MatchString(value) {
		return argumentError("%s must be printable ASCII: it is sent as a header", name)
	}
	return nil
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

// seconds reads a number of seconds, and takes at least 1 and at most max.
func seconds(member any, otherwise, max float64) time.Duration {
	number, isNumber := member.(float64)
	if !isNumber {
		number = otherwise
	}
	return time.Duration(math.Min(math.Max(number, 1), max) * float64(time.Second))
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

func contains(list []string, text string) bool {
	for _, one := range list {
		if one == text {
			return true
		}
	}
	return false
}

func setDefault[T comparable](field *T, value T) {
	if *field == *new(T) {
		*field = value
	}
}
