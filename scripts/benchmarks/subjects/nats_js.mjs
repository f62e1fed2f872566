// The subjects on nats.js: node nats_js.mjs FOLDER NAME URL STREAM COUNT
//
// FOLDER has the node_modules of nats.js. Prints a figure in JSON, as the Python subjects do.

import { createRequire } from "node:module";

const [folder, name, url, stream, countText] = process.argv.slice(2);
const require = createRequire(`${folder}/`);
const { connect } = require("@nats-io/transport-node");
const { jetstream } = require("@nats-io/jetstream");

const count = Number(countText);
const WINDOW = 4096;
// Sum over subject, sequence, time and data of each message, as streams.py has it: nats.js parses
// a field only when it is read.
let checksum = 0;

function look(message) {
  checksum += message.seq + message.subject.length + message.data.length;
  checksum += message.timestampNanos > 0n ? 1 : 0;
}

const subjects = {
  async ordered(js) {
    const consumer = await js.consumers.get(stream);
    const messages = await consumer.consume();
    let seen = 0;
    for await (const message of messages) {
      look(message);
      seen += 1;
      if (seen === count) break;
    }
    return seen;
  },

  async consume(js) {
    return await consumed(js, "none");
  },

  async consume_acks(js) {
    return await consumed(js, "explicit");
  },

  async publish(js) {
    return await published(js, () => ({}));
  },

  async publish_ids(js) {
    return await published(js, (number) => ({ msgID: String(number) }));
  },
};

async function published(js, optionsOf) {
  const payload = new Uint8Array(256).fill(120);
  let acked = 0;
  let failure = null;
  let wake = () => {};
  const onAck = () => {
    acked += 1;
    wake();
  };
  const onError = (error) => {
    failure = error;
    wake();
  };
  // Woken by each ack: a race over thousands of promises would measure the race.
  const until = async (isDone) => {
    while (failure === null && !isDone()) {
      await new Promise((resolve) => {
        wake = resolve;
      });
    }
    if (failure !== null) throw failure;
  };
  for (let sent = 0; sent < count; sent += 1) {
    if (sent - acked >= WINDOW) await until(() => sent - acked < WINDOW);
    js.publish(`${stream}.x`, payload, { timeout: 60_000, ...optionsOf(sent) }).then(onAck, onError);
  }
  await until(() => acked === count);
  return acked;
}

async function consumed(js, ack_policy) {
  const jsm = await js.jetstreamManager();
  const limits = ack_policy === "none" ? {} : { max_ack_pending: 20_000 };
  const config = { ack_policy, mem_storage: true, inactive_threshold: 60e9, ...limits };
  const { name } = await jsm.consumers.add(stream, config);
  const consumer = await js.consumers.get(stream, name);
  const messages = await consumer.consume({ max_messages: WINDOW });
  let seen = 0;
  for await (const message of messages) {
    look(message);
    if (ack_policy !== "none") message.ack();
    seen += 1;
    if (seen === count) break;
  }
  await nc.flush();
  return seen;
}

const nc = await connect({ servers: url });
const js = jetstream(nc);
const cpu = process.cpuUsage();
const began = process.hrtime.bigint();
const messages = await subjects[name](js);
const seconds = Number(process.hrtime.bigint() - began) / 1e9;
const used = process.cpuUsage(cpu);
console.log(
  JSON.stringify({
    messages,
    seconds,
    cpu_seconds: (used.user + used.system) / 1e6,
    peak_bytes: process.resourceUsage().maxRSS * 1024,
    checksum,
  }),
);
await nc.close();
process.exit(0);
