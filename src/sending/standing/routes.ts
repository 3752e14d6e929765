/** Standings, policies, spam traps, and domains that the operator disables, over HTTP (standing.md). */
import { BadRequest, NotFound } from '../../base/process/errors.ts'
import { message, type Of } from '../../base/shape.ts'
import { formatRfc3339 } from '../../base/time/dates.ts'
import { HOUR_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import type { Account } from '../../people/accounts/account-directory.ts'
import { emailOf } from '../../people/accounts/user-directory.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import {
  choiceParam,
  dateParam,
  type InputOf,
  integerParam,
  parsedParam,
  textParam,
  untilOf,
  wordParam,
} from '../../platform/http/request/inputs.ts'
import type { Params } from '../../platform/http/request/params.ts'
import { checkOperator } from '../../platform/http/rights/auth.ts'
import { countOf } from '../../platform/store/count.ts'
import type { StandingRow } from '../../platform/store/schema.ts'
import { addressKey } from '../../protocols/mime/address.ts'
import type { Domain } from '../domains/domain.ts'
import type { StandingChanges } from './changes.ts'
import { countsOf, hourOf } from './counts.ts'
import { type Code, NO_FIGURES, plus, type SentFigures, type StandingState } from './judge.ts'
import type { KnownStandings } from './known-standings.ts'
import { dailyBudget, POLICIES, policyOf, STANDARD, type StandingLimits, WINDOW_HOURS_MAX } from './policy.ts'
import {
  ACCOUNT_POLICY,
  ACCOUNT_STANDING,
  DOMAIN_DISABLED,
  GENERAL_POLICY,
  type STANDING,
  STANDINGS,
  TRAP,
  TRAPS,
} from './shapes.ts'

const PATH = '/sendwright/v1/standing'
const OF_ACCOUNT = '/sendwright/v1/accounts/{account_id}/standing' as const
const OF_DOMAIN = '/sendwright/v1/domains/{name}' as const
const TRAPS_PATH = '/sendwright/v1/spam-traps'
const api = operationsOf({ tag: 'Standing', auth: { area: 'account', only: 'first' } })

const TEXT_LENGTH_MAX = 1_000
/** All are in memory of each process. */
const TRAPS_MAX = 10_000
const BUDGET_MAX = 10_000_000

interface StandingRouteParts
  extends Pick<Core, 'store' | 'clock' | 'accounts' | 'domains' | 'firstAccountId'> {
  known: KnownStandings
  changes: StandingChanges
}

const percentParam = (about: string) =>
  parsedParam(`${about}, in percent, 0 to 100; 0: not judged`, percentOf, { type: 'number' })

/** @throws BadRequest */
function percentOf(params: Params, name: string): number | undefined {
  const given = params.text(name)
  if (given === undefined) return undefined
  const value = Number(given)
  if (!/^\d{1,3}(?:\.\d{1,4})?$/.test(given) || value > 100)
    throw new BadRequest(`${name} must be a number from 0 to 100, with at most four decimals`)
  return value
}

const LIMIT_PARAMS = {
  bounce_percent: percentParam('Hard bounces'),
  unknown_user_percent: percentParam('No such user'),
  complaint_percent: percentParam('Complaints'),
  bad_content_percent: percentParam('Bad content'),
  spam_trap_hits: integerParam('Messages to spam traps; 0: not judged', { min: 0, max: 1_000_000 }),
  window_hours: integerParam('Hours that are judged', { min: 1, max: WINDOW_HOURS_MAX }),
  min_messages: integerParam('Percentages of fewer are not judged', { min: 20, max: 1_000_000 }),
  slow_percent: integerParam('What is left of the rate of a slowed sender', { min: 1, max: 100 }),
  hold_hours: integerParam('How long a sender stays slowed or held', { min: 1, max: 720 }),
}
const POLICY_PARAMS = {
  policy: choiceParam(
    '`custom` has the figures below, and those of `standard` where none is given',
    POLICIES,
    {
      required: true,
    },
  ),
  ...LIMIT_PARAMS,
}

