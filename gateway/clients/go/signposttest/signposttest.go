// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

// Package signposttest lets a program's tests call a handler in place of a gateway: no connection is established.
package signposttest

import (
	"io"
	"net/http"
	"net/http/httptest"
)

// Transport is a transport for signpost.Settings whose responses are a handler's. Handlers see requests as a backend does, signed.
type Transport struct{ http.Handler }

// RoundTrip handles a request. It ends with the request's context, even if the handler does not.
func (t Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	received := request.Clone(request.Context())
	received.RequestURI = request.URL.RequestURI()
	if received.Body == nil {
		received.Body = http.NoBody
	}
	recorder, handled := httptest.NewRecorder(), make(chan struct{})
	go func() {
		defer close(handled)
		t.ServeHTTP(recorder, received)
		_, _ = io.Copy(io.Discard, received.Body)
		received.Body.Close()
	}()
	select {
	case <-handled:
		response := recorder.Result()
		response.Request = request
		return response, nil
	case <-request.Context().Done():
		return nil, request.Context().Err()
	}
}
