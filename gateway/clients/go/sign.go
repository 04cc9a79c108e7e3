// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

package signpost

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// This file signs, and needs no other file of the package: a client of another kind can use a copy of it alone.

var presets = map[string]Profile{
	"plain":    {},
	"decoded":  {Values: "decoded"},
	"bilibili": {},
	"alipay":   {Values: "decoded", Empty: "drop", LeaveOut: []string{"sign_type"}},
	"wechat":   {Values: "decoded", Empty: "drop", Layout: "pairs-key"},
	"top":      {Values: "decoded", Empty: "drop", Layout: "concat-both"},
}

// Pairs are names and values, not encoded. Names can repeat. A value is text, a number, a bool, or a list of these, which repeats the name.
type Pairs [][2]any

// Profile is the sign profile of an application. What is empty is as in the preset; without one, as in "plain". CONTRACT 3.
type Profile struct {
	Preset    string   `json:"preset,omitempty"`    // plain, decoded, bilibili, alipay, wechat or top
	Values    string   `json:"values,omitempty"`    // wire or decoded
	Layout    string   `json:"layout,omitempty"`    // pairs, pairs-key, concat or concat-both
	Empty     string   `json:"empty,omitempty"`     // keep or drop
	LeaveOut  []string `json:"leave_out,omitempty"` // unsigned names; a list that is empty but not nil overrides the preset's
	Cover     string   `json:"cover,omitempty"`     // parameters or request
	Algorithm string   `json:"algorithm,omitempty"` // md5 or hmac-sha256; in headers hmac-sha256 by default
	Carrier   string   `json:"carrier,omitempty"`   // where signatures are: parameters, headers or both
}

// ArgumentError says what is wrong with a setting or an argument. Nothing was sent.
type ArgumentError string

func (e ArgumentError) Error() string { return "signpost: " + string(e) }

func argumentError(format string, values ...any) error {
	return ArgumentError(fmt.Sprintf(format, values...))
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
	text, err := rules.canonical(query, form, key, method, path)
	return digest(text, key, rules.Algorithm), err
}

// Sign returns the text to send as query or as form: the pairs in their order, then time, unless a pair has that name, then sign.
// The time is in milliseconds since 1970.
func Sign(pairs Pairs, key string, profile Profile, method, path string, milliseconds int64) (string, error) {
	text, err := pairs.encode()
	if err != nil {
		return "", err
	}
	hasTime := false
	for _, pair := range pairs {
		hasTime = hasTime || pair[0] == "time"
		if pair[0] == "sign" {
			return "", argumentError("a pair is named sign: the client adds it")
		}
	}
	if !hasTime {
		text = strings.TrimPrefix(text+"&time="+strconv.FormatInt(milliseconds, 10), "&")
	}
	sign, err := Signature("", text, key, profile, method, path)
	return text + "&sign=" + sign, err
}

// SignedHead is what a signature in headers signs, but the key. CONTRACT 3.
type SignedHead struct {
	Method, Target string // Target: path and query, as sent
	Time, Nonce    string // Time: milliseconds since 1970; Nonce: can be empty
	BodyHash       [sha256.Size]byte
}

// Canonical returns the signed text, with the key if the algorithm is md5.
func (h SignedHead) Canonical(key, algorithm string) string {
	text := strings.Join([]string{h.Method, h.Target, h.Time, h.Nonce, hex.EncodeToString(h.BodyHash[:])}, "\n")
	if algorithm == "md5" {
		text += "\n" + key
	}
	return text
}

// Signature returns the signature, in hex. The algorithm is md5 or hmac-sha256, by default the second.
func (h SignedHead) Signature(key, algorithm string) string {
	if algorithm != "md5" {
		algorithm = "hmac-sha256"
	}
	return digest(h.Canonical(key, algorithm), key, algorithm)
}

func digest(text, key, algorithm string) string {
	if algorithm == "hmac-sha256" {
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write([]byte(text))
		return hex.EncodeToString(mac.Sum(nil))
	}
	sum := md5.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
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
		{"carrier", "parameters, headers, both", &p.Carrier, "parameters"},
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

// headerAlgorithm is the algorithm of signatures in headers.
func (p Profile) headerAlgorithm() string {
	if p.Carrier == "headers" && p.Algorithm == "md5" {
		return "md5"
	}
	return "hmac-sha256"
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

// encode returns the pairs as they are sent.
func (p Pairs) encode() (string, error) {
	var parts []string
	for _, pair := range p {
		name, isText := pair[0].(string)
		if !isText {
			return "", argumentError("a pair's name is no string")
		}
		values := []reflect.Value{reflect.ValueOf(pair[1])}
		if list := values[0]; (list.Kind() == reflect.Slice || list.Kind() == reflect.Array) && list.Type().Elem().Kind() != reflect.Uint8 {
			values = nil
			for i := 0; i < list.Len(); i++ {
				values = append(values, list.Index(i))
			}
		}
		encodedName, err := Encode(name)
		for i := 0; i < len(values) && err == nil; i++ {
			var text string
			if text, err = textOf(name, values[i]); err == nil {
				text, err = Encode(text)
			}
			parts = append(parts, encodedName+"="+text)
		}
		if err != nil {
			return "", err
		}
	}
	return strings.Join(parts, "&"), nil
}

// textOf is the text of a value, if only one is possible: a time.Duration has several.
func textOf(name string, value reflect.Value) (string, error) {
	if value.Kind() == reflect.Interface {
		value = value.Elem()
	}
	if value.Kind() == reflect.String {
		return value.String(), nil
	}
	if value.IsValid() && !value.Type().Implements(reflect.TypeOf((*fmt.Stringer)(nil)).Elem()) {
		switch {
		case value.Kind() == reflect.Bool, value.CanInt(), value.CanUint():
			return fmt.Sprint(value), nil
		case value.CanFloat() && !math.IsNaN(value.Float()) && !math.IsInf(value.Float(), 0):
			return strconv.FormatFloat(value.Float(), 'f', -1, value.Type().Bits()), nil
		}
	}
	return "", argumentError("the value of %q must be text, a finite number, a bool, or a list of these", name)
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

func contains(list []string, text string) bool {
	for _, one := range list {
		if one == text {
			return true
		}
	}
	return false
}