const shortText = (about: string) =>
  parsedParam(`${about}, at most ${TEXT_LENGTH_MAX} characters`, (params, name) => {
    const text = params.text(name) ?? ''
    if (text.length > TEXT_LENGTH_MAX)
      throw new BadRequest(`${name} has more than ${TEXT_LENGTH_MAX} characters`)
    return text.replaceAll('\0', '')
  })

/** The figures of `custom`; null for the others. @throws BadRequest for figures with another policy */
function customLimits({ policy, ...given }: InputOf<typeof POLICY_PARAMS>): StandingLimits | null {
  const own = Object.entries(given).filter(([, value]) => value !== undefined)
  if (policy === 'custom') return { ...STANDARD, ...Object.fromEntries(own) }
  if (own.length > 0) throw new BadRequest(`${own[0]?.[0]} needs the policy custom`)
  return null
}

export function standingRoutes(parts: StandingRouteParts): Operation[] {
  return [...generalRoutes(parts), ...accountRoutes(parts), ...domainRoutes(parts), ...trapRoutes(parts)]
}

function generalRoutes(parts: StandingRouteParts): Operation[] {
  const { known } = parts
  const general = (): Of<typeof GENERAL_POLICY> => {
    const { policy, limits, newAccountDaily } = known.general()
    return { policy, ...(limits && { limits }), new_account_daily: newAccountDaily }
  }
  return [
    api.get(PATH, {
      id: 'listStandings',
      summary: 'Who is stopped, and by which policy senders are judged',
      answers: { 200: STANDINGS },
      async handler() {
        const rows = [...known.list()].sort((one, other) => Number(other.since_at) - Number(one.since_at))
        return { policy: general(), items: rows.map(view) }
      },
    }),
    api.put(`${PATH}/policy`, {
      id: 'setStandingPolicy',
      audit: { given: Object.keys(POLICY_PARAMS) },
      summary: 'Set the policy of all accounts without one of their own',
      params: {
        ...POLICY_PARAMS,
        new_account_daily: integerParam(
          'Messages that a new subaccount may send on its first day; doubled each day, for two weeks. 0: no budget. Absent: as before',
          { min: 0, max: BUDGET_MAX },
        ),
      },
      answers: { 200: GENERAL_POLICY },
      async handler({ input }) {
        const { new_account_daily: daily = known.general().newAccountDaily, ...given } = input()
        await writePolicy(parts, '', given, daily)
        return general()
      },
    }),
  ]
}

