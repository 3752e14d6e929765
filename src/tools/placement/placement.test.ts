/** Inbox placement over HTTP, with real mailboxes (validation.md section 6). */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { createAuthority } from '../../../test/support/certificates.ts'
import { eachDatabase } from '../../../test/support/databases.ts'
import { startDovecot } from '../../../test/support/dovecot.ts'
import { eventually, ownAddress, startTestService, type TestService } from '../../../test/support/service.ts'
import { createSink } from '../../../test/support/smtp-sink.ts'
import { temporaryFolder } from '../../../test/support/stores.ts'
import { callAs, createSubaccount } from '../../../test/support/subaccounts.ts'
import { type Clock, systemClock } from '../../base/time/clock.ts'
import { DATABASE_FILE } from '../../platform/store/blobs/data-folder.ts'

const NO_COUNTS = { delivered: 0, missing: 0, pending: 0, spam: 0, inbox: 0, total: 0 }

test('a test finds its copies in inbox and spam, and one nowhere', async (t) => {
  const authority = createAuthority()
  const host = ownAddress()
  const users = [
    { name: 'inbox' },
    { name: 'junk', sieve: 'require ["fileinto"];\nfileinto "Junk";\n' },
    { name: 'never', sieve: 'discard;\n' },
  ]
  const dovecot = await startDovecot(host, users, authority.issue([host]))
  t.after(() => dovecot.close())
  const sink = await createSink({ host: ownAddress() })
  t.after(() => sink.close())
  const folder = await temporaryFolder(t)
  const ca = join(folder, 'authority.pem')
  await writeFile(ca, authority.cert)
  const ways = [
    { tls: 'implicit', port: dovecot.imapsPort, ca },
    { tls: 'starttls', port: dovecot.imapPort, ca },
    // Without the authority, this certificate is anybody's.
    { tls: 'implicit', port: dovecot.imapsPort },
  ]
  const seeds = ['inbox', 'junk', 'never'].map((name, at) => ({
    address: `${name}@seeds.example`,
    provider: `provider${at}.example`,
    ...{ host: dovecot.host, user: name, password: dovecot.password, ...ways[at] },
  }))
  const file = join(folder, 'seeds.json')
  await writeFile(file, JSON.stringify(seeds))
  let aheadMs = 0
  const clock: Clock = {
    now: () => systemClock.now() + aheadMs,
    monotonic: () => systemClock.monotonic() + aheadMs,
    setTimer: systemClock.setTimer,
  }
  const env = {
    SENDWRIGHT_PLACEMENT_SEEDS: file,
    SENDWRIGHT_PLACEMENT_WAIT: '30s',
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_SPAM_SCORER: await startScorer(t, host),
  }
  const service = await startTestService(t, env, { clock })
  const { body: providers } = await service.call('GET', '/v4/inbox/providers')
  assert.deepEqual(
    providers.items.map(({ domain }: { domain: string }) => domain),
    seeds.map(({ provider }) => provider),
  )
  const body = { from: `Shop <shop@${service.domain}>`, subject: 'Spring', html: '<p>Hello</p>' }
  const run = await service.call('POST', '/v4/inbox/tests', { json: body })
  assert.equal(run.status, 200, run.text)
  const { result_id: id, links } = run.body
  assert.equal(links.results, `${service.url}/v4/inbox/results/${id}`)

  // What the receivers behind the MX do.
  for (const { envelope, raw } of await sink.waitFor(3)) {
    assert.equal(envelope.to.length, 1, 'each seed gets a copy of its own')
    const [user = ''] = (envelope.to[0] ?? '').split('@')
    const fields = [
      'Received: from mail.test.example (mail.test.example [192.0.2.7])\r\n\tby mx.seeds.example; Mon, 1 Jun 2026 12:00:00 +0000',
      `Authentication-Results: mx.seeds.example (a comment; spf=fail);\r\n\tspf=pass smtp.mailfrom=shop@${service.domain};\r\n\tdkim=pass (good) header.d=${service.domain}; dmarc=none`,
    ]
    await dovecot.deliver(user, `${fields.join('\r\n')}\r\n${raw.toString('latin1')}`)
  }

  const read = async () => (await service.call('GET', `/v4/inbox/results/${id}`)).body.result
  const stateOf = (seed: { state: string }) => seed.state
  await eventually('both copies', async () => {
    const states = (await read()).seed_results.map(stateOf)
    return states.filter((state: string) => state === 'delivered').length === 2
  })
  assert.deepEqual((await read()).seed_results.map(stateOf).at(-1), 'pending')
  aheadMs = 30_000
  const result = await eventually('the end', async () => {
    const one = await read()
    return one.status === 'completed' && one
  })
  const found = result.seed_results.map((seed: Record<string, unknown>) => [
    seed['email'],
    seed['state'],
    seed['destination'],
  ])
  assert.deepEqual(found, [
    ['inbox@seeds.example', 'delivered', 'inbox'],
    ['junk@seeds.example', 'delivered', 'spam'],
    ['never@seeds.example', 'missing', ''],
  ])
  const [first, , last] = result.seed_results
  assert.match(last.extensions.problem, /^The certificate of 127\.[\d.]+:\d+ cannot be trusted: /)
  assert.deepEqual(result.spamassassin, { is_spam: false, score: 1.5, required: 15, rules: [] })
  assert.deepEqual(
    [first.spf, first.dkim, first.dmarc, first.originating_ip],
    ['pass', 'pass', 'none', '192.0.2.7'],
  )
  assert.ok(first.headers.some(({ key }: { key: string }) => key === 'Authentication-Results'))
  assert.equal(first.extensions.category, 'primary')
  assert.ok(first.extensions.seconds >= 0 && first.extensions.seconds < 120)
  assert.equal(result.delivery_stats['provider1.example'].spam, 1)
  assert.equal(result.Box.delivery_stats.all.total, 3)
  const { items } = (await service.call('GET', '/v4/inbox/results?limit=100')).body
  const { Box, seed_results: listed, ...members } = items[0]
  const { Box: wholeBox, seed_results: whole, ...wholeMembers } = result
  assert.deepEqual(members, wholeMembers)
  assert.deepEqual(Box, { ...wholeBox, Seeds: null }, 'the short form')
  assert.equal(wholeBox.Seeds.length, 3)
  assert.deepEqual(
    listed,
    whole.map((seed: object) => ({ ...seed, headers: [] })),
  )
  const link = (await service.call('PUT', `/v4/inbox/sharing/${id}?enabled=true`)).body.sharing.url
  const shared = (await (await fetch(link)).json()) as { result: typeof result }
  const { extensions, ...lastShared } = shared.result.seed_results.at(-1)
  assert.deepEqual(
    [lastShared.email, lastShared.state, extensions],
    ['seed-3@provider2.example', 'missing', { category: '' }],
  )
  assert.deepEqual(
    shared.result.seed_results.map(({ destination, headers }: typeof first) => [destination, headers]),
    whole.map(({ destination }: typeof first) => [destination, []]),
  )
  assert.equal(JSON.stringify(shared).includes('seeds.example'), false, 'no address of a seed')
  assert.deepEqual([shared.result.Box.Seeds, shared.result.Box.delivery_stats], [null, undefined])
  const one = await service.call('GET', `/v4/inbox/results/${id}?provider=provider2.example`)
  assert.equal(one.body.result.seed_results.length, 1)
  const usage = await service.call('POST', '/v1/analytics/usage/metrics', {
    json: { metrics: ['seed_test_count'] },
  })
  assert.equal(usage.body.items[0].metrics.seed_test_count, 1)
  assert.equal(JSON.stringify([result, providers]).includes(dovecot.password), false)

  // Mailboxes are the operator's: another account does not learn where they are.
  const tenant = await createSubaccount(service, 'tenant')
  const database = new DatabaseSync(join(service.config.dataFolder, DATABASE_FILE))
  database.prepare('UPDATE placement_tests SET account_id = ? WHERE id = ?').run(tenant, id)
  database.close()
  const theirs = (await callAs(service, tenant)('GET', `/v4/inbox/results/${id}`)).body.result
  assert.equal(theirs.seed_results.at(-1).extensions.problem, 'The mailbox cannot be read.')
})

