import { readJsonEntries } from '../../../sending/lists/bulk.ts'
import { errorText, pathPart } from '../api-client.ts'
import type { ListEntry, MemberEntry } from '../entry.ts'
import {
  existing,
  knownKeys,
  linkedItems,
  made,
  oneByOne,
  type Result,
  readOrFail,
  refused,
  type WriterParts,
} from './result.ts'

const ITEMS_PER_PAGE = 100
/** So many are added before the call answers (docs/api/mailing-lists.md rule 9): what it answers is then the result. */
const MEMBERS_PER_CALL = 100
/** Members that a dry run holds of a list; those beyond count as new. */
const HELD_MAX = 500_000

export function createListWriter({ client, isDryRun, hasDomain }: WriterParts) {
  const lists = knownKeys(
    () => linkedItems(client, '/v3/lists/pages', ITEMS_PER_PAGE),
    ({ address }) => String(address).toLowerCase(),
  )
  /** Members of the list that was last asked for; in a dry run only. */
  let held: { list: string; members: Set<string> } | null = null
  /** Members of the list that was written last, as the service counts them. */
  let counted: { list: string; count: number } | null = null
  /** Lists that only a dry run has made. */
  const planned = new Set<string>()

  async function makeList({ kind, ...fields }: ListEntry): Promise<Result> {
    const key = fields.address.toLowerCase()
    const domain = key.split('@').at(-1) ?? ''
    const all = await lists.get()
    if (all.has(key)) return existing
    if (!(await hasDomain(domain))) return refused(`the service has no domain ${domain}`)
    if (isDryRun) planned.add(key)
    else {
      const answer = await client.call('POST', '/v3/lists', { form: fields })
      if (answer.status !== 200) return refused(errorText(answer))
    }
    all.add(key)
    return made
  }

  async function membersOf(list: string): Promise<Set<string>> {
    if (held?.list === list) return held.members
    const members = new Set<string>()
    held = { list, members }
    if (planned.has(list)) return members
    for await (const { address } of linkedItems(client, `${pathOf(list)}/members/pages`, ITEMS_PER_PAGE)) {
      if (members.size < HELD_MAX) members.add(String(address).toLowerCase())
    }
    return members
  }

  async function addMembers(list: string, entries: readonly MemberEntry[]): Promise<Result[]> {
    const members = entries.map(({ address, name, vars, subscribed }) => ({
      address,
      name,
      vars,
      subscribed,
    }))
    const before = counted?.list === list ? counted.count : await countOf(list)
    const answer = await postMembers(list, members, false)
    if (answer.status === 413 && entries.length > 1) {
      const half = Math.ceil(entries.length / 2)
      return [
        ...(await addMembers(list, entries.slice(0, half))),
        ...(await addMembers(list, entries.slice(half))),
      ]
    }
    if (answer.status !== 200) return entries.map(() => refused(errorText(answer)))
    const count = membersCount(answer.body)
    counted = { list, count }
    const added = Math.max(0, Math.min(entries.length, count - before))
    // Who has unsubscribed at the former service since an earlier import is unsubscribed here too.
    const gone = members.filter(({ subscribed }) => !subscribed)
    if (added < entries.length && gone.length > 0)
      await postMembers(
        list,
        gone.map(({ address }) => ({ address, subscribed: false })),
        true,
      )
    return entries.map((_, index) => (index < added ? made : existing))
  }

  const postMembers = (list: string, members: readonly object[], upsert: boolean) =>
    client.call('POST', `${pathOf(list)}/members.json`, {
      form: { members: JSON.stringify(members), upsert: String(upsert) },
    })

  const countOf = async (list: string) => membersCount(await readOrFail(client, pathOf(list)))

  async function writeMembers(entries: readonly MemberEntry[]): Promise<Result[]> {
    const list = entries[0]?.list.toLowerCase() ?? ''
    if (!(await lists.get()).has(list)) return entries.map(() => refused(`the service has no list ${list}`))
    const results = new Map<MemberEntry, Result>()
    const good: MemberEntry[] = []
    const keys = new Set<string>()
    for (const entry of entries) {
      const { address, name, vars, subscribed } = entry
      const [read] = readJsonEntries([{ address, name, vars, subscribed }])
      if (!read || 'bad' in read)
        results.set(entry, refused(read ? `${read.why}: ${read.bad}` : 'Invalid format'))
      else if (keys.has(read.key)) results.set(entry, existing)
      else {
        keys.add(read.key)
        good.push(entry)
      }
    }
    if (isDryRun) {
      const members = await membersOf(list)
      for (const entry of good) {
        const key = entry.address.toLowerCase()
        results.set(entry, members.has(key) ? existing : made)
        if (members.size < HELD_MAX) members.add(key)
      }
    } else {
      for (let at = 0; at < good.length; at += MEMBERS_PER_CALL) {
        const some = good.slice(at, at + MEMBERS_PER_CALL)
        const outcomes = await addMembers(list, some)
        some.forEach((entry, index) => {
          results.set(entry, outcomes[index] as Result)
        })
      }
    }
    return entries.map((entry) => results.get(entry) as Result)
  }

  return {
    write: oneByOne(makeList),
    /** Entries of one list. */
    writeMembers,
  }
}

const pathOf = (list: string) => `/v3/lists/${pathPart(list)}`

function membersCount(body: Record<string, unknown> | null): number {
  const list = body?.['list'] as { members_count: number } | undefined
  return list?.members_count ?? 0
}
