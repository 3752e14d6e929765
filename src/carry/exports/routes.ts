/** Exports over HTTP (exports.md section 1). */

import { pipeline, Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { newId } from '../../base/ids.ts'
import { BadRequest, NotFound } from '../../base/process/errors.ts'
import { nothing, type Of } from '../../base/shape.ts'
import { formatRfc3339 } from '../../base/time/dates.ts'
import { MINUTE_MS } from '../../base/time/durations.ts'
import { isPlainObject } from '../../base/values.ts'
import type { Core } from '../../core.ts'
import { accepts, Reply, redirectReply } from '../../platform/http/answer/reply.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { parsedParam, textParam } from '../../platform/http/request/inputs.ts'
import { type Caller, mayAccess } from '../../platform/http/rights/auth.ts'
import type { RightsArea } from '../../platform/http/rights/rights.ts'
import { piecesOf } from '../../platform/jobs/piece-steps.ts'
import type { BlobStore } from '../../platform/store/blobs/blobs.ts'
import { withoutPod, withPod } from '../../platform/store/pods/pod.ts'
import type { ExportRow } from '../../platform/store/schema.ts'
import { readToken, type Sealer, signToken } from '../../platform/store/secrets/sealing.ts'
import { checkCall, type createSources } from './lists.ts'
import { requesterOf } from './requester.ts'
import { EXPORT, EXPORTS, FILE, type STATUSES } from './shapes.ts'
import { findExport, insertExport, KEPT_MS, listExports } from './store.ts'
import { callerOf } from './work.ts'

interface ExportRouteParts extends Pick<Core, 'store' | 'blobs' | 'clock' | 'log'> {
  sealer: Pick<Sealer, 'mac'>
  baseUrl: string
  sourceOf: ReturnType<typeof createSources>
  /** An export waits for its first step. */
  wake(): void
}

const PATH = '/v3/exports'
const ONE = `${PATH}/{id}` as const
// The list itself may need another right.
const api = operationsOf({ tag: 'Exports', auth: { area: 'events' }, rateLimit: 'analytics' })
const URL_LENGTH_MAX = 2_048
const BODY_LENGTH_MAX = 64 * 1024
/** Whoever has the link needs no key. */
const LINK_MS = 15 * MINUTE_MS
const PURPOSE = 'export-download'
const TOKEN_LENGTH_MAX = 200
const NOT_FOUND = 'export not found'

export function exportRoutes(parts: ExportRouteParts): Operation[] {
  const { store, clock, sourceOf } = parts

  /** @throws NotFound for one of another account, or of a list that the caller may not read */
  async function find(id: string, caller: Caller): Promise<ExportRow> {
    const row = await findExport(store, id)
    if (row?.account_id !== caller.accountId || !mayRead(caller, row)) throw new NotFound(NOT_FOUND)
    return row
  }

  return [
    api.get(PATH, {
      id: 'listExports',
      summary: 'List exports of the last 24 hours, newest first',
      description: 'Those of lists that the caller may read.',
      params: { url: textParam('Only exports of this list') },
      answers: { 200: EXPORTS },
      async handler({ input, caller }) {
        const rows = await listExports(store, caller.accountId, input().url)
        return { items: rows.filter((row) => mayRead(caller, row)).map(exportView) }
      },
    }),
    api.post(PATH, {
      auth: { area: 'events', access: 'read' },
      id: 'createExport',
      audit: { made: ['id'] },
      summary: 'Write a list into a CSV file, in the background',
      params: {
        url: textParam('Path and query of the list', { required: true, example: '/v3/domains' }),
        body: textParam('JSON of a query by POST, for logs and metrics', { type: 'json' }),
      },
      answers: { 200: EXPORT },
      async handler({ input, caller, log, signal }) {
        const given = input()
        const { url, document } = givenList(given.url, given.body)
        const source = sourceOf(document === undefined ? 'GET' : 'POST', url)
        if (source === null) throw new BadRequest(`this list cannot be exported: ${given.url}`)
        const reader = callerOf(caller.accountId, caller.role)
        await checkCall(source, { caller: reader, document, log, signal })
        const body = document === undefined ? '' : JSON.stringify(document)
        const row = newRow(clock.now(), caller, {
          url: given.url,
          body,
          next_page: url,
          area: source.spec.auth.area,
        })
        await insertExport(store, row)
        parts.wake()
        return exportView(row)
      },
    }),
    api.get(ONE, {
      id: 'readExport',
      summary: 'Read the state of an export',
      answers: { 200: EXPORT },
      handler: async ({ path, caller }) => exportView(await find(path.id, caller)),
    }),
    api.get(`${ONE}/download_url`, {
      id: 'readExportUrl',
      summary: 'A link to the file of an export, for a quarter of an hour',
      answers: { 302: nothing('The link is in Location'), 404: 'No such export, or it is not complete' },
      async handler({ path, caller }) {
        const { id, status } = await find(path.id, caller)
        if (status !== 'complete') throw new NotFound(`export is not complete: ${status}`)
        const body = Buffer.from(`${Math.floor(clock.now()) + LINK_MS} ${id}`)
        const sig = withPod(store.pod, signToken(parts.sealer, PURPOSE, body))
        return redirectReply(`${parts.baseUrl}${PATH}/${id}/file?sig=${sig}`)
      },
    }),
    fileRoute(parts),
  ]
}

function fileRoute({ store, blobs, sealer, clock }: ExportRouteParts): Operation {
  return api.get(`${ONE}/file`, {
    rateLimit: 'default',
    id: 'downloadExport',
    summary: 'The file of an export, by a link that an operation gave',
    auth: 'public',
    opensByLink: true,
    params: {
      // A link without one is a 404, as any other that is not ours.
      sig: parsedParam('Signature of the link', (params, name) => params.text(name) ?? '', {
        required: true,
      }),
    },
    answers: { 200: FILE, 404: 'The link is over, or not ours' },
    async handler({ input, path: { id }, headers }) {
      const body = readToken(sealer, PURPOSE, withoutPod(input().sig), TOKEN_LENGTH_MAX)
      const [until = '', named = ''] = body?.toString().split(' ') ?? []
      const row = named === id && Number(until) > clock.now() ? await findExport(store, id) : undefined
      if (row?.status !== 'complete') throw new NotFound(NOT_FOUND)
      const isPacked = accepts('gzip', headers['accept-encoding'])
      const packed = Readable.from(bytesOf(blobs, piecesOf(row)), { objectMode: false })
      // Not composed: such a stream takes it for an error that nobody awaits when it is destroyed, as when the client has left.
      const source = isPacked ? packed : pipeline(packed, createGunzip(), () => undefined)
      return new Reply(
        { kind: 'stream', source, contentType: 'text/csv; charset=utf-8; header=present' },
        {
          headers: {
            ...(isPacked && { 'content-encoding': 'gzip' }),
            vary: 'Accept-Encoding',
            'content-disposition': `attachment; filename="export-${id}.csv"`,
          },
        },
      )
    },
  })
}

async function* bytesOf(blobs: BlobStore, names: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const name of names) yield* (await blobs.read(name)).open()
}