/** An rspamd that calls nothing spam. */
async function startScorer(t: TestContext, host: string): Promise<string> {
  const rspamd = createServer((_, response) =>
    response.end(JSON.stringify({ score: 1.5, required_score: 15, action: 'no action' })),
  )
  await new Promise<void>((resolve) => rspamd.listen(0, host, resolve))
  t.after(() => rspamd.close())
  return `rspamd://${host}:${(rspamd.address() as AddressInfo).port}`
}

eachDatabase((database) => {
  test('without seeds every operation has an answer', (t) => withoutSeeds(t, database))
})

async function withoutSeeds(t: TestContext, database: 'sqlite' | 'postgres') {
  const service = await startTestService(t, {}, { database })
  const get = async (path: string) => (await service.call('GET', path)).body
  assert.deepEqual(await get('/v4/inbox/providers'), { items: [] })
  const made = await service.call('POST', '/v4/inbox/seedlists', {
    form: { name: 'Mine', sending_domains: 'a.example, b.example', remote_id: '7' },
  })
  const { kid, target_email: target } = made.body
  assert.deepEqual(
    [made.status, made.body.name, made.body.sending_domains, made.body.Seeds, made.body.has_results],
    [200, 'Mine', ['a.example', 'b.example'], null, false],
  )
  assert.equal(made.body.last_result_at, made.body.created_at)
  assert.deepEqual((await get(`/v4/inbox/seedlists/${kid}`)).seedlist, made.body)
  assert.deepEqual((await get(`/v4/inbox/seedlists/${target}`)).seedlist, made.body)
  const changed = await service.call('PUT', `/v4/inbox/seedlists/${kid}`, { json: { name: 'Ours' } })
  assert.deepEqual([changed.body.name, changed.body.sending_domains.length], ['Ours', 2])
  const json = { from: `a@${service.domain}`, subject: 'Hello', html: '<p>x</p>', seed_list: kid }
  const run = await service.call('POST', '/v4/inbox/tests', { json })
  const { result } = await get(`/v4/inbox/results/${run.body.result_id}`)
  assert.deepEqual([result.status, result.seed_results, result.delivery_stats], ['completed', [], {}])
  const { provider: _, categories: __, ...counts } = result.Box.delivery_stats.all
  assert.deepEqual(counts, NO_COUNTS)
  assert.equal((await service.events()).length, 0, 'nothing is sent')
  await errors(service, run.body.result_id)
  await pages(service, kid)
  await sharing(service, run.body.result_id)
  assert.deepEqual((await service.call('DELETE', `/v4/inbox/results/${run.body.result_id}`)).body, {
    Message: 'result deleted',
  })
  assert.equal((await service.call('GET', `/v4/inbox/results/${run.body.result_id}`)).status, 404)
  assert.deepEqual((await service.call('DELETE', `/v4/inbox/seedlists/${kid}`)).body, {
    message: 'seed list deleted',
  })
  assert.equal((await service.call('GET', `/v4/inbox/seedlists/${kid}`)).status, 404)
}

