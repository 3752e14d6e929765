/** What DNS says of the sending addresses and domains, hour by hour. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../support/clock.ts'
import { eachDatabase } from '../support/databases.ts'
import { createReceiver } from '../support/http-receiver.ts'
import { createInternet } from '../support/internet.ts'
import { runJobAfter } from '../support/jobs.ts'
import { eventually, ownAddress } from '../support/service.ts'
import { activeDomain, startOpened } from '../support/subaccounts.ts'

const HOUR_MS = 3_600_000
const [IP, NAME, SPF] = ['127.0.91.9', 'out.sender.example', 'spf.sender.example']

interface Hit {
  dimension_value: string
  latest_value: string
  advice: string
}

/** Only names that somebody can register are asked for. */
const SHOP = 'shop-of-the-watch.com'

eachDatabase((database) =>
  test('listed domains and names that do not agree any more are told, and their end', async (t) => {
    const internet = await createInternet(t)
    const { dns } = internet
    const receiver = await createReceiver({ host: ownAddress() })
    t.after(() => receiver.close())
    const clock = createTestClock()
    const ticking = setInterval(() => void clock.advance(10), 5)
    t.after(() => clearInterval(ticking))
    const env = {
      ...internet.env,
      SENDWRIGHT_IPS: `${IP}@${NAME}`,
      SENDWRIGHT_SPF_INCLUDE_HOST: SPF,
      SENDWRIGHT_ALERT_DOMAIN_ZONES: 'dbl.example',
    }
    const opened = await startOpened(t, env, { clock, random: () => 0, database })
    const { service } = opened
    for (const event_type of ['domain_listed', 'domain_delisted']) {
      const json = { event_type, channel: 'webhook', settings: { url: `${receiver.url}/${event_type}` } }
      assert.equal((await service.call('POST', '/v1/alerts/settings/events', { json })).status, 200)
    }
    const hitsOf = async (name: string): Promise<Hit[]> => {
      const { items } = (await service.call('GET', '/sendwright/v1/alerts')).body
      return items.find((check: { name: string }) => check.name === `sendwright:${name}`).hits
    }
    const look = async (name: string) => {
      await runJobAfter(service, clock, `alert-${name}`, HOUR_MS + 60_000)
      return hitsOf(name)
    }
    /** After the lists were asked again. */
    const asked = async (name: string) => {
      await runJobAfter(service, clock, 'blocklist-watch', 7 * HOUR_MS)
      return look(name)
    }
    const posted = (path: string) =>
      eventually(path, async () => receiver.posts.some((post) => post.path === `/${path}`))

    await t.test('a domain', async () => {
      const listed = `${SHOP}.dbl.example`
      await activeDomain(opened.core, service.call, SHOP)
      dns.set('test.dbl.example', 'A', ['127.0.1.2'], 1)
      dns.set(listed, 'A', ['127.0.1.2'], 1)
      const [hit] = await asked('listed-domains')
      assert.deepEqual([hit?.dimension_value, hit?.latest_value], [SHOP, '1'])
      assert.match(hit?.advice ?? '', /is listed by dbl\.example\. /)
      await posted('domain_listed')
      dns.set(listed, 'A', ['127.255.255.254'], 1)
      for (const _ of [1, 2])
        assert.equal((await asked('listed-domains')).length, 1, 'a refusal says nothing')
      dns.set(listed, 'A', [], 1)
      for (const _ of [1, 2]) await asked('listed-domains')
      assert.deepEqual(await hitsOf('listed-domains'), [])
      await posted('domain_delisted')
    })

    await t.test('an address', async () => {
      assert.deepEqual(await look('address-names'), [], 'what never was right is no drift')
      dns.set('9.91.0.127.in-addr.arpa', 'PTR', [NAME], 1)
      dns.set(NAME, 'A', [IP], 1)
      dns.set(SPF, 'TXT', [`v=spf1 ip4:${IP} -all`], 1)
      assert.deepEqual(await look('address-names'), [])
      dns.set(NAME, 'A', ['127.0.91.10'], 1)
      dns.set(SPF, 'TXT', ['v=spf1 -all'], 1)
      const [hit] = await look('address-names')
      assert.deepEqual([hit?.dimension_value, hit?.latest_value], [IP, '3'])
      assert.match(hit?.advice ?? '', /is named out\.sender\.example, which does not lead back to it\. /)
      assert.match(hit?.advice ?? '', /names itself in EHLO, leads to 127\.0\.91\.10\. /)
      assert.match(
        hit?.advice ?? '',
        /The SPF record of spf\.sender\.example does not permit 127\.0\.91\.9\. /,
      )
      dns.set(NAME, 'A', [IP], 1)
      dns.set(SPF, 'TXT', [`v=spf1 ip4:${IP} -all`], 1)
      for (const _ of [1, 2]) await look('address-names')
      assert.deepEqual(await hitsOf('address-names'), [])
    })
  }),
)
