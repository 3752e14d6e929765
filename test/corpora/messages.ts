/**
 * Real messages, good and broken (the fixtures of the Ruby library "mail"). Both of our readers, the one of whole messages
 * and the one of offsets that received mail goes through, must give the texts and files that mailparser gives.
 */
import { hash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type AddressObject, type EmailAddress, type ParsedMail, simpleParser } from 'mailparser'
import { type ReadMail, readMail } from '../../src/mail/accept/received-mail.ts'
import { readChunk, sliceChunk } from '../../src/protocols/message/mime-message.ts'
import { decodeCharset } from '../../src/protocols/mime/charset.ts'
import { type ParsedMessage, parseMessage } from '../../src/protocols/mime/parse.ts'
import { decodeContent } from '../../src/protocols/mime/transfer-encoding.ts'

/** By file and what differs: why ours is right, or as good. */
const REASONED: Readonly<Record<string, string>> = {
  'attachment_nonascii_filename: files': 'a name in raw UTF-8, which mailparser reads as Latin-1',
  'attachment_with_encoded_name: files': 'an invalid byte of ISO-2022-JP is shown as such',
  'raw_email8: files': 'the same',
  'attachment_pdf_non_ascii: text': 'ISO-8859-1 is read as Windows-1252, as by browsers',
  'attachment_pdf_non_ascii_lf: text': 'the same',
  'content_transfer_encoding_7-bit: text': 'the same',
  'content_transfer_encoding_7-bit: html': 'the same',
  'content_transfer_encoding_empty: html': 'Big5 with the extensions of the Encoding Standard',
  'invalid_subject_characters: subject': 'raw bytes that are no UTF-8 are read as Latin-1',
  'invalid_subject_characters: from': 'encoded words are none in a quoted string, RFC 2047 §5 (3)',
  'raw_email_bad_time: from': 'the same',
  'multiple_invalid_content_dispositions: html': 'a disposition that nobody knows does not hide a text',
  'multiple_invalid_content_dispositions: files': 'the same',
  'raw_email_with_binary_encoded: subject': 'the first of two subjects counts',
  'raw_email_with_multipart_mixed_quoted_boundary: subject': 'the same',
  'raw_email_incorrect_header: subject': 'a line that is no field ends the header, as for Postfix',
  'raw_email_incorrect_header: from': 'the same',
  'raw_email_incorrect_header: text': 'the same',
  'example13: subject': 'the same',
  'example13: text': 'the same',
  'example10: from': 'comments within an address, which mailparser does not know',
  'utf8_headers: from': 'domains are shown in A-labels',
}

type Facts = Record<'subject' | 'from' | 'text' | 'html' | 'files', unknown>

export async function run(folder: string, print: (line: string) => void): Promise<boolean> {
  const files = globSync('**/*.eml', { cwd: folder }).sort()
  const counts = { equal: 0, reasoned: 0, different: 0 }
  for (const file of files) {
    const raw = Buffer.from(readFileSync(join(folder, file), 'latin1').replace(/\r?\n/g, '\r\n'), 'latin1')
    const parsed = await parseMessage(raw)
    const ours = factsOf(parsed)
    const offsets = { ...ours, ...(await factsByOffsets(await readMail(raw))) }
    const other = factsOfOther(await simpleParser(raw, PLAIN), parsed)
    const name = file.replace(/^.*[\\/]|\.eml$/g, '')
    for (const key of Object.keys(ours) as (keyof Facts)[]) {
      const values = [ours, offsets, other].map((facts) => JSON.stringify(facts[key]))
      if (values.every((value) => value === values[0])) counts.equal++
      else if (REASONED[`${name}: ${key}`] !== undefined && values[0] === values[1]) counts.reasoned++
      else {
        counts.different++
        print([`${file}: ${key}`, ...values.map((value) => value?.slice(0, 300))].join('\n  '))
      }
    }
  }
  print(
    `${files.length} messages: ${counts.equal} facts are equal, ${counts.reasoned} differ with reason, ${counts.different} without`,
  )
  return counts.different === 0
}

const PLAIN = { skipHtmlToText: true, skipTextToHtml: true, skipImageLinks: true, skipTextLinks: true }

const squeezed = (text: string | null | false | undefined) => (text || '').replace(/\s+/g, ' ').trim()
const digest = (content: Uint8Array) => hash('sha256', content).slice(0, 8)
/** mailparser adds such parts to the text. */
const STATUS = 'message/delivery-status'

const factsOf = ({ subject, from, text, html, attachments }: ParsedMessage): Facts => ({
  subject: squeezed(subject),
  from: from.map(({ name, local, domain }) => [name, `${local}@${domain}`]),
  text: attachments.some(({ contentType }) => contentType === STATUS) ? '' : squeezed(text),
  html: squeezed(html),
  files: attachments
    .filter(({ contentType }) => contentType !== STATUS)
    .map(({ filename, content }) => [filename, digest(content)]),
})

async function factsByOffsets({ leaves, chunk, bodyStart }: ReadMail): Promise<Partial<Facts>> {
  const content = async (leaf: (typeof leaves)[number]) => {
    const bytes = await readChunk(sliceChunk(chunk, bodyStart + leaf.start, bodyStart + leaf.end))
    return decodeContent(bytes, leaf.encoding)
  }
  const isBody = ({ type, disposition, filename }: (typeof leaves)[number]) =>
    /^text\/(plain|html)$/.test(type) && disposition !== 'attachment' && filename === ''
  const textOf = async (type: string) => {
    const texts: string[] = []
    for (const leaf of leaves.filter((one) => isBody(one) && one.type === type))
      texts.push(decodeCharset(await content(leaf), leaf.charset))
    return squeezed(texts.join('\n'))
  }
  const files = leaves.filter((leaf) => !isBody(leaf) && leaf.type !== STATUS)
  return {
    ...(leaves.every(({ type }) => type !== STATUS) && { text: await textOf('text/plain') }),
    html: await textOf('text/html'),
    files: await Promise.all(files.map(async (leaf) => [leaf.filename, digest(await content(leaf))])),
  }
}

function factsOfOther({ subject, from, text, html, attachments }: ParsedMail, ours: ParsedMessage): Facts {
  const members = ({ value }: AddressObject): EmailAddress[] => value.flatMap((one) => one.group ?? [one])
  const nameOf = ({ name, address = '' }: EmailAddress) =>
    // It drops a name that is the address.
    name || (ours.from.find((one) => one.name === address)?.name ?? '')
  return {
    subject: squeezed(subject),
    from: from === undefined ? [] : members(from).map((one) => [nameOf(one), lowerDomain(one.address ?? '')]),
    text: ours.attachments.some(({ contentType }) => contentType === STATUS) ? '' : squeezed(text),
    html: squeezed(html),
    files: attachments.map(({ filename = '', content }) => [filename, digest(content)]),
  }
}

const lowerDomain = (address: string) => address.replace(/@[^@]*$/, (domain) => domain.toLowerCase())
