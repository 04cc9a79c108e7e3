// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

package signpost

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

const checkWait = 30 * time.Second

// Account is a user's. Provider and Username identify it. Where CreatedAt is, times are milliseconds since 1970.
type Account struct {
	Username    string          `json:"username"`
	DisplayName string          `json:"display_name"`
	Provider    string          `json:"provider"`
	CreatedAt   int64           `json:"created_at"`
	JSON        json.RawMessage `json:"-"` // all of it, with the members that a version of its own adds
}

// UnmarshalJSON reads an account of any version.
func (a *Account) UnmarshalJSON(text []byte) error {
	type plain Account
	with := struct {
		*plain
		Type string `json:"type"` // the provider in v1
	}{plain: (*plain)(a)}
	err := json.Unmarshal(text, &with)
	setDefault(&a.Provider, with.Type)
	a.JSON = append(json.RawMessage(nil), text...)
	return err
}

// LoginResult is what a login returns. Of a renewal it has only the first two members. CONTRACT 8.
type LoginResult struct {
	Authorization string  `json:"authorization"` // the credential
	ExpiresIn     int64   `json:"expires_in"`    // seconds until the credential expires
	Created       bool    `json:"created"`       // whether this login created the account
	Account       Account `json:"account"`
}

// Format writes no secret.
func (r LoginResult) Format(state fmt.State, _ rune) {
	fmt.Fprintf(state, "signpost.LoginResult(%s)", r.Account.Username)
}

// Event is one that was stored with the account.
type Event struct {
	ID         int64  `json:"id"`
	Event      string `json:"event"`
	Data       string `json:"data,omitempty"`
	ReceivedAt int64  `json:"received_at"` // milliseconds since 1970
}

// EventPage is a page of events, newest first.
type EventPage struct {
	Events []Event `json:"events"`
	Next   string  `json:"next"` // the next page's before; empty on the last page
}

// RedirectLogin is a redirect login that begins when a browser opens its URL, within the gateway's window: make it just before.
type RedirectLogin struct {
	URL          string
	CodeVerifier string // keep it in the visitor's session only
}

// Format writes no secret.
func (r RedirectLogin) Format(state fmt.State, _ rune) { fmt.Fprint(state, "signpost.RedirectLogin") }

// Login logs a user in by polling. It calls show with the address that the user must open, and the code that the user compares. An empty
// provider is the default one. Timeout is for all of it. The error of a login that failed is a *Problem, for example login_denied.
// CONTRACT 8. The client keeps no user: call with Credential(result.Authorization).
func (c *Client) Login(ctx context.Context, provider string, show func(authorizeURL, userCode string), options ...Option) (*LoginResult, error) {
	o := c.with(options)
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
		o.timeout = 0
	}
	answer, err := read[map[string]any](ctx, c, "POST", "/login", o.anonymous(append(Pairs{{"provider", provider}}, o.pairs...), nil))
	if err != nil {
		return nil, err
	}
	begun := *answer
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
	isRepeatable := true
	check := o.anonymous(Pairs{{"token", token}, {"wait", checkWait.Seconds()}}, &isRepeatable)
	check.requestTimeout = checkWait + 10*time.Second
	interval := seconds(begun["interval"], 2, 60)
	for end := time.Now().Add(seconds(begun["expires_in"], 600, 3600)); time.Now().Before(end); {
		start := time.Now()
		checked, err := read[map[string]any](ctx, c, "POST", "/check", check)
		if err != nil {
			return nil, err
		}
		if (*checked)["status"] != "pending" {
			break
		}
		wait := interval
		if left := time.Until(end); left < wait {
			wait = left
		}
		if time.Since(start) < checkWait/2 {
			if err := sleep(ctx, wait); err != nil {
				return nil, fmt.Errorf("signpost: login: %w", err)
			}
		}
	}
	return c.collect(ctx, "/user/login", o.anonymous(Pairs{{"token", token}}, &isRepeatable), o.store)
}

// LoginURL begins a redirect login, whose ticket only its CodeVerifier exchanges. Pairs can be prompt and login_hint. CONTRACT 10:
// put a random value into the query of returnTo and into the visitor's session, and compare both before Exchange.
func (c *Client) LoginURL(returnTo, provider string, options ...Option) (*RedirectLogin, error) {
	o, profile := c.with(options), c.settings.Profile
	if profile.Carrier == "headers" {
		return nil, argumentError("a browser sends no signature in headers: the profile's carrier must be both or parameters")
	}
	verifier := base64.RawURLEncoding.EncodeToString(random(32))
	challenge := sha256.Sum256([]byte(verifier))
	pairs := append(Pairs{
		{"return_to", returnTo}, {"code_challenge", base64.RawURLEncoding.EncodeToString(challenge[:])}, {"code_challenge_method", "S256"},
		{"provider", provider}, {"app", c.settings.App},
	}, o.pairs...)
	text, err := Sign(pairs.present(), c.settings.Key, profile, "GET", "/login", c.nextTime()+c.offset.Load())
	return &RedirectLogin{c.settings.URL + "/login?" + text, verifier}, err
}

