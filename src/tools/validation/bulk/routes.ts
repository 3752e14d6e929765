/** Validation of lists of addresses over HTTP: files, previews and mailing lists (validation.md sections 1 and 3). */

import { NotFound, present } from '../../../base/process/errors.ts'
import { list, media, message, nothing, object } from '../../../base/shape.ts'
import type { AccountDirectory } from '../../../people/accounts/account-directory.ts'
import { jsonReply, noContent } from '../../../platform/http/answer/reply.ts'
import { type Operation, operationsOf } from '../../../platform/http/operation.ts'
import type { BodyLimit } from '../../../platform/http/request/body.ts'
import {
  choiceParam,
  fileParam,
  type InputOf,
  limitParam,
  parsedParam,
  textParam,
} from '../../../platform/http/request/inputs.ts'
import { pageName, pivotPaging } from '../../../platform/http/request/paging.ts'
import type { Caller } from '../../../platform/http/rights/auth.ts'
import type { ValidationJobRow } from '../../../platform/store/schema.ts'
import type { List } from '../../../sending/lists/list.ts'
import { keyOf, type ListStore } from '../../../sending/lists/store.ts'
import { requireFeatures } from '../routes.ts'
import { JOB, JOB_PAGE, PREVIEW, RESULT, SUBMITTED } from '../shapes.ts'
import { type DownloadParts, downloadUrls, linkedJob, resultsReply } from './downloads.ts'
import { jobView, previewView } from './job.ts'
import { countJobs, type JobPage, listJobs } from './job-store.ts'
import type { Jobs } from './jobs.ts'

interface BulkRouteParts extends DownloadParts {
  jobs: Jobs
  lists: Pick<ListStore, 'byKey'>
  accounts: Pick<AccountDirectory, 'byId'>
}

/** A file of 25 MB (26,214,400 bytes) and the form around it. */
const FILE_LIMIT: BodyLimit = {
  bytes: 26 * 1024 * 1024,
  fileBytes: 25 * 1024 * 1024,
  message: 'file size exceeds 25MB limit',
}
const PAGE_PARAMS = {
  limit: limitParam(500, 1000),
  page: parsedParam('first, last, next or previous; default first', pageName),
  pivot: textParam('Id of the job before or after the page'),
}

const api = operationsOf({ tag: 'Validation', auth: { area: 'validation' } })
const ONE = '/v4/address/validate/bulk/{list_id}'
const FILE = fileParam(
  'CSV, plain or gzip: one column of addresses, or a header with email or email_address',
  { required: true, missing: "'file' parameter is required" },
)
const PROMOTED = 'Validation preview promoted.'
const CANCELED = { message: 'Validation job canceled.' }

export function bulkRoutes(parts: BulkRouteParts): Operation[] {
  const beforeBody: Operation['beforeBody'] = ({ caller }) =>
    requireFeatures(parts.accounts, caller as Caller, ['validations', 'validations_bulk'])
  const allowed = (operations: Operation[]) => operations.map((one) => ({ ...one, beforeBody }))
  return [
    ...allowed(jobRoutes(parts)),
    downloadRoute(parts),
    ...allowed([...previewRoutes(parts), ...listRoutes(parts)]),
  ]
}

function jobRoutes(parts: BulkRouteParts): Operation[] {
  const { jobs } = parts
  return [
    api.get('/v4/address/validate/bulk', {
      id: 'listValidationJobs',
      summary: 'List validation jobs, newest first',
      params: PAGE_PARAMS,
      answers: { 200: JOB_PAGE },
      handler: async ({ input, caller }) => jobsPage(parts, caller.accountId, input()),
    }),
    api.post(ONE, {
      id: 'createValidationJob',
      summary: 'Validate the addresses of a file in the background',
      params: { file: FILE },
      multipartOnly: true,
      bodyLimit: FILE_LIMIT,
      answers: { 202: SUBMITTED },
      async handler({ input, path: { list_id }, caller }) {
        const row = await jobs.createOfFile(caller.accountId, 'bulk', list_id, input().file.chunk)
        return submitted(row)
      },
    }),
    api.get(ONE, {
      id: 'readValidationJob',
      summary: 'Read the state of a validation job, with links to its results',
      answers: { 200: JOB },
      handler: async ({ path: { list_id }, caller }) =>
        jobView(await jobs.find(caller.accountId, 'bulk', list_id), downloadUrls(parts)),
    }),
    api.delete(ONE, {
      id: 'deleteValidationJob',
      summary: 'Cancel a running validation job, or delete one with its results',
      answers: { 200: message(CANCELED.message, 'Canceled or deleted') },
      async handler({ path: { list_id }, caller }) {
        await jobs.remove(caller.accountId, 'bulk', list_id)
        return CANCELED
      },
    }),
  ]
}

function downloadRoute(parts: BulkRouteParts): Operation {
  return api.get(`${ONE}/download`, {
    id: 'downloadValidationResults',
    summary: 'The results of a validation job, by a link that the job shows',
    auth: 'public',
    params: {
      format: choiceParam('Form of the file', ['csv', 'json'], { default: 'csv' }),
      // A link without one is a 404, as any other that is not ours.
      sig: parsedParam('Signature of the link', (params, name) => params.text(name) ?? '', {
        required: true,
      }),
    },
    answers: {
      200: [list('The results', RESULT), media('text/csv', 'The results, with a header line')],
      404: 'The link is over, or not ours',
    },
    async handler({ input, path: { list_id } }) {
      const { format, sig } = input()
      const job = present(await linkedJob(parts, list_id, sig), 'validation job not found')
      return resultsReply(parts.store, job, format)
    },
  })
}

