// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

// Package signpost signs requests by the rules of a Signpost gateway, sends exactly what it signed, and logs users in.
// It needs Go 1.19 or later, and nothing else. CONTRACT is gateway/protocol/CONTRACT.md.
//
// signpost.go has the client and what a call can have, call.go sends, login.go logs users in, stream.go reads long responses,
// errors.go has the errors, and sign.go signs.
package signpost

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	userAgent     = "signpost-go/0.9.0"
	maxIdle       = 50 * time.Second // CONTRACT 10: below the gateway's 60 s
	maxConnection = 256              // idle ones of the pool
)

var (
	prefixGrammar     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,31}$`)
	headerNameGrammar = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	headerGrammar     = regexp.MustCompile(`^[ -~]*$`)
)

// HeaderNames replace the names of the convention headers that follow from the prefix. CONTRACT 1.
type HeaderNames struct{ App, Version, Language, Authorization string }

// Settings of a client. Only URL and Key are required.
type Settings struct {
	URL            string // origin of the gateway: http or https, host and perhaps a port
	Key            string // the application's key, as text and without white space around it
	App            string // ident, required in multi-application mode
	Prefix         string // of the convention headers; default Acme
	Version        string // of calls without an option Version
	Language       string // of calls without an option Language
	Profile        Profile
	HeaderNames    HeaderNames
	ConnectTimeout time.Duration     // default 5 s
	Timeout        time.Duration     // for one request and its response; default 65 s
	Retries        int               // repetitions of a call at most; 0 is the default 3, a negative number is none
	MaxWait        time.Duration     // longest pause before a repetition; default 30 s
	Proxy          string            // URL of a proxy; default: HTTPS_PROXY, HTTP_PROXY and NO_PROXY, as http.ProxyFromEnvironment
	CAFile         string            // PEM of the authorities to trust, instead of the system's
	ClientCertFile string            // PEM of the client's certificate
	ClientKeyFile  string            // PEM of its key
	Transport      http.RoundTripper // replaces the client's own, and takes no proxy and no files
	// OnWarning gets version_unknown, deprecated, sunset or clock_off, and a value: each once for a client. Default: the standard logger.
	OnWarning func(name, value string)
	Clock     func() int64 // milliseconds since 1970; default the system's
}

// Format writes no secret.
func (s Settings) Format(state fmt.State, _ rune) { fmt.Fprintf(state, "signpost.Settings(%s)", s.App) }

// CredentialStore keeps a user's credential. It is an option of a call: with it, Login and Renew save, Logout clears, and calls load.
type CredentialStore interface {
	Load(ctx context.Context) (string, error) // empty without one
	Save(ctx context.Context, credential string) error
	Clear(ctx context.Context) error
}

// Source is what an upload reads twice: to hash and to send. Files and readers of bytes are sources.
type Source interface {
	io.ReaderAt
	io.Seeker
}

// Option is what belongs to one call. Pairs are options, too.
type Option interface{ apply(*call) }

type option func(*call)

type call struct {
	pairs                             Pairs
	source                            Source // of a body that is no form
	contentType, accept               string
	headers                           [][2]string
	version, language, idempotencyKey string
	credential                        string
	store                             CredentialStore
	isRepeatable                      *bool
	timeout, requestTimeout           time.Duration
	limit                             int64
	err                               error
}

func (o option) apply(c *call) { o(c) }

func (p Pairs) apply(c *call) { c.pairs = append(c.pairs[:len(c.pairs):len(c.pairs)], p...) }

// Credential is the user's. An empty one is none.
func Credential(credential string) Option {
	return option(func(c *call) { c.credential, c.store = credential, nil })
}

// Stored takes the credential from a store, and keeps a new one there.
func Stored(store CredentialStore) Option {
	return option(func(c *call) { c.store, c.credential = store, "" })
}

// Version is the version to call.
func Version(version string) Option { return option(func(c *call) { c.version = version }) }

// Language is the language of texts for people.
func Language(language string) Option { return option(func(c *call) { c.language = language }) }

// Header is a further header.
func Header(name, value string) Option {
	return option(func(c *call) { c.headers = append(c.headers[:len(c.headers):len(c.headers)], [2]string{name, value}) })
}

// Timeout is for the whole call, repetitions and pauses included; of a stream to its beginning, then for each part. Default: no other end
// than the context's, and Settings.Timeout for each request.
func Timeout(timeout time.Duration) Option { return option(func(c *call) { c.timeout = timeout }) }

// Repeatable says whether a repetition does no harm. By default only those of GET, HEAD, PUT and DELETE do none.
func Repeatable(is bool) Option { return option(func(c *call) { c.isRepeatable = &is }) }

// IdempotencyKey is a key by which the API knows a repetition, so the call is repeatable. It is sent as the header Idempotency-Key.
func IdempotencyKey(key string) Option { return option(func(c *call) { c.idempotencyKey = key }) }

// Limit is how many bytes a response may have: by default 16 MiB; Open and Listen have no default.
func Limit(bytes int64) Option { return option(func(c *call) { c.limit = bytes }) }

// Body is a body, and its content type. The profile's carrier must be "headers" or "both".
func Body(content []byte, contentType string) Option {
	return option(func(c *call) { c.source, c.contentType = bytes.NewReader(content), contentType })
}

// JSON is a body as json.Marshal makes it. The profile's carrier must be "headers" or "both".
func JSON(value any) Option {
	content, err := json.Marshal(value)
	return option(func(c *call) {
		Body(content, "application/json").apply(c)
		if err != nil {
			c.err = argumentError("json: %v", err)
		}
	})
}

// Upload is a body that is read from the source's beginning to its end. The profile's carrier must be "headers" or "both".
func Upload(source Source, contentType string) Option {
	return option(func(c *call) { c.source, c.contentType = source, contentType })
}

// Client calls a gateway. Goroutines can share it.
type Client struct {
	*shared
	defaults call
}

// shared is what all copies of a client share.
type shared struct {
	settings  Settings
	transport http.RoundTripper
	offset    atomic.Int64 // milliseconds to add to the clock
	warned    sync.Map
	lastTime  int64 // of the clock, without the offset
	mutex     sync.Mutex
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
	names := &s.HeaderNames
	setDefault(&names.App, s.Prefix+"-X-App")
	setDefault(&names.Version, s.Prefix+"-X-Version")
	setDefault(&names.Language, s.Prefix+"-X-Language")
	setDefault(&names.Authorization, s.Prefix+"-X-Authorization")
	for _, name := range []string{names.App, names.Version, names.Language, names.Authorization} {
		if !headerNameGrammar.MatchString(name) {
			return nil, argumentError("header names: %q is no name of a header", name)
		}
	}
	for _, one := range [][2]string{{"app", s.App}, {"version", s.Version}, {"language", s.Language}} {
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
	transport, err := s.transport()
	return &Client{shared: &shared{settings: settings, transport: transport}}, err
}

func (s *Settings) transport() (http.RoundTripper, error) {
	if s.Transport != nil {
		if s.Proxy+s.CAFile+s.ClientCertFile+s.ClientKeyFile != "" {
			return nil, argumentError("proxy and files are settings of the transport, if there is one")
		}
		return s.Transport, nil
	}
	transport := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: s.ConnectTimeout}).DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    s.ConnectTimeout,
		MaxIdleConnsPerHost:    maxConnection,
		IdleConnTimeout:        maxIdle,
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: 64 << 10,
	}
	if s.Proxy != "" {
		proxy, err := url.Parse(s.Proxy)
		if err != nil || proxy.Host == "" {
			return nil, argumentError("proxy must be an address, for example http://127.0.0.1:3128")
		}
		transport.Proxy = http.ProxyURL(proxy)
	}
	if s.CAFile != "" {
		pem, err := os.ReadFile(s.CAFile)
		pool := x509.NewCertPool()
		if err != nil || !pool.AppendCertsFromPEM(pem) {
			return nil, argumentError("ca_file: %s cannot be read, or has no certificate", s.CAFile)
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	if s.ClientCertFile+s.ClientKeyFile != "" {
		certificate, err := tls.LoadX509KeyPair(s.ClientCertFile, s.ClientKeyFile)
		if err != nil {
			return nil, argumentError("client_cert_file and client_key_file: %v", err)
		}
		transport.TLSClientConfig.Certificates = []tls.Certificate{certificate}
	}
	return transport, nil
}

// With returns a copy whose calls have these options before their own, for example the credential of a user. Both share connections and
// clock, so a copy for each request that a server handles costs next to nothing.
func (c *Client) With(options ...Option) *Client { return &Client{c.shared, c.with(options)} }

func (c *Client) with(options []Option) call {
	o := c.defaults
	for _, option := range options {
		option.apply(&o)
	}
	return o
}

// Format writes no secret.
func (c Client) Format(state fmt.State, _ rune) {
	fmt.Fprintf(state, "signpost.Client(%s)", c.settings.URL)
}

// warn gives each warning on once.
func (c *Client) warn(name, value string) {
	if value == "" {
		return
	}
	if _, isOld := c.warned.LoadOrStore(name, true); !isOld {
		c.settings.OnWarning(name, value)
	}
}

func logWarning(name, value string) {
	if name == "version_unknown" {
		value += " served, not the version asked for"
	}
	log.Printf("signpost: %s: %s", name, printable(value))
}

func isOrigin(text string, origin *url.URL) bool {
	port := origin.Port()
	_, err := strconv.ParseUint(port, 10, 16)
	isPlain := origin.User == nil && origin.Opaque == "" && (origin.Path == "" || origin.Path == "/") && !strings.ContainsAny(text, "?#")
	hasHost := origin.Hostname() != "" && (port == "" || err == nil) && !strings.HasSuffix(origin.Host, ":")
	return (origin.Scheme == "http" || origin.Scheme == "https") && isPlain && hasHost
}

func checkHeader(name, value string) error {
	if !headerGrammar.MatchString(value) {
		return argumentError("%s must be printable ASCII: it is sent as a header", name)
	}
	return nil
}

func setDefault[T comparable](field *T, value T) {
	if *field == *new(T) {
		*field = value
	}
}
