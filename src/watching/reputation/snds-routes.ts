/** What Microsoft says of addresses, as `/v1/reputationanalytics/snds` (reputation.md section 3). */
import { canonicalIp } from '../../base/net/ip.ts'
import { NotFound } from '../../base/process/errors.ts'
import type { Of } from '../../base/shape.ts'
import { formatRfc3339 } from '../../base/time/dates.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { choiceParam, type InputOf, skipParam, textParam } from '../../platform/http/request/inputs.ts'
import type { SndsDayRow } from '../../platform/store/schema.ts'
import { type BlockOf, newestSndsDays, readBlocks, sndsDays } from './days.ts'
import {
  accountsOf,
  addressesOf,
  INCLUDE,
  isConfigured,
  PAGE_PARAMS,
  RANGE_PARAMS,
  rangeOf,
  type ScopeParts,
} from './scope.ts'
import { SNDS_DAY, SNDS_SUMMARY } from './shapes.ts'
import { complaintRateOf } from './snds/feed.ts'

const PATH = '/v1/reputationanalytics/snds'
const api = operationsOf({ tag: 'Reputation', auth: { area: 'ips' }, rateLimit: 'analytics' })
type Day = Of<typeof SNDS_DAY>
const FIELDS = Object.keys(SNDS_DAY.fields) as (keyof Day)[]
const PARAMS = {
  ...PAGE_PARAMS,
  ...RANGE_PARAMS,
  ...INCLUDE,
  sortBy: choiceParam('Member of the items to sort by', FIELDS, { default: 'date' }),
  orderBy: choiceParam('Ascending or descending', ['asc', 'desc'], { default: 'desc' }),
  search: textParam('Only addresses that contain it'),
}

export function sndsRoutes(parts: ScopeParts): Operation[] {
  const { store, clock } = parts

  async function answer(rows: readonly SndsDayRow[], given: InputOf<typeof PARAMS>, offset: number) {
    const { blockOf } = await readBlocks(store)
    const { sortBy, orderBy, limit } = given
    const sign = orderBy === 'asc' ? 1 : -1
    const items = rows.map((row) => dayView(row, blockOf))
    items.sort((one, other) => sign * compare(one, other, sortBy))
    return {
      summary: items.slice(offset, offset + limit),
      total: items.length,
      configured: await isConfigured(store, 'snds'),
    }
  }

  return [
    api.get(PATH, {
      id: 'listSndsAddresses',
      summary: 'What Microsoft says of each address: its newest day',
      params: PARAMS,
      answers: { 200: SNDS_SUMMARY },
      async handler({ input, caller }) {
        const given = input()
        const accountIds = await accountsOf(parts, caller, given)
        const { search = '' } = given
        const ips = addressesOf(parts, accountIds).filter((ip) => ip.includes(search))
        const rows = await newestSndsDays(store, ips, rangeOf(given, clock.now()))
        return answer(rows, given, given.offset)
      },
    }),
    api.get(`${PATH}/{ip}`, {
      id: 'readSndsAddress',
      summary: 'What Microsoft says of an address, day by day',
      params: { ...PARAMS, skip: skipParam() },
      answers: { 200: SNDS_SUMMARY, 404: 'Address not found' },
      async handler({ input, path, caller }) {
        const given = input()
        const ip = canonicalIp(path.ip) ?? ''
        if (!addressesOf(parts, await accountsOf(parts, caller, given)).includes(ip))
          throw new NotFound('Address not found')
        const rows = ip.includes(given.search ?? '')
          ? await sndsDays(store, [ip], rangeOf(given, clock.now()))
          : []
        return answer(rows, given, given.skip + given.offset)
      },
    }),
  ]
}

function dayView(row: SndsDayRow, blockOf: BlockOf): Day {
  const block = blockOf(row.ip)
  const [recipients, trapHits] = [Number(row.recipients), Number(row.trap_hits)]
  return {
    ip_address: row.ip,
    date: formatRfc3339(new Date(Number(row.day))),
    recipients,
    filter_result: row.filter_result,
    complaint_rate: row.complaint_rate,
    trap_hits: trapHits,
    trap_message_period: row.trap_period,
    trap_percentage: recipients === 0 ? 0 : (100 * trapHits) / recipients,
    is_blocked: block !== null,
    block_text: block ?? '',
  }
}

/** Complaint rates by their number: `< 0.1%` comes before `0.2%`. */
function compare(one: Day, other: Day, field: keyof Day): number {
  const [a, b] = [one, other].map((day) =>
    field === 'complaint_rate' ? (complaintRateOf(day.complaint_rate) ?? 0) : day[field],
  ) as [Day[keyof Day], Day[keyof Day]]
  return a < b ? -1 : a > b ? 1 : 0
}
