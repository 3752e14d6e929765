/** Periodic jobs of a service whose clock a test steps. */
import assert from 'node:assert/strict'
import type { TestClock } from './clock.ts'
import { eventually, type TestService } from './service.ts'

interface JobState {
  name: string
  running: boolean
  last_started_at: string | null
  last_ended_at: string | null
  last_error: string | null
}

/** Lets `ms` pass at once, more than the job's interval; resolves when the job has run after that. Time has to go on by itself. */
export async function runJobAfter(
  service: TestService,
  clock: TestClock,
  name: string,
  ms: number,
): Promise<void> {
  const state = async () => {
    const { jobs } = (await service.call('GET', '/sendwright/v1/system')).body as { jobs: JobState[] }
    const found = jobs.find((job) => job.name === name)
    assert.ok(found, `no job ${name}`)
    assert.equal(found.last_error, null)
    return found
  }
  // A run in progress would put off the next one.
  await eventually(`the first run of ${name}`, async () => {
    const { running, last_ended_at } = await state()
    return !running && last_ended_at !== null
  })
  clock.leap(ms)
  const since = Math.floor(clock.now())
  await eventually(`a later run of ${name}`, async () => {
    const { running, last_started_at } = await state()
    return !running && Date.parse(last_started_at ?? '') >= since
  })
}
