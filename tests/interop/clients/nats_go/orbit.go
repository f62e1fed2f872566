package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/big"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/counters"
	"github.com/synadia-io/orbit.go/jetstreamext"
)

func collect(found iter.Seq2[*jetstream.RawStreamMsg, error], err error) (any, error) {
	if err != nil {
		return nil, err
	}
	messages := []*message{}
	for m, err := range found {
		if errors.Is(err, jetstreamext.ErrNoMessages) {
			break
		}
		if err != nil {
			return nil, err
		}
		messages = append(messages, stored(m))
	}
	return messages, nil
}

func batchAck(ack *jetstreamext.BatchAck, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"stream": ack.Stream, "sequence": ack.Sequence, "count": ack.BatchSize,
	}, nil
}

func init() {
	register("publish_batch", func(ctx context.Context, c *client, given struct {
		Subject  string
		Payloads [][]byte
	}) (any, error) {
		batch, err := jetstreamext.NewBatchPublisher(c.js)
		if err != nil {
			return nil, err
		}
		last := len(given.Payloads) - 1
		for _, payload := range given.Payloads[:last] {
			if err := batch.Add(given.Subject, payload); err != nil {
				return nil, err
			}
		}
		return batchAck(batch.Commit(ctx, given.Subject, given.Payloads[last]))
	})

	register("ingest", func(ctx context.Context, c *client, given struct {
		Subject string
		Items   []outgoing
	}) (any, error) {
		fast, err := jetstreamext.NewFastPublisher(c.js)
		if err != nil {
			return nil, err
		}
		last := len(given.Items) - 1
		for number, item := range given.Items {
			item.Subject = given.Subject
			if number == last {
				return batchAck(fast.CommitMsg(ctx, item.message()))
			}
			if _, err := fast.AddMsg(item.message()); err != nil {
				return nil, err
			}
		}
		return nil, errors.New("nothing to ingest")
	})

	register("direct_batch", func(ctx context.Context, c *client, given struct {
		Stream, Subject string
		First           uint64
		Count           int
	}) (any, error) {
		options := []jetstreamext.GetBatchOpt{jetstreamext.GetBatchSeq(given.First)}
		if given.Subject != "" {
			options = append(options, jetstreamext.GetBatchSubject(given.Subject))
		}
		return collect(jetstreamext.GetBatch(ctx, c.js, given.Stream, given.Count, options...))
	})

	register("direct_latest", func(ctx context.Context, c *client, given struct {
		Stream  string
		Filters []string
	}) (any, error) {
		return collect(jetstreamext.GetLastMsgsFor(ctx, c.js, given.Stream, given.Filters))
	})

	register("counter_add", func(ctx context.Context, c *client, given struct{ Stream, Subject, Delta string }) (any, error) {
		counter, err := counters.GetCounter(ctx, c.js, given.Stream)
		if err != nil {
			return nil, err
		}
		delta, isNumber := new(big.Int).SetString(given.Delta, 10)
		if !isNumber {
			return nil, fmt.Errorf("%q is no number", given.Delta)
		}
		total, err := counter.Add(ctx, given.Subject, delta)
		if err != nil {
			return nil, err
		}
		return total.String(), nil
	})

	register("counter_get", func(ctx context.Context, c *client, given struct{ Stream, Subject string }) (any, error) {
		counter, err := counters.GetCounter(ctx, c.js, given.Stream)
		if err != nil {
			return nil, err
		}
		entry, err := counter.Get(ctx, given.Subject)
		if err != nil {
			return nil, err
		}
		sources := map[string]map[string]string{}
		for stream, subjects := range entry.Sources {
			sources[stream] = map[string]string{}
			for subject, part := range subjects {
				sources[stream][subject] = part.String()
			}
		}
		return map[string]any{"value": entry.Value.String(), "sources": sources}, nil
	})
}
