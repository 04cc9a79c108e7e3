// Conformance of the package: run-vectors sign FILE, text FILE, head FILE, drive.
// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"signpost.example/signpost"
)

type object = map[string]any

func main() {
	log.SetFlags(0)
	arguments := os.Args[1:]
	switch {
	case len(arguments) == 2 && arguments[0] == "sign":
		runSign(arguments[1])
	case len(arguments) == 2 && arguments[0] == "text":
		runText(arguments[1])
	case len(arguments) == 2 && arguments[0] == "head":
		runHead(arguments[1])
	case len(arguments) == 1 && arguments[0] == "drive":
		drive()
	default:
		log.Fatal("usage: run-vectors sign FILE | text FILE | head FILE | drive")
	}
}

func runSign(file string) {
	var vectors struct {
		Cases []struct {
			Query, Body string
			AppKey      string `json:"app_key"`
			Profile     struct {
				signpost.Profile
				Head string
			}
		}
	}
	readFile(file, &vectors)
	for _, one := range vectors.Cases {
		profile, method, path := one.Profile.Profile, "", ""
		profile.Cover = ""
		if one.Profile.Head != "" {
			profile.Cover = "request"
			head := strings.Split(one.Profile.Head, "\n")
			method, path = head[0], head[1]
		}
		canonical, err := signpost.Canonical(one.Query, one.Body, profile, method, path)
		check(err)
		sign, err := signpost.Signature(one.Query, one.Body, one.AppKey, profile, method, path)
		check(err)
		write(object{"canonical": canonical, "sign": sign})
	}
}

func runText(file string) {
	var vectors struct {
		Cases []struct {
			Pairs        signpost.Pairs
			Time         int64  `json:",string"`
			AppKey       string `json:"app_key"`
			Profile      signpost.Profile
			Method, Path string
		}
	}
	readFile(file, &vectors)
	for _, one := range vectors.Cases {
		text, err := signpost.Sign(one.Pairs, one.AppKey, one.Profile, one.Method, one.Path, one.Time)
		check(err)
		write(object{"text": text})
	}
}

func runHead(file string) {
	var vectors struct {
		Cases []struct {
			AppKey                                       string `json:"app_key"`
			Algorithm, Method, Target, Time, Nonce, Body string
		}
	}
	readFile(file, &vectors)
	for _, one := range vectors.Cases {
		head := signpost.SignedHead{
			Method: one.Method, Target: one.Target, Time: one.Time, Nonce: one.Nonce, BodyHash: sha256.Sum256([]byte(one.Body)),
		}
		write(object{"text": head.Canonical("<APP_KEY>", one.Algorithm), "sign": head.Signature(one.AppKey, one.Algorithm)})
	}
}

type settings struct {
	URL, Key, App, Prefix, Version, Language, Credential, Warnings, Proxy string

	Profile        json.RawMessage
	Retries        *int
	MaxWait        *float64 `json:"max_wait"`
	ClockOffsetMs  int64    `json:"clock_offset_ms"`
	CAFile         string   `json:"ca_file"`
	ClientCertFile string   `json:"client_cert_file"`
	ClientKeyFile  string   `json:"client_key_file"`
}

// callCommand has what call, upload, download and events_stream have.
type callCommand struct {
	Method, Path, File string

	Pairs                         [][2]any
	JSON                          json.RawMessage
	Body                          *string
	ContentType                   string `json:"content_type"`
	Headers                       map[string]string
	Credential, Version, Language *string
	Timeout                       float64
	IdempotencyKey                string `json:"idempotency_key"`
	Repeatable                    *bool
	CancelAfterMs                 *int64 `json:"cancel_after_ms"`
	Limit                         int64
}

type command struct {
	New  *settings
	Call *callCommand

	Mixed *struct {
		Credentials    []string
		Threads, Calls int
		Path           string
	}
	Upload       *callCommand
	Download     *callCommand
	EventsStream *callCommand `json:"events_stream"`
	Login        *struct {
		callCommand
		Provider string
	}
	LoginURL *struct {
		ReturnTo string `json:"return_to"`
		Provider string
	} `json:"login_url"`
	Exchange *struct {
		Ticket       string
		CodeVerifier string `json:"code_verifier"`
	}
	Renew     *struct{}
	User      *struct{}
	SendEvent *struct {
		Event, Data    string
		IdempotencyKey string `json:"idempotency_key"`
	} `json:"send_event"`
	Events *struct {
		Limit  int
		Before string
	}
	Logout *struct{}
}

type driver struct {
	client   *signpost.Client // with the credential of the latest login
	warnings [][2]string
	mutex    sync.Mutex
}

