/**
 * SPF, DKIM, ARC and DMARC (RFC 9989) of a received mail, by mailauth with the service's own resolver. Time, lookups and
 * signatures are bounded. A check that cannot be made is no reason to refuse the mail: its result says so.
 */
import { Readable } from 'node:stream'
import { domainToASCII } from 'node:url'
import type { Logger } from 'pino'
import type { Clock } from '../../base/time/clock.ts'
import type { SigningKey } from '../../protocols/dkim/sign.ts'
import type { DnsAnswer, Resolver } from '../../protocols/dns/resolver.ts'
import { type Chunk, readChunks } from '../../protocols/message/mime-message.ts'
import type { RawHeader } from '../../protocols/mime/split.ts'
import { unverifiableReason } from '../../protocols/mime/verifiable.ts'
import { rootDomainOf } from '../../sending/domains/names/domain-names.ts'

export interface CheckedMail {
  chunk: Chunk
  headers: readonly RawHeader[]
  /** Envelope sender. */
  sender: string
  remoteAddress: string
  helo: string
  /** Makes an ARC set for forwarded copies; null: none is needed. */
  sealingKey: SigningKey | null
}

export interface MailVerdict {
  /** Result of RFC 7208 §2.6. */
  spf: string
  /** Null: not signed. */
  dkim: 'pass' | 'fail' | null
  /** Domains that SPF or DKIM proved, in lower case. */
  provenDomains: readonly string[]
  author: AuthorCheck
  /** Raw field. */
  authenticationResults: string
  /** Raw fields of a new ARC set (RFC 8617); empty: none. */
  arcFields: readonly string[]
}

/** The author as From names them, and what SPF, DKIM and the domain's DMARC record say of them. */
export interface AuthorCheck {
  /** In lower case and ASCII; null: From does not name exactly one domain. */
  domain: string | null
  /**
   * The domain has sent the mail: DMARC passes, or SPF or DKIM passes for a domain of the same owner where there is no
   * record. A signature that leaves a part of the body out proves nothing.
   */
  isProven: boolean
  /** A look-up failed: another attempt may prove more. */
  isUnsure: boolean
  /** What the domain asks receivers to do with mail that it has not sent (RFC 9989 §4.7); null: unknown. */
  policy: 'none' | 'quarantine' | 'reject' | null
  /** A signature counts only if it is of exactly that domain, `adkim=s`. */
  isStrict: boolean
}

export type MailCheck = (mail: CheckedMail) => Promise<MailVerdict>

/** Gets everything that was found of a mail, for reports to the domain of its author. */
export type FindingObserver = (mail: CheckedMail, found: Finding) => void
export type Finding = Pick<Result, 'spf' | 'dkim' | 'dmarc'>

/** A client waits for the reply to its final dot for ten minutes (RFC 5321 §4.5.3.2.6). */
const TIME_MAX_MS = 15_000
/** SPF alone may need ten lookups and as many of hosts; DKIM and ARC one per signature. */
const LOOKUPS_MAX = 60
/** Each is a hash of the whole body. */
const SIGNATURES_MAX = 10
/** Characters of a TXT record: mailauth's time grows with its square. Keys and SPF records have below 2,000 characters. */
const TXT_LENGTH_MAX = 8_192

export function createMailCheck(parts: {
  resolver: Pick<Resolver, 'query'>
  hostname: string
  clock: Clock
  log: Logger
  observe?: FindingObserver | undefined
}): MailCheck {
  return async (mail) => {
    const reason = (await unverifiableReason(mail.chunk, mail.headers)) ?? tooManySignatures(mail.headers)
    if (reason !== null) return unchecked(parts.hostname, mail.headers, reason, false)
    const limit = new AbortController()
    const timer = parts.clock.setTimer(TIME_MAX_MS, () => limit.abort(new Error('timeout')))
    try {
      return await check(parts, mail, limit.signal)
    } catch (error) {
      parts.log.warn({ err: error }, 'cannot check the origin of a mail')
      return unchecked(parts.hostname, mail.headers, 'the check failed', true)
    } finally {
      timer.cancel()
    }
  }
}

async function check(
  {
    resolver,
    hostname,
    observe,
  }: { resolver: Pick<Resolver, 'query'>; hostname: string; observe?: FindingObserver | undefined },
  mail: CheckedMail,
  signal: AbortSignal,
): Promise<MailVerdict> {
  const { sealingKey } = mail
  // Loaded by the first mail: most services receive none, and it takes 10 MB.
  const { authenticate } = await import('mailauth')
  const result = await authenticate(Readable.from(readChunks([mail.chunk]), { objectMode: false }), {
    ip: mail.remoteAddress,
    helo: mail.helo,
    sender: mail.sender,
    mta: hostname,
    disableBimi: true,
    resolver: lookups(resolver, signal),
    ...(sealingKey && {
      seal: {
        signingDomain: sealingKey.domain,
        selector: sealingKey.selector,
        privateKey: sealingKey.privateKey.export({ type: 'pkcs8', format: 'pem' }),
      },
    }),
  })
  observe?.(mail, result)
  const fields = result.headers.split(/\r\n(?![ \t])/)
  const results = fields.find((field) => /^Authentication-Results:/i.test(field))
  const signed = isSigned(mail.headers)
  const signers = result.dkim.results.filter(({ status }) => status.result === 'pass')
  const bySpf = result.spf && result.spf.status.result === 'pass' ? [result.spf.domain] : []
  return {
    spf: result.spf ? result.spf.status.result : 'none',
    dkim: signed ? (signers.length > 0 ? 'pass' : 'fail') : null,
    provenDomains: [...bySpf, ...signers.map(({ signingDomain }) => signingDomain ?? '')].map((name) =>
      name.toLowerCase(),
    ),
    author: authorOf(result),
    authenticationResults: results ?? noResults(hostname, 'no result'),
    arcFields: fields.filter((field) => /^ARC-/i.test(field)),
  }
}

