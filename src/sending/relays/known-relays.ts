/**
 * Relays and relay rules, in memory since each delivery asks for them. They are read again when another process announces
 * a change, and every few seconds, so that no change is missed.
 */
import { BadRequest, Conflict, NotFound } from '../../base/process/errors.ts'
import type { DayLimits } from '../../mail/deliver/attempt/day-limits.ts'
import { createJob } from '../../platform/jobs/job.ts'
import type { Store } from '../../platform/store/store.ts'
import { DEFAULT_RELAY, type Relay, relayOfRow, rowOfRelay } from './relay.ts'
import { DIRECT, type RelayRule } from './shapes.ts'

/** All relays and rules at one time. */
export interface RelayBook {
  /** By name. */
  relays: ReadonlyMap<string, Relay>
  rules: readonly RelayRule[]
}

export type KnownRelays = Awaited<ReturnType<typeof openRelays>>

/** Each is shown on one page, and has metrics of its own. */
const RELAYS_MAX = 100
const TOPIC = 'relays'
const READ_EVERY_MS = 5_000
const RULES_ID = 1

/** `fixed`: the relay that the setting names, or null. */
export async function openRelays(
  store: Store,
  fixed: Relay | null,
  now: () => number,
  days: Pick<DayLimits, 'removeOld'>,
) {
  let book: RelayBook = { relays: new Map(), rules: [] }
  let signature = ''
  const listeners: (() => void)[] = []

  let reading = Promise.resolve()
  /** One at a time: an older answer must not replace a newer one. */
  function refresh(): Promise<void> {
    const read = reading.then(readRows)
    reading = read.catch(() => {})
    return read
  }

  async function readRows(): Promise<void> {
    const [rows, rules] = await Promise.all([
      store.db.selectFrom('relays').selectAll().orderBy('name').execute(),
      store.db.selectFrom('relay_rules').selectAll().where('id', '=', RULES_ID).executeTakeFirst(),
    ])
    const next = JSON.stringify([
      rows.map(({ name, revision }) => [name, Number(revision)]),
      rules && [rules.rules_json, Number(rules.updated_at)],
    ])
    if (next === signature) return
    signature = next
    const relays = [...(fixed ? [fixed] : []), ...rows.map(relayOfRow)]
    book = {
      relays: new Map(relays.map((relay) => [relay.name, relay])),
      rules: rules ? (JSON.parse(rules.rules_json) as RelayRule[]) : [],
    }
    for (const listener of listeners) listener()
  }

  async function changed(): Promise<void> {
    await refresh()
    await store.changes.announce(TOPIC, '')
  }

  /** @throws NotFound */
  function find(name: string): Relay {
    const relay = book.relays.get(name)
    if (relay === undefined) throw new NotFound('Relay not found')
    return relay
  }

  await refresh()
  store.changes.follow(TOPIC, refresh)
  return {
    book: () => book,
    find,
    /** @throws NotFound @throws BadRequest for the relay of the setting */
    findStored(name: string): Relay {
      const relay = find(name)
      if (relay === fixed)
        throw new BadRequest(`"${DEFAULT_RELAY}" comes from SENDWRIGHT_DELIVERY, and is changed there`)
      return relay
    },
    /** @throws BadRequest if the name is taken, or over RELAYS_MAX */
    async create(given: Relay): Promise<Relay> {
      // Above the revisions of one of this name that was removed: connections and other processes may know it still.
      const relay = { ...given, revision: now() }
      await store.transaction(async (tx) => {
        const names = await tx.selectFrom('relays').select('name').execute()
        if (names.some(({ name }) => name === relay.name))
          throw new BadRequest(`A relay "${relay.name}" exists already`)
        if (names.length >= RELAYS_MAX) throw new BadRequest(`at most ${RELAYS_MAX} relays`)
        await tx.insertInto('relays').values(rowOfRelay(relay, now())).execute()
      })
      await changed()
      return find(relay.name)
    },
    /** @throws Conflict if it was changed since `relay` was made of it */
    async replace(relay: Relay): Promise<Relay> {
      const { numUpdatedRows } = await store.db
        .updateTable('relays')
        .set(rowOfRelay(relay, now()))
        .where('name', '=', relay.name)
        .where('revision', '=', relay.revision - 1)
        .executeTakeFirst()
      if (Number(numUpdatedRows) === 0) throw new Conflict('The relay was changed meanwhile')
      await changed()
      return find(relay.name)
    },
    /** @throws Conflict while a rule names it @throws NotFound */
    async remove(name: string): Promise<void> {
      await store.transaction(async (tx) => {
        const rules = await tx
          .selectFrom('relay_rules')
          .selectAll()
          .where('id', '=', RULES_ID)
          .executeTakeFirst()
        const used = rules ? namesIn(JSON.parse(rules.rules_json) as RelayRule[]) : new Set()
        if (used.has(name)) throw new Conflict('A relay rule names the relay')
        const { numDeletedRows } = await tx.deleteFrom('relays').where('name', '=', name).executeTakeFirst()
        if (Number(numDeletedRows) === 0) throw new NotFound('Relay not found')
        await tx.deleteFrom('relay_tokens').where('relay', '=', name).execute()
      })
      await changed()
    },
    /** @throws BadRequest for the name of a relay that does not exist */
    async setRules(rules: readonly RelayRule[]): Promise<void> {
      await store.transaction(async (tx) => {
        const rows = await tx.selectFrom('relays').select('name').execute()
        const known = new Set([DIRECT, ...(fixed ? [fixed.name] : []), ...rows.map(({ name }) => name)])
        const unknown = [...namesIn(rules)].find((name) => !known.has(name))
        if (unknown !== undefined) throw new BadRequest(`There is no relay "${unknown}"`)
        const row = { rules_json: JSON.stringify(rules), updated_at: now() }
        await tx
          .insertInto('relay_rules')
          .values({ id: RULES_ID, ...row })
          .onConflict((conflict) => conflict.column('id').doUpdateSet(row))
          .execute()
      })
      await changed()
    },
    onChange: (listener: () => void) => void listeners.push(listener),
    refresh,
    job: createJob({
      name: 'relays',
      everyMs: READ_EVERY_MS,
      // Each process has a copy in memory.
      scope: 'process',
      async work() {
        await refresh()
        await days.removeOld()
      },
    }),
  }
}

const namesIn = (rules: readonly RelayRule[]): Set<string> =>
  new Set(rules.flatMap(({ levels }) => levels.flatMap((level) => level.map(({ relay }) => relay))))
