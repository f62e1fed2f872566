// Key-value buckets by nats.js: node nats_js_kv.mjs FOLDER DEED URL BUCKET COUNT
//
// FOLDER has the node_modules of nats.js. Prints a figure in JSON, as the Python subjects do.

import { createRequire } from "node:module";

const [folder, deed, url, bucket, countText] = process.argv.slice(2);
const require = createRequire(`${folder}/`);
const { connect } = require("@nats-io/transport-node");
const { Kvm } = require("@nats-io/kv");

const count = Number(countText);
const AT_ONCE = 256;
const KEYS = 1000;
const VALUE = new Uint8Array(256).fill(120);
const keyOf = (number) => `bench.${number % 100}.${number}`;
const times = [];

async function oneByOne(work) {
  for (let number = 0; number < count; number += 1) {
    const began = process.hrtime.bigint();
    await work(keyOf(number % KEYS));
    times.push(Number(process.hrtime.bigint() - began) / 1e3);
  }
  return count;
}

const deeds = {
  get: (kv) =>
    oneByOne(async (key) => {
      const entry = await kv.get(key);
      if (!(entry.key && entry.value.length && entry.revision > 0)) throw new Error(`no ${key}`);
    }),

  put: (kv) => oneByOne((key) => kv.put(key, VALUE)),

  async puts(kv) {
    let next = 0;
    const work = async () => {
      while (next < count) {
        const number = next;
        next += 1;
        await kv.put(keyOf(number % KEYS), VALUE);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    return count;
  },

  async watch(kv) {
    let seen = 0;
    for await (const entry of await kv.watch({ include: "history" })) {
      // They are read from the message only when they are asked for.
      if (entry.key && entry.value.length && entry.revision > 0) seen += 1;
      if (seen === count) break;
    }
    return seen;
  },

  async keys(kv) {
    let seen = 0;
    for await (const _ of await kv.keys()) seen += 1;
    if (seen !== count) throw new Error(`${seen} keys of ${count}`);
    return seen;
  },
};

const nc = await connect({ servers: url });
const kv = await new Kvm(nc).open(bucket);
const cpu = process.cpuUsage();
const began = process.hrtime.bigint();
const messages = await deeds[deed](kv);
const seconds = Number(process.hrtime.bigint() - began) / 1e9;
const used = process.cpuUsage(cpu);
times.sort((one, other) => one - other);
console.log(
  JSON.stringify({
    messages,
    seconds,
    cpu_seconds: (used.user + used.system) / 1e6,
    peak_bytes: process.resourceUsage().maxRSS * 1024,
    p50_us: times[Math.floor(times.length / 2)] ?? 0,
    p99_us: times[Math.floor((times.length * 99) / 100)] ?? 0,
  }),
);
await nc.close();
process.exit(0);
