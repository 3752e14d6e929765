import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../base/ids.ts'
import type { TrackedCopy, TrackedParts } from '../../mail/compose/tracker.ts'
import { DEFAULT_OPTIONS } from '../../mail/record/options.ts'
import { createSealer } from '../../platform/store/secrets/sealing.ts'
import type { Domain } from '../domains/domain.ts'
import { linkIdOf } from './links/links.ts'
import { createTokens } from './links/tokens.ts'
import { createTracker, type TrackerParts } from './tracker.ts'
import { DEFAULT_TRACKING, type TrackingSettings } from './tracking-settings.ts'

const tokens = createTokens(createSealer('a secret of at least 32 characters!!'))
const domain = {
  id: newId(),
  accountId: newId(),
  name: 'example.com',
  webPrefix: 'email',
  webScheme: 'https',
  trackingValid: false,
} as Domain

const NO_PARTS: TrackedParts = { text: null, html: null, amp: null }

function setUp(settings: Partial<TrackingSettings>, parts: Partial<TrackerParts> = {}) {
  const kept: string[][] = []
  const tracker = createTracker({
    settings: { get: async () => ({ ...DEFAULT_TRACKING, ...settings }) },
    tokens,
    links: {
      keep: async (accountId, urls) => {
        kept.push([...urls])
        return urls.map((url) => linkIdOf(accountId, url))
      },
    },
    fallbackUrl: 'https://mail.example.net',
    certificateActive: async () => false,
    tlsExternal: false,
    ...parts,
  })
  return { tracker, kept }
}

const copyOf = (changes: Partial<TrackedCopy> = {}): TrackedCopy => ({
  accountId: domain.accountId,
  domain,
  messageId: 'm@example.com',
  storageKey: newId(),
  deliveryId: newId(),
  recipient: 'ada@example.net',
  tags: [],
  options: DEFAULT_OPTIONS,
  listSid: null,
  isBulk: false,
  usesVariable: false,
  ...changes,
})

/** The html as sent, with the content of each link in place of its token. */
async function rewritten(
  settings: Partial<TrackingSettings>,
  parts: Partial<TrackedParts>,
  options: Partial<TrackedCopy['options']> = {},
): Promise<TrackedParts> {
  const { tracker } = setUp(settings)
  const tracking = await tracker.trackingOf(copyOf({ options: { ...DEFAULT_OPTIONS, ...options } }))
  const result = (await tracking?.rewrite({ ...NO_PARTS, ...parts }, false)) ?? { ...NO_PARTS, ...parts }
  return { text: read(result.text), html: read(result.html), amp: result.amp }
}

function read(text: string | null): string | null {
  return (
    text?.replaceAll(/https:\/\/mail\.example\.net\/([ocu])\/([\w-]+)/g, (_, kind: string, token: string) => {
      const target = kind === 'c' ? tokens.readClick(token)?.target : null
      if (target) return `CLICK(${'url' in target ? target.url : 'stored'})`
      return kind === 'o' ? 'OPEN' : `LEAVE(${tokens.readUnsubscribe(token)?.scope})`
    }) ?? null
  )
}

const PIXEL = '<img src="OPEN" width="1" height="1" alt="">'

test('with everything off the copy is unchanged', async () => {
  const { tracker } = setUp({})
  assert.equal(await tracker.trackingOf(copyOf()), null)
  const tracking = await tracker.trackingOf(copyOf({ usesVariable: true }))
  const parts = {
    text: 'http://a.b/',
    html: '<a href="http://a.b/" disable-tracking=true>',
    amp: 'http://a.b/',
  }
  assert.equal(await tracking?.rewrite(parts, false), parts)
})

