/** One person's data over HTTP (people.md). */
import { Readable } from 'node:stream'
import { newId } from '../../base/ids.ts'
import { BadRequest, NotFound } from '../../base/process/errors.ts'
import { described, type Of } from '../../base/shape.ts'
import { formatRfc3339 } from '../../base/time/dates.ts'
import type { Core } from '../../core.ts'
import { jsonReply, Reply } from '../../platform/http/answer/reply.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { flagParam, parsedParam } from '../../platform/http/request/inputs.ts'
import type { Params } from '../../platform/http/request/params.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import { piecesOf } from '../../platform/jobs/piece-steps.ts'
import type { BlobStore } from '../../platform/store/blobs/blobs.ts'
import type { PersonTaskRow } from '../../platform/store/schema.ts'
import { erasedAddress } from '../../platform/store/secrets/erased-address.ts'
import { AddressSyntaxError, addressKey, bareAddress, parseMailbox } from '../../protocols/mime/address.ts'
import { readSigningKey } from '../../watching/webhooks/signing-key.ts'
import { type Counts, type reportOf, signatureOf } from './report.ts'
import { ARCHIVE, REPORT, STARTED, TASK, TASKS } from './shapes.ts'
import { ARCHIVE_KEPT_MS, findTask, insertTask, listTasks } from './store.ts'
import { ADDRESS_PURPOSE, START } from './work.ts'

interface PersonRouteParts extends Pick<Core, 'store' | 'blobs' | 'sealer' | 'clock' | 'firstAccountId'> {
  /** A task waits for its first step. */
  wake(): void
}

const PATH = '/sendwright/v1/people'
const TASKS_PATH = `${PATH}/tasks`
const ONE = `${TASKS_PATH}/{task_id}` as const
// What they show is for nobody else: all of them need the right to change the account.
const api = operationsOf({ tag: 'Recipients', auth: { area: 'account' } })
const NOT_FOUND = 'task not found'
const ADDRESS = parsedParam('Mail address of the person', addressOf, { required: true })

/** @throws BadRequest */
function addressOf(params: Params, name: string): string {
  try {
    return bareAddress(parseMailbox(params.text(name) ?? ''))
  } catch (error) {
    if (!(error instanceof AddressSyntaxError)) throw error
    throw new BadRequest(`${name} is not a mail address`)
  }
}

