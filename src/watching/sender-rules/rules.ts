/** What Gmail, Yahoo and Microsoft require of senders, judged for one domain (own-operations.md section 13). Pure. */
import { type DmarcPolicy, readDmarc } from '../../protocols/dns/dmarc.ts'
import { FAMILIES, type Family, type RuleFinding, type SenderRules } from './shapes.ts'

export interface SenderFacts {
  domain: string
  /** By the last checks in DNS; null: not looked up, or no answer. */
  spf: boolean | null
  dkim: boolean | null
  /** `record`: '' without one; `policy`: what receivers do with mail of the domain that fails, null: unknown or no DMARC. */
  dmarc: { valid: boolean | null; record: string; policy: DmarcPolicy | null; sentence: string }
  /** In the last 30 days. */
  delivered: number
  complaints: number
  /** Recipients that ended, and those of them whose mailbox does not exist. */
  processed: number
  hardBounces: number
  /** Messages to each provider on the busiest of these days. */
  busiestDays: Readonly<Record<Family, number>>
  /** Which mail gets the fields of RFC 8058 by the domain's settings. */
  oneClickOn: 'all mail' | 'bulk mail' | 'none'
  /** Whether addresses at the domain get mail; null: no answer of DNS, or no MX record. */
  receives: boolean | null
  /** TXT at `default._bimi`; null: no answer. */
  bimi: readonly string[] | null
}

/** Gmail and Microsoft publish it; Yahoo names no number. */
const BULK_PER_DAY = 5_000
/** Gmail asks for less than 0.1 %, and limits senders from 0.3 %. */
const SPAM_RATE_GOOD = 0.001
const SPAM_RATE_MAX = 0.003
/** No provider names a number; blocks are usual from there on. */
const HARD_BOUNCE_RATE_MAX = 0.05
/** Fewer say nothing about a rate of one in a thousand. */
const DELIVERED_MIN = 1_000

export function judgeSender(facts: SenderFacts): SenderRules {
  const bimi: BimiFinding =
    facts.bimi === null
      ? { passed: null, sentence: 'DNS gave no answer about the BIMI record.' }
      : judgeBimi(facts.domain, facts.bimi, facts.dmarc)
  const providers = FAMILIES.map((provider) => {
    const busiest_day = facts.busiestDays[provider]
    return { provider, is_bulk_sender: busiest_day > BULK_PER_DAY, busiest_day }
  })
  return {
    is_bulk_sender: providers.some(({ is_bulk_sender }) => is_bulk_sender),
    busiest_day: Math.max(...providers.map(({ busiest_day }) => busiest_day)),
    providers,
    rules: [
      {
        rule: 'spf',
        required_of: 'everybody',
        required_by: [...FAMILIES],
        passed: facts.spf,
        sentence: recordSentence('SPF', facts.spf),
      },
      {
        rule: 'dkim',
        required_of: 'everybody',
        required_by: [...FAMILIES],
        passed: facts.dkim,
        sentence: recordSentence('DKIM', facts.dkim),
      },
      {
        rule: 'dmarc',
        required_of: 'bulk senders',
        required_by: [...FAMILIES],
        passed: facts.dmarc.valid,
        sentence: facts.dmarc.sentence || 'The DMARC record was not looked up yet.',
      },
      spamRate(facts),
      {
        rule: 'one-click-unsubscribe',
        required_of: 'bulk senders',
        required_by: [...FAMILIES],
        passed: facts.oneClickOn !== 'none',
        sentence:
          facts.oneClickOn !== 'none'
            ? `List-Unsubscribe and List-Unsubscribe-Post are added to ${facts.oneClickOn} of this domain.`
            : 'Subscribed mail needs one-click unsubscribe (RFC 8058): switch on unsubscribe tracking for this domain, or write both fields yourself.',
      },
      replyAddress(facts),
      listHygiene(facts),
      { rule: 'bimi', required_of: 'nobody', required_by: [], ...bimi },
    ],
  }
}

function recordSentence(name: string, valid: boolean | null): string {
  if (valid === null) return `The ${name} record was not looked up yet, or DNS gave no answer.`
  return valid
    ? `The ${name} record is valid.`
    : `The ${name} record is missing or wrong: /sendwright/v1/domains/{name}/dns says what to publish.`
}

function spamRate({ delivered, complaints }: SenderFacts): RuleFinding {
  const rate = delivered === 0 ? 0 : complaints / delivered
  const common = {
    rule: 'spam-rate' as const,
    required_of: 'everybody' as const,
    required_by: ['gmail', 'yahoo'] as Family[],
    figure: rate.toFixed(4),
    limit: SPAM_RATE_MAX.toFixed(4),
  }
  if (delivered < DELIVERED_MIN)
    return {
      ...common,
      passed: null,
      sentence: `Fewer than ${DELIVERED_MIN} deliveries in 30 days say nothing about the rate of complaints.`,
    }
  if (rate >= SPAM_RATE_MAX)
    return {
      ...common,
      passed: false,
      sentence:
        'Three in a thousand recipients or more call the mail spam: write only to those who asked for it, and remove those who do not open it.',
    }
  if (rate >= SPAM_RATE_GOOD)
    return {
      ...common,
      passed: true,
      sentence:
        'More than one in a thousand recipients call the mail spam: receivers still take it, but watch the lists it is sent to.',
    }
  return {
    ...common,
    passed: true,
    sentence:
      'Fewer than one in a thousand recipients call the mail spam. Gmail reports no complaints to senders: look at its Postmaster Tools too.',
  }
}

