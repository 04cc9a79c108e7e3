// A login and an event by openapi-generator's client for Go.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"

	"generated/login"
)

// show prints a line of JSON.
func show(value any) {
	line, err := json.Marshal(value)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(line))
}

// result ends the program unless there is one.
func result[T any](value T, _ *http.Response, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	url, key, app, data := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	configuration := login.NewConfiguration()
	configuration.Servers[0].URL = url
	configuration.HTTPClient = &http.Client{Transport: Signed(key)}
	calls, ctx := login.NewAPIClient(configuration).DefaultAPI, context.Background()

	begun := result(calls.PostLogin(ctx).AcmeXApp(app).AcmeXVersion("v2").Provider("bitbucket").Execute())
	show(begun)
	bufio.NewReader(os.Stdin).ReadString('\n')
	check := result(calls.GetCheck(ctx).AcmeXApp(app).AcmeXVersion("v2").Token(begun.Token).Wait(30).Execute())
	user := result(calls.PostUserLogin(ctx).AcmeXApp(app).AcmeXVersion("v2").Token(begun.Token).Execute())
	credential := login.APIKey{Key: user.Authorization}
	ctx = context.WithValue(ctx, login.ContextAPIKeys, map[string]login.APIKey{"credential": credential})
	result(calls.PostEventSend(ctx).AcmeXApp(app).AcmeXVersion("v2").Event("generated").Data(data).Execute())
	account := result(calls.GetUser(ctx).AcmeXApp(app).AcmeXVersion("v2").Execute())
	events := result(calls.GetEvents(ctx).AcmeXApp(app).AcmeXVersion("v2").Limit(1).Execute())
	show(map[string]any{"status": check.Status, "provider": account.Provider, "data": events.Events[0].Data})
}
