// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

package signpost

import (
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
	begin := o.anonymous(nil)
	begin.pairs = o.pairs
	if provider != "" {
		Pairs{{"provider", provider}}.apply(&begin)
	}
	var begun map[string]any
	if err := c.read(ctx, "POST", "/login", begin, &begun); err != nil {
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
	check := o.anonymous(Pairs{{"token", token}, {"wait", checkWait.Seconds()}})
	check.requestTimeout = checkWait + 10*time.Second
	interval := seconds(begun["interval"], 2, 60)
	for end := time.Now().Add(seconds(begun["expires_in"], 600, 3600)); time.Now().Before(end); {
		start := time.Now()
		var checked map[string]any
		if err := c.read(ctx, "POST", "/check", check, &checked); err != nil {
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
			if err := sleep(ctx, wait); err != nil {
				return nil, fmt.Errorf("signpost: login: %w", err)
			}
		}
	}
	return c.collect(ctx, "/user/login", o.anonymous(Pairs{{"token", token}}), o.store)
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
	pairs := Pairs{{"return_to", returnTo}, {"code_challenge", base64.RawURLEncoding.EncodeToString(challenge[:])}, {"code_challenge_method", "S256"}}
	for _, one := range [][2]string{{"provider", provider}, {"app", c.settings.App}} {
		if one[1] != "" {
			pairs = append(pairs, [2]any{one[0], one[1]})
		}
	}
	text, err := Sign(append(pairs, o.pairs...), c.settings.Key, profile, "GET", "/login", c.nextTime()+c.offset.Load())
	return &RedirectLogin{c.settings.URL + "/login?" + text, verifier}, err
}

// Exchange exchanges the ticket of a redirect login, which serves once. Without a challenge the verifier is empty.
func (c *Client) Exchange(ctx context.Context, ticket, codeVerifier string, options ...Option) (*LoginResult, error) {
	o := c.with(options)
	exchange := o.anonymous(Pairs{{"ticket", ticket}})
	if exchange.isRepeatable = nil; codeVerifier != "" {
		exchange.pairs = append(exchange.pairs, [2]any{"code_verifier", codeVerifier})
	}
	return c.collect(ctx, "/user/login", exchange, o.store)
}

// Renew exchanges the credential for a new one, which expires later. The old one ends 60 s later.
func (c *Client) Renew(ctx context.Context, options ...Option) (*LoginResult, error) {
	o := c.with(options)
	Repeatable(true).apply(&o)
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
func (c *Client) User(ctx context.Context, options ...Option) (account *Account, err error) {
	err = c.read(ctx, "GET", "/user", c.with(options), &account)
	return account, err
}

// SendEvent stores an event with the account. Empty data is not sent. With IdempotencyKey a repetition stores nothing.
func (c *Client) SendEvent(ctx context.Context, event, data string, options ...Option) (stored *Event, err error) {
	o := c.with(options)
	Pairs{{"event", event}}.apply(&o)
	if data != "" {
		Pairs{{"data", data}}.apply(&o)
	}
	if o.idempotencyKey != "" {
		Pairs{{"idempotency_key", o.idempotencyKey}}.apply(&o)
		Repeatable(true).apply(&o)
		o.idempotencyKey = ""
	}
	err = c.read(ctx, "POST", "/event/send", o, &stored)
	return stored, err
}

// Events returns a page of the account's events: 0 is the default limit, and an empty before the newest event. Since v2.
func (c *Client) Events(ctx context.Context, limit int, before string, options ...Option) (page *EventPage, err error) {
	o := c.with(options)
	if limit != 0 {
		Pairs{{"limit", limit}}.apply(&o)
	}
	if before != "" {
		Pairs{{"before", before}}.apply(&o)
	}
	err = c.read(ctx, "GET", "/events", o, &page)
	return page, err
}

// anonymous is a repeatable call with the options of another one, but without its credential.
func (o call) anonymous(pairs Pairs) call {
	Repeatable(true).apply(&o)
	o.pairs, o.credential, o.store = pairs, "", nil
	return o
}

// collect calls for a new credential, and stores it.
func (c *Client) collect(ctx context.Context, path string, o call, store CredentialStore) (*LoginResult, error) {
	result := &LoginResult{}
	if err := c.read(ctx, "POST", path, o, result); err != nil {
		return nil, err
	}
	if result.Authorization == "" || checkHeader("", result.Authorization) != nil {
		return nil, fmt.Errorf("signpost: POST %s: the response is no login result", path)
	}
	if store != nil {
		return result, store.Save(ctx, result.Authorization)
	}
	return result, nil
}

// read calls, and reads the JSON object of the response.
func (c *Client) read(ctx context.Context, method, path string, o call, into any) error {
	response, err := c.call(ctx, method, path, o)
	if err == nil && (!strings.HasPrefix(strings.TrimSpace(string(response.Body)), "{") || response.JSON(into) != nil) {
		err = fmt.Errorf("signpost: %s %s: the response is no JSON object of this kind", method, path)
	}
	return err
}

// seconds reads a number of seconds, and takes at least 1 and at most max.
func seconds(member any, otherwise, max float64) time.Duration {
	number, isNumber := member.(float64)
	if !isNumber {
		number = otherwise
	}
	return time.Duration(math.Min(math.Max(number, 1), max) * float64(time.Second))
}
