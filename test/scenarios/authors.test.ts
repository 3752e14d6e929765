/**
 * A subaccount tries to be the author of mail as other accounts' domains. It has verified names in their organizations, so that a
 * receiver's DMARC would pass. A receiver that shares no code with the service judges what arrives.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { judgeAuthors } from '../support/dmarc-receiver.ts'
import { PASSWORD, type Scene, SPF_HOST, startScene } from '../support/identities.ts'
import { eventually } from '../support/service.ts'
import { openDialogue, plainLogin } from '../support/smtp-dialogue.ts'
import { callAs } from '../support/subaccounts.ts'

/** Whose name is in From, and the domain of the attacker that sends. */
const TARGETS: readonly [whose: string, author: string, via: string, isForeign: boolean][] = [
  ['own', 'attacker.example', 'attacker.example', false],
  ['below own', 'news.attacker.example', 'attacker.example', false],
  ['granted', 'b.victim.example', 'b.victim.example', false],
  ["sibling's", 'victim.example', 'b.victim.example', true],
  ["below sibling's", 'hr.victim.example', 'b.victim.example', true],
  ["sibling's other", 'mg.victim.example', 'b.victim.example', true],
  ["parent's", 'platform.example', 'tenant.platform.example', true],
  ["below parent's", 'hr.platform.example', 'tenant.platform.example', true],
  ["sibling's, from elsewhere", 'victim.example', 'attacker.example', true],
  ["sibling's, by the return path", 'victim.example', 'other.example', true],
]

interface Cell {
  scene: Scene
  t: TestContext
  author: string
  via: string
  to: string
}

/** The reply: an HTTP status, or what SMTP said. */
type Send = (cell: Cell) => Promise<string>

const boss = (domain: string) => `Ann Lee <boss@${domain}>`

const post = async ({ scene, via, to }: Cell, form: Record<string, string>, path = 'messages') => {
  const common = path === 'messages' ? { from: `a@${via}`, subject: 's', text: 't' } : {}
  const all = { to, ...common, ...form }
  const message = form['message'] && { message: new File([form['message']], 'm.eml') }
  const { status } = await scene.attacker.call('POST', `/v3/${via}/${path}`, { form: { ...all, ...message } })
  return String(status)
}

/** Without `from` and text: a template gives them. */
const postTemplate = async (cell: Cell, from: string, form: Record<string, string> = {}) => {
  const { scene, via, to } = cell
  const name = `t${to.split('@')[0]}`
  const headers = JSON.stringify({ From: from, Subject: 's' })
  const made = await scene.attacker.call('POST', `/v3/${via}/templates`, {
    form: { name, template: '<p>x</p>', headers },
  })
  assert.equal(made.status, 200, made.text)
  const { status } = await scene.attacker.call('POST', `/v3/${via}/messages`, {
    form: { to, template: name, ...form },
  })
  return String(status)
}

/** Other characters that name the same domain (UTS 46). */
const fullWidth = (name: string) =>
  String.fromCharCode(name.charCodeAt(0) + 0xfee0) + name.slice(1).replaceAll('.', '\u3002')

const batch = (to: string, variables: Record<string, string>) => ({
  'recipient-variables': JSON.stringify({ [to]: variables }),
})

const mime = (...fields: string[]) => `${[...fields, 'Subject: s'].join('\r\n')}\r\n\r\nt\r\n`

async function smtp({ scene, t, via, to }: Cell, message: string): Promise<string> {
  const { service } = scene
  const client = await openDialogue(t, { host: service.config.smtpHost, port: scene.internet.port })
  await client.reply()
  await client.say('EHLO client.example')
  assert.match((await client.say(`AUTH PLAIN ${plainLogin(`postmaster@${via}`, PASSWORD)}`)) ?? '', /^235/)
  await client.say(`MAIL FROM:<a@${via}>`)
  await client.say(`RCPT TO:<${to}>`)
  await client.say('DATA')
  client.write(`${message}.\r\n`)
  const reply = (await client.reply()) ?? ''
  await client.say('QUIT')
  return reply
}