type Result = Awaited<ReturnType<typeof import('mailauth').authenticate>>

function authorOf({ dmarc, spf, dkim }: Result): AuthorCheck {
  if (!dmarc) return { ...NO_AUTHOR, isUnsure: false }
  const domain = domainToASCII(dmarc.status.header?.from ?? '') || null
  const found = dmarc.status.result
  const whole = dkim.results.filter(({ status }) => status.result === 'pass' && !status.underSized)
  const passed = [
    ...(spf && spf.status.result === 'pass' ? [spf.domain] : []),
    ...whole.map(({ signingDomain }) => signingDomain ?? ''),
  ].map((name) => domainToASCII(name) || name.toLowerCase())
  const failed = [
    ...(spf && spf.status.result === 'temperror' ? [spf.domain] : []),
    ...dkim.results
      .filter(({ status }) => status.result === 'temperror')
      .map((one) => one.signingDomain ?? ''),
  ]
  // A look-up that fails in a domain of somebody else could prove nothing about the author.
  const isOfAuthor = (name: string) =>
    domain !== null && rootDomainOf(name.toLowerCase()) === rootDomainOf(domain)
  const byRecord =
    found === 'pass' &&
    (dmarc.alignment.spf.result !== undefined ||
      (dmarc.alignment.dkim.result !== undefined && !dmarc.alignment.dkim.underSized)) &&
    // Alignment goes by the tree walk (RFC 9989 §4.10), which takes all tenants of a host with a record for one owner, as
    // long as it has no psd=y. Here strangers must not prove an author (decision 129).
    passed.some(isOfAuthor)
  const withoutRecord =
    found === 'none' &&
    domain !== null &&
    passed.some((name) => name !== '' && rootDomainOf(name) === rootDomainOf(domain))
  return {
    domain,
    isProven: byRecord || withoutRecord,
    isUnsure: found === 'temperror' || failed.some(isOfAuthor),
    policy: policyOf(dmarc),
    // Without a record there is no alignment, whatever the type says.
    isStrict: found !== 'none' && (dmarc.alignment?.dkim.strict ?? false),
  }
}

/** A policy under test (RFC 9989 §4.7) counts as one: older receivers apply it. */
function policyOf({ status, policy, testMode }: Exclude<Result['dmarc'], false>): AuthorCheck['policy'] {
  if (status.result === 'none') return 'none'
  if (status.result !== 'pass' && status.result !== 'fail') return null
  if (testMode) return 'quarantine'
  return policy === 'none' || policy === 'quarantine' || policy === 'reject' ? policy : null
}

const NO_AUTHOR = { domain: null, isProven: false, policy: null, isStrict: false } as const

const isSigned = (headers: readonly RawHeader[]) =>
  headers.some(({ name }) => name.toLowerCase() === 'dkim-signature')

function tooManySignatures(headers: readonly RawHeader[]): string | null {
  const count = headers.filter(({ name }) => /^(?:dkim|arc-message)-signature$/i.test(name)).length
  return count > SIGNATURES_MAX ? 'too many signatures' : null
}

const noResults = (hostname: string, reason: string) =>
  `Authentication-Results: ${hostname}; none (${reason})`

const unchecked = (
  hostname: string,
  headers: readonly RawHeader[],
  reason: string,
  isUnsure: boolean,
): MailVerdict => ({
  spf: 'none',
  dkim: isSigned(headers) ? 'fail' : null,
  provenDomains: [],
  author: { ...NO_AUTHOR, isUnsure },
  authenticationResults: noResults(hostname, reason),
  arcFields: [],
})

/** The resolver in the form of Node's, which mailauth expects. */
function lookups(resolver: Pick<Resolver, 'query'>, signal: AbortSignal) {
  let left = LOOKUPS_MAX
  return async (name: string, type: string) => {
    left -= 1
    if (left < 0 || signal.aborted) throw failure(name, 'ETIMEOUT')
    // The reason of the signal is no DNS error.
    const ask = <T extends 'A' | 'AAAA' | 'MX' | 'PTR' | 'TXT' | 'CNAME'>(of: T) =>
      resolver.query(name, of, { signal }).catch(() => {
        throw failure(name, 'ETIMEOUT')
      })
    switch (type) {
      case 'TXT':
        return recordsOf(await ask('TXT'))
          .filter((text) => text.length <= TXT_LENGTH_MAX)
          .map((text) => [text])
      case 'MX': {
        const records = recordsOf(await ask('MX'))
        // The types of mailauth know only texts; it reads MX records as Node's resolver gives them.
        return records.map(({ preference, exchange }) => ({ priority: preference, exchange })) as never
      }
      case 'A':
      case 'AAAA':
      case 'PTR':
      case 'CNAME':
        return [...recordsOf(await ask(type))]
      default:
        throw failure(name, 'ENODATA')
    }
  }
}

function recordsOf<T extends 'A' | 'AAAA' | 'MX' | 'PTR' | 'TXT' | 'CNAME'>(answer: DnsAnswer<T>) {
  if (answer.kind === 'records') return answer.records
  const codes: Partial<Record<DnsAnswer['kind'], string>> = { nodata: 'ENODATA', nxdomain: 'ENOTFOUND' }
  throw failure(answer.asked.name, codes[answer.kind] ?? 'ESERVFAIL')
}

const failure = (name: string, code: string) => Object.assign(new Error(`${code} ${name}`), { code })
