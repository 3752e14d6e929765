import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import Mailgun from 'mailgun.js'
import { eachDatabase } from '../support/databases.ts'
import { eventually, startTestService, type TestService } from '../support/service.ts'
import { createSink, type Sink } from '../support/smtp-sink.ts'

type Event = Record<string, unknown> & { 'delivery-status': Record<string, unknown> }

interface Scene {
  service: TestService
  sink: Sink
  path(kind: string, rest?: string): string
  /** Sends, and resolves the final event of each recipient by its address. */
  sendAndWait(form: Record<string, string | string[]>): Promise<Record<string, Event>>
  /** Bare addresses that the sink received as RCPT TO. */
  recipientsSeen(): string[]
}

async function startScene(
  t: TestContext,
  database: 'sqlite' | 'postgres' = 'sqlite',
  env: Record<string, string> = {},
): Promise<Scene> {
  const sink = await createSink()
  t.after(() => sink.close())
  const settings = { SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`, ...env }
  const service = await startTestService(t, settings, { database })
  const finalEvents = async (id: string) =>
    (await service.events()).filter(
      (event) =>
        `<${(event['message'] as { headers: { 'message-id': string } }).headers['message-id']}>` === id &&
        (event['event'] === 'delivered' || event['severity'] === 'permanent'),
    ) as Event[]
  return {
    service,
    sink,
    path: (kind, rest = '') => `/v3/${service.domain}/${kind}${rest}`,
    async sendAndWait(form) {
      const sent = await service.send(form)
      assert.equal(sent.status, 200, sent.text)
      const count = [form['to'] ?? 'alice@example.org', form['cc'] ?? [], form['bcc'] ?? []].flat().length
      const events = await eventually('final events', async () => {
        const found = await finalEvents(sent.body.id)
        return found.length === count && found
      })
      return Object.fromEntries(events.map((event) => [event['recipient'] as string, event]))
    },
    recipientsSeen: () => sink.commands.flatMap(([, line]) => /^RCPT TO:<([^>]*)>/i.exec(line)?.[1] ?? []),
  }
}

const assertSuppressed = (event: Event | undefined, reason: string, code: number, description: string) => {
  assert.ok(event)
  assert.equal(event['event'], 'failed')
  assert.equal(event['severity'], 'permanent')
  assert.equal(event['log-level'], 'error')
  assert.equal(event['reason'], reason)
  assert.deepEqual(event['delivery-status'], {
    code,
    'attempt-no': 1,
    message: '',
    description,
    'session-seconds': 0,
  })
}

eachDatabase((database) => {
  test('a mailbox that does not exist is tried once and never again', async (t) => {
    const { service, sink, path, sendAndWait, recipientsSeen } = await startScene(t, database)
    sink.on('RCPT TO:<gone@example.org>', '550 5.1.1 no such user here')
    sink.on('RCPT TO:<blocked@example.org>', '550 5.7.1 refused by policy')

    const first = await sendAndWait({
      to: ['Gone@Example.org'.toLowerCase(), 'blocked@example.org', 'fine@example.org'],
    })
    assert.equal(first['gone@example.org']?.['reason'], 'bounce')
    assert.equal(first['gone@example.org']?.['delivery-status']['bounce-type'], 'hard')
    assert.equal(first['blocked@example.org']?.['event'], 'failed')
    assert.equal(first['fine@example.org']?.['event'], 'delivered')
    const { items } = (await service.call('GET', path('bounces'))).body
    assert.equal(items.length, 1, 'a refusal by policy is no bounce')
    assert.equal(items[0].address, 'gone@example.org')
    assert.equal(items[0].code, '550')
    assert.match(items[0].error, /no such user here/)

    const seen = recipientsSeen().length
    const second = await sendAndWait({ to: 'Gone <GONE@example.org>' })
    assertSuppressed(
      Object.values(second)[0],
      'suppress-bounce',
      605,
      'Not delivering to previously bounced address',
    )
    assert.equal(recipientsSeen().length, seen, 'no server was asked')
    const names = (await service.events()).map((event) => event['event'])
    assert.equal(names.filter((name) => name === 'accepted').length, 4)

    sink.clearRules()
    await service.call('DELETE', path('bounces', '/gone@example.org'))
    const third = await sendAndWait({ to: 'gone@example.org' })
    assert.equal(
      third['gone@example.org']?.['event'],
      'delivered',
      'the next message after a removal goes out',
    )
  })
})

test('each list stops to, cc and bcc alike, and no other recipient', async (t) => {
  const { service, path, sendAndWait, recipientsSeen } = await startScene(t)
  const put = (kind: string, form: Record<string, string | string[]>) =>
    service.call('POST', path(kind), { form })
  const descriptions = {
    bounces: ['suppress-bounce', 605, 'Not delivering to previously bounced address'],
    unsubscribes: ['suppress-unsubscribe', 606, 'Not delivering to unsubscribed address'],
    complaints: ['suppress-complaint', 607, 'Not delivering to a user who marked your messages as spam'],
  } as const
  for (const [kind, [reason, code, description]] of Object.entries(descriptions)) {
    for (const place of ['to', 'cc', 'bcc']) await put(kind, { address: `${place}-${kind}@example.org` })
    const events = await sendAndWait({
      to: [`to-${kind}@example.org`, `${kind}@example.net`],
      cc: [`cc-${kind}@example.org`],
      bcc: [`bcc-${kind}@example.org`],
    })
    for (const place of ['to', 'cc', 'bcc']) {
      assertSuppressed(events[`${place}-${kind}@example.org`], reason, code, description)
    }
    assert.equal(events[`${kind}@example.net`]?.['event'], 'delivered')
  }
  assert.deepEqual(recipientsSeen(), [
    'bounces@example.net',
    'unsubscribes@example.net',
    'complaints@example.net',
  ])

  await t.test('in the order bounce, unsubscribe, complaint', async () => {
    const address = 'all@example.org'
    for (const [kind, code] of [
      ['complaints', 607],
      ['unsubscribes', 606],
      ['bounces', 605],
    ] as const) {
      await put(kind, { address })
      const events = await sendAndWait({ to: address })
      assert.equal(events[address]?.['delivery-status']['code'], code)
    }
  })

  await t.test('an unsubscribe with tags stops only mail with one of them', async () => {
    const address = 'tagged@example.org'
    await put('unsubscribes', { address, tag: ['News', 'offers'] })
    const outcome = async (tags: string[]) =>
      (await sendAndWait({ to: address, ...(tags.length > 0 && { 'o:tag': tags }) }))[address]?.['event']
    assert.equal(await outcome([]), 'delivered')
    assert.equal(await outcome(['invoice']), 'delivered')
    assert.equal(await outcome(['invoice', 'NEWS']), 'failed')
    await service.call('DELETE', path('unsubscribes', `/${address}?tag=news`))
    assert.equal(await outcome(['News']), 'delivered')
    assert.equal(await outcome(['offers']), 'failed')
  })

  await t.test('the allowlist does not override a record added by hand', async () => {
    await put('whitelists', { domain: 'example.org' })
    const events = await sendAndWait({ to: 'all@example.org' })
    assert.equal(events['all@example.org']?.['delivery-status']['code'], 605)
  })
})

test('the allowlist prevents bounce records, test mode creates none', async (t) => {
  const { service, sink, path, sendAndWait } = await startScene(t)
  sink.on('RCPT', '550 5.1.1 no such user here')
  await service.call('POST', path('whitelists'), { form: { domain: 'example.org' } })
  await sendAndWait({ to: ['a@example.org', 'a@sub.example.org'] })
  const tested = await sendAndWait({ to: 'test@example.net', 'o:testmode': 'yes' })
  assert.equal(tested['test@example.net']?.['event'], 'delivered')
  const { items } = (await service.call('GET', path('bounces'))).body
  assert.deepEqual(
    items.map(({ address }: { address: string }) => address),
    ['a@sub.example.org'],
  )
})

test('additions and removals affect mail that waits for a retry', async (t) => {
  const { service, sink, path } = await startScene(t, 'sqlite', { SENDWRIGHT_RETRY_SCHEDULE: '1s' })
  const form = { address: 'slow@example.org' }
  await service.call('POST', path('complaints'), { form: { address: 'other@example.org' } })
  const held = sink.hold('RCPT TO:<slow@example.org>')
  await service.send({ to: 'slow@example.org' })
  await held.reached
  await service.call('POST', path('complaints'), { form })
  held.release('451 4.7.1 come back later')
  const failed = await eventually('the suppressed retry', async () =>
    (await service.events()).find((event) => event['severity'] === 'permanent'),
  )
  assert.equal(failed['reason'], 'suppress-complaint')
  assert.equal(sink.commands.filter(([, line]) => line.startsWith('RCPT')).length, 1)

  await service.call('DELETE', path('complaints', '/slow@example.org'))
  sink.on('RCPT TO:<slow@example.org>', '451 4.7.1 come back later', { times: 1 })
  await service.send({ to: 'slow@example.org' })
  await sink.waitFor(1)
})

test('an import continues after its last step after a restart', async (t) => {
  const { service, path } = await startScene(t)
  const count = 30_000
  const rows = Array.from(
    { length: count },
    (_, index) => `user${String(index).padStart(6, '0')}@example.org`,
  )
  const file = new File([`address\n${rows.join('\n')}\n`], 'bounces.csv')
  const taken = await service.call('POST', path('bounces', '/import'), { form: { file } })
  assert.equal(taken.status, 202)
  await eventually('the first step', async () => {
    const { items } = (await service.call('GET', path('bounces', '?limit=1'))).body
    return items.length === 1
  })
  await service.restart()
  await eventually('the last row', async () => {
    const last = await service.call('GET', path('bounces', `/${rows.at(-1)}`))
    return last.status === 200
  })
  let found = 0
  for (let next = path('bounces', '?limit=1000'); ; ) {
    const { items, paging } = (await service.call('GET', next)).body
    if (items.length === 0) break
    found += items.length
    next = paging.next.slice(service.config.publicUrl.length)
  }
  assert.equal(found, count)
})

test('every suppression call of the public JavaScript client works', async (t) => {
  const { service } = await startScene(t)
  const { suppressions } = new Mailgun(FormData).client({
    username: 'api',
    key: service.key,
    url: service.url,
  })
  const { domain } = service
  const kinds = ['bounces', 'complaints', 'unsubscribes', 'whitelists'] as const
  for (const kind of kinds) {
    await t.test(kind, async () => {
      const added = await suppressions.create(domain, kind, { address: 'Ann@example.org' })
      assert.equal(added.status, 200)
      if (kind !== 'whitelists') {
        const many = [{ address: 'bob@example.org' }, { address: 'carol@example.org', tags: ['news'] }]
        assert.equal((await suppressions.create(domain, kind, many)).status, 200)
      }
      const one = await suppressions.get(domain, kind, 'ann@example.org')
      assert.equal('value' in one ? one.value : 'address' in one ? one.address : '', 'ann@example.org')
      const created = 'createdAt' in one ? one.createdAt : 'created_at' in one ? one.created_at : null
      assert.ok(created instanceof Date && !Number.isNaN(created.getTime()))
      const first = await suppressions.list(domain, kind, { limit: 2 })
      assert.equal(first.items.length, kind === 'whitelists' ? 1 : 2)
      const next = await suppressions.list(domain, kind, { page: first.pages.next.page, limit: 2 })
      assert.equal(next.items.length, kind === 'whitelists' ? 0 : 1)
      const removed = await suppressions.destroy(domain, kind, 'ann@example.org')
      assert.equal(removed.status, 200)
      assert.equal(removed.address || removed.value, 'ann@example.org')
      await assert.rejects(suppressions.get(domain, kind, 'ann@example.org'), { status: 404 })
      const file = { data: 'address\nfile@example.org\n', filename: 'list.csv', contentType: 'text/csv' }
      const uploaded = await suppressions.upload(domain, kind, file)
      assert.equal(uploaded.message, 'file uploaded successfully for processing. standby...')
      await eventually('the imported record', () =>
        suppressions.get(domain, kind, 'file@example.org').catch(() => null),
      )
      const cleared = await suppressions.destroyAll(domain, kind)
      assert.equal(cleared.status, 200)
      assert.deepEqual((await suppressions.list(domain, kind)).items, [])
    })
  }
})
