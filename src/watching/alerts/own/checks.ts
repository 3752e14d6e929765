/** The service's own checks that read one figure of another area, in the order in which a person should look at them. */

import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { loggableUrl } from '../../../base/printable.ts'
import { formatRfc3339 } from '../../../base/time/dates.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../base/time/durations.ts'
import { trendPerMs } from '../../../base/time/trend.ts'
import type { Delivery } from '../../../mail/deliver/contract.ts'
import type { Config } from '../../../platform/config/config.ts'
import type { FreeSpace } from '../../../platform/store/blobs/free-space.ts'
import type { EventSinkRow } from '../../../platform/store/schema.ts'
import type { Store } from '../../../platform/store/store.ts'
import type { BouncesArea } from '../../../receiving/bounces/area.ts'
import type { CertificatesArea } from '../../../sending/certificates/area.ts'
import { ENDS_SOON_MS, type EndingCertificate } from '../../../sending/certificates/certificates.ts'
import type { ContentCheck } from '../../../sending/content-check/check.ts'
import type { Holds } from '../../../sending/content-check/holds.ts'
import type { Block, Blocks } from '../../../sending/ips/blocks/blocks.ts'
import type { RelaysArea } from '../../../sending/relays/area.ts'
import { ANY_ADDRESS } from '../../../sending/relays/engine-relays.ts'
import type { KnownStandings } from '../../../sending/standing/known-standings.ts'
import type { EventSinksArea } from '../../event-sinks/area.ts'
import { settingsOf, stopOf } from '../../event-sinks/known-sinks.ts'
import { BEHIND_DEFAULT_SECONDS } from '../../event-sinks/shapes.ts'
import type { WebhooksArea } from '../../webhooks/area.ts'
import type { OwnCheck } from './own-check.ts'

const DUE_FOR_MS = MINUTE_MS
/** Deliveries of the engine that are looked at: those being handed over to slow servers are passed over. */
const HELD_READ_MAX = 200

const COLUMNS = 'id, recipient_domain, due_at'
/** The conditions on `state` are literals, so that the partial indexes are used. */
const WAITING = `SELECT ${COLUMNS} FROM deliveries WHERE state IN ('scheduled', 'queued') AND due_at <= ?
  ORDER BY due_at, id LIMIT 1`
const HELD = `SELECT ${COLUMNS} FROM deliveries WHERE state = 'sending' AND due_at <= ? ORDER BY due_at LIMIT ?`

const minutes = (ms: number) => String(Math.max(0, Math.floor(ms / MINUTE_MS)))

/** The oldest mail that is due and not being sent. */
export function dueMailCheck(store: Store, delivery: Pick<Delivery, 'progressOf'>): OwnCheck {
  /** The oldest one that waits in the database, or in a lane of this process. */
  async function oldest(before: number): Promise<{ dueAt: number; domain: string } | null> {
    const waiting = await store.read({ sql: WAITING, values: [before] })
    const held = await store.read({ sql: HELD, values: [before, HELD_READ_MAX] })
    const idle = held.filter((row) => delivery.progressOf(String(row['id']))?.begun === false)
    const [first] = [...waiting, ...idle.slice(0, 1)].sort(
      (one, other) => Number(one['due_at']) - Number(other['due_at']),
    )
    return first ? { dueAt: Number(first['due_at']), domain: String(first['recipient_domain']) } : null
  }

  return {
    name: 'oldest-due-mail',
    description: 'Mail is due and is not being sent.',
    metric: 'oldest_due_seconds',
    comparator: '>',
    limit: String(DUE_FOR_MS / 1000),
    dimension: '',
    everyMs: MINUTE_MS,
    async read(now) {
      const found = await oldest(Math.floor(now) - DUE_FOR_MS - 1)
      if (!found) return []
      const seconds = Math.floor((now - found.dueAt) / 1000)
      return [
        {
          value: '',
          figure: String(seconds),
          since: found.dueAt,
          advice: `A message to ${found.domain} has been due for ${seconds} seconds and is not being sent. GET /sendwright/v1/queue/lanes shows which lanes are slowed down and why; a large mailing may simply take its time. If no lane sends anything, look at the free space and at the log.`,
        },
      ]
    },
  }
}

