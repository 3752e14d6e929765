/** The tasks that only read. Each is a few operations, put together as a person would ask for them. */
import { flag, integer, list, map, oneOf, optional, text } from '../../base/shape.ts'
import {
  bare,
  DAYS_MAX,
  deliveriesOf,
  diagnose,
  dialoguesOf,
  findEvents,
  suppressionsOf,
} from './diagnosis.ts'
import { listGuides, readGuide } from './guides.ts'
import { at, type Item, ifAllowed, itemsOf, Refused, type Tool, tool } from './tool.ts'

const DAY_MS = 86_400_000
const DOMAIN = text('Sending domain', { example: 'example.com' })
const ADDRESS = text('Mail address', { example: 'bob@example.org' })
const MESSAGE_ID = text('Message-Id, with or without angle brackets')
const days = (otherwise: number) =>
  optional(
    integer(`Days back from now, at most ${DAYS_MAX}; default ${otherwise}`, {
      only: { minimum: 1, maximum: DAYS_MAX },
    }),
  )
const limit = (max: number) =>
  optional(integer(`At most so many; default ${max}`, { only: { minimum: 1, maximum: max } }))
const since = (now: number, count: number) => String(Math.floor((now - count * DAY_MS) / 1000))

/** Domains that one question goes through. */
const DOMAINS_MAX = 20
const GUIDE_LENGTH = 20_000

const MESSAGES: Tool[] = [
  tool({
    name: 'why_not_delivered',
    title: 'Why was this not delivered?',
    description:
      'Explains what became of a message: for each recipient the state, the reason, the class of the failure with advice, the last replies and dialogues of servers, and whether the address is suppressed. Give a Message-Id, or a recipient for the newest message to it.',
    input: { message_id: optional(MESSAGE_ID), recipient: optional(ADDRESS), domain: optional(DOMAIN) },
    async run({ api, now }, question) {
      if (question.message_id === undefined && question.recipient === undefined)
        throw new Refused('Give message_id or recipient', 400)
      return diagnose(api, question, now)
    },
  }),
  tool({
    name: 'trace_message',
    title: 'Trace a message',
    description: 'All events and deliveries of one message, oldest first.',
    input: { message_id: MESSAGE_ID },
    async run({ api, now }, { message_id }) {
      const deliveries = await deliveriesOf(api, message_id, 100)
      const events = await findEvents(api, { message_id }, { now })
      return { message_id: bare(message_id), deliveries, events: events.toReversed() }
    },
  }),
  tool({
    name: 'read_dialogue',
    title: 'Read SMTP dialogues',
    description: 'The SMTP dialogue of each kept attempt of a delivery; ids are in trace_message.',
    input: { delivery_id: text('Id of the delivery') },
    run: ({ api }, { delivery_id }) =>
      dialoguesOf(api, delivery_id).then((dialogues) => ({ delivery_id, dialogues })),
  }),
  tool({
    name: 'search_events',
    title: 'Search events',
    description:
      'Events of mail, newest first: accepted, delivered, failed, opened, clicked, unsubscribed, complained, rejected, stored.',
    input: {
      events: optional(list('Only these types', text('Type'))),
      domain: optional(DOMAIN),
      recipient: optional(ADDRESS),
      message_id: optional(MESSAGE_ID),
      subject: optional(text('Part of the subject')),
      tag: optional(text('Tag of the message')),
      severity: optional(oneOf('Of failures', ['temporary', 'permanent'])),
      days: days(1),
      limit: limit(50),
    },
    async run({ api, now }, { days = 1, limit, events, ...filter }) {
      return { events: await findEvents(api, filter, { now, days, limit, events }) }
    },
  }),
  tool({
    name: 'read_message',
    title: 'Read a stored message',
    description:
      'Headers and texts of a message that is still stored; domain and storage key are in its events. Its content is written by others.',
    input: { domain: DOMAIN, storage_key: text('Key of the stored message') },
    run: ({ api }, { domain, storage_key }) =>
      api.read(at`/v3/domains/${domain}/messages/${storage_key}`).then((content) => ({ content })),
  }),
  tool({
    name: 'captured_mail',
    title: 'Captured mail',
    description: 'Mail that was captured instead of sent, newest first.',
    input: { to: optional(ADDRESS), subject: optional(text('Part of the subject')), limit: limit(50) },
    run: ({ api }, { to, subject, limit = 20 }) => api.read('/sendwright/v1/inbox', { to, subject, limit }),
  }),
]

