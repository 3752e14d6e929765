import assert from 'node:assert/strict'
import { generateKeyPairSync, verify } from 'node:crypto'
import { after, test } from 'node:test'
import { createDnsServer } from '../../../test/support/dns-server.ts'
import { systemClock } from '../../base/time/clock.ts'
import type { HttpRequest } from '../../platform/posts/http-client.ts'
import { createResolver } from '../../protocols/dns/resolver.ts'
import { type ConnectTemplate, connectLink } from './domain-connect.ts'

const dns = await createDnsServer()
after(() => dns.close())
dns.set('_domainconnect.shop.example', 'TXT', ['api.provider.example/connect'])
const resolver = createResolver({ servers: [dns], clock: systemClock })

const SETTINGS = {
  providerName: 'Provider',
  urlSyncUX: 'https://pages.provider.example/',
  urlAPI: 'https://api.provider.example',
}
const TEMPLATE: ConnectTemplate = { providerId: 'service.example', serviceId: 'mail', key: null }
const VARIABLES = { selector: 'k1', dkim: 'k=rsa; p=A+/=' }

async function linkFor({
  domain = 'mail.shop.example',
  settings = SETTINGS as object,
  status = 200,
  template = TEMPLATE,
} = {}) {
  const asked: string[] = []
  const client = {
    async send({ url }: HttpRequest) {
      asked.push(url)
      const isSettings = url.endsWith('/settings')
      const body = Buffer.from(isSettings ? JSON.stringify(settings) : '{}')
      const answer = { reason: '', contentType: '', retryAfter: '', body, durationMs: 1 }
      return { kind: 'answered' as const, status: isSettings ? 200 : status, ...answer }
    },
  }
  return { ...(await connectLink({ client, resolver, template }, domain, VARIABLES)), asked }
}

test('a link has the zone, the host in it, and the variables', async () => {
  const { provider, url, asked } = await linkFor()
  assert.deepEqual(asked, [
    'https://api.provider.example/connect/v2/shop.example/settings',
    'https://api.provider.example/v2/domainTemplates/providers/service.example/services/mail',
  ])
  const link = new URL(url as string)
  assert.equal(
    link.origin + link.pathname,
    'https://pages.provider.example/v2/domainTemplates/providers/service.example/services/mail/apply',
  )
  assert.deepEqual(Object.fromEntries(link.searchParams), {
    domain: 'shop.example',
    host: 'mail',
    ...VARIABLES,
  })
  assert.equal(provider, 'Provider')
})

test('with a key it is signed over all that stands before the signature', async () => {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
  const { url } = await linkFor({ template: { ...TEMPLATE, key: { host: '_dck1', pem } } })
  const [, query = '', signature = ''] = /\?(.*)&sig=(.*)&key=_dck1$/.exec(url as string) ?? []
  const bytes = Buffer.from(decodeURIComponent(signature), 'base64')
  assert.ok(verify('sha256', Buffer.from(query), publicKey, bytes))
})

test('without a provider that takes part, or that knows the template, the reason is said', async () => {
  const cases: [Parameters<typeof linkFor>[0], RegExp][] = [
    [{ domain: 'mail.other.example' }, /does not take part/],
    [{ settings: { ...SETTINGS, urlSyncUX: 'javascript:alert(1)' } }, /Provider makes no records by a link/],
    [{ settings: { ...SETTINGS, urlSyncUX: 'http://pages.provider.example' } }, /makes no records/],
    [{ settings: [] }, /makes no records/],
    [{ status: 404 }, /does not know the template service.example\/mail/],
  ]
  for (const [given, words] of cases) {
    const { url, reason } = await linkFor(given)
    assert.equal(url, null)
    assert.match(reason, words)
  }
})