func drive() {
	driver := driver{}
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return
		}
		check(err)
		var command command
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.UseNumber()
		check(decoder.Decode(&command))
		answer, err := driver.run(command)
		var problem *signpost.Problem
		var argument signpost.ArgumentError
		switch {
		case errors.As(err, &problem):
			answer = object{"problem": object{
				"status": problem.Status, "code": problem.Code, "title": problem.Title, "hint": orNull(problem.Hint), "canonical": problem.Canonical,
				"request_id": problem.RequestID, "message": problem.Error(), "body": string(problem.Body), "headers": headersOf(problem.Headers),
			}}
		case errors.As(err, &argument):
			answer = object{"argument": err.Error()}
		case errors.Is(err, context.Canceled):
			answer = object{"cancelled": true, "message": err.Error()}
		case err != nil:
			answer = object{"transport": err.Error()}
		}
		driver.mutex.Lock()
		answer["warnings"] = append([][2]string{}, driver.warnings...)
		driver.warnings = nil
		driver.mutex.Unlock()
		write(answer)
	}
}

func (d *driver) run(command command) (object, error) {
	ctx := context.Background()
	switch {
	case command.New != nil:
		return object{"ok": true}, d.connect(command.New)
	case command.Call != nil:
		return d.call(command.Call)
	case command.Mixed != nil:
		one := command.Mixed
		return d.mix(one.Credentials, one.Threads, one.Calls, one.Path), nil
	case command.Upload != nil:
		file, err := os.Open(command.Upload.File)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		return d.call(command.Upload, signpost.Upload(file, command.Upload.ContentType))
	case command.Download != nil:
		return d.download(command.Download)
	case command.EventsStream != nil:
		return d.listen(command.EventsStream)
	case command.Login != nil:
		show := func(authorizeURL, userCode string) { write(object{"open": authorizeURL, "user_code": userCode}) }
		ctx, cancel, options := command.Login.options()
		defer cancel()
		return d.keep(d.client.Login(ctx, command.Login.Provider, show, options...))
	case command.LoginURL != nil:
		login, err := d.client.LoginURL(command.LoginURL.ReturnTo, command.LoginURL.Provider)
		if err != nil {
			return nil, err
		}
		return object{"url": login.URL, "code_verifier": login.CodeVerifier}, nil
	case command.Exchange != nil:
		return d.keep(d.client.Exchange(ctx, command.Exchange.Ticket, command.Exchange.CodeVerifier))
	case command.Renew != nil:
		return d.keep(d.client.Renew(ctx))
	case command.User != nil:
		account, err := d.client.User(ctx)
		if err != nil {
			return nil, err
		}
		return object{"user": account.JSON}, nil
	case command.SendEvent != nil:
		one := command.SendEvent
		event, err := d.client.SendEvent(ctx, one.Event, one.Data, signpost.IdempotencyKey(one.IdempotencyKey))
		return object{"event": event}, err
	case command.Events != nil:
		page, err := d.client.Events(ctx, command.Events.Limit, command.Events.Before)
		if err != nil {
			return nil, err
		}
		return object{"events": page.Events, "next": orNull(page.Next)}, nil
	case command.Logout != nil:
		err := d.client.Logout(ctx)
		if err == nil {
			d.client = d.client.With(signpost.Credential(""))
		}
		return object{"ok": true}, err
	}
	return nil, signpost.ArgumentError("no such command")
}

func (d *driver) connect(s *settings) error {
	var profile signpost.Profile
	if s.Profile != nil {
		decoder := json.NewDecoder(bytes.NewReader(s.Profile))
		decoder.DisallowUnknownFields() // Go's compiler rejects an unknown member of a literal.
		if err := decoder.Decode(&profile); err != nil {
			allowed := "preset, values, layout, empty, leave_out, cover, algorithm, carrier"
			return signpost.ArgumentError("profile: " + err.Error() + "; it can have " + allowed)
		}
	}
	retries := 3
	if s.Retries != nil {
		retries = *s.Retries
	}
	if retries == 0 {
		retries = -1
	}
	var maxWait time.Duration
	if s.MaxWait != nil {
		maxWait = duration(*s.MaxWait) + 1 // Zero is the default.
	}
	collect := func(name, value string) {
		d.mutex.Lock()
		defer d.mutex.Unlock()
		d.warnings = append(d.warnings, [2]string{name, value})
	}
	client, err := signpost.New(signpost.Settings{
		URL: s.URL, Key: s.Key, App: s.App, Prefix: s.Prefix, Version: s.Version, Language: s.Language,
		Profile: profile, Retries: retries, MaxWait: maxWait,
		Proxy: s.Proxy, CAFile: s.CAFile, ClientCertFile: s.ClientCertFile, ClientKeyFile: s.ClientKeyFile,
		OnWarning: map[string]func(name, value string){"": collect, "off": func(string, string) {}}[s.Warnings],
		Clock:     func() int64 { return time.Now().UnixMilli() + s.ClockOffsetMs },
	})
	if err == nil {
		d.client = client.With(signpost.Credential(s.Credential))
	}
	return err
}

