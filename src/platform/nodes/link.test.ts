import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { pino } from 'pino'
import { createTestDatabase } from '../../../test/support/postgres.ts'
import { ownAddress } from '../../../test/support/service.ts'
import { openLink } from './link.ts'

test('a link that is closed while it connects again does not try once more', async (t) => {
  const database = await createTestDatabase()
  t.after(() => database.drop())
  const url = new URL(database.url)
  const { hostname, port: databasePort } = url
  const [first, again] = [Promise.withResolvers<Socket>(), Promise.withResolvers<Socket>()]
  const ways = [first, again]
  const relay = createServer((client) => {
    const way = ways.shift()
    t.after(() => client.destroy())
    client.on('error', () => {})
    if (way === first) {
      const upstream = connect(Number(databasePort), hostname)
      upstream.on('error', () => {})
      t.after(() => upstream.destroy())
      client.pipe(upstream).pipe(client)
    }
    way?.resolve(client)
  })
  relay.listen(0, ownAddress())
  await once(relay, 'listening')
  t.after(() => relay.close())
  const { address, port } = relay.address() as AddressInfo
  url.host = `${address}:${port}`
  const said: (string | null)[] = []
  const link = await openLink({
    ...{ url: url.href, pod: null, channels: ['all', 'one'], log: pino({ level: 'silent' }) },
    ...{ onNote() {}, onMissed() {}, onServer: (server) => said.push(server) },
  })
  ;(await first.promise).destroy()
  const held = await again.promise
  await link.close()
  assert.deepEqual(said, [null], 'it was lost')
  held.destroy()
  // The attempt fails in a few turns of the loop; one that was forgotten says so again.
  for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(said, [null])
})
