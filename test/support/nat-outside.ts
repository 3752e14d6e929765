/** Beyond the router of test/drills/nat.ts: mail servers that tell clients where they come from, and print each message. */
import { createInterface } from 'node:readline'
import { createSink } from './smtp-sink.ts'

const [port = '', ...hosts] = process.argv.slice(2)
// The first line says that the addresses are there.
for await (const _line of createInterface({ input: process.stdin })) break
const sinks = await Promise.all(hosts.map((host) => createSink({ host, port: Number(port) })))
for (const sink of sinks)
  sink.on('EHLO', ({ remoteAddress }) => `250-mx at your service, [${remoteAddress}]\r\n250 SIZE 1000000`)
console.log('listening')
await Promise.all(
  sinks.map(async (sink) => {
    for (let count = 1; ; count++) {
      const message = (await sink.waitFor(count))[count - 1]
      console.log(JSON.stringify({ remoteAddress: message?.remoteAddress, raw: String(message?.raw) }))
    }
  }),
)