interface SpaceSample {
  /** Unix milliseconds. */
  at: number
  freeBytes: number
}

const SPACE_EVERY_MS = 5 * MINUTE_MS
/** Long enough for the database's log to grow and shrink a few times, short enough to follow a change. */
const SPACE_WITHIN_MS = 6 * HOUR_MS
/** Before that a trend says nothing. */
const SPACE_SPAN_MIN_MS = 2 * HOUR_MS
const SPACE_HOURS_MIN = 24
const MEGABYTE = 1024 * 1024

/**
 * Hours until the floor is reached, by the line through the samples. 0: it is reached; null: the space does not shrink, or there
 * are too few samples.
 */
function hoursLeft(samples: readonly SpaceSample[], floorBytes: number): number | null {
  const [first, last] = [samples[0], samples.at(-1)]
  if (!first || !last) return null
  if (last.freeBytes <= floorBytes) return 0
  if (last.at - first.at < SPACE_SPAN_MIN_MS) return null
  const slope = trendPerMs(samples.map(({ at, freeBytes }) => ({ at, value: freeBytes })))
  if (slope === null || slope >= 0) return null
  return (last.freeBytes - floorBytes) / -slope / HOUR_MS
}

/** When the space for new mail will be used up, by the trend of the last hours. `node`: the name of this host. */
export function diskSpaceCheck(
  space: Pick<FreeSpace, 'freeBytes'>,
  floorBytes: number,
  node: string,
): OwnCheck {
  let samples: SpaceSample[] = []
  return {
    name: 'disk-space',
    description: 'The space for new mail is used up soon.',
    metric: 'disk_hours_left',
    comparator: '<',
    limit: String(SPACE_HOURS_MIN),
    dimension: 'node',
    everyMs: SPACE_EVERY_MS,
    node,
    async read(now) {
      samples = [
        ...samples.filter(({ at }) => at > now - SPACE_WITHIN_MS),
        { at: now, freeBytes: space.freeBytes },
      ]
      const hours = hoursLeft(samples, floorBytes)
      if (hours === null || hours >= SPACE_HOURS_MIN) return []
      const [free, floor] = [space.freeBytes, floorBytes].map((bytes) => Math.floor(bytes / MEGABYTE))
      const when =
        hours === 0
          ? `That is below ${floor} MB: new mail is refused.`
          : `By the trend of the last hours ${floor} MB are reached in ${Math.ceil(hours)} hours; then new mail is refused.`
      return [
        {
          value: node,
          figure: hours.toFixed(1),
          since: now,
          advice: `${free} MB are free on ${node}. ${when} Make room, or shorten the retention of events and messages.`,
        },
      ]
    },
  }
}

/** A single one may be a mistake of the receiver. */
const REFUSALS_MIN = 5
const REFUSALS_WITHIN_MS = HOUR_MS

/** A provider that refuses mail because of this host or its domains. */
export function providerRefusalsCheck({
  refusalsByProvider,
}: Pick<BouncesArea, 'refusalsByProvider'>): OwnCheck {
  return {
    name: 'provider-refusals',
    description: 'A provider refuses mail because of the addresses or domains that it comes from.',
    metric: 'refusals_last_hour',
    limit: String(REFUSALS_MIN),
    dimension: 'recipient_provider',
    everyMs: 5 * MINUTE_MS,
    async read(now) {
      const found = await refusalsByProvider(now - REFUSALS_WITHIN_MS)
      return found
        .filter(({ count }) => count >= REFUSALS_MIN)
        .map(({ provider, count, firstAt, explanation }) => ({
          value: provider === '' ? 'unknown' : provider,
          figure: String(count),
          since: firstAt,
          advice: `${count} messages to ${provider || 'an unknown provider'} were refused in the last hour because of this host or its domains. ${explanation} Mend the cause first, then ask the receiver or list to look again. GET /sendwright/v1/system/checks shows the newest replies.`,
        }))
    },
  }
}

