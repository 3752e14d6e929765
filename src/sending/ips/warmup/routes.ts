/** Warm-ups over HTTP (ips-pools.md section 4). */

import type { Of } from '../../../base/shape.ts'
import type { Clock } from '../../../base/time/clock.ts'
import { type Operation, operationsOf } from '../../../platform/http/operation.ts'
import { limitParam } from '../../../platform/http/request/inputs.ts'
import { pageUrl } from '../../../platform/http/request/paging.ts'
import type { IpWarmupProviderRow, IpWarmupRow } from '../../../platform/store/schema.ts'
import { PAGE_PARAM, writePageToken } from '../page-token.ts'
import { SUCCESS } from '../routes.ts'
import { DONE, type WARMUP, type WARMUP_ITEM, WARMUP_PAGE, WARMUP_PROGRESS, WARMUP_READ } from '../shapes.ts'
import { historyOf, hourlyLimit, hourOf, limitOf } from './plan.ts'
import type { Warmups } from './warmups.ts'

const api = operationsOf({ tag: 'IP warm-ups', auth: { area: 'ips' } })
const PATH = '/v3/ip_warmups' as const
const ONE = `${PATH}/{addr}` as const
const OWN = '/sendwright/v1/ip-warmups/{addr}' as const
const NONE = 'The address is not on warm-up'

interface WarmupRouteParts {
  warmups: Warmups
  plan: readonly number[]
  clock: Clock
  baseUrl: string
}

export function warmupRoutes(parts: WarmupRouteParts): Operation[] {
  return [...readRoutes(parts), ...changeRoutes(parts), ...ownRoutes(parts)]
}

function readRoutes({ warmups, plan, clock, baseUrl }: WarmupRouteParts): Operation[] {
  return [
    api.get(PATH, {
      id: 'listIpWarmups',
      summary: 'List the addresses on warm-up',
      params: { limit: limitParam(10, 100), page: PAGE_PARAM },
      answers: { 200: WARMUP_PAGE },
      async handler({ input, caller }) {
        const { limit, page: after } = input()
        const rows = await warmups.list(caller.accountId, after, limit)
        const url = (page?: string) =>
          pageUrl(baseUrl, PATH, [
            ['limit', limit],
            ['page', page],
          ])
        const next = url(writePageToken(rows.at(-1)?.ip ?? (after || '~')))
        const items = rows.map((row) => itemView(row, plan, clock.now()))
        return { items, paging: { first: url(), next } }
      },
    }),
    api.get(ONE, {
      id: 'readIpWarmup',
      summary: 'Read the state of a warm-up',
      answers: { 200: WARMUP_READ, 404: NONE },
      handler: async ({ path, caller }) => ({
        details: statusView(await warmups.read(caller.accountId, path.addr), plan, clock.now()),
      }),
    }),
  ]
}

function changeRoutes({ warmups }: WarmupRouteParts): Operation[] {
  return [
    api.post(ONE, {
      id: 'startIpWarmup',
      summary: 'Start the warm-up of a dedicated address',
      answers: { 200: DONE, 400: 'It is in progress' },
      async handler({ path, caller }) {
        await warmups.start(caller.accountId, path.addr)
        return SUCCESS
      },
    }),
    api.delete(ONE, {
      id: 'cancelIpWarmup',
      summary: 'End a warm-up: the address counts as warm',
      answers: { 200: DONE, 404: NONE },
      async handler({ path, caller }) {
        await warmups.cancel(caller.accountId, path.addr)
        return SUCCESS
      },
    }),
  ]
}