/** [what, settings of the domain, html, html as sent]. */
const HTML: [string, Partial<TrackingSettings>, string, string][] = [
  ['pixel at the end', { opens: true }, '<p>x', `<p>x${PIXEL}`],
  [
    'pixel before the last </body>',
    { opens: true },
    '<body>x</body>y</body>z',
    `<body>x</body>y${PIXEL}</body>z`,
  ],
  [
    'pixel after <body>',
    { opens: true, opensAtTop: true },
    '<p><body a=b>x</body>',
    `<p><body a=b>${PIXEL}x</body>`,
  ],
  ['pixel at the start', { opens: true, opensAtTop: true }, '<p>x</body>', `${PIXEL}<p>x</body>`],
  [
    'links',
    { clicks: 'yes' },
    '<a href="http://a.b/">http://a.b/</a>',
    '<a href="CLICK(http://a.b/)">http://a.b/</a>',
  ],
  ['links in html only', { clicks: 'htmlonly' }, "<a href='http://a.b/'>", "<a href='CLICK(http://a.b/)'>"],
  [
    'not our own links',
    { clicks: 'yes' },
    '<a href="https://mail.example.net/x"><a href=http://EMAIL.example.com/c/x>',
    '<a href="https://mail.example.net/x"><a href=http://EMAIL.example.com/c/x>',
  ],
  [
    'the same host with another port',
    { clicks: 'yes' },
    '<a href=https://mail.example.net:8443/>',
    '<a href=CLICK(https://mail.example.net:8443/)>',
  ],
  [
    'untracked links keep no mark',
    { clicks: 'yes' },
    '<a href="http://a.b/" disable-tracking=true>',
    '<a href="http://a.b/">',
  ],
  [
    'footer, then pixel',
    { unsubscribe: true, opens: true },
    '<body>x</body>',
    `<body>x\n<br>\n<p><a href="LEAVE(domain)">unsubscribe</a></p>\n${PIXEL}</body>`,
  ],
  [
    'links of a footer',
    {
      unsubscribe: true,
      clicks: 'yes',
      htmlFooter: '<a href="http://a.b/">a</a> %tag_unsubscribe_url% %other%',
    },
    'x',
    'x<a href="CLICK(http://a.b/)">a</a> LEAVE(domain) %other%',
  ],
  ['an empty footer', { unsubscribe: true, htmlFooter: '' }, '<body>x</body>', '<body>x</body>'],
  [
    'everything in an empty body',
    { unsubscribe: true, opens: true, opensAtTop: true, htmlFooter: 'f' },
    '<body></body>',
    `<body>${PIXEL}f</body>`,
  ],
]
for (const [what, settings, html, expected] of HTML) {
  test(`html: ${what}`, async () => assert.equal((await rewritten(settings, { html })).html, expected))
}

test('text parts: links unless htmlonly, footer, no pixel; AMP parts stay', async () => {
  const parts = { text: 'See <http://a.b/>.', amp: '<a href="http://a.b/">' }
  const all = { opens: true, clicks: 'yes', unsubscribe: true } as const
  assert.deepEqual(await rewritten(all, parts), {
    text: 'See <CLICK(http://a.b/)>.\n\nTo unsubscribe click: <LEAVE(domain)>\n\n',
    html: null,
    amp: parts.amp,
  })
  assert.equal((await rewritten({ clicks: 'htmlonly' }, parts)).text, parts.text)
  const own = { ...all, textFooter: 'f http://c.d/' }
  assert.equal(
    (await rewritten(own, { text: 'http://a.b/ ' })).text,
    'CLICK(http://a.b/) f CLICK(http://c.d/)',
  )
})

test('options of the message override the domain', async () => {
  const parts = { html: '<a href="http://a.b/">', text: 'http://a.b/' }
  const on = { trackClicks: true, trackOpens: true, pixelAtTop: true } as const
  assert.equal((await rewritten({}, parts, on)).html, `${PIXEL}<a href="CLICK(http://a.b/)">`)
  assert.equal((await rewritten({}, parts, { trackClicks: 'htmlonly' })).text, parts.text)
  const all = { opens: true, clicks: 'yes', opensAtTop: true } as const
  assert.deepEqual(await rewritten(all, parts, { trackClicks: false, trackOpens: false }), {
    ...NO_PARTS,
    ...parts,
  })
  assert.equal((await rewritten(all, { html: 'x' }, { pixelAtTop: false })).html, `x${PIXEL}`)
})

test('a link is at most 512 characters; a longer target is stored', async () => {
  const { tracker, kept } = setUp({ clicks: 'yes' })
  const tracking = await tracker.trackingOf(copyOf())
  for (let length = 300; length < 400; length++) {
    const url = `https://a.b/${'x'.repeat(length)}`
    const { text } = (await tracking?.rewrite({ ...NO_PARTS, text: url }, true)) ?? NO_PARTS
    assert.ok((text as string).length <= 512, `${length}: ${text?.length}`)
    const target = tokens.readClick((text as string).split('/c/')[1] as string)?.target
    const stored = kept.flat().includes(url)
    assert.deepEqual(target, stored ? { linkId: linkIdOf(domain.accountId, url) } : { url })
  }
  assert.ok(kept.length > 0 && kept.length < 100)
})

