import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AuthenticationFacts, type ContentFacts, judgeMessage, type MessageFacts } from './checks.ts'
import { judgeLink } from './links.ts'
import { noLinks, placeholdersIn, READ_CHARS_MAX, readHtml, readPlain } from './read-texts.ts'

const authentication: AuthenticationFacts = {
  ...{ domain: 'a.example', isSandbox: false, authors: ['a.example'], returnPath: 'a.example' },
  ...{ signer: 'a.example', spf: true, dkim: true, bimi: [] },
  ...{ isReturnPathRelated: true, isSignerRelated: true },
  dmarc: { valid: true, record: 'v=DMARC1; p=reject', policy: 'reject', sentence: '' },
}
const UNRELATED = { isReturnPathRelated: false, isSignerRelated: false } as const
const html = {
  ...{ images: 1, withoutAlt: 0, dataChars: 0, dataImages: 0, textChars: 500, isComplete: true },
  ...{ bytes: 1_000, encodedBytes: 1_100 },
}
const content: ContentFacts = {
  subject: 'News',
  listUnsubscribe: '<https://a.example/u>, <mailto:u@a.example>',
  listUnsubscribePost: 'List-Unsubscribe=One-Click',
  replyTo: 'News <news@a.example>',
  ...{ hasText: true, html, links: noLinks(), placeholders: [] },
  ...{ imageFiles: { count: 0, bytes: 0 }, sizeBytes: 5_000, sizeBytesMax: 26_214_400 },
}
const facts: MessageFacts = { refusal: null, authentication, content, spam: { score: 0.1, isSpam: false } }

/** States that are not ok, by name. */
function faults(found: MessageFacts): Record<string, string> {
  const { checks } = judgeMessage(found)
  return Object.fromEntries(
    checks.filter(({ state }) => state !== 'ok').map(({ name, state }) => [name, state]),
  )
}

test('a message without faults passes all checks', () => {
  const { state, checks } = judgeMessage(facts)
  assert.equal(state, 'ok')
  assert.deepEqual(
    checks.map(({ name }) => name).join(' '),
    'acceptance spf dkim dmarc bimi one-click-unsubscribe reply-address subject text-part html-size images links placeholders size spam',
  )
  assert.ok(checks.every(({ sentence }) => /^[A-Z].*\.$/.test(sentence)))
})

test('authentication: records, alignment, policy', () => {
  const cases: [change: Partial<AuthenticationFacts>, expected: Record<string, string>][] = [
    [{ spf: false }, { spf: 'failed' }],
    [
      { spf: false, dkim: false },
      { spf: 'failed', dkim: 'failed', dmarc: 'failed' },
    ],
    [
      { spf: null, dkim: null },
      { spf: 'warning', dkim: 'warning', dmarc: 'warning' },
    ],
    [{ signer: null }, { dkim: 'failed' }],
    [
      { signer: null, spf: false },
      { dkim: 'failed', spf: 'failed', dmarc: 'failed' },
    ],
    [
      { ...UNRELATED, authors: ['b.test'] },
      { spf: 'warning', dkim: 'warning', dmarc: 'failed' },
    ],
    [
      { ...UNRELATED, authors: [] },
      { spf: 'warning', dkim: 'warning', dmarc: 'failed' },
    ],
    [{ authors: ['a.example', 'b.test'] }, { dmarc: 'failed' }],
    [{ returnPath: 'bounce.a.example' }, {}],
    [{ returnPath: 'other.test', isReturnPathRelated: false }, { spf: 'warning' }],
    [{ returnPath: 'bounce.a.example', isReturnPathRelated: null }, { spf: 'warning' }],
    [{ dmarc: { valid: false, record: '', policy: null, sentence: '' } }, { dmarc: 'warning' }],
    [{ dmarc: { valid: null, record: '', policy: null, sentence: '' } }, { dmarc: 'warning' }],
    [{ isSandbox: true }, { spf: 'warning', dkim: 'warning', dmarc: 'warning' }],
    [{ bimi: null }, { bimi: 'warning' }],
    [{ bimi: ['v=BIMI1; l='] }, { bimi: 'warning' }],
  ]
  for (const [change, expected] of cases)
    assert.deepEqual(
      faults({ ...facts, authentication: { ...authentication, ...change } }),
      expected,
      JSON.stringify(change),
    )
  const strict: AuthenticationFacts['dmarc'] = {
    valid: true,
    record: 'v=DMARC1; p=reject; aspf=s; adkim=s',
    policy: 'reject',
    sentence: '',
  }
  const below = { ...authentication, dmarc: strict, returnPath: 'bounce.a.example' }
  assert.deepEqual(faults({ ...facts, authentication: below }), { spf: 'warning' })
})

