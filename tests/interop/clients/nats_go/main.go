// Drives nats.go and orbit.go: a command a line on stdin, an answer a line on stdout.
//
// Commands, answers and verbs are those of nats_js.mjs, so that one driver in Python serves both:
// {id, verb, url, ...arguments}, then {id, result} or {id, error}, in the order in which they are
// ready. Bytes are base64 everywhere, headers are {name: [value, ...]}. What goes on for longer has
// a handle, from which `take` takes items and which `drop` ends. The program ends with its stdin.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// For each verb. Only a hang may reach it: a busy machine stands still for seconds.
const timeout = 30 * time.Second

// A verb does one thing with the arguments of its command.
type verb func(ctx context.Context, c *client, command []byte) (any, error)

var verbs = map[string]verb{}

// A client is one connection of the program, shared by all commands of one server.
type client struct {
	consumers map[one]jetstream.Consumer
	nc        *nats.Conn
	js        jetstream.JetStream
}

var (
	clients     = map[string]*client{}
	clientsLock sync.Mutex
)

// register adds a verb whose arguments are of type T.
func register[T any](name string, do func(ctx context.Context, c *client, given T) (any, error)) {
	verbs[name] = func(ctx context.Context, c *client, command []byte) (any, error) {
		var given T
		if err := json.Unmarshal(command, &given); err != nil {
			return nil, err
		}
		return do(ctx, c, given)
	}
}

func clientOf(url string) (*client, error) {
	clientsLock.Lock()
	defer clientsLock.Unlock()
	if url == "" || clients[url] != nil {
		return clients[url], nil
	}
	nc, err := nats.Connect(url, nats.Name("interop nats.go"), nats.Timeout(timeout))
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(timeout))
	if err != nil {
		return nil, err
	}
	clients[url] = &client{map[one]jetstream.Consumer{}, nc, js}
	return clients[url], nil
}

// within returns the JetStream context of a domain, or the connection's own.
func (c *client) within(domain string) (jetstream.JetStream, error) {
	if domain == "" {
		return c.js, nil
	}
	return jetstream.NewWithDomain(c.nc, domain, jetstream.WithDefaultTimeout(timeout))
}

type failure struct {
	Name    string `json:"name"`
	Message string `json:"message"`
	// The server's; 0 where it is not from there.
	ErrCode int `json:"err_code"`
}

type reply struct {
	ID     int      `json:"id"`
	Result any      `json:"result"`
	Error  *failure `json:"error,omitempty"`
}

func failureOf(err error) *failure {
	found := &failure{Name: fmt.Sprintf("%T", err), Message: err.Error()}
	var told jetstream.JetStreamError
	var api *jetstream.APIError
	switch {
	case errors.As(err, &told) && told.APIError() != nil:
		found.ErrCode = int(told.APIError().ErrorCode)
	case errors.As(err, &api):
		found.ErrCode = int(api.ErrorCode)
	}
	return found
}

func answer(command []byte) reply {
	var head struct {
		ID   int
		Verb string
		URL  string
	}
	if err := json.Unmarshal(command, &head); err != nil {
		return reply{Error: failureOf(err)}
	}
	do, isKnown := verbs[head.Verb]
	if !isKnown {
		return reply{ID: head.ID, Error: &failure{Message: "no verb " + head.Verb}}
	}
	c, err := clientOf(head.URL)
	if err != nil {
		return reply{ID: head.ID, Error: failureOf(err)}
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	result, err := do(ctx, c, command)
	if err != nil {
		return reply{ID: head.ID, Error: failureOf(err)}
	}
	return reply{ID: head.ID, Result: result}
}

func main() {
	var writing sync.Mutex
	out := json.NewEncoder(os.Stdout)
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return
		}
		if err != nil {
			panic(err)
		}
		go func() {
			said := answer(line)
			writing.Lock()
			defer writing.Unlock()
			if err := out.Encode(said); err != nil {
				panic(err)
			}
		}()
	}
}
