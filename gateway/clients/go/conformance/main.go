// Conformance of signpost.go: run-vectors sign FILE, run-vectors text FILE, run-vectors drive.
// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"signpost"
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
	case len(arguments) == 1 && arguments[0] == "drive":
		drive()
	default:
		log.Fatal("usage: run-vectors sign FILE | text FILE | drive")
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

type settings struct {
	URL, Key, App, Prefix, Version, Language, Authorization string

	Profile       json.RawMessage
	Retries       *int
	MaxWait       *float64 `json:"max_wait"`
	ClockOffsetMs int64    `json:"clock_offset_ms"`
	Warnings      string
}

type command struct {
	New  *settings
	Call *struct {
		Method, Path string
		Pairs        [][2]*string
		Repeatable   *bool
	}
	Login     *struct{ Provider string }
	User      *struct{}
	SendEvent *struct {
		Event, Data    string
		IdempotencyKey string `json:"idempotency_key"`
	} `json:"send_event"`
	Logout *struct{}
}

type driver struct {
	client   *signpost.Client
	warnings [][2]string
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
		check(json.Unmarshal(line, &command))
		answer, err := driver.run(command)
		var problem *signpost.Problem
		var argument signpost.ArgumentError
		switch {
		case errors.As(err, &problem):
			members := object{"status": problem.Status, "code": problem.Code, "title": problem.Title, "hint": nil, "canonical": problem.Canonical, "request_id": problem.RequestID, "message": problem.Error()}
			if problem.Hint != "" {
				members["hint"] = problem.Hint
			}
			answer = object{"problem": members}
		case errors.As(err, &argument):
			answer = object{"argument": err.Error()}
		case err != nil:
			answer = object{"transport": err.Error()}
		}
		answer["warnings"] = append([][2]string{}, driver.warnings...)
		driver.warnings = nil
		write(answer)
	}
}

func (d *driver) run(command command) (object, error) {
	switch {
	case command.New != nil:
		return object{"ok": true}, d.connect(command.New)
	case command.Call != nil:
		pairs := make(signpost.Pairs, len(command.Call.Pairs))
		for i, pair := range command.Call.Pairs {
			if pair[0] == nil || pair[1] == nil {
				return nil, signpost.ArgumentError("a name or a value is null") // Go's type of a pair has no null.
			}
			pairs[i] = [2]string{*pair[0], *pair[1]}
		}
		var options []signpost.CallOption
		if command.Call.Repeatable != nil {
			options = append(options, signpost.Repeatable(*command.Call.Repeatable))
		}
		response, err := d.client.Call(command.Call.Method, command.Call.Path, pairs, options...)
		if err != nil {
			return nil, err
		}
		return object{"status": response.Status, "body": string(response.Body)}, nil
	case command.Login != nil:
		show := func(authorizeURL, userCode string) { write(object{"open": authorizeURL, "user_code": userCode}) }
		result, err := d.client.Login(show, command.Login.Provider)
		return object{"login": result}, err
	case command.User != nil:
		account, err := d.client.User()
		return object{"user": account}, err
	case command.SendEvent != nil:
		event, err := d.client.SendEvent(command.SendEvent.Event, command.SendEvent.Data, command.SendEvent.IdempotencyKey)
		return object{"event": event}, err
	case command.Logout != nil:
		return object{"ok": true}, d.client.Logout()
	}
	return nil, signpost.ArgumentError("no such command")
}

func (d *driver) connect(s *settings) (err error) {
	var profile signpost.Profile
	if s.Profile != nil {
		decoder := json.NewDecoder(bytes.NewReader(s.Profile))
		decoder.DisallowUnknownFields() // Go's compiler rejects an unknown member of a literal.
		if err := decoder.Decode(&profile); err != nil {
			return signpost.ArgumentError("profile: " + err.Error() + "; it can have preset, values, layout, empty, leave_out, cover, algorithm")
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
		maxWait = time.Duration(*s.MaxWait*float64(time.Second)) + 1 // Zero is the default.
	}
	collect := func(name, value string) { d.warnings = append(d.warnings, [2]string{name, value}) }
	d.client, err = signpost.New(signpost.Settings{
		URL: s.URL, Key: s.Key, App: s.App, Prefix: s.Prefix, Version: s.Version, Language: s.Language, Authorization: s.Authorization,
		Profile: profile, Retries: retries, MaxWait: maxWait,
		OnWarning: map[string]func(name, value string){"": collect, "off": func(string, string) {}}[s.Warnings],
		Clock:     func() int64 { return time.Now().UnixMilli() + s.ClockOffsetMs },
	})
	return err
}

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