/** Sending addresses that a provider blocks, and relays that fail; others stand in for them. */
export function blockedAddressesCheck(blocks: Pick<Blocks, 'list'>): OwnCheck {
  return {
    name: 'blocked-addresses',
    description: 'A provider blocks an address that mail leaves from, or a relay fails.',
    metric: 'blocked_minutes',
    limit: '0',
    dimension: 'lane',
    everyMs: MINUTE_MS,
    async read(now) {
      // What is listed is an alert of its own.
      const closed = blocks.list().filter(({ state }) => state !== 'listed')
      return closed.map((block) => ({
        value: `${block.ip}/${block.site}`,
        figure: minutes(now - block.since_at),
        since: block.since_at,
        advice: block.ip === ANY_ADDRESS ? relayAdvice(block) : addressAdvice(block),
      }))
    },
  }
}

const addressAdvice = ({ ip, site, provider, reply, until_at }: Block) =>
  `${provider} (${site}) takes no mail from ${ip}: "${reply}". Its mail leaves from the other addresses of the set; without one it waits. Single messages try the address again from ${new Date(until_at).toISOString()} on. Mend the cause, ask the provider to look again, then DELETE /sendwright/v1/ips/${ip}/blocks/${site} uses it at once.`

const relayAdvice = ({ provider: name, reply, until_at }: Block) =>
  `The relay ${name} fails: "${reply}". Its mail goes to the next choice of its rule; without one it waits. Single messages try it again from ${new Date(until_at).toISOString()} on. Mend the cause, then POST /sendwright/v1/relays/${name}/test uses it at once.`

/** Accounts and domains that stopped themselves for what they send. */
export function stoppedSendersCheck({ list }: Pick<KnownStandings, 'list'>): OwnCheck {
  return {
    name: 'stopped-senders',
    description: 'An account or a domain is slowed or held, or would be, for what it sends.',
    metric: 'stopped_minutes',
    limit: '0',
    dimension: 'sender',
    everyMs: MINUTE_MS,
    async read(now) {
      return list().map(({ account_id, domain_name, state, reason, since_at, until_at }) => ({
        value: domain_name === '' ? account_id : `${account_id}/${domain_name}`,
        figure: minutes(now - Number(since_at)),
        since: Number(since_at),
        advice: `${domain_name === '' ? `The account ${account_id}` : `The domain ${domain_name} of account ${account_id}`} is ${state}: ${reason}. It is released by itself at ${formatRfc3339(new Date(Number(until_at)))}, or by POST /sendwright/v1/accounts/${account_id}/standing/release${domain_name === '' ? '' : ` with domain=${domain_name}`}. Find the list that the addresses came from first: its figures begin anew then.`,
      }))
    },
  }
}

