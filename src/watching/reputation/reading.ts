/**
 * Reads both sources once a day, one process at a time.
 *
 * - A day that was missed is read later: each domain at Google, and SNDS as a whole, has the newest day that was read, and
 *   what came after it is asked for. Values of the last days are asked for again, because both sources complete them late.
 * - A failure ends the read of its source, keeps what was read until then, and is tried again after 15 minutes, at most
 *   6 hours, or when the source says. What fails for one domain only is noted there, and the others are read.
 * - Requests to a source come one after the other. A fault at one source, ours too, does not keep the other from being read.
 */
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { createJob, type Job } from '../../platform/jobs/job.ts'
import type { HttpClient } from '../../platform/posts/http-client.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import type { DomainDirectory } from '../../sending/domains/names/directory.ts'
import { isProven } from '../../sending/domains/names/name-owner.ts'
import {
  blockStatements,
  gmailDomainStatement,
  gmailStatements,
  KEPT_MS,
  removeOldDays,
  sndsStatements,
} from './days.ts'
import { dayOf, type Requirement } from './google/figures.ts'
import { type ListedDomain, openPostmasterTools, type PostmasterTools } from './google/postmaster-tools.ts'
import { openSnds } from './snds/feed.ts'
import { SourceFailure } from './source-failure.ts'
import type { Source, SourceName, Sources } from './sources.ts'

interface ReadingParts extends Pick<Core, 'store' | 'clock'> {
  client: Pick<HttpClient, 'send'>
  domains: Pick<DomainDirectory, 'byName'>
  sources: Sources
}

const LOOK_EVERY_MS = 10 * MINUTE_MS
const READ_EVERY_MS = DAY_MS
/** A domain that was read so lately is left out of a read that begins again. */
const FRESH_MS = 20 * HOUR_MS
/** Days that are asked for at first, again, and at most: Google keeps 120, SNDS 90. */
const GOOGLE_DAYS = { first: 30, again: 7, most: 120 }
const SNDS_DAYS = { first: 30, again: 3, most: 90 }

export function createReading(parts: ReadingParts): Job {
  const { store, clock, sources } = parts
  const readers = { google: readGoogle, snds: readSnds } as const

  async function readIfDue<N extends SourceName>(
    name: N,
    read: (parts: ReadingParts, source: Source<N>, signal: AbortSignal) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const source = await sources.find(name)
    if (source === null || Number(source.row.next_at) > clock.now()) return
    try {
      await read(parts, source, signal)
      await sources.succeeded(source.row, Math.floor(clock.now()) + READ_EVERY_MS)
    } catch (error) {
      if (!(error instanceof SourceFailure)) throw error
      await sources.failed(source.row, error)
    }
  }

  return createJob({
    name: 'reputation',
    everyMs: LOOK_EVERY_MS,
    scope: 'database',
    async work(signal) {
      const done = await Promise.allSettled([
        removeOldDays(store, dayOf(clock.now() - KEPT_MS), signal),
        readIfDue('google', readers.google, signal),
        readIfDue('snds', readers.snds, signal),
      ])
      const failed = done.find((one) => one.status === 'rejected')
      if (failed) throw failed.reason
    },
  })
}

/** The first day to ask for, up to yesterday. Pure. */
export function firstDay(
  readThrough: number | null,
  yesterday: number,
  days: { first: number; again: number; most: number },
): number {
  const wanted =
    readThrough === null ? yesterday - (days.first - 1) * DAY_MS : readThrough - (days.again - 1) * DAY_MS
  return Math.max(Math.min(wanted, yesterday), yesterday - (days.most - 1) * DAY_MS)
}

