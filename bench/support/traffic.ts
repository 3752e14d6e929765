/**
 * Events of the mail of many domains, made by the service's own functions: 90 days, 1,000 domains of which 100 belong to
 * 20 subaccounts, 2,000 tags, 40 countries, 20,000 recipient domains. Senders, tags, countries and recipient domains are of
 * unequal size: the n-th has 1/n of the first. The same number gives the same events.
 */
import {
  type AttemptFacts,
  acceptedEvent,
  deliveredEvent,
  type EventMessage,
  type EventRecord,
  failedEvent,
} from '../../src/watching/events/event.ts'
import {
  clickedEvent,
  complainedEvent,
  openedEvent,
  unsubscribedEvent,
  type Visit,
} from '../../src/watching/events/later-events.ts'

export const DAY_MS = 86_400_000
export const DAYS = 90
/** Whole months, and days of other lengths at both ends. */
export const END_MS = Date.UTC(2026, 5, 15)
export const START_MS = END_MS - DAYS * DAY_MS
export const DOMAINS = 1_000
const SUBACCOUNTS = 20
const DOMAINS_OF_SUBACCOUNTS = 100
export const TAGS = 2_000
export const COUNTRIES = 40
const RECIPIENT_DOMAINS = 20_000
const RECIPIENTS = 500_000
export const ACCOUNT = 'bench-account-of-22-ch'
export const SUBACCOUNT_IDS = Array.from({ length: SUBACCOUNTS }, (_, at) => `bench-subaccount-of-${at}`)
/** Events of a message, on average. */
const EVENTS_PER_MESSAGE = 2.45

export const domainName = (index: number) => `d${index}.bench.example`
/** Domains of subaccounts are spread over all sizes. */
export const accountOf = (domain: number): string => {
  const every = DOMAINS / DOMAINS_OF_SUBACCOUNTS
  return domain % every === every - 1
    ? (SUBACCOUNT_IDS[Math.floor(domain / every) % SUBACCOUNTS] as string)
    : ACCOUNT
}
/** Every domain has two tags of its own, and uses three that all domains use. */
export const tagOf = (domain: number, which: 0 | 1): string => `tag-${(domain * 2 + which) % TAGS}`
const COMMON_TAGS = ['welcome', 'newsletter', 'receipt']
export const countryName = (index: number) =>
  `${String.fromCharCode(65 + (index % 26))}${String.fromCharCode(65 + ((index * 7) % 26))}`

const PROVIDERS = [
  'Gmail',
  'Outlook 365',
  'Yahoo US',
  'Apple',
  'Google Workspace',
  'Outlook US',
  'German',
  'French',
]
const KNOWN_DOMAINS = [
  'gmail.com',
  'outlook.com',
  'yahoo.com',
  'icloud.com',
  'hotmail.com',
  'aol.com',
  'gmx.net',
  'orange.fr',
]
const BOTS = ['', '', '', 'apple', 'gmail', 'generic']
const DEVICE_TYPES = ['desktop', 'mobile', 'mobile', 'tablet', 'unknown']

