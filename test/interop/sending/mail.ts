/** The mail that every client sends, where it sends it, and what must have come of it. */
import assert from 'node:assert/strict'
import { simpleParser } from 'mailparser'
import { eventually } from '../../support/service.ts'
import type { Sink } from '../../support/smtp-sink.ts'

export const MAIL = {
  to: 'alice@example.org',
  subject: 'Bestellung 17 – größer',
  text: 'Thank you.\nYour order is on its way.',
  html: '<p>Thank <b>you</b>.</p>',
  tag: 'order',
  file: { name: 'note.txt', content: 'Packed by Ann, 2 kg.\n' },
}

/** A running service as clients see it. */
export interface Reach {
  /** Without TLS. */
  url: string
  /** `host:port` of the listener with TLS. */
  https: string
  /** PEM file of the authority that its certificate is from. */
  authorityFile: string
  key: string
  domain: string
  smtp: { host: string; port: number; user: string; password: string }
}

export const fromOf = ({ domain }: Reach) => `Shop <shop@${domain}>`

/** The mail as the recipient's server gets it, and its events. */
export async function assertArrived(reach: Reach, sink: Sink): Promise<void> {
  const [received] = await sink.waitFor(1)
  assert.deepEqual(received?.envelope.to, [MAIL.to])
  const mail = await simpleParser(received.raw)
  assert.equal(mail.from?.text.replaceAll('"', ''), fromOf(reach))
  assert.equal(mail.subject, MAIL.subject)
  assert.equal(mail.text?.trim(), MAIL.text)
  assert.equal(String(mail.html).trim(), MAIL.html)
  assert.deepEqual(
    mail.attachments.map(({ filename, content }) => [filename, content.toString()]),
    [[MAIL.file.name, MAIL.file.content]],
  )
  const signedBy = /\bd=([^;]+);/.exec(
    String(mail.headerLines.find(({ key }) => key === 'dkim-signature')?.line),
  )
  assert.equal(signedBy?.[1], reach.domain)
  await eventually('the delivered event', async () => {
    const answer = await fetch(`${reach.url}/v3/${reach.domain}/events?event=delivered&tags=${MAIL.tag}`, {
      headers: { authorization: `Basic ${Buffer.from(`api:${reach.key}`).toString('base64')}` },
    })
    const { items } = (await answer.json()) as {
      items: { recipient: string; message: { headers: object } }[]
    }
    const id = mail.messageId?.slice(1, -1)
    return items.some(
      ({ recipient, message }) =>
        recipient === MAIL.to && (message.headers as Record<string, string>)['message-id'] === id,
    )
  })
}
