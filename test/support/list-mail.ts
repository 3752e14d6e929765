/** Mailing lists at a domain that receives mail: a real client sends posts in, members' servers get the copies. */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import type { TestContext } from 'node:test'
import { authenticate } from 'mailauth'
import { createTransport } from 'nodemailer'
import { splitMessage } from '../../src/protocols/mime/split.ts'
import { createInternet, type Internet } from './internet.ts'
import { eventually, startTestService, type TestService } from './service.ts'
import type { Sink, SinkMessage } from './smtp-sink.ts'

export type Event = Record<string, unknown> & { event: string; recipient: string; storage: { key: string } }

/** A mail of a stranger. */
export interface Mail {
  to: string
  /** Whole From field; also the envelope sender, unless there is one. */
  from?: string
  sender?: string
  /** Further fields. */
  fields?: readonly string[]
  id?: string
  text?: string
  dkim?: { domainName: string; keySelector: string; privateKey: string }
}

export interface Scene {
  internet: Internet
  service: TestService
  sink: Sink
  newList(name: string, fields: Record<string, string>, members: readonly unknown[]): Promise<string>
  /** The reply to the final dot, or to what was refused before. */
  post(mail: Mail): Promise<string>
}

const KEY = generateKeyPairSync('rsa', { modulusLength: 2048 })
const PRIVATE = KEY.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
/** Signs for `signed.example`, whose policy is to reject. */
export const SUES_DKIM = { domainName: 'signed.example', keySelector: 'k1', privateKey: PRIVATE }
const PUBLIC = KEY.publicKey.export({ type: 'spki', format: 'der' }).toString('base64')

/** A string of a TXT record has at most 255 bytes. */
const inStrings = (text: string): string[] => text.match(/.{1,250}/g) ?? []

/** Authors at `good.example` are proven by SPF; its policy is to reject. `plain.example` is proven, and asks for nothing. */
export async function startScene(
  t: TestContext,
  database: 'sqlite' | 'postgres' = 'sqlite',
  env: Record<string, string> = {},
): Promise<Scene> {
  const internet = await createInternet(t)
  const { dns } = internet
  const spf = 'v=spf1 ip4:127.0.0.0/8 -all'
  for (const name of ['good.example', 'plain.example', 'evil.example']) dns.set(name, 'TXT', [spf])
  for (const name of ['good.example', 'signed.example'])
    dns.set(`_dmarc.${name}`, 'TXT', ['v=DMARC1; p=reject'])
  dns.set('k1._domainkey.signed.example', 'TXT', [inStrings(`v=DKIM1; k=rsa; p=${PUBLIC}`)])
  const sink = await internet.site(['members.example'])
  const settings = { ...internet.env, SENDWRIGHT_SMTP_PORT: String(internet.port), ...env }
  const service = await startTestService(t, settings, { database })
  internet.host(service.domain, 'mx.lists.example', service.config.smtpHost)
  return {
    internet,
    service,
    sink,
    async newList(name, fields, members) {
      const address = `${name}@${service.domain}`
      const made = await service.call('POST', '/v3/lists', { form: { address, ...fields } })
      assert.equal(made.status, 200, made.text)
      const form = { members: JSON.stringify(members) }
      const added = await service.call('POST', `/v3/lists/${address}/members.json`, { form })
      assert.equal(added.status, 200, added.text)
      return address
    },
    post: (mail) => post(service, mail),
  }
}

let posted = 0

async function post(service: TestService, mail: Mail): Promise<string> {
  const { to, from = 'Ann Lee <ann@good.example>', id = `<post-${++posted}@client.example>` } = mail
  const sender = mail.sender ?? /<([^>]*)>/.exec(from)?.[1] ?? from
  const fields = [`From: ${from}`, `To: ${to}`, 'Subject: lunch', `Message-Id: ${id}`, ...(mail.fields ?? [])]
  const raw = [...fields, 'Date: Mon, 1 Jun 2026 12:00:00 +0000', '', mail.text ?? 'At one?', ''].join('\r\n')
  const transport = createTransport({
    host: service.config.smtpHost,
    port: service.service.smtp.port,
    name: 'client.example',
    ignoreTLS: true,
    ...(mail.dkim && { dkim: mail.dkim }),
  })
  try {
    const envelope = { from: sender, to: [to] }
    return String((await transport.sendMail({ envelope, raw })).response)
  } catch (error) {
    return (error as { response?: string }).response ?? String(error)
  } finally {
    transport.close()
  }
}

export const RECEIVED = '250 2.0.0 Received'
export const NOT_ALLOWED = '550 5.7.1 posting to this list is not allowed'

export const fieldsOf = ({ raw }: SinkMessage, name: string) =>
  splitMessage(raw)
    .headers.filter((field) => field.name.toLowerCase() === name)
    .map(({ value }) => value)

export const recipientsOf = (messages: readonly SinkMessage[]) =>
  messages.flatMap(({ envelope }) => envelope.to).sort()

export const eventsOf = async ({ service }: Scene, query: string, count: number): Promise<Event[]> =>
  eventually(`${count} events ${query}`, async () => {
    const found = (await service.events(query)) as Event[]
    return found.length === count && found
  })

/** What a receiver of the copy says of it. */
export async function judged({ internet: { dns }, service }: Scene, copy: SinkMessage) {
  const { body } = await service.call('GET', `/v4/domains/${service.domain}`)
  for (const { name, value } of body.sending_dns_records as { name: string; value: string }[])
    if (name.includes('_domainkey')) dns.set(name, 'TXT', [inStrings(value)])
  const { Resolver } = await import('node:dns/promises')
  const resolver = new Resolver()
  resolver.setServers([`${dns.host}:${dns.port}`])
  const { dmarc, dkim } = await authenticate(copy.raw, {
    ...{ ip: '127.9.9.9', helo: 'x.example', sender: copy.envelope.from, mta: 'mx.members.example' },
    ...{ disableBimi: true, disableArc: true },
    resolver: ((name: string, type: string) => resolver.resolve(name, type)) as never,
  })
  return {
    dmarc: dmarc ? dmarc.status.result : null,
    dkim: dkim.results.map(({ signingDomain, status }) => `${signingDomain} ${status.result}`),
  }
}