const SENDING: Tool[] = [
  tool({
    name: 'list_domains',
    title: 'List domains',
    description: 'Sending domains with their state.',
    input: { search: optional(text('Part of the name')) },
    run: ({ api }, { search }) => api.read('/v4/domains', { search, limit: 100 }),
  }),
  tool({
    name: 'domain_health',
    title: 'Health of a domain',
    description:
      'Whether a domain is fit to send: DNS records and what to change, rules of Gmail, Yahoo and Microsoft, blocklists, health score, DMARC record, whether it or its account is held.',
    input: { domain: DOMAIN },
    async run({ api }, { domain }) {
      const read = await api.read(at`/v4/domains/${domain}`)
      const { name, state, is_disabled } = (read['domain'] ?? {}) as Item
      const [dns, sender_rules, blocklists, health_score, dmarc_record] = await Promise.all(
        [
          api.read(at`/sendwright/v1/domains/${domain}/dns`),
          api.read(at`/sendwright/v1/domains/${domain}/sender-rules`),
          api.read(at`/v1/monitoring/domains/${domain}/blocklists`),
          api.read('/v1/maverick-score/grouped', { group: 'domain', term: `domain:${domain}` }),
          api.read(at`/v1/dmarc/records/${domain}`),
        ].map(ifAllowed),
      )
      return {
        ...{ domain: name, state, is_disabled, dns, sender_rules, blocklists, health_score, dmarc_record },
      }
    },
  }),
  tool({
    name: 'dns_records',
    title: 'DNS records to publish',
    description: 'The DNS records of a domain, with what DNS says of each and what to change.',
    input: { domain: DOMAIN },
    run: ({ api }, { domain }) => api.read(at`/sendwright/v1/domains/${domain}/dns`),
  }),
  tool({
    name: 'deliverability',
    title: 'How well does mail arrive?',
    description:
      'The health score of 30 days with what takes points off, and by mailbox provider the figures, the classes of failures with explanation, and their most frequent replies.',
    input: { domain: optional(DOMAIN), days: days(7) },
    async run({ api, now }, { domain, days = 7 }) {
      const score =
        domain === undefined
          ? api.read('/v1/maverick-score/total')
          : api.read('/v1/maverick-score/grouped', { group: 'domain', term: `domain:${domain}` })
      const reasons = api.read('/sendwright/v1/delivery-reasons', { domain, start: since(now, days) })
      const [health_score, figures] = await Promise.all([ifAllowed(score), ifAllowed(reasons)])
      return { health_score, figures }
    },
  }),
  tool({
    name: 'check_sender_rules',
    title: 'Rules for senders',
    description:
      'Whether a domain follows the rules of Gmail, Yahoo and Microsoft for senders, and what to change.',
    input: { domain: DOMAIN },
    run: ({ api }, { domain }) => api.read(at`/sendwright/v1/domains/${domain}/sender-rules`),
  }),
  tool({
    name: 'dmarc_summary',
    title: 'DMARC summary',
    description: 'What receivers report of mail of the domains, or by source of mail of one domain.',
    input: { domain: optional(DOMAIN) },
    run: ({ api }, { domain }) =>
      api.read(domain === undefined ? '/v1/dmarc/domains' : at`/v1/dmarc/domains/${domain}`),
  }),
  tool({
    name: 'check_message',
    asksOthers: true,
    title: 'Check a message before it is sent',
    description: 'Checks authentication, content, links and spam points of a message. Sends nothing.',
    input: {
      from: text('From, of one of the sending domains'),
      to: ADDRESS,
      subject: text('Subject'),
      text: optional(text('Text part')),
      html: optional(text('HTML part')),
      domain: optional(text('Sending domain; default: that of From')),
    },
    run({ api }, { domain, from, ...fields }) {
      const sending = domain ?? /@([^@>\s]+)>?\s*$/.exec(from)?.[1] ?? ''
      if (sending === '') throw new Refused('from has no domain', 400)
      const form = { from, ...fields }
      return api.call('POST', at`/sendwright/v1/domains/${sending}/messages/check`, { form })
    },
  }),
  tool({
    name: 'list_templates',
    title: 'List templates',
    description: 'Templates of a domain, or of the account.',
    input: { domain: optional(DOMAIN) },
    run: ({ api }, { domain }) =>
      api.read(domain === undefined ? '/v4/templates' : at`/v3/${domain}/templates`, { limit: 100 }),
  }),
  tool({
    name: 'render_template',
    title: 'Render a template',
    description:
      'Renders a stored template or given content with variables, and names variables without a value. Sends nothing.',
    input: {
      domain: optional(text('Whose template; default: the account')),
      template: optional(text('Name of the template; this or content')),
      version: optional(text('Tag of the version; default: the active one')),
      content: optional(text('Handlebars content in place of a template')),
      variables: optional(map('Values by name', text('Value'))),
    },
    run: ({ api }, json) => api.call('POST', '/sendwright/v1/templates/render', { json }),
  }),
  tool({
    name: 'lookup_suppression',
    title: 'Is an address suppressed?',
    description:
      'Whether an address bounced, complained or unsubscribed, at one domain or at all of the account (up to 20).',
    input: { address: ADDRESS, domain: optional(DOMAIN) },
    async run({ api }, { address, domain }) {
      const names =
        domain === undefined
          ? itemsOf(await api.read('/v4/domains', { limit: DOMAINS_MAX })).map(({ name }) => String(name))
          : [String(((await api.read(at`/v4/domains/${domain}`))['domain'] as Item)['name'])]
      return { domains: await Promise.all(names.map((name) => suppressionsOf(api, name, address))) }
    },
  }),
  tool({
    name: 'validate_address',
    asksOthers: true,
    title: 'Validate an address',
    description: 'Whether an address can receive mail, as far as is known; it counts as one validation.',
    input: { address: ADDRESS },
    run: ({ api }, { address }) => api.read('/v4/address/validate', { address }),
  }),
]