/** Mulberry32: numbers from 0 to 1. */
export function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** The n-th of `size` is drawn as often as 1/n of the first. */
export function zipf(size: number, random: () => number): () => number {
  const sums = new Float64Array(size)
  let sum = 0
  for (let at = 0; at < size; at++) {
    sum += 1 / (at + 1)
    sums[at] = sum
  }
  return () => {
    const wanted = random() * sum
    let [low, high] = [0, size - 1]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((sums[middle] as number) < wanted) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** About `count` events in ascending order of their message's acceptance. */
export function* traffic(count: number): Generator<EventRecord> {
  const random = createRandom(7)
  const draw = {
    random,
    domain: zipf(DOMAINS, random),
    recipientDomain: zipf(RECIPIENT_DOMAINS, random),
    country: zipf(COUNTRIES, random),
    provider: zipf(PROVIDERS.length, random),
  }
  const messages = Math.floor(count / EVENTS_PER_MESSAGE)
  const step = (DAYS * DAY_MS) / messages
  for (let number = 0; number < messages; number++) yield* lifeOf(number, START_MS + number * step, draw)
}

interface Draw {
  random(): number
  domain(): number
  recipientDomain(): number
  country(): number
  provider(): number
}

/** Shares in percent: 92 delivered, 6 of them at the second attempt; 5 refused; 3 suppressed; 30 opened, 6 clicked. */
function* lifeOf(number: number, at: number, draw: Draw): Generator<EventRecord> {
  const { random } = draw
  const domain = draw.domain()
  const provider = draw.provider()
  const isKnown = random() < 0.8
  const recipientDomain = isKnown ? (KNOWN_DOMAINS[provider] as string) : `r${draw.recipientDomain()}.example`
  const recipient = `reader-${Math.floor(random() * RECIPIENTS)}@${recipientDomain}`
  const message = messageOf(number, domain, recipient, random)
  const to = { recipient, recipientDomain }
  const facts = factsOf(domain, isKnown ? (PROVIDERS[provider] as string) : 'Other')
  yield acceptedEvent(message, to, at, null)
  const fate = random()
  if (fate < 0.03) {
    yield failedEvent(
      message,
      to,
      {
        ...facts(605, 'Not delivering to previously bounced address', 0),
        severity: 'permanent',
        reason: 'suppress-bounce',
      },
      at + 200,
    )
    return
  }
  if (fate < 0.14) {
    const isLast = fate < 0.08
    const code = isLast ? 550 : 450
    const text = isLast ? '5.1.1 no such user here' : '4.2.1 try again later, too many messages'
    yield failedEvent(
      message,
      to,
      {
        ...facts(code, text, 1),
        severity: isLast ? 'permanent' : 'temporary',
        reason: isLast ? 'bounce' : random() < 0.3 ? 'espblock' : 'generic',
        ruleId: isLast ? 'unknown-user' : 'rate-limit',
      },
      at + 900,
    )
    if (isLast) return
  }
  const deliveredAt = at + (fate < 0.14 ? 600_000 : 1_100)
  yield deliveredEvent(message, to, facts(250, '2.0.0 taken', fate < 0.14 ? 2 : 1), deliveredAt)
  if (random() < 0.32) yield* visits(message, to, facts(250, '', 1), deliveredAt, draw)
}

function* visits(
  message: EventMessage,
  to: { recipient: string; recipientDomain: string },
  facts: AttemptFacts,
  deliveredAt: number,
  { random, country }: Draw,
): Generator<EventRecord> {
  const visit: Visit = {
    ip: `198.51.100.${Math.floor(random() * 250)}`,
    client: {
      'client-name': 'Chrome',
      'client-os': 'Windows',
      'client-type': 'browser',
      'device-type': DEVICE_TYPES[Math.floor(random() * DEVICE_TYPES.length)] as string,
      'user-agent':
        'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0 Safari/537.36',
      bot: BOTS[Math.floor(random() * BOTS.length)] as string,
    },
    geolocation: {
      country: countryName(country()),
      region: 'Region',
      city: 'City',
      timezone: 'Europe/Berlin',
    },
    recipientProvider: facts.recipientProvider,
    deliveredAt,
  }
  const at = deliveredAt + random() * 7_200_000
  yield openedEvent(message, to, visit, at)
  if (random() < 0.15) yield openedEvent(message, to, visit, at + random() * DAY_MS)
  const further = random()
  if (further < 0.2)
    yield clickedEvent(message, to, { ...visit, url: 'https://shop.example/offer?id=17' }, at + 20_000)
  if (further > 0.99) yield unsubscribedEvent(message, to, visit, at + 40_000)
  if (further > 0.997)
    yield complainedEvent(
      message,
      to,
      { recipientProvider: facts.recipientProvider, sendingIp: facts.sendingIp },
      at + 60_000,
    )
}

function messageOf(number: number, domain: number, recipient: string, random: () => number): EventMessage {
  const name = domainName(domain)
  const own = random() < 0.5 ? [tagOf(domain, random() < 0.3 ? 1 : 0)] : []
  const common = random() < 0.2 ? [COMMON_TAGS[Math.floor(random() * COMMON_TAGS.length)] as string] : []
  const isList = random() < 0.02
  return {
    accountId: accountOf(domain),
    domainName: name,
    messageId: `${number}.bench@${name}`,
    storageKey: `key-${number}`,
    storageUrl: `http://127.0.0.1:8080/v3/domains/${name}/messages/key-${number}`,
    summary: {
      from: `Bench <sender@${name}>`,
      to: recipient,
      subject: `Your order ${number}`,
      sender: `sender@${name}`,
      recipients: [recipient],
      attachments:
        random() < 0.05 ? [{ filename: 'invoice.pdf', 'content-type': 'application/pdf', size: 41_000 }] : [],
      sizeBytes: 10_900,
      tags: [...own, ...common],
      userVariables: { order: String(number % 1000) },
      testMode: false,
      method: 'http',
      originatingIp: '127.0.0.1',
      keyId: null,
      template: null,
      ...(isList && { mailingList: { address: `news@${name}`, 'list-id': `news.${name}` } }),
    },
  }
}

const factsOf =
  (domain: number, recipientProvider: string) =>
  (code: number, text: string, attempt: number): AttemptFacts => ({
    sendingIp: attempt === 0 ? null : `192.0.2.${1 + (domain % 4)}`,
    primaryDkim: `k1._domainkey.${domainName(domain)}`,
    recipientProvider,
    status: {
      code,
      'attempt-no': attempt,
      message: text,
      description: '',
      'session-seconds': 0.012,
      'enhanced-code': text.slice(0, 5),
      'mx-host': 'mx.recipients.example',
      tls: true,
      'certificate-verified': true,
      utf8: false,
    },
  })