function replyAddress({ domain, receives }: SenderFacts): RuleFinding {
  return {
    rule: 'reply-address',
    required_of: 'bulk senders',
    required_by: ['microsoft'],
    passed: receives,
    sentence:
      receives === null
        ? `Whether addresses at ${domain} get replies is unknown: ${domain} has no MX record, or DNS gave no answer.`
        : receives
          ? `Addresses at ${domain} get mail: write From or Reply-To with one that somebody reads.`
          : `The MX record of ${domain} says that it takes no mail: publish one that does, or write Reply-To with an address elsewhere.`,
  }
}

function listHygiene({ processed, hardBounces }: SenderFacts): RuleFinding {
  const rate = processed === 0 ? 0 : hardBounces / processed
  const isKnown = processed >= DELIVERED_MIN
  return {
    rule: 'list-hygiene',
    required_of: 'bulk senders',
    required_by: ['microsoft'],
    passed: isKnown ? rate < HARD_BOUNCE_RATE_MAX : null,
    figure: rate.toFixed(4),
    limit: HARD_BOUNCE_RATE_MAX.toFixed(4),
    sentence: !isKnown
      ? `Fewer than ${DELIVERED_MIN} deliveries in 30 days say nothing about the state of the lists.`
      : rate < HARD_BOUNCE_RATE_MAX
        ? 'Few recipients are addresses that do not exist.'
        : 'Many recipients are addresses that do not exist: check old lists before you send to them, and confirm new addresses.',
  }
}

/**
 * Brand Indicators for Message Identification: whether receivers would show the domain's logo, and what is missing. The
 * record is at `default._bimi`; the logo is not fetched. Pure.
 */
export interface BimiFinding {
  /** Null: the domain has no record, which it need not have. */
  passed: boolean | null
  sentence: string
}

/**
 * Brand Indicators for Message Identification: whether receivers would show the domain's logo, and what is missing. The logo
 * is not fetched. `records`: TXT at `default._bimi`.
 */
export function judgeBimi(
  domain: string,
  records: readonly string[],
  dmarc: Pick<SenderFacts['dmarc'], 'record' | 'policy'>,
): BimiFinding {
  const own = records.filter((text) => /^v\s*=\s*BIMI1\s*(?:;|$)/i.test(text))
  const [record] = own
  const name = `default._bimi.${domain}`
  if (record === undefined)
    return {
      passed: null,
      sentence: `There is no BIMI record at ${name}: receivers show no logo, which is optional.`,
    }
  if (own.length > 1)
    return { passed: false, sentence: `There are several BIMI records at ${name}: leave one.` }
  const tags = tagsOf(record)
  const logo = tags.get('l') ?? ''
  if (!isHttps(logo))
    return {
      passed: false,
      sentence: `The BIMI record names no logo: l= must be an https URL of an SVG file.`,
    }
  const evidence = tags.get('a') ?? ''
  if (evidence !== '' && !isHttps(evidence))
    return {
      passed: false,
      sentence: 'The a= tag of the BIMI record must be an https URL of a mark certificate.',
    }
  if (!isEnforced(dmarc))
    return {
      passed: false,
      sentence:
        'Receivers show a logo only for domains whose DMARC policy is quarantine or reject, for all mail and all subdomains: change p= and sp=, and remove t= and pct=.',
    }
  return evidence === ''
    ? {
        passed: true,
        sentence:
          'The BIMI record is complete. Gmail and Apple show the logo only with a mark certificate in a=.',
      }
    : { passed: true, sentence: 'The BIMI record is complete.' }
}

/** Receivers of RFC 7489 apply pct= still. */
function isEnforced({ record, policy }: Pick<SenderFacts['dmarc'], 'record' | 'policy'>): boolean {
  const read = readDmarc(record)
  const isPartial = (tagsOf(record).get('pct') ?? '100') !== '100'
  return (
    read !== null &&
    policy !== 'none' &&
    policy !== null &&
    read.subdomainPolicy !== 'none' &&
    !read.isTesting &&
    !isPartial
  )
}

/** `name=value` parts of a record, by name in lower case. */
export function tagsOf(record: string): Map<string, string> {
  return new Map(
    record.split(';').flatMap((part) => {
      const equals = part.indexOf('=')
      return equals > 0
        ? [[part.slice(0, equals).trim().toLowerCase(), part.slice(equals + 1).trim()] as const]
        : []
    }),
  )
}

const isHttps = (text: string) => /^https:\/\//i.test(text) && URL.canParse(text)
