/**
 * Expands one stored post to a delivery per member (docs/decisions/0010-list-posts.md).
 *
 * 1. The post is accepted with one row of this table in the same transaction, and the call returns.
 * 2. This job reads the members in the order of their keys, some hundred at a time: their deliveries, their events
 *    and the new position are one transaction.
 * 3. After the last member the row is done.
 *
 * A process may die at any point, or two may process the same chunk: the row holds the position, and a chunk
 * commits only if it began there. Members are read as they are at the time of their chunk.
 */

import { newId } from '../../base/ids.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import {
  createTaskSteps,
  LEASE_MS,
  type TaskParts,
  type TaskTable,
} from '../../platform/jobs/stepped-task.ts'
import type { ListExpansionRow } from '../../platform/store/schema.ts'
import { insert, joinInserts, type Statement } from '../../platform/store/store.ts'
import { addressKey } from '../../protocols/mime/address.ts'
import { type ListHeaders, type ListRecipient, readMembers } from './expand.ts'
import type { List } from './list.ts'
import { type ListStore, removeOrphans, UNREACHABLE } from './store.ts'

/** One transaction of two rows per member; with at most 64 KB of variables each, 32 MB. */
const MEMBERS_PER_STEP = 500
/** Finished expansions are kept as long as copies may still be in the queue, retries included. */
const FINISHED_KEPT_MS = 14 * DAY_MS

const TABLE: TaskTable = {
  ...{ name: 'list_expansions', key: 'id', open: "task.state = 'running'", turn: 'updated_at' },
  lease: { ms: LEASE_MS, check: 'position', tries: null },
}

export interface Expansion {
  id: string
  accountId: string
  domainId: string
  messagePk: string
  listId: string
  listAddress: string
  listHeaderId: string
  /** The list's header fields of every copy, as they were when the post was accepted. */
  headers: ListHeaders
}

/** A post that will be distributed. */
export interface AcceptedPost {
  /** Id of the list's domain. */
  domainId: string
  messagePk: string
  list: List
  headers: ListHeaders
  /** Addresses that get their copy otherwise: direct recipients of the call. */
  exclude: readonly string[]
  /** The same for every transmission of one mail; a list distributes it once. Null: the post is not recognised. */
  postKey?: string | null
}

/**
 * The row that makes the post's distribution durable: must be committed together with the message, and after it. Touches no
 * row if the list has distributed a post with the same key.
 */
export function expansionStatement(post: AcceptedPost, nowMs: number): Statement {
  const { list } = post
  const now = Math.floor(nowMs)
  const row: ListExpansionRow = {
    id: newId(nowMs),
    account_id: list.accountId,
    domain_id: post.domainId,
    message_pk: post.messagePk,
    list_id: list.id,
    list_address: list.address,
    list_header_id: list.headerId,
    headers_json: JSON.stringify(post.headers),
    // A list that is its own member would get a copy only to drop it.
    exclude_json: JSON.stringify([...post.exclude, list.address].map((address) => addressKey(address))),
    post_key: post.postKey ?? null,
    position: '',
    copies: 0,
    state: 'running',
    lease_owner: null,
    lease_until: 0,
    created_at: now,
    updated_at: now,
  }
  const { sql, values } = insert('list_expansions', row)
  return { sql: `${sql} ON CONFLICT (list_id, post_key) DO NOTHING`, values, expectRows: 1 }
}

/**
 * Ends the pending expansions of a domain's lists when its queue is cleared. Must be written before the change of
 * the deliveries themselves: that waits for a step that is being committed, and makes later steps fail.
 */
export const cancelExpansions = (domainId: string): Statement[] => endStatements('domain_id', domainId)

/** The same for one message, which is being cancelled or removed. */
export const endExpansionsOf = (messagePk: string): Statement[] => endStatements('message_pk', messagePk)

/** Also removes the members of a deleted list that were kept only for these expansions. */
const endStatements = (column: 'domain_id' | 'message_pk', value: string): Statement[] => [
  {
    sql: `UPDATE list_expansions SET state = 'done' WHERE ${column} = ? AND state = 'running'`,
    values: [value],
  },
  {
    sql: `DELETE FROM list_members
      WHERE list_id IN (SELECT list_id FROM list_expansions WHERE list_expansions.${column} = ?) AND ${UNREACHABLE}`,
    values: [value],
  },
]

/**
 * The rows of these members' copies: deliveries and accepted events; null: they must wait, for a monthly limit. Not called
 * for an empty list.
 */
export type InsertDeliveries = (
  expansion: Expansion,
  members: readonly ListRecipient[],
) => readonly Statement[] | null | Promise<readonly Statement[] | null>

export function createExpansionJob(
  parts: TaskParts & {
    lists: ListStore
    insertDeliveries: InsertDeliveries
    /** Called after deliveries were committed. */
    inserted(): void
  },
) {
  const { store, lists, clock } = parts
  const tasks = createTaskSteps<ListExpansionRow>(parts, TABLE, async (row) => {
    const exclude = new Set(JSON.parse(row.exclude_json) as string[])
    const chunk = await readMembers(lists, row.list_id, row.position, exclude, MEMBERS_PER_STEP)
    const made = chunk.recipients.length
    const rows = made > 0 ? await parts.insertDeliveries(expansionOfRow(row), chunk.recipients) : []
    // The step is tried again when its lease ends.
    if (rows === null) return
    const copies = row.copies + made
    const change = chunk.next === null ? { copies, state: 'done' as const } : { copies, position: chunk.next }
    const ended = chunk.next === null ? endOf(row, clock.now()) : []
    await tasks.commit(row, change, [...ended, ...joinInserts(rows)], 'release')
    if (made > 0) parts.inserted()
  })
  return {
    /** Runs one step of one expansion; false if none is due. */
    runOne: tasks.runOne,
    async byId(id: string): Promise<Expansion | null> {
      const row = await store.db
        .selectFrom('list_expansions')
        .selectAll()
        .where('id', '=', id)
        .executeTakeFirst()
      return row ? expansionOfRow(row) : null
    },
  }
}

function expansionOfRow(row: ListExpansionRow): Expansion {
  return {
    id: row.id,
    accountId: row.account_id,
    domainId: row.domain_id,
    messagePk: row.message_pk,
    listId: row.list_id,
    listAddress: row.list_address,
    listHeaderId: row.list_header_id,
    headers: JSON.parse(row.headers_json) as ListHeaders,
  }
}

/** Removes what an expansion leaves behind with its last chunk, and those that ended long ago. */
const endOf = (row: ListExpansionRow, now: number): Statement[] => [
  removeOrphans(row.list_id),
  {
    sql: "DELETE FROM list_expansions WHERE state = 'done' AND updated_at < ?",
    values: [Math.floor(now) - FINISHED_KEPT_MS],
  },
]