async function readGoogle(
  parts: ReadingParts,
  { credentials }: Source<'google'>,
  signal: AbortSignal,
): Promise<void> {
  const { store, clock, domains } = parts
  const tools = await openPostmasterTools({ ...parts, signal }, credentials)
  const listed = await tools.domains()
  const states = new Map(
    (await store.db.selectFrom('gmail_domains').selectAll().execute()).map((row) => [row.domain_id, row]),
  )
  const own: { id: string; listed: ListedDomain; readThrough: number | null; readAt: number }[] = []
  for (const item of listed) {
    const domain = await provenDomain(domains, item.name)
    if (domain === null) continue
    const state = states.get(domain.id)
    states.delete(domain.id)
    own.push({
      ...{ id: domain.id, listed: item, readAt: Number(state?.read_at ?? 0) },
      readThrough: state?.read_through == null ? null : Number(state.read_through),
    })
  }
  // Not listed any more.
  if (states.size > 0)
    await store.commit(
      [...states.keys()].map((id) => ({
        sql: 'DELETE FROM gmail_domains WHERE domain_id = ?',
        values: [id],
      })),
    )
  const yesterday = dayOf(clock.now()) - DAY_MS
  for (const { id, listed: item, readThrough, readAt } of own) {
    if (readAt > clock.now() - FRESH_MS) continue
    const result =
      item.fault === null
        ? await readDomain(tools, item.name, firstDay(readThrough, yesterday, GOOGLE_DAYS), yesterday)
        : { days: [], compliance: [], failure: item.fault }
    const { days, compliance, failure } = result
    const state = { compliance, failure, readThrough: failure === null ? yesterday : null }
    await store.commit([...gmailStatements(id, days), gmailDomainStatement(id, state, clock.now())])
  }
}

/** The domain of that name; null: there is none, or DNS has not proven it, and anybody may have added it to see its figures. */
async function provenDomain(domains: ReadingParts['domains'], name: string): Promise<Domain | null> {
  const domain = await domains.byName(name)
  return domain !== null && isProven(domain) ? domain : null
}

/** @throws SourceFailure for what is not about this domain alone */
async function readDomain(tools: PostmasterTools, name: string, from: number, to: number) {
  const none: Requirement[] = []
  try {
    const days = await tools.days(name, from, to)
    return { days, compliance: await tools.compliance(name), failure: null }
  } catch (error) {
    if (!(error instanceof SourceFailure && ['denied', 'missing'].includes(error.kind))) throw error
    return { days: [], compliance: none, failure: error.message }
  }
}

async function readSnds(
  parts: ReadingParts,
  { row, credentials }: Source<'snds'>,
  signal: AbortSignal,
): Promise<void> {
  const { store, clock, sources } = parts
  const feed = openSnds({ ...parts, signal }, credentials)
  const yesterday = dayOf(clock.now()) - DAY_MS
  const readThrough = row.read_through === null ? null : Number(row.read_through)
  for (let day = firstDay(readThrough, yesterday, SNDS_DAYS); day <= yesterday; day += DAY_MS)
    await store.commit([...sndsStatements(day, await feed.day(day)), sources.readThrough(row, day)])
  await store.commit(blockStatements(await feed.blocks()))
}

/** What a source answers now, in words. @throws SourceFailure */
export const trials = {
  async google(parts: Omit<ReadingParts, 'sources'>, { credentials }: Source<'google'>, signal: AbortSignal) {
    const tools = await openPostmasterTools({ ...parts, signal }, credentials)
    const listed = await tools.domains()
    const own = await Promise.all(listed.map(({ name }) => provenDomain(parts.domains, name)))
    const count = own.filter((domain) => domain !== null).length
    const readable = listed.filter(({ fault }) => fault === null).length
    return `Postmaster Tools list ${listed.length} domains, ${readable} of them readable; ${count} belong to this service.`
  },
  async snds(parts: Omit<ReadingParts, 'sources'>, { credentials }: Source<'snds'>, signal: AbortSignal) {
    const feed = openSnds({ ...parts, signal }, credentials)
    const blocks = await feed.blocks()
    const newest = await feed.day(dayOf(parts.clock.now()) - DAY_MS)
    return `SNDS names ${newest.length} addresses for yesterday, and ${blocks.length} blocked ranges.`
  },
}
