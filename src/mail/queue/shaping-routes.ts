/**
 * The limits per provider that are in force in this process, and an operator's orders over them: a pause, and other limits
 * (own-operations.md section 3). For the first account only.
 */

import { BadRequest, NotFound } from '../../base/process/errors.ts'
import { message } from '../../base/shape.ts'
import type { Clock } from '../../base/time/clock.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import { invalidFormat } from '../../base/values.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { dateParam, integerParam, wordParam } from '../../platform/http/request/inputs.ts'
import { NO_RATE, type Override, type Overrides } from '../deliver/overrides/overrides.ts'
import type { Shaping } from '../deliver/shaping/shaping.ts'
import { CONNECTIONS_MAX, rateOf } from '../deliver/shaping/shaping-file.ts'
import { backOffOf, type LaneLimits } from '../deliver/shaping/shaping-table.ts'
import { ORDER, SHAPING, type ShapingView, type SiteOrder } from './shapes.ts'

interface ShapingRouteParts {
  shaping: Shaping
  overrides: Overrides
  clock: Clock
}

const SHAPING_PATH = '/sendwright/v1/shaping'
const PATH = `${SHAPING_PATH}/{site}` as const
const api = operationsOf({ tag: 'Queue', auth: { area: 'domains', only: 'first' } })
/** The name of a site has up to three host names. */
const SITE_LENGTH_MAX = 800
const REASON_LENGTH_MAX = 1_000
/** An order for longer than this has no end. */
const UNTIL_MAX_MS = 366 * DAY_MS
const UNTIL = dateParam('When it ends by itself, within a year; without it somebody ends it')
const ENDED = { 200: message('success', 'Ended'), 404: 'There is no such order' } as const

export function shapingRoutes({ shaping, overrides, clock }: ShapingRouteParts): Operation[] {
  /** @throws BadRequest */
  function siteFor(site: string): string {
    const name = site.toLowerCase()
    if (name === '' || name.length > SITE_LENGTH_MAX || /[\p{Cc}\s]/u.test(name))
      throw invalidFormat('site', site.slice(0, SITE_LENGTH_MAX))
    return name
  }

  /** @throws BadRequest */
  function untilOf(date: Date | undefined): number | null {
    if (date === undefined) return null
    const until = date.getTime()
    const now = clock.now()
    if (until <= now || until > now + UNTIL_MAX_MS)
      throw new BadRequest('until must be in the future, and within a year')
    return until
  }

  return [
    api.get(SHAPING_PATH, {
      id: 'readShaping',
      summary: 'The limits per provider in force, and the faults of a file that is not',
      description: 'For the first account only.',
      auth: { area: 'account', access: 'read', only: 'first' },
      answers: { 200: SHAPING },
      async handler() {
        return { ...shapingView(shaping), overrides: overrides.list().map(overrideView) }
      },
    }),
    api.put(`${PATH}/pause`, {
      id: 'pauseSite',
      audit: { given: ['reason', 'until'] },
      summary: 'Send nothing to a provider, now and later, until that is ended',
      description:
        'What is accepted meanwhile waits, too. `site` is as in the lanes, or the domain of recipients. For the first account only.',
      params: { reason: wordParam('For the others; at most 1000 characters', shortReason), until: UNTIL },
      answers: { 200: ORDER },
      async handler({ input, path, log }) {
        const site = siteFor(path.site)
        const { reason = '', until } = input()
        const override = await overrides.pause(site, { reason, until: untilOf(until) })
        log.info({ site, reason }, 'mail to a site is paused')
        return overrideView(override)
      },
    }),
    api.delete(`${PATH}/pause`, {
      id: 'resumeSite',
      summary: 'Send to a provider again, at once',
      description: 'For the first account only.',
      answers: ENDED,
      async handler({ path }) {
        const site = siteFor(path.site)
        if (!(await overrides.resume(site))) throw new NotFound('mail to this site is not paused')
        return { message: 'success' }
      },
    }),
    api.put(`${PATH}/limits`, {
      id: 'setSiteLimits',
      audit: { given: ['connections', 'rate', 'until'] },
      summary: 'Order other limits for a provider than those of the shaping',
      description:
        'They hold for each source address at once, over a changed shaping file and a restart. For the first account only.',
      params: {
        connections: integerParam(
          `At a time from one address, 1 to ${CONNECTIONS_MAX}; without it as shaped`,
          { min: 1, max: CONNECTIONS_MAX },
        ),
        rate: wordParam(
          `Messages in a time, such as \`300/1m\`, or \`${NO_RATE}\`; without it as shaped`,
          knownRate,
        ),
        until: UNTIL,
      },
      answers: { 200: ORDER },
      async handler({ input, path, log }) {
        const site = siteFor(path.site)
        const { connections = null, rate = null, until } = input()
        if (connections === null && rate === null) throw new BadRequest('give connections, rate, or both')
        const override = await overrides.setLimits(site, { connections, rate, until: untilOf(until) })
        log.info({ site, connections, rate }, 'limits of a site are ordered')
        return overrideView(override)
      },
    }),
    api.delete(`${PATH}/limits`, {
      id: 'resetSiteLimits',
      summary: 'Return to the limits of the shaping',
      description: 'For the first account only.',
      answers: ENDED,
      async handler({ path }) {
        const site = siteFor(path.site)
        if (!(await overrides.resetLimits(site))) throw new NotFound('no limits are ordered for this site')
        return { message: 'success' }
      },
    }),
  ]
}

function shortReason(text: string, name: string): string {
  if (text.length > REASON_LENGTH_MAX) throw invalidFormat(name, text)
  return text
}

function knownRate(text: string, name: string): string {
  if (text !== NO_RATE && rateOf(text) === undefined) throw invalidFormat(name, text)
  return text
}

const timeView = (ms: number) => new Date(ms).toISOString()
const endView = (ms: number | null) => (ms === null ? null : timeView(ms))

export const overrideView = ({ site, pause, limits }: Override): SiteOrder => ({
  site,
  pause: pause && { reason: pause.reason, since: timeView(pause.since), until: endView(pause.until) },
  limits: limits && {
    connections: limits.connections,
    rate: limits.rate,
    until: endView(limits.until),
  },
})

function shapingView(shaping: Shaping): Omit<ShapingView, 'overrides'> {
  const table = shaping.current()
  const { file, loadedAt, faults } = shaping.state()
  return {
    version: table.version,
    file,
    loaded_at: timeView(loadedAt),
    faults,
    default: { ...siteView(table.default), prefer: table.prefer },
    providers: table.sites.map(({ site, mx, limits, prefer = table.prefer }) => ({
      ...{ site, mx, prefer },
      ...siteView(limits),
    })),
  }
}

export const limitsView = ({ connections, messagesPerConnection, messagesPerSecond }: LaneLimits) => ({
  connections,
  messages_per_connection: messagesPerConnection,
  messages_per_second: messagesPerSecond,
})

function siteView(limits: LaneLimits) {
  const { recoveryMs, blockedPauseMs, blockedPauseMaxMs, replies } = backOffOf(limits)
  return {
    ...limitsView(limits),
    recovery_seconds: recoveryMs / 1_000,
    blocked_pause_seconds: blockedPauseMs / 1_000,
    blocked_pause_max_seconds: blockedPauseMaxMs / 1_000,
    replies: replies.map(({ code, patterns, action }) => ({
      code,
      patterns: patterns.map(({ source }) => source),
      action,
    })),
  }
}
