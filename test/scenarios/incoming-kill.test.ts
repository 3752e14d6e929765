// By name: it kills processes of the service, again and again.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runIncoming } from '../support/incoming-rig.ts'
import { ownAddress } from '../support/service.ts'
import { startProcess } from '../support/service-process.ts'
import { createSink } from '../support/smtp-sink.ts'
import { temporaryFolder } from '../support/stores.ts'

test('kill -9 between the 250 and the forward: each mail is stored once, and forwarded as one delivery', async (t) => {
  const sink = await createSink({ host: ownAddress() })
  t.after(() => sink.close())
  const host = ownAddress()
  const env = {
    SENDWRIGHT_DATA: await temporaryFolder(t),
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_SANDBOX_RECIPIENTS: '*',
    SENDWRIGHT_DNS: '127.0.0.1:9',
  }
  const { accepted, outgoing, seconds, downSeconds, repeatedForwards, repeatedPosts, ...faults } =
    await runIncoming({
      ...{ host, sink, receiver: null, start: () => startProcess(host, env) },
      ...{
        mails: 120,
        kills: 3,
        clients: 4,
        outgoingPerSecond: 0,
        note: (text: string) => t.diagnostic(text),
      },
    })
  assert.ok(accepted >= 120)
  for (const [fault, ids] of Object.entries(faults)) assert.deepEqual(ids, [], fault)
})