function accountRoutes(parts: StandingRouteParts): Operation[] {
  const { store, clock, accounts, known, changes } = parts

  /** @throws NotFound */
  async function accountOf(id: string): Promise<Account> {
    const account = await accounts.byId(id)
    if (account === null || account.status === 'closed') throw new NotFound('Account not found')
    return account
  }
  const policyView = (accountId: string): Of<typeof ACCOUNT_POLICY> => {
    const { policy, limits, isOwn } = known.policyFor(accountId)
    return { policy, ...(limits && { limits }), is_own: isOwn }
  }

  async function standingOf(account: Account): Promise<Of<typeof ACCOUNT_STANDING>> {
    const { id, parentId, createdAt } = account
    const rows = known.list().filter((row) => row.account_id === id)
    const hours = known.policyFor(id).limits?.window_hours ?? STANDARD.window_hours
    const counts = await countsOf(store, [id], hourOf(clock.now() - hours * HOUR_MS))
    const budget =
      parentId === null ? null : dailyBudget(known.general().newAccountDaily, createdAt, clock.now())
    return {
      account_id: id,
      state: (rows.find(({ domain_name }) => domain_name === '')?.state ?? 'good') as StandingState,
      policy: policyView(id),
      figures: figuresView(counts.reduce((sum, { figures }) => plus(sum, figures), NO_FIGURES)),
      stopped: rows.map(view),
      ...(budget !== null && {
        daily_budget: { limit: budget, used: (await known.usedToday()).get(id) ?? 0 },
      }),
    }
  }

  return [
    api.get(OF_ACCOUNT, {
      id: 'readAccountStanding',
      summary: 'How an account stands: state, figures, policy, daily budget',
      description: "The caller's own account, or any for the operator.",
      auth: { area: 'domains', access: 'read' },
      answers: { 200: ACCOUNT_STANDING, 404: 'No such account' },
      async handler({ caller, path }) {
        if (path.account_id !== caller.accountId) checkOperator(caller, parts.firstAccountId)
        return standingOf(await accountOf(path.account_id))
      },
    }),
    api.post(`${OF_ACCOUNT}/release`, {
      id: 'releaseStanding',
      audit: { given: ['domain'] },
      summary: 'Release a stopped account, or a domain of it; what waited goes on',
      description: 'Its figures begin anew.',
      params: { domain: textParam('The domain; absent: the account as a whole') },
      answers: { 200: ACCOUNT_STANDING, 404: 'No such account' },
      async handler({ input, caller, path, remoteAddress, requestId }) {
        const account = await accountOf(path.account_id)
        await changes.release(account.id, input().domain ?? '', { caller, remoteAddress, requestId })
        return standingOf(account)
      },
    }),
    api.put(`${OF_ACCOUNT}/policy`, {
      id: 'setAccountStandingPolicy',
      audit: { given: Object.keys(POLICY_PARAMS) },
      summary: 'Set the policy of one account',
      params: POLICY_PARAMS,
      answers: { 200: ACCOUNT_POLICY, 404: 'No such account' },
      async handler({ input, path }) {
        const { id } = await accountOf(path.account_id)
        await writePolicy(parts, id, input(), 0)
        return policyView(id)
      },
    }),
    api.delete(`${OF_ACCOUNT}/policy`, {
      id: 'deleteAccountStandingPolicy',
      summary: 'Return an account to the policy of all',
      answers: { 200: ACCOUNT_POLICY, 404: 'No such account' },
      async handler({ path }) {
        const { id } = await accountOf(path.account_id)
        await store.db.deleteFrom('standing_policies').where('account_id', '=', id).execute()
        await known.changed()
        return policyView(id)
      },
    }),
  ]
}

async function writePolicy(
  { store, clock, known }: StandingRouteParts,
  account_id: string,
  given: InputOf<typeof POLICY_PARAMS>,
  new_account_daily: number,
): Promise<void> {
  const { policy } = given
  const custom = customLimits(given)
  const row = {
    policy: policyOf(policy, custom).policy,
    limits_json: custom && JSON.stringify(custom),
    new_account_daily,
    updated_at: Math.floor(clock.now()),
  }
  await store.db
    .insertInto('standing_policies')
    .values({ account_id, ...row })
    .onConflict((conflict) => conflict.column('account_id').doUpdateSet(row))
    .execute()
  await known.changed()
}

/** Disabling a domain, of whatever account (domains.md rule 12). */
function domainRoutes(parts: StandingRouteParts): Operation[] {
  const { clock, domains, changes } = parts

  /** @throws NotFound */
  async function domainOf(name: string): Promise<Domain> {
    const domain = await domains.byName(name)
    if (domain === null) throw new NotFound('Domain not found')
    return domain
  }

  return [
    api.post(`${OF_DOMAIN}/disable`, {
      id: 'disableDomain',
      audit: { given: ['reason', 'note', 'until'] },
      summary: 'Disable a domain of any account: it takes no mail, and its queued mail is held',
      params: {
        reason: shortText('Why'),
        note: shortText('More about it'),
        until: dateParam('When it ends; absent: when it is enabled'),
      },
      answers: { 200: DOMAIN_DISABLED, 404: 'No such domain' },
      async handler({ input, path }) {
        const { accountId, name } = await domainOf(path.name)
        const { reason, note, until } = input()
        await changes.disable(accountId, name, { reason, note, until: untilOf(until, clock.now()) })
        return { name, is_disabled: true }
      },
    }),
    api.post(`${OF_DOMAIN}/enable`, {
      id: 'enableDomain',
      summary: 'Let a disabled domain send again; its held mail goes on',
      answers: { 200: DOMAIN_DISABLED, 404: 'No such domain' },
      async handler({ caller, path, remoteAddress, requestId }) {
        const { accountId, name } = await domainOf(path.name)
        await changes.enable(accountId, name, { caller, remoteAddress, requestId })
        return { name, is_disabled: false }
      },
    }),
  ]
}