/** From outside, without login, with a sender that proves nothing. */
async function fromOutside(
  { scene, t }: Cell,
  to: string,
  message: string,
  sender = 'x@elsewhere.example',
): Promise<string> {
  const client = await openDialogue(t, { host: scene.service.config.smtpHost, port: scene.internet.port })
  await client.reply()
  await client.say('EHLO client.example')
  await client.say(`MAIL FROM:<${sender}>`)
  const taken = (await client.say(`RCPT TO:<${to}>`)) ?? ''
  if (!taken.startsWith('250')) return taken
  await client.say('DATA')
  client.write(`${message}.\r\n`)
  const reply = (await client.reply()) ?? ''
  await client.say('QUIT')
  return reply
}

async function newList({ scene, via, to }: Cell, vars: Record<string, string>): Promise<string> {
  const address = `l${to.split('@')[0]}@${via}`
  const { call } = scene.attacker
  assert.equal((await call('POST', '/v3/lists', { form: { address, access_level: 'everyone' } })).status, 200)
  const members = JSON.stringify([{ address: to, vars }])
  const added = await call('POST', `/v3/lists/${address}/members.json`, { form: { members } })
  assert.equal(added.status, 200, added.text)
  return address
}

async function newRoute({ scene, via, to }: Cell, action: string): Promise<string> {
  const address = `r${to.split('@')[0]}@${via}`
  const made = await scene.attacker.call('POST', '/v3/routes', {
    form: { expression: `match_recipient("${address}")`, action },
  })
  assert.equal(made.status, 200, made.text)
  return address
}

/** From an outsider's mail to the attacker's own inbox, sent again from there. */
async function resend(cell: Cell): Promise<string> {
  const { scene, via, to, author } = cell
  const address = await newRoute(cell, 'store()')
  const reply = await fromOutside(cell, address, mime(`From: ${boss(author)}`, `To: ${address}`))
  assert.match(reply, /^250/)
  const key = await eventually('the stored message', async () => {
    const { body } = await scene.attacker.call('GET', `/v3/${via}/events?recipient=${address}&event=accepted`)
    return body.items[0]?.storage.key as string | undefined
  })
  const again = await scene.attacker.call('POST', `/v3/domains/${via}/messages/${key}`, { form: { to } })
  return String(again.status)
}

const HIDDEN = (author: string) => `From: =?utf-8?Q?boss=40${author}=2C?= \u00e9${'x'.repeat(5)} <a@OWN>`

