/** Why rates are what they are, over HTTP (own-operations.md section 11). */

import { BadRequest } from '../../base/process/errors.ts'
import type { Of } from '../../base/shape.ts'
import { DAY_MS, HOUR_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { type Operation, operation } from '../../platform/http/operation.ts'
import { dateParam, type InputOf, textParam } from '../../platform/http/request/inputs.ts'
import { ownDomain } from '../../sending/domains/names/directory.ts'
import { type Counts, noCounts } from '../metrics/counters.ts'
import { countOf, type FigureQuery, type Figures, type FilterEntry } from '../metrics/figures.ts'
import { DELIVERY_REASONS, type FAILURE_CLASS } from './shapes.ts'

/** A class of failures; see `failureReasons` of src/receiving/bounces. */
interface Reason {
  provider: string
  category: string
  ruleId: string
  explanation: string
  temporary: number
  permanent: number
  reply: { text: string; count: number }
  sample: {
    domain: string
    failedAt: number
    sendingIp: string | null
    event: { id: string; messageId: string | null; recipient: string | null } | null
  }
}

export interface ReasonRouteParts extends Pick<Core, 'domains' | 'clock'> {
  figures: Figures
  failureReasons(query: {
    accountId: string
    startMs: number
    endMs: number
    domainName: string | null
  }): Promise<{ reasons: Reason[]; partial: boolean }>
}

const DEFAULT_DAYS = 7
const RANGE = {
  end: dateParam('Default now'),
  start: dateParam(`Default ${DEFAULT_DAYS} days before the end`),
}
const PARAMS = { ...RANGE, domain: textParam('Default all of the account') }

export function reasonRoutes(parts: ReasonRouteParts): Operation[] {
  return [
    operation({
      method: 'GET',
      path: '/sendwright/v1/delivery-reasons',
      id: 'readDeliveryReasons',
      tag: 'Metrics',
      summary:
        'Figures by recipient provider, with the classes of failures, their most frequent reply and a sample',
      auth: { area: 'events', access: 'read' },
      rateLimit: 'analytics',
      params: PARAMS,
      answers: {
        200: DELIVERY_REASONS,
        400: 'A bad date, a start after the end, or a range with too much to read',
        404: 'Domain not found',
      },
      async handler({ input, caller }) {
        const { domain: name, ...given } = input()
        const range = rangeOf(given, parts.clock.now())
        const domain = name ? await ownDomain(parts.domains, caller, name) : null
        return reasonsOf(parts, caller.accountId, domain?.name ?? null, range)
      },
    }),
  ]
}

/** Whole hours, so that figures and failures are of the same time. */
function rangeOf({ start, end }: InputOf<typeof RANGE>, now: number): { startMs: number; endMs: number } {
  const last = end?.getTime() ?? now
  const first = start?.getTime() ?? last - DEFAULT_DAYS * DAY_MS
  if (first > last) throw new BadRequest('start must not be after end')
  return {
    startMs: Math.floor(first / HOUR_MS) * HOUR_MS,
    endMs: Math.floor(last / HOUR_MS) * HOUR_MS + HOUR_MS,
  }
}

async function reasonsOf(
  { figures, failureReasons }: ReasonRouteParts,
  accountId: string,
  domainName: string | null,
  range: { startMs: number; endMs: number },
): Promise<Of<typeof DELIVERY_REASONS>> {
  const filter: FilterEntry[] =
    domainName === null ? [] : [{ attribute: 'domain', comparator: '=', values: [domainName] }]
  const query: FigureQuery = { accountIds: [accountId], ...range, resolution: 'hour', dimensions: [], filter }
  const byProvider = await figures.read({ ...query, dimensions: ['recipient_provider'] })
  const byBot = await figures.read({ ...query, dimensions: ['bot'] })
  const { reasons, partial } = await failureReasons({ accountId, domainName, ...range })
  const figuresOf = new Map(byProvider.map(({ values, counts }) => [values[0] as string, counts]))
  const names = new Set([...figuresOf.keys(), ...reasons.map(({ provider }) => provider)])
  // Failures are recorded before the figures count them.
  const countsOf = (provider: string) => figuresOf.get(provider) ?? noCounts()
  const providers = [...names].map((provider) => ({
    provider,
    ...volumesOf(countsOf(provider)),
    failures: reasons.filter((reason) => reason.provider === provider).map(shown),
  }))
  const volumeOf = (name: string) => countOf('sent_count', countsOf(name))
  return {
    start: new Date(range.startMs).toISOString(),
    end: new Date(range.endMs).toISOString(),
    domain: domainName,
    visits: visitsOf(byBot.map(({ values, counts }) => [values[0] as string, counts])),
    providers: providers.sort(
      (a, b) => volumeOf(b.provider) - volumeOf(a.provider) || (a.provider < b.provider ? -1 : 1),
    ),
    ...(partial && { partial }),
  }
}

const volumesOf = (counts: Counts) => ({
  accepted: countOf('accepted_count', counts),
  delivered: countOf('delivered_count', counts),
  temporary_failed: countOf('temporary_failed_count', counts),
  permanent_failed: countOf('permanent_failed_count', counts),
  opened: counts.opened,
  unique_opened: counts.opened_unique,
  clicked: counts.clicked,
  unique_clicked: counts.clicked_unique,
  complained: counts.complained,
})

const PERSON = 'None'
/** All, those by people, and those by each kind of machine. */
function visitsOf(rows: readonly [bot: string, counts: Counts][]) {
  const sum = (isWanted: (bot: string) => boolean) => {
    const wanted = rows.filter(([bot]) => isWanted(bot))
    const of = (name: keyof Counts) => wanted.reduce((all, [, counts]) => all + counts[name], 0)
    return {
      opened: of('opened'),
      unique_opened: of('opened_unique'),
      clicked: of('clicked'),
      unique_clicked: of('clicked_unique'),
    }
  }
  const machines = rows.map(([bot]) => bot).filter((bot) => bot !== PERSON)
  return {
    all: sum(() => true),
    people: sum((bot) => bot === PERSON),
    machines: Object.fromEntries(machines.sort().map((name) => [name, sum((bot) => bot === name)])),
  }
}

const shown = ({
  category,
  ruleId,
  explanation,
  temporary,
  permanent,
  reply,
  sample,
}: Reason): Of<typeof FAILURE_CLASS> => ({
  class: category,
  rule: ruleId,
  explanation,
  temporary,
  permanent,
  reply,
  sample: {
    domain: sample.domain,
    failed_at: new Date(sample.failedAt).toISOString(),
    sending_ip: sample.sendingIp,
    event_id: sample.event?.id ?? null,
    message_id: sample.event?.messageId ?? null,
    recipient: sample.event?.recipient ?? null,
  },
})
