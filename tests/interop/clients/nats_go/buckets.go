package main

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// named is what commands of a bucket or of a store say.
type named struct{ Bucket, Store, Domain string }

func (n named) open(ctx context.Context, c *client) (jetstream.KeyValue, error) {
	js, err := c.within(n.Domain)
	if err != nil {
		return nil, err
	}
	return js.KeyValue(ctx, n.Bucket)
}

// keyed is what commands of one key say.
type keyed struct {
	named
	Key      string
	Value    []byte
	Revision uint64
	TTL      string
}

func (k keyed) life() (time.Duration, error) {
	if k.TTL == "" {
		return 0, nil
	}
	return time.ParseDuration(k.TTL)
}

type entry struct {
	Key       string `json:"key"`
	Operation string `json:"operation"`
	Value     []byte `json:"value"`
	Revision  uint64 `json:"revision"`
}

var operations = map[jetstream.KeyValueOp]string{
	jetstream.KeyValuePut: "PUT", jetstream.KeyValueDelete: "DEL", jetstream.KeyValuePurge: "PURGE",
}

func seen(e jetstream.KeyValueEntry) entry {
	return entry{e.Key(), operations[e.Operation()], append([]byte{}, e.Value()...), e.Revision()}
}

// bucketOptions have the names of nats.js; lives are milliseconds.
type bucketOptions struct {
	History      uint8
	Description  string
	TTL          int64
	MarkerTTL    int64
	MaxBytes     int64 `json:"max_bytes"`
	MaxValueSize int32
	Storage      jetstream.StorageType
	Compression  bool
	Replicas     int
	Mirror       *jetstream.StreamSource
	Sources      []*jetstream.StreamSource
	Republish    *jetstream.RePublish
}

func (o bucketOptions) config(bucket string) jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: bucket, Description: o.Description, History: o.History,
		TTL:            time.Duration(o.TTL) * time.Millisecond,
		LimitMarkerTTL: time.Duration(o.MarkerTTL) * time.Millisecond,
		MaxBytes:       o.MaxBytes, MaxValueSize: o.MaxValueSize, Storage: o.Storage,
		Compression: o.Compression, Replicas: o.Replicas, Mirror: o.Mirror, Sources: o.Sources,
		RePublish: o.Republish,
	}
}

// ofKey adds a verb of one key.
func ofKey(name string, do func(ctx context.Context, kv jetstream.KeyValue, given keyed) (any, error)) {
	register(name, func(ctx context.Context, c *client, given keyed) (any, error) {
		kv, err := given.open(ctx, c)
		if err != nil {
			return nil, err
		}
		return do(ctx, kv, given)
	})
}

func init() {
	register("kv_create_bucket", func(ctx context.Context, c *client, given struct {
		named
		Options bucketOptions
	}) (any, error) {
		js, err := c.within(given.Domain)
		if err != nil {
			return nil, err
		}
		_, err = js.CreateKeyValue(ctx, given.Options.config(given.Bucket))
		return nil, err
	})

	register("kv_update_bucket", func(ctx context.Context, c *client, given struct {
		named
		Options bucketOptions
	}) (any, error) {
		_, err := c.js.UpdateKeyValue(ctx, given.Options.config(given.Bucket))
		return nil, err
	})

	ofKey("kv_get", func(ctx context.Context, kv jetstream.KeyValue, given keyed) (any, error) {
		found, err := kv.Get(ctx, given.Key)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return seen(found), nil
	})

	ofKey("kv_put", func(ctx context.Context, kv jetstream.KeyValue, given keyed) (any, error) {
		return kv.Put(ctx, given.Key, given.Value)
	})

	ofKey("kv_create", func(ctx context.Context, kv jetstream.KeyValue, given keyed) (any, error) {
		life, err := given.life()
		if err != nil {
			return nil, err
		}
		if life == 0 {
			return kv.Create(ctx, given.Key, given.Value)
		}
		return kv.Create(ctx, given.Key, given.Value, jetstream.KeyTTL(life))
	})

	ofKey("kv_update", func(ctx context.Context, kv jetstream.KeyValue, given keyed) (any, error) {
		return kv.Update(ctx, given.Key, given.Value, given.Revision)
	})

	ofKey("kv_delete", func(ctx context.Context, kv jetstream.KeyValue, given keyed) (any, error) {
		return nil, kv.Delete(ctx, given.Key)
	})

	ofKey("kv_purge", func(ctx context.Context, kv jetstream.KeyValue, given keyed) (any, error) {
		life, err := given.life()
		if err != nil {
			return nil, err
		}
		if life == 0 {
			return nil, kv.Purge(ctx, given.Key)
		}
		return nil, kv.Purge(ctx, given.Key, jetstream.PurgeTTL(life))
	})

	ofKey("kv_history", func(ctx context.Context, kv jetstream.KeyValue, given keyed) (any, error) {
		found, err := kv.History(ctx, given.Key)
		if err != nil {
			return nil, err
		}
		entries := []entry{}
		for _, each := range found {
			entries = append(entries, seen(each))
		}
		return entries, nil
	})

	register("kv_keys", func(ctx context.Context, c *client, given struct {
		named
		Filter string
	}) (any, error) {
		kv, err := given.open(ctx, c)
		if err != nil {
			return nil, err
		}
		filter := given.Filter
		if filter == "" {
			filter = ">"
		}
		lister, err := kv.ListKeysFiltered(ctx, filter)
		if err != nil {
			return nil, err
		}
		keys := []string{}
		for key := range lister.Keys() {
			keys = append(keys, key)
		}
		return keys, nil
	})

	register("kv_watch", func(ctx context.Context, c *client, given struct {
		named
		Count int
	}) (any, error) {
		kv, err := given.open(ctx, c)
		if err != nil {
			return nil, err
		}
		watcher, err := kv.WatchAll(ctx)
		if err != nil {
			return nil, err
		}
		entries := []entry{}
		for len(entries) < given.Count {
			// None ends what was there at first.
			if each := <-watcher.Updates(); each != nil {
				entries = append(entries, seen(each))
			}
		}
		return entries, watcher.Stop()
	})

	register("kv_purge_deletes", func(ctx context.Context, c *client, given struct {
		named
		OlderMs int64 `json:"older_ms"`
	}) (any, error) {
		kv, err := given.open(ctx, c)
		if err != nil {
			return nil, err
		}
		older := jetstream.DeleteMarkersOlderThan(time.Duration(given.OlderMs) * time.Millisecond)
		return nil, kv.PurgeDeletes(ctx, older)
	})
}
