/**
 * Texts that run a script, or load something from elsewhere, wherever a page puts them into its markup unescaped; and a
 * service that has them in everything that its API, its SMTP port and other servers can write (R43).
 */
import assert from 'node:assert/strict'
import { createReceiver, type Receiver } from './http-receiver.ts'
import { type CallOptions, eventually, type TestService } from './service.ts'

/** A script calls this function of the window with the payload's number. */
export const REPORT = 'reportRun'

/** Markup with places for a script (`JS`) and for an address elsewhere (`URL`). */
const SHAPES = [
  '<script>JS</script>',
  '<script src="URL"></script>',
  '<img src=x onerror="JS">',
  '<img src="URL">',
  '<svg onload="JS">',
  '<svg><script>JS</script></svg>',
  '<svg><animate onbegin="JS" attributeName=x dur=1s>',
  '<svg><use href="data:image/svg+xml,<svg id=x xmlns=http://www.w3.org/2000/svg><script>JS</script></svg>#x">',
  '<iframe srcdoc="<script>parent.JS</script>"></iframe>',
  '<iframe src="javascript:JS"></iframe>',
  '<iframe src="URL"></iframe>',
  '<object data="data:text/html,<script>JS</script>"></object>',
  '<embed src="javascript:JS">',
  '<a href="javascript:JS" autofocus onfocus="JS">open</a>',
  '<a href="data:text/html,<script>JS</script>">open</a>',
  '<form action="javascript:JS"><input type=submit autofocus onfocus="JS"></form>',
  '<input autofocus onfocus="JS">',
  '<button formaction="javascript:JS" autofocus onfocus="JS">x</button>',
  '<details open ontoggle="JS">x</details>',
  '<video autoplay onerror="JS"><source src=x></video>',
  '<video poster="URL"></video>',
  '<audio src=x onerror="JS">',
  '<body onload="JS">',
  '<marquee onstart="JS">x</marquee>',
  '<style>@import "URL";</style>',
  '<style>@keyframes x{}</style><p style="animation:x 1s" onanimationstart="JS">',
  '<p style="background:url(URL)">x</p>',
  '<link rel=stylesheet href="URL">',
  '<meta http-equiv=refresh content="0;url=URL">',
  '<base href="URL/">',
  '<math><mtext><table><mglyph><style><img src=x onerror="JS">',
  '<template shadowrootmode=open><img src=x onerror="JS"></template>',
  '<noscript><p title="</noscript><img src=x onerror=JS>">',
  '<select><option><style></select><img src=x onerror="JS">',
]
/** What a payload may have to leave first. */
const EXITS = ['', '">', "'>", '</script>', '</title></textarea></style>', '--></xmp>', ']]>', '\\">', '`}']
/** Without markup: for places that are code, links or templates already. */
const BARE = [
  'javascript:JS',
  'JaVaScRiPt:JS//',
  '\u0001javascript:JS',
  'java\tscript:JS',
  'data:text/html,<script>JS</script>',
  'vbscript:JS',
  '" onmouseover="JS" autofocus onfocus="JS" x="',
  "' onfocus='JS' autofocus x='",
  "'-JS-'",
  '\\"-JS//',
  '${JS}',
  "{{constructor.constructor('JS')()}}",
  '{{{JS}}}',
  '[x](javascript:JS)',
  '![x](URL)',
  '&lt;img src=x onerror=JS&gt;',
  '%3Cscript%3EJS%3C/script%3E',
  '\u202e<img src=x onerror=JS>',
]

/** `count` different texts, each below 300 characters; at most as many as exits times shapes, and the bare ones. */
export function hostileTexts(count: number, elsewhere: string): string[] {
  const shapes = [...BARE, ...EXITS.flatMap((exit) => SHAPES.map((shape) => exit + shape))]
  assert.ok(count <= shapes.length, `${shapes.length} payloads`)
  return shapes
    .slice(0, count)
    .map((shape, at) => shape.replaceAll('JS', `${REPORT}(${at})`).replaceAll('URL', `${elsewhere}/${at}`))
}

export interface Planted {
  /** Message-Ids without brackets. */
  messages: string[]
  /** Ids of mails in the inbox. */
  captured: string[]
  /** A server whose answers are payloads too. */
  receiver: Receiver
}