async function jobsPage(
  parts: BulkRouteParts,
  accountId: string,
  { limit, page: name, pivot }: InputOf<typeof PAGE_PARAMS>,
) {
  const wantsPivot = name === 'next' || name === 'previous'
  const page: JobPage = wantsPivot
    ? pivot === undefined
      ? { name: 'first' }
      : { name, pivot }
    : { name: name === 'last' ? 'last' : 'first' }
  const [rows, total] = await Promise.all([
    listJobs(parts.store, accountId, 'bulk', page, limit),
    countJobs(parts.store, accountId, 'bulk'),
  ])
  const { first, last, next, previous } = pivotPaging({
    baseUrl: parts.baseUrl,
    path: '/v4/address/validate/bulk',
    pivotName: 'pivot',
    firstItem: rows.at(0)?.list_id,
    lastItem: rows.at(-1)?.list_id,
    pivot,
    carry: { limit },
    namesFirst: true,
  })
  const urls = downloadUrls(parts)
  return {
    jobs: rows.map((row) => jobView(row, urls)),
    total,
    paging: { first, last, next, previous, prev: previous },
  }
}

const submitted = (row: ValidationJobRow) =>
  jsonReply({ id: row.list_id, message: 'The validation job was submitted.' }, { status: 202 })

/** Previews of an account: as many as jobs are kept. */
const PREVIEWS_MAX = 1_000

function previewRoutes(parts: BulkRouteParts): Operation[] {
  const { jobs, store } = parts
  const path = '/v4/address/validate/preview/{list_id}'
  return [
    api.get('/v4/address/validate/preview', {
      id: 'listValidationPreviews',
      summary: 'List previews, newest first',
      answers: { 200: object('All previews', { previews: list('Newest first', PREVIEW) }) },
      async handler({ caller }) {
        const rows = await listJobs(store, caller.accountId, 'preview', { name: 'first' }, PREVIEWS_MAX)
        return { previews: rows.map(previewView) }
      },
    }),
    api.post(path, {
      id: 'createValidationPreview',
      summary: 'Validate a random sample of at most 500 addresses of a file',
      params: { file: FILE },
      multipartOnly: true,
      bodyLimit: FILE_LIMIT,
      answers: { 202: SUBMITTED },
      async handler({ input, path: { list_id }, caller }) {
        await jobs.createOfFile(caller.accountId, 'preview', list_id, input().file.chunk)
        return jsonReply({ id: list_id, message: 'The bulk preview was submitted.' }, { status: 202 })
      },
    }),
    api.get(path, {
      id: 'readValidationPreview',
      summary: 'Read a preview',
      answers: { 200: object('The preview', { preview: PREVIEW }) },
      handler: async ({ path: { list_id }, caller }) => ({
        preview: previewView(await jobs.find(caller.accountId, 'preview', list_id)),
      }),
    }),
    api.put(path, {
      id: 'promoteValidationPreview',
      summary: 'Make a preview a job for all addresses of its file',
      answers: { 200: message(PROMOTED, 'The job waits for its turn') },
      async handler({ path: { list_id }, caller }) {
        await jobs.promote(caller.accountId, list_id)
        return { message: PROMOTED }
      },
    }),
    api.delete(path, {
      id: 'deleteValidationPreview',
      summary: 'Delete a preview',
      answers: { 204: nothing('Deleted') },
      async handler({ path: { list_id }, caller }) {
        await jobs.remove(caller.accountId, 'preview', list_id)
        return noContent()
      },
    }),
  ]
}

/** Operations on mailing lists: jobs with the list's address for an id. */
function listRoutes(parts: BulkRouteParts): Operation[] {
  const { jobs, lists } = parts
  const path = '/v3/lists/{list}/validate'
  async function listOf(address: string, caller: Caller): Promise<List> {
    const list = await lists.byKey(keyOf(address))
    if (list?.accountId === caller.accountId) return list
    throw new NotFound(`Mailing list ${address} not found`)
  }
  return [
    api.post(path, {
      id: 'validateList',
      summary: 'Validate the members of a mailing list in the background',
      answers: { 202: SUBMITTED },
      handler: async ({ path: { list }, caller }) =>
        submitted(await jobs.createOfList(await listOf(list, caller))),
    }),
    api.get(path, {
      id: 'readListValidation',
      summary: 'Read the state of the validation of a mailing list',
      answers: { 200: JOB },
      async handler({ path: { list }, caller }) {
        const { address } = await listOf(list, caller)
        return jobView(await jobs.find(caller.accountId, 'bulk', address), downloadUrls(parts))
      },
    }),
    api.delete(path, {
      id: 'deleteListValidation',
      summary: 'Cancel the validation of a mailing list, or delete it with its results',
      answers: { 200: message(CANCELED.message, 'Canceled or deleted') },
      async handler({ path: { list }, caller }) {
        const { address } = await listOf(list, caller)
        await jobs.remove(caller.accountId, 'bulk', address)
        return CANCELED
      },
    }),
  ]
}