// options are those of a call, and its context.
func (c *callCommand) options() (context.Context, context.CancelFunc, []signpost.Option) {
	ctx, cancel := context.WithCancel(context.Background())
	if c.CancelAfterMs != nil {
		time.AfterFunc(time.Duration(*c.CancelAfterMs)*time.Millisecond, cancel)
	}
	pairs := make(signpost.Pairs, len(c.Pairs))
	for i, pair := range c.Pairs {
		pairs[i] = [2]any{native(pair[0]), native(pair[1])}
	}
	options := []signpost.Option{pairs}
	add := func(isThere bool, option signpost.Option) {
		if isThere {
			options = append(options, option)
		}
	}
	text := func(value *string, option func(string) signpost.Option) {
		if value != nil {
			options = append(options, option(*value))
		}
	}
	text(c.Credential, signpost.Credential)
	text(c.Version, signpost.Version)
	text(c.Language, signpost.Language)
	text(c.Body, func(body string) signpost.Option { return signpost.Body([]byte(body), c.ContentType) })
	add(c.JSON != nil, signpost.JSON(c.JSON))
	add(c.Timeout != 0, signpost.Timeout(duration(c.Timeout)))
	add(c.IdempotencyKey != "", signpost.IdempotencyKey(c.IdempotencyKey))
	add(c.Repeatable != nil, signpost.Repeatable(c.Repeatable != nil && *c.Repeatable))
	add(c.Limit != 0, signpost.Limit(c.Limit))
	for name, value := range c.Headers {
		add(true, signpost.Header(name, value))
	}
	return ctx, cancel, options
}

func (d *driver) call(c *callCommand, further ...signpost.Option) (object, error) {
	ctx, cancel, options := c.options()
	defer cancel()
	response, err := d.client.Call(ctx, c.Method, c.Path, append(options, further...)...)
	if err != nil {
		return nil, err
	}
	return object{"status": response.Status, "body": string(response.Body), "headers": headersOf(response.Headers)}, nil
}

// mix counts the responses without the credential of their own call.
func (d *driver) mix(credentials []string, threads, calls int, path string) object {
	var mixed, next atomic.Int64
	var group sync.WaitGroup
	for i := 0; i < threads; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for number := next.Add(1); number <= int64(calls); number = next.Add(1) {
				credential := credentials[int(number)%len(credentials)]
				response, err := d.client.Call(context.Background(), "GET", path, signpost.Credential(credential))
				if err != nil || !bytes.Contains(response.Body, []byte(credential)) {
					mixed.Add(1)
				}
			}
		}()
	}
	group.Wait()
	return object{"mixed": mixed.Load(), "calls": calls}
}

func (d *driver) download(c *callCommand) (object, error) {
	ctx, cancel, options := c.options()
	defer cancel()
	stream, err := d.client.Open(ctx, "GET", c.Path, options...)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	hash := sha256.New()
	read, err := io.Copy(hash, stream)
	return object{"status": stream.Status, "bytes": read, "sha256": hex.EncodeToString(hash.Sum(nil))}, err
}

func (d *driver) listen(c *callCommand) (object, error) {
	ctx, cancel, options := c.options()
	defer cancel()
	messages, err := d.client.Listen(ctx, c.Path, options...)
	if err != nil {
		return nil, err
	}
	defer messages.Close()
	events := []object{}
	for {
		one, err := messages.Next()
		if err == io.EOF {
			return object{"events": events}, nil
		}
		if err != nil {
			return nil, err
		}
		events = append(events, object{"event": one.Name, "data": one.Data, "id": one.ID})
	}
}

// keep goes on as the user of a login.
func (d *driver) keep(result *signpost.LoginResult, err error) (object, error) {
	if err != nil {
		return nil, err
	}
	d.client = d.client.With(signpost.Credential(result.Authorization))
	return object{"login": object{
		"authorization": result.Authorization, "expires_in": result.ExpiresIn, "created": result.Created, "account": result.Account.JSON,
	}}, nil
}

// native is a value as a Go program has it.
func native(value any) any {
	switch value := value.(type) {
	case json.Number:
		if number, err := value.Int64(); err == nil {
			return number
		}
		number, _ := value.Float64()
		return number
	case []any:
		list := make([]any, len(value))
		for i, one := range value {
			list[i] = native(one)
		}
		return list
	}
	return value
}

func headersOf(headers http.Header) object {
	all := object{}
	for name, values := range headers {
		all[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	return all
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

func readFile(file string, into any) {
	content, err := os.ReadFile(file)
	check(err)
	check(json.Unmarshal(content, into))
}

func write(answer object) {
	text := &strings.Builder{}
	encoder := json.NewEncoder(text)
	encoder.SetEscapeHTML(false)
	check(encoder.Encode(answer))
	_, err := os.Stdout.WriteString(text.String())
	check(err)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
