/** The installation as GET /sendwright/v1/system describes it. */
import { VERSION } from '../base/version.ts'
import type { Core } from '../core.ts'
import type { Caller } from '../http/auth.ts'
import type { JobReport } from '../jobs/job.ts'
import type { AlertHitRow } from '../store/schema.ts'

const STARTED_AT = Date.now()

export async function describeSystem(
  { config, store, firstAccountId }: Pick<Core, 'config' | 'store' | 'firstAccountId'>,
  { jobs, alerts }: { jobs(): Promise<JobReport[]>; alerts(): Promise<AlertHitRow[]> },
  caller: Pick<Caller, 'accountId' | 'role'>,
): Promise<Record<string, unknown>> {
  const rows = await store.db
    .selectFrom('deliveries')
    .select(['state', (of) => of.fn.countAll<number>().as('count')])
    .where('state', 'in', ['scheduled', 'queued', 'sending'])
    .groupBy('state')
    .execute()
  const count = (state: string) => Number(rows.find((row) => row.state === state)?.count ?? 0)
  return {
    version: VERSION,
    mode: config.delivery.kind,
    database: store.kind,
    uptime_seconds: Math.floor((Date.now() - STARTED_AT) / 1000),
    queue: { scheduled: count('scheduled'), queued: count('queued'), sending: count('sending') },
    ...(caller.accountId === firstAccountId && { alerts: (await alerts()).map(alertView) }),
    // Errors of jobs may name files and hosts.
    ...(caller.accountId === firstAccountId &&
      caller.role === 'admin' && { jobs: (await jobs()).map(jobView) }),
  }
}

const isoTime = (at: number | null) => (at === null ? null : new Date(at).toISOString())

/** One that lasts now. */
const alertView = ({ name, dimension, dimension_value, latest_value, since_at, advice }: AlertHitRow) => ({
  name,
  ...(dimension !== '' && { dimension, dimension_value }),
  latest_value,
  since: isoTime(since_at),
  advice,
})

function jobView({ name, everyMs, running, lastStartedAt, lastEndedAt, lastError }: JobReport) {
  return {
    name,
    interval_seconds: everyMs / 1000,
    running,
    last_started_at: isoTime(lastStartedAt),
    last_ended_at: isoTime(lastEndedAt),
    last_error: lastError,
  }
}