/** Certificates near their end: those of tracking hosts and of the service itself, and the file of the listeners. */
export function certificateEndsCheck(
  { endingSoon }: Pick<CertificatesArea, 'endingSoon'>,
  { smtpTls, hostname }: Pick<Config, 'smtpTls' | 'hostname'>,
): OwnCheck {
  /** That of the configured file, if it ends soon. */
  async function ofListeners(now: number): Promise<EndingCertificate[]> {
    if (smtpTls === null) return []
    const { validTo } = new X509Certificate(await readFile(smtpTls.certificateFile))
    const expiresAt = Date.parse(validTo)
    return expiresAt <= now + ENDS_SOON_MS ? [{ host: hostname, expiresAt, error: null, isOwn: true }] : []
  }

  return {
    name: 'certificate-ends',
    description: 'A certificate ends soon and was not renewed.',
    metric: 'certificate_days_left',
    comparator: '<=',
    limit: String(ENDS_SOON_MS / DAY_MS),
    dimension: 'host',
    everyMs: HOUR_MS,
    async read(now) {
      const own = (await ofListeners(now)).map((one) => ({
        ...one,
        where: `file ${smtpTls?.certificateFile}`,
      }))
      const ordered = (await endingSoon()).map((one) => ({
        ...one,
        where: one.isOwn ? 'this service' : 'tracking links',
      }))
      return [...own, ...ordered].map(({ host, expiresAt, error, where }) => {
        const end = new Date(expiresAt).toISOString()
        const renewed = `It is renewed by itself; ${error === null ? 'that has not happened' : `the last attempt failed: ${error}`}. See that the host still leads here and that port 80 is open.`
        const todo = {
          'tracking links': `${renewed} GET /v2/x509/${host}/status shows details.`,
          'this service': `${renewed} "sendwright doctor" shows details.`,
        }[where]
        return {
          value: host,
          figure: String(Math.floor((expiresAt - now) / DAY_MS)),
          since: expiresAt - ENDS_SOON_MS,
          advice: `The certificate of ${host} (${where}) ends at ${end}. ${todo ?? 'Renew it, and put the new files in the same place: they are read again by themselves.'}`,
        }
      })
    },
  }
}

const FAILING_MINUTES_MIN = 60

/** Webhook endpoints that have failed for an hour. */
export function failingEndpointsCheck({
  failingEndpoints,
}: Pick<WebhooksArea, 'failingEndpoints'>): OwnCheck {
  return {
    name: 'webhook-endpoint',
    description: 'A webhook endpoint has failed for an hour.',
    metric: 'endpoint_failing_minutes',
    limit: String(FAILING_MINUTES_MIN),
    dimension: 'url',
    everyMs: 5 * MINUTE_MS,
    async read(now) {
      const found = await failingEndpoints(now - FAILING_MINUTES_MIN * MINUTE_MS)
      return found.map(({ accountId, url, failingSince }) => {
        const minutes = Math.floor((now - failingSince) / MINUTE_MS)
        const shown = loggableUrl(url)
        return {
          value: shown,
          figure: String(minutes),
          since: failingSince,
          advice: `${shown} of account ${accountId} has taken no webhook for ${minutes} minutes. GET /sendwright/v1/webhooks/attempts?status=failing shows its answers. Events wait for it until the retry schedule ends; POST /sendwright/v1/webhooks/replay sends lost ones again.`,
        }
      })
    },
  }
}

const BEHIND_PERCENT_MIN = 25

/** Event sinks that are far behind: what is older than they may be behind is skipped. */
export function eventSinksCheck(sinks: EventSinksArea['known']): OwnCheck {
  return {
    name: 'event-sink',
    description: 'An event sink is so far behind that it will miss events.',
    metric: 'event_sink_behind_percent',
    limit: String(BEHIND_PERCENT_MIN),
    dimension: 'sink',
    everyMs: 5 * MINUTE_MS,
    async read(now) {
      const rows = await sinks.list()
      const found = await Promise.all(rows.map(async (row) => ({ row, behindMs: await sinks.behindMs(row) })))
      return found.flatMap(({ row, behindMs }) => {
        const { behind_max_seconds: seconds = BEHIND_DEFAULT_SECONDS } = settingsOf(row)
        const behindMaxMs = seconds * SECOND_MS
        const percent = isMissing(row, behindMaxMs) ? 100 : Math.floor((100 * behindMs) / behindMaxMs)
        // One that works catches up, or was asked for all that is kept.
        const stop = stopOf(row)
        if (percent < BEHIND_PERCENT_MIN || stop === null) return []
        return {
          value: row.name,
          figure: String(percent),
          since: Math.min(stop.since, now),
          advice: `The event sink ${row.name} takes nothing (${stop.reason}), and is ${percent} % of the time behind after which events are skipped. ${skippedText(row)}GET /sendwright/v1/event-sinks/${row.name} shows its state; behind_max_seconds gives it more time.`,
        }
      })
    },
  }
}

