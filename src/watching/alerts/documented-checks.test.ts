import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ownAddress, startTestService } from '../../../test/support/service.ts'

/** Where the names of the service's own checks are explained. */
const PAGES = ['alerts', 'reputation']

test("the service's own checks are those that the documents explain", async (t) => {
  const { call } = await startTestService(t, {
    SENDWRIGHT_DELIVERY: 'direct',
    SENDWRIGHT_DNS: `${ownAddress()}:53`,
    SENDWRIGHT_OUTBOUND_CHECK: `rspamd://${ownAddress()}:11333`,
  })
  const { items } = (await call('GET', '/sendwright/v1/alerts')).body
  const served = items.map(({ name }: { name: string }) => name)
  const pages = PAGES.map((page) =>
    readFileSync(join(import.meta.dirname, `../../../docs/api/${page}.md`), 'utf8'),
  )
  const explained = [...pages.join('\n').matchAll(/^\| `(sendwright:[a-z-]+)`/gm)].map(([, name]) => name)
  assert.deepEqual(served.sort(), explained.sort())
})
