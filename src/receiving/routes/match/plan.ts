/** What the routes of the recipients make of one mail: copies, POSTs and events. */

import type { Logger } from 'pino'
import { quotable } from '../../../base/values.ts'
import type { Core } from '../../../core.ts'
import type { MessageRecord, StoredHeader } from '../../../mail/record/record.ts'
import type { Statement } from '../../../platform/store/store.ts'
import { bareAddress, type Mailbox, parseMailbox } from '../../../protocols/mime/address.ts'
import { type EventMessage, type EventRecord, failedEvent } from '../../../watching/events/event.ts'
import { storedEvent } from '../../../watching/events/later-events.ts'
import { maskedUrl } from '../../../watching/webhooks/webhook-url.ts'
import type { NewRoutePost, RoutePosts } from '../forward/posts.ts'
import { OWN_HOPS_MAX, type traceOf } from '../forward/received-fields.ts'
import { routesFor, type Step } from './evaluate.ts'
import { MailHeaders } from './expression.ts'
import type { PatternWork } from './pattern-work.ts'
import type { CompiledRoute, Route } from './route.ts'

export interface PlanParts extends Pick<Core, 'recorder' | 'clock' | 'log'> {
  posts: Pick<RoutePosts, 'statements'>
}

interface PlannedMail {
  routes: readonly CompiledRoute[]
  recipients: readonly Mailbox[]
  headers: readonly StoredHeader[]
  trace: ReturnType<typeof traceOf>
  /** For its headers; the matches of the recipients have been reserved. */
  work: PatternWork
}

export interface Plan {
  /** Recipients that a route wants. */
  recipients: { mailbox: Mailbox; routes: readonly unknown[] }[]
  forwards: { mailbox: Mailbox; routeId: string }[]
  /** Everything besides the message, its deliveries and its accepted events. `refused`: forwards that are not made. */
  statements(about: EventMessage, record: MessageRecord, refused: Readonly<Plan['forwards']>): Statement[]
}

/** Steps for one recipient: an account may have a thousand routes with twenty destinations each. */
const STEPS_MAX = 100

/** A destination that gets nothing, for its event. */
interface Failed {
  recipient: string
  recipientDomain: string
  reason: string
  code: number
  text: string
}

/** @throws TooMuchWork */
export async function planFor(parts: PlanParts, mail: PlannedMail): Promise<Plan> {
  const values = headerValues(mail.headers)
  const headers = new MailHeaders((name) => values.get(name) ?? [], mail.work)
  const recipients: Plan['recipients'] = []
  const forwards: Plan['forwards'] = []
  const posts: NewRoutePost[] = []
  const failed: Failed[] = []
  let stores = false
  for (const mailbox of mail.recipients) {
    const recipient = bareAddress(mailbox)
    const { steps, matched, tooCostly } = await routesFor(mail.routes, {
      recipient,
      headers,
      work: mail.work,
    })
    for (const { id } of tooCostly) parts.log.warn({ route: id }, 'a pattern is too costly for a mail')
    if (matched.length === 0) continue
    recipients.push({
      mailbox,
      routes: matched.slice(0, SHOWN_MAX).map((route) => shownRoute(route, recipient)),
    })
    for (const step of bounded(parts.log, steps)) {
      if (step.kind === 'store') stores = true
      else if (step.kind === 'unusable') failed.push(unusable(mailbox, recipient, step.text))
      else if (step.kind === 'mail') takeForward(step, mail.trace, forwards, failed)
      else posts.push({ kind: step.kind === 'post' ? 'forward' : 'notify', url: step.url, recipient })
    }
  }
  return {
    recipients,
    forwards,
    statements(about, record, refused) {
      const now = parts.clock.now()
      const all = [...failed, ...refused.map(({ mailbox }) => looped(mailbox, 'Too many copies of one mail'))]
      const events = all.map((one) => failure(about, one, now))
      if (stores) events.unshift(storedEvent(about, now))
      return [...parts.recorder.statements(events), ...parts.posts.statements(record, posts)]
    },
  }
}

function bounded(log: Logger, steps: readonly Step[]): readonly Step[] {
  if (steps.length <= STEPS_MAX) return steps
  log.warn({ destinations: steps.length }, `routes give a mail more than ${STEPS_MAX} destinations`)
  return steps.slice(0, STEPS_MAX)
}

function takeForward(
  { address, route }: Extract<Step, { kind: 'mail' }>,
  trace: PlannedMail['trace'],
  forwards: Plan['forwards'],
  failed: Failed[],
): void {
  const mailbox = parseMailbox(address)
  if (trace.ownHops <= OWN_HOPS_MAX && !trace.routeIds.has(route.id)) {
    forwards.push({ mailbox, routeId: route.id })
    return
  }
  failed.push(looped(mailbox, 'Routing loop'))
}

const looped = (mailbox: Mailbox, text: string): Failed => ({
  recipient: bareAddress(mailbox),
  recipientDomain: mailbox.domain,
  reason: 'loop',
  code: 554,
  text,
})

const unusable = (mailbox: Mailbox, recipient: string, text: string): Failed => ({
  recipient,
  recipientDomain: mailbox.domain,
  reason: 'generic',
  code: 553,
  text: `Captures make no valid destination of ${quotable(maskedUrl(text))}`,
})

function failure(about: EventMessage, { reason, code, text, ...to }: Failed, now: number): EventRecord {
  const status = { code, 'attempt-no': 0, message: text, description: '', 'session-seconds': 0 }
  const facts = { sendingIp: null, primaryDkim: null, recipientProvider: 'Other', status }
  return failedEvent(about, to, { ...facts, severity: 'permanent', reason }, now)
}

function headerValues(headers: readonly StoredHeader[]): Map<string, string[]> {
  const values = new Map<string, string[]>()
  for (const [name, value] of headers) {
    const lower = name.toLowerCase()
    const present = values.get(lower)
    if (present) present.push(value)
    else values.set(lower, [value])
  }
  return values
}

/** Routes in one event. */
const SHOWN_MAX = 10

/** As the accepted event shows it; without passwords, and with long texts cut. */
const shownRoute = ({ id, priority, description, expression, actions }: Route, recipient: string) => ({
  id,
  priority,
  description: quotable(description),
  expression: quotable(expression),
  actions: actions.map((action) => quotable(action.replaceAll(/https?:[^"',\s]*/gi, maskedUrl))),
  match: { recipient },
})
