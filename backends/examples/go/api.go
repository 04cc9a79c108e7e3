// An API of JSON, files and events by Go's net/http, without a word of Signpost:  go run api.go ADDRESS:PORT
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sync"
	"time"
)

var (
	lock    sync.Mutex
	files   = map[string][]byte{}
	readers = map[chan []byte]bool{}
)

func orders(w http.ResponseWriter, r *http.Request) {
	var body any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil && err != io.EOF {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"method": r.Method, "path": r.URL.Path, "query": r.URL.RawQuery, "body": body})
}

func file(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPut {
		content, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		lock.Lock()
		files[r.URL.Path] = content
		lock.Unlock()
		fmt.Fprintf(w, `{"sha256": %q}`, hash(content))
		return
	}
	lock.Lock()
	content, found := files[r.URL.Path]
	lock.Unlock()
	if !found {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("ETag", `"`+hash(content)+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content)) // GET and HEAD, with If-None-Match and Range
}

func hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func events(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		event, _ := io.ReadAll(r.Body)
		lock.Lock()
		defer lock.Unlock()
		for reader := range readers {
			select {
			case reader <- event:
			default: // too slow
			}
		}
		w.WriteHeader(http.StatusNoContent)
		return
	}
	own := make(chan []byte, 100)
	lock.Lock()
	readers[own] = true
	lock.Unlock()
	defer func() {
		lock.Lock()
		delete(readers, own)
		lock.Unlock()
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, ": open\n\n")
	for {
		w.(http.Flusher).Flush()
		select {
		case event := <-own:
			fmt.Fprintf(w, "data: %s\n\n", event)
		case <-r.Context().Done():
			return
		}
	}
}

func main() {
	http.HandleFunc("/orders/", orders)
	http.HandleFunc("/files/", file)
	http.HandleFunc("/events", events)
	log.Fatal(http.ListenAndServe(os.Args[1], nil))
}
