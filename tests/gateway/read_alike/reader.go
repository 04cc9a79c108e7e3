// Reports what Go's net/http has read of each request:  reader ADDRESS:PORT
package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sync/atomic"
)

var total int64

func read(w http.ResponseWriter, r *http.Request) {
	if r.RequestURI == "/total" {
		fmt.Fprint(w, atomic.LoadInt64(&total))
		return
	}
	atomic.AddInt64(&total, 1)
	hash := sha256.New()
	length, err := io.Copy(hash, r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("X-Read", fmt.Sprintf("%s %s %d %x %x", r.Method, r.RequestURI, length, hash.Sum(nil), r.URL.Path))
}

func main() {
	log.Fatal(http.ListenAndServe(os.Args[1], http.HandlerFunc(read)))
}