// Exchange exchanges the ticket of a redirect login, which serves once. Without a challenge the verifier is empty.
func (c *Client) Exchange(ctx context.Context, ticket, codeVerifier string, options ...Option) (*LoginResult, error) {
	o := c.with(options)
	return c.collect(ctx, "/user/login", o.anonymous(Pairs{{"ticket", ticket}, {"code_verifier", codeVerifier}}, nil), o.store)
}

// Renew exchanges the credential for a new one, which expires later. The old one ends 60 s later.
func (c *Client) Renew(ctx context.Context, options ...Option) (*LoginResult, error) {
	o := c.with(append([]Option{Repeatable(true)}, options...))
	return c.collect(ctx, "/user/renew", o, o.store)
}

// Logout ends the login, and all its credentials.
func (c *Client) Logout(ctx context.Context, options ...Option) error {
	o := c.with(options)
	if _, err := c.call(ctx, "POST", "/user/logout", o); err != nil || o.store == nil {
		return err
	}
	return o.store.Clear(ctx)
}

// User returns the account of the user.
func (c *Client) User(ctx context.Context, options ...Option) (*Account, error) {
	return read[Account](ctx, c, "GET", "/user", c.with(options))
}

// SendEvent stores an event with the account. Empty data is not sent. With IdempotencyKey a repetition stores nothing.
func (c *Client) SendEvent(ctx context.Context, event, data string, options ...Option) (*Event, error) {
	o := c.with(options)
	if o.idempotencyKey != "" && o.isRepeatable == nil {
		Repeatable(true).apply(&o)
	}
	Pairs{{"event", event}, {"data", data}, {"idempotency_key", o.idempotencyKey}}.present().apply(&o)
	o.idempotencyKey = ""
	return read[Event](ctx, c, "POST", "/event/send", o)
}

// Events returns a page of the account's events: 0 is the default limit, and an empty before the newest event. Since v2.
func (c *Client) Events(ctx context.Context, limit int, before string, options ...Option) (*EventPage, error) {
	o := c.with(options)
	Pairs{{"limit", limit}, {"before", before}}.present().apply(&o)
	return read[EventPage](ctx, c, "GET", "/events", o)
}

// present leaves out what is empty.
func (p Pairs) present() (present Pairs) {
	for _, pair := range p {
		if pair[1] != "" && pair[1] != 0 {
			present = append(present, pair)
		}
	}
	return present
}

// anonymous is a call with the options of another one, but without its credential.
func (o call) anonymous(pairs Pairs, isRepeatable *bool) call {
	o.pairs, o.isRepeatable, o.credential, o.store = pairs.present(), isRepeatable, "", nil
	return o
}

// collect calls for a new credential, and stores it.
func (c *Client) collect(ctx context.Context, path string, o call, store CredentialStore) (*LoginResult, error) {
	result, err := read[LoginResult](ctx, c, "POST", path, o)
	if err != nil {
		return nil, err
	}
	if result.Authorization == "" || checkHeader("", result.Authorization) != nil {
		return nil, fmt.Errorf("signpost: POST %s: the response is no login result", path)
	}
	if store != nil {
		err = store.Save(ctx, result.Authorization)
	}
	return result, err
}

// read calls, and reads the JSON object of the response.
func read[T any](ctx context.Context, c *Client, method, path string, o call) (*T, error) {
	response, err := c.call(ctx, method, path, o)
	if err != nil {
		return nil, err
	}
	into := new(T)
	if !bytes.HasPrefix(bytes.TrimSpace(response.Body), []byte("{")) || response.JSON(into) != nil {
		return nil, fmt.Errorf("signpost: %s %s: the response is no JSON object of this kind", method, path)
	}
	return into, nil
}

// seconds reads a number of seconds, and takes at least 1 and at most max.
func seconds(member any, otherwise, max float64) time.Duration {
	number, isNumber := member.(float64)
	if !isNumber {
		number = otherwise
	}
	return time.Duration(math.Min(math.Max(number, 1), max) * float64(time.Second))
}