export const QUEUE_FILTER = {
  domain: optional(DOMAIN),
  recipient_domain: optional(text('Domain of recipients')),
  provider: optional(text('Provider, as queue_overview shows it')),
  lane: optional(text('Lane, as queue_overview shows it')),
  tag: optional(text('Tag of the message')),
  message_id: optional(MESSAGE_ID),
  reason: optional(text('Code of the reason, as list_queue shows it')),
  older_than: optional(text('Accepted before: 30s, 10m, 2h or 1d ago')),
}
type QueueFilter = { readonly [Name in keyof typeof QUEUE_FILTER]?: string | undefined }

/** The filter as the queue's operations take it, in the order of the table whatever that of the arguments. */
export function queueFilter(given: QueueFilter): Record<string, string> {
  const names = Object.keys(QUEUE_FILTER) as (keyof QueueFilter)[]
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = given[name]
      if (value === undefined) return []
      return [[name, name === 'message_id' ? bare(value) : value]]
    }),
  )
}

const WATCHING: Tool[] = [
  tool({
    name: 'queue_overview',
    title: 'Queue and lanes',
    description: 'What waits, by lane to a receiver with what holds it up, and by domain.',
    input: {},
    async run({ api }) {
      const [lanes, domains] = await Promise.all([
        api.read('/sendwright/v1/queue/lanes'),
        api.read('/sendwright/v1/queue/domains'),
      ])
      return { lanes: itemsOf(lanes), domains }
    },
  }),
  tool({
    name: 'list_queue',
    title: 'What waits, and why',
    description: 'Deliveries that are not done, oldest first, each with its reason.',
    input: { ...QUEUE_FILTER, limit: limit(100) },
    run: ({ api }, { limit = 50, ...filter }) =>
      api.read('/sendwright/v1/queue/deliveries', { ...queueFilter(filter), limit }),
  }),
  tool({
    name: 'held_mail',
    title: 'Mail that waits for a person',
    description: 'Mail that the content check keeps, or that waits to be released by a person.',
    input: {},
    run: ({ api }) => api.read('/sendwright/v1/content-holds'),
  }),
  tool({
    name: 'webhook_attempts',
    title: 'Webhook attempts',
    description: 'Posts of webhooks with status and answer, newest first.',
    input: {
      url: optional(text('Only this URL')),
      domain: optional(DOMAIN),
      status: optional(text('Only these: delivered, failed or pending')),
      limit: limit(50),
    },
    run: ({ api }, { limit = 20, ...filter }) =>
      api.read('/sendwright/v1/webhooks/attempts', { ...filter, limit }),
  }),
  tool({
    name: 'metrics',
    title: 'Figures of sending',
    description: 'Counts and rates by day or hour, and by up to two more dimensions.',
    input: {
      days: days(7),
      resolution: optional(oneOf('Length of an interval; default day', ['hour', 'day', 'month'])),
      by: optional(
        list('Dimensions; default time', text('time, domain, tag, ip, recipient_provider, country, device'), {
          only: { maxItems: 3 },
        }),
      ),
      metrics: optional(list('Metrics; default the usual ones', text('Name, such as delivered_count'))),
      domain: optional(DOMAIN),
    },
    run({ api }, { days = 7, resolution = 'day', by = ['time'], metrics = USUAL_METRICS, domain }) {
      const condition = { attribute: 'domain', comparator: '=', values: [{ label: domain, value: domain }] }
      const json = {
        ...{ duration: `${days}d`, resolution, dimensions: by, metrics, include_aggregates: true },
        ...(domain !== undefined && { filter: { AND: [condition] } }),
      }
      return api.call('POST', '/v1/analytics/metrics', { json })
    },
  }),
  tool({
    name: 'tag_stats',
    title: 'Statistics of a tag',
    description: 'Counts of one tag of a domain, by day.',
    input: { domain: DOMAIN, tag: text('Tag'), days: days(7) },
    run: ({ api }, { domain, tag, days = 7 }) =>
      api.read(at`/v3/${domain}/tag/stats`, {
        ...{ tag, duration: `${days}d`, resolution: 'day' },
        event: ['accepted', 'delivered', 'failed', 'opened', 'clicked', 'unsubscribed', 'complained'],
      }),
  }),
  tool({
    name: 'open_alerts',
    title: 'Open alerts',
    description: 'What the service finds wrong with itself now, and the last hits of alerts on rates.',
    input: {},
    async run({ api }) {
      const [own, hits] = await Promise.all(
        [api.read('/sendwright/v1/alerts'), api.read('/v1/thresholds/hits')].map(ifAllowed),
      )
      return { own, hits }
    },
  }),
  tool({
    name: 'sending_addresses',
    title: 'Sending addresses and relays',
    description:
      'IP addresses with pools and warm-up, and relays with their state and the rules that choose.',
    input: {},
    async run({ api }) {
      const paths = ['/v3/ips/details/all', '/v3/ip_pools', '/v3/ip_warmups', '/sendwright/v1/relays']
      const [addresses, pools, warmups, relays] = await Promise.all(
        paths.map((path) => ifAllowed(api.read(path))),
      )
      return { addresses, pools, warmups, relays }
    },
  }),
  tool({
    name: 'system_status',
    title: 'State of the service',
    description:
      'Version, mode, uptime, queue totals and periodic jobs; with checks, whether the machine is fit.',
    input: { checks: optional(flag('Run the checks too, which ask DNS; default false')) },
    async run({ api }, { checks = false }) {
      const [system, found] = await Promise.all([
        ifAllowed(api.read('/sendwright/v1/system')),
        checks ? ifAllowed(api.read('/sendwright/v1/system/checks')) : undefined,
      ])
      return { system, ...(checks && { checks: found }) }
    },
  }),
  tool({
    name: 'read_guide',
    title: 'Read a guide',
    description:
      'A guide of the service, such as troubleshooting or good-name; without a name the list of them.',
    input: {
      name: optional(text('Name of the guide')),
      offset: optional(integer('Character to begin with; default 0', { only: { minimum: 0 } })),
    },
    async run(_, { name, offset = 0 }) {
      if (name === undefined) return { guides: (await listGuides()).map((guide) => guide.name) }
      const whole = await readGuide(name)
      const end = offset + GUIDE_LENGTH
      return {
        ...{ name, guide: whole.slice(offset, end).match(/.{1,3500}/gs) ?? [] },
        ...(whole.length > end && { next_offset: end }),
      }
    },
  }),
]

const USUAL_METRICS = [
  ...['accepted_count', 'delivered_count', 'permanent_failed_count', 'temporary_failed_count'],
  ...['opened_count', 'clicked_count', 'complained_count', 'delivered_rate', 'bounce_rate'],
]

export const READING_TOOLS: readonly Tool[] = [...MESSAGES, ...SENDING, ...WATCHING]
