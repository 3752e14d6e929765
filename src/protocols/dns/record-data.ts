/**
 * Checks the records of a sending domain and explains, for the person who edits the zone, what to change. Each
 * check reads one answer of the resolver; no query is sent here.
 *
 * Every sentence names query, server and answer, so that it can be compared with `dig`.
 */
import { parseIp } from '../../base/net/ip.ts'
import { type DmarcRecord, isDmarcRecord, policyOf, readDmarc } from './dmarc.ts'
import { normalizeName } from './names.ts'
import { type DnsAnswer, isDefinite } from './resolver.ts'
import { isSpfRecord, mergeSpf, parseSpf } from './spf.ts'

/** Bounds the advice, which would otherwise repeat a record of several kilobytes. */
const SENTENCE_LENGTH_MAX = 8192

export interface RecordCheck {
  valid: boolean
  /**
   * DNS gave an answer, even if it was "no such record". False: a time-out or a failure, which says nothing about
   * the record.
   */
  answered: boolean
  /** What DNS returned, one text per record, valid or not. MX as "10 mx.example.org". */
  found: string[]
  sentence: string
}

const FOUND_MAX = 20 // a name with more is not a broken mail record; bounds what is stored and shown
const FOUND_LENGTH_MAX = 4096 // a 4096-bit RSA key takes 700 characters

/** SPF: exactly one record, with the mechanism `include:<includeHost>`. RFC 7208 §3.2, §5.2. */
export function checkSpf(answer: DnsAnswer<'TXT'>, includeHost: string): RecordCheck {
  const records = answer.records.filter(isSpfRecord)
  const fault = (sentence: string) => bad(answer, records, sentence)
  const wanted = `v=spf1 include:${includeHost} ~all`
  if (records.length === 0) {
    const near = answer.records.find((text) => /^\W*v\s*=\s*spf|^spf2/i.test(text))
    if (near === undefined) return missing(answer, answer.records, 'SPF record', `TXT record: ${wanted}`)
    const why = `"${near}" is not an SPF record: it must begin with "v=spf1 ".`
    return bad(answer, [near], `${why} Change it to: ${wanted}`)
  }
  if (records.length > 1)
    return fault(
      `${count(records.length)} SPF records were found; receivers treat that as an error. Merge them into one: ${mergeSpf(records, includeHost)}`,
    )
  const terms = parseSpf(records[0] as string)
  const host = normalizeName(includeHost)
  const at = terms.findIndex(
    (term) =>
      term.name === 'include' && ['', '+'].includes(term.qualifier) && normalizeName(term.value) === host,
  )
  if (at < 0)
    return fault(
      `The SPF record does not have include:${includeHost}. Change it to: ${mergeSpf(records, includeHost)}`,
    )
  const all = terms.findIndex((term) => term.name === 'all')
  const hidden =
    all >= 0 && all < at
      ? ` But receivers stop reading at "all", before the include: move it to the end.`
      : ''
  return good(answer, records, `The SPF record includes ${includeHost}.${hidden}`)
}

/**
 * DKIM: the record has the expected public key. `expected` is the value to publish ("k=rsa; p=MIIB...") or the key
 * alone in base64. Further tags are allowed unless they forbid our signatures. RFC 6376 §3.6.1.
 */
export function checkDkim(answer: DnsAnswer<'TXT'>, expected: string): RecordCheck {
  const wanted = parseTags(expected.includes('p=') ? expected : `k=rsa; p=${expected}`)
  const key = wanted.get('p') ?? ''
  const records = answer.records.filter((text) => parseTags(text).has('p'))
  const publish = `TXT record: ${[...wanted].map(([tag, value]) => `${tag}=${value}`).join('; ')}`
  const [record] = records
  if (record === undefined) {
    const found = answer.records
    if (found.length > 0)
      return bad(answer, found, `No TXT record there has a key (p=). Publish this ${publish}`)
    return missing(answer, found, 'DKIM key', publish)
  }
  if (records.length > 1) {
    const why = `${count(records.length)} keys were found under one selector; receivers take either of them.`
    return bad(answer, records, `${why} Leave only this ${publish}`)
  }
  const tags = parseTags(record)
  const problem = dkimProblem(tags, key, wanted.get('k') ?? 'rsa')
  if (problem !== '') return bad(answer, records, `${problem} Publish this ${publish}`)
  const testing = (tags.get('t') ?? '').split(':').includes('y')
  const note = testing ? ' It has t=y (testing), which lets receivers ignore the signature: remove it.' : ''
  return good(answer, records, `The DKIM record carries the right key.${note}`)
}