function trapRoutes(parts: StandingRouteParts): Operation[] {
  const { store, clock, known } = parts
  const trapView = ({
    address,
    note,
    created_at,
  }: {
    address: string
    note: string
    created_at: number
  }) => ({
    ...{ address, note },
    created_at: formatRfc3339(new Date(Number(created_at))),
  })
  return [
    api.get(TRAPS_PATH, {
      id: 'listSpamTraps',
      summary: 'List the spam traps that senders are judged by',
      answers: { 200: TRAPS },
      async handler() {
        const rows = await store.db.selectFrom('spam_traps').selectAll().orderBy('address').execute()
        return { items: rows.map(trapView) }
      },
    }),
    api.post(TRAPS_PATH, {
      id: 'addSpamTrap',
      audit: { subject: ['address'], given: ['address', 'note'] },
      summary: 'Name an address that only senders with a bad list write to',
      params: {
        address: wordParam('The address', addressOf, { required: true }),
        note: shortText('Where it comes from'),
      },
      answers: { 200: TRAP },
      async handler({ input }) {
        const row = { ...input(), created_at: Math.floor(clock.now()) }
        await store.transaction(async (tx) => {
          const count = await countOf(tx.selectFrom('spam_traps'))
          if (count >= TRAPS_MAX) throw new BadRequest(`at most ${TRAPS_MAX} spam traps`)
          await tx
            .insertInto('spam_traps')
            .values(row)
            .onConflict((conflict) => conflict.column('address').doUpdateSet({ note: row.note }))
            .execute()
        })
        await known.changed()
        return trapView(row)
      },
    }),
    api.delete(`${TRAPS_PATH}/{address}`, {
      id: 'deleteSpamTrap',
      summary: 'Take an address from the spam traps',
      answers: { 200: message('The spam trap was removed'), 404: 'No such spam trap' },
      async handler({ path }) {
        const { numDeletedRows } = await store.db
          .deleteFrom('spam_traps')
          .where('address', '=', addressKey(path.address))
          .executeTakeFirst()
        if (Number(numDeletedRows) === 0) throw new NotFound('Spam trap not found')
        await known.changed()
        return { message: 'The spam trap was removed' }
      },
    }),
  ]
}

/** @throws BadRequest */
function addressOf(text: string): string {
  const address = emailOf(text)
  if (address === null) throw new BadRequest('address must be an address, such as trap@example.org')
  return addressKey(address)
}

function figuresView(figures: SentFigures) {
  return {
    sent: figures.sent,
    bounced: figures.bounced,
    unknown_users: figures.unknownUsers,
    complained: figures.complained,
    spam_trap_hits: figures.trapped,
    checked: figures.checked,
    bad_content: figures.badContent,
  }
}

const view = (row: StandingRow): Of<typeof STANDING> => ({
  account_id: row.account_id,
  ...(row.domain_name !== '' && { domain: row.domain_name }),
  state: row.state as 'warned' | 'slowed' | 'held',
  code: row.code as Code,
  reason: row.reason,
  figures: figuresView(JSON.parse(row.figures_json) as SentFigures),
  ...(row.per_minute !== null && { messages_per_minute: Number(row.per_minute) }),
  since: formatRfc3339(new Date(Number(row.since_at))),
  until: formatRfc3339(new Date(Number(row.until_at))),
  told: JSON.parse(row.told_json) as string[],
})