test('the same copy gives the same bytes, and each recipient has links of their own', async () => {
  const { tracker } = setUp({ clicks: 'yes', opens: true, unsubscribe: true })
  const parts = {
    ...NO_PARTS,
    html: `<a href="http://a.b/"><a href="http://a.b/${'x'.repeat(600)}">`,
    text: 'http://a.b/',
  }
  const copy = copyOf()
  const once = async (copy: TrackedCopy) => (await tracker.trackingOf(copy))?.rewrite(parts, true)
  assert.deepEqual(await once(copy), await once({ ...copy }))
  assert.notDeepEqual(await once(copy), await once(copyOf()))
})

test('variables: links for domain, tags and list, in place of one another where there is none', async () => {
  const { tracker } = setUp({})
  const value = async (copy: TrackedCopy) => {
    const tracking = await tracker.trackingOf({ ...copy, usesVariable: true })
    assert.ok(tracking)
    const url = (name: Parameters<typeof tracking.variable>[0]) => {
      const [base, token] = tracking.variable(name).split('/u/')
      assert.equal(base, 'https://mail.example.net')
      return tokens.readUnsubscribe(token as string)
    }
    const address = (name: Parameters<typeof tracking.variable>[0]) => {
      const match = /^(mailto:)?unsub\+([a-z2-7]+)@example\.com$/.exec(tracking.variable(name))
      return [match?.[1], tokens.readUnsubscribeAddress(match?.[2] as string)?.scope]
    }
    return { url, address }
  }
  const plain = copyOf()
  const facts = {
    accountId: domain.accountId,
    domainId: domain.id,
    recipient: 'ada@example.net',
    deliveryId: plain.deliveryId,
  }
  const forDomain = { ...facts, scope: 'domain', tags: [], listSid: null }
  const none = await value(plain)
  for (const name of ['unsubscribe_url', 'tag_unsubscribe_url', 'mailing_list_unsubscribe_url'] as const) {
    assert.deepEqual(none.url(name), forDomain)
  }
  assert.deepEqual(none.address('unsubscribe_email'), ['mailto:', 'domain'])
  assert.deepEqual(none.address('tag_unsubscribe_email'), ['mailto:', 'domain'])

  const full = await value({ ...plain, tags: ['a', 'b'], listSid: 'list' })
  assert.deepEqual(full.url('unsubscribe_url'), forDomain)
  assert.deepEqual(full.url('tag_unsubscribe_url'), { ...forDomain, scope: 'tags', tags: ['a', 'b'] })
  assert.deepEqual(full.url('mailing_list_unsubscribe_url'), { ...forDomain, scope: 'list', listSid: 'list' })
  assert.deepEqual(full.address('tag_unsubscribe_email'), ['mailto:', 'tags'])
  assert.deepEqual(full.address('mailing_list_unsubscribe_address'), [undefined, 'list'])
})

test('headers: with unsubscribe tracking, or when the body has a variable; the list link for a list', async () => {
  const headers = async (settings: Partial<TrackingSettings>, listSid: string | null, inBody: boolean) => {
    const tracking = await setUp(settings).tracker.trackingOf(copyOf({ listSid, usesVariable: true }))
    return tracking?.headers(inBody) ?? []
  }
  assert.deepEqual(await headers({ opens: true }, null, false), [])
  for (const [settings, listSid, inBody] of [
    [{ unsubscribe: true }, null, false],
    [{}, null, true],
    [{ unsubscribe: true }, 'sid', false],
  ] as const) {
    const [[name, value] = [], [postName, post] = []] = await headers(settings, listSid, inBody)
    assert.deepEqual(
      [name, postName, post],
      ['List-Unsubscribe', 'List-Unsubscribe-Post', 'List-Unsubscribe=One-Click'],
    )
    const match = /^<https:\/\/mail\.example\.net\/u\/([\w-]+)>, <mailto:unsub\+(\w+)@example\.com>$/.exec(
      value ?? '',
    )
    const scope = listSid === null ? 'domain' : 'list'
    assert.equal(tokens.readUnsubscribe(match?.[1] as string)?.scope, scope)
    assert.equal(tokens.readUnsubscribeAddress(match?.[2] as string)?.scope, scope)
  }
})

