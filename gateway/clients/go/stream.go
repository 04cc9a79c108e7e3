// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

package signpost

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

const maxMessageBytes = 1 << 20

var errTooLong = errors.New("the response has more bytes than the limit")

// Stream is a response with a status below 400, to be read as it arrives, and closed.
type Stream struct {
	Status  int
	Headers http.Header

	request  *request
	isWhole  bool   // It is read before the caller has it,
	content  []byte // as this.
	body     io.ReadCloser
	left     int64 // of the limit
	parent   context.Context
	context  context.Context
	cancel   context.CancelFunc
	timeout  time.Duration
	timer    *time.Timer
	timedOut atomic.Bool
}

// Open calls as Call does, and returns the response as soon as it begins. Without Limit it has no limit. The timeout is to its beginning,
// then for each part of it. Close the stream.
func (c *Client) Open(ctx context.Context, method, path string, options ...Option) (*Stream, error) {
	o := c.with(options)
	o.accept = "*/*"
	return c.run(ctx, method, path, o, true)
}

func newStream(ctx context.Context, r *request, timeout time.Duration, isStream bool) *Stream {
	s := &Stream{request: r, isWhole: !isStream, parent: ctx, timeout: r.timeout, left: r.limit}
	if s.left == 0 {
		s.left = maxResponseBytes
		if isStream {
			s.left = math.MaxInt64 - 1
		}
	}
	setDefault(&s.timeout, timeout)
	s.context, s.cancel = context.WithCancel(ctx)
	s.timer = time.AfterFunc(timeout, func() {
		s.timedOut.Store(true)
		s.cancel()
	})
	return s
}

// begin takes the response. Of an error, or if the caller wants all at once, it reads the whole body.
func (s *Stream) begin(response *http.Response) (err error) {
	s.Status, s.Headers, s.body = response.StatusCode, response.Header, response.Body
	if s.body == nil {
		s.body = http.NoBody
	}
	isError := s.Status >= 400
	if !isError && s.request.method != "HEAD" && response.ContentLength > s.left {
		return s.end("", errTooLong)
	}
	if !isError && !s.isWhole {
		s.timer.Stop()
		return nil
	}
	s.isWhole = true
	defer s.Close()
	if isError {
		s.content, err = io.ReadAll(io.LimitReader(s.body, maxErrorBytes))
	} else {
		s.content, err = io.ReadAll(s)
	}
	if err != nil {
		err = s.end("the response is incomplete: ", err)
	}
	return err
}

// Read reads what has arrived. A body that breaks off, or has more bytes than the limit, is an error.
func (s *Stream) Read(part []byte) (int, error) {
	if !s.isWhole {
		s.timer.Reset(s.timeout)
		defer s.timer.Stop()
	}
	// One byte more than the limit tells a body that ends there from a longer one.
	if int64(len(part)) > s.left+1 {
		part = part[:s.left+1]
	}
	read, err := s.body.Read(part)
	if s.left -= int64(read); s.left < 0 {
		read, err = read-1, errTooLong
		s.left = 0
	}
	if err == nil || err == io.EOF || s.isWhole {
		return read, err
	}
	return read, s.end("the response is incomplete: ", err)
}

// Close ends the response, also before its end.
func (s *Stream) Close() error {
	s.timer.Stop()
	err := s.body.Close()
	s.cancel()
	return err
}

// end is the error of a request that has failed: the cause, if the caller or the timeout has ended it.
func (s *Stream) end(what string, err error) error {
	if s.body != nil {
		s.body.Close()
	}
	if s.timer.Stop(); s.parent.Err() != nil {
		what, err = "", s.parent.Err()
	} else if s.timedOut.Load() {
		what, err = "", context.DeadlineExceeded
	} else if err == errTooLong {
		what = ""
	}
	s.cancel()
	return s.request.failed(what, err)
}

// Message is a server-sent event. Its Name is "message" by default, and its ID the last one that the server has sent.
type Message struct{ Name, Data, ID string }

// Messages are the server-sent events of a response.
type Messages struct {
	stream *Stream
	lines  *bufio.Scanner
	lastID string
}

// Listen calls, and reads server-sent events.
func (c *Client) Listen(ctx context.Context, path string, options ...Option) (*Messages, error) {
	o := c.with(options)
	o.accept = "text/event-stream"
	stream, err := c.run(ctx, "GET", path, o, true)
	if err != nil {
		return nil, err
	}
	isAfterReturn, lines := false, bufio.NewScanner(stream)
	lines.Buffer(nil, maxMessageBytes)
	lines.Split(func(data []byte, _ bool) (int, []byte, error) {
		start := 0
		if isAfterReturn && bytes.HasPrefix(data, []byte("\n")) {
			start = 1
		}
		end := bytes.IndexAny(data[start:], "\r\n")
		if end < 0 {
			return 0, nil, nil // What has no line break at the end is not whole.
		}
		end += start
		isAfterReturn = data[end] == '\r'
		return end + 1, data[start:end], nil
	})
	return &Messages{stream: stream, lines: lines}, nil
}

// Next waits for the next event. At the end of the response it returns io.EOF.
func (m *Messages) Next() (Message, error) {
	message := Message{Name: "message"}
	var data []string
	for size := 0; m.lines.Scan(); {
		line := strings.TrimPrefix(m.lines.Text(), "\ufeff")
		if size += len(line); size > maxMessageBytes {
			return message, bufio.ErrTooLong
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && data != nil:
			message.Data, message.ID = strings.Join(data, "\n"), m.lastID
			return message, nil
		case line == "":
			message.Name, size = "message", 0
		case field == "data":
			data = append(data, value)
		case field == "event" && value != "":
			message.Name = value
		case field == "id" && !strings.Contains(value, "\x00"):
			m.lastID = value
		}
	}
	if err := m.lines.Err(); err != nil {
		return message, err
	}
	return message, io.EOF
}

// Close ends the response.
func (m *Messages) Close() error { return m.stream.Close() }