const WAYS: Readonly<Record<string, Send>> = {
  from: (cell) => post(cell, { from: boss(cell.author) }),
  'from, in capitals': (cell) => post(cell, { from: `boss@${cell.author.toUpperCase()}` }),
  'from, in full width': (cell) => post(cell, { from: `boss@${fullWidth(cell.author)}` }),
  'from, with a final dot': (cell) => post(cell, { from: `boss@${cell.author}.` }),
  'from, second of two': (cell) => post(cell, { from: `a@${cell.via}, boss@${cell.author}` }),
  'from, in a group': (cell) => post(cell, { from: `Team: boss@${cell.author};` }),
  'from, after a comment': (cell) => post(cell, { from: `(a@${cell.via}) boss@${cell.author}` }),
  'from, a name with a variable': (cell) =>
    post(cell, {
      from: `"%recipient.n%" <a@${cell.via}>`,
      ...batch(cell.to, { n: `x" <boss@${cell.author}>, "y` }),
    }),
  'from, a local part with a variable': (cell) =>
    post(cell, {
      from: `%recipient.n%@${cell.via}`,
      ...batch(cell.to, { n: `boss@${cell.author}>, <a` }),
    }),
  'h:From': (cell) => post(cell, { 'h:From': boss(cell.author) }),
  'h:from, in capitals': (cell) => post(cell, { 'h:FROM': `BOSS@${cell.author.toUpperCase()}` }),
  'h:From, without quotes': (cell) => post(cell, { 'h:From': `a@${cell.via} <boss@${cell.author}>` }),
  'h:From, a variable': (cell) =>
    post(cell, { 'h:From': '%recipient.from%', ...batch(cell.to, { from: boss(cell.author) }) }),
  'h:From, a variable for the domain': (cell) =>
    post(cell, { 'h:From': 'Ann <boss@%recipient.d%>', ...batch(cell.to, { d: cell.author }) }),
  'h:X-Note, with a line end': (cell) =>
    post(cell, {
      'h:X-Note': 'a %recipient.x%',
      ...batch(cell.to, { x: `b\r\nFrom: boss@${cell.author}\r\nX-Rest: c` }),
    }),
  'subject, with a line end': (cell) =>
    post(cell, { subject: '%recipient.x%', ...batch(cell.to, { x: `b\r\nFrom: boss@${cell.author}` }) }),
  'template, fixed': (cell) => postTemplate(cell, boss(cell.author)),
  'template, fixed, in a batch': (cell) => postTemplate(cell, boss(cell.author), batch(cell.to, {})),
  'template, t: variable': (cell) =>
    postTemplate(cell, 'Ann <{{from}}>', { 't:variables': JSON.stringify({ from: `boss@${cell.author}` }) }),
  'template, recipient variable': (cell) =>
    postTemplate(cell, '{{from}}', {
      't:variables': JSON.stringify({ from: '%recipient.from%' }),
      ...batch(cell.to, { from: boss(cell.author) }),
    }),
  'template, h:From empty': (cell) => postTemplate(cell, boss(cell.author), { 'h:From': '' }),
  MIME: (cell) => post(cell, { message: mime(`From: ${boss(cell.author)}`) }, 'messages.mime'),
  'MIME, in full width': (cell) =>
    post(cell, { message: mime(`From: Ann <boss@${fullWidth(cell.author)}>`) }, 'messages.mime'),
  'MIME, folded': (cell) =>
    post(cell, { message: mime(`From: Ann\r\n Lee\r\n\t<boss@${cell.author}>`) }, 'messages.mime'),
  'MIME, a blank before the colon': (cell) =>
    post(cell, { message: mime('X-First: 1', `From : boss@${cell.author}`) }, 'messages.mime'),
  'MIME, two fields': (cell) =>
    post(cell, { message: mime(`From: a@${cell.via}`, `From: boss@${cell.author}`) }, 'messages.mime'),
  'MIME, two fields and h:From': (cell) =>
    post(
      cell,
      {
        message: mime(`From: a@${cell.via}`, `From: boss@${cell.author}`),
        'h:From': `a@${cell.via}`,
      },
      'messages.mime',
    ),
  'MIME and h:From': (cell) =>
    post(cell, { message: mime(`From: a@${cell.via}`), 'h:From': boss(cell.author) }, 'messages.mime'),
  'MIME, a variable': (cell) =>
    post(
      cell,
      {
        message: mime(`From: "%recipient.n%" <a@${cell.via}>`),
        ...batch(cell.to, { n: `x" <boss@${cell.author}>, "y` }),
      },
      'messages.mime',
    ),
  'MIME, hidden in an encoded word': (cell) =>
    post(cell, { message: mime(HIDDEN(cell.author).replace('OWN', cell.via)) }, 'messages.mime'),
  'MIME, an encoded word on a long line': (cell) =>
    post(
      cell,
      {
        message: mime(`From: =?utf-8?Q?boss=40${cell.author}=2C?= "${'long '.repeat(250)}" <a@${cell.via}>`),
      },
      'messages.mime',
    ),
  SMTP: (cell) => smtp(cell, mime(`From: ${boss(cell.author)}`)),
  'SMTP, two fields': (cell) => smtp(cell, mime(`From: a@${cell.via}`, `From: boss@${cell.author}`)),
  'SMTP, a variable': (cell) =>
    smtp(
      cell,
      mime(
        `From: "%recipient.n%" <a@${cell.via}>`,
        `X-Service-Recipient-Variables: ${JSON.stringify({ [cell.to]: { n: `x" <boss@${cell.author}>, "y` } })}`,
      ),
    ),
  'list, from': async (cell) => post(cell, { to: await newList(cell, {}), from: boss(cell.author) }),
  "list, a member's variable": async (cell) =>
    post(cell, {
      to: await newList(cell, { from: boss(cell.author) }),
      'h:From': '%recipient.from%',
    }),
  'list, a post from outside': async (cell) => {
    const list = await newList(cell, {})
    return fromOutside(cell, list, mime(`From: ${boss(cell.author)}`, `To: ${list}`))
  },
  'route, a forward': async (cell) => {
    const address = await newRoute(cell, `forward("${cell.to}")`)
    return fromOutside(cell, address, mime(`From: ${boss(cell.author)}`, `To: ${address}`))
  },
  'route, a forward with two authors': async (cell) => {
    const address = await newRoute(cell, `forward("${cell.to}")`)
    return fromOutside(cell, address, mime(`From: a@${cell.via}, boss@${cell.author}`, `To: ${address}`))
  },
  resend,
}

