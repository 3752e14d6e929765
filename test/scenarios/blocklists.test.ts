/**
 * Addresses and domains in blocklists: a list whose test entries are wrong is not believed, a listed address steps aside for the
 * destination that refuses by the list and for no other, the last one stays, and what accounts see of it.
 */
// Both databases: the rows of checks and users are written by statements that differ in their types.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../support/clock.ts'
import { eachDatabase } from '../support/databases.ts'
import { createReceiver } from '../support/http-receiver.ts'
import { createInternet } from '../support/internet.ts'
import { runJobAfter } from '../support/jobs.ts'
import { eventually, ownAddress, startTestService } from '../support/service.ts'
import { activeDomain, callAs, createSubaccount, startOpened } from '../support/subaccounts.ts'

// biome-ignore lint/suspicious/noExplicitAny: a test reaches into bodies freely and asserts on what it finds
type Json = any

const HOUR_MS = 3_600_000
const [ONE, TWO] = ['8.8.4.4', '8.8.8.8'] as const
const [IN_LIST_ONE, IN_LIST_TWO] = ['4.4.8.8.ips.example', '8.8.8.8.ips.example'] as const
const [SHOP, OTHER_SHOP] = ['shop-of-the-test.com', 'shop-of-the-test.org'] as const
const NEVER = '0001-01-01T00:00:00Z'

