/** Links to the results of a job, signed, without a key (validation.md section 3 rules 6 and 7). */

import { DAY_MS } from '../../../base/time/durations.ts'
import type { Core } from '../../../core.ts'
import { csvReply, Reply } from '../../../platform/http/answer/reply.ts'
import { withoutPod, withPod } from '../../../platform/store/pods/pod.ts'
import type { ValidationJobRow } from '../../../platform/store/schema.ts'
import { readToken, type Sealer, signToken } from '../../../platform/store/secrets/sealing.ts'
import type { Store } from '../../../platform/store/store.ts'
import type { ValidationResult } from '../shapes.ts'
import type { DownloadUrls } from './job.ts'
import { resultsOf } from './job-store.ts'

/** From each read of the job. */
const LIVE_MS = DAY_MS
const PURPOSE = 'validation-download'
const TOKEN_LENGTH_MAX = 200

export interface DownloadParts extends Pick<Core, 'store' | 'clock'> {
  sealer: Pick<Sealer, 'mac'>
  /** The public address, without a final slash. */
  baseUrl: string
}

export const downloadUrls =
  ({ store, sealer, clock, baseUrl }: DownloadParts): DownloadUrls =>
  (job) => {
    const body = Buffer.from(`${Math.floor(clock.now()) + LIVE_MS} ${job.id}`)
    const path = `${baseUrl}/v4/address/validate/bulk/${encodeURIComponent(job.list_id)}/download`
    const sig = withPod(store.pod, signToken(sealer, PURPOSE, body))
    return { csv: `${path}?format=csv&sig=${sig}`, json: `${path}?format=json&sig=${sig}` }
  }

/** The job that a link is for; null for any link that is not ours, is over, or whose job is gone. */
export async function linkedJob(
  { store, sealer, clock }: DownloadParts,
  listId: string,
  sig: string,
): Promise<ValidationJobRow | null> {
  const body = readToken(sealer, PURPOSE, withoutPod(sig), TOKEN_LENGTH_MAX)
  const [until = '', id = ''] = body?.toString().split(' ') ?? []
  if (Number(until) <= clock.now()) return null
  const row = await store.db
    .selectFrom('validation_jobs')
    .selectAll()
    .where('id', '=', id)
    .where('list_id', '=', listId)
    .where('status', '=', 'uploaded')
    .executeTakeFirst()
  return row ?? null
}

const COLUMNS = [
  ...['address', 'result', 'risk', 'reason', 'is_disposable_address', 'is_role_address'],
  ...['did_you_mean', 'root_address'],
]

/** The file, read while the client takes it. */
export function resultsReply(store: Store, job: ValidationJobRow, format: 'csv' | 'json'): Reply {
  const results = resultsOf(store, job.id)
  if (format === 'csv') return csvReply('validation.csv', COLUMNS, records(results))
  return new Reply(
    { kind: 'stream', source: jsonPieces(results), contentType: 'application/json; charset=utf-8' },
    { headers: { 'content-disposition': 'attachment; filename="validation.json"' } },
  )
}

async function* records(results: AsyncIterable<ValidationResult>) {
  for await (const one of results)
    yield [
      ...[one.address, one.result, one.risk, one.reason.join(';')],
      ...[one.is_disposable_address, one.is_role_address, one.did_you_mean, one.root_address],
    ]
}

const PIECE_LENGTH = 64 * 1024

async function* jsonPieces(results: AsyncIterable<ValidationResult>): AsyncGenerator<Uint8Array> {
  let text = '['
  let isFirst = true
  for await (const result of results) {
    text += `${isFirst ? '' : ','}\n${JSON.stringify(result)}`
    isFirst = false
    if (text.length < PIECE_LENGTH) continue
    yield Buffer.from(text)
    text = ''
  }
  yield Buffer.from(`${text}\n]\n`)
}
