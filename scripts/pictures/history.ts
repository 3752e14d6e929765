/** Events of the last 60 days of a shop, for pictures: more mail on working days, a little more each week. The same each time. */
import { createRandom, DAY_MS, zipf } from '../../bench/support/traffic.ts'
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

const DAYS = 60
const MESSAGES_A_DAY = 260
/** Sunday first. */
const WEEK = [0.45, 1, 1.15, 1.1, 1.05, 0.95, 0.55]
const READERS = 4_000

/** Domains of recipients, where their mail is taken, and the share in percent of the mail that is refused or put off. */
export const RECEIVERS = [
  {
    domain: 'readers.example',
    mx: 'gmail-smtp-in.l.google.com',
    provider: 'Google Workspace',
    refused: 2,
    later: 4,
  },
  {
    domain: 'people.example',
    mx: 'people-example.mail.protection.outlook.com',
    provider: 'Outlook 365',
    refused: 4,
    later: 11,
  },
  { domain: 'family.example', mx: 'mta5.am0.yahoodns.net', provider: 'Yahoo US', refused: 3, later: 8 },
  { domain: 'studio.example', mx: 'mx01.mail.icloud.com', provider: 'Apple', refused: 1, later: 2 },
  { domain: 'village.example', mx: 'mx00.emig.gmx.net', provider: 'German', refused: 2, later: 5 },
  { domain: 'school.example', mx: 'mx.school.example', provider: 'Other', refused: 6, later: 3 },
] as const

export const LETTERS = [
  { subject: 'Your order 2026-%n is on its way', tag: 'shipping', local: 'orders' },
  { subject: 'Receipt for order 2026-%n', tag: 'receipt', local: 'orders' },
  { subject: 'Five recipes for the first frost', tag: 'newsletter', local: 'news' },
  { subject: 'Confirm your address', tag: 'welcome', local: 'hello' },
  { subject: 'Reset your password', tag: 'account', local: 'hello' },
] as const

const COUNTRIES = ['DE', 'US', 'FR', 'GB', 'NL', 'AT', 'ES', 'CH', 'IT', 'PL']
const CLIENTS = [
  ['Chrome', 'Windows', 'browser', 'desktop', ''],
  ['Apple Mail', 'iOS', 'mobile browser', 'mobile', 'apple'],
  ['Gmail', 'Android', 'mobile browser', 'mobile', 'gmail'],
  ['Firefox', 'Linux', 'browser', 'desktop', ''],
  ['Safari', 'iOS', 'mobile browser', 'tablet', ''],
] as const
const REFUSALS = [
  ['550', '5.1.1 The email account that you tried to reach does not exist', 'unknown-user', 'bounce'],
  ['552', '5.2.2 The mailbox is full', 'mailbox-full', 'bounce'],
  ['550', '5.7.1 Message rejected because of its content', 'content', 'espblock'],
] as const

export interface HistoryParts {
  accountId: string
  /** The one with the most mail first. */
  domains: readonly string[]
  ips: readonly string[]
  nowMs: number
}

interface Letter {
  message: EventMessage
  to: { recipient: string; recipientDomain: string }
  receiver: (typeof RECEIVERS)[number]
  facts(code: number, text: string, attempt: number): AttemptFacts
}

/** In ascending order of acceptance, up to an hour ago. */
export function* history(parts: HistoryParts): Generator<EventRecord> {
  const random = createRandom(3)
  const draw = {
    domain: zipf(parts.domains.length, random),
    receiver: zipf(RECEIVERS.length, random),
    country: zipf(COUNTRIES.length, random),
    letter: zipf(LETTERS.length, random),
  }
  const end = parts.nowMs - 3_600_000
  let number = 10_000
  for (let day = DAYS - 1; day >= 0; day--) {
    const from = end - (day + 1) * DAY_MS
    const weekday = WEEK[new Date(from + DAY_MS / 2).getUTCDay()] as number
    const count = Math.round(MESSAGES_A_DAY * weekday * (1.3 - day / 150) * (0.9 + random() * 0.2))
    for (let at = 0; at < count; at++) {
      number += 1
      const letter = letterOf(parts, number, random, draw)
      const acceptedAt = from + ((at + random()) / count) * DAY_MS
      for (const event of lifeOf(letter, acceptedAt, random, draw.country))
        if (event.timestampUs < end * 1_000) yield event
    }
  }
}

type Draw = Record<'domain' | 'receiver' | 'country' | 'letter', () => number>

