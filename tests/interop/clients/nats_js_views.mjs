// What nats_js.mjs does with buckets and object stores: verbs as there, by name.
//
// Each takes {js, ...arguments}; a domain is reached with a JetStream client of its own. Bytes are
// base64, headers {name: [value, ...]}, durations milliseconds.

import { Buffer } from "node:buffer";

export function viewVerbs({ require, jetstream, headersFrom, bytesFrom, timeout }) {
  const { Base64KeyCodec, Kvm, NoopKvCodecs } = require("@nats-io/kv");
  const { Objm } = require("@nats-io/obj");

  const within = ({ nc, js, domain }) => (domain ? jetstream(nc, { domain, timeout }) : js);
  const codecs = { base64: { ...NoopKvCodecs(), key: Base64KeyCodec() } };
  const bucketOf = ({ codec, options, ...given }) =>
    new Kvm(within(given)).create(given.bucket, {
      timeout,
      ...options,
      bindOnly: false,
      ...(codec && { codec: codecs[codec] }),
    });
  const storeOf = (given) => new Objm(within(given)).open(given.store);

  async function taken(entries, count) {
    const found = [];
    if (count === 0) return found;
    for await (const entry of entries) {
      found.push(seen(entry));
      if (found.length === count) break;
    }
    return found;
  }

  return {
    async kv_create_bucket(given) {
      await bucketOf(given);
    },

    async kv_get(given) {
      const entry = await (await bucketOf(given)).get(given.key, given.query);
      return entry && seen(entry);
    },

    async kv_put(given) {
      return await (await bucketOf(given)).put(given.key, bytesFrom(given.value));
    },

    async kv_create(given) {
      return await (await bucketOf(given)).create(given.key, bytesFrom(given.value), given.ttl);
    },

    async kv_update(given) {
      const bucket = await bucketOf(given);
      return await bucket.update(given.key, bytesFrom(given.value), given.revision);
    },

    async kv_delete(given) {
      await (await bucketOf(given)).delete(given.key);
    },

    async kv_purge(given) {
      await (await bucketOf(given)).purge(given.key, given.ttl ? { ttl: given.ttl } : {});
    },

    async kv_keys(given) {
      const found = [];
      const keys = await (await bucketOf(given)).keys(given.filter ?? ">");
      for await (const key of keys) found.push(key);
      return found;
    },

    async kv_purge_deletes(given) {
      return (await (await bucketOf(given)).purgeDeletes(given.older_ms)).purged;
    },

    async kv_history(given) {
      return await taken(await (await bucketOf(given)).history({ key: given.key }), -1);
    },

    async kv_watch(given) {
      return await taken(await (await bucketOf(given)).watch(), given.count);
    },

    async obj_create_store(given) {
      await new Objm(within(given)).create(given.store, given.options);
    },

    async obj_put(given) {
      const { name, description, headers, metadata } = given;
      const meta = { name, description, headers: headersFrom(headers), metadata };
      await (await storeOf(given)).putBlob(meta, bytesFrom(given.data));
    },

    async obj_get(given) {
      const data = await (await storeOf(given)).getBlob(given.name);
      return data && Buffer.from(data).toString("base64");
    },

    async obj_info(given) {
      const info = await (await storeOf(given)).info(given.name);
      return info && shown(info);
    },

    async obj_names(given) {
      const infos = await (await storeOf(given)).list();
      return infos.filter((info) => !info.deleted).map((info) => info.name);
    },

    async obj_delete(given) {
      await (await storeOf(given)).delete(given.name);
    },

    async obj_rename(given) {
      await (await storeOf(given)).update(given.name, { name: given.new_name });
    },

    async obj_link(given) {
      const target = await storeOf({ ...given, store: given.target_store });
      const info = await target.info(given.target);
      await (await storeOf(given)).link(given.name, info);
    },

    async obj_link_store(given) {
      const target = await storeOf({ ...given, store: given.target_store });
      await (await storeOf(given)).linkStore(given.name, target);
    },

    // What is there comes first, then what is done; it answers when `count` are here.
    async obj_watch(given) {
      const infos = await (await storeOf(given)).watch({ includeHistory: true });
      const found = [];
      for await (const info of infos) {
        found.push({ name: info.name, deleted: info.deleted ?? false });
        if (found.length === given.count) break;
      }
      return found;
    },

    async obj_seal(given) {
      await (await storeOf(given)).seal();
    },
  };
}

function shown(info) {
  // Its fields are getters.
  const { name, size, chunks, digest, description, metadata, deleted } = info;
  const headers = Object.fromEntries(info.headers ?? []);
  return { name, size, chunks, digest, description, metadata, deleted, headers };
}

function seen(entry) {
  const value = Buffer.from(entry.value).toString("base64");
  return { key: entry.key, operation: entry.operation, value, revision: entry.revision };
}
