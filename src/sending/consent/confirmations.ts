/**
 * Double opt-in (decision 228): from a member that is pending to one that agreed, declined or did not answer.
 *
 * 1. A call or the form makes a member pending. The row says when its mail is due (lists/consent.ts).
 * 2. A job accepts the due mails, each in one transaction with the change of the row, so none is sent twice or lost.
 * 3. The link of the mail names the pending member by an id that the row loses with the answer: it works once.
 * 4. A job ends those that did not answer in time.
 *
 * The version of the list, which each change raises, decides between two answers at once.
 */
import { ServiceError, Unavailable } from '../../base/process/errors.ts'
import { DAY_MS, MINUTE_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import type { AskingMail, ConfirmationMail } from '../../mail/messages/confirmation-mail.ts'
import { createJob } from '../../platform/jobs/job.ts'
import type { ListMemberRow } from '../../platform/store/schema.ts'
import { StaleWrite, type Statement } from '../../platform/store/store.ts'
import { parseMailbox } from '../../protocols/mime/address.ts'
import type { Domain } from '../domains/domain.ts'
import type { DomainDirectory } from '../domains/names/directory.ts'
import {
  asksForMail,
  type Cause,
  dayOf,
  FORM_MAILS_PER_DAY_MAX,
  mailsLeft,
  NOT_PENDING,
  standingOf,
} from '../lists/consent.ts'
import type { List, ReadAddress } from '../lists/list.ts'
import type { ListStore } from '../lists/store.ts'
import { type FormLimits, isLimit } from './form-limits.ts'
import { mailText } from './mail-text.ts'

/** What the person of a link is shown. */
export interface Asked {
  list: List
  address: string
}

export type Confirmations = ReturnType<typeof createConfirmations>

export type Visitor = Pick<Cause, 'ip' | 'userAgent'>

interface ConfirmationParts extends Pick<Core, 'store' | 'clock' | 'log'> {
  lists: ListStore
  domains: Pick<DomainDirectory, 'byName'>
  tokens: { confirm(id: string): string; readConfirm(token: string): string | null }
  /** Scheme and host of the service's pages for the domain. */
  pageBase(domain: Domain): Promise<string>
  sendMail: ConfirmationMail
  formLimits: FormLimits
}

/** Mails of one step, and members that end in one. */
const PORTION = 50
const MAILS_EVERY_MS = MINUTE_MS
const ENDS_EVERY_MS = 10 * MINUTE_MS
/** A mail that is refused, such as by a domain that is disabled, is tried again as long as the member waits. */
const REFUSED_AGAIN_MS = 10 * MINUTE_MS
const OLD_ROWS = 1_000

export function createConfirmations(parts: ConfirmationParts) {
  const { store, lists, clock, tokens } = parts
  const sendDue = createAsking(parts)

  async function pendingOf(token: string): Promise<{ list: List; member: ListMemberRow } | null> {
    const id = tokens.readConfirm(token)
    const found = id === null ? null : await lists.pending(id)
    return found && isWaiting(found.member, clock.now()) ? found : null
  }

  async function endOf(listId: string, rows: readonly ListMemberRow[], cause: Cause): Promise<void> {
    const keys = rows.map(({ address_key }) => address_key)
    const found = await lists.changeMembers(listId, keys, (_list, present) => {
      const over = [...present.values()].filter(
        (row) => row.pending_id !== null && !isWaiting(row, cause.at) && row.pending_source === cause.source,
      )
      return { change: over.length === 0 ? null : { ...ended(over), cause }, result: true }
    })
    if (found === undefined) await store.commit(rows.map(forgetStatement))
  }

  async function endDue(): Promise<boolean> {
    const at = clock.now()
    const over = await lists.duePending('pending_until', at, PORTION)
    const groups = Map.groupBy(over, ({ list_id, pending_source }) => `${list_id} ${pending_source}`)
    for (const rows of groups.values()) {
      const { list_id, pending_source } = rows[0] as ListMemberRow
      await endOf(list_id, rows, { source: pending_source ?? 'api', at, ended: 'expired' })
    }
    const results = await store.commit(oldStatements(Math.floor(at)))
    return over.length === PORTION || results.some(({ affected }) => affected === OLD_ROWS)
  }

  const more = (isMore: boolean) => (isMore ? 'more' : undefined)
  const mails = createJob({
    ...{ name: 'confirmation-mails', everyMs: MAILS_EVERY_MS, scope: 'database' },
    work: async (signal) => more(await sendDue(signal)),
  })
  const ends = createJob({
    ...{ name: 'confirmation-ends', everyMs: ENDS_EVERY_MS, scope: 'database' },
    work: async () => more(await endDue()),
  })

  return {
    /** Accepts the mails of one step; whether there may be more. */
    sendDue,
    /** Ends members whose time is over, and removes old rows; whether there may be more. */
    endDue,
    jobs: [mails, ends],
    /** A mail may be due. */
    wake: () => mails.wake(),
    /** What a link asks; null: used, too old, or not one of ours. Changes nothing. */
    async find(token: string) {
      const found = await pendingOf(token)
      return found && { list: found.list, address: found.member.address }
    },
    /** The member agrees, or not; null as `find`. */
    async answer(token: string, agrees: boolean, visitor: Visitor) {
      const found = await pendingOf(token)
      if (found === null) return null
      const { address_key: key, pending_id: id } = found.member
      const cause: Cause = { source: 'mail', at: clock.now(), ...visitor }
      const answered = await lists.changeMembers<Asked | null>(found.list.id, [key], (list, present) => {
        const row = present.get(key)
        if (row === undefined || row.pending_id !== id || !isWaiting(row, cause.at))
          return { change: null, result: null }
        const change = agrees
          ? {
              write: [{ ...row, subscribed: 1 as const, ...NOT_PENDING, by_link: 0 as const }],
              added: 0,
              cause,
            }
          : { ...ended([row]), cause: { ...cause, ended: 'declined' as const } }
        return { change, result: { list, address: row.address } }
      })
      return answered ?? null
    },
    /** Somebody enters an address into the form of a list. Nothing tells whether that changed anything. */
    async join(list: List, address: ReadAddress, visitor: Visitor) {
      const cause: Cause = { source: 'form', at: clock.now(), ...visitor }
      const counts = await parts.formLimits.count(list.accountId, address, cause.at)
      const change = (mayAsk: boolean) =>
        lists.changeMembers(list.id, [address.key], joining(address, cause, mayAsk ? counts : null), {
          mails: true,
        })
      try {
        await change(true)
      } catch (error) {
        // Others have used what was left meanwhile.
        if (!isLimit(error, counts ?? [])) throw error
        await change(false)
      }
      mails.wake()
    },
  }
}

/** Sends the mails that ask members to confirm. */
function createAsking(parts: ConfirmationParts) {
  const { store, lists, domains, clock, log, tokens } = parts

  async function bodyOf(list: List, domain: Domain, row: ListMemberRow, withTemplate: boolean) {
    const url = `${await parts.pageBase(domain)}/confirm/${tokens.confirm(row.pending_id ?? '')}`
    if (!withTemplate || list.confirmTemplate === null) return mailText(list, url)
    const variables = {
      ...{ confirm_url: url, list_title: list.title || list.name, list_address: list.address },
      expire_days: list.confirmDays,
    }
    return { template: list.confirmTemplate, variables }
  }

  async function ask(row: ListMemberRow, list: List, domain: Domain): Promise<void> {
    const from = { ...parseMailbox(list.address), name: list.title || list.name }
    const send = async (withTemplate: boolean) => {
      const body: AskingMail['body'] = await bodyOf(list, domain, row, withTemplate)
      await parts.sendMail({ domain, from, to: row.address, body }, mailedStatements(row))
    }
    try {
      await send(true)
    } catch (error) {
      const isRefused = error instanceof ServiceError && !(error instanceof Unavailable)
      if (!isRefused || list.confirmTemplate === null) throw error
      // A template that is gone, or has no subject, must not keep people from confirming.
      log.warn({ err: error, list: list.address }, 'confirmation mail without its template')
      await send(false)
    }
  }

  async function sendOne(row: ListMemberRow): Promise<void> {
    const list = await lists.byId(row.list_id)
    if (list === null) return void (await store.commit([forgetStatement(row)]))
    const domain = await domains.byName(list.domainName)
    try {
      if (domain?.accountId !== list.accountId) await postpone(row)
      else await ask(row, list, domain)
    } catch (error) {
      // Answered or changed meanwhile: the next step sees it.
      if (error instanceof StaleWrite) return
      if (!(error instanceof ServiceError) || error instanceof Unavailable) throw error
      log.info({ err: error, list: list.address }, 'confirmation mail refused')
      await postpone(row)
    }
  }

  async function postpone({ pending_id }: ListMemberRow): Promise<void> {
    const sql =
      'UPDATE list_members SET pending_mail_at = ? WHERE pending_id = ? AND pending_mail_at IS NOT NULL'
    await store.commit([{ sql, values: [Math.floor(clock.now()) + REFUSED_AGAIN_MS, pending_id] }])
  }

  return async (signal?: AbortSignal) => {
    const due = await lists.duePending('pending_mail_at', clock.now(), PORTION)
    for (const row of due) {
      if (signal?.aborted) return false
      await sendOne(row)
    }
    return due.length === PORTION
  }
}

/** Decides what the form does with an address. `counts`: of the limits; null: one is reached. */
const joining =
  (
    { key, address }: ReadAddress,
    cause: Cause,
    counts: readonly Statement[] | null,
  ): Parameters<ListStore['changeMembers']>[2] =>
  (now, present, mailedAt) => {
    const before = present.get(key)
    const row: ListMemberRow = {
      ...{ list_id: now.id, address_key: key, address, name: '', vars_json: '{}', by_link: 0 },
      ...before,
      ...standingOf(now, before, { subscribed: true, confirm: true }, cause, mailedAt.get(key)),
    }
    const isAsked =
      counts !== null &&
      asksForMail(before, row) &&
      (mailedAt.get(key) ?? 0) <= cause.at - DAY_MS &&
      mailsLeft(now, cause.at, FORM_MAILS_PER_DAY_MAX) > 0
    // Something is written in any case: the time that this takes must not tell who is a member.
    const change = isAsked ? { write: [row], added: before ? 0 : 1, limits: counts } : { write: [], added: 0 }
    return { change: { ...change, cause }, result: null }
  }

const isWaiting = ({ pending_until }: ListMemberRow, at: number) =>
  pending_until !== null && Number(pending_until) > at

/** Members that do not confirm: who was one before stays one that is unsubscribed. */
function ended(rows: readonly ListMemberRow[]) {
  const [stay, go] = [
    rows.filter((row) => row.is_rejoining === 1),
    rows.filter((row) => row.is_rejoining === 0),
  ]
  return {
    write: stay.map((row) => ({ ...row, subscribed: 0 as const, ...NOT_PENDING })),
    remove: go.map(({ address_key }) => address_key),
    added: -go.length,
  }
}

/** The mail is accepted: fails its unit if the member has answered or changed. */
const mailedStatements = ({ list_id, pending_id }: ListMemberRow): Statement[] => [
  { sql: 'UPDATE lists SET version = version + 1 WHERE id = ?', values: [list_id], expectRows: 1 },
  {
    sql: 'UPDATE list_members SET pending_mail_at = NULL WHERE pending_id = ? AND pending_mail_at IS NOT NULL',
    values: [pending_id],
    expectRows: 1,
  },
]

/** A member of a list that is gone, which a post to the list still needs. */
const forgetStatement = ({ pending_id }: ListMemberRow): Statement => ({
  sql: `UPDATE list_members SET pending_id = NULL, pending_until = NULL, pending_mail_at = NULL, pending_source = NULL
    WHERE pending_id = ?`,
  values: [pending_id],
})

/** Mails that no limit counts any more, and the trail of addresses that never agreed. */
const oldStatements = (at: number): Statement[] => [
  {
    sql: `DELETE FROM confirmation_mails WHERE (address_key, list_id) IN
      (SELECT address_key, list_id FROM confirmation_mails WHERE mailed_at <= ? LIMIT ${OLD_ROWS})`,
    values: [at - DAY_MS],
  },
  {
    sql: `DELETE FROM form_mails WHERE subject IN (SELECT subject FROM form_mails WHERE day < ? LIMIT ${OLD_ROWS})`,
    values: [dayOf(at)],
  },
  {
    sql: `DELETE FROM consent_trail WHERE (account_id, address_key, id) IN
      (SELECT account_id, address_key, id FROM consent_trail WHERE expires_at <= ? LIMIT ${OLD_ROWS})`,
    values: [at],
  },
]
