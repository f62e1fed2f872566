package main

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func (n named) openStore(ctx context.Context, c *client) (jetstream.ObjectStore, error) {
	js, err := c.within(n.Domain)
	if err != nil {
		return nil, err
	}
	return js.ObjectStore(ctx, n.Store)
}

// storeOptions have the names of nats.js; the life is nanoseconds.
type storeOptions struct {
	Description string
	TTL         time.Duration
	MaxBytes    int64 `json:"max_bytes"`
	Storage     jetstream.StorageType
	Compression bool
	Replicas    int
	Metadata    map[string]string
}

// object is what commands of one object say.
type object struct {
	named
	Name        string
	NewName     string `json:"new_name"`
	TargetStore string `json:"target_store"`
	Target      string
	Data        []byte
	Description string
	Headers     nats.Header
	Metadata    map[string]string
	Count       int
}

// ofObject adds a verb of one object, or of a whole store.
func ofObject(name string, do func(ctx context.Context, box jetstream.ObjectStore, given object) (any, error)) {
	register(name, func(ctx context.Context, c *client, given object) (any, error) {
		box, err := given.openStore(ctx, c)
		if err != nil {
			return nil, err
		}
		return do(ctx, box, given)
	})
}

func init() {
	register("obj_create_store", func(ctx context.Context, c *client, given struct {
		named
		Options storeOptions
	}) (any, error) {
		js, err := c.within(given.Domain)
		if err != nil {
			return nil, err
		}
		o := given.Options
		_, err = js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{
			Bucket: given.Store, Description: o.Description, TTL: o.TTL, MaxBytes: o.MaxBytes,
			Storage: o.Storage, Compression: o.Compression, Replicas: o.Replicas, Metadata: o.Metadata,
		})
		return nil, err
	})

	ofObject("obj_put", func(ctx context.Context, box jetstream.ObjectStore, given object) (any, error) {
		about := jetstream.ObjectMeta{
			Name: given.Name, Description: given.Description, Headers: given.Headers,
			Metadata: given.Metadata,
		}
		_, err := box.Put(ctx, about, bytes.NewReader(given.Data))
		return nil, err
	})

	ofObject("obj_get", func(ctx context.Context, box jetstream.ObjectStore, given object) (any, error) {
		data, err := box.GetBytes(ctx, given.Name)
		if errors.Is(err, jetstream.ErrObjectNotFound) {
			return nil, nil
		}
		return append([]byte{}, data...), err
	})

	ofObject("obj_info", func(ctx context.Context, box jetstream.ObjectStore, given object) (any, error) {
		info, err := box.GetInfo(ctx, given.Name)
		if errors.Is(err, jetstream.ErrObjectNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if info.Headers == nil {
			info.Headers = nats.Header{}
		}
		// An empty one would be left out.
		return struct {
			*jetstream.ObjectInfo
			Headers nats.Header `json:"headers"`
		}{info, info.Headers}, nil
	})

	ofObject("obj_names", func(ctx context.Context, box jetstream.ObjectStore, _ object) (any, error) {
		names := []string{}
		infos, err := box.List(ctx)
		if errors.Is(err, jetstream.ErrNoObjectsFound) {
			return names, nil
		}
		for _, info := range infos {
			names = append(names, info.Name)
		}
		return names, err
	})

	ofObject("obj_delete", func(ctx context.Context, box jetstream.ObjectStore, given object) (any, error) {
		return nil, box.Delete(ctx, given.Name)
	})

	ofObject("obj_rename", func(ctx context.Context, box jetstream.ObjectStore, given object) (any, error) {
		info, err := box.GetInfo(ctx, given.Name)
		if err != nil {
			return nil, err
		}
		about := info.ObjectMeta
		about.Name = given.NewName
		return nil, box.UpdateMeta(ctx, given.Name, about)
	})

	register("obj_link", func(ctx context.Context, c *client, given object) (any, error) {
		box, err := given.openStore(ctx, c)
		if err != nil {
			return nil, err
		}
		target, err := c.js.ObjectStore(ctx, given.TargetStore)
		if err != nil {
			return nil, err
		}
		info, err := target.GetInfo(ctx, given.Target)
		if err != nil {
			return nil, err
		}
		_, err = box.AddLink(ctx, given.Name, info)
		return nil, err
	})

	register("obj_link_store", func(ctx context.Context, c *client, given object) (any, error) {
		box, err := given.openStore(ctx, c)
		if err != nil {
			return nil, err
		}
		target, err := c.js.ObjectStore(ctx, given.TargetStore)
		if err != nil {
			return nil, err
		}
		_, err = box.AddBucketLink(ctx, given.Name, target)
		return nil, err
	})

	// What is there comes first, then what is done; it answers when Count are here.
	ofObject("obj_watch", func(ctx context.Context, box jetstream.ObjectStore, given object) (any, error) {
		watcher, err := box.Watch(ctx, jetstream.IncludeHistory())
		if err != nil {
			return nil, err
		}
		found := []map[string]any{}
		for len(found) < given.Count {
			if info := <-watcher.Updates(); info != nil {
				found = append(found, map[string]any{"name": info.Name, "deleted": info.Deleted})
			}
		}
		return found, watcher.Stop()
	})

	ofObject("obj_seal", func(ctx context.Context, box jetstream.ObjectStore, _ object) (any, error) {
		return nil, box.Seal(ctx)
	})
}