const mayRead = ({ role }: Caller, { area }: ExportRow) => mayAccess(role, area as RightsArea, 'read')

/** The list as its operation is called. Clients leave the version out, which is 3 then. */
function givenList(given: string, body: string | undefined): { url: string; document: unknown } {
  if (given.length > URL_LENGTH_MAX || /[^\x21-\x7e]/.test(given)) throw new BadRequest('url is not a path')
  const path = given.startsWith('/') ? given : `/${given}`
  const url = /^\/v\d+\//.test(path) ? path : `/v3${path}`
  if (body === undefined) return { url, document: undefined }
  if (body.length > BODY_LENGTH_MAX) throw new BadRequest('body is too long')
  const document = parsed(body)
  if (!isPlainObject(document)) throw new BadRequest('body is no JSON object')
  return { url, document }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function newRow(
  now: number,
  caller: Caller,
  list: Pick<ExportRow, 'url' | 'body' | 'next_page' | 'area'>,
): ExportRow {
  return {
    ...{ id: newId(now), account_id: caller.accountId, ...requesterOf(caller), ...list, status: 'requested' },
    ...{ records: 0, size_bytes: 0, blobs_json: '[]', fault: '', tries: 0 },
    ...{ lease_token: null, lease_owner: null, lease_until: 0 },
    ...{ stepped_at: Math.floor(now), created_at: Math.floor(now) },
  }
}

const exportView = (row: ExportRow): Of<typeof EXPORT> => ({
  id: row.id,
  status: row.status as (typeof STATUSES)[number],
  url: row.url,
  created_at: formatRfc3339(new Date(row.created_at)),
  expires_at: formatRfc3339(new Date(row.created_at + KEPT_MS)),
  size: row.size_bytes,
  ...(row.fault !== '' && { message: row.fault }),
})
