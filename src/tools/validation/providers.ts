/**
 * What is known of large mailbox providers: how their local parts are formed, which parts of an address they ignore, and
 * how their domains are mistyped. Rules refuse only what a provider never gave out, also long ago.
 */

interface LocalRule {
  domains: readonly string[]
  /** Pattern of the part before a plus sign, in lower case. */
  pattern: RegExp
  lengthMin: number
  lengthMax: number
  /** They count as nothing. */
  ignoresDots?: true
}

const RULES: readonly LocalRule[] = [
  {
    domains: ['gmail.com', 'googlemail.com'],
    pattern: /^[a-z0-9]+(?:\.[a-z0-9]+)*$/,
    lengthMin: 6,
    lengthMax: 30,
    ignoresDots: true,
  },
  {
    domains: ['outlook.com', 'hotmail.com', 'live.com', 'msn.com'],
    pattern: /^[a-z0-9][a-z0-9_-]*(?:\.[a-z0-9_-]+)*$/,
    lengthMin: 1,
    lengthMax: 64,
  },
  {
    // A hyphen separates the alias of a disposable address from its keyword.
    domains: ['yahoo.com', 'ymail.com', 'rocketmail.com'],
    pattern: /^[a-z0-9][a-z0-9_-]*(?:\.[a-z0-9_-]+)*$/,
    lengthMin: 3,
    lengthMax: 64,
  },
  {
    // Addresses of "Hide My Email" are longer than those that people choose.
    domains: ['icloud.com', 'me.com', 'mac.com'],
    pattern: /^[a-z0-9][a-z0-9_-]*(?:\.[a-z0-9_-]+)*$/,
    lengthMin: 3,
    lengthMax: 64,
  },
  {
    domains: ['aol.com', 'aim.com'],
    pattern: /^[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*$/,
    lengthMin: 3,
    lengthMax: 32,
  },
]

const RULE_OF = new Map(RULES.flatMap((rule) => rule.domains.map((domain) => [domain, rule] as const)))

/** Providers where the part after a plus sign leads to the same mailbox. */
const PLUS_ADDRESSING = new Set([
  ...['gmail.com', 'googlemail.com', 'outlook.com', 'hotmail.com', 'live.com', 'msn.com'],
  ...['icloud.com', 'me.com', 'mac.com', 'proton.me', 'protonmail.com', 'pm.me', 'fastmail.com', 'zoho.com'],
])

/** By the number of their mailboxes: of two that are as near, the first is suggested. */
const KNOWN_DOMAINS = [
  ...['gmail.com', 'yahoo.com', 'hotmail.com', 'outlook.com', 'icloud.com', 'aol.com', 'live.com'],
  ...['msn.com', 'googlemail.com', 'ymail.com', 'protonmail.com', 'proton.me', 'comcast.net', 'verizon.net'],
  ...['att.net', 'sbcglobal.net', 'gmx.de', 'gmx.net', 'web.de', 't-online.de', 'freenet.de', 'mail.com'],
  ...['yahoo.co.uk', 'hotmail.co.uk', 'btinternet.com', 'orange.fr', 'wanadoo.fr', 'laposte.net', 'free.fr'],
  ...['libero.it', 'virgilio.it', 'seznam.cz', 'qq.com', '163.com', 'mail.ru', 'yandex.ru'],
] as const

/** validation.md section 2 rule 3. */
const DISTANCE_MAX = 2

export const ignoresPlusPart = (domain: string): boolean => PLUS_ADDRESSING.has(domain)
export const ignoresDots = (domain: string): boolean => RULE_OF.get(domain)?.ignoresDots === true

/** False where the provider of the domain has never given out such a local part; true for unknown providers. */
export function followsProviderRules(local: string, domain: string): boolean {
  const rule = RULE_OF.get(domain)
  if (!rule) return true
  const plus = local.indexOf('+')
  const name = (plus > 0 && ignoresPlusPart(domain) ? local.slice(0, plus) : local).toLowerCase()
  const { length } = rule.ignoresDots ? name.replaceAll('.', '') : name
  return rule.pattern.test(name) && length >= rule.lengthMin && length <= rule.lengthMax
}

/** The known provider's domain that is meant, if this one differs from it by at most two letters; null: none. */
export function suggestedDomain(domain: string): string | null {
  let best: string | null = null
  let least = DISTANCE_MAX + 1
  for (const known of KNOWN_DOMAINS) {
    if (known === domain) return null
    const distance = editDistance(domain, known, least - 1)
    if (distance < least) {
      best = known
      least = distance
    }
  }
  return best
}

/**
 * Letters to insert, remove, replace or exchange with their neighbour, to make one text of another; any number above
 * `max` where it takes more.
 */
export function editDistance(one: string, other: string, max: number): number {
  if (Math.abs(one.length - other.length) > max) return max + 1
  let before: number[] = []
  let last = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (let i = 1; i <= one.length; i++) {
    const row = [i]
    for (let j = 1; j <= other.length; j++) {
      const isSame = one[i - 1] === other[j - 1]
      let cost = Math.min(
        (last[j] as number) + 1,
        (row[j - 1] as number) + 1,
        (last[j - 1] as number) + (isSame ? 0 : 1),
      )
      if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1])
        cost = Math.min(cost, (before[j - 2] as number) + 1)
      row.push(cost)
    }
    if (Math.min(...row) > max) return max + 1
    before = last
    last = row
  }
  return last[other.length] as number
}
