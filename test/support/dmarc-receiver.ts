/**
 * What a receiver finds out about a mail's author: SPF (RFC 7208), DKIM (RFC 6376) and DMARC (RFC 7489), in a small reading of
 * its own that shares no code with the service. Only what the service's mail needs is known: `include`, `ip4` and `all` in SPF;
 * RSA and relaxed canonical forms in DKIM. An organization is the last two labels of a name.
 *
 * It is stricter than receivers in one way: each address-like word of each From field counts as an author, unless it is in quotes.
 */
import { createHash, createPublicKey, verify } from 'node:crypto'
import type { SinkMessage } from './smtp-sink.ts'

/** The texts of the TXT records of a name. */
export type TextRecords = (name: string) => Promise<readonly string[]>

export interface Verdict {
  /** Domains in From that DMARC passes for. */
  passes: string[]
  /** All domains in From. */
  authors: string[]
  /** `spf=<domain>` and `dkim=<domain>`, where they pass. */
  proofs: string[]
}

export async function judgeAuthors(mail: SinkMessage, txt: TextRecords): Promise<Verdict> {
  const raw = mail.raw.toString('latin1')
  const end = raw.indexOf('\r\n\r\n')
  const fields = fieldsIn(raw.slice(0, end))
  const body = raw.slice(end + 4)
  const sender = domainOf(mail.envelope.from)
  const proofs = (await spfPasses(sender, mail.remoteAddress, txt)) ? [`spf=${sender}`] : []
  for (const field of fields.filter(({ name }) => name === 'dkim-signature')) {
    const domain = await signerOf(field, fields, body, txt)
    if (domain !== null) proofs.push(`dkim=${domain}`)
  }
  const texts = fields.filter(({ name }) => name === 'from').map(({ value }) => unquoted(value))
  const authors = [...new Set(texts.flatMap((text) => text.match(/[^\s<>,;:()"]+@[^\s<>,;:()"]+/g) ?? []))]
  const domains = [...new Set(authors.map(domainOf))]
  const passes: string[] = []
  for (const domain of domains) if (await passesDmarc(domain, proofs, txt)) passes.push(domain)
  return { passes, authors: domains, proofs }
}

const unquoted = (text: string) => text.replace(/"(?:[^"\\]|\\.)*"/g, '')

interface Field {
  name: string
  raw: string
  value: string
}

function fieldsIn(head: string): Field[] {
  return head.split(/\r\n(?![ \t])/).map((raw) => {
    const colon = raw.indexOf(':')
    const value = raw.slice(colon + 1).replace(/\r\n/g, '')
    return { name: raw.slice(0, colon).trim().toLowerCase(), raw, value }
  })
}

const domainOf = (address: string) => address.slice(address.lastIndexOf('@') + 1).toLowerCase()
const organizationOf = (domain: string) => domain.split('.').slice(-2).join('.')

/** RFC 7489 §3.1, with the domain's own record or that of its organization (§6.6.3). */
async function passesDmarc(domain: string, proofs: readonly string[], txt: TextRecords): Promise<boolean> {
  const own = await txt(`_dmarc.${domain}`)
  const records = own.length > 0 ? own : await txt(`_dmarc.${organizationOf(domain)}`)
  const record = records.find((text) => text.startsWith('v=DMARC1'))
  if (record === undefined) return false
  const isStrict = (what: 'dkim' | 'spf') => new RegExp(`a${what}=s`).test(record)
  return proofs.some((proof) => {
    const [what, proven] = proof.split('=') as ['dkim' | 'spf', string]
    return proven === domain || (!isStrict(what) && organizationOf(proven) === organizationOf(domain))
  })
}

async function spfPasses(domain: string, ip: string, txt: TextRecords, depth = 0): Promise<boolean> {
  const records = (await txt(domain)).filter((text) => text.startsWith('v=spf1'))
  if (records.length !== 1 || depth > 10) return false
  for (const term of (records[0] as string).split(/\s+/).slice(1)) {
    if (term.startsWith('include:') && (await spfPasses(term.slice(8), ip, txt, depth + 1))) return true
    // The one network of a test.
    if (term === 'ip4:127.0.0.0/8' && ip.startsWith('127.')) return true
    if (term.endsWith('all')) return term === 'all' || term === '+all'
  }
  return false
}

/** The domain whose valid signature the field is; null: it is not valid. */
async function signerOf(
  signature: Field,
  fields: readonly Field[],
  body: string,
  txt: TextRecords,
): Promise<string | null> {
  const tags = new Map(
    signature.value.split(';').map((tag) => {
      const equals = tag.indexOf('=')
      return [tag.slice(0, equals).trim(), tag.slice(equals + 1).replace(/\s/g, '')]
    }),
  )
  if (tags.get('a') !== 'rsa-sha256' || tags.get('c') !== 'relaxed/relaxed') return null
  const hash = createHash('sha256').update(relaxedBody(body), 'latin1').digest('base64')
  if (hash !== tags.get('bh')) return null
  const left = new Map<string, Field[]>()
  for (const field of fields) left.set(field.name, [...(left.get(field.name) ?? []), field])
  const signed = (tags.get('h') as string)
    .toLowerCase()
    .split(':')
    .flatMap((name) => left.get(name)?.pop() ?? [])
    .map((field) => `${relaxedField(field)}\r\n`)
  const unsigned = { ...signature, raw: signature.raw.replace(/([;\s]b=)[^;]*/, '$1') }
  const [record] = await txt(`${tags.get('s')}._domainkey.${tags.get('d')}`)
  const published = /p=([^;\s]+)/.exec(record ?? '')?.[1]
  if (published === undefined) return null
  const key = createPublicKey({ key: Buffer.from(published, 'base64'), format: 'der', type: 'spki' })
  const data = Buffer.from(signed.join('') + relaxedField(unsigned), 'latin1')
  const isValid = verify('sha256', data, key, Buffer.from(tags.get('b') as string, 'base64'))
  return isValid ? (tags.get('d') as string).toLowerCase() : null
}

/** RFC 6376 §3.4.2. */
function relaxedField({ name, raw }: Field): string {
  const value = raw.slice(raw.indexOf(':') + 1)
  return `${name}:${value
    .replace(/\r\n/g, '')
    .replace(/[ \t]+/g, ' ')
    .trim()}`
}

/** RFC 6376 §3.4.4. */
function relaxedBody(body: string): string {
  const lines = body.replace(/[ \t]+(?=\r\n|$)/g, '').replace(/[ \t]+/g, ' ')
  const trimmed = lines.replace(/(?:\r\n)+$/, '')
  return trimmed === '' ? '' : `${trimmed}\r\n`
}
