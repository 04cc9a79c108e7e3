// Conformance of the package: obeys a command of JSON in each line.
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
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"signpost.example/signpost"
)

type object = map[string]any

// arguments are those of all commands.
type arguments struct {
	URL, Key, App, Prefix, Warnings, Proxy string
	Query, Target, Time, Nonce, Algorithm  string
	Method, Path, File, Provider, Ticket   string
	Event, Data, Before                    string
	Version, Language, Credential, Body    *string
	Pairs                                  [][2]any
	JSON, Profile                          json.RawMessage
	Headers                                map[string]string
	Credentials                            []string
	Timeout                                float64
	Repeatable                             *bool
	Retries                                *int
	Limit                                  int64
	Threads, Calls                         int
	AppKey                                 string   `json:"app_key"`
	MaxWait                                *float64 `json:"max_wait"`
	ClockOffsetMs                          int64    `json:"clock_offset_ms"`
	CAFile                                 string   `json:"ca_file"`
	ClientCertFile                         string   `json:"client_cert_file"`
	ClientKeyFile                          string   `json:"client_key_file"`
	ContentType                            string   `json:"content_type"`
	IdempotencyKey                         string   `json:"idempotency_key"`
	CancelAfterMs                          *int64   `json:"cancel_after_ms"`
	ReturnTo                               string   `json:"return_to"`
	CodeVerifier                           string   `json:"code_verifier"`
}

type driver struct {
	client   *signpost.Client // with the credential of the latest login
	warnings [][2]string
	mutex    sync.Mutex
}

func main() {
	log.SetFlags(0)
	driver := driver{}
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return
		}
		check(err)
		var command map[string]arguments
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.UseNumber()
		check(decoder.Decode(&command))
		for name, arguments := range command {
			write(driver.answer(name, &arguments))
		}
	}
}

func (d *driver) answer(command string, a *arguments) object {
	answer, err := d.run(command, a)
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
	d.mutex.Lock()
	defer d.mutex.Unlock()
	answer["warnings"] = append([][2]string{}, d.warnings...)
	d.warnings = nil
	return answer
}

func (d *driver) run(command string, a *arguments) (object, error) {
	ctx, cancel, options := a.options()
	defer cancel()
	switch command {
	case "sign":
		return a.sign()
	case "text":
		profile, err := a.profile()
		check(err)
		milliseconds, err := strconv.ParseInt(a.Time, 10, 64)
		check(err)
		sent, err := signpost.Sign(a.Pairs, a.AppKey, profile, a.Method, a.Path, milliseconds)
		return object{"text": sent}, err
	case "head":
		head := signpost.SignedHead{Method: a.Method, Target: a.Target, Time: a.Time, Nonce: a.Nonce, BodyHash: sha256.Sum256([]byte(*a.Body))}
		return object{"text": head.Canonical("<APP_KEY>", a.Algorithm), "sign": head.Signature(a.AppKey, a.Algorithm)}, nil
	case "new":
		return object{"ok": true}, d.connect(a)
	case "call":
		return responded(d.client.Call(ctx, a.Method, a.Path, options...))
	case "mixed":
		return d.mix(a), nil
	case "upload":
		file, err := os.Open(a.File)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		return responded(d.client.Call(ctx, a.Method, a.Path, append(options, signpost.Upload(file, a.ContentType))...))
	case "download":
		return download(d.client.Open(ctx, "GET", a.Path, options...))
	case "events_stream":
		return listen(d.client.Listen(ctx, a.Path, options...))
	case "login":
		show := func(authorizeURL, userCode string) { write(object{"open": authorizeURL, "user_code": userCode}) }
		return d.keep(d.client.Login(ctx, a.Provider, show, options...))
	case "login_url":
		login, err := d.client.LoginURL(a.ReturnTo, a.Provider)
		if err != nil {
			return nil, err
		}
		return object{"url": login.URL, "code_verifier": login.CodeVerifier}, nil
	case "exchange":
		return d.keep(d.client.Exchange(ctx, a.Ticket, a.CodeVerifier))
	case "renew":
		return d.keep(d.client.Renew(ctx))
	case "user":
		account, err := d.client.User(ctx)
		if err != nil {
			return nil, err
		}
		return object{"user": account.JSON}, nil
	case "send_event":
		event, err := d.client.SendEvent(ctx, a.Event, a.Data, options...)
		return object{"event": event}, err
	case "events":
		page, err := d.client.Events(ctx, int(a.Limit), a.Before)
		if err != nil {
			return nil, err
		}
		return object{"events": page.Events, "next": orNull(page.Next)}, nil
	case "logout":
		err := d.client.Logout(ctx)
		if err == nil {
			d.client = d.client.With(signpost.Credential(""))
		}
		return object{"ok": true}, err
	}
	return nil, signpost.ArgumentError("no such command")
}