test('bulk gets a link by default where links are https, and its texts stay; the option and the setting decide', async () => {
  const fields = async (
    settings: Partial<TrackingSettings>,
    copy: Partial<TrackedCopy>,
    parts: Partial<TrackerParts> = {},
  ) => {
    const tracking = await setUp(settings, parts).tracker.trackingOf(copyOf(copy))
    return tracking && [tracking.textsStay, ...tracking.headers(false)].map(String).join(' ')
  }
  const option = (listUnsubscribe: boolean) => ({ options: { ...DEFAULT_OPTIONS, listUnsubscribe } })
  const LINK = /^true List-Unsubscribe,<https:\/\/mail\.example\.net\/u\/[\w-]+> List-Unsubscribe-Post,/
  assert.match((await fields({}, { isBulk: true })) ?? '', LINK)
  assert.match((await fields({}, option(true))) ?? '', LINK)
  assert.match((await fields({ unsubscribeOnBulk: false }, option(true))) ?? '', LINK)
  assert.equal(await fields({}, {}), null)
  assert.equal(await fields({ unsubscribeOnBulk: false }, { isBulk: true }), null)
  assert.equal(await fields({}, { isBulk: true, ...option(false) }), null)
  assert.equal(await fields({ unsubscribe: true }, { isBulk: true, ...option(false) }), 'false')
  for (const fallbackUrl of ['http://mail.example.net', null])
    assert.equal(await fields({}, { isBulk: true, ...option(true) }, { fallbackUrl }), null)
  const http = { isBulk: true, usesVariable: true }
  assert.equal(await fields({}, http, { fallbackUrl: 'http://mail.example.net' }), 'false')
  assert.match(
    (await fields({ opens: true }, { isBulk: true })) ?? '',
    /^false List-Unsubscribe,<https:[^,]+> /,
  )
})

/** [tracking record valid, web_scheme, certificate, TLS terminated elsewhere, fallback, base URL of the links]. */
const HOSTS: [boolean, 'http' | 'https', boolean, boolean, string | null, string][] = [
  [false, 'https', true, true, 'https://mail.example.net', 'https://mail.example.net/o/'],
  [false, 'https', false, false, 'http://127.0.0.1:8080', 'http://127.0.0.1:8080/o/'],
  [true, 'http', true, true, 'https://mail.example.net', 'http://email.example.com/o/'],
  [true, 'https', false, false, 'https://mail.example.net', 'http://email.example.com/o/'],
  [true, 'https', true, false, 'https://mail.example.net', 'https://email.example.com/o/'],
  [true, 'https', false, true, null, 'https://email.example.com/o/'],
]
for (const [trackingValid, webScheme, certificate, tlsExternal, fallbackUrl, expected] of HOSTS) {
  test(`links lead to ${expected} (valid: ${trackingValid}, ${webScheme}, certificate: ${certificate}, external: ${tlsExternal})`, async () => {
    const { tracker } = setUp(
      { opens: true },
      {
        fallbackUrl,
        tlsExternal,
        certificateActive: async (host) => certificate && host === 'email.example.com',
      },
    )
    const tracking = await tracker.trackingOf(copyOf({ domain: { ...domain, trackingValid, webScheme } }))
    const result = await tracking?.rewrite({ ...NO_PARTS, html: 'x' }, false)
    assert.ok(result?.html?.includes(`<img src="${expected}`), result?.html ?? '')
  })
}

test('without a host the message stays as it is, and its variables work by mail', async () => {
  const { tracker } = setUp({ opens: true, clicks: 'yes', unsubscribe: true }, { fallbackUrl: null })
  const tracking = await tracker.trackingOf(copyOf({ usesVariable: true }))
  const parts = { ...NO_PARTS, html: '<a href="http://a.b/">', text: 'x' }
  assert.equal(await tracking?.rewrite(parts, false), parts)
  assert.deepEqual(tracking?.headers(true), [])
  assert.match(tracking?.variable('unsubscribe_url') ?? '', /^mailto:unsub\+[a-z2-7]+@example\.com$/)
})

test('one click leaves the topics of a mail, and only where the domain has a page of topics', async () => {
  const topics = [{ tag: 'News', title: 'News' }]
  for (const [isActive, tags, listSid, scope, left] of [
    [true, ['news', 'other'], null, 'tags', ['news']],
    [true, ['other'], null, 'domain', []],
    [true, ['news'], 'list', 'list', []],
    [false, ['news', 'other'], null, 'domain', []],
  ] as const) {
    const { tracker } = setUp({ unsubscribe: true, preferences: { isActive, topics } })
    const tracking = await tracker.trackingOf(copyOf({ tags, listSid }))
    const field = new Map(tracking?.headers(false)).get('List-Unsubscribe') ?? ''
    const token = /\/u\/([\w-]+)>/.exec(field)?.[1] ?? ''
    const read = tokens.readUnsubscribe(token)
    assert.deepEqual([read?.scope, read?.tags], [scope, left])
    const address = /unsub\+([a-z2-7]+)@/.exec(field)?.[1] ?? ''
    assert.equal(tokens.readUnsubscribeAddress(address)?.scope, scope)
  }
})