eachDatabase((database) => {
  test('from a list that cannot be believed to an address that steps aside and comes back', async (t) => {
    const internet = await createInternet(t)
    const { dns } = internet
    const clock = createTestClock()
    const ticking = setInterval(() => void clock.advance(1_000), 10)
    t.after(() => clearInterval(ticking))
    const [local, otherLocal] = [ownAddress(), ownAddress()]
    const [strict, other] = [await internet.site(['strict.example']), await internet.site(['other.example'])]
    const receiver = await createReceiver({ host: ownAddress() })
    t.after(() => receiver.close())
    dns.set(IN_LIST_ONE, 'A', ['127.0.0.2'], 1)
    dns.set('1.0.0.127.ips.example', 'A', ['127.0.0.2'], 1)
    dns.set('2.0.0.127.ips.example', 'A', ['127.0.0.2'], 1)
    dns.set('test.names.example', 'A', ['127.0.0.2'], 1)
    const opened = await startOpened(
      t,
      {
        ...internet.env,
        SENDWRIGHT_IPS: `${local}@${ONE},${otherLocal}@${TWO}`,
        SENDWRIGHT_ALERT_DNSBL_ZONES: 'ips.example',
        SENDWRIGHT_ALERT_DOMAIN_ZONES: 'names.example',
      },
      { clock, random: () => 0, database },
    )
    const { service } = opened
    const get = async (path: string) => {
      const answer = await service.call('GET', path)
      assert.equal(answer.status, 200, answer.text)
      return answer.body as Json
    }
    const watch = (ms = 2 * HOUR_MS) => runJobAfter(service, clock, 'blocklist-watch', ms)
    const listOf = async (list: string) =>
      (await get('/sendwright/v1/blocklists')).items.find((one: Json) => one.list === list)
    const listed = async () => (await listOf('ips.example')).listed.map(({ subject }: Json) => subject)
    const blocksOf = async (address: string) =>
      (await get('/sendwright/v1/ips')).items
        .find(({ ip }: Json) => ip === address)
        .blocked_by.map(({ site, state, reply }: Json) => [site, state, reply])
    /** Of the alert about an address. */
    const advice = async (address: string): Promise<string> => {
      await runJobAfter(service, clock, 'alert-blocklists', 2 * 60_000)
      const checks = (await get('/sendwright/v1/alerts')).items
      const { hits } = checks.find(({ name }: Json) => name === 'sendwright:blocklists')
      return hits.find(({ dimension_value }: Json) => dimension_value === address)?.advice ?? ''
    }
    /** The local addresses that mails to a site came from. */
    async function sendersTo(site: typeof strict, domain: string): Promise<Set<string>> {
      site.messages.splice(0)
      const to = Array.from({ length: 12 }, (_, at) => `r${at}@${domain}`)
      assert.equal((await service.send({ to })).status, 200)
      await eventually(`mail to ${domain}`, async () => site.messages.length === to.length)
      return new Set(site.messages.map(({ remoteAddress }) => remoteAddress))
    }

    await t.test('a list that lists everything is not believed', async () => {
      await watch()
      const { tests, looked_up } = await listOf('ips.example')
      assert.equal(looked_up, 2)
      const { kind, usable, fault } = tests[0]
      assert.deepEqual([kind, usable], ['ipv4', false])
      assert.match(fault, /^ips\.example lists everything/)
      assert.deepEqual(await listed(), [])
      const [item] = (await get('/v1/inboxready/ip_addresses')).items
      assert.deepEqual(item, { ip: ONE, ip_pool: '', description: '', state: 'unknown', listed: [] })
      const asked = dns.queries.filter(({ name }) => name === IN_LIST_ONE)
      assert.deepEqual(asked, [], 'nor asked')
    })

    await t.test('once its test entries are right it is', async () => {
      dns.set('1.0.0.127.ips.example', 'A', [], 1)
      await watch()
      assert.deepEqual(await listed(), [ONE])
      const { state, listed: lists } = await get(`/v1/inboxready/ip_addresses/${ONE}`)
      assert.equal(state, 'listed')
      const { first_seen, last_seen, ...rest } = lists[0]
      assert.ok(Date.parse(first_seen) <= Date.parse(last_seen))
      assert.deepEqual(rest, {
        ...{ list: 'ips.example', name: 'ips.example', delist_requested_at: NEVER, comments: [] },
      })
      assert.equal((await get(`/v1/inboxready/ip_addresses/${TWO}`)).state, 'healthy')
    })

    await t.test('nobody is known to use it, so all mail leaves as before', async () => {
      assert.deepEqual(await sendersTo(strict, 'strict.example'), new Set([local, otherLocal]))
    })

    await t.test(
      'a destination that names it in a refusal gets its mail from the other address',
      async () => {
        strict.on('RCPT TO', ({ remoteAddress }) =>
          remoteAddress === local ? '554 5.7.1 Client host blocked using ips.example' : '250 2.1.5 OK',
        )
        const form = { to: 's@strict.example', 'o:sending-ip': ONE }
        assert.equal((await service.send(form)).status, 200)
        await eventually('the destination is noted', async () => {
          const { used_by } = await listOf('ips.example')
          return used_by.some(({ site, seen_at }: Json) => site === 'mx.strict.example' && seen_at !== null)
        })
        await eventually('the address is left for it', async () => (await blocksOf(ONE)).length > 0)
        assert.deepEqual(await blocksOf(ONE), [['mx.strict.example', 'listed', 'listed by ips.example']])
        assert.deepEqual(await sendersTo(strict, 'strict.example'), new Set([otherLocal]))
        assert.deepEqual(await sendersTo(other, 'other.example'), new Set([local, otherLocal]))
        assert.match(await advice(ONE), /Mail to mx\.strict\.example leaves from other addresses/)
      },
    )

    await t.test('where no other is left it stays in use', async () => {
      strict.on('RCPT TO', '250 2.1.5 OK')
      dns.set(IN_LIST_TWO, 'A', ['127.0.0.2'], 1)
      await watch(6 * HOUR_MS)
      assert.deepEqual(await listed(), [ONE, TWO])
      assert.deepEqual(await sendersTo(strict, 'strict.example'), new Set([local, otherLocal]))
      assert.match(await advice(TWO), /stays in use for mx\.strict\.example/)
    })

    await t.test('it comes back after two answers that it is listed no more', async () => {
      dns.set(IN_LIST_ONE, 'A', [], 1)
      await watch(6 * HOUR_MS)
      assert.deepEqual(await listed(), [ONE, TWO])
      await watch()
      assert.deepEqual(await listed(), [TWO])
      assert.deepEqual(await blocksOf(ONE), [])
      assert.deepEqual(await sendersTo(strict, 'strict.example'), new Set([local]))
    })

    await t.test('an account is told of its domains once, and sees their history', async () => {
      const id = await createSubaccount(service, 'shop')
      const call = callAs(service, id)
      const ok = async (method: string, path: string, options = {}) => {
        const answer = await call(method, path, options)
        assert.equal(answer.status, 200, `${method} ${path}: ${answer.text}`)
        return answer.body as Json
      }
      const follow = (link: string) => ok('GET', link.slice(link.indexOf('/v1/')))
      for (const event_type of ['domain_listed', 'domain_delisted'])
        await ok('POST', '/v1/alerts/settings/events', {
          json: { event_type, channel: 'webhook', settings: { url: `${receiver.url}/${event_type}` } },
        })
      await activeDomain(opened.core, call, `mail.${SHOP}`)
      const added = await ok('POST', '/v1/inboxready/domains', { form: { domain: OTHER_SHOP } })
      assert.equal(added.message, 'The domain has been added')
      const { created_at, txt_record, ...rest } = added.domain
      assert.ok(created_at > 0)
      assert.deepEqual(rest, {
        ...{ acid: id, name: OTHER_SHOP, services: { blocklist_monitoring: false } },
        verified: { status: 'pending', verified_at: 0 },
      })
      const repeated = await ok('POST', `/v1/inboxready/domains?domain=${OTHER_SHOP}`)
      assert.deepEqual(repeated.domain, added.domain)
      dns.set(OTHER_SHOP, 'TXT', ['v=spf1 -all', txt_record], 1)
      const verified = await ok('PUT', `/v1/inboxready/domains/verify?domain=${OTHER_SHOP}`)
      assert.equal(verified.message, 'Domain pending verification')
      const domains = async () => (await ok('GET', '/v1/inboxready/domains')).items
      const statuses = async () =>
        (await domains()).map(({ name, verified: { status } }: Json) => `${name} ${status}`)
      await eventually('the record is found', async () =>
        (await statuses()).includes(`${OTHER_SHOP} inbox_ready`),
      )
      assert.deepEqual(await statuses(), [`mail.${SHOP} sending`, `${OTHER_SHOP} inbox_ready`])
      const page = await ok('GET', '/v1/inboxready/domains?limit=1')
      const next = await follow(page.paging.next)
      assert.deepEqual([page.items[0].name, next.items[0].name], [`mail.${SHOP}`, OTHER_SHOP])
      assert.deepEqual((await follow(next.paging.next)).items, [])

      for (const name of [SHOP, OTHER_SHOP]) dns.set(`${name}.names.example`, 'A', ['127.0.1.2'], 1)
      await watch(6 * HOUR_MS)
      const health = (await ok('GET', '/v1/monitoring/domains')).domains
      assert.deepEqual(
        health.map(({ domain, state, account_id }: Json) => [domain, state, account_id]),
        [`mail.${SHOP}`, OTHER_SHOP].map((name) => [name, 'listed', id]),
      )
      const { blocklists } = await ok('GET', `/v1/monitoring/domains/mail.${SHOP}/blocklists`)
      assert.deepEqual(blocklists, health[0].listed)
      assert.deepEqual([blocklists[0].list, blocklists[0].comments], ['names.example', []])
      // Before, the URL of each setting was tried.
      const notices = () => receiver.posts.filter(({ method }) => method === 'POST')
      await eventually('the notices', async () => notices().length === 2)
      const told = notices().map(({ path, body }) => `${path} ${body['event-data'].domain}`)
      assert.deepEqual(told.sort(), [`/domain_listed mail.${SHOP}`, `/domain_listed ${OTHER_SHOP}`].sort())

      dns.set(`${SHOP}.names.example`, 'A', [], 1)
      for (const ms of [6 * HOUR_MS, 2 * HOUR_MS]) await watch(ms)
      await eventually('the notice of the end', async () => notices().length === 3)
      const { events, paging } = await ok('GET', '/v1/monitoring/domains/events?limit=2')
      assert.deepEqual(
        { ...events[0], timestamp: '' },
        {
          ...{ timestamp: '', event: 'delisted', domain: `mail.${SHOP}`, account_id: id },
          ...{ list: 'names.example', name: 'names.example' },
        },
      )
      assert.equal((await follow(paging.next)).events.length, 1)
      const own = (await ok('GET', `/v1/monitoring/domains/mail.${SHOP}/events`)).events
      assert.deepEqual(
        own.map(({ event }: Json) => event),
        ['delisted', 'listed'],
      )
      assert.deepEqual((await get('/v1/monitoring/domains/events')).events, [], "not another account's")
      assert.equal((await get('/v1/monitoring/domains/events?include_subaccounts=yes')).events.length, 3)

      const removed = await ok('DELETE', `/v1/inboxready/domains?domain=mail.${SHOP}`)
      assert.equal(removed.message, `mail.${SHOP} has been removed`)
      assert.deepEqual(await statuses(), [`${OTHER_SHOP} inbox_ready`])
      assert.equal((await call('GET', `/v1/monitoring/domains/mail.${SHOP}/events`)).status, 404)
      const again = await ok('POST', '/v1/inboxready/domains', { form: { domain: `mail.${SHOP}` } })
      assert.equal(again.domain.verified.status, 'sending')
      for (const domain of ['com', 'shop.example', '127.0.0.1', 'a b.com'])
        assert.equal((await call('POST', '/v1/inboxready/domains', { form: { domain } })).status, 400, domain)
      // A domain that is made anew is monitored, whatever was said of the one that is gone.
      await ok('DELETE', `/v1/inboxready/domains?domain=mail.${SHOP}`)
      await ok('DELETE', `/v3/domains/mail.${SHOP}`)
      const isMade = () =>
        activeDomain(opened.core, call, `mail.${SHOP}`).then(
          () => true,
          () => false,
        )
      await eventually('the name is free', isMade)
      assert.deepEqual(await statuses(), [`mail.${SHOP} sending`, `${OTHER_SHOP} inbox_ready`])
    })

    await t.test('an account describes the addresses that it may send from, and no others', async () => {
      const add = (ip: string) =>
        service.call('POST', '/v1/inboxready/ip_addresses', { json: { ip, ip_pool: 'p', description: 'd' } })
      const made = await add(TWO)
      assert.deepEqual([made.status, made.body.ip_pool, made.body.state], [201, 'p', 'listed'])
      assert.equal((await add(TWO)).status, 409)
      assert.equal((await add('1.1.1.1')).status, 403)
      assert.equal((await add('no')).status, 400)
      const path = `/v1/inboxready/ip_addresses/${TWO}`
      const put = await service.call('PUT', path, { json: { ip_pool: 'q', description: '' } })
      assert.deepEqual([put.status, put.body.ip_pool, put.body.description], [200, 'q', ''])
      assert.equal((await service.call('DELETE', path)).status, 204)
      assert.equal((await service.call('GET', path)).status, 404)
      const { items } = await get('/v1/inboxready/ip_addresses')
      assert.deepEqual(
        items.map(({ ip }: Json) => ip),
        [ONE],
      )
      assert.equal((await add(TWO)).status, 201)
    })
  })

  test('captured mail asks no list', async (t) => {
    const service = await startTestService(t, {}, { database })
    assert.deepEqual((await service.call('GET', '/sendwright/v1/blocklists')).body, { items: [] })
    const { jobs } = (await service.call('GET', '/sendwright/v1/system')).body as Json
    assert.ok(!jobs.some(({ name }: Json) => name === 'blocklist-watch'))
  })
})