func (a *arguments) sign() (object, error) {
	var members map[string]any
	check(json.Unmarshal(a.Profile, &members))
	head, isCovered := members["head"].(string)
	delete(members, "head")
	delete(members, "cover")
	request := []string{"", ""}
	if isCovered {
		members["cover"], request = "request", strings.Split(head, "\n")
	}
	var err error
	a.Profile, err = json.Marshal(members)
	check(err)
	profile, err := a.profile()
	check(err)
	canonical, err := signpost.Canonical(a.Query, *a.Body, profile, request[0], request[1])
	check(err)
	sign, err := signpost.Signature(a.Query, *a.Body, a.AppKey, profile, request[0], request[1])
	return object{"canonical": canonical, "sign": sign}, err
}

func (a *arguments) profile() (profile signpost.Profile, err error) {
	if a.Profile == nil {
		return profile, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(a.Profile))
	decoder.DisallowUnknownFields() // Go's compiler rejects an unknown member of a literal.
	if err := decoder.Decode(&profile); err != nil {
		allowed := "preset, values, layout, empty, leave_out, cover, algorithm, carrier"
		return profile, signpost.ArgumentError("profile: " + err.Error() + "; it can have " + allowed)
	}
	return profile, nil
}

func (d *driver) connect(a *arguments) error {
	profile, err := a.profile()
	if err != nil {
		return err
	}
	retries := 3
	if a.Retries != nil {
		retries = *a.Retries
	}
	if retries == 0 {
		retries = -1
	}
	var maxWait time.Duration
	if a.MaxWait != nil {
		maxWait = duration(*a.MaxWait) + 1 // Zero is the default.
	}
	collect := func(name, value string) {
		d.mutex.Lock()
		defer d.mutex.Unlock()
		d.warnings = append(d.warnings, [2]string{name, value})
	}
	client, err := signpost.New(signpost.Settings{
		URL: a.URL, Key: a.Key, App: a.App, Prefix: a.Prefix, Version: text(a.Version), Language: text(a.Language),
		Profile: profile, Retries: retries, MaxWait: maxWait,
		Proxy: a.Proxy, CAFile: a.CAFile, ClientCertFile: a.ClientCertFile, ClientKeyFile: a.ClientKeyFile,
		OnWarning: map[string]func(name, value string){"": collect, "off": func(string, string) {}}[a.Warnings],
		Clock:     func() int64 { return time.Now().UnixMilli() + a.ClockOffsetMs },
	})
	if err == nil {
		d.client = client.With(signpost.Credential(text(a.Credential)))
	}
	return err
}

// options are those of a call, and its context.
func (a *arguments) options() (context.Context, context.CancelFunc, []signpost.Option) {
	ctx, cancel := context.WithCancel(context.Background())
	if a.CancelAfterMs != nil {
		time.AfterFunc(time.Duration(*a.CancelAfterMs)*time.Millisecond, cancel)
	}
	pairs := make(signpost.Pairs, len(a.Pairs))
	for i, pair := range a.Pairs {
		pairs[i] = [2]any{native(pair[0]), native(pair[1])}
	}
	options := []signpost.Option{pairs}
	add := func(isThere bool, option signpost.Option) {
		if isThere {
			options = append(options, option)
		}
	}
	add(a.Credential != nil, signpost.Credential(text(a.Credential)))
	add(a.Version != nil, signpost.Version(text(a.Version)))
	add(a.Language != nil, signpost.Language(text(a.Language)))
	add(a.Body != nil, signpost.Body([]byte(text(a.Body)), a.ContentType))
	add(a.JSON != nil, signpost.JSON(a.JSON))
	add(a.Timeout != 0, signpost.Timeout(duration(a.Timeout)))
	add(a.IdempotencyKey != "", signpost.IdempotencyKey(a.IdempotencyKey))
	add(a.Repeatable != nil, signpost.Repeatable(a.Repeatable != nil && *a.Repeatable))
	add(a.Limit != 0, signpost.Limit(a.Limit))
	for name, value := range a.Headers {
		add(true, signpost.Header(name, value))
	}
	return ctx, cancel, options
}

func responded(response *signpost.Response, err error) (object, error) {
	if err != nil {
		return nil, err
	}
	return object{"status": response.Status, "body": string(response.Body), "headers": headersOf(response.Headers)}, nil
}

// mix counts the responses without the credential of their own call.
func (d *driver) mix(a *arguments) object {
	var mixed, next atomic.Int64
	var group sync.WaitGroup
	for i := 0; i < a.Threads; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for number := next.Add(1); number <= int64(a.Calls); number = next.Add(1) {
				credential := a.Credentials[int(number)%len(a.Credentials)]
				response, err := d.client.Call(context.Background(), "GET", a.Path, signpost.Credential(credential))
				if err != nil || !bytes.Contains(response.Body, []byte(credential)) {
					mixed.Add(1)
				}
			}
		}()
	}
	group.Wait()
	return object{"mixed": mixed.Load(), "calls": a.Calls}
}

func download(stream *signpost.Stream, err error) (object, error) {
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	hash := sha256.New()
	read, err := io.Copy(hash, stream)
	return object{"status": stream.Status, "bytes": read, "sha256": hex.EncodeToString(hash.Sum(nil))}, err
}

func listen(messages *signpost.Messages, err error) (object, error) {
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

// text is empty if there is none.
func text(value *string) string {
	if value == nil {
		return ""
	}
	return *value
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
