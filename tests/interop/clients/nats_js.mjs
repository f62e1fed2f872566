// Drives nats.js: a command a line on stdin, an answer a line on stdout.
//
// A command is {id, verb, url, ...arguments}; its answer {id, result} or {id, error}, in the order
// in which they are ready. Bytes are base64 everywhere, headers are {name: [value, ...]}. What goes
// on for longer (an ordered consumer, a subscription) has a handle, from which `take` takes items
// and which `drop` ends. The program ends with its stdin. Its first argument is the folder whose
// node_modules hold nats.js.

import { Buffer } from "node:buffer";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { viewVerbs } from "./nats_js_views.mjs";

const require = createRequire(`${process.argv[2]}/`);
const { connect, headers: newHeaders } = require("@nats-io/transport-node");
const { jetstream, jetstreamManager } = require("@nats-io/jetstream");
// Its public API has no fast ingest yet; this is what companion packages of nats.js wrap.
const { startFastIngest } = require("@nats-io/jetstream/internal");

// What waits in a handle that nobody takes from; a scenario is far below it.
const HANDLE_ITEMS_MAX = 100_000;
// For each answer of the server. Only a hang may reach it: a busy machine stands still for seconds.
const TIMEOUT_MS = 30_000;

const views = viewVerbs({ require, jetstream, headersFrom, bytesFrom, timeout: TIMEOUT_MS });
const connections = new Map();
const handles = new Map();
let handlesMade = 0;

const verbs = {
  ...views,

  async request({ nc, subject, data, timeout_ms }) {
    const answer = await nc.request(subject, bytesFrom(data), { timeout: timeout_ms });
    return message(answer.subject, undefined, answer.headers, answer.data);
  },

  async publish({ js, subject, data, headers, options }) {
    const ack = await js.publish(subject, bytesFrom(data), {
      ...options,
      headers: headersFrom(headers),
    });
    return { stream: ack.stream, sequence: ack.seq, duplicate: ack.duplicate };
  },

  async stream_add({ jsm, config }) {
    return await jsm.streams.add(config);
  },

  async stream_update({ jsm, stream, changes }) {
    return await jsm.streams.update(stream, changes);
  },

  async stream_info({ jsm, stream }) {
    return await jsm.streams.info(stream);
  },

  async stream_get({ jsm, stream, query }) {
    const found = await jsm.streams.getMessage(stream, query);
    return found && message(found.subject, found.seq, found.header, found.data);
  },

  async consumer_add({ jsm, stream, config }) {
    return await jsm.consumers.add(stream, config);
  },

  async consumer_update({ jsm, stream, consumer, changes }) {
    return await jsm.consumers.update(stream, consumer, changes);
  },

  async consumer_info({ jsm, stream, consumer }) {
    return await jsm.consumers.info(stream, consumer);
  },

  async consumer_work({ js, stream, consumer, count, timeout_ms }) {
    const held = await js.consumers.get(stream, consumer);
    const taken = [];
    for await (const m of await held.fetch({ max_messages: count, expires: timeout_ms })) {
      await m.ackAck();
      taken.push(message(m.subject, m.seq, m.headers, m.data));
    }
    return taken;
  },

  // The server has read the verdict when this returns.
  async consumer_settle({ nc, js, stream, consumer, count, timeout_ms, ...given }) {
    const held = await js.consumers.get(stream, consumer);
    const { group, min_pending } = given;
    const asked = {
      max_messages: count,
      expires: timeout_ms,
      ...(group && { group }),
      ...(min_pending && { min_pending }),
    };
    const taken = [];
    for await (const m of await held.fetch(asked)) {
      settle(m, given);
      taken.push(delivered(m));
    }
    await nc.flush();
    return taken;
  },

  async consumer_pause({ jsm, stream, consumer, until }) {
    return (await jsm.consumers.pause(stream, consumer, new Date(until))).paused;
  },

  async consumer_resume({ jsm, stream, consumer }) {
    return (await jsm.consumers.resume(stream, consumer)).paused;
  },

  async consumer_reset({ jsm, stream, consumer, sequence }) {
    return (await jsm.consumers.reset(stream, consumer, sequence)).reset_seq;
  },

  async consumer_unpin({ jsm, stream, consumer, group }) {
    await jsm.consumers.unpin(stream, consumer, group);
  },

  // Each message is acked when it is here.
  async push({ nc, js, stream, consumer }) {
    const held = await js.consumers.getPushConsumer(stream, consumer);
    const messages = await held.consume();
    await nc.flush();
    return open(
      messages,
      () => messages.close(),
      (m) => {
        m.ack();
        return message(m.subject, m.seq, m.headers, m.data);
      },
    );
  },

  async direct_batch({ jsm, stream, count, first, subject }) {
    const asked = { batch: count, seq: first, ...(subject && { next_by_subj: subject }) };
    return await collected(await jsm.direct.getBatch(stream, asked));
  },

  async direct_latest({ jsm, stream, filters }) {
    return await collected(await jsm.direct.getLastMessagesFor(stream, { multi_last: filters }));
  },

  async publish_batch({ js, subject, payloads }) {
    const [first, ...rest] = payloads.map(bytesFrom);
    const batch = await js.startBatch(subject, first);
    const last = rest.pop();
    for (const each of rest) batch.add(subject, each);
    const ack = await batch.commit(subject, last);
    return { stream: ack.stream, sequence: ack.seq, count: ack.count };
  },

  async ingest({ nc, subject, items }) {
    const [first, ...rest] = items.map((each) => ({
      data: bytesFrom(each.data),
      options: { headers: headersFrom(each.headers) },
    }));
    const fast = await startFastIngest(nc, subject, first.data, {
      allowGaps: false,
      headers: first.options.headers,
    });
    const gaps = [];
    const noted = (async () => {
      for await (const gap of fast.gaps()) gaps.push(gap);
    })();
    try {
      for (const { data, options } of rest) await fast.add(subject, data, options);
      await fast.end();
    } catch {
      // It only says that the batch is over; `done` tells why, or how much of it is stored.
    }
    const ack = await fast.done();
    await noted;
    if (ack.count !== items.length) {
      throw new Error(`${ack.count} of ${items.length} are stored: ${JSON.stringify(gaps)}`);
    }
    return { stream: ack.stream, sequence: ack.seq, count: ack.count };
  },

  async ordered({ js, stream, options }) {
    const consumer = await js.consumers.get(stream, options);
    const messages = await consumer.consume();
    const end = async () => {
      await messages.close();
      // Otherwise the server keeps it until it has been idle for five minutes.
      await consumer.delete();
    };
    return open(messages, end, (m) => message(m.subject, m.seq, m.headers, m.data));
  },

  async subscribe({ nc, subject }) {
    const subscription = nc.subscribe(subject);
    // The server has it when this returns.
    await nc.flush();
    const end = () => subscription.unsubscribe();
    return open(subscription, end, (m) => message(m.subject, undefined, m.headers, m.data));
  },

  async take({ handle, count, timeout_ms }) {
    return await handles.get(handle).take(count, timeout_ms);
  },

  async drop({ handle }) {
    const held = handles.get(handle);
    handles.delete(handle);
    await held.end();
    return null;
  },
};

