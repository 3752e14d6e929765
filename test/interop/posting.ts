/** Gives samples to a running service by SMTP and catches what it posts for them. */
import assert from 'node:assert/strict'
import { createDnsServer, type DnsServer } from '../support/dns-server.ts'
import type { ReceivedPost, Receiver } from '../support/http-receiver.ts'
import { type PostedForm, postedForm } from '../support/posted-form.ts'
import { eventually } from '../support/service.ts'
import { Dialogue } from '../support/smtp-dialogue.ts'
import type { Sample } from './samples.ts'

/** Settings of the service: under this prefix applications look for the fields that received mail is given. */
export const SETTINGS = {
  SENDWRIGHT_HEADER_PREFIX: 'X-Mailgun-',
  SENDWRIGHT_HEADER_PREFIX_ALIASES: 'X-Service-',
  SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
}

/** Names that the senders of samples are checked by. */
export async function startDns(): Promise<DnsServer> {
  const dns = await createDnsServer()
  dns.set('example.org', 'TXT', ['v=spf1 ip4:127.0.0.0/8 -all'])
  dns.set('spam.example', 'TXT', ['v=spf1 -all'])
  return dns
}

export interface Posting {
  /** An API key's authorization. */
  authorization: string
  url: string
  domain: string
  smtp: { host: string; port: number }
  receiver: Receiver
}

/** Paths that the applications are reached at. */
export interface Paths {
  parsed?: string
  raw: string
  notice?: string
}

export async function makeRoutes(
  { url, authorization, domain, receiver }: Posting,
  paths: Paths,
): Promise<string> {
  const call = async (method: string, path: string, form?: Record<string, string>) => {
    const body = form && new URLSearchParams(form)
    const answer = await fetch(url + path, { method, headers: { authorization }, ...(body && { body }) })
    assert.equal(answer.status, 200, `${method} ${path}: ${await answer.clone().text()}`)
    return (await answer.json()) as Record<string, string>
  }
  await call('PUT', `/v4/domains/${domain}`, { spam_action: 'tag' })
  for (const [to, path] of Object.entries(paths)) {
    const target = `${receiver.url}${path}`
    const action = to === 'notice' ? `store(notify="${target}")` : `forward("${target}")`
    await call('POST', '/v3/routes', { expression: `match_recipient("${to}@")`, action })
  }
  return (await call('GET', '/v5/accounts/http_signing_key'))['http_signing_key'] as string
}

/** The post that a mail leads to. */
export async function post({ smtp, domain, receiver }: Posting, sample: Sample): Promise<ReceivedPost> {
  const before = receiver.posts.length
  const client = await Dialogue.open(smtp)
  try {
    await client.reply()
    await client.say('EHLO client.example')
    await client.say(`MAIL FROM:<${sample.from}> BODY=8BITMIME`)
    assert.equal(await client.say(`RCPT TO:<${sample.to}@${domain}>`), '250 2.1.5 OK')
    await client.say('DATA')
    client.write(Buffer.from(`${sample.raw.replaceAll(/^\./gm, '..')}.\r\n`, 'latin1'))
    assert.equal(await client.reply(), '250 2.0.0 Received', sample.name)
  } finally {
    client.destroy()
  }
  return eventually(`the post of "${sample.name}"`, async () => receiver.posts[before])
}

export type RecordedFile = { name: string; type: string; base64: string }
/** In the order of the form. */
export type RecordedFields = [name: string, value: string | RecordedFile][]

export async function fieldsOf(received: ReceivedPost): Promise<RecordedFields> {
  const form: PostedForm = await postedForm(received)
  return Promise.all(
    form.fields.map(async ([name, value]): Promise<RecordedFields[number]> => {
      if (typeof value === 'string') return [name, value]
      const base64 = Buffer.from(await value.arrayBuffer()).toString('base64')
      return [name, { name: value.name, type: value.type, base64 }]
    }),
  )
}