async function errors(service: TestService, id: string): Promise<void> {
  const from = `a@${service.domain}`
  const bodies: [json: object, status: number, message: string][] = [
    [{ subject: 'x', html: 'x' }, 400, 'Missing mandatory parameter: from'],
    [{ from, html: 'x' }, 400, 'Missing mandatory parameter: subject'],
    [{ from: 'a@foreign.example', subject: 'x', html: 'x' }, 400, 'Domain not found: foreign.example'],
    [{ from, subject: 'x', html: 'x', seed_list: 'none' }, 404, 'seed list not found'],
  ]
  for (const [json, status, message] of bodies) {
    const answer = await service.call('POST', '/v4/inbox/tests', { json })
    assert.deepEqual([answer.status, answer.body], [status, { message }])
  }
  const unknown: [path: string, message: string][] = [
    ['/v4/inbox/seedlists/none', 'seed list not found'],
    ['/v4/inbox/results/none', 'inbox placement result not found'],
    ['/v4/inbox/sharing/none', 'inbox placement result not found'],
    [`/v4/inbox/sharing/public/${id}`, 'inbox placement result not found'],
  ]
  for (const [path, message] of unknown) {
    const answer = await service.call('GET', path)
    assert.deepEqual([answer.status, answer.body], [404, { message }])
  }
}