export function personRoutes(parts: PersonRouteParts): Operation[] {
  const { store, blobs, clock } = parts

  /** @throws NotFound for one of another account */
  async function find(id: string, { accountId }: Caller): Promise<PersonTaskRow> {
    const row = await findTask(store, id)
    if (row?.account_id !== accountId) throw new NotFound(NOT_FOUND)
    return row
  }

  async function start(kind: PersonTaskRow['kind'], address: string, isDry: boolean, caller: Caller) {
    const row = newRow(parts, kind, address, isDry, caller)
    await insertTask(store, row)
    parts.wake()
    return jsonReply({ task: view(row) }, { status: 202 })
  }

  return [
    api.post(`${PATH}/export`, {
      id: 'exportPerson',
      audit: { given: ['dry_run'], made: ['task.id'] },
      summary: 'Collect all that is stored about a mail address into an archive, in the background',
      params: { address: ADDRESS, dry_run: flagParam('Only count', { default: false }) },
      answers: { 202: described('It has been queued', STARTED) },
      async handler({ input, caller }) {
        const { address, dry_run } = input()
        return start('export', address, dry_run, caller)
      },
    }),
    api.post(`${PATH}/erase`, {
      id: 'erasePerson',
      audit: { given: ['dry_run'], made: ['task.id'] },
      summary: 'Remove all that is stored about a mail address, in the background',
      description: 'It only counts unless `dry_run` is `false`.',
      params: { address: ADDRESS, dry_run: flagParam('Only count', { default: true }) },
      answers: { 202: described('It has been queued', STARTED) },
      async handler({ input, caller }) {
        const { address, dry_run } = input()
        return start('erase', address, dry_run, caller)
      },
    }),
    api.get(TASKS_PATH, {
      auth: { area: 'account', access: 'write' },
      id: 'listPersonTasks',
      summary: 'List the last 100 exports and erasures of people, newest first',
      answers: { 200: TASKS },
      handler: async ({ caller }) => ({ items: (await listTasks(store, caller.accountId)).map(view) }),
    }),
    api.get(ONE, {
      auth: { area: 'account', access: 'write' },
      id: 'readPersonTask',
      summary: 'Read the state of an export or erasure of a person',
      answers: { 200: TASK, 404: 'No such task' },
      handler: async ({ path, caller }) => view(await find(path.task_id, caller)),
    }),
    api.get(`${ONE}/download`, {
      auth: { area: 'account', access: 'write' },
      id: 'downloadPerson',
      summary: 'The archive of an export of a person',
      answers: { 200: ARCHIVE, 404: 'No such task, or it has no archive' },
      async handler({ path, caller }) {
        const row = await find(path.task_id, caller)
        const names = piecesOf(row)
        if (!hasArchive(row)) throw new NotFound('the task has no archive')
        const source = Readable.from(bytesOf(blobs, names), { objectMode: false })
        return new Reply(
          { kind: 'stream', source, contentType: 'application/gzip' },
          {
            headers: {
              'content-disposition': `attachment; filename="person-${row.id}.tar.gz"`,
              'cache-control': 'no-store',
            },
          },
        )
      },
    }),
    api.get(`${ONE}/report`, {
      auth: { area: 'account', access: 'write' },
      id: 'readPersonReport',
      summary: 'What became of the data of a person, with counts, signed',
      answers: { 200: REPORT, 404: 'No such task, or it is not done' },
      async handler({ path, caller }) {
        const row = await find(path.task_id, caller)
        if (row.report_json === null) throw new NotFound('the task is not done')
        const report = JSON.parse(row.report_json) as Awaited<ReturnType<typeof reportOf>>
        const key = await readSigningKey(store, parts.sealer, caller.accountId)
        const value = signatureOf(key, report)
        return { report, signature: { algorithm: 'hmac-sha256', key: 'http_signing_key', value } } as const
      },
    }),
  ]

  /** The files of an expired one are removed within an hour. */
  function hasArchive(row: PersonTaskRow): boolean {
    const until = (row.finished_at ?? clock.now()) + ARCHIVE_KEPT_MS
    return row.state === 'done' && piecesOf(row).length > 0 && clock.now() < until
  }

  function view(row: PersonTaskRow): Of<typeof TASK> {
    const at = (ms: number) => formatRfc3339(new Date(ms))
    return {
      ...{ id: row.id, kind: row.kind, dry_run: row.dry_run === 1, address_hash: row.address_hash },
      ...{ state: row.state, counts: JSON.parse(row.counts_json) as Counts },
      created_at: at(row.created_at),
      finished_at: row.finished_at === null ? null : at(row.finished_at),
      ...(hasArchive(row) && { download_until: at((row.finished_at ?? clock.now()) + ARCHIVE_KEPT_MS) }),
      ...(row.fault !== '' && { error: row.fault }),
    }
  }
}

function newRow(
  { sealer, clock, firstAccountId }: PersonRouteParts,
  kind: PersonTaskRow['kind'],
  address: string,
  isDry: boolean,
  { accountId, parentAccountId }: Caller,
): PersonTaskRow {
  const id = newId(clock.now())
  const now = Math.floor(clock.now())
  const isOperator = accountId === firstAccountId && parentAccountId === undefined
  return {
    ...{ id, account_id: accountId, everywhere: isOperator ? 1 : 0, kind, dry_run: isDry ? 1 : 0 },
    ...{ state: 'queued', address_sealed: sealer.seal(ADDRESS_PURPOSE, address, id) },
    ...{ address_hash: erasedAddress(sealer, addressKey(address)) },
    ...{ position_json: JSON.stringify(START), counts_json: '{}', blobs_json: '[]', report_json: null },
    ...{ fault: '', tries: 0, lease_token: null, lease_owner: null, lease_until: 0 },
    ...{ stepped_at: now, created_at: now, finished_at: null },
  }
}

async function* bytesOf(blobs: BlobStore, names: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const name of names) yield* (await blobs.read(name)).open()
}