/** From is not the text of these in an honest mail, whoever's name it is. */
const NEVER_HONEST = new Set([
  'from, with a final dot',
  'from, a local part with a variable',
  'MIME, two fields',
  'MIME, two fields and h:From',
  'SMTP, two fields',
])

test('no mail of an account passes DMARC as the author of another one, however From is set', async (t) => {
  const scene = await startScene(t)
  const { internet, platform, victim, attacker, service, sink } = scene
  for (const name of ['victim.example', 'platform.example', 'attacker.example'])
    internet.dns.set(`_dmarc.${name}`, 'TXT', ['v=DMARC1; p=reject'])
  await scene.verified(platform, 'platform.example')
  await scene.verified(victim.call, 'victim.example')
  await scene.verified(victim.call, 'mg.victim.example')
  await scene.verified(attacker.call, 'attacker.example', { smtp_password: PASSWORD })
  const granted = callAs(service, attacker.id)
  await scene.verified(granted, 'b.victim.example', { smtp_password: PASSWORD })
  await scene.verified(granted, 'tenant.platform.example', { smtp_password: PASSWORD })
  await scene.verified(attacker.call, 'other.example', { smtp_password: PASSWORD })
  const host = 'bounce.b.victim.example'
  internet.dns.set(host, 'TXT', [`v=spf1 include:${SPF_HOST} -all`])
  const chosen = await attacker.call('PUT', '/v4/domains/other.example', { form: { mailfrom_host: host } })
  assert.equal(chosen.status, 200, chosen.text)
  await attacker.call('PUT', '/v4/domains/other.example/verify')

  const cells: { way: string; target: (typeof TARGETS)[number]; to: string; reply: string }[] = []
  for (const [way, send] of Object.entries(WAYS)) {
    for (const target of TARGETS) {
      const [, author, via] = target
      const to = `c${cells.length}@sink.example`
      cells.push({ way, target, to, reply: await send({ scene, t, author, via, to }) })
    }
  }
  const table = new Map<string, string[]>()
  const faults: string[] = []
  for (const { way, target, to, reply } of cells) {
    const [whose, author, via, isForeign] = target
    const outcome = await outcomeOf(scene, via, to, reply)
    const mails = sink.messages.filter(({ envelope }) => envelope.to.includes(to))
    const verdicts = await Promise.all(mails.map((mail) => judgeAuthors(mail, scene.txt)))
    const passes = verdicts.flatMap((verdict) => verdict.passes)
    const own = ['attacker.example', 'b.victim.example', via]
    const stolen = isForeign ? passes.filter((name) => !own.includes(name)) : []
    const shown = passes.length > 0 ? `${outcome}, passes as ${passes.join(' and ')}` : outcome
    table.set(way, [...(table.get(way) ?? []), shown])
    if (stolen.length > 0) faults.push(`${way} as ${whose} (${author}): DMARC passes for ${stolen}`)
    if (!isForeign && !NEVER_HONEST.has(way) && outcome !== 'delivered')
      faults.push(`${way} as ${whose} (${author}): ${outcome}, ${reply}`)
  }
  t.diagnostic(`way: ${TARGETS.map(([whose, author, via]) => `${whose}, ${author} by ${via}`).join(' | ')}`)
  for (const [way, row] of table) t.diagnostic(`${way}: ${row.join(' | ')}`)
  assert.deepEqual(faults, [])
})

