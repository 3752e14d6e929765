/** The operations of validation (validation.md), and the fields that pages show. */
import { followJson, getJson, sendFiles, sendForm, sendJson } from '../../api.ts'
import type * as Api from '../../api-types.ts'

export type Verdict = Api.ValidationResult

export type ValidationJob = Api.ValidationJob

export const PAGE_SIZE = 50 // about three screens

const BULK = '/v4/address/validate/bulk'
const jobPath = (id: string) => `${BULK}/${encodeURIComponent(id)}` as const

export const jobsPath = `${BULK}?limit=${PAGE_SIZE}`

export const validate = (address: string) => sendForm('POST', '/v4/address/validate', { address })

export const readJobs = (path: string, signal?: AbortSignal) =>
  followJson<'GET /v4/address/validate/bulk'>(path, signal)

export const readJob = (id: string, signal?: AbortSignal) => getJson(jobPath(id), signal)

export const createJob = (id: string, file: File) => {
  const form = new FormData()
  form.append('file', file)
  return sendFiles(jobPath(id), form)
}

/** Cancels a running job, and deletes any other. */
export const removeJob = (id: string) => sendJson('DELETE', jobPath(id))

export const isRunning = ({ status }: Pick<ValidationJob, 'status'>) =>
  status === 'created' || status === 'processing'