/** What the wire-compatible operations have no place for. */
function ownRoutes({ warmups, plan, clock }: WarmupRouteParts): Operation[] {
  const setPaused = (isPaused: boolean, id: string, summary: string) =>
    api.post(`${OWN}/${isPaused ? 'pause' : 'resume'}`, {
      id,
      summary,
      answers: { 200: DONE, 400: 'It is so already', 404: NONE },
      async handler({ path, caller }) {
        await warmups.setPaused(caller.accountId, path.addr, isPaused)
        return SUCCESS
      },
    })
  return [
    api.get(OWN, {
      id: 'readIpWarmupProviders',
      summary: 'Read the progress of a warm-up with each provider',
      answers: { 200: WARMUP_PROGRESS, 404: NONE },
      async handler({ path, caller }) {
        const row = await warmups.read(caller.accountId, path.addr)
        return progressView(row, await warmups.providersOf(row.ip), plan, clock.now())
      },
    }),
    setPaused(true, 'pauseIpWarmup', 'Keep a warm-up at its stage'),
    setPaused(false, 'resumeIpWarmup', 'Let a warm-up that was paused go on'),
  ]
}

function progressView(
  row: IpWarmupRow,
  providers: readonly IpWarmupProviderRow[],
  plan: readonly number[],
  now: number,
): Of<typeof WARMUP_PROGRESS> {
  const limit = limitOf(plan, Number(row.stage)) ?? 0
  return {
    ip: row.ip,
    paused_at: row.paused_at === null ? null : time(row.paused_at),
    total_stages: plan.length,
    ...stageView(row, limit, now),
    providers: providers.map((one) => ({
      provider: one.provider,
      ...stageView(one, limitOf(plan, Number(one.stage)) ?? 0, now),
      sent: Number(one.sent_before) + Number(one.window_used),
    })),
  }
}

const stageView = (row: IpWarmupRow | IpWarmupProviderRow, limit: number, now: number) => ({
  stage_number: Number(row.stage),
  stage_start_time: time(row.stage_started_at),
  stage_volume_limit: limit,
  hourly_limit: hourlyLimit(limit),
  sent_within_stage: percentOf(Number(row.window_used), limit),
  throttle: throttleOf(row, now),
})

const percentOf = (used: number, limit: number) => `${limit === 0 ? 0 : Math.floor((used * 100) / limit)}%`

const time = (ms: number) => new Date(Number(ms)).toISOString()

function common(row: IpWarmupRow, plan: readonly number[], now: number) {
  const limit = limitOf(plan, Number(row.stage)) ?? 0
  return {
    sent_within_stage: percentOf(Number(row.window_used), limit),
    throttle: throttleOf(row, now),
    stage_number: Number(row.stage),
    stage_start_volume: Number(row.start_volume),
    stage_start_time: time(row.stage_started_at),
    stage_volume_limit: limit,
  }
}

/** Percent of the messages of this hour that were kept away (rule 4). */
function throttleOf(row: Pick<IpWarmupRow, 'hour_started_at' | 'hour_used' | 'hour_diverted'>, now: number) {
  if (Number(row.hour_started_at) !== hourOf(now)) return 0
  const [used, diverted] = [Number(row.hour_used), Number(row.hour_diverted)]
  return diverted === 0 ? 0 : Math.round((diverted * 100) / (used + diverted))
}

const itemView = (row: IpWarmupRow, plan: readonly number[], now: number): Of<typeof WARMUP_ITEM> => ({
  ip: row.ip,
  ...common(row, plan, now),
})

/** The older and newer names of the same values. */
function statusView(row: IpWarmupRow, plan: readonly number[], now: number): Of<typeof WARMUP> {
  const values = common(row, plan, now)
  return {
    ...values,
    stage: values.stage_number,
    start_volume: values.stage_start_volume,
    stage_limit: values.stage_volume_limit,
    stage_started_at: values.stage_start_time,
    hourly_limit: hourlyLimit(values.stage_volume_limit),
    hour_started_at: time(Math.max(Number(row.hour_started_at), hourOf(now))),
    plan_started_at: time(row.plan_started_at),
    plan_last_updated_at: time(row.updated_at),
    total_stages: plan.length,
    stage_history: historyOf(row),
  }
}