test('content: each limit and what is missing', () => {
  const links = (kind: 'broken' | 'empty' | 'private' | 'insecure' | 'address') => {
    const found = noLinks()
    found.kinds[kind] = 1
    return { links: found }
  }
  const cases: [change: Partial<ContentFacts>, expected: Record<string, string>][] = [
    [{ subject: ' ' }, { subject: 'failed' }],
    [{ subject: 'é'.repeat(70) }, {}],
    [{ subject: 'é'.repeat(71) }, { subject: 'warning' }],
    [{ listUnsubscribe: '' }, { 'one-click-unsubscribe': 'warning' }],
    [{ listUnsubscribePost: '' }, { 'one-click-unsubscribe': 'warning' }],
    [{ listUnsubscribe: '<http://a.example/u>' }, { 'one-click-unsubscribe': 'warning' }],
    [{ hasText: false }, { 'text-part': 'warning' }],
    ...[
      'no-reply@a.example',
      'A <noreply@a.example>',
      'donotreply+1@a.example',
      'x@a.example, do-not-reply@b.example',
    ].map((replyTo): [Partial<ContentFacts>, Record<string, string>] => [
      { replyTo },
      { 'reply-address': 'warning' },
    ]),
    ...['anno-reply@a.example', 'no-replying@a.example', 'reply@noreply.example', ''].map(
      (replyTo): [Partial<ContentFacts>, Record<string, string>] => [{ replyTo }, {}],
    ),
    [{ hasText: false, html: null }, { 'text-part': 'failed' }],
    [{ html: null }, {}],
    [{ html: { ...html, bytes: 104_448 } }, { 'html-size': 'warning' }],
    [{ html: { ...html, bytes: 104_449 } }, { 'html-size': 'failed' }],
    [{ html: { ...html, withoutAlt: 1 } }, { images: 'warning' }],
    [{ html: { ...html, dataImages: 1 } }, { images: 'warning' }],
    [{ html: { ...html, textChars: 99 } }, { images: 'warning' }],
    [{ html: { ...html, isComplete: false } }, { links: 'warning' }],
    [{ imageFiles: { count: 1, bytes: 1_048_577 } }, { images: 'warning' }],
    [links('broken'), { links: 'failed' }],
    [links('empty'), { links: 'failed' }],
    [links('private'), { links: 'failed' }],
    [links('insecure'), { links: 'warning' }],
    [links('address'), { links: 'warning' }],
    [{ placeholders: ['{{name}}'] }, { placeholders: 'failed' }],
    [{ sizeBytes: 10_485_761 }, { size: 'warning' }],
    [{ sizeBytes: 26_214_401 }, { size: 'failed' }],
  ]
  for (const [change, expected] of cases)
    assert.deepEqual(
      faults({ ...facts, content: { ...content, ...change } }),
      expected,
      JSON.stringify(change),
    )
})

test('refusals and spam', () => {
  assert.deepEqual(faults({ ...facts, refusal: 'template not found', content: null }), {
    acceptance: 'failed',
  })
  assert.deepEqual(faults({ ...facts, spam: null }), { spam: 'warning' })
  assert.deepEqual(faults({ ...facts, spam: { score: 9, isSpam: true } }), { spam: 'failed' })
  assert.ok(judgeMessage({ ...facts, spam: undefined }).checks.every(({ name }) => name !== 'spam'))
})

test('links', () => {
  const cases: Record<string, string[]> = {
    ok: ['https://www.example.org/a?b=c#d', ' https://8.example.net ', 'https://münchen.de/'],
    insecure: ['http://www.example.org/'],
    empty: ['', ' ', '#'],
    other: ['#top', 'mailto:a@example.org', 'tel:+431234', 'cid:logo.png'],
    broken: [
      'www.example.org',
      '/path',
      'https:/example.org',
      'https://',
      'javascript:void(0)',
      'https://a b',
    ],
    private: [
      'http://localhost:3000/',
      ...[
        'http://127.0.0.1/',
        'http://2130706433/',
        'https://10.1.2.3/',
        'http://[::1]/',
        'http://[fd00::1]/',
      ],
      ...['https://intranet/', 'https://printer.local/', 'https://staging.internal./x', 'https://shop.test'],
    ],
    address: ['https://9.9.9.9/', 'http://[2620:fe::9]/'],
  }
  for (const [kind, links] of Object.entries(cases))
    for (const link of links) assert.equal(judgeLink(link), kind, link)
})

test('placeholders, but not the variables that delivery replaces', () => {
  const found = (text: string) => placeholdersIn([text])
  assert.deepEqual(found('Hi {{ first_name }}, %recipient.name% *|FNAME|* [[Name]] {% if x %}'), [
    ...['{{ first_name }}', '%recipient.name%', '*|FNAME|*', '[[Name]]', '{% if x %}'],
  ])
  assert.deepEqual(found('<a href="%unsubscribe_url%">50% of 100% {a} https://x.org/%20b%c3%a4</a>'), [])
})

test('html is read to a limit: links, images, text', async () => {
  const links = noLinks()
  const read = await readHtml(
    `<head><title>no text</title></head><a href="http://a.org/?a=1&amp;b=2">x y</a><a name="n">z</a>
     <a href="%unsubscribe_url%">u</a><img src="https://a.org/i.png" alt=""><img src="data:image/png;base64,AA"><img>`,
    links,
  )
  assert.deepEqual(read, {
    ...{ images: 3, withoutAlt: 2, dataChars: 24, dataImages: 1, textChars: 4, isComplete: true },
  })
  assert.deepEqual([links.count, links.kinds.insecure, links.kinds.ok, links.kinds.empty], [3, 1, 1, 1])
  assert.deepEqual(links.examples.insecure, ['http://a.org/?a=1&b=2'])
  assert.equal((await readHtml('<b>'.repeat(5_000), noLinks())).isComplete, false)
  assert.equal((await readHtml('x'.repeat(READ_CHARS_MAX + 1), noLinks())).isComplete, false)
  const plain = noLinks()
  await readPlain('See http://a.org/x, (https://b.org).', plain)
  assert.deepEqual([plain.examples.insecure, plain.kinds.ok], [['http://a.org/x'], 1])
})
