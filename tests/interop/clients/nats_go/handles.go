package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// What waits in a handle that nobody takes from; a scenario is far below it.
const handleItemsMax = 100_000

// A handle collects what comes, until it is taken.
type handle struct {
	items chan *message
	end   func() error
}

var (
	handles     = map[int]*handle{}
	handlesMade = 0
	handlesLock sync.Mutex
)

func open(items chan *message, end func() error) int {
	handlesLock.Lock()
	defer handlesLock.Unlock()
	handlesMade++
	handles[handlesMade] = &handle{items, end}
	return handlesMade
}

// take returns up to count items, fewer when the time is over.
func (h *handle) take(count int, within time.Duration) []*message {
	taken := []*message{}
	late := time.After(within)
	for len(taken) < count {
		select {
		case item := <-h.items:
			taken = append(taken, item)
		case <-late:
			return taken
		}
	}
	return taken
}

func handleOf(number int) (*handle, error) {
	handlesLock.Lock()
	defer handlesLock.Unlock()
	if found := handles[number]; found != nil {
		return found, nil
	}
	return nil, errors.New("no such handle")
}

func init() {
	register("take", func(_ context.Context, _ *client, given struct {
		Handle, Count int
		TimeoutMs     int64 `json:"timeout_ms"`
	}) (any, error) {
		held, err := handleOf(given.Handle)
		if err != nil {
			return nil, err
		}
		return held.take(given.Count, time.Duration(given.TimeoutMs)*time.Millisecond), nil
	})

	register("drop", func(_ context.Context, _ *client, given struct{ Handle int }) (any, error) {
		held, err := handleOf(given.Handle)
		if err != nil {
			return nil, err
		}
		return nil, held.end()
	})

	register("subscribe", func(_ context.Context, c *client, given struct{ Subject string }) (any, error) {
		items := make(chan *message, handleItemsMax)
		subscription, err := c.nc.Subscribe(given.Subject, func(m *nats.Msg) {
			items <- newMessage(m.Subject, 0, m.Header, m.Data)
		})
		if err != nil {
			return nil, err
		}
		// The server has it when this returns.
		return open(items, subscription.Unsubscribe), c.nc.Flush()
	})

	register("ordered", func(ctx context.Context, c *client, given struct {
		Stream  string
		Options jetstream.OrderedConsumerConfig
	}) (any, error) {
		consumer, err := c.js.OrderedConsumer(ctx, given.Stream, given.Options)
		if err != nil {
			return nil, err
		}
		items := make(chan *message, handleItemsMax)
		reading, err := consumer.Consume(func(m jetstream.Msg) { items <- delivered(m) })
		if err != nil {
			return nil, err
		}
		return open(items, func() error { reading.Stop(); return nil }), nil
	})

	// Each message is acked when it is here.
	register("push", func(ctx context.Context, c *client, given struct{ Stream, Consumer string }) (any, error) {
		consumer, err := c.js.PushConsumer(ctx, given.Stream, given.Consumer)
		if err != nil {
			return nil, err
		}
		items := make(chan *message, handleItemsMax)
		reading, err := consumer.Consume(func(m jetstream.Msg) {
			items <- delivered(m)
			_ = m.Ack()
		})
		if err != nil {
			return nil, err
		}
		return open(items, func() error { reading.Stop(); return nil }), c.nc.Flush()
	})
}
