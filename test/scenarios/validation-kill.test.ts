// By name: it kills processes of the service, again and again.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { judgeBulk, runBulk } from '../support/bulk-validation.ts'
import { createDnsServer } from '../support/dns-server.ts'
import { temporaryFolder } from '../support/stores.ts'

const ADDRESSES = 2_000

test('kill -9 twice while a list is validated: each address once in the results, looked up twice at most', async (t) => {
  const dns = await createDnsServer()
  t.after(() => dns.close())
  const dataFolder = await temporaryFolder(t)
  const note = (text: string) => t.diagnostic(text)
  const outcome = await runBulk({ addresses: ADDRESSES, kills: [0.2, 0.5], dataFolder, dns, note })
  judgeBulk(outcome, ADDRESSES)
  assert.ok(outcome.repeated <= 2 * (ADDRESSES / 100), 'a kill repeats one step at most')
})
