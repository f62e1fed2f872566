// Object stores by nats.js: node nats_js_objects.mjs FOLDER DEED URL STORE MEBIBYTES
//
// FOLDER has the node_modules of nats.js. Prints a figure in JSON, as the Python subjects do.

import { createRequire } from "node:module";
import { randomBytes } from "node:crypto";

const [folder, deed, url, store, countText] = process.argv.slice(2);
const require = createRequire(`${folder}/`);
const { connect } = require("@nats-io/transport-node");
const { Objm } = require("@nats-io/obj");

const count = Number(countText);
const OBJECT = "bench.bin";
const data = deed === "put" ? randomBytes(count * 1024 * 1024) : new Uint8Array(0);

const deeds = {
  put: (box) => box.putBlob({ name: OBJECT }, data),

  // As a stream, which is faster than getBlob.
  async get(box) {
    const result = await box.get(OBJECT);
    let size = 0;
    for await (const piece of result.data) size += piece.length;
    const error = await result.error;
    if (error) throw error;
    if (size !== count * 1024 * 1024) throw new Error(`${size} bytes of ${count} MiB`);
  },
};

const nc = await connect({ servers: url });
const box = await new Objm(nc).open(store);
if (deed === "put") await box.putBlob({ name: "warm" }, data.subarray(0, 131072));
const cpu = process.cpuUsage();
const began = process.hrtime.bigint();
await deeds[deed](box);
const seconds = Number(process.hrtime.bigint() - began) / 1e9;
const used = process.cpuUsage(cpu);
console.log(
  JSON.stringify({
    messages: count,
    seconds,
    cpu_seconds: (used.user + used.system) / 1e6,
    peak_bytes: process.resourceUsage().maxRSS * 1024,
  }),
);
await nc.close();
process.exit(0);
