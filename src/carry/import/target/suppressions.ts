import { BadRequest } from '../../../base/process/errors.ts'
import { ALL_MAIL, type NewRecord, readRecord } from '../../../sending/suppressions/given-records.ts'
import { RECORDS_PER_CALL_MAX } from '../../../sending/suppressions/service.ts'
import { errorText, pathPart } from '../api-client.ts'
import { SUPPRESSION_PATHS, type SuppressionEntry, type SuppressionEntryKind } from '../entry.ts'
import { existing, linkedItems, made, type Result, refused, type Writer, type WriterParts } from './result.ts'

/** Records of a list that are held to know what exists, some 50 MB. Those beyond are written again. */
const HELD_MAX = 500_000

/** Tags of unsubscribes by address; empty for the other lists. */
type Held = Map<string, readonly string[]>

export function createSuppressionWriter({
  client,
  isDryRun,
  hasDomain,
}: WriterParts): Writer<SuppressionEntry> {
  /** Lists of the domain that was last asked for: a page may have records of several lists. */
  let held: { domain: string; lists: Map<SuppressionEntryKind, Held> } | null = null

  async function recordsOf(domain: string, kind: SuppressionEntryKind): Promise<Held> {
    if (held?.domain !== domain) held = { domain, lists: new Map() }
    const { lists } = held
    let list = lists.get(kind)
    if (list === undefined) {
      list = await load(pathOf(domain, kind))
      lists.set(kind, list)
    }
    return list
  }

  async function load(path: string): Promise<Held> {
    const records: Held = new Map()
    // In a dry run the domain may not exist yet.
    if (isDryRun && (await client.call('GET', `${path}?limit=1`)).status === 404) return records
    for await (const { address, value, tags } of linkedItems(client, path, RECORDS_PER_CALL_MAX)) {
      if (records.size === HELD_MAX) break
      records.set(String(address ?? value), Array.isArray(tags) ? tags : [])
    }
    return records
  }

  /** One fault or null for each record. What is too large for one call, or has a record that is refused, is halved. */
  async function post(path: string, records: readonly object[]): Promise<(string | null)[]> {
    const answer = await client.call('POST', path, { json: records })
    if (answer.status === 200) return records.map(() => null)
    if (records.length === 1 || ![400, 413].includes(answer.status))
      return records.map(() => errorText(answer))
    const half = Math.ceil(records.length / 2)
    return [...(await post(path, records.slice(0, half))), ...(await post(path, records.slice(half)))]
  }

  return async (entries) => {
    const [{ domain, kind }] = entries as [SuppressionEntry]
    if (!(await hasDomain(domain))) return entries.map(() => refused(`the service has no domain ${domain}`))
    const list = await recordsOf(domain, kind)
    const results: (Result | null)[] = []
    const wanted: { record: NewRecord; index: number }[] = []
    entries.forEach((entry, index) => {
      const record = readOrReason(kind, entry.record)
      const isKnown = typeof record !== 'string' && list.has(record.address)
      results.push(typeof record === 'string' ? refused(record) : isKnown ? existing : null)
      if (typeof record === 'string') return
      const has = list.get(record.address)
      if (has !== undefined && isCovered(kind, record.tags, has)) return
      if (has !== undefined || list.size < HELD_MAX)
        list.set(record.address, [...(has ?? []), ...record.tags])
      wanted.push({ record, index })
    })
    for (let at = 0; at < wanted.length && !isDryRun; at += RECORDS_PER_CALL_MAX) {
      const some = wanted.slice(at, at + RECORDS_PER_CALL_MAX)
      const faults = await post(
        pathOf(domain, kind),
        some.map(({ record }) => asJson(kind, record)),
      )
      some.forEach(({ index }, place) => {
        const fault = faults[place]
        if (fault !== null && fault !== undefined) results[index] = refused(fault)
      })
    }
    return results.map((result) => result ?? made)
  }
}

const pathOf = (domain: string, kind: SuppressionEntryKind) =>
  `/v3/${pathPart(domain)}/${SUPPRESSION_PATHS[kind]}`

/** The record by the service's own rules, or why it is none. */
function readOrReason(kind: SuppressionEntryKind, given: Record<string, unknown>): NewRecord | string {
  try {
    return readRecord(SUPPRESSION_PATHS[kind], given, Date.now())
  } catch (error) {
    if (error instanceof BadRequest) return error.message
    throw error
  }
}

/** An unsubscribe adds what it has; the other lists keep what they have. */
function isCovered(kind: SuppressionEntryKind, tags: readonly string[], has: readonly string[]): boolean {
  if (kind !== 'unsubscribe' || has.includes(ALL_MAIL)) return true
  return tags.every((tag) => has.some((one) => one.toLowerCase() === tag.toLowerCase()))
}

function asJson(kind: SuppressionEntryKind, record: NewRecord): Record<string, unknown> {
  const { address, code, detail, tags, createdAt } = record
  const when = createdAt === null ? {} : { created_at: createdAt / 1_000 }
  switch (kind) {
    case 'bounce':
      return { address, code, error: detail, ...when }
    case 'complaint':
      return { address, ...when }
    case 'unsubscribe':
      return { address, tags, ...when }
    case 'allowlist':
      return { [address.includes('@') ? 'address' : 'domain']: address, reason: detail, ...when }
  }
}