/** Whether it has missed events and taken none since: those that it missed were older than `behindMaxMs` then. */
const isMissing = ({ sent_at: sentAt, skipped_to: to }: EventSinkRow, behindMaxMs: number) =>
  to !== null && (sentAt === null || Number(sentAt) < Number(to) + behindMaxMs)

function skippedText({ skipped, skipped_from: from, skipped_to: to }: EventSinkRow): string {
  if (Number(skipped) === 0) return ''
  const [first, last] = [from, to].map((ms) => new Date(Number(ms)).toISOString())
  return `${skipped} events from ${first} to ${last} were skipped. `
}

/** Relays whose token server gave no access token last time. */
export function relayLoginsCheck({ failingLogins }: Pick<RelaysArea, 'failingLogins'>): OwnCheck {
  return {
    name: 'relay-logins',
    description: 'A relay gets no new access token.',
    metric: 'failing_minutes',
    limit: '0',
    dimension: 'relay',
    everyMs: 5 * MINUTE_MS,
    async read(now) {
      const found = await failingLogins()
      return found.map(({ relay, failure, failedAt, expiresAt }) => ({
        value: relay,
        figure: minutes(now - failedAt),
        since: failedAt,
        advice: `The relay ${relay} gets no new access token: "${failure}". ${
          expiresAt !== null && expiresAt > now
            ? `The present one ends at ${new Date(expiresAt).toISOString()}; then its`
            : 'Its'
        } mail goes to the next choice of its rule, or waits. Mend the cause at the provider, or PUT /sendwright/v1/relays/${relay} with another secret or refresh token, which is tried at once.`,
      }))
    },
  }
}

/** Lasts this long after the last message about which a scanner did not answer. */
const UNCHECKED_LASTS_MS = 10 * MINUTE_MS

/** Scanners that do not answer, so that mail is sent without a check of its content, or waits. `node`: the name of this host. */
export function uncheckedMailCheck(
  check: Pick<ContentCheck, 'results' | 'lastUncheckedAt'>,
  node: string,
): OwnCheck {
  /** Unchecked messages before the present failure. */
  let before = 0
  let since: number | null = null
  return {
    name: 'content-check',
    description: 'A scanner does not answer: mail is sent without a check of its content, or waits for it.',
    metric: 'unchecked_messages',
    limit: '1',
    dimension: 'node',
    everyMs: MINUTE_MS,
    node,
    async read(now) {
      const { unchecked } = check.results()
      const lastAt = check.lastUncheckedAt()
      if (lastAt === null || now - lastAt > UNCHECKED_LASTS_MS) {
        before = unchecked
        since = null
        return []
      }
      since ??= lastAt
      const sent = unchecked - before
      const effect =
        sent === 0
          ? `Mail waits at ${node} for a check of its content`
          : `${sent} messages were sent from ${node} without a check of their content`
      return [
        {
          value: node,
          figure: String(sent),
          since,
          advice: `${effect}, the last at ${new Date(lastAt).toISOString()}. \`sendwright doctor\` shows which scanner does not answer, GET /sendwright/v1/system its last error.`,
        },
      ]
    },
  }
}

/** Mail that the check of its content keeps until somebody decides. */
export function contentHoldsCheck({ waiting }: Pick<Holds, 'waiting'>): OwnCheck {
  return {
    name: 'content-holds',
    description: 'The content check keeps mail until somebody decides.',
    metric: 'held_messages',
    limit: '1',
    dimension: '',
    everyMs: MINUTE_MS,
    async read() {
      const found = await waiting()
      if (found === null) return []
      const { messages, since } = found
      return [
        {
          value: '',
          figure: String(messages),
          since,
          advice: `The content check keeps ${messages} messages. GET /sendwright/v1/content-holds lists them by content; release or drop each, in the dashboard under Delivery.`,
        },
      ]
    },
  }
}
