/** Beyond the NAT of test/drills/nat.ts: a mail server that tells clients where they come from, and prints each message. */
import { createInterface } from 'node:readline'
import { createSink } from './smtp-sink.ts'

const [host = '', port = ''] = process.argv.slice(2)
// The first line says that the address is there.
for await (const _line of createInterface({ input: process.stdin })) break
const sink = await createSink({ host, port: Number(port) })
sink.on('EHLO', ({ remoteAddress }) => `250-mx at your service, [${remoteAddress}]\r\n250 SIZE 1000000`)
console.log('listening')
for (let count = 1; ; count++) {
  const message = (await sink.waitFor(count))[count - 1]
  console.log(JSON.stringify({ remoteAddress: message?.remoteAddress, raw: String(message?.raw) }))
}
