/** Shared by the drill and the test of bulk validation: a job, killed on its way, against a DNS server that counts. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DnsServer } from './dns-server.ts'
import { serviceFlags } from './node-flags.ts'
import { residentBytes } from './process-memory.ts'
import { ownAddress } from './service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from './service-process.ts'

export interface BulkRun {
  addresses: number
  /** Shares of the job, from 0 to 1, at which the process is killed. */
  kills: readonly number[]
  dataFolder: string
  dns: DnsServer
  note(text: string): void
}

export interface BulkOutcome {
  /** Most queries for one domain. */
  queriesMax: number
  /** Domains that were asked for twice. */
  repeated: number
  /** Highest resident set of the last process until most of the job is done, and after that. */
  restBytes: number
  peakBytes: number
  results: { address: string; result: string }[]
  /** Progress as read, in order. */
  progress: number[]
  job: Job
}

/** Far enough after the last kill. */
const WARM_SHARE = 0.75
const PATH = '/v4/address/validate/bulk/drill'
/** Every address has a domain of its own; each tenth domain has no mail host. */
export const addressOf = (n: number) => `user${n}@${domainOf(n)}`
const domainOf = (n: number) => `d${n}.mail${n % 5_000}.example`
export const refuses = (n: number) => n % 10 === 0

export async function runBulk({ addresses, kills, dataFolder, dns, note }: BulkRun): Promise<BulkOutcome> {
  for (let n = 0; n < addresses; n++)
    dns.set(domainOf(n), 'MX', [refuses(n) ? [0, ''] : [10, 'mx.example']], 3_600)
  const env = { SENDWRIGHT_DATA: dataFolder, SENDWRIGHT_DNS: `${dns.host}:${dns.port}` }
  // As a start by bin/sendwright has them: memory depends on them.
  const flags = serviceFlags()
  const host = ownAddress()
  let service = await startProcess(host, env, { flags })
  const progress: number[] = []
  let restBytes = 0
  let peakBytes = 0
  try {
    await upload(service, addresses)
    const left = [...kills]
    for (;;) {
      const job = await read(service)
      const done = job.records_processed ?? 0
      progress.push(done)
      if (job.status === 'uploaded') break
      assert.notEqual(job.status, 'failed')
      const share = done / addresses
      if (left.length > 0 && share >= (left[0] as number)) {
        left.shift()
        await service.end('SIGKILL')
        note(`killed after ${done} addresses`)
        service = await startProcess(host, env, { flags })
        restBytes = 0
        peakBytes = 0
      } else if (left.length === 0 && service.child.pid !== undefined && job.status === 'processing') {
        const bytes = await residentBytes(service.child.pid)
        // A process that has just begun grows to its working size.
        if (share < WARM_SHARE) restBytes = Math.max(restBytes, bytes)
        else peakBytes = Math.max(peakBytes, bytes)
      }
      await sleep(20)
    }
    const job = await read(service)
    const results = (await (await fetch(job.download_url.json)).json()) as BulkOutcome['results']
    const counts = new Map<string, number>()
    for (const { name } of dns.queries) counts.set(name, (counts.get(name) ?? 0) + 1)
    const queries = [...counts.values()]
    return {
      queriesMax: queries.reduce((max, count) => Math.max(max, count), 0),
      repeated: queries.filter((count) => count > 1).length,
      ...{ restBytes, peakBytes, results, progress, job },
    }
  } finally {
    await service.end('SIGTERM')
  }
}

async function upload(service: ServiceProcess, addresses: number): Promise<void> {
  const lines = Array.from({ length: addresses }, (_, n) => addressOf(n))
  const form = new FormData()
  form.set('file', new File([`email\n${lines.join('\n')}\n`], 'drill.csv'))
  const answer = await fetch(service.url + PATH, {
    method: 'POST',
    headers: { authorization: AUTHORIZATION },
    body: form,
  })
  assert.equal(answer.status, 202, await answer.text())
}

interface Job {
  status: string
  quantity: number
  records_processed: number | null
  download_url: { json: string }
  summary: { result: Record<string, number> }
}

async function read(service: ServiceProcess): Promise<Job> {
  const answer = await fetch(service.url + PATH, { headers: { authorization: AUTHORIZATION } })
  assert.equal(answer.status, 200)
  return (await answer.json()) as Job
}

/** What holds for every run, whatever its size. */
export function judgeBulk({ queriesMax, results, job, progress }: BulkOutcome, addresses: number): void {
  assert.ok(queriesMax <= 2, `an address was looked up ${queriesMax} times`)
  assert.deepEqual([job.quantity, job.records_processed], [addresses, addresses])
  assert.equal(results.length, addresses)
  for (const [n, { address, result }] of results.entries()) {
    assert.equal(address, addressOf(n))
    // The third try of a step would ask nobody, and give unknown.
    assert.equal(result, refuses(n) ? 'undeliverable' : 'unknown', address)
  }
  const undeliverable = Math.ceil(addresses / 10)
  assert.equal(job.summary.result['undeliverable'], undeliverable)
  assert.equal(job.summary.result['unknown'], addresses - undeliverable)
  assert.deepEqual(
    progress,
    progress.toSorted((a, b) => a - b),
    'progress never goes back',
  )
}