/** Why a receiver cannot use the record for our signatures; '' if it can. */
function dkimProblem(tags: Map<string, string>, key: string, algorithm: string): string {
  const found = tags.get('p') ?? ''
  const list = (tag: string) => (tags.get(tag) ?? '').split(':')
  if (found === '') return 'The key is empty (p=), which means that it was revoked.'
  if (found !== key) {
    if (key.startsWith(found))
      return `The key is cut off after ${found.length} of ${key.length} characters: split long values into several quoted strings of at most 255.`
    if (found.replace(/["\\]/g, '') === key)
      return 'The key has quotation marks or backslashes inside the value: remove them.'
    return 'The record carries another key.'
  }
  if (tags.has('v') && tags.get('v') !== 'DKIM1') return 'The tag v= must be DKIM1.'
  if ((tags.get('k') ?? 'rsa') !== algorithm) return `The tag k= must be ${algorithm}.`
  if (tags.has('h') && !list('h').includes('sha256')) return 'The tag h= does not allow sha256.'
  if (tags.has('s') && !list('s').some((use) => use === '*' || use === 'email'))
    return 'The tag s= does not allow email.'
  return ''
}

/** CNAME: the name is an alias of `target`, directly or through others. Accepts an answer of any type. */
export function checkCname(answer: DnsAnswer, target: string): RecordCheck {
  const { name, type } = answer.asked
  const direct = type === 'CNAME' ? (answer.records as readonly string[]) : []
  const found = [...answer.chain, ...direct]
  const host = normalizeName(target) ?? target
  if (found.includes(host)) return good(answer, found, `${name} is an alias of ${host}.`)
  if (!isDefinite(answer)) return unanswered(answer, found)
  if (found.length > 0)
    return bad(answer, found, `${name} is an alias of ${found.join(', then ')}. Point it to ${host}.`)
  if (answer.kind === 'records' && (type === 'A' || type === 'AAAA')) {
    const advice = `Replace them by a CNAME to ${host}; if your DNS provider proxies or flattens the name, switch that off for it.`
    return bad(answer, answer.records, `${name} has addresses and no CNAME. ${advice}`)
  }
  return missing(answer, [], 'CNAME record', `CNAME record: ${host}`)
}

/** A or AAAA: the name has the address `ip`. */
export function checkAddress(answer: DnsAnswer<'A'> | DnsAnswer<'AAAA'>, ip: string): RecordCheck {
  const { records, asked } = answer
  const same = (address: string) => parseIp(address)?.bits === parseIp(ip)?.bits
  if (records.some(same)) return good(answer, records, `${asked.name} has the address ${ip}.`)
  if (records.length === 0) return missing(answer, [], 'address', `${asked.type} record: ${ip}`)
  return bad(answer, records, `${asked.name} has the address ${records.join(', ')}. Change it to ${ip}.`)
}

/** MX: `host` is among the mail hosts of the name, whatever its preference. */
export function checkMx(answer: DnsAnswer<'MX'>, host: string): RecordCheck {
  const { name } = answer.asked
  const wanted = normalizeName(host) ?? host
  const found = answer.records.map((mx) => `${mx.preference} ${mx.exchange === '' ? '.' : mx.exchange}`)
  if (answer.records.some((mx) => mx.exchange === wanted))
    return good(answer, found, `${wanted} is among the mail hosts of ${name}.`)
  if (found.length === 0) return missing(answer, [], 'MX record', `MX record: 10 ${wanted}`)
  const fault = answer.records.every((mx) => mx.exchange === '')
    ? `The MX record "." says that ${name} takes no mail. Replace it by: 10 ${wanted}`
    : `Mail for ${name} goes to ${found.join(', ')}. To receive it here, add the MX record: 10 ${wanted}`
  return bad(answer, found, fault)
}

export interface DmarcUse {
  /** Domain of the header From. */
  fromDomain: string
  /** d= of our signatures. */
  dkimDomain: string
  /** Domain of the return path, for which receivers check SPF. */
  returnPathDomain: string
}

/** What a look-up beyond the record says (dmarc.ts). */
export interface DmarcFacts {
  /** Where the answer is from: the From domain, or one above it whose record applies. */
  at: string
  /** The From domain exists in DNS, which decides between `sp` and `np`. */
  exists: boolean
  /** Relaxed alignment: the same organizational domain as From; null: DNS gave no answer. */
  isDkimRelated: boolean | null
  isSpfRelated: boolean | null
}

/**
 * DMARC: one record with a policy, and at least one of DKIM and SPF aligned with the header From. RFC 9989 §4.4, §4.7,
 * §4.10.1.
 */
export function checkDmarc(answer: DnsAnswer<'TXT'>, use: DmarcUse, facts: DmarcFacts): RecordCheck {
  const records = answer.records.filter(isDmarcRecord)
  const fault = (sentence: string) => bad(answer, records, sentence)
  const wanted = 'v=DMARC1; p=none'
  const [text] = records
  if (text === undefined) return missing(answer, answer.records, 'DMARC record', `TXT record: ${wanted}`)
  if (records.length > 1)
    return fault(
      `${count(records.length)} DMARC records were found; receivers then use none of them. Leave one.`,
    )
  const record = readDmarc(text)
  if (record === null)
    return fault('The DMARC record has a tag twice, or is too long; receivers then ignore it. Leave one.')
  const policy = policyOf(use.fromDomain, { domain: facts.at, record }, facts.exists)
  if (policy === null) {
    const [tag = 'p'] = record.wrongTags
    return fault(
      `The DMARC record has no policy: ${tag}= must be none, quarantine or reject. Change it to: ${wanted}`,
    )
  }
  const aligned = (domain: string, isStrict: boolean, isRelated: boolean | null) =>
    normalizeName(domain) === normalizeName(use.fromDomain) || (!isStrict && isRelated)
  const dkim = aligned(use.dkimDomain, record.isDkimStrict, facts.isDkimRelated)
  const spf = aligned(use.returnPathDomain, record.isSpfStrict, facts.isSpfRelated)
  if (!dkim && !spf && (dkim === null || spf === null)) {
    const sentence = `DNS gave no answer about the domains above ${use.fromDomain}, so that its organization is unknown; try again later.`
    return { ...fault(sentence), answered: false }
  }
  if (!dkim && !spf) {
    const effect = policy === 'none' ? 'fails DMARC' : `fails DMARC and meets the policy "${policy}"`
    return fault(
      `Mail from ${use.fromDomain} ${effect}: neither the signing domain ${use.dkimDomain} nor the return path ${use.returnPathDomain} is aligned with it. Send from ${use.dkimDomain} or sign with ${use.fromDomain}.`,
    )
  }
  const by = dkim && spf ? 'DKIM and SPF' : dkim ? 'DKIM' : 'SPF'
  const weak = dkim ? '' : ' SPF breaks when mail is forwarded: align DKIM too.'
  return good(answer, records, `The DMARC policy is "${policy}"; ${by} aligned.${weak}${dmarcAdvice(record)}`)
}

/** What a valid record could say better; each sentence begins with a blank. */
function dmarcAdvice({ policy, aggregateUris, isTesting, wrongTags, obsoleteTags }: DmarcRecord): string {
  const tags = (names: readonly string[]) => names.map((name) => `${name}=`).join(', ')
  return [
    wrongTags.length > 0 &&
      ` The value of ${tags(wrongTags)} is missing or wrong, so that receivers use the default.`,
    isTesting && ' Its policy is under test (t=y): receivers apply one level less.',
    obsoleteTags.length > 0 && ` Remove ${tags(obsoleteTags)}, which RFC 9989 no longer has.`,
    policy === 'none' && aggregateUris.length === 0 && ' Add rua=mailto:... to receive reports.',
  ]
    .filter((sentence) => sentence !== false)
    .join('')
}

/** "a=b; c = d" with all blanks inside values removed; the first of equal tags counts. RFC 6376 §3.2. */
function parseTags(text: string): Map<string, string> {
  const tags = new Map<string, string>()
  for (const part of text.split(';')) {
    const at = part.indexOf('=')
    const tag = part.slice(0, Math.max(at, 0)).replace(/[\s"]/g, '').toLowerCase()
    if (tag !== '' && !tags.has(tag)) tags.set(tag, part.slice(at + 1).replace(/\s/g, ''))
  }
  return tags
}

function good(answer: DnsAnswer, found: readonly unknown[], sentence: string): RecordCheck {
  return { valid: true, answered: true, found: asTexts(found), sentence: explain(answer, sentence) }
}

function bad(answer: DnsAnswer, found: readonly unknown[], sentence: string): RecordCheck {
  return { valid: false, answered: true, found: asTexts(found), sentence: explain(answer, sentence) }
}

/** No such record: the name, the type or a matching value is missing. Or DNS gave no answer. */
function missing(answer: DnsAnswer, found: readonly unknown[], noun: string, publish: string): RecordCheck {
  if (!isDefinite(answer)) return unanswered(answer, [])
  const { name } = answer.asked
  const end = answer.chain.at(-1)
  const via = end === undefined ? '' : ` (an alias of ${end})`
  const state = answer.kind === 'nxdomain' ? 'does not exist' : `has no ${noun}`
  // The most common mistake, and one that the form of the DNS panel does not show.
  const panel =
    answer.kind === 'nxdomain'
      ? ' (Many DNS panels add the domain to the name by themselves: look whether it stands there twice.)'
      : ''
  return bad(answer, found, `${name}${via} ${state}.${panel} Add there this ${publish}`)
}

function unanswered(answer: DnsAnswer, found: readonly unknown[]): RecordCheck {
  const who = answer.server === '' ? 'No DNS server' : answer.server
  const sentence = `${who} gave no answer for ${answer.asked.type} records of ${answer.asked.name} (${answer.problem}). This says nothing about the record; try again later.`
  return { valid: false, answered: false, found: asTexts(found), sentence }
}

/** Query and server come first, so that a record to copy is at the end. */
function explain(answer: DnsAnswer, sentence: string): string {
  const server = answer.server === '' ? 'No server was' : `${answer.server} was`
  const source = `${server} asked for ${answer.asked.type} records of ${answer.asked.name}.`
  return `${source} ${sentence}`.slice(0, SENTENCE_LENGTH_MAX)
}

function asTexts(found: readonly unknown[]): string[] {
  return found.slice(0, FOUND_MAX).map((value) => String(value).slice(0, FOUND_LENGTH_MAX))
}

/** Small numbers as words, for the start of a sentence. */
function count(number: number): string {
  return ['Zero', 'One', 'Two', 'Three', 'Four', 'Five'][number] ?? String(number)
}