function letterOf(parts: HistoryParts, number: number, random: () => number, draw: Draw): Letter {
  const domainName = parts.domains[draw.domain()] as string
  const receiver = RECEIVERS[draw.receiver()] as (typeof RECEIVERS)[number]
  const { subject, tag, local } = LETTERS[draw.letter()] as (typeof LETTERS)[number]
  const recipient = `reader-${Math.floor(random() * READERS)}@${receiver.domain}`
  const sendingIp = parts.ips[Math.floor(random() * parts.ips.length)] as string
  return {
    to: { recipient, recipientDomain: receiver.domain },
    receiver,
    message: {
      accountId: parts.accountId,
      domainName,
      messageId: `${number}.letter@${domainName}`,
      storageKey: `key-${number}`,
      storageUrl: `https://mail.example.com/v3/domains/${domainName}/messages/key-${number}`,
      summary: {
        from: `Example Shop <${local}@${domainName}>`,
        to: recipient,
        subject: subject.replace('%n', String(number)),
        sender: `${local}@${domainName}`,
        recipients: [recipient],
        attachments: [],
        sizeBytes: 8_400 + (number % 5_000),
        tags: [tag],
        userVariables: {},
        testMode: false,
        method: 'http',
        originatingIp: '192.0.2.40',
        keyId: null,
        template: null,
      },
    },
    facts: (code, text, attempt) => ({
      sendingIp: attempt === 0 ? null : sendingIp,
      primaryDkim: `k1._domainkey.${domainName}`,
      recipientProvider: receiver.provider,
      status: {
        code,
        'attempt-no': attempt,
        message: text,
        description: '',
        'session-seconds': 0.2 + random(),
        'enhanced-code': text.slice(0, 5),
        'mx-host': receiver.mx,
        tls: true,
        'certificate-verified': true,
        utf8: false,
      },
    }),
  }
}

function* lifeOf(
  letter: Letter,
  at: number,
  random: () => number,
  country: () => number,
): Generator<EventRecord> {
  const { message, to, receiver, facts } = letter
  yield acceptedEvent(message, to, at, null)
  const fate = random() * 100
  if (fate < receiver.refused) {
    const [code, text, ruleId, reason] = REFUSALS[
      Math.floor(random() ** 2 * REFUSALS.length)
    ] as (typeof REFUSALS)[number]
    const failed = { severity: 'permanent', reason, ruleId } as const
    yield failedEvent(message, to, { ...facts(Number(code), text, 1), ...failed }, at + 1_900)
    return
  }
  const isLater = fate < receiver.refused + receiver.later
  if (isLater) {
    const failed = { severity: 'temporary', reason: 'generic', ruleId: 'rate-limit' } as const
    const text = '4.7.1 Too many messages at the moment, try again later'
    yield failedEvent(message, to, { ...facts(451, text, 1), ...failed }, at + 1_900)
  }
  const deliveredAt = at + (isLater ? 605_000 : 1_400)
  yield deliveredEvent(message, to, facts(250, '2.0.0 OK', isLater ? 2 : 1), deliveredAt)
  if (random() < 0.41) yield* visits(letter, deliveredAt, random, country)
}

function* visits(
  { message, to, facts }: Letter,
  deliveredAt: number,
  random: () => number,
  country: () => number,
): Generator<EventRecord> {
  const [name, os, type, device, bot] = CLIENTS[
    Math.floor(random() * CLIENTS.length)
  ] as (typeof CLIENTS)[number]
  const { recipientProvider, sendingIp } = facts(250, '', 1)
  const visit: Visit = {
    ip: `192.0.2.${50 + Math.floor(random() * 200)}`,
    client: {
      'client-name': name,
      'client-os': os,
      'client-type': type,
      'device-type': device,
      'user-agent': `Mozilla/5.0 (${os}) ${name}`,
      bot,
    },
    geolocation: {
      country: COUNTRIES[country()] as string,
      region: 'Unknown',
      city: 'Unknown',
      timezone: 'Europe/Berlin',
    },
    recipientProvider,
    deliveredAt,
  }
  const at = deliveredAt + random() ** 3 * DAY_MS
  yield openedEvent(message, to, visit, at)
  const further = random()
  if (further < 0.24)
    yield clickedEvent(message, to, { ...visit, url: 'https://www.shop.example.com/orders' }, at + 20_000)
  if (further > 0.988) yield unsubscribedEvent(message, to, visit, at + 40_000)
  if (further > 0.997) yield complainedEvent(message, to, { recipientProvider, sendingIp }, at + 60_000)
}
