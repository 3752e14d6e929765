/** Validation of lists of addresses over HTTP: files, previews and mailing lists (validation.md sections 1 and 3). */
import type { AccountDirectory } from '../../accounts/account-directory.ts'
import { BadRequest, NotFound } from '../../base/errors.ts'
import type { Caller } from '../../http/auth.ts'
import type { BodyLimit } from '../../http/body.ts'
import { type Operation, operation, type ParamDoc } from '../../http/operation.ts'
import { limitOf, pageName, pivotPaging } from '../../http/paging.ts'
import type { Params, UploadedFile } from '../../http/params.ts'
import { jsonReply, noContent } from '../../http/reply.ts'
import type { List } from '../../lists/list.ts'
import { keyOf, type ListStore } from '../../lists/store.ts'
import type { ValidationJobRow } from '../../store/schema.ts'
import { requireFeatures } from '../routes.ts'
import { type DownloadParts, downloadUrls, linkedJob, resultsReply } from './downloads.ts'
import { jobView, previewView } from './job.ts'
import { countJobs, type JobPage, listJobs } from './job-store.ts'
import type { Jobs } from './jobs.ts'

export interface BulkRouteParts extends DownloadParts {
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
const PAGE = { default: 500, max: 1000 }
const TAG = 'Validation'
const READ = { area: 'validation', access: 'read' } as const
const WRITE = { area: 'validation', access: 'write' } as const
const FILE_PARAM: ParamDoc = {
  name: 'file',
  type: 'file',
  description: 'CSV, plain or gzip: one column of addresses, or a header with email or email_address',
  required: true,
}
const CANCELED = { message: 'Validation job canceled.' }

export function bulkRoutes(parts: BulkRouteParts): Operation[] {
  return [...jobRoutes(parts), ...previewRoutes(parts), ...listRoutes(parts)]
}

const mayUse =
  ({ accounts }: BulkRouteParts) =>
  ({ caller }: { caller: Caller }) =>
    requireFeatures(accounts, caller, ['validations', 'validations_bulk'])

/** @throws BadRequest without one */
function fileOf(params: Params): UploadedFile {
  const [file] = params.files('file')
  if (!file) throw new BadRequest("'file' parameter is required")
  return file
}

function jobRoutes(parts: BulkRouteParts): Operation[] {
  const { jobs } = parts
  const beforeBody = mayUse(parts)
  const path = '/v4/address/validate/bulk/{list_id}'
  return [
    operation({
      method: 'GET',
      path: '/v4/address/validate/bulk',
      id: 'listValidationJobs',
      tag: TAG,
      summary: 'List validation jobs, newest first',
      auth: READ,
      params: [
        { name: 'limit', type: 'integer', description: '1 to 1000', default: PAGE.default },
        { name: 'page', type: 'string', description: 'first, last, next or previous', default: 'first' },
        { name: 'pivot', type: 'string', description: 'Id of the job before or after the page' },
      ],
      responses: { 200: { description: 'A page' } },
      beforeBody,
      handler: async ({ params, caller }) => jobsPage(parts, caller.accountId, params),
    }),
    operation({
      method: 'POST',
      path,
      id: 'createValidationJob',
      tag: TAG,
      summary: 'Validate the addresses of a file in the background',
      auth: WRITE,
      params: [FILE_PARAM],
      multipartOnly: true,
      bodyLimit: FILE_LIMIT,
      responses: { 202: { description: 'The job waits for its turn' } },
      beforeBody,
      async handler({ params, path: { list_id }, caller }) {
        const row = await jobs.createOfFile(caller.accountId, 'bulk', list_id, fileOf(params).chunk)
        return submitted(row)
      },
    }),
    operation({
      method: 'GET',
      path,
      id: 'readValidationJob',
      tag: TAG,
      summary: 'Read the state of a validation job, with links to its results',
      auth: READ,
      params: [],
      responses: { 200: { description: 'The job' } },
      beforeBody,
      handler: async ({ path: { list_id }, caller }) =>
        jobView(await jobs.find(caller.accountId, 'bulk', list_id), downloadUrls(parts)),
    }),
    operation({
      method: 'DELETE',
      path,
      id: 'deleteValidationJob',
      tag: TAG,
      summary: 'Cancel a running validation job, or delete one with its results',
      auth: WRITE,
      params: [],
      responses: { 200: { description: 'Canceled or deleted' } },
      beforeBody,
      async handler({ path: { list_id }, caller }) {
        await jobs.remove(caller.accountId, 'bulk', list_id)
        return CANCELED
      },
    }),
    operation({
      method: 'GET',
      path: `${path}/download`,
      id: 'downloadValidationResults',
      tag: TAG,
      summary: 'The results of a validation job, by a link that the job shows',
      auth: 'public',
      params: [
        {
          name: 'format',
          type: 'string',
          description: 'Of the file',
          values: ['csv', 'json'],
          default: 'csv',
        },
        { name: 'sig', type: 'string', description: 'Of the link', required: true },
      ],
      responses: { 200: { description: 'The file' }, 404: { description: 'The link is over, or not ours' } },
      async handler({ params, path: { list_id } }) {
        const format = params.oneOf('format', ['csv', 'json']) ?? 'csv'
        const job = await linkedJob(parts, list_id, params.text('sig') ?? '')
        if (!job) throw new NotFound('validation job not found')
        return resultsReply(parts.store, job, format)
      },
    }),
  ]
}

async function jobsPage(parts: BulkRouteParts, accountId: string, params: Params) {
  const limit = limitOf(params, PAGE)
  const name = pageName(params)
  const pivot = params.text('pivot')
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
  const beforeBody = mayUse(parts)
  const path = '/v4/address/validate/preview/{list_id}'
  return [
    operation({
      method: 'GET',
      path: '/v4/address/validate/preview',
      id: 'listValidationPreviews',
      tag: TAG,
      summary: 'List previews, newest first',
      auth: READ,
      params: [],
      responses: { 200: { description: 'All previews' } },
      beforeBody,
      async handler({ caller }) {
        const rows = await listJobs(store, caller.accountId, 'preview', { name: 'first' }, PREVIEWS_MAX)
        return { previews: rows.map(previewView) }
      },
    }),
    operation({
      method: 'POST',
      path,
      id: 'createValidationPreview',
      tag: TAG,
      summary: 'Validate a random sample of at most 500 addresses of a file',
      auth: WRITE,
      params: [FILE_PARAM],
      multipartOnly: true,
      bodyLimit: FILE_LIMIT,
      responses: { 202: { description: 'The preview waits for its turn' } },
      beforeBody,
      async handler({ params, path: { list_id }, caller }) {
        await jobs.createOfFile(caller.accountId, 'preview', list_id, fileOf(params).chunk)
        return jsonReply({ id: list_id, message: 'The bulk preview was submitted.' }, { status: 202 })
      },
    }),
    operation({
      method: 'GET',
      path,
      id: 'readValidationPreview',
      tag: TAG,
      summary: 'Read a preview',
      auth: READ,
      params: [],
      responses: { 200: { description: 'Shares in percent' } },
      beforeBody,
      handler: async ({ path: { list_id }, caller }) => ({
        preview: previewView(await jobs.find(caller.accountId, 'preview', list_id)),
      }),
    }),
    operation({
      method: 'PUT',
      path,
      id: 'promoteValidationPreview',
      tag: TAG,
      summary: 'Make a preview a job for all addresses of its file',
      auth: WRITE,
      params: [],
      responses: { 200: { description: 'The job waits for its turn' } },
      beforeBody,
      async handler({ path: { list_id }, caller }) {
        await jobs.promote(caller.accountId, list_id)
        return { message: 'Validation preview promoted.' }
      },
    }),
    operation({
      method: 'DELETE',
      path,
      id: 'deleteValidationPreview',
      tag: TAG,
      summary: 'Delete a preview',
      auth: WRITE,
      params: [],
      responses: { 204: { description: 'Deleted' } },
      beforeBody,
      async handler({ path: { list_id }, caller }) {
        await jobs.remove(caller.accountId, 'preview', list_id)
        return noContent()
      },
    }),
  ]
}

/** Of mailing lists: jobs with the list's address for an id. */
function listRoutes(parts: BulkRouteParts): Operation[] {
  const { jobs, lists } = parts
  const beforeBody = mayUse(parts)
  const path = '/v3/lists/{list}/validate'
  async function listOf(address: string, caller: Caller): Promise<List> {
    const list = await lists.byKey(keyOf(address))
    if (list?.accountId === caller.accountId) return list
    throw new NotFound(`Mailing list ${address} not found`)
  }
  return [
    operation({
      method: 'POST',
      path,
      id: 'validateList',
      tag: TAG,
      summary: 'Validate the members of a mailing list in the background',
      auth: WRITE,
      params: [],
      responses: { 202: { description: 'The job waits for its turn' } },
      beforeBody,
      handler: async ({ path: { list }, caller }) =>
        submitted(await jobs.createOfList(await listOf(list, caller))),
    }),
    operation({
      method: 'GET',
      path,
      id: 'readListValidation',
      tag: TAG,
      summary: 'Read the state of the validation of a mailing list',
      auth: READ,
      params: [],
      responses: { 200: { description: 'The job' } },
      beforeBody,
      async handler({ path: { list }, caller }) {
        const { address } = await listOf(list, caller)
        return jobView(await jobs.find(caller.accountId, 'bulk', address), downloadUrls(parts))
      },
    }),
    operation({
      method: 'DELETE',
      path,
      id: 'deleteListValidation',
      tag: TAG,
      summary: 'Cancel the validation of a mailing list, or delete it with its results',
      auth: WRITE,
      params: [],
      responses: { 200: { description: 'Canceled or deleted' } },
      beforeBody,
      async handler({ path: { list }, caller }) {
        const { address } = await listOf(list, caller)
        await jobs.remove(caller.accountId, 'bulk', address)
        return CANCELED
      },
    }),
  ]
}
