/**
 * Which of the due deliveries are claimed: accounts take turns, and within an account its groups. Of one account's, what
 * became due last and what became due first take turns: a message alone passes a batch of thousands to other domains.
 */
import { type Group, type Lane, type Lanes, mayEnterFullLane, windowOf } from '../lanes/lanes.ts'
import type { AccountLoad, Window } from '../lanes/pacing.ts'
import type { DueDelivery } from './queue.ts'

interface Pending {
  group: Group
  rows: DueDelivery[]
  at: number
}

/** How many are about to be claimed for a lane, a group or a window. */
type Taken = Map<Lane | Group | Window, number>

const dueAt = ({ rows, at }: Pending) => rows[at]?.due_at ?? 0

/**
 * Ids of at most `limit` of the due deliveries, each while its lane has room. Groups that got less than was due are marked.
 * `seesAll`: nothing else is due. If something else is, lanes that are more than half full get nothing: else they would be
 * kept full with what the poll returns first. `heldBack`: an account may begin no more of its mail now.
 */
export function choose(
  lanes: Lanes,
  due: readonly DueDelivery[],
  limit: number,
  now: number,
  seesAll: boolean,
): { ids: string[]; heldBack: boolean } {
  const ids: string[] = []
  const taken: Taken = new Map()
  const all = turnsOf(lanes, due)
  let turns = all
  while (turns.length > 0 && ids.length < limit)
    turns = turns.filter((turn) => {
      if (ids.length >= limit) return true
      const entry = nextOf(lanes, turn, now, seesAll, taken, lanes.free() - ids.length)
      if (!entry) return false
      ids.push((entry.rows[entry.at] as DueDelivery).id)
      entry.at++
      return true
    })
  for (const { all: entries } of all)
    for (const { group, rows, at } of entries) if (at < rows.length) lanes.setBacklog(group)
  return { ids, heldBack: all.some(({ heldBack }) => heldBack.length > 0) }
}

/** The group whose row the account's turn is for, counted as taken; null: the account gets nothing more. */
function nextOf(lanes: Lanes, turn: Turn, now: number, seesAll: boolean, taken: Taken, free: number) {
  const { account, heldBack } = turn
  for (;;) {
    const entry = turn.take()
    if (!entry) break
    const { group, rows, at } = entry
    if (!mayTake(lanes, group, now, seesAll, taken)) continue
    const window = windowOf(account, group.lane, now)
    if (!window.hasRoom(now, free, taken.get(window) ?? 0)) {
      heldBack.push(entry)
      continue
    }
    account.newestNext = !account.newestNext
    if (at + 1 < rows.length) turn.later.push(entry)
    return counted(entry, window, taken)
  }
  heldBack.sort((a, b) => dueAt(b) - dueAt(a))
  for (const entry of heldBack) {
    const { group, rows, at } = entry
    if (at === rows.length || !mayTake(lanes, group, now, seesAll, taken)) continue
    return account.takeBeyond(now, free) ? counted(entry, windowOf(account, group.lane, now), taken) : null
  }
  return null
}

/** Whether the lane has room for one more of the group, besides those taken. */
function mayTake(lanes: Lanes, group: Group, now: number, seesAll: boolean, taken: Taken): boolean {
  const here = taken.get(group.lane ?? group) ?? 0
  if (lanes.roomFor(group, now) - here > 0 && (seesAll || lanes.isShort(group, now))) return true
  return (taken.get(group) ?? 0) === 0 && mayEnterFullLane(group)
}

function turnsOf(lanes: Lanes, due: readonly DueDelivery[]): Turn[] {
  const entries = new Map<Group, Pending>()
  const turns = new Map<string, Turn>()
  for (const row of due) {
    const group = lanes.group(row)
    const { account_id: accountId } = row
    group.accountId = accountId
    const known = entries.get(group)
    if (known) {
      known.rows.push(row)
      continue
    }
    const turn = turns.get(accountId) ?? new Turn(lanes.loadOf(accountId))
    turns.set(accountId, turn)
    const entry = { group, rows: [row], at: 0 }
    entries.set(group, entry)
    turn.all.push(entry)
  }
  for (const turn of turns.values()) turn.begin()
  return [...turns.values()]
}

function counted(entry: Pending, window: Window, taken: Taken): Pending {
  const { group } = entry
  for (const each of new Set([group, group.lane ?? group, window]))
    taken.set(each, (taken.get(each) ?? 0) + 1)
  return entry
}

/** An account's turns in one round: one row of each group, then another of each. */
class Turn {
  readonly account: AccountLoad
  readonly all: Pending[] = []
  /** Groups that have a row for the next pass. */
  later: Pending[] = []
  /** Groups of which the account may not begin one now. */
  readonly heldBack: Pending[] = []
  private entries: Pending[] = []
  private from = 0
  private to = 0

  constructor(account: AccountLoad) {
    this.account = account
  }

  begin(): void {
    this.later = [...this.all].sort((a, b) => dueAt(a) - dueAt(b))
  }

  /** What became due last or first, as the account's turn is; null: nothing is left. */
  take(): Pending | null {
    if (this.from === this.to) {
      this.entries = this.later
      this.later = []
      this.from = 0
      this.to = this.entries.length
    }
    if (this.from === this.to) return null
    const at = this.account.newestNext ? --this.to : this.from++
    return this.entries[at] as Pending
  }
}
