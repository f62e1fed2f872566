package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A message as it is told; []byte is base64 in JSON.
type message struct {
	Subject   string      `json:"subject"`
	Sequence  uint64      `json:"sequence,omitempty"`
	Headers   nats.Header `json:"headers"`
	Data      []byte      `json:"data"`
	Delivered uint64      `json:"delivered,omitempty"`
}

func newMessage(subject string, sequence uint64, headers nats.Header, data []byte) *message {
	if headers == nil {
		headers = nats.Header{}
	}
	if data == nil {
		data = []byte{}
	}
	return &message{Subject: subject, Sequence: sequence, Headers: headers, Data: data}
}

func stored(m *jetstream.RawStreamMsg) *message {
	return newMessage(m.Subject, m.Sequence, m.Header, m.Data)
}

// outgoing is what a command publishes.
type outgoing struct {
	Subject string
	Data    []byte
	Headers nats.Header
}

func (o outgoing) message() *nats.Msg {
	return &nats.Msg{Subject: o.Subject, Data: o.Data, Header: o.Headers}
}

// publishOptions have the names of nats.js.
type publishOptions struct {
	MsgID  string
	TTL    string
	Expect struct {
		StreamName                 string
		LastSequence               *uint64
		LastSubjectSequence        *uint64
		LastSubjectSequenceSubject string
		LastMsgID                  string
	}
}

func (o publishOptions) options() ([]jetstream.PublishOpt, error) {
	var found []jetstream.PublishOpt
	if o.MsgID != "" {
		found = append(found, jetstream.WithMsgID(o.MsgID))
	}
	if o.TTL != "" {
		life, err := time.ParseDuration(o.TTL)
		if err != nil {
			return nil, err
		}
		found = append(found, jetstream.WithMsgTTL(life))
	}
	expect := o.Expect
	if expect.StreamName != "" {
		found = append(found, jetstream.WithExpectStream(expect.StreamName))
	}
	if expect.LastSequence != nil {
		found = append(found, jetstream.WithExpectLastSequence(*expect.LastSequence))
	}
	switch last, subject := expect.LastSubjectSequence, expect.LastSubjectSequenceSubject; {
	case last != nil && subject != "":
		found = append(found, jetstream.WithExpectLastSequenceForSubject(*last, subject))
	case last != nil:
		found = append(found, jetstream.WithExpectLastSequencePerSubject(*last))
	}
	if expect.LastMsgID != "" {
		found = append(found, jetstream.WithExpectLastMsgID(expect.LastMsgID))
	}
	return found, nil
}

func init() {
	register("request", func(ctx context.Context, c *client, given outgoing) (any, error) {
		said, err := c.nc.RequestMsgWithContext(ctx, given.message())
		if err != nil {
			return nil, err
		}
		return newMessage(said.Subject, 0, said.Header, said.Data), nil
	})

	register("publish", func(ctx context.Context, c *client, given struct {
		outgoing
		Domain  string
		Options publishOptions
	}) (any, error) {
		js, err := c.within(given.Domain)
		if err != nil {
			return nil, err
		}
		options, err := given.Options.options()
		if err != nil {
			return nil, err
		}
		ack, err := js.PublishMsg(ctx, given.message(), options...)
		if err != nil {
			return nil, err
		}
		return map[string]any{
			"stream": ack.Stream, "sequence": ack.Sequence, "duplicate": ack.Duplicate,
		}, nil
	})

	register("schedule", func(ctx context.Context, c *client, given struct {
		outgoing
		Every, Life string
		Target      string
	}) (any, error) {
		every, err := time.ParseDuration(given.Every)
		if err != nil {
			return nil, err
		}
		life, err := time.ParseDuration(given.Life)
		if err != nil {
			return nil, err
		}
		_, err = c.js.PublishMsg(ctx, given.message(), jetstream.WithScheduleEvery(every),
			jetstream.WithScheduleTarget(given.Target), jetstream.WithScheduleTTL(life))
		return nil, err
	})

	register("stream_add", func(ctx context.Context, c *client, given struct{ Config jetstream.StreamConfig }) (any, error) {
		_, err := c.js.CreateStream(ctx, given.Config)
		return nil, err
	})

	register("stream_update", func(ctx context.Context, c *client, given struct {
		Stream  string
		Changes json.RawMessage
	}) (any, error) {
		found, err := c.js.Stream(ctx, given.Stream)
		if err != nil {
			return nil, err
		}
		config := found.CachedInfo().Config
		if err := json.Unmarshal(given.Changes, &config); err != nil {
			return nil, err
		}
		_, err = c.js.UpdateStream(ctx, config)
		return nil, err
	})

	register("stream_info", func(ctx context.Context, c *client, given struct{ Stream string }) (any, error) {
		found, err := c.js.Stream(ctx, given.Stream)
		if err != nil {
			return nil, err
		}
		return found.CachedInfo(), nil
	})

	register("stream_get", func(ctx context.Context, c *client, given struct {
		Stream string
		Query  struct {
			Seq        uint64
			LastBySubj string `json:"last_by_subj"`
		}
	}) (any, error) {
		stream, err := c.js.Stream(ctx, given.Stream)
		if err != nil {
			return nil, err
		}
		var found *jetstream.RawStreamMsg
		if given.Query.LastBySubj != "" {
			found, err = stream.GetLastMsgForSubject(ctx, given.Query.LastBySubj)
		} else {
			found, err = stream.GetMsg(ctx, given.Query.Seq)
		}
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return stored(found), nil
	})
}
