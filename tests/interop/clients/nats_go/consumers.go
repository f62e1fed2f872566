package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

func delivered(m jetstream.Msg) *message {
	said := newMessage(m.Subject(), 0, m.Headers(), m.Data())
	if about, err := m.Metadata(); err == nil {
		said.Sequence, said.Delivered = about.Sequence.Stream, about.NumDelivered
	}
	return said
}

func settle(ctx context.Context, m jetstream.Msg, verdict string, delay time.Duration, reason string) error {
	switch verdict {
	case "ack":
		return m.DoubleAck(ctx)
	case "nak":
		return m.Nak()
	case "delay":
		return m.NakWithDelay(delay)
	case "term":
		return m.Term()
	case "reason":
		return m.TermWithReason(reason)
	case "progress":
		return m.InProgress()
	case "none":
		return nil
	}
	return fmt.Errorf("no verdict %q", verdict)
}

// one names a consumer.
type one struct{ Stream, Consumer string }

// asked is what a pull asks for.
type asked struct {
	one
	Count     int
	TimeoutMs int64 `json:"timeout_ms"`
	Group     string
	// Of an overflow consumer.
	MinPending int64 `json:"min_pending"`
	Verdict    string
	DelayMs    int64 `json:"delay_ms"`
	Reason     string
}

func (a asked) options() []jetstream.FetchOpt {
	found := []jetstream.FetchOpt{
		jetstream.FetchMaxWait(time.Duration(a.TimeoutMs) * time.Millisecond),
	}
	if a.Group != "" {
		found = append(found, jetstream.FetchPriorityGroup(a.Group))
	}
	if a.MinPending > 0 {
		found = append(found, jetstream.FetchMinPending(a.MinPending))
	}
	return found
}

// work fetches messages and settles each in one way.
func work(ctx context.Context, c *client, given asked) (any, error) {
	consumer, err := c.pullConsumer(ctx, given.one)
	if err != nil {
		return nil, err
	}
	batch, err := consumer.Fetch(given.Count, given.options()...)
	if err != nil {
		return nil, err
	}
	taken := []*message{}
	delay := time.Duration(given.DelayMs) * time.Millisecond
	for m := range batch.Messages() {
		if err := settle(ctx, m, given.Verdict, delay, given.Reason); err != nil {
			return nil, err
		}
		taken = append(taken, delivered(m))
	}
	// What was said is with the server when this returns.
	return taken, c.nc.FlushWithContext(ctx)
}

// pullConsumer returns one handle for each consumer: it holds the pin of a pinned group.
func (c *client) pullConsumer(ctx context.Context, name one) (jetstream.Consumer, error) {
	handlesLock.Lock()
	defer handlesLock.Unlock()
	if found := c.consumers[name]; found != nil {
		return found, nil
	}
	found, err := c.js.Consumer(ctx, name.Stream, name.Consumer)
	if err == nil {
		c.consumers[name] = found
	}
	return found, err
}

func (c *client) consumerInfo(ctx context.Context, name one) (*jetstream.ConsumerInfo, error) {
	// A pushing one is refused by Consumer, a pulling one by PushConsumer.
	if found, err := c.js.PushConsumer(ctx, name.Stream, name.Consumer); err == nil {
		return found.CachedInfo(), nil
	}
	found, err := c.js.Consumer(ctx, name.Stream, name.Consumer)
	if err != nil {
		return nil, err
	}
	return found.CachedInfo(), nil
}

func init() {
	register("consumer_add", func(ctx context.Context, c *client, given struct {
		Stream string
		Config jetstream.ConsumerConfig
	}) (any, error) {
		if given.Config.DeliverSubject != "" {
			_, err := c.js.CreatePushConsumer(ctx, given.Stream, given.Config)
			return nil, err
		}
		_, err := c.js.CreateConsumer(ctx, given.Stream, given.Config)
		return nil, err
	})

	register("consumer_update", func(ctx context.Context, c *client, given struct {
		one
		Changes json.RawMessage
	}) (any, error) {
		info, err := c.consumerInfo(ctx, given.one)
		if err != nil {
			return nil, err
		}
		config := info.Config
		if err := json.Unmarshal(given.Changes, &config); err != nil {
			return nil, err
		}
		if config.DeliverSubject != "" {
			_, err = c.js.UpdatePushConsumer(ctx, given.Stream, config)
			return nil, err
		}
		_, err = c.js.UpdateConsumer(ctx, given.Stream, config)
		return nil, err
	})

	register("consumer_info", func(ctx context.Context, c *client, given one) (any, error) {
		return c.consumerInfo(ctx, given)
	})

	register("consumer_settle", work)
	register("consumer_work", func(ctx context.Context, c *client, given asked) (any, error) {
		given.Verdict = "ack"
		return work(ctx, c, given)
	})

	register("consumer_pause", func(ctx context.Context, c *client, given struct {
		one
		Until time.Time
	}) (any, error) {
		said, err := c.js.PauseConsumer(ctx, given.Stream, given.Consumer, given.Until)
		if err != nil {
			return nil, err
		}
		return said.Paused, nil
	})

	register("consumer_resume", func(ctx context.Context, c *client, given one) (any, error) {
		said, err := c.js.ResumeConsumer(ctx, given.Stream, given.Consumer)
		if err != nil {
			return nil, err
		}
		return said.Paused, nil
	})

	register("consumer_reset", func(ctx context.Context, c *client, given struct {
		one
		Sequence uint64
	}) (any, error) {
		said, err := c.js.ResetConsumerToSequence(ctx, given.Stream, given.Consumer, given.Sequence)
		if err != nil {
			return nil, err
		}
		return said.ResetSeq, nil
	})

	register("consumer_unpin", func(ctx context.Context, c *client, given struct {
		one
		Group string
	}) (any, error) {
		stream, err := c.js.Stream(ctx, given.Stream)
		if err != nil {
			return nil, err
		}
		return nil, stream.UnpinConsumer(ctx, given.Consumer, given.Group)
	})
}