async function pages(service: TestService, kid: string): Promise<void> {
  const get = async (path: string) => (await service.call('GET', path)).body
  for (let n = 0; n < 3; n++)
    await service.call('POST', '/v4/inbox/seedlists', { form: { name: `list${n}` } })
  const first = await get('/v4/inbox/seedlists?limit=2')
  assert.deepEqual([first.total, first.items.length, first.items[0].name], [4, 2, 'list2'])
  for (const name of ['first', 'last', 'next', 'previous']) assert.ok(new URL(first.paging[name]))
  const next = await get(first.paging.next.replace(service.url, ''))
  assert.equal(next.items[1].kid, kid)
  assert.deepEqual((await get(next.paging.next.replace(service.url, ''))).items, [])
  for (const place of ['seedlists', 'results'])
    assert.equal((await service.call('GET', `/v4/inbox/${place}?limit=101`)).status, 400)
  assert.equal((await get('/v4/inbox/seedlists?name=list1')).total, 1)
  assert.equal((await get('/v4/inbox/results?subject=Hello')).total, 1)
  assert.equal((await get('/v4/inbox/results?subject=Other')).total, 0)
  assert.equal((await get('/v4/inbox/results?time_after=2100-01-01T00:00:00Z')).total, 0)
  assert.deepEqual((await get('/v4/inbox/results/a/subject')).items, {
    attribute: 'subject',
    values: ['Hello'],
  })
  assert.deepEqual((await get('/v4/inbox/seedlists/a')).items.values, ['name', 'target_email'])
  const { supported_filters: filters } = await get('/v4/inbox/results/_filters')
  assert.ok(filters.filters.some(({ parameter }: { parameter: string }) => parameter === 'sender'))
}

async function sharing(service: TestService, id: string): Promise<void> {
  const path = `/v4/inbox/sharing/${id}`
  assert.equal((await service.call('GET', path)).body.sharing.enabled, false)
  const { sharing: shared } = (await service.call('PUT', `${path}?enabled=true`)).body
  const days = (Date.parse(shared.expires_at) - Date.now()) / 86_400_000
  assert.ok(shared.enabled && days > 29.9 && days < 30.1)
  const read = await fetch(shared.url)
  assert.equal(read.status, 200)
  const text = await read.text()
  const { result } = JSON.parse(text) as { result: { rid: string } }
  assert.equal(result.rid, id)
  const own = (await service.call('GET', `/v4/inbox/results/${id}`)).body.result
  assert.ok(own.AccountID && own.Box.delivery_stats)
  assert.equal(text.includes(own.AccountID), false, 'nothing of the account')
  assert.equal(text.includes('"all"'), false, 'nothing of the list')
  const again = await service.call('PUT', `${path}?enabled=true`)
  assert.equal(again.body.sharing.url, shared.url, 'a share that is on keeps its link')
  await service.call('PUT', `${path}?enabled=false`)
  assert.equal((await fetch(shared.url)).status, 404)
  const next = await service.call('PUT', `${path}?enabled=true`)
  assert.notEqual(next.body.sharing.url_id, shared.url_id)
  assert.equal((await fetch(shared.url)).status, 404, 'the old link stays dead')
  assert.equal((await fetch(next.body.sharing.url)).status, 200)
}