/** Messages with payloads in all their parts, and one of everything else that has a free text. */
export async function plantTexts(service: TestService, texts: readonly string[]): Promise<Planted> {
  let used = 0
  const next = () => texts[used++ % texts.length] as string
  const ok = async (method: string, path: string, options: CallOptions) => {
    const answer = await service.call(method, path, options)
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${answer.text}`)
    return answer.body
  }
  const form = (path: string, fields: NonNullable<CallOptions['form']>) => ok('POST', path, { form: fields })
  const receiver = await createReceiver({
    answer: (response) => response.writeHead(500, { 'content-type': 'text/html' }).end(texts.join('\n')),
  })
  await plantThings(service, form, ok, next, receiver.url)
  const messages = await plantMessages(service, texts, form, ok, next)
  const inbox = (await service.call('GET', '/sendwright/v1/inbox?limit=100')).body as {
    items: { id: string }[]
  }
  return { messages, captured: inbox.items.map(({ id }) => id), receiver }
}

type Post = (path: string, form: NonNullable<CallOptions['form']>) => Promise<unknown>
type Call = (method: string, path: string, options: CallOptions) => Promise<unknown>

async function plantThings(
  { domain }: TestService,
  form: Post,
  ok: Call,
  next: () => string,
  hook: string,
): Promise<void> {
  const query = () => `${hook}/?q=${encodeURIComponent(next())}`
  await form('/v4/domains', { name: 'planted.example' })
  const [template, comment] = [`<h1>{{name}}</h1>${next()}`, next()]
  const sample = JSON.stringify({ name: next(), [next()]: next() })
  for (const path of [`/v3/${domain}/templates`, '/v4/templates'])
    await form(path, { name: 'planted', description: next(), template, comment, tag: 'one', sample })
  await form('/v3/lists', { address: `planted@${domain}`, name: next(), description: next() })
  const member = { address: 'member@example.org', name: next(), vars: JSON.stringify({ [next()]: next() }) }
  await form(`/v3/lists/planted@${domain}/members`, member)
  const route = {
    expression: 'catch_all()',
    action: [`forward("${query()}")`, 'stop()'],
    description: next(),
  }
  await form('/v3/routes', route)
  await form(`/v3/domains/${domain}/webhooks`, { id: 'delivered', url: query() })
  await form('/v1/webhooks', {
    url: query(),
    event_types: ['accepted', 'permanent_fail'],
    description: next(),
  })
  await form('/v1/keys', { role: 'basic', description: next() })
  await form('/v5/users', { email: 'planted@example.org', name: next(), role: 'basic' })
  await form('/v5/accounts/subaccounts', { name: next() })
  await form('/v3/ip_pools', { name: next().slice(0, 60), description: next() })
  await form('/v1/dkim/keys', { signing_domain: 'planted.example', selector: 'planted' })
  await form('/v2/ip_whitelist', { address: '127.0.0.0/8', description: next() })
  const alert = {
    name: next(),
    metric: 'hard_bounce_rate',
    comparator: '>',
    limit: '0.5',
    dimension: 'domain',
  }
  await ok('POST', '/v1/thresholds/alerts/send', { json: { ...alert, alert_channels: ['email'] } })
  await form(`/v3/${domain}/bounces`, { address: 'bounced@example.org', code: '550', error: next() })
  await form(`/v3/${domain}/unsubscribes`, { address: 'gone@example.org', tag: 'planted' })
  await form(`/v3/${domain}/whitelists`, { address: 'kept@example.org', reason: next() })
  await form('/v4/inbox/seedlists', { name: next() })
  const file = new File([`address\n"${next().replaceAll('"', '""')}"\n`], next())
  await form('/v4/address/validate/bulk/planted', { file })
  const placement = { from: `a@${domain}`, subject: next(), html: next() }
  await ok('POST', '/v4/inbox/tests', { json: placement })
}

/** Texts in the content of one message. */
const TEXTS_A_MESSAGE = 10

async function plantMessages(
  service: TestService,
  texts: readonly string[],
  form: Post,
  ok: Call,
  next: () => string,
): Promise<string[]> {
  const { domain } = service
  const messages: string[] = []
  for (let at = 0; at < texts.length; at += TEXTS_A_MESSAGE) {
    const content = texts.slice(at, at + TEXTS_A_MESSAGE)
    const json = [
      { recipient: '*@refusing.example.org', stage: 'rcpt', reply: `550 5.1.1 ${printable(next())}` },
    ]
    await ok('PUT', '/sendwright/v1/inbox/faults', { json })
    const quoted = next().replaceAll(/[\\"]/g, '\\$&')
    const sent = (await form(`/v3/${domain}/messages`, {
      from: `"${quoted}" <shop@${domain}>`,
      to: ['alice@example.org', 'bob@refusing.example.org'],
      subject: next(),
      text: content.join('\n'),
      html: content.map((text) => `<div>${text}</div>`).join('\n'),
      'amp-html': `<!doctype html><html amp4email>${next()}</html>`,
      'o:tag': printable(next()).slice(0, 100),
      'h:X-Planted': next(),
      'v:planted': next(),
      attachment: new File([next()], `${next()}.html`, { type: 'text/html' }),
    })) as { id: string }
    const id = sent.id.slice(1, -1)
    await eventually(`the end of ${id}`, async () => {
      const events = await service.events(`?message-id=${encodeURIComponent(id)}`)
      return ['delivered', 'failed'].every((name) => events.some(({ event }) => event === name))
    })
    messages.push(id)
  }
  return messages
}

/** What a reply of a server and a tag can hold. */
const printable = (text: string) => text.replaceAll(/[^\x20-\x7e]/g, ' ')
