/** The operations of validation (validation.md), and the fields that pages show. */
import { getJson, type Paging, sendFiles, sendForm, sendJson } from '../../api.ts'

export interface Verdict {
  address: string
  result: string
  risk: string
  reason: string[]
  is_disposable_address: boolean
  is_role_address: boolean
  did_you_mean?: string
  root_address?: string
  /** Unix seconds. */
  last_seen?: number
}

export interface ValidationJob {
  id: string
  /** Unix seconds. */
  created_at: number
  quantity: number
  /** Null while the file is read. */
  records_processed: number | null
  status: string
  download_url?: { csv: string; json: string }
  summary?: { result: Record<string, number>; risk: Record<string, number> }
}

export const PAGE_SIZE = 50 // about three screens

const BULK = '/v4/address/validate/bulk'
const jobPath = (id: string) => `${BULK}/${encodeURIComponent(id)}`

export const jobsPath = `${BULK}?limit=${PAGE_SIZE}`

export const validate = (address: string) => sendForm<Verdict>('POST', '/v4/address/validate', { address })

export const readJobs = (path: string, signal?: AbortSignal) =>
  getJson<{ jobs: ValidationJob[]; total: number; paging: Paging }>(path, signal)

export const readJob = (id: string, signal?: AbortSignal) => getJson<ValidationJob>(jobPath(id), signal)

export const createJob = (id: string, file: File) => {
  const form = new FormData()
  form.append('file', file)
  return sendFiles<{ id: string }>('POST', jobPath(id), form)
}

/** Cancels a running job, and deletes any other. */
export const removeJob = (id: string) => sendJson<{ message: string }>('DELETE', jobPath(id))

export const isRunning = ({ status }: Pick<ValidationJob, 'status'>) =>
  status === 'created' || status === 'processing'