class Handle {
  constructor(source, end, read) {
    this.source = source;
    this.endSource = end;
    this.items = [];
    this.failure = null;
    this.isOver = false;
    this.notify = () => {};
    this.reading = this.readAll(read);
  }

  async readAll(read) {
    try {
      for await (const item of this.source) {
        if (this.items.length === HANDLE_ITEMS_MAX) {
          throw new Error(`nobody took from a handle with ${HANDLE_ITEMS_MAX} items`);
        }
        this.items.push(read(item));
        this.notify();
      }
    } catch (error) {
      this.failure = error;
    }
    this.isOver = true;
    this.notify();
  }

  // Returns `count` items; fewer when the source is over or the time is.
  async take(count, timeout_ms) {
    const deadline = new Promise((resolve) => {
      this.timer = setTimeout(resolve, timeout_ms, true);
    });
    let isLate = false;
    while (this.items.length < count && !this.isOver && !isLate) {
      const change = new Promise((resolve) => {
        this.notify = () => resolve(false);
      });
      isLate = await Promise.race([change, deadline]);
    }
    clearTimeout(this.timer);
    if (this.failure !== null) throw this.failure;
    return this.items.splice(0, count);
  }

  async end() {
    await this.endSource();
    await this.reading;
  }
}

function open(source, end, read) {
  handlesMade += 1;
  handles.set(handlesMade, new Handle(source, end, read));
  return handlesMade;
}

function connectionTo(url) {
  // The promise is kept, so that commands at the same time share one connection.
  if (!connections.has(url)) connections.set(url, connectionOpened(url));
  return connections.get(url);
}

async function connectionOpened(url) {
  const timeout = TIMEOUT_MS;
  const nc = await connect({ servers: url, name: "interop nats.js", timeout });
  return { nc, js: jetstream(nc, { timeout }), jsm: await jetstreamManager(nc, { timeout }) };
}

function message(subject, sequence, headers, data) {
  return {
    subject,
    sequence,
    headers: Object.fromEntries(headers ?? []),
    data: Buffer.from(data).toString("base64"),
  };
}

async function collected(found) {
  const messages = [];
  for await (const m of found) messages.push(message(m.subject, m.seq, m.header, m.data));
  return messages;
}

function settle(m, { verdict, delay_ms, reason }) {
  const ways = {
    ack: () => m.ack(),
    nak: () => m.nak(),
    delay: () => m.nak(delay_ms),
    term: () => m.term(),
    reason: () => m.term(reason),
    progress: () => m.working(),
    none: () => {},
  };
  ways[verdict]();
}

function delivered(m) {
  const said = message(m.subject, m.seq, m.headers, m.data);
  return { ...said, delivered: m.info.deliveryCount };
}

function headersFrom(values) {
  const headers = newHeaders();
  for (const [name, all] of Object.entries(values)) {
    for (const value of all) headers.append(name, value);
  }
  return headers;
}

function bytesFrom(text) {
  return new Uint8Array(Buffer.from(text, "base64"));
}

function failure(error) {
  // A JetStreamApiError has the server's err_code as its code.
  const code = typeof error.code === "number" ? error.code : 0;
  return { name: error.name, message: error.message, err_code: code };
}

async function answer(line) {
  const { id, verb, url, ...given } = JSON.parse(line);
  let reply;
  try {
    const result = await verbs[verb]({ ...(url && (await connectionTo(url))), ...given });
    reply = { id, result: result ?? null };
  } catch (error) {
    reply = { id, error: failure(error) };
  }
  process.stdout.write(`${JSON.stringify(reply)}\n`);
}

const lines = createInterface({ input: process.stdin, crlfDelay: Infinity });
lines.on("line", answer);
lines.on("close", () => process.exit(0));
