/** The messages of the bench: plain ASCII prose of a given size, the same for every system. */
import { NUMBER_MARK } from './load.ts'

const WORDS =
  'the order you placed with us has been packed and will leave our house today please keep this letter for your records'.split(
    ' ',
  )
const LINE_CHARS = 72
const BOUNDARY = 'bench-boundary-7d1f0c'

export interface Content {
  subject: string
  text: string
  /** Null: text only. */
  html: string | null
}

/** Prose in lines with CRLF, of `bytes` bytes. */
function prose(bytes: number): string {
  let text = ''
  let line = ''
  for (let at = 0; text.length + line.length < bytes; at++) {
    line += `${line === '' ? '' : ' '}${WORDS[(at * 7) % WORDS.length]}`
    if (line.length < LINE_CHARS) continue
    text += `${line}\r\n`
    line = ''
  }
  return (text + line).slice(0, bytes).trimEnd()
}

/** Text and HTML of `bytes` bytes together, a fifth of it text; with `links` links in the HTML. */
export function makeContent(bytes: number, links = 0): Content {
  const textBytes = Math.floor(bytes / 5)
  const anchors = Array.from(
    { length: links },
    (_, n) =>
      `<p><a href="https://shop.example/article/${n}?campaign=autumn&amp;place=${n}">Article ${n}</a></p>`,
  ).join('\r\n')
  const htmlBytes = Math.max(0, bytes - textBytes - anchors.length - 60)
  return {
    subject: `Your order ${NUMBER_MARK}`,
    text: prose(textBytes),
    html: `<html><body>\r\n<p>${prose(htmlBytes)}</p>\r\n${anchors}\r\n</body></html>`,
  }
}

/** As a MIME message for the systems that accept SMTP. */
export function mimeMessage(from: string, to: string, { subject, text, html }: Content): string {
  const part = (type: string, body: string) =>
    `--${BOUNDARY}\r\nContent-Type: text/${type}; charset=utf-8\r\nContent-Transfer-Encoding: 7bit\r\n\r\n${body}\r\n`
  return [
    `From: Bench <${from}>`,
    `To: ${to}`,
    `Subject: ${subject}`,
    `Date: ${new Date().toUTCString().replace('GMT', '+0000')}`,
    `Message-ID: <${NUMBER_MARK}.${Date.now()}@${from.slice(from.indexOf('@') + 1)}>`,
    'MIME-Version: 1.0',
    `Content-Type: multipart/alternative; boundary="${BOUNDARY}"`,
    '',
    `${part('plain', text)}${html === null ? '' : part('html', html)}--${BOUNDARY}--`,
  ].join('\r\n')
}

/** A complete HTTP request that sends a message: multipart/form-data, like most client libraries. */
export function sendRequest(
  service: { host: string; port: number; domain: string; authorization: string },
  fields: readonly (readonly [name: string, value: string])[],
): string {
  const body = `${fields
    .map(
      ([name, value]) =>
        `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
    )
    .join('')}--${BOUNDARY}--\r\n`
  return [
    `POST /v3/${service.domain}/messages HTTP/1.1`,
    `Host: ${service.host}:${service.port}`,
    `Authorization: ${service.authorization}`,
    `Content-Type: multipart/form-data; boundary=${BOUNDARY}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    '',
    body,
  ].join('\r\n')
}

/** The form fields of a message to one recipient at `recipientDomain`. */
export function singleFields(
  domain: string,
  content: Content,
  recipientDomain = RECIPIENT_DOMAIN,
): [string, string][] {
  return [
    ['from', `Bench <sender@${domain}>`],
    ['to', `r${NUMBER_MARK}@${recipientDomain}`],
    ['subject', content.subject],
    ['text', content.text],
    ...(content.html === null ? [] : [['html', content.html] as [string, string]]),
  ]
}

export const RECIPIENT_DOMAIN = 'recipients.example'

/** The form fields of a call to `count` recipients, each with variables. */
export function batchFields(
  domain: string,
  content: Content,
  count: number,
  recipientDomain = RECIPIENT_DOMAIN,
): [string, string][] {
  const addresses = Array.from({ length: count }, (_, n) => `r${n}-${NUMBER_MARK}@${recipientDomain}`)
  const variables = Object.fromEntries(addresses.map((address, n) => [address, { name: `Reader ${n}`, n }]))
  return [
    ['from', `Bench <sender@${domain}>`],
    ...addresses.map((address): [string, string] => ['to', address]),
    ['subject', `${content.subject} for %recipient.name%`],
    ['text', `Hello %recipient.name%,\r\n\r\n${content.text}`],
    ...(content.html === null
      ? []
      : [['html', content.html.replace('<p>', '<p>Hello %recipient.name%,</p><p>')] as [string, string]]),
    ['recipient-variables', JSON.stringify(variables)],
  ]
}