test('an author of nobody’s domain gets a Sender, whatever set From', async (t) => {
  const scene = await startScene(t)
  const via = 'attacker.example'
  await scene.verified(scene.attacker.call, via)
  const ways = ['from', 'h:From', 'h:From, a variable', 'template, fixed', 'template, t: variable']
  for (const [at, way] of ways.entries()) {
    const to = `s${at}@sink.example`
    const send = WAYS[way] as Send
    assert.equal(await send({ scene, t, author: 'nobody.example', via, to }), '200', way)
    const [mail] = (await scene.sink.waitFor(at + 1)).slice(at)
    const head = mail?.raw.toString().split('\r\n\r\n')[0] as string
    assert.match(head, /^From: (?:Ann Lee|Ann) <boss@nobody\.example>\r$/m, way)
    assert.match(head, /^Sender: postmaster@attacker\.example\r$/m, way)
  }
})

test('mail that the other account has sent is forwarded, and a list shows its author', async (t) => {
  const scene = await startScene(t)
  const { internet, victim, attacker, service, sink } = scene
  internet.dns.set('_dmarc.victim.example', 'TXT', ['v=DMARC1; p=none'])
  await scene.verified(victim.call, 'victim.example')
  await scene.verified(callAs(service, attacker.id), 'b.victim.example')
  const cell = { scene, t, author: 'victim.example', via: 'b.victim.example', to: 'p0@sink.example' }
  const send = (to: string) =>
    fromOutside(cell, to, mime('From: Ann <ann@victim.example>', `To: ${to}`), 'ann@victim.example')
  assert.match(await send(await newRoute(cell, `forward("${cell.to}")`)), /^250/)
  assert.match(await send(await newList({ ...cell, to: 'p1@sink.example' }, {})), /^250/)
  const copies = await sink.waitFor(2)
  const fromOf = (to: string) =>
    /^From: .*$/m.exec(copies.find(({ envelope }) => envelope.to[0] === to)?.raw.toString() ?? '')?.[0].trim()
  assert.equal(fromOf('p0@sink.example'), 'From: Ann <ann@victim.example>')
  assert.equal(fromOf('p1@sink.example'), 'From: Ann via lp1 <lp1@b.victim.example>')
})

/** `refused` at once, or what became of the copy. */
async function outcomeOf({ attacker }: Scene, via: string, to: string, reply: string): Promise<string> {
  if (!/^2/.test(reply)) return 'refused'
  const find = async (query: string) => {
    const { body } = await attacker.call('GET', `/v3/${via}/events?${query}`)
    return body.items as { event: string; message: unknown }[]
  }
  // A rejected copy names the recipients of its message: a list by its address, which begins with the member's.
  const isOf = ({ message }: { message: unknown }) => JSON.stringify(message).includes(`${to.split('@')[0]}@`)
  return eventually(`an outcome of ${to} after ${reply}`, async () => {
    const ended = (await find(`recipient=${to}`)).find(({ event }) => ['delivered', 'failed'].includes(event))
    return ended?.event ?? (await find('event=rejected&limit=300')).find(isOf)?.event
  })
}
